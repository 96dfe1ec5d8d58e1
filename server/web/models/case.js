/**
 * case.js: makes a case for the Lab from a text, a model and a layer.
 *
 * The server offers the attention modules of a model as kept layers. The inputs of a module are the hidden states of
 * the model before that layer. This holds for models with the norm behind the module, such as BERT. In other models,
 * the module reads the hidden states after a norm.
 *
 * @typedef {{model: string, module: string, layer: number, text: string}} Source
 */
import { askForSmall } from "../exchange/api.js";
import { caseOver, fetchLayer } from "../exchange/layers.js";
import { ask } from "../exchange/server.js";
import { Problem } from "../texts.js";

/** @param {string} name of a model */
export const pathOfModel = (name) => `v1/models/${encodeURIComponent(name)}/attention`;

/** Largest side of a thumbnail, in pixels. */
const POOLED = 64;

/** Fetches the model's own maps of the text, for all layers. @param {Source} source @returns {Promise<import("../request/tensor.js").Tensor>} */
export async function mapsOfSource({ model, text }, signal) {
  const body = { inputs: { text }, options: { return: ["attention"], pool: { rows: POOLED, cols: POOLED, op: "max" }, format: "base64" } };
  const { shape, data } = (await askForSmall(pathOfModel(model), body, signal)).outputs.attention;
  return { shape: [shape[0], ...shape.slice(2)], data };
}

/** Name of the same module in another layer. @param {Source} source */
export const moduleAt = ({ module, layer }, at) => module.replace(new RegExp(`\\b${layer}\\b(?!.*\\b${layer}\\b)`), String(at));

/** @param {Source} source @returns {Promise<{spelled: string[], tokens: string[], before: number[][], maps: number[][][]}>} */
async function runModel({ model, layer, text }) {
  const layers = layer === 0 ? [0] : [layer - 1, layer];
  const body = { inputs: { text }, options: { return: ["hidden", "attention"], layers } };
  const { outputs, tokens } = await (await ask(pathOfModel(model), { body, hasEvents: true })).json();
  return { spelled: tokens.text[0], tokens: tokens.shown[0], before: outputs.hidden[layer === 0 ? 0 : 1][0], maps: outputs.attention.at(-1)[0] };
}

const isSource = ({ model, module, layer, text }) =>
  [model, module, text].every((one) => typeof one === "string") && Number.isSafeInteger(layer) && layer >= 0;

/**
 * The origin of a request, as files store it: a text in a model, a kept layer, or a seed.
 * @param {Partial<import("../request/presets.js").Case>} given
 */
export function originOf({ source, layer, copyOf, random, seed }) {
  if (!source) return { random, seed, copyOf: layer?.name ?? copyOf };
  const { model, module, layer: at, text } = source;
  return { copyOf: { model, module, layer: at, text } };
}

/** Reads the origin of a request from a file. @param {any} copyOf */
export function originFrom(copyOf, { inputs }) {
  if (typeof copyOf === "string") return { copyOf };
  return copyOf && isSource(copyOf) ? { source: { ...copyOf, inputs } } : {};
}

/** If the word is one token, selects the key it attends to most; otherwise the page chooses. */
function cellOfWord(map, tokens, word) {
  const row = tokens.lastIndexOf(word);
  return { row, col: row < 0 ? row : map[row].indexOf(Math.max(...map[row])) };
}

/**
 * @param {Source} source
 * @param {{head?: number, word?: string, id?: string, layer?: import("../exchange/layers.js").Layer, masks?: object, options?: object}} [more] masks and options
 *        are added to the layer's own
 * @returns {Promise<import("../request/presets.js").Case>}
 */
export async function caseOfModel(source, { head = 0, word = "", id = "", layer: known, masks, options } = {}) {
  if (!isSource(source)) throw new Problem("share.broken");
  const [{ spelled, tokens, before, maps }, layer] = await Promise.all([runModel(source), known ?? fetchLayer(source.module)]);
  const inputs = { query: before };
  const made = caseOver(layer, { inputs, masks, options, tokens: { query: tokens } });
  return { ...made, id, source: { ...source, inputs }, view: { head, ...cellOfWord(maps[head], spelled, word) } };
}
