/**
 * layers.js: attention layers that the server keeps: lists them, and makes requests that use one.
 *
 * A case with a layer holds the whole request, weights included, as if they had been sent. Code that reads requests
 * therefore needs to know nothing of layers. Only what is not the layer's own goes to the server.
 *
 * @typedef {{name: string, num_heads: number, d_model: number, d_key: number, d_value: number, d_out: number}} Facts
 * @typedef {Facts & {base: object}} Layer base: the weights, options and masks of the layer
 */
import { LAYER, SENTENCE } from "../request/presets.js";
import { requestFrom, safetensorsFrom, SAFETENSORS } from "../request/safetensors.js";
import { ask } from "./server.js";
import { base64OfBytes, tensorFrom } from "../request/tensor.js";
import { Problem } from "../texts.js";
import { embed, splitText } from "../request/tokens.js";

const PAGE = 1000;

/** Numbers sort by value: "layer 2" before "layer 10". */
const byName = new Intl.Collator("en", { numeric: true });

/** @returns {Promise<Facts[]>} sorted by name; empty if the server keeps no layers */
export async function listLayers() {
  const found = [];
  try {
    for (let after = ""; after !== null; ) {
      const response = await ask(`v1/layers?limit=${PAGE}${after && "&after=" + after}`);
      const { layers, next } = await response.json();
      found.push(...layers.filter(({ d_model: width }) => width > 0));
      after = next ?? null;
    }
  } catch {
    // The layers read so far are usable.
  }
  return found.sort((a, b) => byName.compare(a.name, b.name));
}

/** A tensor whose base64 is made only when the case is written as JSON. */
const lazyTensor = ({ shape, data }) => ({
  shape,
  data,
  toJSON: () => ({
    shape,
    dtype: data instanceof Float64Array ? "float64" : "float32",
    base64: base64OfBytes(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
  }),
});

/** @returns {Promise<Layer>} or throws a Refusal */
export async function fetchLayer(name) {
  if (typeof name !== "string" || !/^[\w-][\w.-]*$/.test(name)) throw new Problem("share.layer", { name });
  const path = "v1/layers/" + encodeURIComponent(name);
  const [facts, file] = await Promise.all([
    ask(path).then((response) => response.json()),
    ask(path, { accept: SAFETENSORS }).then((response) => response.arrayBuffer()),
  ]);
  const base = requestFrom(safetensorsFrom(file), lazyTensor),
    { num_heads, kv_num_heads } = facts;
  return { ...facts, base: { ...base, options: { num_heads, kv_num_heads, ...base.options } } };
}

export const pathOf = ({ endpoint, layer }) => "v1/" + (layer ? `layers/${encodeURIComponent(layer.name)}/attention` : endpoint);

const isSame = (a, b) => ["d_model", "d_key", "d_value"].every((width) => a[width] === b[width]);

/** Layers that take the same inputs. */
export const likeLayer = (layers, layer) => layers.filter((one) => isSame(one, layer));

/** Members of options or masks that differ from the layer's own. */
function added(given, base = {}) {
  const own = Object.entries(given ?? {}).filter(([name, value]) => value !== base[name]);
  return own.length > 0 ? Object.fromEntries(own) : undefined;
}

/** The request as it is sent: without what the layer has. */
export function ownRequest({ request, layer }) {
  if (!layer) return request;
  const { inputs, options, masks, tokens } = request;
  const own = { inputs, masks: added(masks, layer.base.masks), options: added(options, layer.base.options), tokens };
  return Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
}

/**
 * @param {Layer} layer
 * @param {{inputs: object, masks?: object, options?: object, tokens?: object, random?: "inputs"}} own
 * @returns {import("../request/presets.js").Case}
 */
export function caseOver(layer, { inputs, masks, options, tokens, random }) {
  const { base } = layer;
  const request = {
    ...base,
    inputs,
    masks: { ...base.masks, ...masks },
    options: { ...base.options, ...options },
    ...(tokens ? { tokens } : {}),
  };
  return { id: "", endpoint: LAYER, layer, request, random };
}

/**
 * Seeded inputs of the widths that a layer takes.
 * @returns {{inputs: object, tokens: object, random: "inputs"}}
 */
export function inputsOfText(layer, text, seed) {
  const { d_model: width, d_key: keyWidth, d_value: valueWidth } = layer,
    tokens = splitText(text);
  const inputs = { query: embed(tokens, width, seed) };
  if (keyWidth !== width) inputs.key = embed(tokens, keyWidth, seed);
  if (valueWidth !== keyWidth) inputs.value = embed(tokens, valueWidth, seed);
  return { inputs, tokens: { query: tokens }, random: "inputs" };
}

/**
 * The inputs of a case if the layer can take them; else seeded vectors for its words.
 * @returns {{inputs: object, masks?: object, tokens?: object, random?: "inputs"}}
 */
export function inputsFor(layer, { request, layer: before, random }) {
  const { inputs, tokens } = request;
  const shape = (name) => inputs[name] && tensorFrom(inputs[name]).shape;
  const query = shape("query"),
    key = shape("key") ?? query,
    value = shape("value") ?? key;
  const widths = { d_model: query.at(-1), d_key: key.at(-1), d_value: value.at(-1) };
  if (query.length <= 3 && isSame(widths, layer))
    return { inputs, tokens, masks: before && added(request.masks, before.base.masks), random: random ? "inputs" : undefined };
  const words = Array.isArray(tokens?.query?.[0]) ? tokens.query[0] : tokens?.query;
  return inputsOfText(layer, words ? words.join(" ") : SENTENCE, 7);
}
