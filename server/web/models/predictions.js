/**
 * predictions.js: predictions of the model at one token, after the last and after each layer, with all heads, and without
 * those that are switched off.
 */
import { bdi, h } from "../dom.js";
import { fixed } from "../request/tensor.js";
import { bestOf, canClassify, canPredict, classesAt, movesOf, predictionsAt } from "./textrun.js";

/** Delay of a request, so that tokens passed over by the arrow keys cost none. */
const PASSED_MS = 120;

/** Heads that are listed as moving a label. */
const MOVES_SHOWN = 6;
/** Of a model with more labels, the likeliest stand alone. */
const LABELS_SHOWN = 12;

/** Places of the likeliest labels. */
const largest = (all) => Array.from(all.keys()).sort((one, other) => all[other].value - all[one].value).slice(0, LABELS_SHOWN);

/** Most words that are shown as buttons. */
const WORDS_SHOWN = 40;

function percent(probability) {
  if (probability > 0 && probability < 0.0005) return `< ${fixed(0.1, 1)} %`;
  return `${fixed(100 * probability, probability < 0.0995 || (probability > 0.9 && probability < 0.9995) ? 1 : 0)} %`;
}

/** @param {import("../main.js").App} app @param {(row: number) => void} choose a token */
export function createPredictions(app, choose) {
  const { t } = app,
    words = h("div.words", { role: "group", "aria-label": t("models.at") }),
    body = h("div.guesses", {}),
    element = h("section.guess", {}, h("h2", {}, t("models.predictions")), words, body);
  let drawn = [],
    wanted = null;

  function makeWords({ queries }, row) {
    const from = Math.max(0, Math.min(row - WORDS_SHOWN / 2, queries.length - WORDS_SHOWN));
    words.replaceChildren(
      ...queries.slice(from, from + WORDS_SHOWN).map((word, at) =>
        h("button", { type: "button", "aria-pressed": String(from + at === row), onclick: () => choose(from + at) }, bdi(word)),
      ),
    );
  }

  const bar = ({ probability, value }) => {
    if (Number.isNaN(probability)) return fixed(value, 3);
    const part = h("i", {});
    part.style.width = 100 * probability + "%";
    return h("span.bar-of", {}, h("span", { "aria-hidden": "true" }, part), percent(probability));
  };

  const wordOf = (prediction) => h("th", { scope: "row" }, bdi(prediction.word));

  /** More than three columns compare two runs. */
  function table(name, head, lines) {
    return h(
      head.length > 3 ? "table.guess-table.twofold" : "table.guess-table",
      {},
      h("caption", {}, name),
      h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, lines),
    );
  }

  function lastOf(before, after, name) {
    const line = (prediction, at) =>
      h(
        "tr",
        {},
        wordOf(prediction),
        h("td", {}, bar(prediction)),
        after?.last[at] && [h("th", {}, bdi(after.last[at].word)), h("td", {}, bar(after.last[at]))],
      );
    const measure = t(Number.isNaN(before.last[0]?.probability) ? "models.number" : "models.probability");
    const head = [t(before.last[0]?.value === undefined ? "models.word" : "models.label"), measure, ...(after ? [t("models.without"), measure] : [])];
    return table(name, head, before.last.length > LABELS_SHOWN ? largest(before.last).map((at) => line(before.last[at], at)) : before.last.map(line));
  }

  function lensOf(before, after) {
    const cell = ([best]) => h("td", {}, bdi(best.word), h("small", {}, " ", percent(best.probability)));
    const lines = before.layers.map((predictions, layer) =>
      h("tr", {}, h("th", { scope: "row" }, String(layer)), cell(predictions), after && cell(after.layers[layer])),
    );
    return table(t("models.lens"), [t("models.layer"), t("models.word"), ...(after ? [t("models.without")] : [])], lines);
  }

  /** Which heads move the best label: asked for by a button, because it takes a request per head. */
  function movesFor(run, row, { word }, mine) {
    const ask = h("button", { type: "button", onclick: () => list() }, t("models.moves", { word })),
      part = h("div.moves", {}, ask);
    const line = ({ layer, head, change }) =>
      h("tr", {}, h("th", { scope: "row" }, t("models.headAt", { layer, head })), h("td", {}, `${change > 0 ? "+" : "−"}${fixed(Math.abs(change), 4)}`));
    async function list() {
      ask.disabled = true;
      try {
        const moves = await movesOf(run, row, (done, of) => {
          ask.textContent = t("models.moving", { done, of });
          return wanted === mine;
        });
        if (wanted === mine)
          part.replaceChildren(table(t("models.moves", { word }), [t("models.head"), t("models.change")], moves.slice(0, MOVES_SHOWN).map(line)));
      } catch (problem) {
        if (wanted === mine) part.replaceChildren(h("p.note", {}, app.wordsOf(problem)));
      }
    }
    return part;
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
      const isRegression = Number.isNaN(best.probability);
      app.say(`${name}: “${best.word}”, ${isRegression ? fixed(best.value, 3) : percent(best.probability)}`, "prediction");
      app.retries.done(words);
    } catch (problem) {
      if (wanted !== mine) return;
      body.replaceChildren(h("p.note", {}, app.wordsOf(problem)));
      if (problem.key === "gone") app.retries.add(words, () => wanted === mine && fill(run, base, row));
    }
    if (wanted === mine) body.setAttribute("aria-busy", "false");
  }

  /** @param {import("./textrun.js").TextRun} run @param {import("./textrun.js").TextRun} base with every head on */
  function update(run, base, row) {
    const key = [run, base, row];
    if (key.every((part, at) => part === drawn[at])) return;
    drawn = key;
    app.retries.cancel(words);
    wanted = null;
    makeWords(run, row);
    body.setAttribute("aria-busy", "false");
    if (canPredict(run) || canClassify(run)) fill(run, base, row);
    else body.replaceChildren(h("p.note", {}, t(run.facts ? "models.noPredictions" : "models.dumpOnly")));
  }
  return { element, update };
}
