/**
 * diagnosis.js: finds the common mistakes that explain why expected values differ from a run.
 *
 * A mistake is reported only if it explains most of the difference. Pairs of mistakes are tried where no single one does.
 * Several causes are reported if the values cannot tell them apart.
 *
 * @typedef {{parts: {id: string, of: string}[], left: number, before: number}} Cause parts: mistakes made at once;
 *          left and before: largest difference with and without them
 */
import { isQuickToCheck } from "../exchange/checks.js";
import { mapCells } from "../exchange/api.js";
import { tensorIn } from "../request/steps.js";
import { apart, roundingOf } from "./differences.js";
import { placingOf } from "./matching.js";
import { Case, commonIn, mistakesFor, pairsOf } from "./mistakes.js";

/** A cause leaves at most this share of the difference, and at most the square of this share of the values. */
const CLEARLY = 0.1;

/** The same for rounding, which depends on the order of additions and so differs between implementations. */
const CLEARLY_ROUNDED = 0.35;

/** The same for pairs: there are many of them, and one may fit by chance. */
const CLEARLY_PAIRED = 0.03;

/** Causes are as good as the best if they leave at most so much more than it: this share of it, or this part of the values. */
const ALIKE = 0.1,
  ALIKE_PART = 1e-6;

const CELLS_MOST = 1 << 17;

/** Pairs are tried for so long, in milliseconds, and the page is drawn after each of the shorter times. */
const PAIRS_MS = 8000,
  PAUSE_MS = 12;

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

/** @param {import("./mistakes.js").Mistake[]} mistakes */
const shareOf = (mistakes) => (mistakes.length > 1 ? CLEARLY_PAIRED : mistakes[0].round ? CLEARLY_ROUNDED : CLEARLY);

const pause = () => new Promise((resolve) => setTimeout(resolve));

/** Expected weights of all heads, in the order of the run. */
function weightsIn(lines, run) {
  const line = lines.find(({ step }) => step.id === "attention");
  if (!line) return null;
  const { data } = tensorIn(line.step, run),
    placing = placingOf(line.given, line.step, run, line.given.view);
  if (placing.count !== data.length) return null;
  const found = new Float64Array(data.length);
  for (let n = 0; n < placing.count; n++) found[placing.at(n)] = line.given.tensor.data[n];
  return found;
}

/** Causes without those that say more than the values show: all weights where two are enough, or a mask beside its name. */
function distinct(causes) {
  const isSame = (a, b) => a.length === b.length && a.every(({ id, of }, n) => id === b[n].id && (of.includes(b[n].of) || b[n].of.includes(of)));
  return causes.filter(({ parts }, n) => !causes.slice(0, n).some((before) => isSame(before.parts, parts)));
}

/**
 * @param {import("./differences.js").Line[]} lines
 * @param {{given: any, answer: any}} run
 * @param {() => boolean} isOld whether the result is no longer needed
 * @returns {Promise<Cause[] | null>} none, one, or several that the values cannot tell apart; null: not looked for
 */
export async function causesOf(lines, run, isOld = () => false) {
  const { given, answer } = run,
    computed = lines.filter(({ step }) => !step.path);
  const isLarge = !isQuickToCheck(given) || mapCells(given) > CELLS_MOST;
  if (computed.every(({ outside }) => outside === 0)) return [];
  if (isLarge || answer.onlyHead !== undefined) return null;
  const one = new Case(given, answer.outputs);
  if (one.model.unknown.length > 0) return null;
  const before = residualOf(one.make([]), computed, run),
    mistakes = mistakesFor(one, weightsIn(computed, run));
  let drawn = performance.now();

  /** Those of the candidates that explain the difference, and explain it best. */
  async function best(candidates, ends = Infinity) {
    let found = [];
    for (const some of candidates) {
      if (performance.now() > drawn + PAUSE_MS) {
        await pause();
        drawn = performance.now();
        if (isOld() || drawn > ends) break;
      }
      const { part, most } = residualOf(one.make(some), computed, run);
      if (part > shareOf(some) * Math.min(before.part, CLEARLY)) continue;
      found.push({ part, parts: some.map(({ id, of = "" }) => ({ id, of })), left: most, before: before.most });
    }
    const least = Math.min(...found.map(({ part }) => part));
    found = found.filter(({ part }) => part <= (1 + ALIKE) * least + ALIKE_PART);
    return distinct(found.map(({ part, ...cause }) => cause));
  }

  const single = await best(mistakes.map((mistake) => [mistake]));
  return isOld() || single.length > 0 ? single : best(pairsOf(mistakes), performance.now() + PAIRS_MS);
}

/** The output of a run with one of its common mistakes, to try. @param {{given: any, answer: any}} run */
export function outputWithMistake({ given, answer }) {
  const one = new Case(given, answer.outputs),
    mistakes = commonIn(mistakesFor(one, null)),
    mistake = mistakes[Math.floor(Math.random() * mistakes.length)];
  return { shape: answer.outputs.output.shape, data: one.make([mistake]).steps.output.data };
}
