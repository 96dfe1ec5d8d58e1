/**
 * parsing.js: parses numbers in the forms that people have: JSON, CSV, printed NumPy and PyTorch tensors, columns of a
 * terminal, NPY.
 *
 * @typedef {object} Found one parsed tensor
 * @property {string} name "" if it has none
 * @property {import("./tensor.js").Tensor} tensor
 * @property {number} digits number of decimals, if a program has rounded to it; else 0
 * @property {Table} [table] labels of a table
 *
 * @typedef {{step: string | undefined, rows: string[] | null, columns: string[] | null, hasGaps: boolean}} Table hasGaps: a
 *          field is empty
 */
import { numberOf } from "../dom.js";
import { Problem } from "../texts.js";
import { countOf, numbersOfBytes } from "./tensor.js";

const NUMBER_WORDS = { nan: NaN, inf: Infinity, infinity: Infinity, "∞": Infinity, true: 1, false: 0, none: NaN };

/** @param {string} text @returns {number | undefined} undefined: not a number */
export function writtenNumber(text) {
  const value = numberOf(text);
  if (!Number.isNaN(value)) return value;
  const [, sign, word] = /^([+−-]?)["']?([a-z∞]+)["']?$/i.exec(text.trim()) ?? [],
    size = NUMBER_WORDS[word?.toLowerCase()];
  return size === undefined ? undefined : sign === "-" || sign === "−" ? -size : size;
}

/**
 * Decimals of rounded numbers. Fewer than least are exact numbers such as 0.5, because a program that rounds prints at
 * least so many. More than most are all that a number has.
 */
const ROUNDED_DIGITS = { least: 3, most: 8 };

/** Number of decimals. Numbers with an exponent count as not rounded. */
const digitsOf = (text) => /\.(\d+)$/.exec(text)?.[1].length ?? 0;

/** @param {Iterable<string>} numbers @returns {number} number of decimals to which they are rounded, or 0 */
export function roundedDigits(numbers) {
  let digits = 0;
  for (const text of numbers) digits = Math.max(digits, digitsOf(text));
  return digits >= ROUNDED_DIGITS.least && digits <= ROUNDED_DIGITS.most ? digits : 0;
}

// ---- tables --------------------------------------------------------------------------------------------------------

/** Lines of fields. A quoted field may hold separators, quotes and line breaks. */
function linesOf(text, separator) {
  const lines = [[]],
    field = new RegExp(
      `(?:"([^"]*(?:""[^"]*)*)"|([^${separator}\\r\\n]*))(${separator}|\\r\\n?|\\n|$)`,
      "gy",
    );
  for (const [, quoted, plain, end] of text.matchAll(field)) {
    const found = quoted === undefined ? plain.trim() : quoted.replace(/""/g, '"');
    lines.at(-1).push(found.replace(/^'(?=[=+@\t-])/, "")); // csvField adds it
    if (end === "") break;
    if (end !== separator) lines.push([]);
  }
  return lines.filter((line) => line.some((found) => found !== ""));
}

/** Columns of a terminal: only numbers, separated by spaces. null: another form. */
function spacedLines(text) {
  if (/[\t;]|, /.test(text.trim())) return null;
  const lines = text.split(/\r\n?|\n/).map((line) => line.split(/\s+/).filter(Boolean)).filter((line) => line.length > 0);
  const numbers = lines.flat().filter((one) => !one.includes("..."));
  if (!lines.some((line) => line.length > 1) || numbers.some((one) => writtenNumber(one) === undefined)) return null;
  if (numbers.length < lines.flat().length) throw new Problem("expected.dots");
  return lines;
}

/** First field of a map that this page has exported. Names in it may be numbers; empty fields are masked cells. */
const MAP_CORNER = /^(.+): query\\key$/;

/** Parses lines of numbers. A first line or column that is not numeric holds names. @returns {Found} */
function tableFrom(text) {
  let lines = spacedLines(text) ?? linesOf(text, text.includes("\t") ? "\t" : text.includes(";") ? ";" : ",");
  if (lines.length === 0) throw new Problem("own.empty");
  const [[corner, ...columns]] = lines,
    isNumber = (found) => writtenNumber(found) !== undefined;
  const [, step] = MAP_CORNER.exec(corner) ?? [],
    hasHead = lines.length > 1 && (step !== undefined || corner === "" || !columns.every(isNumber));
  if (hasHead) lines = lines.slice(1);
  const hasNames = (hasHead && (step !== undefined || corner === "")) || lines.every(([first]) => !isNumber(first));
  const rows = lines.map(([first]) => first),
    cells = lines.map((line) => line.slice(hasNames ? 1 : 0));
  const numbers = cells.flatMap((line, at) => {
    const row = at + (hasHead ? 2 : 1);
    if (line.length !== cells[0].length) throw new Problem("own.ragged", { row });
    return line.map((found) => {
      if (found !== "" && !isNumber(found)) throw new Problem("own.number", { text: found.slice(0, 24), row });
      return writtenNumber(found) ?? NaN;
    });
  });
  if (numbers.length === 0) throw new Problem("own.empty");
  const tensor = { shape: [cells.length, cells[0].length], data: Float64Array.from(numbers) },
    fields = cells.flat();
  return {
    name: step ?? "",
    tensor,
    digits: roundedDigits(fields.map((field) => field.replace(",", "."))),
    table: { step, rows: hasNames ? rows : null, columns: hasHead ? columns : null, hasGaps: fields.includes("") },
  };
}

// ---- what programs print -------------------------------------------------------------------------------------------

const PRINTED = /^\s*(?:\w[\w.]*\s*[=:]\s*)?(?:Parameter containing:\s*)?(?:<tf\.Tensor[^[]*numpy=\s*)?(?:[a-z][\w.]*\(\s*)*\[[[\s]*(?:[-+.\d\]]|nan|inf|true|false|np\.|numpy\.)/i;
const PRINTED_HEAD = /\s*(?:(\w[\w.]*)\s*[=:]\s*)?(?:Parameter containing:\s*)?(?:<tf\.Tensor[^[]*numpy=\s*)?(?:[A-Za-z][\w.]*\(\s*)*(?=\[)/y;
const PRINTED_TAIL = /(?:,\s*\w+=(?:<[^>]*>|'[^']*'|\([^)]*\)|[^\s,()]*))*\s*\)*>?[\s;,]*/y;
const PRINTED_PART = /[\s,]*([[\]]|[^\s,[\]]+)/y;

/** Parses nested brackets; end is the index after them. @returns {{tensor: object, digits: number, end: number}} */
function listFrom(text, start) {
  const shape = [],
    open = [],
    data = [],
    numbers = [];
  let leaf = 0;
  const closed = (depth, count) => {
    if ((shape[depth] ??= count) !== count) throw new Problem("expected.ragged");
  };
  PRINTED_PART.lastIndex = start;
  for (let found = PRINTED_PART.exec(text); found; found = PRINTED_PART.exec(text)) {
    const [, part] = found;
    if (part === "]") closed(open.length - 1, open.pop());
    else if (open.length > 0) open[open.length - 1]++;
    if (part === "[") open.push(0);
    else if (part !== "]") {
      const value = writtenNumber(part);
      if (value === undefined) throw new Problem("own.number", { text: part.slice(0, 24), row: (open[0] ?? 0) });
      if ((leaf ||= open.length) !== open.length) throw new Problem("expected.ragged");
      numbers.push(part);
      data.push(value);
    }
    if (open.length === 0) {
      if (countOf(shape) !== data.length) throw new Problem("expected.ragged");
      return { tensor: { shape, data: Float64Array.from(data) }, digits: roundedDigits(numbers), end: PRINTED_PART.lastIndex };
    }
  }
  throw new Problem("expected.brackets");
}

/** Parses tensors that follow each other, each with an optional name: "q = tensor([[…]])". @returns {Found[]} */
function printedTensors(text) {
  if (/\.\.\.|…/.test(text)) throw new Problem("expected.dots");
  const plain = text.replace(/\b(?:np|numpy)\.\w+\(([^()[\]]*)\)/g, "$1"),
    found = [];
  for (let at = 0; at < plain.trimEnd().length; at = PRINTED_TAIL.lastIndex) {
    PRINTED_HEAD.lastIndex = at;
    const head = PRINTED_HEAD.exec(plain);
    if (!head) throw new Problem("expected.form", { text: plain.slice(at, at + 24).trim() });
    const { tensor, digits, end } = listFrom(plain, PRINTED_HEAD.lastIndex);
    if (tensor.data.length === 0) throw new Problem("own.empty");
    found.push({ name: head[1] ?? "", tensor, digits });
    PRINTED_TAIL.lastIndex = end;
    PRINTED_TAIL.exec(plain);
  }
  return found;
}

/** Length of the text that an error quotes. */
const QUOTED = 24;

/** @returns {Problem} that quotes the text before the error, if the browser says where that is */
function notJson(text, { message }) {
  const at = Number(/position (\d+)/.exec(message)?.[1] ?? text.length);
  return new Problem("own.json", { text: text.slice(Math.max(0, at - QUOTED), at + 1).trim() });
}

/** A text that begins with "[" may also be a list of Python, or a table that begins with "[CLS]". */
function jsonFrom(text, isList) {
  try {
    return JSON.parse(text);
  } catch (problem) {
    if (isList) return undefined;
    throw notJson(text, problem);
  }
}

/** Numbers of a JSON text that have decimals and no exponent. */
export const fractionsIn = (text) => text.match(/\d\.\d+(?![\de])/gi) ?? [];

/**
 * Parses any text with numbers in it.
 * @param {string} text
 * @returns {{json?: any, found: Found[]}} JSON, or at least one tensor
 */
export function readText(text) {
  const [start] = text.trimStart(),
    json = start === "{" || start === "[" ? jsonFrom(text, start === "[") : undefined;
  if (json !== undefined) return { json, found: [] };
  return { found: PRINTED.test(text) ? printedTensors(text) : [tableFrom(text)] };
}

// ---- NPY -----------------------------------------------------------------------------------------------------------

const NPY_TYPES = { "<f8": "float64", "<f4": "float32", "<f2": "float16", "<i8": "int64", "<i4": "int32", "|u1": "uint8", "|b1": "bool" };

/** @param {Uint8Array} bytes */
export const isNpy = (bytes) => String.fromCharCode(...bytes.subarray(0, 6)) === "\x93NUMPY";

/** @param {ArrayBuffer} buffer NumPy's file format, any version @returns {import("./tensor.js").Tensor} */
export function npyFrom(buffer) {
  if (buffer.byteLength < 12) throw new Problem("own.npy");
  const view = new DataView(buffer),
    isFirst = view.getUint8(6) === 1,
    start = isFirst ? 10 : 12;
  const end = start + (isFirst ? view.getUint16(8, true) : view.getUint32(8, true));
  const header = new TextDecoder().decode(new Uint8Array(buffer).subarray(start, end));
  const dtype = NPY_TYPES[/'descr': *'([^']+)'/.exec(header)?.[1]],
    sizes = /'shape': *\(([\d, ]*)\)/.exec(header)?.[1] ?? "";
  const shape = sizes.split(",").filter((size) => size.trim() !== "").map(Number);
  if (!dtype || shape.length < 2 || /'fortran_order': *True/.test(header)) throw new Problem("own.npy");
  const data = numbersOfBytes(new Uint8Array(buffer).subarray(end), dtype);
  if (data.length !== countOf(shape)) throw new Problem("own.npy");
  return { shape, data };
}

/** @param {Uint8Array | ArrayBuffer} bytes @param {string} name for the error if they are not text */
export function textOfBytes(bytes, name) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // Reported below.
  }
  throw new Problem("own.binary", { name });
}
