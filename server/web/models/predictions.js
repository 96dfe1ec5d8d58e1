/**
 * predictions.js: predictions of the model at one token, after the last and after each layer, with all heads, and without
 * those that are switched off.
 */
import { bdi, h } from "../dom.js";
import { fixed } from "../request/tensor.js";
import { canPredict, predictionsAt } from "./textrun.js";

/** Delay of a request, so that tokens passed over by the arrow keys cost none. */
const PASSED_MS = 120;

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

  const bar = ({ probability }) => {
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
        after && [h("th", {}, bdi(after.last[at].word)), h("td", {}, bar(after.last[at]))],
      );
    const head = [t("models.word"), t("models.probability"), ...(after ? [t("models.without"), t("models.probability")] : [])];
    return table(name, head, before.last.map(line));
  }

  function lensOf(before, after) {
    const cell = ([best]) => h("td", {}, bdi(best.word), h("small", {}, " ", percent(best.probability)));
    const lines = before.layers.map((predictions, layer) =>
      h("tr", {}, h("th", { scope: "row" }, String(layer)), cell(predictions), after && cell(after.layers[layer])),
    );
    return table(t("models.lens"), [t("models.layer"), t("models.word"), ...(after ? [t("models.without")] : [])], lines);
  }

  async function fill(run, base, row) {
    const mine = (wanted = [run, row]);
    body.setAttribute("aria-busy", "true");
    await new Promise((resolve) => setTimeout(resolve, PASSED_MS));
    if (wanted !== mine) return;
    try {
      const [before, after] = await Promise.all([predictionsAt(base, row), run === base ? null : predictionsAt(run, row)]);
      if (wanted !== mine) return;
      const name = t(run.facts.kind === "encoder" ? "models.itself" : "models.next", { word: run.queries[row] });
      body.replaceChildren(lastOf(before, after, name), before.layers.length > 0 ? lensOf(before, after) : "");
      const [best] = (after ?? before).last;
      app.say(`${name}: “${best.word}”, ${percent(best.probability)}`, "prediction");
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
    if (canPredict(run)) fill(run, base, row);
    else body.replaceChildren(h("p.note", {}, t(run.facts ? "models.noPredictions" : "models.dumpOnly")));
  }
  return { element, update };
}
