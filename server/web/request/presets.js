/**
 * presets.js: the built-in examples. Each one is a whole request of the HTTP API.
 *
 * @typedef {{id: string, endpoint: "attention" | "multi-head-attention", request: object, view?: object,
 *            layer?: import("../exchange/layers.js").Layer, random?: "all" | "inputs", seed?: number,
 *            source?: import("../models/case.js").Source & {inputs: object}, copyOf?: string, isUnused?: boolean}} Case
 *          random: what is drawn from the seed: inputs and weights, or only the inputs of given weights
 *          source: where the inputs come from; valid while they are the same object
 *          copyOf: the kept layer whose weights an opened file has
 *          isUnused: the page began with the opening, and nothing else has been asked for yet
 */
import { base64OfBytes } from "./tensor.js";
import { embed, randomFrom, randomMatrix, randomWeights, splitText } from "./tokens.js";

export const LAYER = "multi-head-attention";
export const BARE = "attention";

/**
 * A layer over the tokens of a text, with seeded numbers.
 * @param {{text: string, width?: number, heads?: number, seed?: number, masks?: object, options?: any}} settings
 */
export function layerOfText({ text, width = 16, heads = 4, seed = 7, masks = {}, options = {} }) {
  const tokens = splitText(text);
  return {
    inputs: { query: embed(tokens, width, seed) },
    weights: randomWeights({
      width,
      heads,
      kvHeads: options.kv_num_heads,
      d: Math.max(1, Math.floor(width / heads)),
      seed,
    }),
    masks,
    options: { num_heads: heads, ...options },
    tokens: { query: tokens },
  };
}

export const SENTENCE = "The animal did not cross the street because it was too tired";

function sentence(seed) {
  return layerOfText({ text: SENTENCE, seed, options: { residual: true, norm: { type: "layer" } } });
}

function threeTokens() {
  return {
    inputs: {
      query: [
        [0.2, 0.7, 0.1],
        [0.9, 0.1, 0.3],
        [0.4, 0.5, 0.8],
      ],
    },
    weights: {
      query: {
        weight: [
          [1, 0],
          [0, 1],
          [1, 1],
        ],
      },
      key: {
        weight: [
          [0, 1],
          [1, 0],
          [1, 1],
        ],
      },
      value: {
        weight: [
          [1, 0],
          [0, 1],
          [0, 0],
        ],
      },
    },
    masks: { causal: true },
    options: { num_heads: 1 },
    tokens: { query: ["Ben", "okula", "gidiyorum"] },
  };
}

function causal(seed) {
  const text = "Attention is all you need , said the paper , and the field listened";
  return layerOfText({ text, heads: 6, width: 24, seed, masks: { causal: true } });
}

function padding(seed) {
  const [first, second] = ["Ben bugün okula gidiyorum .", "Kedi uyuyor ."].map(splitText);
  const width = 12,
    padded = [...second, ...Array.from({ length: first.length - second.length }, () => "[PAD]")];
  return {
    inputs: { query: [embed(first, width, seed), embed(padded, width, seed)] },
    weights: randomWeights({ width, heads: 2, d: 6, seed }),
    masks: { key_lengths: [first.length, second.length], query_lengths: [first.length, second.length] },
    options: { num_heads: 2 },
    tokens: { query: [first, padded] },
  };
}

function cross(seed) {
  const from = splitText("I do not go to school today ."),
    to = splitText("Bugün okula gitmiyorum .");
  return {
    inputs: { query: embed(to, 16, seed), key: embed(from, 16, seed) },
    weights: randomWeights({ width: 16, heads: 4, d: 4, seed }),
    options: { num_heads: 4 },
    tokens: { query: to, key: from },
  };
}

function grouped(seed) {
  const text = "Eight query heads share two heads of keys and values";
  return layerOfText({
    text,
    width: 32,
    heads: 8,
    seed,
    masks: { causal: true },
    options: { kv_num_heads: 2, rope: { layout: "half", theta: 10000 } },
  });
}

function slidingWindow(seed) {
  const text =
    "Each token sees only the four before it and itself , which keeps long texts cheap and lets the cache stay small";
  return layerOfText({ text, heads: 4, seed, masks: { causal: true, sliding_window: 5 } });
}

function sinks(seed) {
  const text = "When nothing fits a head may look nowhere";
  return layerOfText({ text, heads: 4, seed, masks: { causal: true }, options: { sinks: [0, 1, 2, 3] } });
}

function scripts(seed) {
  const text = "القطة تنام على السرير 猫在床上睡觉 кошка спит на кровати";
  return layerOfText({ text, heads: 2, width: 8, seed });
}

function twelve(seed) {
  const random = randomFrom(seed);
  const words = splitText(SENTENCE),
    tokens = Array.from({ length: 64 }, () => words[Math.floor(random() * words.length)]);
  const width = 48;
  return {
    inputs: { query: embed(tokens, width, seed) },
    weights: randomWeights({ width, heads: 12, d: 4, seed }),
    masks: { causal: true },
    options: { num_heads: 12 },
    tokens: { query: tokens },
  };
}

/** Smooth curves through a few dimensions: neighbours are similar, and places passed again attend to each other. */
function walk(length, width, seed) {
  const random = randomFrom(seed),
    data = new Float32Array(length * width);
  const turns = Array.from({ length: width }, () => [0.001 + 0.02 * random() ** 2, 6.28 * random()]);
  for (let i = 0; i < length; i++)
    for (let c = 0; c < width; c++) data[i * width + c] = 1.4 * Math.sin(i * turns[c][0] + turns[c][1]);
  return { shape: [length, width], dtype: "float32", base64: base64OfBytes(new Uint8Array(data.buffer)) };
}

function large(seed) {
  return {
    inputs: { query: walk(4096, 32, seed) },
    masks: { causal: true },
    options: { num_heads: 1, return: ["attention", "output"] },
  };
}

/** Attention of given vectors, whose lengths and widths differ. */
function bare(seed) {
  return {
    inputs: { query: randomMatrix(5, 4, seed, 1.4), key: randomMatrix(7, 4, seed + 1, 1.4), value: randomMatrix(7, 3, seed + 2, 1) },
  };
}

/** Seeds of the random numbers of each preset. */
const SEEDS = {
  sentence: 7,
  causal: 11,
  padding: 5,
  cross: 21,
  grouped: 31,
  window: 41,
  sinks: 51,
  scripts: 61,
  twelve: 71,
  large: 81,
  bare: 91,
};

const MAKERS = {
  sentence: [LAYER, sentence],
  three: [LAYER, threeTokens],
  causal: [LAYER, causal],
  padding: [LAYER, padding],
  cross: [LAYER, cross],
  grouped: [LAYER, grouped],
  window: [LAYER, slidingWindow],
  sinks: [LAYER, sinks],
  scripts: [LAYER, scripts],
  bare: [BARE, bare],
  twelve: [LAYER, twelve],
  large: [BARE, large],
};

/** What shows the point of a preset: the shorter sentence; a colour range for small weights. */
const VIEWS = { padding: { batch: 1 }, twelve: { range: "robust" }, large: { range: "log" } };

export const PRESETS = Object.keys(MAKERS);

/** @returns {Case} */
export function presetCase(id) {
  const [endpoint, make] = MAKERS[id];
  const seed = SEEDS[id];
  return { id, endpoint, request: make(seed), view: VIEWS[id] ?? {}, random: seed === undefined ? undefined : "all", seed };
}
