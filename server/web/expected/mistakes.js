/**
 * mistakes.js: common mistakes in implementations of attention, each computed as such an implementation would.
 *
 * Mistakes are data, so that several can be made at once.
 *
 * @typedef {import("../request/reference.js").Model} Model
 * @typedef {object} Mistake
 * @property {string} id
 * @property {string} [of] the part that is wrong, if several parts can be
 * @property {object} [patch] of the request: members that have other values; undefined removes a member
 * @property {(model: Model) => void} [prepare] changes a model of the steps up to q, k and v
 * @property {(model: Model) => void} [attention] changes the weights
 * @property {(model: Model) => void} [context] changes the context
 * @property {(model: Model, before: Record<string, object>) => void} [after] puts back steps that the implementation has, too
 * @property {(value: number) => number} [round] stores every number in another type
 * @property {(row: Float64Array) => void} [softmax] of a rounded row, in place
 */
import { joinHeads } from "../request/linear.js";
import { Masks } from "../request/masks.js";
import { LAYER } from "../request/presets.js";
import { completeModel, modelOf } from "../request/reference.js";
import { tensorFrom } from "../request/tensor.js";
import { roundersOf } from "./rounding.js";

const isLeaf = (value) => value === null || typeof value !== "object" || Array.isArray(value) || Boolean(value.shape);

/** Puts the members of a patch into a request, as deep as both have members. */
function patched(value, patch) {
  if (isLeaf(patch) || isLeaf(value)) return patch;
  return { ...value, ...Object.fromEntries(Object.entries(patch).map(([name, one]) => [name, patched(value[name], one)])) };
}

/** What all mistakes start from. */
export class Case {
  /** @param {{request: any, endpoint: string}} given @param {Record<string, object>} outputs of the server, for its dropout */
  constructor({ request, endpoint }, outputs) {
    this.request = request;
    this.isLayer = endpoint === LAYER;
    this.outputs = outputs;
    this.model = this.#begin(request);
  }
  #begin = (request) => modelOf(request, this.isLayer, undefined, true);

  /** @param {Mistake[]} mistakes made at once @returns {Model} */
  make(mistakes) {
    if (mistakes[0]?.round) return roundedModel(this, mistakes[0]);
    const request = mistakes.reduce((made, { patch }) => (patch ? patched(made, patch) : made), this.request),
      model = this.#begin(request),
      before = { ...model.steps };
    const run = (name) => () => mistakes.forEach((one) => one[name]?.(model, before));
    run("prepare")();
    completeModel(model, request, this.outputs, { attention: run("attention"), context: run("context") });
    run("after")();
    return model;
  }
}

// ---- scale ---------------------------------------------------------------------------------------------------------

/** Two of them may be the same number: the values cannot tell them apart. */
function scales({ model }) {
  const { dK, heads } = model.size,
    standard = 1 / Math.sqrt(dK);
  /** @type {[string, number][]} */
  const found = [
    ["scaleNone", 1],
    ["scaleUsual", standard],
    ["scaleWidth", 1 / Math.sqrt(heads * dK)],
    ["scaleTwice", standard * model.scale],
  ];
  return found.filter(([, scale]) => scale !== model.scale).map(([id, scale]) => ({ id, patch: { options: { scale } } }));
}

// ---- masks ---------------------------------------------------------------------------------------------------------

const finite = (value) => (value === -Infinity ? 0 : value);

/** The masks of a request, but with another test for what is hidden. */
const withHidden = (rules, hiddenBy) => ({
  hiddenBy,
  bias: (...at) => finite(rules.bias(...at)),
  offset: (b) => rules.offset(b),
});

/** Replaces what hides a key. @param {(rules: any) => (b: number, h: number, i: number, j: number) => string | null} hiddenBy */
const ruled = (hiddenBy) => (model) => {
  model.masks = withHidden(model.masks, hiddenBy(model.masks));
};

const openMasks = ruled(() => () => null);

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

function masks({ request, model }) {
  const rules = model.masks,
    given = request.masks ?? {},
    { qLen, kvLen } = model.size,
    hidden = hiddenCells(model, rules);
  const found = [];
  if (hidden.includes(true)) {
    const zeroed = closeAfter("masked", hidden);
    const closedAtZero = (one) => {
      zeroed(one);
      softmaxOf(one, "key");
    };
    found.push({ id: "maskNone", prepare: openMasks });
    found.push({ id: "maskAfter", prepare: openMasks, attention: closeAfter("attention", hidden) });
    found.push({ id: "maskNaN", attention: emptyRowsNaN });
    if (!model.sinks) found.push({ id: "maskZero", prepare: openMasks, attention: closedAtZero });
    for (const name of ["attend", "padding"])
      if (given[name] !== undefined) found.push({ id: "maskInverted", of: name, patch: { masks: { [name]: flipped(given[name]) } } });
    found.push({ id: "maskInverted", prepare: ruled((open) => (...at) => (open.hiddenBy(...at) === null ? "attend" : null)) });
  }
  const align = (name) => ({ causal: { ...(typeof given.causal === "object" ? given.causal : {}), align: name } });
  if (!given.causal) found.push({ id: "causalAdded", patch: { masks: { causal: true } } });
  else if (qLen !== kvLen) {
    const isBottom = rules.offset(0) !== new Masks({ ...given, ...align("top_left") }, qLen, kvLen).offset(0);
    found.push({ id: isBottom ? "causalTop" : "causalBottom", patch: { masks: align(isBottom ? "top_left" : "bottom_right") } });
  }
  return found;
}

/** A causal mask off by one: it hides the token itself, or shows the next one. */
function shiftedCausal({ request }) {
  if (!request.masks?.causal) return [];
  const strict = ruled((rules) => (b, h, i, j) => (j === i + rules.offset(b) ? "causal" : rules.hiddenBy(b, h, i, j))),
    loose = ruled((rules) => (b, h, i, j) => (j === i + 1 + rules.offset(b) ? null : rules.hiddenBy(b, h, i, j)));
  return [
    { id: "causalStrict", prepare: strict },
    { id: "causalStrict", prepare: strict, attention: emptyRowsNaN },
    { id: "causalLoose", prepare: loose },
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

function softmaxes({ model }) {
  if (model.sinks) return [];
  const overHeads = model.size.heads > 1 ? [0, 1 / model.size.heads].map((empty) => ({ id: "softmaxHeads", attention: softmaxOverHeads(empty) })) : [];
  return [{ id: "softmaxQueries", attention: (one) => softmaxOf(one, "query") }, ...overHeads];
}

/** Weights scaled as in training with dropout, with none of them dropped. */
function dropoutScaling({ request }) {
  const { training, dropout } = request.options ?? {};
  if (training) return [];
  const scaled = (p) => (one) => one.steps.attention.data.forEach((weight, at, data) => (data[at] = weight / (1 - p)));
  return Array.from(new Set([0.1, 0.2, 0.5, dropout?.p ?? 0.1]), (p) => ({ id: "dropoutScaled", of: `p = ${p}`, attention: scaled(p) }));
}

/** Weights below this share of the largest say nothing of dropout. */
const TOLD_FROM = 1e-3;

/**
 * Dropout at work: some weights are 0, and all others are divided by the same 1 − p. Only the weights themselves can show
 * it. There must be as many zeros as p allows.
 * @param {ArrayLike<number> | null} expected weights, in the order of the model's
 */
function dropoutAtWork(one, expected) {
  if (!expected || one.request.options?.training) return [];
  const { data } = one.make([]).steps.attention,
    told = Array.from(data.keys()).filter((at) => data[at] > TOLD_FROM),
    kept = told.filter((at) => expected[at] !== 0),
    zeros = (told.length - kept.length) / told.length;
  const ratios = kept.map((at) => expected[at] / data[at]).sort((a, b) => a - b),
    p = 1 - 1 / ratios[ratios.length >> 1],
    spread = Math.sqrt((p * (1 - p)) / told.length);
  if (!(p > 0.01 && p < 0.95) || zeros === 0 || Math.abs(zeros - p) > 4 * spread + 0.01) return [];
  const drop = ({ steps }) => steps.attention.data.forEach((weight, at, all) => (all[at] = expected[at] === 0 ? 0 : weight / (1 - p)));
  return [{ id: "dropoutActive", of: `p = ${Math.round(100 * p) / 100}`, attention: drop }];
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

function keys({ model }) {
  const { kvLen, dK } = model.size;
  if (kvLen === 1 || dK === 1) return [];
  const reshape = (one) => {
    one.steps.k_rotated = keysAsTheyLie(one.steps.k_rotated ?? one.steps.k);
  };
  const after = (one, before) => {
    if (before.k_rotated) one.steps.k_rotated = before.k_rotated;
    else delete one.steps.k_rotated;
  };
  return [{ id: kvLen === dK ? "keysPlain" : "keysReshaped", prepare: reshape, after }];
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

function groups({ model }) {
  const { heads, kvHeads } = model.size;
  if (kvHeads === 1 || kvHeads === heads) return [];
  const namesIn = ({ steps }) => ["k", "v", "k_rotated"].filter((name) => steps[name]);
  const prepare = (one) => {
    one.size = { ...one.size, kvHeads: heads };
    for (const name of namesIn(one)) one.steps[name] = tiled(one.steps[name], heads);
  };
  const after = (one, before) => {
    for (const name of namesIn(one)) if (before[name]) one.steps[name] = before[name];
  };
  return [{ id: "groupsTiled", prepare, after }];
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

function headSplits({ model, request }) {
  const isGiven = model.inputs.query.shape.length === 4;
  if (model.size.heads === 1 || isGiven) return [];
  const join = (write) => (one) => {
    one.steps.concat = { shape: one.steps.concat.shape, data: write(one.scaled) };
  };
  const split = (read) => (one) => {
    for (const name of HEADS) one.steps[name] = { shape: one.steps[name].shape, data: read(one.steps[name]) };
  };
  const asItLies = join(({ data }) => data.slice());
  const found = [{ id: "headsJoined", context: asItLies }];
  if (request.options?.rope) return found;
  const reshape = split((one) => joinHeads(one).data);
  return [
    ...found,
    { id: "headsInterleaved", prepare: split((one) => interleaved(one, false)), context: join((one) => interleaved(one, true)) },
    { id: "headsReshaped", prepare: reshape, context: asItLies },
    { id: "headsReshaped", prepare: reshape },
  ];
}

// ---- weights, positions --------------------------------------------------------------------------------------------

const WEIGHT_LABELS = { query: "W_Q", key: "W_K", value: "W_V", output: "W_O" };

function transposedWeight(json) {
  const { shape, data } = tensorFrom(json),
    [size] = shape;
  return { weight: { shape, data: data.map((_, at) => data[(at % size) * size + Math.floor(at / size)]) } };
}

const labelsOf = (names) => names.map((name) => WEIGHT_LABELS[name]).join(", ");

/** Weights that are wrong together: those of the scores, those before the scores and after them, and all. */
const TOGETHER = [["query", "key"], ["query", "key", "value"], ["query", "key", "value", "output"]];

/** A mistake for each weight, then for several. @param {(name: string) => object} wrong */
function forWeights(id, names, wrong) {
  const parts = Object.fromEntries(names.map((name) => [name, wrong(name)])),
    groups = [...names.map((name) => [name]), ...TOGETHER.filter((some) => some.every((name) => names.includes(name)))];
  return groups.map((some) => ({ id, of: labelsOf(some), patch: { weights: Object.fromEntries(some.map((name) => [name, parts[name]])) } }));
}

function transposed({ request }) {
  const { weights = {} } = request;
  const square = Object.keys(WEIGHT_LABELS).filter((name) => {
    const shape = weights[name]?.weight ? tensorFrom(weights[name].weight).shape : [];
    return shape.length === 2 && shape[0] === shape[1];
  });
  return forWeights("transposed", square, (name) => transposedWeight(weights[name].weight));
}

function biases({ request }) {
  const { weights = {} } = request;
  return forWeights("biasNone", Object.keys(WEIGHT_LABELS).filter((name) => weights[name]?.bias), () => ({ bias: undefined }));
}

/** Swaps two of Q, K and V: their weights, or the inputs themselves if there are no weights. */
function swaps({ request, isLayer }) {
  const place = isLayer ? "weights" : "inputs",
    owner = request[place] ?? {};
  const shapeAt = (name) => {
    const json = isLayer ? owner[name]?.weight : owner[name];
    return json && String(tensorFrom(json).shape);
  };
  const whole = (one) => (isLayer ? { bias: undefined, ...one } : one),
    pairs = [["query", "key"], ["key", "value"]].filter(([a, b]) => shapeAt(a) && shapeAt(a) === shapeAt(b));
  return pairs.map(([a, b]) => ({
    id: "swapped",
    of: [a, b].map((name) => name[0].toUpperCase()).join(", "),
    patch: { [place]: { [a]: whole(owner[b]), [b]: whole(owner[a]) } },
  }));
}

function rotations({ request }) {
  const { rope } = request.options ?? {};
  if (!rope) return [];
  const layout = (rope.layout ?? "half").startsWith("interleaved") ? "half" : "interleaved";
  return [
    { id: "rope", patch: { options: { rope: { layout } } } },
    { id: "ropeNone", patch: { options: { rope: undefined } } },
  ];
}

// ---- types of two bytes --------------------------------------------------------------------------------------------

const ofTensors = (members, change) =>
  Object.fromEntries(Object.entries(members).map(([name, json]) => [name, Array.isArray(json) || json?.shape ? change(json) : json]));

/** Softmax as NumPy computes it from numbers of two bytes: it stores exponentials and sums, too. */
const storedSoftmax = (round, isEachSum) => (row) => {
  const top = row.reduce((most, value) => Math.max(most, value), -Infinity),
    powers = row.map((value) => (top === -Infinity ? 0 : round(Math.exp(round(value - top)))));
  const sum = powers.reduce((total, power) => (isEachSum ? round(total + power) : total + power), 0);
  row.set(powers.map((power) => (sum === 0 ? 0 : power / round(sum))));
};

/**
 * Rounds everything that is stored. Sums and exponentials stay float64, unless the softmax is another.
 * @param {Case} one @param {Mistake} mistake
 */
function roundedModel({ request, isLayer, outputs }, { round, softmax }) {
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
    if (softmax) softmaxOfRows(model, softmax);
    else if (!model.sinks) softmaxOf(model, "key");
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

function softmaxOfRows({ steps, size: { kvLen } }, softmax) {
  steps.attention.data.set(steps.masked.data);
  for (let from = 0; from < steps.attention.data.length; from += kvLen) softmax(steps.attention.data.subarray(from, from + kvLen));
}

/** A sum of half numbers is rounded at its end, or after each addition. */
const roundings = ({ model }) =>
  roundersOf().flatMap(({ id, round }) => [
    { id, round },
    ...(model.sinks ? [] : [false, true].map((isEachSum) => ({ id: id + ".softmax", round, softmax: storedSoftmax(round, isEachSum) }))),
  ]);

/** In this order they are made at once: masks hide what a softmax has given. @type {((one: Case) => Mistake[])[]} */
const KINDS = [scales, softmaxes, masks, shiftedCausal, dropoutScaling, keys, groups, headSplits, transposed, biases, swaps, rotations, roundings];

/** @param {Case} one @param {ArrayLike<number> | null} weights that are expected @returns {Mistake[]} those that are possible in this request */
export const mistakesFor = (one, weights) => [...KINDS.flatMap((make) => make(one)), ...dropoutAtWork(one, weights)];

/** Mistakes that people make together with another one, the commonest first. */
const COMMON = [
  "scaleNone",
  "maskNone",
  "biasNone",
  "transposed",
  "headsReshaped",
  "causalAdded",
  "headsInterleaved",
  "ropeNone",
  "swapped",
  "scaleWidth",
  "rope",
  "groupsTiled",
  "headsJoined",
  "maskAfter",
  "causalStrict",
  "softmaxQueries",
  "dropoutScaled",
  "causalLoose",
  "maskInverted",
  "causalTop",
];

/** Of these, two parts can be wrong at once. */
const IN_PARTS = ["transposed", "biasNone"];

/** @param {Mistake[]} mistakes */
export const commonIn = (mistakes) => mistakes.filter(({ id }) => COMMON.includes(id));

/** @param {Mistake[]} mistakes @returns {Mistake[][]} pairs, the commonest first */
export function pairsOf(mistakes) {
  const common = commonIn(mistakes),
    /** @param {Mistake[]} pair */
    rank = (pair) => pair.reduce((sum, { id }) => sum + COMMON.indexOf(id), 0);
  const pairs = common.flatMap((a, n) => common.slice(n + 1).map((b) => [a, b]));
  return pairs.filter(([a, b]) => a.id !== b.id || IN_PARTS.includes(a.id)).sort((a, b) => rank(a) - rank(b));
}
