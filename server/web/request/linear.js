/**
 * linear.js: what a layer computes around attention, in float64: projections, split and joined heads, norms.
 *
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {{width: number, rows: number, cols: number[][], bias: number[] | null}} Linear cols: one list per output
 */
import { tensorFrom, zeros } from "./tensor.js";

/** (batch, len, heads * d) to (batch, heads, len, d). */
export function splitHeads(x, heads) {
  const [batch, length, width] = x.shape,
    d = width / heads;
  const out = zeros([batch, heads, length, d]);
  for (let b = 0, at = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < length; i++)
        for (let c = 0; c < d; c++) out.data[at++] = x.data[(b * length + i) * width + h * d + c];
  return out;
}

/** The inverse of splitHeads. */
export function joinHeads(x) {
  const [batch, heads, length, d] = x.shape;
  const out = zeros([batch, length, heads * d]);
  for (let b = 0, at = 0; b < batch; b++)
    for (let i = 0; i < length; i++)
      for (let h = 0; h < heads; h++)
        for (let c = 0; c < d; c++) out.data[at++] = x.data[((b * heads + h) * length + i) * d + c];
  return out;
}

/** Weights that have been read, by the member of the request, which never changes. */
const linears = new WeakMap();

export function linearFrom(json, isOutIn, isOutput) {
  const known = linears.get(json) ?? linears.set(json, new Map()).get(json),
    form = `${isOutIn} ${isOutput}`;
  if (!known.has(form)) known.set(form, readLinear(json, isOutIn, isOutput));
  return known.get(form);
}

/**
 * A weight matrix as columns, from either layout. If it has rank 3, the heads are side by side; those of the output
 * projection are one below the other.
 * @returns {Linear}
 */
function readLinear(json, isOutIn, isOutput) {
  const { shape, data } = tensorFrom(json.weight);
  const [heads, a, b] = shape.length === 3 ? shape : [1, ...shape];
  const [inner, outer] = isOutIn ? [b, a] : [a, b];
  const at = (h, i, o) => data[h * a * b + (isOutIn ? o * b + i : i * b + o)];
  const cols = [];
  if (isOutput)
    for (let o = 0; o < outer; o++)
      cols.push(Array.from({ length: heads * inner }, (_, i) => at(Math.floor(i / inner), i % inner, o)));
  else
    for (let o = 0; o < heads * outer; o++)
      cols.push(Array.from({ length: inner }, (_, i) => at(Math.floor(o / outer), i, o % outer)));
  const bias = json.bias === undefined ? null : Array.from(tensorFrom(json.bias).data);
  return { width: cols.length, rows: cols[0].length, cols, bias };
}

/** The columns of a fused weight that make q, k or v. */
export function fusedColumns(width, heads, kvHeads, order) {
  const d = width / (heads + 2 * kvHeads),
    group = heads / kvHeads;
  const repeat = (name, times) => Array.from({ length: times }, () => name);
  const names =
    (order ?? "stacked") === "stacked"
      ? [...repeat("q", heads), ...repeat("k", kvHeads), ...repeat("v", kvHeads)]
      : Array.from({ length: kvHeads }, () => [...repeat("q", group), "k", "v"]).flat();
  const columns = { q: [], k: [], v: [] };
  names.forEach((name, at) => {
    for (let c = 0; c < d; c++) columns[name].push(at * d + c);
  });
  return columns;
}

/** @param {Linear} linear */
export const pickColumns = (linear, columns) => ({
  width: columns.length,
  rows: linear.rows,
  cols: columns.map((c) => linear.cols[c]),
  bias: linear.bias && columns.map((c) => linear.bias[c]),
});

/**
 * y = x W + b
 * @param {Tensor} x (batch, len, in)
 * @param {Linear} linear
 */
export function project(x, linear) {
  const [batch, length, width] = x.shape;
  const out = zeros([batch, length, linear.width]);
  for (let row = 0, at = 0; row < batch * length; row++)
    for (let o = 0; o < linear.width; o++) {
      let sum = linear.bias ? linear.bias[o] : 0;
      for (let i = 0; i < width; i++) sum += x.data[row * width + i] * linear.cols[o][i];
      out.data[at++] = sum;
    }
  return out;
}

/** The mean that the norm of a row subtracts, and the deviation by which it divides. */
export function rowMoments(data, from, width, norm) {
  let mean = 0,
    square = 0;
  if (norm.type !== "rms") {
    for (let c = 0; c < width; c++) mean += data[from + c];
    mean /= width;
  }
  for (let c = 0; c < width; c++) square += (data[from + c] - mean) ** 2;
  return { mean, deviation: Math.sqrt(square / width + (norm.eps ?? 1e-5)) };
}

/** Gain and shift of a norm; by default 1 and 0. */
export function affineFrom(json, width) {
  const read = (value, fallback) =>
    value === undefined ? Array.from({ length: width }, () => fallback) : Array.from(tensorFrom(value).data);
  return { gain: read(json?.weight, 1), shift: read(json?.bias, 0) };
}

export function normalise(x, norm, affine) {
  const width = x.shape.at(-1),
    out = zeros(x.shape);
  for (let from = 0; from < x.data.length; from += width) {
    const { mean, deviation } = rowMoments(x.data, from, width, norm);
    for (let c = 0; c < width; c++)
      out.data[from + c] = ((x.data[from + c] - mean) / deviation) * affine.gain[c] + affine.shift[c];
  }
  return out;
}
