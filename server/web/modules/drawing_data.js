/**
 * drawing_data.js: the data that another page gives: an answer of attnd, or numbers with a shape, and names of tokens.
 */
import { matrixOf, tensorFrom } from "../request/tensor.js";

/** The dimensions before queries and keys, by their number. */
const LEADING = {
  numbers: [[], ["heads"], ["layers", "heads"], ["layers", "batch", "heads"]],
  layer: [[], ["batch"], ["batch", "heads"]],
  model: [[], ["batch"], ["layers", "batch"], ["layers", "batch", "heads"]],
};

/** For maps of an encoder-decoder: whose tokens are the queries, and whose are the keys. */
const SIDES = {
  encoder_attention: { query: "encoder", key: "encoder" },
  decoder_attention: { query: "decoder", key: "decoder" },
  cross_attention: { query: "decoder", key: "encoder" },
};

/** Name of the mask for a step: cross_mask for cross_attention. */
const maskOf = (step) => `${/^(encoder|decoder|cross)_/.exec(step)?.[0] ?? ""}mask`;

/** The tensor with all dimensions: layers times batch, heads, queries, keys. */
function withAll(json, kind, name) {
  const { shape, data } = tensorFrom(json),
    leading = LEADING[kind][shape.length - 2];
  if (!leading) throw new Error(`${name} has ${shape.length} dimensions`);
  const size = (dimension) => (leading.includes(dimension) ? shape[leading.indexOf(dimension)] : 1);
  const [layers, batch, heads] = ["layers", "batch", "heads"].map(size);
  return { layers, batch, heads, tensor: { shape: [layers * batch, heads, ...shape.slice(-2)], data } };
}

function listOf(tokens, side, step) {
  if (!tokens || Array.isArray(tokens)) return tokens;
  const owner = tokens[SIDES[step]?.[side]] ?? tokens;
  return owner.shown ?? owner.text ?? owner[side] ?? owner.query;
}

/** The maps of one step. */
export class DrawingData {
  /** @param {any} data @param {string} step */
  constructor(data, step) {
    const isAnswer = data?.outputs !== undefined,
      numbers = isAnswer ? data.outputs[step] : (data?.numbers ?? data);
    if (numbers === undefined)
      throw new Error(isAnswer ? `the answer has no ${step}: name it in options.return` : "no numbers were given");
    if (numbers.indices) throw new Error(`${step} has only the largest weights: ask without options.top_k`);
    const kind = !isAnswer ? "numbers" : data.layers ? "model" : "layer";
    const { layers, batch, heads, tensor } = withAll(numbers, kind, step);
    this.layers = layers;
    this.batch = batch;
    this.heads = heads;
    this.tensor = tensor;
    const mask = isAnswer ? data.outputs[maskOf(step)] : undefined;
    this.mask = mask ? withAll(mask, kind, maskOf(step)).tensor : null;
    const listed = data.layers?.[SIDES[step]?.query] ?? data.layers; // an encoder-decoder has two lists
    /** @type {number[]} */
    this.layerNumbers = listed ?? Array.from({ length: layers }, (_, at) => at);
    this.tokens = data.tokens;
    this.step = step;
  }

  /** @returns {number} index of the layer with this number */
  placeOf(layer) {
    const at = this.layerNumbers.indexOf(layer);
    if (at < 0) throw new Error(`there is no layer ${layer}: there are ${this.layerNumbers.join(", ")}`);
    return at;
  }

  /** @returns {number} index of an item in the tensor, whose first dimension is layers times batch */
  itemOf(layer, batch) {
    return this.placeOf(layer) * this.batch + batch;
  }

  /** @param {number} layer @param {number} batch @param {number} head @returns {import("../request/tensor.js").Matrix} */
  matrix(layer, batch, head) {
    if (!(batch >= 0 && batch < this.batch)) throw new Error(`there is no item ${batch} in a batch of ${this.batch}`);
    if (!(head >= 0 && head < this.heads)) throw new Error(`there is no head ${head}: there are ${this.heads}`);
    return matrixOf(this.tensor, this.itemOf(layer, batch), head);
  }

  /** Whether a mask hides a cell: by the answer's mask, else if the score is −∞. */
  hiddenIn(matrix, layer, batch, head) {
    const { data } = this.mask ? matrixOf(this.mask, this.itemOf(layer, batch), head) : matrix,
      sign = this.mask ? 0 : -Infinity;
    return (i, j) => data[i * matrix.cols + j] === sign;
  }

  /** @param {"query" | "key"} side @returns {string[] | null} null: numbers */
  labels(side, batch, length) {
    let list = listOf(this.tokens, side, this.step);
    if (Array.isArray(list?.[0])) list = list[Math.min(batch, list.length - 1)];
    return list?.length === length ? list : null;
  }
}
