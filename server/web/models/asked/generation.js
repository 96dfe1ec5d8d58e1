/**
 * generation.js: new tokens: the model appends the most probable token, one at each press. Maps, predictions and measures are then those
 * of the longer text.
 */
import { bdi, h } from "../../dom.js";
import { isChanged } from "../changes.js";
import { plain } from "../measured.js";
import { canGenerate } from "../textrun.js";

/** @param {import("../../main.js").App} app @param {(patch: object) => void} change */
export function createGeneration(app, change) {
  const { t } = app;
  let newTokens = 0,
    hasEnded = false,
    isFull = false;
  const to = (count) => change({ newTokens: count, row: -1, question: "generated" });
  const add = () => !hasEnded && !isFull && to(newTokens + 1);
  const next = h("button", { type: "button", onclick: add }, t("models.nextToken")),
    back = h("button", { type: "button", onclick: () => to(newTokens - 1) }, t("models.lastToken")),
    none = h("button", { type: "button", onclick: () => to(0) }, t("models.noTokens")),
    full = h("p.note", { hidden: true });

  /** The tokens of what grows, with the new ones. @param {import("../textrun.js").TextRun} run */
  const lengthOf = ({ facts, inputs, ids, generated }) =>
    (facts.kind === "encoder-decoder" ? inputs.target_ids ?? [] : ids).length - (generated?.ids[0].length ?? 0) + newTokens;

  /** @param {import("./questions.js").Seen} seen */
  function update({ run, viewState, other = run }) {
    newTokens = viewState.newTokens;
    hasEnded = newTokens > 0 && run.generated?.ended_by[0] === "end";
    isFull = run.facts !== null && [run, other].some((one) => lengthOf(one) >= (one.facts.longest ?? Infinity));
    next.disabled = hasEnded || isFull;
    full.hidden = !isFull;
    full.textContent = t("models.full", { most: run.facts?.longest });
    back.disabled = none.disabled = newTokens === 0;
  }

  /** @param {import("./questions.js").Seen} seen @returns {Promise<import("./questions.js").Answered>} */
  async function answer({ run }) {
    const [ids] = run.generated?.ids ?? [[]],
      words = ids.length > 0 ? run.queries.slice(-ids.length) : [],
      text = plain(run.generated?.text?.[0] ?? ids.join(" ")),
      model = t(isChanged(run.changes) ? "models.newBy.unchanged" : "models.newBy");
    return {
      sentence: ids.length === 0 ? "" : t(hasEnded ? "models.newEnded" : "models.newSaid", { model, text }),
      content: ids.length === 0 ? [] : [h("p.words", {}, words.map((word) => h("span.token", {}, bdi(word))))],
      body: { inputs: run.given, options: { new_tokens: Math.max(1, ids.length), return: ["generated"] } },
    };
  }
  return { id: "generated", isFor: ({ facts }) => facts !== null && canGenerate(facts), controls: [next, back, none, full], update, answer, add };
}
