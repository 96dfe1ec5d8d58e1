/**
 * reference.js: computes a request in float64, from the equations. The page checks the server with it, and takes the
 * numbers of explanations from it.
 *
 * @typedef {import("./tensor.js").Tensor} Tensor
 * @typedef {{term: [string, number], formula: string, of: (score: number) => number}} Bend term: name and value of what bends
 * @typedef {object} Model a request in normal form: always a batch, weights as columns
 * @property {boolean} isLayer
 * @property {{batch: number, heads: number, kvHeads: number, qLen: number, kvLen: number, dK: number, dV: number}} size
 * @property {{query: Tensor, key: Tensor, value: Tensor}} inputs (batch, len, dim) or (batch, heads, len, dim)
 * @property {{query?: Tensor}} [normed] the query after a norm in position "pre"
 * @property {Record<string, import("./linear.js").Linear>} linear q, k, v, output: see linear.js
 * @property {{gain: number[], shift: number[]}} [affine] of the norm
 * @property {Masks} masks
 * @property {number} scale
 * @property {Tensor} [scaled] the context times head_scale
 * @property {Bend} [bend] of the scaled scores
 * @property {number[]} [sinks]
 * @property {PositionBias} positions
 * @property {{q: Tensor, k: Tensor, v: Tensor}} [sources] the inputs of the projections
 * @property {Record<string, Tensor>} steps
 * @property {string[]} unknown members of the request that this page cannot recompute
 */
import { tensorFrom, zeros } from "./tensor.js";
import { Masks } from "./masks.js";
import { PositionBias } from "./positions.js";
import {
  affineFrom,
  fusedColumns,
  joinHeads,
  linearFrom,
  normalise,
  pickColumns,
  project,
  splitHeads,
} from "./linear.js";

const KNOWN_OPTIONS = [
  "num_heads",
  "kv_num_heads",
  "scale",
  "softcap",
  "residual",
  "norm",
  "dropout",
  "training",
  "compute",
  "return",
  "format",
  "digits",
  "rope",
  "sinks",
  "head_scale",
  "alibi",
  "relative_bias",
];
const KNOWN_ROPE = ["layout", "theta", "dim", "positions"];

/** Members that change the result, and that this page cannot compute. */
function unknownMembers(request) {
  const options = request.options ?? {};
  const names = Object.keys(options).filter(
    (name) => !KNOWN_OPTIONS.includes(name) && !(name === "mechanism" && options.mechanism === "softmax"),
  );
  for (const name of Object.keys(options.rope ?? {})) if (!KNOWN_ROPE.includes(name)) names.push("rope." + name);
  if (options.dropout?.where?.includes("residual") && options.training) names.push("dropout.where");
  if (request.masks?.blocks?.pattern === "bigbird") names.push("blocks.pattern");
  for (const name of Object.keys(request.inputs)) if (name.startsWith("past_")) names.push(name);
  for (const name of ["query_norm", "key_norm", "query_latent", "key_latent", "key_shared"])
    if (request.weights?.[name]) names.push(name);
  return names;
}

function readInputs(inputs) {
  const read = (json) => {
    const tensor = tensorFrom(json);
    return tensor.shape.length === 2 ? { shape: [1, ...tensor.shape], data: tensor.data } : tensor;
  };
  const query = read(inputs.query);
  const key = inputs.key ? read(inputs.key) : query;
  return { query, key, value: inputs.value ? read(inputs.value) : key };
}

function headsOf(request) {
  const { options = {}, weights = {} } = request;
  const rank3 = (name) => {
    const shape = weights[name]?.weight && tensorFrom(weights[name].weight).shape;
    return shape?.length === 3 ? shape[0] : 0;
  };
  const heads = options.num_heads || rank3("query") || 1;
  return { heads, kvHeads: options.kv_num_heads || rank3("key") || heads };
}

/** q, k and v per head of a layer. */
function projectLayer(model, request, heads, kvHeads) {
  const { weights = {}, options = {} } = request,
    isOutIn = weights.layout === "out_in";
  let { query, key, value } = model.inputs;
  model.affine = affineFrom(weights.norm, query.shape[2]);
  if (options.norm?.position === "pre") {
    const normed = normalise(query, options.norm, model.affine);
    model.normed = { query: normed };
    if (!request.inputs.key && !request.inputs.value) value = normed;
    if (!request.inputs.key) key = normed;
    query = normed;
  }
  model.sources = { q: query, k: key, v: value };
  const read = (name) => linearFrom(weights[name], isOutIn, false);
  if (weights.qkv) {
    const fused = read("qkv"),
      columns = fusedColumns(fused.width, heads, kvHeads, weights.qkv.order);
    for (const name of ["q", "k", "v"]) model.linear[name] = pickColumns(fused, columns[name]);
  } else {
    model.linear = { q: read("query"), k: read("key"), v: read("value") };
  }
  model.steps.q = splitHeads(project(query, model.linear.q), heads);
  model.steps.k = splitHeads(project(key, model.linear.k), kvHeads);
  model.steps.v = splitHeads(project(value, model.linear.v), kvHeads);
  if (weights.output) model.linear.output = linearFrom(weights.output, isOutIn, true);
}

function splitGiven(model, heads, kvHeads) {
  const { query, key, value } = model.inputs;
  const split = (x, n) => (x.shape.length === 4 ? x : splitHeads(x, n));
  model.steps.q = split(query, heads);
  model.steps.k = split(key, kvHeads);
  model.steps.v = split(value, kvHeads);
}

/** Rotates pairs of features by an angle that grows with the position. */
function rotate(x, rope, offset) {
  const [, , length, d] = x.shape,
    rotatedWidth = rope.dim ?? d,
    half = rotatedWidth / 2;
  const out = { shape: x.shape, data: Float64Array.from(x.data) };
  const isInterleaved = rope.layout === "interleaved" || rope.layout === "interleaved_to_half";
  for (let row = 0; row < x.data.length / d; row++) {
    const position = rope.positions ? rope.positions.flat()[row % length] : (row % length) + offset;
    for (let p = 0; p < half; p++) {
      const angle = position * (rope.theta ?? 10000) ** ((-2 * p) / rotatedWidth);
      const a = row * d + (isInterleaved ? 2 * p : p),
        b = isInterleaved ? a + 1 : a + half;
      const toA = row * d + (rope.layout === "interleaved" ? 2 * p : p);
      const toB = rope.layout === "interleaved" ? toA + 1 : toA + half;
      out.data[toA] = x.data[a] * Math.cos(angle) - x.data[b] * Math.sin(angle);
      out.data[toB] = x.data[b] * Math.cos(angle) + x.data[a] * Math.sin(angle);
    }
  }
  return out;
}

/** @returns {Bend} */
function bendOf(c) {
  return { term: ["softcap c", c], formula: "c · tanh({} / c)", of: (score) => c * Math.tanh(score / c) };
}

/**
 * Scores and weights of one query in one head.
 * @param {Model} model with q and k
 * @returns {{scores: Float64Array, scaled: Float64Array, added: Float64Array, masked: Float64Array,
 *            weights: Float64Array, top: number, sum: number, sink: number | undefined, lse: number, entropy: number}}
 */
export function rowOf(model, b, h, i) {
  const { heads, kvHeads, qLen, kvLen, dK } = model.size,
    { scale, bend, sinks, masks, positions } = model;
  const q = (model.steps.q_rotated ?? model.steps.q).data,
    k = (model.steps.k_rotated ?? model.steps.k).data;
  const from = ((b * heads + h) * qLen + i) * dK,
    kv = (b * kvHeads + Math.floor(h / (heads / kvHeads))) * kvLen;
  const row = { sink: sinks?.[h] };
  for (const name of ["scores", "scaled", "added", "masked", "weights"]) row[name] = new Float64Array(kvLen);
  for (let j = 0; j < kvLen; j++) {
    let score = 0;
    for (let c = 0, at = (kv + j) * dK; c < dK; c++) score += q[from + c] * k[at + c];
    row.scores[j] = score;
    row.scaled[j] = bend ? bend.of(score * scale) : score * scale;
    row.added[j] = masks.bias(b, h, i, j) + positions.bias(h, j - i - masks.offset(b));
    row.masked[j] = masks.hiddenBy(b, h, i, j) === null ? row.scaled[j] + row.added[j] : -Infinity;
  }
  return softmaxRow(row);
}

/** Subtracting the largest score leaves the weights unchanged and keeps exp in range. */
function softmaxRow(row) {
  const { masked, weights, sink } = row;
  const most = masked.reduce((a, b) => Math.max(a, b), -Infinity);
  const top = Math.max(most, sink ?? -Infinity);
  if (top === -Infinity) return { ...row, top, sum: 0, lse: top, entropy: 0 };
  let sum = sink === undefined ? 0 : Math.exp(sink - top),
    entropy = 0;
  for (let j = 0; j < masked.length; j++) sum += weights[j] = Math.exp(masked[j] - top);
  for (let j = 0; j < masked.length; j++) {
    weights[j] /= sum;
    if (weights[j] > 0) entropy -= weights[j] * Math.log(weights[j]);
  }
  const lost = sink === undefined ? 0 : Math.exp(sink - top) / sum;
  if (lost > 0) entropy -= lost * Math.log(lost);
  return { ...row, top, sum, lse: top + Math.log(sum), entropy };
}

function attend(model) {
  const { steps } = model,
    { batch, heads, qLen, kvLen } = model.size;
  for (const name of ["scores", "scaled", "masked", "attention", "mask"])
    steps[name] = zeros([batch, heads, qLen, kvLen]);
  for (const name of ["lse", "entropy"]) steps[name] = zeros([batch, heads, qLen]);
  for (let n = 0; n < batch * heads * qLen; n++) {
    const row = rowOf(model, Math.floor(n / (heads * qLen)), Math.floor(n / qLen) % heads, n % qLen);
    for (const name of ["scores", "scaled", "masked"]) steps[name].data.set(row[name], n * kvLen);
    steps.attention.data.set(row.weights, n * kvLen);
    steps.mask.data.set(
      row.masked.map((value) => Number(value > -Infinity)),
      n * kvLen,
    );
    steps.lse.data[n] = row.lse;
    steps.entropy.data[n] = row.entropy;
  }
}

/** Weights after dropout. The server draws the dropped weights by its seed, so they are taken from its result. */
function drop(model, options, given) {
  const { p = 0 } = options.dropout ?? {};
  if (!options.training || p === 0 || (options.dropout.where && !options.dropout.where.includes("attention"))) return;
  if (!given?.dropped || !given.attention) return;
  const attention = model.steps.attention.data,
    dropped = zeros(model.steps.attention.shape);
  for (let at = 0; at < attention.length; at++)
    dropped.data[at] = given.dropped.data[at] === 0 ? 0 : attention[at] / (1 - p);
  model.steps.dropped = dropped;
}

function mix(model) {
  const { steps } = model,
    { batch, heads, kvHeads, qLen, kvLen, dV } = model.size;
  const weights = steps.dropped ?? steps.attention;
  steps.context = zeros([batch, heads, qLen, dV]);
  for (let b = 0, row = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < qLen; i++, row++) {
        const kv = b * kvHeads + Math.floor(h / (heads / kvHeads));
        for (let j = 0; j < kvLen; j++) {
          const weight = weights.data[row * kvLen + j];
          if (weight === 0) continue;
          for (let c = 0; c < dV; c++)
            steps.context.data[row * dV + c] += weight * steps.v.data[(kv * kvLen + j) * dV + c];
        }
      }
  model.scaled = scaleHeads(steps.context, model.headScale);
  steps.concat = joinHeads(model.scaled);
}

/** The context times the factor of each head. A factor of 0 gives 0, even for NaN. */
function scaleHeads(context, factors) {
  if (!factors) return context;
  const [, heads, qLen, dV] = context.shape;
  const scale = (value, at) => {
    const factor = factors[Math.floor(at / (qLen * dV)) % heads];
    return factor === 0 ? 0 : factor * value;
  };
  return { shape: context.shape, data: context.data.map(scale) };
}

function finish(model, request) {
  const { steps } = model,
    options = request.options ?? {};
  let output = model.inputs.query.shape.length === 4 ? model.scaled : steps.concat;
  if (model.isLayer) {
    output = steps.concat;
    if (model.linear.output) output = steps.projected = project(output, model.linear.output);
    if (options.residual)
      output = steps.residual = {
        shape: output.shape,
        data: output.data.map((value, at) => value + model.inputs.query.data[at]),
      };
    if (options.norm && options.norm.position !== "pre") output = normalise(output, options.norm, model.affine);
  }
  steps.output = output;
}

/**
 * @param {object} request
 * @param {boolean} isLayer multi-head-attention rather than attention
 * @param {Record<string, Tensor>} [given] the server's outputs, which tell the dropped weights
 * @param {boolean} [isSparse] stops after q, k and v; rowOf then computes single rows of the map
 * @returns {Model}
 */
export function modelOf(request, isLayer, given, isSparse = false) {
  const options = request.options ?? {};
  const inputs = readInputs(request.inputs);
  const { heads, kvHeads } = headsOf(request);
  /** @type {any} */
  const model = { isLayer, inputs, linear: {}, steps: {}, unknown: unknownMembers(request) };
  if (isLayer) projectLayer(model, request, heads, kvHeads);
  else splitGiven(model, heads, kvHeads);
  const { q, k, v } = model.steps;
  model.size = {
    batch: q.shape[0],
    heads: q.shape[1],
    kvHeads: k.shape[1],
    qLen: q.shape[2],
    kvLen: k.shape[2],
    dK: q.shape[3],
    dV: v.shape[3],
  };
  model.scale = options.scale === "none" ? 1 : (options.scale ?? 1 / Math.sqrt(model.size.dK));
  model.masks = new Masks(request.masks ?? {}, model.size.qLen, model.size.kvLen);
  if (options.rope) {
    model.steps.q_rotated = rotate(q, options.rope, 0);
    model.steps.k_rotated = rotate(k, options.rope, 0);
  }
  model.bend = options.softcap ? bendOf(options.softcap) : undefined;
  model.sinks = options.sinks && Array.from(tensorFrom(options.sinks).data);
  model.headScale = options.head_scale && Array.from(tensorFrom(options.head_scale).data);
  model.positions = new PositionBias(options, model.size.heads);
  return isSparse ? model : completeModel(model, request, given);
}

/**
 * Computes what follows from q, k and v.
 * @param {Model} model with the steps up to q, k and v
 * @param {{attention?: (model: Model) => void, context?: (model: Model) => void}} [change] called after a step, to
 *        replace its numbers
 * @returns {Model} the same
 */
export function completeModel(model, request, given, change = {}) {
  attend(model);
  change.attention?.(model);
  drop(model, request.options ?? {}, given);
  mix(model);
  change.context?.(model);
  finish(model, request);
  return model;
}

/**
 * The largest difference between two tensors. It is infinite if only one of two numbers is −∞.
 * @returns {{difference: number, at: number}}
 */
export function largestDifference(a, b) {
  let difference = 0,
    at = 0;
  for (let i = 0; i < a.data.length; i++) {
    const one = a.data[i],
      other = b.data[i];
    const here = one === other || (Number.isNaN(one) && Number.isNaN(other)) ? 0 : Math.abs(one - other);
    if (!(here <= difference)) [difference, at] = [here, i];
  }
  return { difference, at };
}
