/**
 * tensor.js: numbers with a shape, and the three forms in which the API writes them as JSON.
 *
 * @typedef {{shape: number[], data: Float32Array | Float64Array}} Tensor
 * @typedef {{rows: number, cols: number, data: Float32Array | Float64Array}} Matrix
 */

import { Problem } from "../texts.js";

/** @param {number[]} shape */
export const countOf = (shape) => shape.reduce((product, size) => product * size, 1);

/**
 * @param {number[]} shape
 * @returns {Tensor} of zeros
 */
export const zeros = (shape) => ({ shape, data: new Float64Array(countOf(shape)) });

const WORDS = { Infinity: Infinity, "-Infinity": -Infinity, NaN: NaN };

/** A JSON value as a number; null is a masked score. */
function numberFrom(value) {
  if (typeof value === "number") return value;
  if (value === null) return -Infinity;
  if (value === true || value === false) return Number(value);
  if (value in WORDS) return WORDS[value];
  const text = String(JSON.stringify(value)).slice(0, 24);
  throw new Problem("own.value", { text }, "not a number: " + text);
}

function nestedShape(value) {
  const shape = [];
  for (let inner = value; Array.isArray(inner); inner = inner[0]) shape.push(inner.length);
  return shape;
}

function fillNested(value, shape, depth, into, at) {
  if (depth === shape.length) {
    into[at] = numberFrom(value);
    return at + 1;
  }
  if (!Array.isArray(value) || value.length !== shape[depth]) throw new Problem("expected.ragged", {}, "rows of different lengths");
  for (const item of value) at = fillNested(item, shape, depth + 1, into, at);
  return at;
}

/** @type {any} newer browsers have fromBase64 and toBase64 */
const Bytes = Uint8Array;

/** @param {string} text in base64 */
export function bytesOfBase64(text) {
  if (Bytes.fromBase64) return Bytes.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {any} bytes a Uint8Array */
export function base64OfBytes(bytes) {
  if (bytes.toBase64) return bytes.toBase64();
  let binary = "";
  for (let i = 0; i < bytes.length; i += 32768) binary += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return btoa(binary);
}

function halfFrom(bits, exponentBits, mantissaBits) {
  const sign = bits >> (exponentBits + mantissaBits) ? -1 : 1;
  const exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
  const mantissa = (bits & ((1 << mantissaBits) - 1)) / (1 << mantissaBits);
  const bias = (1 << (exponentBits - 1)) - 1;
  if (exponent === (1 << exponentBits) - 1) return mantissa ? NaN : sign * Infinity;
  return exponent === 0 ? sign * mantissa * 2 ** (1 - bias) : sign * (1 + mantissa) * 2 ** (exponent - bias);
}

/** A type of two bytes has 65,536 values. A table of them is made at first use. */
function tableOfHalves(exponentBits, mantissaBits) {
  let table = null;
  return (bytes) => {
    table ??= Float32Array.from({ length: 65536 }, (_, bits) => halfFrom(bits, exponentBits, mantissaBits));
    const halves = new Uint16Array(bytes),
      numbers = new Float32Array(halves.length);
    for (let at = 0; at < halves.length; at++) numbers[at] = table[halves[at]]; // from() is ten times slower
    return numbers;
  };
}

const READERS = {
  float64: (bytes) => new Float64Array(bytes),
  float32: (bytes) => new Float32Array(bytes),
  float16: tableOfHalves(5, 10),
  bfloat16: tableOfHalves(8, 7),
  int64: (bytes) => Float64Array.from(new BigInt64Array(bytes), Number),
  int32: (bytes) => Float64Array.from(new Int32Array(bytes)),
  uint8: (bytes) => Float64Array.from(new Uint8Array(bytes)),
  bool: (bytes) => Float64Array.from(new Uint8Array(bytes)),
};

/**
 * @param {Uint8Array} bytes little-endian
 * @param {string} dtype
 */
export function numbersOfBytes(bytes, dtype) {
  const read = READERS[dtype];
  if (!read) throw new Problem("own.dtype", { dtype }, "unknown dtype " + dtype);
  const isOwnBuffer = bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength;
  return read(isOwnBuffer ? bytes.buffer : bytes.slice().buffer);
}

/**
 * Parses any form of a tensor in JSON.
 * @returns {Tensor}
 */
export function tensorFrom(json) {
  if (Array.isArray(json) || typeof json !== "object" || json === null) {
    const shape = nestedShape(json);
    const data = new Float64Array(countOf(shape));
    fillNested(json, shape, 0, data, 0);
    return { shape, data };
  }
  if (ArrayBuffer.isView(json.data)) return json;
  if (!Array.isArray(json.shape)) throw new Problem("own.form", {}, "no tensor: it has no shape");
  const data =
    json.base64 === undefined
      ? Float64Array.from(json.data, numberFrom)
      : numbersOfBytes(bytesOfBase64(json.base64), json.dtype);
  if (data.length !== countOf(json.shape)) throw new Problem("own.count", { n: data.length, shape: json.shape.join(" × ") }, data.length + " numbers for shape " + json.shape);
  return { shape: json.shape, data };
}

/**
 * @param {Tensor} tensor
 * @param {(value: number) => unknown} [write]
 */
export function nestedOf(tensor, write = (value) => value) {
  let at = 0;
  const level = (depth) =>
    depth === tensor.shape.length
      ? write(tensor.data[at++])
      : Array.from({ length: tensor.shape[depth] }, () => level(depth + 1));
  return level(0);
}

/** Each matrix is made once, because others cache by its identity. */
const matrices = new WeakMap();

/**
 * The last two dimensions at the given leading indices. Indices that are too large are reduced to the last one.
 * @param {Tensor} tensor
 * @param {number} b
 * @param {number} h
 * @returns {Matrix}
 */
export function matrixOf(tensor, b, h) {
  const { shape, data } = tensor;
  const cols = shape.at(-1) ?? 1,
    rows = shape.length > 1 ? shape.at(-2) : 1;
  const lead = shape.slice(0, -2);
  const at =
    lead.length === 2
      ? Math.min(b, lead[0] - 1) * lead[1] + Math.min(h, lead[1] - 1)
      : lead.length === 1
        ? Math.min(b, lead[0] - 1)
        : 0;
  const made = matrices.get(tensor) ?? matrices.set(tensor, new Map()).get(tensor);
  if (!made.has(at)) made.set(at, { rows, cols, data: data.subarray(at * rows * cols, (at + 1) * rows * cols) });
  return made.get(at);
}

let decimalMark = ".";

/** @param {string} mark decimal mark of the language, for all numbers that people read */
export const useDecimalMark = (mark) => {
  decimalMark = mark;
};

export const withDecimalMark = (text) => text.replace(".", decimalMark);

/** Formats a number with a fixed number of decimals. */
export const fixed = (value, decimals) => withDecimalMark(value.toFixed(decimals).replace("-", "−"));

/** Formats a number in scientific notation. */
export const scientific = (value, decimals) => withDecimalMark(value.toExponential(decimals).replace(/-/g, "−"));

/** Formats a number with four significant digits, no trailing zeros, and a true minus. */
export function short(value, digits = 4) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return scientific(value, digits - 1);
  return withDecimalMark(String(Number(value.toPrecision(digits))).replace("-", "−"));
}

/** Formats a number for a cell: two decimals below 10, three digits below 1000, else two digits. */
export function cellText(value) {
  const size = Math.abs(value);
  if (size < 10) return fixed(value, 2);
  return size < 1000 ? withDecimalMark(value.toPrecision(3).replace("-", "−")) : short(value, 2);
}
