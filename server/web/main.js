/**
 * main.js: builds the page, and defines what its buttons do.
 *
 * The script makes the whole body. A copy saved to disk therefore holds only the style, this script, and data.
 *
 * @typedef {ReturnType<typeof createApp>} App
 */
import { computeOnChange } from "./computing.js";
import { compute } from "./exchange/api.js";
import { checkRun } from "./exchange/checks.js";
import { field, h } from "./dom.js";
import { keepFocus } from "./focus.js";
import { createFoot } from "./panels/foot.js";
import { createHeader } from "./panels/header.js";
import { caseOfFile, caseOfText } from "./panels/importing.js";
import { caseOver, fetchLayer, inputsFor, listLayers } from "./exchange/layers.js";
import { fetchTexts } from "./exchange/files.js";
import { caseOfModel } from "./models/case.js";
import { caseOfSentence, EXAMPLES, exampleCase, exampleOf, OPENING } from "./models/examples.js";
import { ENTRANCES, MODES, OPENERS } from "./modes.js";
import { openingText } from "./opening/opening.js";
import { presetCase } from "./request/presets.js";
import { initialState, keepHistory, shareState } from "./history.js";
import { hiddenIn, seenIn } from "./request/runs.js";
import { hasServer, Refusal, useKey } from "./exchange/server.js";
import { Store, DEFAULT_VIEW } from "./store.js";
import { useDecimalMark } from "./request/tensor.js";
import { createProgress } from "./progress.js";
import { createRetries } from "./retries.js";
import { languageFrom, ownLanguage, Problem, textsOf } from "./texts.js";

/** A held arrow key passes over many cells. Only the last one is announced. */
const SAY_AFTER_MS = 150;
/** How long a success message is shown. */
const TOAST_MS = 5000;

/** Settings in localStorage. The page also works when the browser stores nothing. */
const memory = {
  get(name) {
    try {
      return localStorage.getItem("attnd." + name);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem("attnd." + name, value);
    } catch {
      // Without storage, the setting lasts until the page is closed.
    }
  },
};

function createApp(store, language) {
  const app = {
    store,
    language,
    theme: memory.get("theme") ?? "auto",
    isAsking: false,
    /** @type {import("./exchange/layers.js").Facts[]} */
    layers: [],
    /** New expected values have come. Their section is scrolled into view at the next update. */
    hasNewValues: false,
  };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const spoken = h("p.spoken", { role: "status", "aria-live": "polite" });
  const notice = h("div.notice", { role: "alert" });
  const toast = h("p.toast", { role: "status", hidden: true });
  const purpose = h("p.purpose", {}),
    holder = h("div", {}),
    foot = h("footer.foot", {}),
    main = h("main#main", {}, purpose, notice, holder);
  let header = null,
    modes = {};

  app.retries = createRetries(app);
  const progress = createProgress(app);
  app.t = (key, values) => textsOf(app.language)(key, values);
  let unsaid = {},
    saying = 0;
  /**
   * Announces text to screen readers after SAY_AFTER_MS without changes. A newer text on a subject replaces an
   * unannounced one.
   */
  app.say = (text, subject = "cell") => {
    unsaid[subject] = text;
    clearTimeout(saying);
    saying = setTimeout(() => {
      spoken.textContent = Object.values(unsaid).join(". ");
      unsaid = {};
    }, SAY_AFTER_MS);
  };
  app.appearance = () => ({ ...store.state.view, isDark: app.theme === "dark" || (app.theme === "auto" && dark.matches) });

  /** @returns {ReturnType<typeof seenIn>} the run, step and view that are shown; needs an answer */
  app.seen = () => seenIn(store.state);

  // ---- what buttons do -------------------------------------------------------------------------------------------

  /** Number of the sentence typed last. Answers to earlier ones are dropped. */
  let typing = 0;

  /** Opening an example adds a history entry; turning a page of a lesson does not. */
  app.openCase = (given, isSameEntry = false) => {
    const { palette, models, opening, reader } = store.state.view;
    if (!isSameEntry) app.beforeEntry?.();
    typing++;
    app.retries.cancel("sentence");
    store.edit(given, 0, { view: { ...DEFAULT_VIEW, palette, models, opening, reader, ...given.view }, expected: null });
  };
  /** Shows a mode with the request that is open. Back returns to the mode before. */
  const showMode = (mode) => {
    if (mode !== store.state.view.mode) app.beforeEntry?.();
    store.setView({ mode });
  };
  app.openPreset = (id) => (EXAMPLES.includes(id) ? openExample(id) : app.openCase(presetCase(id)));
  app.openMode = (mode) => (ENTRANCES[mode] ? ENTRANCES[mode](app) : showMode(mode));
  app.openStep = (step) => store.setView({ step });
  app.keepBaseline = () => {
    const { shown, answer, check } = store.state;
    store.change({ baseline: { given: shown, answer, check } });
  };
  /** Computes run A of a shared link again. */
  app.computeBaseline = async ({ baselineCase, view }) => {
    if (!baselineCase) {
      store.set({ baseline: null });
      return;
    }
    const answer = await compute(baselineCase, view.head);
    store.set({ baseline: { given: baselineCase, answer, check: checkRun({ given: baselineCase, answer }) } });
  };
  app.findLayers = async () => {
    if (hasServer()) app.layers = await listLayers();
    app.update(store.state);
  };
  app.dropBaseline = () => {
    store.change({ baseline: null, view: { ...store.state.view, compare: "now" } });
    app.notify("");
  };
  /** Run A and the difference are read-only, so painting is turned off while they are shown. */
  app.compare = (mode) => {
    store.setView({ compare: mode, paint: mode === "now" && store.state.view.paint });
    app.notify("");
  };

  const opened = (make) =>
    async function open(source) {
      try {
        app.openCase(await make(source));
        app.notify("");
        app.retries.done("case");
      } catch (problem) {
        app.failed(problem, "case", () => open(source));
      }
    };
  const openExample = opened((id) => exampleCase(id, app.language));
  const openSentenceOfStart = opened((text) => exampleCase(OPENING.id, app.language, text));
  /** The sentence of the opening goes to the Lab, unless the Lab holds it already, or another request. */
  app.openLab = async () => {
    const { given, view } = store.state,
      text = openingText(app),
      isKept = !given.isUnused && (view.mode !== "start" || !given.source || given.source.text === text);
    if (isKept) showMode("lab");
    else await openSentenceOfStart(text);
    if (!isKept && app.isReadBySmall) app.notify(app.t("opening.lab"));
  };
  /** The debugger takes the request of the Lab, unless its numbers are those of a model or of a kept layer. */
  app.openDebugger = () => {
    const { isUnused, source, layer } = store.state.given;
    if (isUnused || source || layer) app.openCase({ ...presetCase("causal"), view: { mode: "bug" } });
    else showMode("bug");
  };
  /** Opens the same text in another layer of its model. */
  app.openSourceAt = (source, view) => opened(async () => ({ ...exampleOf(await caseOfModel(source)), view }))();
  /** A layer with many keys has small weights, so the colour scale ends at the 99th percentile ("robust"). */
  app.openLayer = async (name, view = { range: "robust" }) => {
    try {
      const layer = await fetchLayer(name);
      app.openCase({ ...caseOver(layer, inputsFor(layer, store.state.given)), view });
      app.notify("");
      app.retries.done("case");
    } catch (problem) {
      app.failed(problem, "case", () => app.openLayer(name, view));
    }
  };
  /**
   * Computes the case again for the typed sentence. Keeps the view, and in a model selects the same word again. Drops
   * answers that arrive after a newer keystroke.
   */
  app.openSentence = async (text, numbers) => {
    const mine = ++typing,
      { given, view } = store.state;
    try {
      const made = await caseOfSentence(given, text, app.seen().view, numbers);
      if (mine !== typing) return;
      const { row = view.row, col = view.col } = made.view ?? {};
      store.edit(made, "sentence", { view: { ...store.state.view, row, col } });
      app.notify("");
      app.retries.done("sentence");
    } catch (problem) {
      if (mine !== typing) return;
      store.set({ isRefused: true });
      app.failed(problem, "sentence", () => app.openSentence(text, numbers));
    }
  };
  app.openSource = (text) => app.openSentence(text, null);
  app.openText = opened(caseOfText);
  const openRequest = opened(caseOfFile);
  app.openFile = async (file) => {
    try {
      for (const open of OPENERS) if (await open(app, file)) return;
    } catch (problem) {
      app.cannotUse(problem);
      return;
    }
    await openRequest(file);
  };

  /** Message of an error. Errors of the browser get a general message, because their own says nothing to a visitor. */
  app.wordsOf = (problem) => {
    if (problem instanceof Problem) return app.t(problem.key, problem.values);
    if (!(problem instanceof Refusal)) return app.t("own.form");
    return problem.tokens ? app.t("text.long", problem.tokens) : problem.message;
  };
  app.cannotUse = (problem) => app.notify(app.t("own.wrong", { why: app.wordsOf(problem) }));

  function refused(problem) {
    const { pointer, message } = problem,
      where = pointer && !message.startsWith(pointer) ? [h("code", {}, pointer), " "] : [];
    app.notify(h("b", {}, app.t("refused")), " ", ...where, message);
  }

  /** @param {unknown} what key of the retry @param {() => void} again repeats what has failed */
  app.failed = (problem, what, again) => {
    if (problem.key === "gone") {
      app.retries.add(what, again);
      return;
    }
    app.retries.done(what);
    if (problem.key === "stopped") app.notify(app.t("stopped"), " ", h("button", { type: "button", onclick: again }, app.t("again")));
    else if (problem.status === 401) app.askForKey(problem.message, again);
    else if (problem instanceof Refusal && !problem.tokens) refused(problem);
    else app.cannotUse(problem);
  };

  /** A mode with a better place for messages takes them there while it is open. */
  app.takeNotice = (place) => {
    if (notice.parentNode !== place) place.append(notice);
  };

  app.notify = (...content) => {
    const close = h("button.icon.close", { type: "button", "aria-label": app.t("close"), onclick: () => app.notify("") }, "×");
    notice.hidden = content.length === 0 || content[0] === "";
    notice.replaceChildren(...(notice.hidden ? [] : [h("div", {}, ...content), close]));
  };

  let fading = 0;
  /** Shows a success message for TOAST_MS. */
  app.toast = (text) => {
    toast.textContent = text;
    toast.hidden = false;
    clearTimeout(fading);
    fading = setTimeout(() => (toast.hidden = true), TOAST_MS);
  };

  /** Asks for an API key after a 401, then repeats the refused request. */
  app.askForKey = (why, again) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true });
    const send = async (event) => {
      event.preventDefault();
      useKey(input.value);
      again();
      await app.findLayers();
    };
    const form = h("form.key", { onsubmit: send }, field(app.t("key"), input), h("button", {}, app.t("key.use")));
    app.notify(why, form);
  };

  let stroke = { number: 0, value: false };

  /**
   * Paints a cell of the mask "attend", or a range. The first cell decides whether the stroke shows or hides cells.
   * @param {{from: number, to: number, first: number, last: number}} [range] rows and columns, both ends included
   */
  app.paint = (row, col, isFirst, range = { from: row, to: row, first: col, last: col }) => {
    const { given, answer } = store.state,
      { view, run } = app.seen(),
      [, , qLen, kvLen] = answer.outputs.attention.shape;
    const isOpen = !hiddenIn(run, view, view.head)(row, col);
    if (isFirst) stroke = { number: stroke.number + 1, value: !isOpen };
    const before = given.request.masks?.attend;
    const isPlain = Array.isArray(before?.[0]) && before.length === qLen && typeof before[0][0] !== "object";
    const attend = isPlain
      ? before.slice()
      : Array.from({ length: qLen }, () => Array.from({ length: kvLen }, () => true));
    const isPainted = (line) => line.slice(range.first, range.last + 1).every((one) => Boolean(one) === stroke.value);
    if (isPlain && before.slice(range.from, range.to + 1).every(isPainted)) return;
    for (let i = range.from; i <= range.to; i++) attend[i] = attend[i].slice().fill(stroke.value, range.first, range.last + 1);
    store.edit(
      { ...given, id: "", request: { ...given.request, masks: { ...given.request.masks, attend } } },
      "paint" + stroke.number,
    );
  };

  /** Handles keys of the focused cell that do not move the focus. @returns {boolean} whether it was such a key */
  app.cellKey = (key, row, col, range) => {
    const { step, mode } = app.seen();
    const paints = (key === "m" || key === " ") && step.cols === "key",
      edits = (key === "Enter" || key === "F2") && step.path !== null;
    if (!paints && !edits) return false;
    if (mode !== "now") app.notify(app.t("kept.fixed"));
    else if (paints) app.paint(row, col, true, range);
    else app.editCell();
    return true;
  };

  app.copyText = async (text, done = "copied") => {
    try {
      await navigator.clipboard.writeText(text);
      app.toast(app.t(done));
      app.notify("");
    } catch {
      const area = h("textarea", { rows: 4, readonly: true, "aria-label": app.t("copy") });
      area.value = text;
      app.notify(app.t("copy.byHand"), area);
      area.select();
    }
  };
  app.share = () => shareState(app);
  /** What the open mode shows, to be saved as pictures. @returns {import("./panels/snapshot.js").Picture[]} */
  app.pictures = () => modes[store.state.view.mode].pictures?.() ?? [];
  /** Asks for what a copy of the open mode needs. */
  app.complete = async () => modes[store.state.view.mode].complete?.();

  // ---- the page --------------------------------------------------------------------------------------------------

  app.setLanguage = async (language) => {
    if (!(await fetchTexts(language))) app.notify(app.t("gone"));
    else {
      app.language = language;
      memory.set("language", language);
    }
    app.build();
    header.language.focus();
  };
  app.setTheme = (theme) => {
    app.theme = theme;
    memory.set("theme", theme);
    document.documentElement.dataset.theme = theme;
    app.update(store.state);
  };
  dark.addEventListener("change", () => app.update(store.state));

  const toMap = () => modes[store.state.view.mode].focus();
  /** The hash of the URL holds the state of the page, so this link must not change it. */
  const skip = (event) => {
    event.preventDefault();
    toMap();
  };
  keepFocus(holder, toMap);

  app.build = () => {
    document.documentElement.lang = app.language;
    useDecimalMark(app.t("decimal"));
    document.documentElement.dataset.theme = app.theme;
    document.title = "attnd · " + app.t("title");
    purpose.textContent = app.t("purpose");
    header = createHeader(app, header?.isOpen() ?? false);
    modes = Object.fromEntries(Object.entries(MODES).map(([id, create]) => [id, create(app)]));
    for (const old of document.querySelectorAll("header, .skip")) old.remove();
    foot.replaceChildren(...createFoot(app));
    document.body.prepend(h("a.skip", { href: "#main", onclick: skip }, app.t("skip")), header.element, main, foot, progress, toast, spoken);
    app.setAsking(app.isAsking);
    app.update(store.state);
  };

  /** What is dropped onto the debugger is compared, and never becomes a request. */
  app.useDropped = (file, text) => {
    const { useFile, useText } = modes[store.state.view.mode];
    if (file) useFile(file);
    else if (text) useText(text);
  };

  /** Sets aria-busy at once. CSS fades the map later, when the class "busy" is set. */
  app.setAsking = (isAsking) => {
    app.isAsking = isAsking;
    app.mainView?.element.setAttribute("aria-busy", String(isAsking));
  };

  app.update = (state) => {
    if (!header) return;
    const { view } = state,
      open = modes[view.mode];
    header.update(state);
    document.documentElement.dataset.drawn = app.appearance().isDark ? "dark" : "light"; // canvases keep it on paper
    if (holder.firstChild !== open.element) {
      holder.before(notice);
      holder.replaceChildren(open.element);
    }
    if (view.mode !== "story") delete document.documentElement.dataset.present;
    open.update(state);
  };
  return app;
}

/** Files and text can be dropped anywhere on the page. */
function listenForDrops(app) {
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files,
      text = event.dataTransfer.getData("text/plain");
    const { mode } = app.store.state.view;
    if (mode === "bug") app.useDropped(file, text);
    else if (file) app.openFile(file);
    else if (text) app.openText(text);
  });
}

/** Text fields have an undo of their own. */
const isField = (element) => element instanceof Element && element.matches("textarea, form input");

function listenForKeys(store) {
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || isField(event.target)) return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    if (key === "y" || event.shiftKey) store.redo();
    else store.undo();
  });
}

async function start() {
  const language = languageFrom(memory.get("language") ?? navigator.language);
  const texts = fetchTexts(language);
  const { given, view, baselineCase, expected, lesson, problem } = await initialState();
  const store = new Store({
    given,
    shown: given,
    answer: null,
    check: null,
    baseline: null,
    expected,
    lesson,
    isBusy: false,
    isRefused: false,
    view,
  });
  const app = createApp(store, language);
  computeOnChange(store, app); // the server works while the page is built
  if (!(await texts)) app.language = ownLanguage();
  app.build();
  if (problem) app.cannotUse(problem);
  listenForDrops(app);
  listenForKeys(store);
  if (baselineCase) await app.computeBaseline({ baselineCase, view }).catch(app.cannotUse);
  keepHistory(store, app);
  await app.findLayers();
}

start();
