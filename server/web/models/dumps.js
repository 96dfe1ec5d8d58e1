/**
 * dumps.js: reads attention maps that other programs have written, as a run without a model: attentions (layers, heads,
 * queries, keys) and tokens.
 *
 * @typedef {import("./textrun.js").TextRun} TextRun
 */
import { over, pooled } from "../maps/stats.js";
import { npyFrom } from "../request/parsing.js";
import { safetensorsFrom } from "../request/safetensors.js";
import { countOf, tensorFrom } from "../request/tensor.js";
import { isZip, unzipped } from "../request/zip.js";
import { Problem } from "../texts.js";
import { NO_CHANGES } from "./changes.js";

const MAP_NAMES = ["attentions", "attention", "outputs.attention"];

/** Maps as (layers, heads, queries, keys): the first text of a batch; maps without layers become one layer. */
function mapsFrom({ shape, data }) {
  if (shape.length === 3) return { shape: [1, ...shape], data };
  if (shape.length === 4) return { shape, data };
  if (shape.length !== 5) throw new Problem("models.dumpShape", { shape: shape.join(" × ") });
  const [layers, batch, ...rest] = shape,
    size = countOf(rest),
    out = new Float32Array(layers * size);
  for (let l = 0; l < layers; l++) out.set(data.subarray(l * batch * size, (l * batch + 1) * size), l * size);
  return { shape: [layers, ...rest], data: out };
}

/** Joins one tensor per layer: attentions.0, attentions.1 … */
function stacked(tensors) {
  const names = Object.keys(tensors)
    .filter((name) => /^attentions?[._]\d+$/.test(name))
    .sort((a, b) => Number(/\d+$/.exec(a)) - Number(/\d+$/.exec(b)));
  if (names.length === 0) return null;
  const [{ shape }] = names.map((name) => tensors[name]),
    lead = shape.length === 4 ? shape.slice(1) : shape,
    size = countOf(lead),
    data = new Float32Array(names.length * size);
  names.forEach((name, at) => {
    if (String(tensors[name].shape) !== String(shape)) throw new Problem("models.dumpRagged");
    data.set(tensors[name].data.subarray(0, size), at * size);
  });
  return { shape: [names.length, ...lead], data };
}

/** Largest side of a thumbnail, in pixels. */
const THUMB_MOST = 64;

/** The map with zeros in its first column. */
function cutFirst({ rows, cols, data }) {
  const cut = data.slice();
  for (let at = 0; at < cut.length; at += cols) cut[at] = 0;
  return { rows, cols, data: cut };
}

/** @returns {import("./textrun.js").Thumbs | undefined} undefined: the maps themselves are small enough */
function smallMapsOf({ shape: [layers, heads, rows, cols], data }) {
  if (Math.max(rows, cols) <= THUMB_MOST) return undefined;
  const size = rows * cols,
    small = { full: [], withoutFirst: [] };
  for (let l = 0; l < layers; l++) {
    const layer = { shape: [heads, rows, cols], data: data.subarray(l * heads * size, (l + 1) * heads * size) },
      maps = Array.from({ length: heads }, (_, head) => ({ rows, cols, data: layer.data.subarray(head * size, (head + 1) * size) }));
    for (const map of [...maps, over(layer, "mean"), over(layer, "max")]) {
      small.full.push(pooled(map, THUMB_MOST));
      small.withoutFirst.push(pooled(cutFirst(map), THUMB_MOST));
    }
  }
  const [{ rows: down, cols: across }] = small.full;
  const joined = (maps) => {
    const out = new Float32Array(maps.length * down * across);
    maps.forEach((map, at) => out.set(map.data, at * down * across));
    return { shape: [layers, heads + 2, down, across], data: out };
  };
  return { full: joined(small.full), withoutFirst: joined(small.withoutFirst) };
}

/** A file has no mask. A run is causal if every weight to the right of the diagonal is 0 in all heads. */
function isCausalIn({ shape: [layers, heads, rows, cols], data }) {
  if (rows !== cols || rows < 2) return false;
  for (let row = 0; row < layers * heads * rows; row++)
    for (let at = row * cols + (row % rows) + 1; at < (row + 1) * cols; at++) if (data[at] !== 0) return false;
  return true;
}

const numbered = (length) => Array.from({ length }, (_, at) => String(at));

const isWordList = (list, length) =>
  Array.isArray(list) && list.length === length && list.every((word) => typeof word === "string");

/** Equal words get equal ids. */
function idsOfWords(words) {
  const known = new Map();
  return words.map((word) => known.get(word) ?? (known.set(word, known.size), known.size - 1));
}

/** @returns {TextRun} */
function dumpFrom(name, tensor, queryWords, keyWords = queryWords) {
  const maps = mapsFrom(tensor),
    [layers, heads, rows, cols] = maps.shape;
  if (countOf(maps.shape) === 0) throw new Problem("own.empty");
  const queries = isWordList(queryWords, rows) ? queryWords : numbered(rows),
    keys = isWordList(keyWords, cols) ? keyWords : numbered(cols);
  return {
    facts: null,
    text: name,
    inputs: {},
    given: {},
    generated: null,
    changes: NO_CHANGES,
    part: rows === cols ? "attention" : "cross_attention",
    queries,
    keys,
    ids: idsOfWords(keys),
    layers,
    heads,
    maps,
    isExact: true,
    isCausal: isCausalIn(maps),
    thumbs: smallMapsOf(maps),
    scores: {},
    cache: new Map(),
  };
}

// ---- JSON ----------------------------------------------------------------------------------------------------------

/** The server writes one list of tokens per text; this is the first. */
const wordsIn = (tokens) => {
  const list = tokens?.text ?? tokens?.query ?? tokens;
  return Array.isArray(list?.[0]) ? list[0] : list;
};

const rankOf = (json) => (Array.isArray(json) ? 1 + rankOf(json[0]) : (json?.shape?.length ?? 0));

function dumpOfJson(json, name) {
  const bertViz = json?.attention?.[0];
  if (bertViz?.attn) return dumpFrom(name, tensorFrom(bertViz.attn), bertViz.left_text, bertViz.right_text);
  if (Array.isArray(json) && json[0]?.attention && json[0]?.tokens)
    return dumpFrom(name, tensorFrom(json.map(({ attention }) => attention)), json[0].tokens);
  const isOwn = rankOf(json?.outputs?.attention) === 5,
    isPlain = json?.attentions || (rankOf(json?.attention) >= 3 && Array.isArray(json.tokens));
  if (!isOwn && !isPlain) return null;
  return dumpFrom(name, tensorFrom(isOwn ? json.outputs.attention : (json.attentions ?? json.attention)), wordsIn(json.tokens));
}

// ---- safetensors ---------------------------------------------------------------------------------------------------

function wordsOfMetadata({ tokens }) {
  if (tokens === undefined) return undefined;
  try {
    return wordsIn(JSON.parse(tokens));
  } catch {
    return tokens.split("\n");
  }
}

function dumpOfTensors(buffer, name) {
  const { tensors, metadata } = safetensorsFrom(buffer),
    key = MAP_NAMES.find((one) => tensors[one]),
    tensor = key ? tensors[key] : stacked(tensors);
  return tensor && tensor.shape.length >= 3 && !tensors["inputs.query"] ? dumpFrom(name, tensor, wordsOfMetadata(metadata)) : null;
}

// ---- NPZ: NumPy's arrays in a zip ------------------------------------------------------------------------------------

/** An array of strings: in NumPy each has the length of the longest, with four bytes per character. */
function wordsOfNpy(buffer) {
  const view = new DataView(buffer),
    start = view.getUint8(6) === 1 ? 10 : 12,
    end = start + (start === 10 ? view.getUint16(8, true) : view.getUint32(8, true)),
    room = Number(/'descr': *'<U(\d+)'/.exec(new TextDecoder().decode(new Uint8Array(buffer, start, end - start)))?.[1]);
  if (!room) return undefined;
  const words = [];
  for (let at = end; at + 4 * room <= buffer.byteLength; at += 4 * room) {
    const codes = Array.from({ length: room }, (_, n) => view.getUint32(at + 4 * n, true)).filter(Boolean);
    words.push(String.fromCodePoint(...codes));
  }
  return words;
}

async function dumpOfNpz(buffer, name) {
  const files = await unzipped(buffer),
    key = MAP_NAMES.find((one) => files.has(one + ".npy"));
  if (!key) throw new Problem("models.dumpName");
  const words = files.get("tokens.npy");
  return dumpFrom(name, npyFrom(files.get(key + ".npy")), words && wordsOfNpy(words));
}

// --------------------------------------------------------------------------------------------------------------------

/** @param {File} file @returns {Promise<TextRun | null>} null: not a file of maps @throws {Problem} */
export async function dumpOf(file) {
  const buffer = await file.arrayBuffer();
  if (isZip(new Uint8Array(buffer, 0, Math.min(2, buffer.byteLength)))) return dumpOfNpz(buffer, file.name);
  if (file.name.endsWith(".safetensors")) return dumpOfTensors(buffer, file.name);
  try {
    return dumpOfJson(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(buffer)), file.name);
  } catch (problem) {
    if (problem instanceof Problem) throw problem;
    return null;
  }
}
