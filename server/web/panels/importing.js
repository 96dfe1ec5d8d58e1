/**
 * importing.js: makes requests of data that people paste or drop.
 */
import { originFrom } from "../models/case.js";
import { BARE, LAYER } from "../request/presets.js";
import { checkedRequest } from "../request/validation.js";
import { isNpy, npyFrom, readText, textOfBytes } from "../request/parsing.js";
import { requestFrom, safetensorsFrom } from "../request/safetensors.js";
import { base64OfBytes, nestedOf, tensorFrom } from "../request/tensor.js";
import { Problem } from "../texts.js";

const caseOf = (endpoint, request) => ({ id: "", endpoint, request });

/** From this many numbers on, a tensor is written as base64 and not as nested lists. */
const NESTED_MAX = 1 << 16;

const word = (value) => (Number.isFinite(value) ? value : String(value));

/** @param {import("../request/tensor.js").Tensor} tensor */
export function jsonOfTensor({ shape, data }) {
  if (data.length <= NESTED_MAX) return nestedOf({ shape, data }, word);
  const bytes = new Uint8Array(Float32Array.from(data).buffer);
  return { shape, dtype: "float32", base64: base64OfBytes(bytes) };
}

/**
 * Makes a request whose attention is a given map. The scores become queries and an identity matrix the keys, so that
 * the softmax gives the map back. The scores of weights are their logarithms. NaN, −∞ and a weight of 0 are masked.
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

/** Whether rows sum to 1, or to 0 if every key is masked. A softmax cannot give others back. */
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
  if (json?.endpoint && json.request) {
    const request = checkedRequest(json.request);
    return { ...caseOf(json.endpoint === BARE ? BARE : LAYER, request), random: json.random, ...originFrom(json.copyOf, request) };
  }
  if (json?.inputs) return caseOf(json.weights ? LAYER : BARE, checkedRequest(json));
  if (json?.outputs?.attention) return caseOfMap(tensorFrom(json.outputs.attention), true, json.tokens);
  if (json?.attention) return caseOfMap(tensorFrom(json.attention), true, json.tokens);
  return caseOf(BARE, { inputs: { query: jsonOfTensor(tensorFrom(json)) } });
}

const SCORES = ["scores", "scaled", "masked"];

/** A table with gaps is a map, as this page exports one. Other tables have one row of features per token. */
function caseOfTable(tensor, { step, rows, columns, hasGaps: hasEmpty }) {
  const hasGaps = tensor.data.some(Number.isNaN);
  const isPlain = step === undefined && !hasGaps;
  if (!isPlain && SCORES.includes(step)) return caseOfMap(tensor, false, { query: rows, key: columns });
  if (!isPlain && areWeights(tensor)) return caseOfMap(tensor, true, rows && columns && { query: rows, key: columns });
  if (hasGaps && step === undefined) throw new Problem(hasEmpty ? "own.gap" : "own.nan");
  const query = jsonOfTensor({ shape: tensor.shape, data: tensor.data.map((value) => value || 0) });
  return caseOf(BARE, { inputs: { query }, ...(rows ? { tokens: { query: rows } } : {}) });
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
  if (!request.inputs?.query) throw new Problem("request.inputs");
  return caseOf(request.weights ? LAYER : BARE, request);
}

/** @returns {import("../request/presets.js").Case} @throws {Problem} */
export function caseOfText(text) {
  const { json, found } = readText(text);
  if (found.length === 0) return caseOfJson(json);
  const [{ tensor, table }] = found;
  return table ? caseOfTable(tensor, table) : caseOf(BARE, { inputs: { query: jsonOfTensor(tensor) } });
}

/** @param {File} file */
export async function caseOfFile(file) {
  const buffer = await file.arrayBuffer(),
    bytes = new Uint8Array(buffer);
  if (file.name.endsWith(".safetensors")) return caseOfSafetensors(buffer);
  return isNpy(bytes) ? caseOfNpy(npyFrom(buffer)) : caseOfText(textOfBytes(bytes, file.name));
}
