/**
 * runs.js: which run is shown: B, which the panel changes; A, which was kept; or their difference.
 *
 * All that describes a run (map, table, sidebar, exports) takes it from here, so that the page never mixes the numbers
 * of one run with the mask of the other.
 *
 * @typedef {{given: import("./presets.js").Case, answer: import("../exchange/api.js").Answer, check: object | null}} Run
 * @typedef {object} Seen
 * @property {"now" | "kept" | "difference"} mode
 * @property {string} name "A", "B" or "B − A"; "" without a run A
 * @property {Run} run A if only A is shown, else B
 * @property {Run | null} before A if the difference is shown
 * @property {import("./steps.js").Step} step
 * @property {object} view with a head and a batch item of the run
 */
import { Masks } from "./masks.js";
import { matrixIn, stepsIn, tensorIn } from "./steps.js";
import { matrixOf } from "./tensor.js";

const mapsOf = ({ outputs, thumbs }) => thumbs ?? outputs.attention;

/** A large run has only one head, whichever is selected. */
function viewOf({ answer }, view) {
  const [batches, heads] = mapsOf(answer)?.shape ?? [Infinity, Infinity];
  const head = answer.onlyHead ?? Math.min(view.head, heads - 1),
    batch = Math.min(view.batch, batches - 1),
    isChosen = view.row >= 0 && view.col >= 0,
    { attention } = answer.outputs;
  const cell = isChosen || !attention ? { row: Math.max(0, view.row), col: Math.max(0, view.col) } : cellWorth(matrixOf(attention, batch, head));
  return { ...view, head, batch, ...cell };
}

/** Of a map with more cells, a sample of rows is used. */
const CELLS_SEEN = 1 << 20;

const worthCells = new WeakMap();

/** The most telling weight: the largest one relative to an equal share of its row, except on the diagonal. */
function cellWorth(map) {
  if (!worthCells.has(map)) worthCells.set(map, findCellWorth(map));
  return worthCells.get(map);
}

function findCellWorth({ rows, cols, data }) {
  let found = { row: 0, col: 0 },
    most = 0;
  const step = Math.ceil((rows * cols) / CELLS_SEEN);
  for (let row = 0; row < rows; row += step) {
    const weights = data.subarray(row * cols, (row + 1) * cols),
      keys = weights.reduce((count, weight) => count + Number(weight > 0), 0);
    weights.forEach((weight, col) => {
      if (weight * keys <= most || col === row + cols - rows) return;
      most = weight * keys;
      found = { row, col };
    });
  }
  return found;
}

function stepOf(run, view) {
  const steps = stepsIn(run);
  return steps.find(({ id }) => id === view.step) ?? steps.find(({ id }) => id === "attention") ?? steps[0];
}

/** Whether B − A is defined: both have the step, in one shape, and for one head. */
function isComparable(now, baseline, step) {
  if (now.answer.onlyHead !== baseline.answer.onlyHead || !stepsIn(baseline).some(({ id }) => id === step.id)) return false;
  return String(tensorIn(step, now).shape) === String(tensorIn(step, baseline).shape);
}

/** @param {any} state of the store, with an answer @returns {Seen & {canSubtract: boolean}} */
export function seenIn({ shown, answer, check, baseline, view }) {
  const now = { given: shown, answer, check },
    run = baseline && view.compare === "kept" ? baseline : now;
  const step = stepOf(run, view),
    canSubtract = baseline !== null && step !== undefined && isComparable(now, baseline, step);
  const mode = run === baseline ? "kept" : canSubtract && view.compare === "difference" ? "difference" : "now";
  const name = baseline === null ? "" : { now: "B", kept: "A", difference: "B − A" }[mode];
  return { mode, name, run, before: mode === "difference" ? baseline : null, step, view: viewOf(run, view), canSubtract };
}

const differences = new WeakMap();

/** NaN if one of the two is not finite, such as a masked score. */
function differenceOf(now, baseline) {
  if (differences.get(now)?.baseline !== baseline) {
    const data = now.data.map((value, at) => {
      const difference = value - baseline.data[at];
      return difference - difference === 0 ? difference : NaN;
    });
    differences.set(now, { baseline, tensor: { shape: now.shape, data } });
  }
  return differences.get(now).tensor;
}

/** @param {Seen} seen @returns {import("./tensor.js").Tensor} the step for all heads and batch items */
export function tensorSeen({ run, before, step }) {
  return before ? differenceOf(tensorIn(step, run), tensorIn(step, before)) : tensorIn(step, run);
}

/** @param {Seen} seen */
export const matrixSeen = (seen) => matrixIn(seen.step, seen.run, seen.view, tensorSeen(seen));

/** Masks are made once per answer, because thousands of cells ask for them. */
const rules = new WeakMap();

/**
 * Whether a mask hides a key from a query: by the mask of the answer, else by the request.
 * @returns {(i: number, j: number) => boolean}
 */
export function hiddenIn({ given, answer }, { batch }, head) {
  const { mask, attention, scores } = answer.outputs,
    [, , qLen, kvLen] = (mask ?? attention ?? scores)?.shape ?? [1, 1, 1, 1];
  if (!rules.has(answer)) rules.set(answer, { masks: new Masks(given.request.masks ?? {}, qLen, kvLen), by: new Map() });
  const { masks, by } = rules.get(answer),
    key = `${batch}/${head}`;
  if (!by.has(key)) {
    const said = mask && matrixOf(mask, batch, head).data;
    by.set(key, said ? (i, j) => said[i * kvLen + j] === 0 : (i, j) => masks.hiddenBy(batch, head, i, j) !== null);
  }
  return by.get(key);
}

/** The same for the shown step. In a difference, a weight is hidden only if both runs hide it. */
export function hiddenSeen({ run, before, step, view }, matrix) {
  if (step.isWeight) {
    const now = hiddenIn(run, view, view.head),
      baseline = before && hiddenIn(before, view, view.head);
    return baseline ? (i, j) => now(i, j) && baseline(i, j) : now;
  }
  const gap = before ? Number.isNaN : (value) => value === -Infinity;
  return (i, j) => gap(matrix.data[i * matrix.cols + j]);
}
