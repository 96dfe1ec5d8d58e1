/**
 * attribution.js: what each head, each feed-forward network and the embedding add to the logit of a word.
 */
import { h } from "../../dom.js";
import { short } from "../../request/tensor.js";
import { measuredAt, plain, signed } from "../measured.js";
import { tableOf } from "../table.js";
import { answerAbout, bodyOf, canPredict } from "../textrun.js";

/** The largest parts that have a bar each. */
const PARTS_SHOWN = 12;

/** @param {import("../../main.js").App} app @returns {import("./questions.js").Question} */
export function createAttribution(app) {
  const { t } = app;
  /** The parts of the sum, the largest first. @returns {{name: string, value: number}[]} */
  function partsOf({ heads, cross_heads: cross = [], feed_forward: forward, embedding, bias }) {
    const valueOf = ([one, other = 0]) => Number(one) - Number(other);
    const ofHeads = (layers, key) =>
      layers.flatMap(([item], layer) => item.map(([words], head) => ({ name: t("models." + key, { layer, head }), value: valueOf(words) })));
    return [
      ...ofHeads(heads, "headAt"),
      ...ofHeads(cross, "crossAt"),
      ...forward.map(([[words]], layer) => ({ name: t("models.forwardAt", { layer }), value: valueOf(words) })),
      { name: t("models.embedding"), value: valueOf(embedding[0][0]) },
      { name: t("models.others"), value: valueOf(bias[0][0]) },
    ].sort((one, other) => Math.abs(other.value) - Math.abs(one.value));
  }

  function lineOf({ name, value }, largest) {
    const part = h("i", {});
    part.style.width = (100 * Math.abs(value)) / largest + "%";
    const bar = h(value < 0 ? "span.bar-of.minus" : "span.bar-of", {}, h("span", { "aria-hidden": "true" }, part), signed(short(value)));
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, bar));
  }

  const sumOf = (parts) => parts.reduce((sum, { value }) => sum + value, 0);

  /** @param {import("./questions.js").Seen} seen */
  async function answer({ run, viewState: { row, words } }, signal) {
    const measured = await measuredAt(run, row, words),
      body = bodyOf(run, { return: ["attribution"], words: measured.words, queries: [row], digits: 6 }),
      parts = partsOf((await answerAbout(run, body, signal)).outputs.attribution);
    const [most] = parts,
      rest = parts.slice(PARTS_SHOWN),
      largest = Math.abs(most.value) || 1,
      measure = t(measured.names.length > 1 ? "models.measured.two" : "models.measured.one", { word: measured.names[0], other: measured.names[1] ?? "" });
    const shown = [...parts.slice(0, PARTS_SHOWN), ...(rest.length > 0 ? [{ name: t("rest", { n: rest.length }), value: sumOf(rest) }] : [])];
    return {
      sentence: t("models.attributionSaid", { measure, token: plain(run.queries[row]), sum: short(sumOf(parts)), name: most.name, most: signed(short(most.value)) }),
      content: [h("div.moves", {}, tableOf(measure, [t("models.piece"), t("models.adds")], shown.map((part) => lineOf(part, largest))))],
      body,
    };
  }
  return { id: "attribution", isFor: (run) => canPredict(run) && run.facts.returns.includes("attribution"), controls: [], answer };
}
