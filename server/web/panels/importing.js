/**
 * importing.js: what people paste or drop, made a request of the interface.
 */
import { numberOf } from "../dom.js";
import { BARE, LAYER } from "../request/presets.js";
import { checkedRequest } from "../request/request.js";
import { requestFrom, safetensorsFrom } from "../request/safetensors.js";
import { base64OfBytes, countOf, nestedOf, numbersOfBytes, tensorFrom } from "../request/tensor.js";
import { Problem } from "../texts.js";

const caseOf = (endpoint, request) => ({ id: "", endpoint, request });

/** From so many numbers on a tensor is not written out as nested lists. */
const NESTED_MAX = 1 << 16;

const word = (value) => (Number.isFinite(value) ? value : String(value));

/** @param {import("../request/tensor.js").Tensor} tensor */
function jsonOfTensor({ shape, data }) {
  if (data.length <= NESTED_MAX) return nestedOf({ shape, data }, word);
  const bytes = new Uint8Array(Float32Array.from(data).buffer);
  return { shape, dtype: "float32", base64: base64OfBytes(bytes) };
}

/**
 * A map alone has no queries and keys: scores as queries and an identity as keys give it back through the softmax, and
 * logarithms are the scores of weights. NaN and −∞ are masked, and so is a weight of 0.
 */
export function caseOfMap({ shape, data }, areWeights, tokens) {
  const lead = shape.slice(0, -2),
    [rows, cols] = shape.slice(-2);
  const full = [lead.length > 1 ? lead[0] : 1, lead.at(-1) ?? 1, rows, cols];
  const isAllowed = (value) => value > (areWeights ? 0 : -Infinity);
  const scores = data.map((value) => (!isAllowed(value) ? 0 : areWeights ? Math.log(value) : value));
  const eye = Float32Array.from({ length: full[0] * full[1] * cols * cols }, (_, at) =>
    Number(at % cols === Math.floor(at / cols) % cols),
  );
  const attend = Uint8Array.from(data, (value) => Number(isAllowed(value)));
  const isSmall = data.length <= NESTED_MAX;
  return caseOf(BARE, {
    inputs: {
      query: jsonOfTensor({ shape: full, data: scores }),
      key: jsonOfTensor({ shape: [full[0], full[1], cols, cols], data: eye }),
    },
    options: { scale: 1 },
    masks: {
      attend: isSmall
        ? nestedOf({ shape: full, data: Float32Array.from(attend) }, Boolean)
        : { shape: full, dtype: "bool", base64: base64OfBytes(attend) },
    },
    ...(tokens ? { tokens } : {}),
  });
}

/** Rows that sum to 1, or to 0 where every key is masked; others a softmax cannot give back. */
function areWeights({ shape, data }) {
  const cols = shape.at(-1);
  for (let from = 0; from < data.length; from += cols) {
    let sum = 0;
    for (const value of data.subarray(from, from + cols)) {
      if (value < 0) return false;
      sum += value || 0;
    }
    if (sum !== 0 && Math.abs(sum - 1) > 1e-3) return false;
  }
  return true;
}

function caseOfJson(json) {
  if (json?.endpoint && json.request)
    return { ...caseOf(json.endpoint === BARE ? BARE : LAYER, checkedRequest(json.request)), random: json.random };
  if (json?.inputs) return caseOf(json.weights ? LAYER : BARE, checkedRequest(json));
  if (json?.outputs?.attention) return caseOfMap(tensorFrom(json.outputs.attention), true, json.tokens);
  if (json?.attention) return caseOfMap(tensorFrom(json.attention), true, json.tokens);
  return caseOf(BARE, { inputs: { query: jsonOfTensor(tensorFrom(json)) } });
}

/** Rows of fields; a quoted one may hold separators, quotes and ends of lines. */
function linesOf(text, separator) {
  const lines = [[]],
    field = new RegExp(
      `(?:"([^"]*(?:""[^"]*)*)"|([^${separator}\\r\\n]*))(${separator}|\\r\\n?|\\n|$)`,
      "gy",
    );
  for (const [, quoted, plain, end] of text.matchAll(field)) {
    const found = quoted === undefined ? plain.trim() : quoted.replace(/""/g, '"');
    lines.at(-1).push(found.replace(/^'(?=[=+@\t-])/, "")); // put there against spreadsheets
    if (end === "") break;
    if (end !== separator) lines.push([]);
  }
  return lines.filter((line) => line.some((found) => found !== ""));
}

/** What this page writes into the first field of a map: then its names may be numbers, and an empty field is masked. */
const MAP_CORNER = /^(.+): query\\key$/;

/** Rows of numbers; a first line and a first column without numbers are names. */
function caseOfCsv(text) {
  let lines = linesOf(text, text.includes("\t") ? "\t" : text.includes(";") ? ";" : ",");
  if (lines.length === 0) throw new Problem("own.empty");
  const [[corner, ...columns]] = lines,
    isNumber = (found) => !Number.isNaN(numberOf(found));
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
      return numberOf(found);
    });
  });
  if (numbers.length === 0) throw new Problem("own.empty");
  const tensor = { shape: [cells.length, cells[0].length], data: Float64Array.from(numbers) };
  return caseOfTable(tensor, step, hasNames ? rows : null, hasHead ? columns : null);
}

const SCORES = ["scores", "scaled", "masked"];

/** A table with gaps is a map, as this page exports one; what is no map is one row of features for each token. */
function caseOfTable(tensor, step, rows, columns) {
  const hasGaps = tensor.data.some(Number.isNaN);
  const isPlain = step === undefined && !hasGaps;
  if (!isPlain && SCORES.includes(step)) return caseOfMap(tensor, false, { query: rows, key: columns });
  if (!isPlain && areWeights(tensor)) return caseOfMap(tensor, true, rows && columns && { query: rows, key: columns });
  if (hasGaps && step === undefined) throw new Problem("own.gap");
  const query = jsonOfTensor({ shape: tensor.shape, data: tensor.data.map((value) => value || 0) });
  return caseOf(BARE, { inputs: { query }, ...(rows ? { tokens: { query: rows } } : {}) });
}

const NPY_TYPES = { "<f8": "float64", "<f4": "float32", "<f2": "float16", "<i8": "int64", "<i4": "int32", "|u1": "uint8", "|b1": "bool" };

const isNpy = (bytes) => String.fromCharCode(...bytes.subarray(0, 6)) === "\x93NUMPY";

/** @param {ArrayBuffer} buffer NumPy's file format, any version @returns {import("../request/tensor.js").Tensor} */
export function npyFrom(buffer) {
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

function caseOfNpy(tensor) {
  const isMap = tensor.shape.length === 4;
  if (isMap && tensor.data.includes(-Infinity)) return caseOfMap(tensor, false);
  if (isMap && areWeights(tensor)) return caseOfMap(tensor, true);
  return caseOf(BARE, { inputs: { query: jsonOfTensor(tensor) } });
}

/** A file of one tensor is a query, whatever its name. */
function caseOfSafetensors(buffer) {
  const file = safetensorsFrom(buffer),
    names = Object.keys(file.tensors);
  if (!file.tensors["inputs.query"] && names.length === 1)
    return caseOf(BARE, { inputs: { query: nestedOf(file.tensors[names[0]]) } });
  const request = requestFrom(file, nestedOf);
  if (!request.inputs?.query) throw new Error("no tensor inputs.query");
  return caseOf(request.weights ? LAYER : BARE, request);
}

/** @returns {import("../request/presets.js").Case} or throws what is wrong with it */
export function caseOfText(text) {
  const start = text.trimStart()[0];
  return start === "{" || start === "[" ? caseOfJson(JSON.parse(text)) : caseOfCsv(text);
}

function textOf(bytes, name) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // Said below.
  }
  throw new Problem("own.binary", { name });
}

/** @param {File} file */
export async function caseOfFile(file) {
  const buffer = await file.arrayBuffer(),
    bytes = new Uint8Array(buffer);
  if (file.name.endsWith(".safetensors")) return caseOfSafetensors(buffer);
  return isNpy(bytes) ? caseOfNpy(npyFrom(buffer)) : caseOfText(textOf(bytes, file.name));
}
