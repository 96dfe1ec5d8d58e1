/**
 * differences.js: compares expected values with those of a run, step by step, in the order of the steps.
 *
 * @typedef {{rtol: number, atol: number}} Tolerance a cell agrees where |own − expected| ≤ atol + rtol · |expected|
 * @typedef {{name: string, tensor: import("../request/tensor.js").Tensor, digits: number, step: string,
 *            isNamed?: boolean, isChosen?: boolean, view: {batch: number, head: number}}} Expected values of a step, or of the part in view
 * @typedef {object} Line
 * @property {Expected} given
 * @property {import("../request/steps.js").Step} step
 * @property {number} absolute largest difference
 * @property {number} relative largest difference relative to the expected value, among those that atol does not accept
 * @property {number} count of compared cells
 * @property {number} outside number of cells outside the tolerance
 * @property {number} index of the worst cell in the run's tensor: the one farthest beyond its tolerance
 * @property {number} own
 * @property {number} expected
 */
import { groupSize, stepsIn, tensorIn } from "../request/steps.js";
import { placingOf } from "./matching.js";

export const DEFAULT_TOLERANCE = { rtol: 1e-3, atol: 1e-5 };

/** Other programs write a masked score as a large negative number. */
const MASKED_BELOW = -9000;

/** The server writes −∞ for scores of keys that no query may see. */
const isUnread = (id, own, expected) => (id === "scores" || id === "scaled") && (own === -Infinity || expected === -Infinity);

/** @returns {number} the absolute difference; Infinity if only one of them is a number */
export function apart(id, own, expected) {
  if (own === expected || (Number.isNaN(own) && Number.isNaN(expected)) || isUnread(id, own, expected)) return 0;
  if (own === -Infinity && expected < MASKED_BELOW) return 0;
  const size = Math.abs(own - expected);
  return Number.isNaN(size) ? Infinity : size;
}

/** Largest difference that rounding for print can make. */
export const roundingOf = ({ digits }) => (digits === 0 ? 0 : 0.5001 * 10 ** -digits);

/** @param {Expected} given @returns {Line | null} null: the run has no such step in this shape */
function lineFor(given, run, { rtol, atol }) {
  const step = stepsIn(run).find(({ id }) => id === given.step),
    placing = step && placingOf(given, step, run, given.view);
  if (!placing) return null;
  const own = tensorIn(step, run).data,
    wanted = given.tensor.data,
    rounding = roundingOf(given);
  const line = { given, step, absolute: 0, relative: 0, count: placing.count, outside: 0, index: placing.at(0), own: own[placing.at(0)], expected: wanted[0] };
  let most = -Infinity;
  for (let n = 0; n < placing.count; n++) {
    const index = placing.at(n),
      size = apart(step.id, own[index], wanted[n]);
    if (size > atol + rounding) line.relative = Math.max(line.relative, size === Infinity ? size : size / Math.abs(wanted[n]));
    const beyond = size === Infinity ? size : size - (atol + rounding + rtol * Math.abs(wanted[n]));
    if (beyond > 0) line.outside++;
    line.absolute = Math.max(line.absolute, size);
    if (size === 0 || beyond <= most) continue;
    most = beyond;
    Object.assign(line, { index, own: own[index], expected: wanted[n] });
  }
  return line;
}

/**
 * @param {Expected[]} values
 * @param {{given: any, answer: any}} run
 * @param {Tolerance} tolerance
 * @returns {Line[]}
 */
export function linesFor(values, run, tolerance) {
  const order = stepsIn(run).map(({ id }) => id);
  return values
    .map((given) => lineFor(given, run, tolerance))
    .filter(Boolean)
    .sort((a, b) => order.indexOf(a.step.id) - order.indexOf(b.step.id));
}

/** Row, column, head and batch item of a cell. */
export function cellAt({ step, index }, run) {
  const { shape } = tensorIn(step, run),
    cols = shape.at(-1) ?? 1,
    rows = shape.length > 1 ? shape.at(-2) : 1;
  const lead = Math.floor(index / (rows * cols)),
    isWeight = step.path?.[0] === "weights";
  const heads = shape.length === 4 ? shape[1] : isWeight ? Infinity : 1;
  const head = (lead % heads) * (step.perHead === "kv" ? groupSize(run.answer.outputs) : 1);
  return { row: Math.floor(index / cols) % rows, col: index % cols, head, batch: Math.floor(lead / heads) || 0, hasHead: heads > 1 };
}
