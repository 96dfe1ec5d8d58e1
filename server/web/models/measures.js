/**
 * measures.js: numbers that describe heads, and maps that combine heads.
 *
 * docs/semantics.md has the equations. Scores that the server sent are used as they are.
 */
import { extentOf } from "../maps/colour.js";
import { headStats, over, withoutFirst } from "../maps/stats.js";
import { countOf, matrixOf } from "../request/tensor.js";
import { layerOf, rolloutOfServer } from "./textrun.js";

/** Columns of the grid after the heads. */
export const EXTRAS = ["mean", "max", "rollout"];

/** Above this many tokens, the page computes no rollout of its own. */
const ROLLOUT_TOKENS = 256;

/** @typedef {import("./textrun.js").TextRun} TextRun @typedef {import("../request/tensor.js").Matrix} Matrix */

function meanOver({ rows, cols, data }, valueOf) {
  let sum = 0,
    count = 0;
  for (let i = 0; i < rows; i++) {
    const value = valueOf(i, data.subarray(i * cols, (i + 1) * cols));
    if (Number.isNaN(value)) continue;
    sum += value;
    count++;
  }
  return count > 0 ? sum / count : NaN;
}

/** Sum of the weights of keys with the query's id, each shifted by shift positions; NaN if there are none. */
function onCopies(ids, shift) {
  return (i, row) => {
    let sum = NaN;
    for (let j = 0; j < row.length - shift; j++)
      if ((shift > 0 ? j < i : j !== i) && ids[j] === ids[i]) sum = (sum || 0) + row[j + shift];
    return sum;
  };
}

const OWN = {
  entropy: (run, map) => headStats(map).entropy,
  previous_token: (run, map) => meanOver(map, (i, row) => (i > 0 ? row[i - 1] : NaN)),
  first_token: (run, map) => meanOver(map, (_, row) => row[0]),
  same_token: (run, map) => meanOver(map, onCopies(run.ids, 0)),
  induction: (run, map) => meanOver(map, onCopies(run.ids, 1)),
};

/** A pooled map has blocks of tokens, so the distance is converted to tokens. */
function distanceOf(run, map) {
  const scale = run.keys.length / map.cols;
  return meanOver(map, (i, row) => {
    let sum = 0,
      total = 0;
    row.forEach((weight, j) => {
      sum += weight * Math.abs(i - j);
      total += weight;
    });
    return total > 0 ? (sum / total) * scale : NaN;
  });
}

const measured = new WeakMap();

/** @param {TextRun} run @param {string} name @returns {Float64Array} a number per layer and head; NaN: not defined */
export function measuresOf(run, name) {
  const made = measured.get(run) ?? measured.set(run, {}).get(run);
  made[name] ??= measureAll(run, name);
  return made[name];
}

function measureAll(run, name) {
  const said = run.scores[name];
  if (said) return Float64Array.from(said.data);
  const isSquare = run.queries.length === run.keys.length,
    measure = name === "distance" ? distanceOf : run.isExact ? OWN[name] : null;
  return Float64Array.from({ length: run.layers * run.heads }, (_, at) =>
    measure && (isSquare || name === "entropy" || name === "first_token")
      ? measure(run, matrixOf(run.maps, Math.floor(at / run.heads), at % run.heads))
      : NaN,
  );
}

/** Attention rollout: (0.5 A + 0.5 I) times the rollout before, A the mean of the heads (Abnar and Zuidema, 2020). */
function rolledOut(mean, before) {
  const { rows: n, data } = mean,
    out = new Float32Array(n * n);
  for (let i = 0; i < n; i++)
    for (let k = 0; k < n; k++) {
      const factor = 0.5 * data[i * n + k] + (i === k ? 0.5 : 0);
      if (factor === 0) continue;
      for (let j = 0; j < n; j++) out[i * n + j] += factor * (before ? before.data[k * n + j] : Number(k === j));
    }
  return { rows: n, cols: n, data: out };
}

const extrasMade = new WeakMap();

export const hasRollout = ({ part, queries, keys, facts, isExact }) =>
  part !== "cross_attention" &&
  queries.length === keys.length &&
  (isExact ? keys.length <= ROLLOUT_TOKENS : Boolean(facts?.returns.includes("rollout")));

/** @param {TextRun} run @param {string} name one of EXTRAS @returns {Matrix | Promise<Matrix>} for a layer */
export function extraOf(run, layer, name) {
  const made = extrasMade.get(run) ?? extrasMade.set(run, {}).get(run),
    key = `${name} ${layer}`;
  if (made[key]) return made[key];
  if (name === "rollout" && !run.isExact) return rolloutOfServer(run, layer);
  const layerMaps = layerOf(run, layer);
  const make = (maps) => {
    const before = () => /** @type {Matrix} */ (extraOf(run, layer - 1, "rollout"));
    return name === "rollout" ? rolledOut(over(maps, "mean"), layer > 0 ? before() : null) : over(maps, name);
  };
  const keep = (maps) => (made[key] = make(maps));
  return layerMaps instanceof Promise ? layerMaps.then(keep) : keep(layerMaps);
}

/** Combines the thumbnails of the heads, if the full maps are not here. */
export function extraOfThumbs(maps, layer, name) {
  const [, ...shape] = maps.shape,
    size = countOf(shape);
  return over({ shape, data: maps.data.subarray(layer * size, (layer + 1) * size) }, name);
}

const extentsOfRuns = new WeakMap();

/**
 * The range of all shown heads. It colours the thumbnails and the open map.
 * @param {TextRun} run
 * @param {import("../request/tensor.js").Tensor} maps those of the thumbnails
 */
export function extentOfRun(run, maps, hidesFirst) {
  const shown = run.thumbs ? run.thumbs[hidesFirst ? "withoutFirst" : "full"] : maps,
    isCut = hidesFirst && run.isExact && !run.thumbs;
  if (!isCut) return extentsOfRuns.get(shown) ?? extentsOfRuns.set(shown, extentOf(shown.data)).get(shown);
  const { data } = withoutFirst({ rows: 0, cols: shown.shape.at(-1), data: shown.data });
  return extentOf(data);
}

/** Index of the key with the largest weight in a row. @param {Matrix} map */
export function strongest({ cols, data }, row) {
  let best = 0;
  for (let j = 1; j < cols; j++) if (data[row * cols + j] > data[row * cols + best]) best = j;
  return best;
}
