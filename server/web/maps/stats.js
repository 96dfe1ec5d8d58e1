/**
 * stats.js: numbers that describe a head, to sort heads by, and the totals beside a map.
 */
import { halved } from "./tiles.js";

/** Of a map with more cells, a sample of rows is used. */
const CELLS_LOOKED_AT = 1 << 20;

/** @param {import("../request/tensor.js").Matrix} map */
export function headStats({ rows, cols, data }) {
  let entropy = 0,
    first = 0,
    diagonal = 0,
    distance = 0,
    used = 0;
  const shift = cols - rows,
    step = Math.ceil((rows * cols) / CELLS_LOOKED_AT);
  for (let i = 0; i < rows; i += step) {
    let sum = 0;
    for (let j = 0, at = i * cols; j < cols; j++, at++) {
      const weight = data[at];
      if (!(weight > 0)) continue;
      sum += weight;
      entropy -= weight * Math.log(weight);
      distance += weight * Math.abs(i + shift - j);
    }
    first += data[i * cols] || 0;
    diagonal += data[i * cols + i + shift] || 0;
    used += sum > 0 ? 1 : 0;
  }
  const share = 1 / Math.max(1, used);
  return { entropy: entropy * share, first: first * share, diagonal: diagonal * share, distance: distance * share };
}

/** Heads in the order in which they are shown. */
export function sortedHeads(stats, sort) {
  const order = stats.map((_, head) => head);
  if (sort === "order") return order;
  const sign = sort === "entropy" ? 1 : -1;
  return order.sort((a, b) => sign * (stats[a][sort] - stats[b][sort]) || a - b);
}

/** Sums of the finite numbers per row and per column. */
export function totalsOf({ rows, cols, data }) {
  const row = new Float64Array(rows),
    col = new Float64Array(cols);
  for (let i = 0, at = 0; i < rows; i++) {
    let sum = 0;
    for (let j = 0; j < cols; j++, at++) {
      const value = data[at];
      if (value - value !== 0) continue;
      sum += value;
      col[j] += value;
    }
    row[i] = sum;
  }
  return { row, col };
}

/** Reduces a matrix to a thumbnail. Each block keeps the number farthest from zero. */
export function pooled(matrix, most) {
  let small = matrix;
  while (Math.max(small.rows, small.cols) > most) small = halved(small);
  return small;
}

/** Mean or maximum over the first axis. @param {import("../request/tensor.js").Tensor} tensor @returns {import("../request/tensor.js").Matrix} */
export function over({ shape, data }, name) {
  const [heads, rows, cols] = shape,
    size = rows * cols,
    out = new Float32Array(size);
  for (let n = 0; n < heads; n++)
    for (let at = 0, from = n * size; at < size; at++, from++)
      if (name === "max") out[at] = Math.max(out[at], data[from]);
      else out[at] += data[from] / heads;
  return { rows, cols, data: out };
}

const cut = new WeakMap();

/** The map with zeros in its first column. @param {import("../request/tensor.js").Matrix} map */
export function withoutFirst(map) {
  if (!cut.has(map)) {
    const data = map.data.slice();
    for (let at = 0; at < data.length; at += map.cols) data[at] = 0;
    cut.set(map, { ...map, data });
  }
  return cut.get(map);
}

/** From this share of the first key on, a head rests there. */
const RESTING = 0.5;

/** The mean share of the first key, if the head rests on it; else 0. @param {import("../request/tensor.js").Matrix} map */
export function restOf(map) {
  const { first } = map.cols > 2 ? headStats(map) : { first: 0 };
  return first >= RESTING ? first : 0;
}
