/**
 * api.js: sends requests, and reads answers into tensors. Without a server (in a copy opened from disk), reference.js
 * computes the answers.
 *
 * @typedef {import("../request/tensor.js").Tensor} Tensor
 * @typedef {{outputs: Record<string, Tensor>, effective: object, diagnostics: object, isLocal: boolean,
 *            elapsed: number, timing: string, skipped: string[], thumbs?: Tensor, onlyHead?: number}} Answer
 *          thumbs: pooled maps of all heads, if outputs has one head only
 */
import { matrixOf, tensorFrom } from "../request/tensor.js";
import { modelOf } from "../request/reference.js";
import { LAYER } from "../request/presets.js";
import { ownRequest, pathOf } from "./layers.js";
import { safetensorsFrom, SAFETENSORS } from "../request/safetensors.js";
import { ask, hasServer, reached } from "./server.js";

/** From this many cells of all maps on, an answer is fetched as safetensors and not as JSON. */
const BINARY = 1 << 14;

/** From this many on, the map of one head is fetched in full. The others are fetched as thumbnails. */
const ONE_HEAD = 1 << 22;

const THUMB = 64;

export const shapeOf = (json) => {
  const shape = [];
  if (!Array.isArray(json)) return json?.shape ?? [];
  for (let inner = json; Array.isArray(inner); inner = inner[0]) shape.push(inner.length);
  return shape;
};

/** Number of cells of all maps, computed from the request. */
export function mapCells({ request, endpoint }) {
  const query = shapeOf(request.inputs?.query),
    key = shapeOf(request.inputs?.key ?? request.inputs?.query);
  const batch = query.length === 2 ? 1 : (query[0] ?? 1);
  return (query.at(-2) ?? 0) * (key.at(-2) ?? 0) * batch * headCount({ request, endpoint });
}

/** All steps that this request has. */
export function stepsOf({ request, endpoint }) {
  const { options = {}, weights = {} } = request;
  const rotated = options.rope ? ["q_rotated", "k_rotated"] : [];
  const dropped = options.training && options.dropout?.p > 0 ? ["dropped"] : [];
  const steps = [
    "q",
    "k",
    "v",
    ...rotated,
    "scores",
    "scaled",
    "masked",
    "attention",
    ...dropped,
    "lse",
    "entropy",
    "context",
    "concat",
  ];
  if (endpoint === LAYER) {
    if (weights.output) steps.push("projected");
    if (options.residual) steps.push("residual");
  }
  return [...steps, "output", "mask"];
}

const headCount = ({ request, endpoint }) => {
  const query = shapeOf(request.inputs?.query);
  return query.length === 4 && endpoint !== LAYER ? query[1] : (request.options?.num_heads ?? 1);
};

const isOneHead = (given) => mapCells(given) >= ONE_HEAD && headCount(given) > 1 && !given.request.options?.heads;

/** The request as it is sent and copied. A return list of its own is left as it is. */
export function requestToSend(given, head = 0, leftOut = []) {
  const request = ownRequest(given);
  const options = { ...request.options };
  if (isOneHead(given))
    Object.assign(options, { return: ["attention", "output"], heads: [Math.min(head, headCount(given) - 1)] });
  if (!options.return) options.return = stepsOf(given).filter((name) => !leftOut.includes(name));
  return { ...request, options };
}

/** Requests all heads, pooled to the size of thumbnails. Such an answer is small, so that it may be a text. */
function thumbsRequest(given, wanted = ["attention"]) {
  const request = ownRequest(given),
    pool = { rows: THUMB, cols: THUMB, op: "max" };
  return { ...request, options: { ...request.options, return: wanted, pool, format: "base64" } };
}

/** Asks for an answer that may be a text, with the progress of its computation. */
export const askForSmall = async (path, body, signal) => readAnswer(await ask(path, { accept: SAFETENSORS, body, signal, hasEvents: true }));

/**
 * Reads tensors of an answer, in safetensors or in JSON: "head_scores.entropy" is one of a group.
 * @returns {Promise<any>} outputs, effective, diagnostics, and of models tokens and generated
 */
export async function readAnswer(response) {
  if ((response.headers.get("Content-Type") ?? "").startsWith(SAFETENSORS)) {
    const { tensors, metadata } = safetensorsFrom(await reached(response.arrayBuffer()));
    const read = (name) => (metadata[name] ? JSON.parse(metadata[name]) : {});
    const outputs = {};
    for (const [name, tensor] of Object.entries(tensors)) outputs[name.replace(/^outputs\./, "")] = tensor;
    const [effective, diagnostics, words, generated] = ["effective", "diagnostics", "tokens", "generated"].map(read);
    return { outputs, effective, diagnostics, tokens: words, generated };
  }
  const json = JSON.parse(await reached(response.text()));
  return { ...json, outputs: tensorsOf(json.outputs, json.shapes) };
}

const isGroup = (json) => json !== null && typeof json === "object" && !Array.isArray(json) && !json.shape;

/** Nested JSON loses the inner lengths of empty arrays, so the shapes come from the member "shapes". */
function tensorsOf(outputs, shapes = {}, group = "") {
  const tensors = {};
  for (const [last, json] of Object.entries(outputs)) {
    const name = group + last;
    if (isGroup(json)) {
      Object.assign(tensors, tensorsOf(json, shapes, name + "."));
      continue;
    }
    const tensor = tensorFrom(json);
    tensors[name] = { shape: shapes[name] ?? tensor.shape, data: tensor.data };
  }
  return tensors;
}

const mediaFor = (given) =>
  mapCells(given) >= BINARY ? SAFETENSORS + ", application/json;q=0.5" : "application/json";

const post = (given, body, signal) => ask(pathOf(given), { accept: mediaFor(given), body, signal });

/** A server of another version may not know a step. The step that it refuses is left out. */
async function postAllowed(given, head, signal) {
  const skipped = [];
  for (;;) {
    const body = requestToSend(given, head, skipped);
    try {
      return { response: await post(given, body, signal), skipped };
    } catch (problem) {
      const at = /^\/options\/return\/(\d+)$/.exec(problem.pointer ?? "");
      if (!at || given.request.options?.return || skipped.length > 8) throw problem;
      skipped.push(body.options.return[Number(at[1])]);
    }
  }
}

function answerHere(given) {
  const model = modelOf(given.request, given.endpoint === LAYER);
  const isFlat = shapeOf(given.request.inputs.query).length === 2;
  /** @type {Record<string, Tensor>} */
  const outputs = {};
  for (const [name, tensor] of Object.entries(model.steps)) {
    const loses = isFlat && ["concat", "projected", "residual", "output"].includes(name);
    outputs[name] = loses ? { shape: tensor.shape.slice(1), data: tensor.data } : tensor;
  }
  return { outputs, effective: { scale: model.scale, compute: "float64" }, diagnostics: {} };
}

/** For large requests: maps fetched so far per head, and thumbnails of all heads. */
const fetchedHeads = new WeakMap();
/** Most map cells kept per request for going back to a head: 256 MiB. */
const CELLS_CACHED = 1 << 26;

function cacheHead(given, head, answer) {
  const heads = fetchedHeads.get(given) ?? fetchedHeads.set(given, new Map()).get(given),
    most = Math.max(1, Math.floor(CELLS_CACHED / (mapCells(given) / headCount(given))));
  heads.set(head, answer);
  if (heads.size > most) heads.delete(heads.keys().next().value);
}

/**
 * @param {{endpoint: string, request: object}} given
 * @param {number} head the one to fetch if all heads are too large
 * @param {AbortSignal} [signal]
 * @returns {Promise<Answer>}
 */
export async function compute(given, head, signal) {
  const begun = performance.now();
  const since = () => performance.now() - begun;
  if (!hasServer()) return { ...answerHere(given), isLocal: true, elapsed: since(), timing: "", skipped: [] };
  const heads = fetchedHeads.get(given);
  if (heads?.has(head)) return heads.get(head);
  const thumbnails = isOneHead(given) ? (heads?.values().next().value.thumbs ?? thumbsOf(given, signal)) : null;
  const { response, skipped } = await postAllowed(given, head, signal);
  const answer = await readAnswer(response);
  const timing = response.headers.get("Server-Timing") ?? "";
  const part = thumbnails ? { thumbs: await thumbnails, onlyHead: head } : {};
  const found = { ...answer, ...part, isLocal: false, elapsed: since(), timing, skipped };
  if (thumbnails) cacheHead(given, head, found);
  return found;
}

/** From this many cells per map on, the full map takes a while, so a small preview comes first. */
const FIRST_FROM = 1 << 22;
const FIRST_SIDE = 512;

/** The pooled map of a head, which arrives before the full one. @returns {Promise<import("../request/tensor.js").Matrix | null>} */
export async function firstPicture(given, head, signal) {
  const heads = headCount(given),
    { options } = given.request;
  if (!hasServer() || mapCells(given) / heads < FIRST_FROM || options?.heads || fetchedHeads.get(given)?.has(head)) return null;
  const request = ownRequest(given);
  const pool = { rows: FIRST_SIDE, cols: FIRST_SIDE, op: "max" },
    wanted = { ...request.options, return: ["attention"], heads: [Math.min(head, heads - 1)], pool, dtype: "uint8", format: "base64" };
  const { outputs } = await askForSmall(pathOf(given), { ...request, options: wanted }, signal);
  return matrixOf(outputs.attention, 0, 0);
}

const thumbsOf = async (given, signal) => (await askForSmall(pathOf(given), thumbsRequest(given), signal)).outputs.attention;

/** Thumbnails of the same inputs in another kept layer. */
export async function thumbsOfLayer(name, given, signal) {
  const path = pathOf({ ...given, layer: { name } }),
    body = thumbsRequest(given, ["attention", "mask"]);
  return askForSmall(path, body, signal);
}
