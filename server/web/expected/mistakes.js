/**
 * mistakes.js: common mistakes in implementations of attention, each computed as such an implementation would.
 *
 * @typedef {import("../request/reference.js").Model} Model
 * @typedef {{id: string, of?: string, make: () => Model}} Mistake of: the part that is wrong, if several parts can be
 */
import { joinHeads } from "../request/linear.js";
import { Masks } from "../request/masks.js";
import { LAYER } from "../request/presets.js";
import { completeModel, modelOf } from "../request/reference.js";
import { tensorFrom } from "../request/tensor.js";
import { roundersOf } from "./rounding.js";

/** What all mistakes start from. */
class Case {
  /** @param {{request: any, endpoint: string}} given @param {Record<string, object>} outputs of the server, for its dropout */
  constructor({ request, endpoint }, outputs) {
    this.request = request;
    this.isLayer = endpoint === LAYER;
    this.outputs = outputs;
    this.model = this.#begin(request);
  }
  #begin = (request) => modelOf(request, this.isLayer, undefined, true);

  /** Computes another request. */
  withRequest = (patch) => () => {
    const request = { ...this.request, ...patch };
    return completeModel(this.#begin(request), request, this.outputs);
  };
  /** Computes the same request in another way. */
  withComputation = (prepare, change) => () => {
    const model = this.#begin(this.request);
    prepare(model);
    return completeModel(model, this.request, this.outputs, change);
  };
}

// ---- scale ---------------------------------------------------------------------------------------------------------

function scales({ request, model, withRequest }) {
  const { dK, heads } = model.size,
    standard = 1 / Math.sqrt(dK);
  /** @type {[string, number][]} */
  const found = [
    ["scaleNone", 1],
    ["scaleUsual", standard],
    ["scaleWidth", 1 / Math.sqrt(heads * dK)],
    ["scaleTwice", standard * model.scale],
  ];
  const different = found.filter(([, scale], n) => scale !== model.scale && found.findIndex(([, one]) => one === scale) === n);
  return different.map(([id, scale]) => ({ id, make: withRequest({ options: { ...request.options, scale } }) }));
}

// ---- masks ---------------------------------------------------------------------------------------------------------

const finite = (value) => (value === -Infinity ? 0 : value);

/** The masks of a request, but with another test for what is hidden. */
const withHidden = (rules, hiddenBy) => ({
  hiddenBy,
  bias: (...at) => finite(rules.bias(...at)),
  offset: (b) => rules.offset(b),
});

const openMasks = (model) => {
  model.masks = withHidden(model.masks, () => null);
};

/** @returns {boolean[]} whether a cell is hidden, for every cell of every map */
function hiddenCells({ size: { batch, heads, qLen, kvLen } }, rules) {
  return Array.from({ length: batch * heads * qLen * kvLen }, (_, n) => {
    const row = Math.floor(n / kvLen),
      map = Math.floor(row / qLen);
    return rules.hiddenBy(Math.floor(map / heads), map % heads, row % qLen, n % kvLen) !== null;
  });
}

/** Sets weights, or scores, to 0 where a key is hidden. */
const closeAfter = (name, hidden) => (model) => {
  model.steps[name].data.forEach((_, n, data) => {
    if (hidden[n]) data[n] = 0;
  });
};

/** A row without keys becomes 0 / 0, where the server gives 0. */
const emptyRowsNaN = (model) => {
  const { data } = model.steps.attention,
    { kvLen } = model.size;
  for (let from = 0; from < data.length; from += kvLen)
    if (data.subarray(from, from + kvLen).every((value) => value === 0)) data.fill(NaN, from, from + kvLen);
};

const flipped = (json) => {
  const { shape, data } = tensorFrom(json);
  return { shape, data: data.map((value) => Number(!value)) };
};

function masks({ request, model, withRequest, withComputation }) {
  const rules = model.masks,
    given = request.masks ?? {},
    { qLen, kvLen } = model.size,
    hidden = hiddenCells(model, rules);
  const found = [],
    withMasks = (more) => withRequest({ masks: { ...given, ...more } });
  if (hidden.includes(true)) {
    const zeroed = closeAfter("masked", hidden);
    const invert = (one) => {
      one.masks = withHidden(rules, (...at) => (rules.hiddenBy(...at) === null ? "attend" : null));
    };
    found.push({ id: "maskAfter", make: withComputation(openMasks, { attention: closeAfter("attention", hidden) }) });
    found.push({ id: "maskInverted", make: withComputation(invert) });
    found.push({ id: "maskNone", make: withComputation(openMasks) });
    found.push({ id: "maskNaN", make: withComputation(() => {}, { attention: emptyRowsNaN }) });
    if (!model.sinks)
      found.push({
        id: "maskZero",
        make: withComputation(openMasks, {
          attention: (one) => {
            zeroed(one);
            softmaxOf(one, "key");
          },
        }),
      });
    for (const name of ["attend", "padding"])
      if (given[name] !== undefined) found.push({ id: "maskInverted", of: name, make: withMasks({ [name]: flipped(given[name]) }) });
  }
  const align = (name) => ({ causal: { ...(typeof given.causal === "object" ? given.causal : {}), align: name } });
  if (!given.causal) found.push({ id: "causalAdded", make: withMasks({ causal: true }) });
  else if (qLen !== kvLen) {
    const isBottom = rules.offset(0) !== new Masks({ ...given, ...align("top_left") }, qLen, kvLen).offset(0);
    found.push({ id: isBottom ? "causalTop" : "causalBottom", make: withMasks(align(isBottom ? "top_left" : "bottom_right")) });
  }
  return found;
}

/** A causal mask off by one: it hides the token itself, or shows the next one. */
function shiftedCausal({ request, model, withComputation }) {
  if (!request.masks?.causal) return [];
  const rules = model.masks,
    ruled = (hiddenBy) => (one) => {
      one.masks = withHidden(rules, hiddenBy);
    };
  const strict = ruled((b, h, i, j) => (j === i + rules.offset(b) ? "causal" : rules.hiddenBy(b, h, i, j))),
    loose = ruled((b, h, i, j) => (j === i + 1 + rules.offset(b) ? null : rules.hiddenBy(b, h, i, j)));
  return [
    { id: "causalStrict", make: withComputation(strict) },
    { id: "causalStrict", make: withComputation(strict, { attention: emptyRowsNaN }) },
    { id: "causalLoose", make: withComputation(loose) },
  ];
}

// ---- softmax -------------------------------------------------------------------------------------------------------

/** Computes the softmax of the masked scores again: per row, or per column. */
function softmaxOf({ steps, size: { qLen, kvLen } }, over) {
  const [count, lines, step, stride] = over === "key" ? [kvLen, qLen, 1, kvLen] : [qLen, kvLen, kvLen, 1];
  const { data } = steps.masked;
  for (let map = 0; map < data.length; map += qLen * kvLen)
    for (let line = 0; line < lines; line++) {
      const from = map + line * stride;
      let top = -Infinity,
        sum = 0;
      for (let n = 0; n < count; n++) top = Math.max(top, data[from + n * step]);
      for (let n = 0; n < count; n++) sum += top === -Infinity ? 0 : Math.exp(data[from + n * step] - top);
      for (let n = 0; n < count; n++)
        steps.attention.data[from + n * step] = sum === 0 ? 0 : Math.exp(data[from + n * step] - top) / sum;
    }
}

/** @param {number} empty weight of a key that is hidden in all heads */
const softmaxOverHeads = (empty) => ({ steps, size: { batch, heads, qLen, kvLen } }) => {
  const size = qLen * kvLen,
    { data } = steps.masked;
  for (let b = 0; b < batch; b++)
    for (let cell = 0; cell < size; cell++) {
      const places = Array.from({ length: heads }, (_, h) => (b * heads + h) * size + cell),
        top = Math.max(...places.map((at) => data[at])),
        powers = places.map((at) => Math.exp(data[at] - top)),
        sum = powers.reduce((total, power) => total + power, 0);
      places.forEach((at, h) => (steps.attention.data[at] = top === -Infinity ? empty : powers[h] / sum));
    }
};

function softmaxes({ model, withComputation }) {
  if (model.sinks) return [];
  const over = (id, attention) => ({ id, make: withComputation(() => {}, { attention }) }),
    { heads } = model.size;
  const overHeads = heads > 1 ? [0, 1 / heads].map((empty) => over("softmaxHeads", softmaxOverHeads(empty))) : [];
  return [over("softmaxQueries", (one) => softmaxOf(one, "query")), ...overHeads];
}

/** Weights scaled as in training with dropout, with none of them dropped. */
function dropoutScaling({ request, withComputation }) {
  const { training, dropout } = request.options ?? {};
  if (training) return [];
  const scaled = (p) => (one) => one.steps.attention.data.forEach((weight, at, data) => (data[at] = weight / (1 - p)));
  return Array.from(new Set([0.1, 0.2, 0.5, dropout?.p ?? 0.1]), (p) => ({
    id: "dropoutScaled",
    of: `p = ${p}`,
    make: withComputation(() => {}, { attention: scaled(p) }),
  }));
}

// ---- keys and heads ------------------------------------------------------------------------------------------------

/** K reshaped to (d, len) instead of transposed. */
function keysAsTheyLie({ shape, data }) {
  const [batch, heads, length, d] = shape,
    out = new Float64Array(data.length);
  for (let map = 0; map < batch * heads; map++)
    for (let j = 0; j < length; j++)
      for (let c = 0; c < d; c++) out[(map * length + j) * d + c] = data[(map * d + c) * length + j];
  return { shape, data: out };
}

function keys({ model, withComputation }) {
  const { kvLen, dK } = model.size;
  if (kvLen === 1 || dK === 1) return [];
  const before = model.steps.k_rotated;
  const make = withComputation((one) => {
    one.steps.k_rotated = keysAsTheyLie(one.steps.k_rotated ?? one.steps.k);
  });
  const put = () => {
    const made = make();
    if (before) made.steps.k_rotated = before;
    else delete made.steps.k_rotated;
    return made;
  };
  return [{ id: kvLen === dK ? "keysPlain" : "keysReshaped", make: put }];
}

/** Key heads tiled (0, 1, 0, 1) instead of repeated (0, 0, 1, 1). */
function tiled({ shape: [batch, kvHeads, length, d], data }, heads) {
  const size = length * d,
    out = new Float64Array(batch * heads * size);
  for (let b = 0; b < batch; b++)
    for (let h = 0; h < heads; h++) {
      const from = (b * kvHeads + (h % kvHeads)) * size;
      out.set(data.subarray(from, from + size), (b * heads + h) * size);
    }
  return { shape: [batch, heads, length, d], data: out };
}

function groups({ model, withComputation }) {
  const { heads, kvHeads } = model.size;
  if (kvHeads === 1 || kvHeads === heads) return [];
  const names = ["k", "v", "k_rotated"].filter((name) => model.steps[name]);
  const make = withComputation((one) => {
    one.size = { ...one.size, kvHeads: heads };
    for (const name of names) one.steps[name] = tiled(one.steps[name], heads);
  });
  const put = () => {
    const made = make();
    for (const name of names) made.steps[name] = model.steps[name];
    return made;
  };
  return [{ id: "groupsTiled", make: put }];
}

/** Feature c of a head is at c · heads + head. */
function interleaved({ shape, data }, isBack) {
  const [batch, heads, length, d] = shape,
    out = new Float64Array(data.length);
  for (let b = 0, at = 0; b < batch; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < length; i++)
        for (let c = 0; c < d; c++, at++) {
          const flat = (b * length + i) * heads * d + c * heads + h;
          if (isBack) out[flat] = data[at];
          else out[at] = joinedAt(data, shape, b, i, c * heads + h);
        }
  return out;
}

/** Value of a feature when the heads are joined. */
const joinedAt = (data, [, heads, length, d], b, i, feature) =>
  data[((b * heads + Math.floor(feature / d)) * length + i) * d + (feature % d)];

const HEADS = ["q", "k", "v"];

function headSplits({ model, request, withComputation }) {
  const isGiven = model.inputs.query.shape.length === 4;
  if (model.size.heads === 1 || isGiven) return [];
  const join = (write) => ({
    context: (one) => {
      one.steps.concat = { shape: one.steps.concat.shape, data: write(one.scaled) };
    },
  });
  const split = (read) => (one) => {
    for (const name of HEADS) one.steps[name] = { shape: one.steps[name].shape, data: read(one.steps[name]) };
  };
  const asItLies = join(({ data }) => data.slice());
  const found = [{ id: "headsJoined", make: withComputation(() => {}, asItLies) }];
  if (request.options?.rope) return found;
  return [
    ...found,
    { id: "headsInterleaved", make: withComputation(split((one) => interleaved(one, false)), join((one) => interleaved(one, true))) },
    { id: "headsReshaped", make: withComputation(split((one) => joinHeads(one).data), asItLies) },
    { id: "headsReshaped", make: withComputation(split((one) => joinHeads(one).data)) },
  ];
}

// ---- weights, positions --------------------------------------------------------------------------------------------

const WEIGHT_LABELS = { query: "W_Q", key: "W_K", value: "W_V", output: "W_O" };

function transposedWeight(json) {
  const { shape, data } = tensorFrom(json.weight),
    [size] = shape;
  return { ...json, weight: { shape, data: data.map((_, at) => data[(at % size) * size + Math.floor(at / size)]) } };
}

function transposed({ request, withRequest }) {
  const { weights = {} } = request;
  const square = Object.keys(WEIGHT_LABELS).filter((name) => {
    const shape = weights[name]?.weight ? tensorFrom(weights[name].weight).shape : [];
    return shape.length === 2 && shape[0] === shape[1];
  });
  const mistake = (names) => ({
    id: "transposed",
    of: names.map((name) => WEIGHT_LABELS[name]).join(", "),
    make: withRequest({ weights: { ...weights, ...Object.fromEntries(names.map((name) => [name, transposedWeight(weights[name])])) } }),
  });
  return [...square.map((name) => mistake([name])), ...(square.length > 1 ? [mistake(square)] : [])];
}

/** Computes the request with other weights. */
const withWeights = ({ request, withRequest }, replaced) => withRequest({ weights: { ...request.weights, ...replaced } });

function biases(one) {
  const { weights = {} } = one.request,
    biased = Object.keys(WEIGHT_LABELS).filter((name) => weights[name]?.bias);
  const mistake = (names) => ({
    id: "biasNone",
    of: names.map((name) => WEIGHT_LABELS[name]).join(", "),
    make: withWeights(one, Object.fromEntries(names.map((name) => [name, { ...weights[name], bias: undefined }]))),
  });
  return [...biased.map((name) => mistake([name])), ...(biased.length > 1 ? [mistake(biased)] : [])];
}

/** Swaps two of Q, K and V: their weights, or the inputs themselves if there are no weights. */
function swaps(one) {
  const { request, isLayer, withRequest } = one,
    owner = (isLayer ? request.weights : request.inputs) ?? {};
  const shapeAt = (name) => {
    const json = isLayer ? owner[name]?.weight : owner[name];
    return json && String(tensorFrom(json).shape);
  };
  const pairs = [["query", "key"], ["key", "value"]].filter(([a, b]) => shapeAt(a) && shapeAt(a) === shapeAt(b));
  return pairs.map(([a, b]) => {
    const replaced = { [a]: owner[b], [b]: owner[a] };
    return {
      id: "swapped",
      of: [a, b].map((name) => name[0].toUpperCase()).join(", "),
      make: isLayer ? withWeights(one, replaced) : withRequest({ inputs: { ...owner, ...replaced } }),
    };
  });
}

function rotations({ request, withRequest }) {
  const { rope } = request.options ?? {};
  if (!rope) return [];
  const layout = (rope.layout ?? "half").startsWith("interleaved") ? "half" : "interleaved";
  return [
    { id: "rope", make: withRequest({ options: { ...request.options, rope: { ...rope, layout } } }) },
    { id: "ropeNone", make: withRequest({ options: { ...request.options, rope: undefined } }) },
  ];
}

// ---- types of two bytes --------------------------------------------------------------------------------------------

const ofTensors = (members, change) =>
  Object.fromEntries(Object.entries(members).map(([name, json]) => [name, Array.isArray(json) || json?.shape ? change(json) : json]));

/** Rounds everything that is stored. Sums and exponentials stay float64. */
function roundedModel({ request, isLayer, outputs }, round) {
  const ofTensor = ({ shape, data }) => ({ shape, data: Float64Array.from(data, round) }),
    ofJson = (json) => ofTensor(tensorFrom(json));
  const weights = Object.fromEntries(
    Object.entries(request.weights ?? {}).map(([name, one]) => [name, typeof one === "object" ? ofTensors(one, ofJson) : one]),
  );
  const roundedRequest = { ...request, inputs: ofTensors(request.inputs, ofJson), ...(request.weights ? { weights } : {}) },
    model = modelOf(roundedRequest, isLayer, undefined, true);
  const roundSteps = (names) => {
    for (const name of names) if (model.steps[name]) model.steps[name] = ofTensor(model.steps[name]);
  };
  roundSteps(["q", "k", "v", "q_rotated", "k_rotated"]);
  const attention = () => {
    const { scaled, masked } = model.steps,
      added = masked.data.map((value, at) => value - scaled.data[at]);
    roundSteps(["scores"]);
    if (!model.bend) model.steps.scaled = { shape: scaled.shape, data: model.steps.scores.data.map((value) => value * model.scale) };
    roundSteps(["scaled"]);
    model.steps.masked = { shape: masked.shape, data: added.map((value, at) => round(value + model.steps.scaled.data[at])) };
    if (!model.sinks) softmaxOf(model, "key");
    roundSteps(["attention"]);
  };
  const context = () => {
    roundSteps(["context", "concat"]);
    model.scaled = ofTensor(model.scaled);
  };
  completeModel(model, roundedRequest, outputs, { attention, context });
  roundSteps(["projected", "residual", "output"]);
  return model;
}

const roundings = (one) => roundersOf().map(({ id, round }) => ({ id, make: () => roundedModel(one, round) }));

/** @returns {Mistake[]} the mistakes that are possible in this request */
export function mistakesFor(given, outputs) {
  const one = new Case(given, outputs);
  if (one.model.unknown.length > 0) return [];
  const kinds = [scales, masks, shiftedCausal, softmaxes, dropoutScaling, keys, groups, headSplits, transposed, biases, swaps, rotations, roundings];
  return kinds.flatMap((make) => make(one));
}
