/**
 * diagnosis.js: finds the common mistake that explains why expected values differ from a run.
 *
 * A mistake is reported only if it explains most of the difference.
 *
 * @typedef {{id: string, of: string, left: number, before: number}} Cause left and before: largest difference with and without it
 */
import { isQuickToCheck } from "../exchange/checks.js";
import { mapCells } from "../exchange/api.js";
import { modelOf } from "../request/reference.js";
import { LAYER } from "../request/presets.js";
import { tensorIn } from "../request/steps.js";
import { apart, roundingOf } from "./differences.js";
import { placingOf } from "./matching.js";
import { mistakesFor } from "./mistakes.js";

/** A cause leaves at most this share of the difference, and at most the square of this share of the values. */
const CLEARLY = 0.1;

/** The same for rounding, which depends on the order of additions and so differs between implementations. */
const CLEARLY_ROUNDED = 0.35;

const CELLS_MOST = 1 << 17;

/** @returns {{part: number, most: number}} root mean square relative to the expected values, and largest difference */
function residualOf(model, lines, run) {
  let part = 0,
    most = 0;
  for (const { given, step } of lines) {
    const own = model.steps[step.id],
      placing = placingOf(given, step, run, given.view);
    if (!own || own.data.length !== tensorIn(step, run).data.length) return { part: Infinity, most: Infinity };
    let between = 0,
      size = 0;
    given.tensor.data.forEach((expected, n) => {
      const here = apart(step.id, own.data[placing.at(n)], expected);
      most = Math.max(most, here);
      between += Math.max(0, here - roundingOf(given)) ** 2;
      if (here - here === 0 && Number.isFinite(own.data[placing.at(n)])) size += expected * expected;
    });
    part = Math.max(part, Math.sqrt(between / (size || 1)));
  }
  return { part, most };
}

const isRounding = (id) => id.endsWith("float16");

const pause = () => new Promise((resolve) => setTimeout(resolve));

/**
 * @param {import("./differences.js").Line[]} lines
 * @param {{given: any, answer: any}} run
 * @param {() => boolean} isOld whether the result is no longer needed
 * @returns {Promise<Cause | null>}
 */
export async function causeOf(lines, run, isOld = () => false) {
  const { given, answer } = run,
    computed = lines.filter(({ step }) => !step.path);
  const isLarge = !isQuickToCheck(given) || mapCells(given) > CELLS_MOST;
  if (isLarge || answer.onlyHead !== undefined || computed.every(({ outside }) => outside === 0)) return null;
  const before = residualOf(modelOf(given.request, given.endpoint === LAYER, answer.outputs), computed, run);
  let best = null,
    least = Infinity;
  for (const { id, of = "", make } of mistakesFor(given, answer.outputs)) {
    await pause();
    if (isOld()) return null;
    const { part, most } = residualOf(make(), computed, run);
    const isClear = part <= (isRounding(id) ? CLEARLY_ROUNDED : CLEARLY) * Math.min(before.part, CLEARLY);
    if (!isClear || part >= least) continue;
    best = { id, of, left: most, before: before.most };
    least = part;
  }
  return best;
}
