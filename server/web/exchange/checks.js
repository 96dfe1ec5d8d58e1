/**
 * checks.js: compares the numbers of the server with those of reference.js.
 */
import { largestDifference, modelOf, rowOf } from "../request/reference.js";
import { Masks } from "../request/masks.js";
import { mapCells, shapeOf } from "./api.js";
import { LAYER } from "../request/presets.js";
import { countOf } from "../request/tensor.js";

/** Above this many cells, a sample of rows is checked. */
const SAMPLED_FROM = 1 << 17;
const SAMPLED_ROWS = 8;

/** Above this many multiplications, the check starts after the map is drawn. */
const QUICK = 1e7;

/** @returns {boolean} whether the check is too fast to be noticed */
export function isQuickToCheck({ request }) {
  const query = shapeOf(request.inputs.query),
    weights = Object.values(request.weights ?? {}).map((one) => (one?.weight ? countOf(shapeOf(one.weight)) : 0));
  return countOf(query.slice(0, -1)) * weights.reduce((sum, count) => sum + count, 0) <= QUICK;
}

/** The server writes −∞ for scores of keys that no query may see; this reference has their number. */
function aligned(name, given, own) {
  if (name !== "scores" && name !== "scaled") return own;
  return { shape: own.shape, data: own.data.map((value, at) => (given.data[at] === -Infinity ? -Infinity : value)) };
}

function compareAll(outputs, model) {
  let worst = { name: "", difference: 0 };
  const compared = [];
  for (const [name, given] of Object.entries(outputs)) {
    const own = model.steps[name];
    if (!own || own.data.length !== given.data.length) continue;
    compared.push(name);
    const { difference } = largestDifference(given, aligned(name, given, own));
    if (!(difference <= worst.difference)) worst = { name, difference };
  }
  return { worst, compared };
}

/** Smallest and largest sum of the rows that have a key, and the number of the others. */
export function rowSums({ shape, data }) {
  const cols = shape.at(-1);
  let least = Infinity,
    most = -Infinity,
    empty = 0;
  for (let from = 0; from < data.length; from += cols) {
    let sum = 0;
    for (let j = 0; j < cols; j++) sum += data[from + j];
    if (sum === 0) {
      empty++;
      continue;
    }
    least = Math.min(least, sum);
    most = Math.max(most, sum);
  }
  return { least, most, empty };
}

function compareRows(attention, model, onlyHead) {
  const [, heads, qLen, kvLen] = attention.shape,
    worst = { name: "attention", difference: 0 };
  for (let n = 0; n < SAMPLED_ROWS; n++) {
    const i = Math.round((n * (qLen - 1)) / (SAMPLED_ROWS - 1)),
      h = n % heads;
    const own = rowOf(model, 0, onlyHead ?? h, i),
      at = (h * qLen + i) * kvLen;
    const { difference } = largestDifference({ data: attention.data.subarray(at, at + kvLen) }, { data: own.weights });
    worst.difference = Math.max(worst.difference, difference);
  }
  return { worst, compared: ["attention"] };
}

/**
 * @param {{given: import("../request/presets.js").Case, answer: import("./api.js").Answer}} run
 * @returns {{model: object | null, masks: Masks | null, worst: object | null, compared: string[], sums: object | null,
 *            unknown: string[], isSampled: boolean, failed: Error | null}}
 */
export function checkRun({ given, answer }) {
  const { outputs } = answer;
  /** @type {any} */
  const result = { model: null, masks: null, worst: null, compared: [], unknown: [], failed: null };
  result.isSampled = mapCells(given) > SAMPLED_FROM;
  result.sums = outputs.attention ? rowSums(outputs.attention) : null;
  try {
    const model = modelOf(given.request, given.endpoint === LAYER, outputs, result.isSampled);
    result.model = model;
    result.masks = model.masks;
    result.unknown = model.unknown;
    const found = result.isSampled
      ? outputs.attention && compareRows(outputs.attention, model, answer.onlyHead)
      : compareAll(outputs, model);
    Object.assign(result, found);
  } catch (problem) {
    result.failed = problem;
  }
  return result;
}
