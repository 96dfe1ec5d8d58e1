/**
 * predictions.js: predictions of the model at one token, after the last and after each layer, as the model is and as it is
 * changed.
 */
import { bdi, h } from "../dom.js";
import { curlOf } from "../panels/export_formats.js";
import { fixed } from "../request/tensor.js";
import { pathOfModel } from "./case.js";
import { wordsOfChanges } from "./changes.js";
import { unended } from "./measured.js";
import { createScores } from "./scores.js";
import { tableOf, wordCell } from "./table.js";
import { bestOf, bodyAt, canClassify, canPredict, classesAt, movesOf, PASSED_MS, predictionsAt } from "./textrun.js";

/** Heads that are listed as moving a label. */
const MOVES_SHOWN = 6;
/** Of a model with more labels, the likeliest stand alone. */
const LABELS_SHOWN = 12;

/** Places of the likeliest labels. */
const largest = (all) => Array.from(all.keys()).sort((one, other) => all[other].value - all[one].value).slice(0, LABELS_SHOWN);

/** Most words that are shown as buttons. */
const WORDS_SHOWN = 40;

export function percent(probability) {
  if (probability > 0 && probability < 0.0005) return `< ${fixed(0.1, 1)} %`;
  return `${fixed(100 * probability, probability < 0.0995 || (probability > 0.9 && probability < 0.9995) ? 1 : 0)} %`;
}

/** @param {import("../main.js").App} app @param {{change: (patch: object) => void, told: (sentence: string) => void}} hooks told: what changes do */
export function createPredictions(app, { change, told }) {
  const { t } = app,
    words = h("div.words.rare", { role: "group", "aria-label": t("models.at") }),
    body = h("div.guesses", {}),
    copy = h("button.link.rare", { type: "button", onclick: () => app.copyText(curlOf(pathOfModel(drawn[0].facts.name), bodyAt(drawn[0], drawn[2]))) }, t("models.copy")),
    scores = createScores(app, change),
    element = h("section.guess", {}, h("h2", {}, t("models.predictions")), words, body, copy, scores.element);
  let drawn = [],
    wanted = null;

  function makeWords({ queries }, row) {
    const from = Math.max(0, Math.min(row - WORDS_SHOWN / 2, queries.length - WORDS_SHOWN));
    words.replaceChildren(
      ...queries.slice(from, from + WORDS_SHOWN).map((word, at) =>
        h("button", { type: "button", "aria-pressed": String(from + at === row), onclick: () => change({ row: from + at }) }, bdi(word)),
      ),
    );
  }

  const bar = ({ probability, value }) => {
    if (Number.isNaN(probability)) return fixed(value, 3);
    const part = h("i", {});
    part.style.width = 100 * probability + "%";
    return h("span.bar-of", {}, h("span", { "aria-hidden": "true" }, part), percent(probability));
  };

  function lastOf(before, after, name) {
    const line = (prediction, at) =>
      h(
        "tr",
        {},
        wordCell(prediction.word),
        h("td", {}, bar(prediction)),
        after?.last[at] && [h("th", {}, bdi(after.last[at].word)), h("td", {}, bar(after.last[at]))],
      );
    const measure = t(Number.isNaN(before.last[0]?.probability) ? "models.number" : "models.probability");
    const head = [t(before.last[0]?.value === undefined ? "models.word" : "models.label"), measure, ...(after ? [t("models.after"), measure] : [])];
    return tableOf(name, head, before.last.length > LABELS_SHOWN ? largest(before.last).map((at) => line(before.last[at], at)) : before.last.map(line));
  }

  function lensOf(before, after) {
    const cell = ([best]) => h("td", {}, bdi(best.word), h("small", {}, " ", percent(best.probability)));
    const lines = before.layers.map((predictions, layer) =>
      h("tr", {}, h("th", { scope: "row" }, String(layer)), cell(predictions), after && cell(after.layers[layer])),
    );
    return tableOf(t("models.lens"), [t("models.layer"), t("models.word"), ...(after ? [t("models.after")] : [])], lines);
  }

  /** The heads without which the label changes most, the largest change in a sentence, and the request that has it. */
  function movedBy(run, before, moves) {
    const [{ layer, head, change }] = moves,
      { word, probability, value } = before,
      after = { word, probability: probability + change, value: value + change },
      body = () => bodyAt({ ...run, changes: { ...run.changes, ablate: [...run.changes.ablate, [layer, head]] } }, 0);
    return [
      h("p.said", {}, t("models.movesSaid", { head: t("models.headAt", { layer, head }), word, size: sizeOf(after), past: sizeOf(before) })),
      tableOf(t("models.moves", { word }), [t("models.head"), t("models.change")], moves.slice(0, MOVES_SHOWN).map(lineOfMove)),
      h("button.link", { type: "button", onclick: () => app.copyText(curlOf(pathOfModel(run.facts.name), body())) }, t("models.copy")),
    ];
  }

  const lineOfMove = ({ layer, head, change }) =>
    h("tr", {}, h("th", { scope: "row" }, t("models.headAt", { layer, head })), h("td", {}, `${change > 0 ? "+" : "−"}${fixed(Math.abs(change), 4)}`));

  /** Which heads move the best label: asked for by a button, because it takes a request per head. */
  function movesFor(run, row, best, mine) {
    const { word } = best,
      ask = h("button", { type: "button", onclick: () => list() }, t("models.moves", { word })),
      part = h("div.moves", {}, ask);
    async function list() {
      ask.disabled = true;
      try {
        const moves = await movesOf(run, row, (done, of) => {
          ask.textContent = t("models.moving", { done, of });
          return wanted === mine;
        });
        if (wanted !== mine) return;
        part.replaceChildren(...movedBy(run, best, moves));
        app.say(unended(part.firstChild.textContent), "question");
      } catch (problem) {
        if (wanted === mine) part.replaceChildren(h("p.note", {}, app.wordsOf(problem)));
      }
    }
    return part;
  }

  /** @param {import("./textrun.js").Prediction} prediction */
  const sizeOf = ({ probability, value }) => (Number.isNaN(probability) ? fixed(value, 3) : percent(probability));

  function tell(sentence) {
    told(sentence);
    app.say(unended(sentence), "prediction");
  }

  /** One sentence: what the changes do to the best prediction. */
  function effectOf(run, row, before, after) {
    const values = { changes: wordsOfChanges(t, run), token: run.queries[row], word: after.word, size: sizeOf(after), before: before.word, past: sizeOf(before) };
    return t(canClassify(run) ? "models.nowClass" : "models.nowAt", values);
  }

  async function fill(run, base, row) {
    const mine = (wanted = [run, row]);
    body.setAttribute("aria-busy", "true");
    await new Promise((resolve) => setTimeout(resolve, PASSED_MS));
    if (wanted !== mine) return;
    try {
      const saidAt = canClassify(run) ? classesAt : predictionsAt;
      const [before, after] = await Promise.all([saidAt(base, row), run === base ? null : saidAt(run, row)]);
      if (wanted !== mine) return;
      const name = canClassify(run)
        ? t("models.classes")
        : t(run.facts.kind === "encoder" ? "models.itself" : "models.next", { word: run.queries[row] });
      const { last } = after ?? before,
        best = last[bestOf(last)];
      body.replaceChildren(
        lastOf(before, after, name),
        before.layers.length > 0 ? lensOf(before, after) : "",
        canClassify(run) && run.facts.kind !== "encoder-decoder" && best?.value !== undefined ? movesFor(run, row, best, mine) : "",
      );
      if (!best) return;
      if (after) tell(effectOf(run, row, before.last[bestOf(before.last)], best));
      else app.say(`${name}: “${best.word}”, ${sizeOf(best)}`, "prediction");
      app.retries.done(words);
    } catch (problem) {
      if (wanted !== mine) return;
      told("");
      body.replaceChildren(h("p.note", {}, app.wordsOf(problem)));
      if (problem.key === "gone") app.retries.add(words, () => wanted === mine && fill(run, base, row));
    }
    if (wanted === mine) body.setAttribute("aria-busy", "false");
  }

  /**
   * @param {import("./textrun.js").TextRun} run
   * @param {import("./textrun.js").TextRun} base without changes
   * @param {import("./view_state.js").ViewState} viewState
   */
  function update(run, base, viewState) {
    const { row } = viewState,
      key = [run, base, row];
    element.hidden = !run.facts; // a file of maps predicts nothing
    scores.update(run, base, viewState);
    if (key.every((part, at) => part === drawn[at])) return;
    drawn = key;
    app.retries.cancel(words);
    wanted = null;
    makeWords(run, row);
    body.setAttribute("aria-busy", "false");
    if (run === base) told("");
    copy.hidden = !canPredict(run) && !canClassify(run);
    if (canPredict(run) || canClassify(run)) {
      fill(run, base, row);
      return;
    }
    if (run !== base) tell(t("models.nowMaps", { changes: wordsOfChanges(t, run) }));
    body.replaceChildren(h("p.note", {}, t("models.noPredictions")));
  }
  return { element, update };
}
