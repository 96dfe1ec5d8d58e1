/**
 * computing.js: computes every new request, and drops answers that a newer request has overtaken.
 */
import { compute, firstPicture } from "./exchange/api.js";
import { checkRun, isQuickToCheck } from "./exchange/checks.js";

/** Edits within this time are computed as one. */
const DEBOUNCE_MS = 30;
const BUSY_AFTER_MS = 200;
/** A large check starts after the map is drawn. */
const CHECK_AFTER_MS = 50;

/** @param {import("./store.js").Store} store @param {import("./main.js").App} app */
export function computeOnChange(store, app) {
  const requestedIn = ({ given, view }) => ({ given, head: view.head });
  let asked = null,
    timer = 0,
    running = null,
    isFirst = store.state.view.mode !== "start";

  /** The opening asks for itself. The answer to a large request has one head. Selecting another head fetches that one. */
  const isNew = ({ given, view, answer }) =>
    view.mode !== "start" && !given.isUnused && (given !== asked?.given || (answer?.onlyHead !== undefined && view.head !== asked.head));

  /** Checks a large answer. It may have become run A in the meantime. */
  const checkLate = (given, answer) => {
    const { answer: now, baseline } = store.state;
    if (now !== answer && baseline?.answer !== answer) return;
    const check = checkRun({ given, answer });
    if (now === answer) store.set({ check });
    if (baseline?.answer === answer) store.set({ baseline: { ...baseline, check } });
  };

  async function run({ given, head }) {
    running?.abort();
    const mine = (running = new AbortController());
    const slow = setTimeout(() => store.set({ isBusy: true }), BUSY_AFTER_MS);
    let isHere = false;
    firstPicture(given, head, mine.signal).then(
      (matrix) => matrix && !isHere && !mine.signal.aborted && app.mainView?.showFirst(matrix),
      () => {}, // compute() below reports the error
    );
    try {
      const answer = await compute(given, head, mine.signal);
      if (mine.signal.aborted) return;
      isHere = true;
      const { view } = store.state,
        [batch, heads] = (answer.thumbs ?? answer.outputs.attention)?.shape ?? [1, 1];
      store.set({
        answer,
        shown: given,
        isBusy: false,
        isRefused: false,
        check: isQuickToCheck(given) ? checkRun({ given, answer }) : null,
        view: { ...view, head: Math.min(view.head, heads - 1), batch: Math.min(view.batch, batch - 1) },
      });
      if (!isFirst) app.notify(""); // keeps the notice that was shown at start
      app.retries.done("request");
      if (!store.state.check) setTimeout(checkLate, CHECK_AFTER_MS, given, answer);
    } catch (problem) {
      if (problem.name === "AbortError" || mine.signal.aborted) return;
      store.set({ isBusy: false, isRefused: true });
      app.failed(problem, "request", () => run(asked));
    } finally {
      clearTimeout(slow);
      isFirst = false;
      if (mine === running) app.setAsking(false);
    }
  }

  const ask = () => {
    asked = requestedIn(store.state);
    app.setAsking(true);
  };

  store.listen((state) => {
    app.update(state);
    const { baseline } = state;
    if (baseline && !baseline.check && baseline.answer !== state.answer) store.set({ baseline: { ...baseline, check: checkRun(baseline) } });
    if (!isNew(state)) return;
    ask();
    clearTimeout(timer);
    timer = setTimeout(() => run(asked), DEBOUNCE_MS);
  });
  if (!isNew(store.state)) return;
  ask();
  run(asked);
}
