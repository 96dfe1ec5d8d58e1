/**
 * textrun.js: one text through one model: fetches its maps, scores and predictions.
 *
 * The maps of all heads come in one answer, pooled to the size of thumbnails, which leaves maps of up to 64 tokens as
 * they are. For longer texts, the full map of a head is fetched once, when the head is opened.
 *
 * @typedef {import("../request/tensor.js").Tensor} Tensor
 * @typedef {import("../request/tensor.js").Matrix} Matrix
 * @typedef {object} Facts of GET /v1/models
 * @property {string} name
 * @property {string} state
 * @property {string} kind
 * @property {number} layers
 * @property {number} heads
 * @property {number | null} [longest] the most tokens that it takes
 * @property {boolean} tokenizer
 * @property {string[]} returns
 * @property {string} [reason]
 * @property {string} [type]
 *
 * @typedef {object} TextRun
 * @property {Facts | null} facts null: a dump
 * @property {string} text
 * @property {any} inputs of requests about the run
 * @property {any} given inputs without the new tokens
 * @property {any} [other] inputs of the other text, that heads are patched from
 * @property {Generated | null} generated the new tokens
 * @property {boolean} [isSpelled] "demo" knows some of its words by their letters alone
 * @property {import("./changes.js").Changes} changes
 * @property {string} part
 * @property {string[]} queries
 * @property {string[]} keys
 * @property {number[]} ids of the keys
 * @property {number} layers
 * @property {number} heads
 * @property {Tensor} maps (layers, heads, rows, cols)
 * @property {boolean} isExact maps are neither pooled nor rounded to float16
 * @property {boolean} isCausal later keys are masked
 * @property {Thumbs} [thumbs] of dumps with large maps
 * @property {Record<string, Tensor>} scores (layers, heads)
 * @property {{indices: Tensor, weights: Tensor} | null} [experts] of a mixture of experts: (layers, tokens, k)
 * @property {Map<string, any>} cache what has been fetched later, by key
 *
 * @typedef {{ids: number[][], text?: string[], ended_by: string[]}} Generated
 * @typedef {{full: Tensor, withoutFirst: Tensor}} Thumbs (layers, heads and their mean and maximum, rows, cols)
 */
import { askForSmall, readAnswer } from "../exchange/api.js";
import { ask } from "../exchange/server.js";
import { SAFETENSORS } from "../request/safetensors.js";
import { matrixOf } from "../request/tensor.js";
import { Problem } from "../texts.js";
import { pathOfModel } from "./case.js";
import { isPatched, optionsOfChanges } from "./changes.js";
import { isSpelled } from "./examples.js";

/** Delay of a request about one token, so that tokens passed over by the arrow keys cost none. */
export const PASSED_MS = 120;
const POOLED_SIDE = 64;
/** What comes with the maps of a model of one stack, if the model has it. */
const ALSO = ["head_scores", "experts"];
/** From about this many cells on, thumbnails are fetched as float16. */
const HALF_FROM = 1 << 18;

/** @returns {Promise<Facts[]>} */
export async function listModels() {
  const response = await ask("v1/models");
  return (await response.json()).models;
}

const isTwoSided = ({ kind }) => kind === "encoder-decoder";

function inputsOf(facts, text, target) {
  if (!facts.tokenizer) {
    const ids = text.split(/[\s,]+/).filter(Boolean).map(Number);
    if (ids.length === 0 || !ids.every(Number.isSafeInteger)) throw new Problem("models.ids");
    return { ids };
  }
  return { text, ...(isTwoSided(facts) && target !== "" ? { target } : {}) };
}

/** The inputs of a run with its new tokens. */
const grownInputs = (given, tokens) => (tokens.decoder ? { text: given.text, target_ids: tokens.decoder.ids[0] } : { ids: tokens.ids[0] });

/** Inputs of two items: the second is what the first has numbers from. */
const pairOf = (inputs, others) => Object.fromEntries(Object.keys(inputs).map((name) => [name, [inputs[name], others[name]]]));

/**
 * A request about the run, with its changes.
 * @param {{inputs: any, other?: any, changes: import("./changes.js").Changes, part: string}} run
 * @param {object} options
 * @param {boolean} [isPaired] the other text is a second item
 */
export const bodyOf = ({ inputs, other, changes, part }, options, isPaired = isPatched(changes)) => ({
  inputs: isPaired ? pairOf(inputs, other) : inputs,
  options: { ...options, ...optionsOfChanges(changes, part) },
});

/** @param {AbortSignal} [signal] @returns {Promise<any>} */
const askForJson = async (run, body, signal) => (await ask(pathOfModel(run.facts.name), { body, signal, hasEvents: true })).json();

/** The answer to a question about a run, which is asked once. */
export const answerAbout = (run, body, signal) => cachedIn(run, JSON.stringify(body), () => askForJson(run, body, signal));

/** Pooled maps are small, so that they may come as a text, with the progress. @returns {Promise<{tensors: Record<string, any>, tokens: any, generated: any}>} */
export async function askForTensors(run, options, signal) {
  const path = pathOfModel(run.facts.name),
    body = bodyOf(run, options);
  const { outputs, tokens, generated } = options.pool
    ? await askForSmall(path, { ...body, options: { ...body.options, format: "base64" } }, signal)
    : await readAnswer(await ask(path, { accept: SAFETENSORS, body, signal }));
  return { tensors: Object.fromEntries(Object.entries(outputs).map(([name, tensor]) => [name, ofFirstItem(tensor)])), tokens, generated };
}

/** The first item of a tensor (layers, batch, …). A second one is what heads are patched from, and as long. */
function ofFirstItem({ shape, data }) {
  const [layers, batch, ...rest] = shape,
    length = data.length / (layers * batch);
  if (batch === 1) return { shape, data };
  const out = new data.constructor(layers * length);
  for (let l = 0; l < layers; l++) out.set(data.subarray(l * batch * length, (l * batch + 1) * length), l * length);
  return { shape: [layers, 1, ...rest], data: out };
}

/** Removes the batch dimension, which is 1. */
const ofOneText = ({ shape, data }) => ({ shape: [shape[0], ...shape.slice(2)], data });

function sidesOf(tokens, part) {
  const [queries, keys] = part === "cross_attention" ? ["decoder", "encoder"] : Array(2).fill(part.split("_")[0]);
  return { queries: tokens[queries] ?? tokens, keys: tokens[keys] ?? tokens };
}

/** Tokens as readers should see them; ids for tokens without a text. */
const wordsOf = ({ shown, ids }) => shown?.[0].map((word, at) => word ?? String(ids[0][at])) ?? ids[0].map(String);

/**
 * @param {Facts} facts
 * @param {{text: string, target: string, part: string, newTokens: number, changes: import("./changes.js").Changes}} wanted
 * @param {TextRun} [base] the run without changes, if the wanted one has some
 * @param {TextRun} [other] of the other text
 * @param {AbortSignal} [signal]
 * @returns {Promise<TextRun>} or throws a Refusal
 */
export async function runText(facts, { text, target, part, newTokens, changes }, base, other, signal) {
  const given = inputsOf(facts, text, target),
    grows = !base && newTokens > 0 && canGenerate(facts),
    run = { facts, text, changes, given, inputs: base?.inputs ?? given, other: other?.inputs, part: base?.part ?? "", cache: new Map() };
  const side = Math.min(POOLED_SIDE, text.length / 3),
    isHalf = facts.layers * facts.heads * side * side > HALF_FROM;
  const { tensors, tokens, generated } = await askForTensors(
    run,
    {
      return: ["attention", ...ALSO.filter((name) => !isTwoSided(facts) && facts.returns.includes(name)), ...(grows ? ["generated"] : [])],
      pool: { rows: POOLED_SIDE, cols: POOLED_SIDE, op: "max" },
      ...(isHalf ? { dtype: "float16" } : {}),
      ...(grows ? { new_tokens: newTokens } : {}),
    },
    signal,
  );
  const found = tensors.attention ? "attention" : tensors[part] ? part : "encoder_attention";
  const { queries, keys } = sidesOf(tokens, found),
    maps = ofOneText(tensors[found]),
    [layers, heads, rows, cols] = maps.shape;
  const [queryWords, keyWords] = [wordsOf(queries), wordsOf(keys)];
  return {
    ...run,
    inputs: grows ? grownInputs(given, tokens) : run.inputs,
    generated: base ? base.generated : grows ? generated : null,
    isSpelled: facts.name === "demo" && keys.text[0].some(isSpelled),
    part: found,
    queries: queryWords,
    keys: keyWords,
    ids: keys.ids[0],
    layers,
    heads,
    maps,
    isExact: !isHalf && rows === queryWords.length && cols === keyWords.length,
    isCausal: facts.kind === "decoder",
    scores: scoresIn(tensors),
    experts: expertsIn(tensors),
  };
}

function scoresIn(tensors) {
  /** @type {Record<string, Tensor>} */
  const scores = {};
  for (const [name, tensor] of Object.entries(tensors))
    if (name.startsWith("head_scores.")) scores[name.slice("head_scores.".length)] = ofOneText(tensor);
  return scores;
}

/** Fetches once per key. After a failure, the next call fetches again. */
function cachedIn(run, key, fetchIt) {
  if (!run.cache.has(key))
    run.cache.set(
      key,
      fetchIt().then(
        (value) => (run.cache.set(key, value), value),
        (problem) => {
          run.cache.delete(key);
          throw problem;
        },
      ),
    );
  return run.cache.get(key);
}

/** @param {TextRun} run @returns {Matrix | Promise<Matrix>} the full map of a head */
export function headOf(run, layer, head) {
  if (run.isExact) return matrixOf(run.maps, layer, head);
  return cachedIn(run, `head ${layer} ${head}`, async () => {
    const { tensors } = await askForTensors(run, { return: ["attention"], layers: [layer], heads: [head] });
    const { shape, data } = tensors.attention ?? tensors[run.part];
    return { rows: shape.at(-2), cols: shape.at(-1), data };
  });
}

/** @param {TextRun} run @returns {Tensor | Promise<Tensor>} the full maps of a layer: (heads, rows, cols) */
export function layerOf(run, layer) {
  if (run.isExact) return { shape: run.maps.shape.slice(1), data: partOf(run.maps, layer) };
  return cachedIn(run, `layer ${layer}`, async () => {
    const { tensors } = await askForTensors(run, { return: ["attention"], layers: [layer] }),
      { shape, data } = tensors.attention ?? tensors[run.part];
    return { shape: shape.slice(2), data };
  });
}

/** @param {Facts} facts */
export const canGenerate = (facts) => facts.returns.includes("generated");

/** Whether the Lab can open a head. Dumps and encoder-decoders have no queries and keys. @param {TextRun} run */
export const hasSteps = ({ facts, part }) => facts !== null && part === "attention";

/** Whether heads and edges can be changed. @param {TextRun} run */
export const canChange = ({ facts }) => facts !== null;

const partOf = ({ shape, data }, at) => data.subarray((at * data.length) / shape[0], ((at + 1) * data.length) / shape[0]);

/** @param {TextRun} run @returns {Tensor | Promise<Tensor>} maps of all heads for thumbnails, without the first key */
export function mapsWithoutFirst(run) {
  return cachedIn(run, "without first", async () => {
    const { tensors } = await askForTensors(run, {
      return: ["attention"],
      keys: { from: 1, to: -1 },
      pool: { rows: POOLED_SIDE, cols: POOLED_SIDE, op: "max" },
      dtype: "float16",
    });
    return ofOneText(tensors.attention ?? tensors[run.part]);
  });
}

/** What each token chose, (layers, tokens, k); null: the model is no mixture of experts. */
const expertsIn = (tensors) =>
  tensors["experts.indices"]
    ? { indices: ofOneText(tensors["experts.indices"]), weights: ofOneText(tensors["experts.weights"]) }
    : null;

/** @param {TextRun} run @returns {{expert: number, weight: number}[]} what a token chose in a layer, the largest weight first */
export function expertsAt({ experts }, layer, row) {
  if (!experts) return [];
  const [, rows, k] = experts.indices.shape,
    from = (layer * rows + row) * k;
  return Array.from({ length: k }, (_, at) => ({
    expert: Number(experts.indices.data[from + at]),
    weight: experts.weights.data[from + at],
  })).filter(({ expert }) => expert >= 0);
}

/** @param {TextRun} run @returns {Promise<Matrix>} */
export function rolloutOfServer(run, layer) {
  return cachedIn(run, `rollout ${layer}`, async () => {
    const { tensors } = await askForTensors(run, { return: ["rollout"], layers: [layer] }),
      { shape, data } = tensors.rollout;
    return { rows: shape.at(-2), cols: shape.at(-1), data };
  });
}

const SAID = ["predictions", "logit_lens"];

/**
 * The request that asks what the run says: its labels, its words at one token, or else its maps.
 * @param {TextRun} run
 */
export function bodyAt(run, row) {
  if (canClassify(run)) return bodyOf(run, { return: ["classes"], digits: 6 });
  if (!canPredict(run)) return bodyOf(run, { return: ["attention"] });
  return bodyOf(run, { return: SAID.filter((name) => run.facts.returns.includes(name)), queries: [row], digits: 4 });
}

/** @param {TextRun} run @returns {boolean} */
export const canPredict = (run) => run.facts !== null && run.facts.returns.includes("predictions") && run.part !== "encoder_attention";

/**
 * The most probable words at one token, at the end and after each layer.
 * @param {TextRun} run
 * @returns {Promise<{last: Prediction[], layers: Prediction[][]}>}
 * @typedef {{word: string, id?: number, probability: number, value?: number}} Prediction
 */
export function predictionsAt(run, row) {
  return cachedIn(run, `predictions ${row}`, async () => {
    const { outputs } = await askForJson(run, bodyAt(run, row));
    const predictionsOf = ({ shown, ids, probabilities }) =>
      ids.map((id, at) => ({ word: shown?.[at] ?? String(id), id, probability: probabilities[at] }));
    const at = ({ shown, ids, probabilities }) => ({
      shown: shown?.[0][0],
      ids: ids?.[0][0],
      probabilities: probabilities[0][0],
    });
    const lens = outputs.logit_lens,
      ofLayer = (l) => at({ shown: lens.shown?.[l], ids: lens.ids?.[l], probabilities: lens.probabilities[l] });
    return {
      last: predictionsOf(at(outputs.predictions)),
      layers: lens ? lens.probabilities.map((_, l) => predictionsOf(ofLayer(l))) : [],
    };
  });
}

/** @param {TextRun} run @returns {boolean} */
export const canClassify = (run) => run.facts !== null && run.facts.returns.includes("classes") && run.part !== "encoder_attention";

/** The classes of a run, or of one with other changes. */
async function askForClasses(run, changes = run.changes) {
  const { outputs } = await askForJson(run, bodyAt({ ...run, changes }, 0));
  return outputs.classes;
}

/**
 * The labels of a text, of one of its tokens, or the answer in it, with probabilities; the number of a regression.
 * @returns {Prediction[]}
 */
function labelled({ labels, logits, probabilities, answer }, row) {
  if (answer) return answer.filter(Boolean).map(({ text, tokens, probability }) => ({ word: text ?? tokens.join(" – "), probability }));
  const of = (numbers) => (Array.isArray(numbers?.[0][0]) ? numbers[0][row] : numbers?.[0]);
  return labels.map((word, at) => ({ word, probability: of(probabilities)?.[at] ?? NaN, value: of(logits)[at] }));
}

/** @param {TextRun} run @returns {Promise<{last: Prediction[], layers: Prediction[][]}>} as predictionsAt has it */
export async function classesAt(run, row) {
  const classes = await cachedIn(run, "classes", () => askForClasses(run));
  return { last: labelled(classes, row), layers: [] };
}

/** The place of the most probable label, or of the only number. @param {Prediction[]} predictions */
export const bestOf = (predictions) =>
  predictions.reduce((best, { probability }, at) => (probability > predictions[best].probability ? at : best), 0);

/** @param {Prediction} prediction */
const numberOf = ({ probability, value }) => (Number.isNaN(probability) ? value : probability);

/**
 * How much the most probable label changes without each head, the largest changes first. One request per head.
 * @param {TextRun} run @param {(done: number, of: number) => boolean} goesOn asked before each request
 * @returns {Promise<{layer: number, head: number, change: number}[]>}
 */
export async function movesOf(run, row, goesOn) {
  const before = (await classesAt(run, row)).last,
    at = bestOf(before),
    moves = [],
    count = run.layers * run.heads;
  for (let i = 0; i < count && goesOn(i, count); i++) {
    const layer = Math.floor(i / run.heads),
      head = i % run.heads;
    const changes = { ...run.changes, ablate: [...run.changes.ablate, [layer, head]] };
    const classes = await cachedIn(run, `classes without ${layer} ${head}`, () => askForClasses(run, changes));
    moves.push({ layer, head, change: numberOf(labelled(classes, row)[at]) - numberOf(before[at]) });
  }
  return moves.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

/** @param {TextRun} run @returns {boolean} */
export const canScore = (run) => run.facts !== null && run.facts.returns.includes("word_scores") && run.part !== "encoder_attention";

/** The request that scores words at a token. @param {TextRun} run @param {string[] | "next"} words */
export const bodyOfScores = (run, row, words) => bodyOf(run, { return: ["word_scores"], words, queries: [row], digits: 6 });

/**
 * Given words at one token. "next": the token that the text has there.
 * @param {TextRun} run @param {string[] | "next"} words
 * @returns {Promise<{scores: Score[], perplexity: number | undefined}>} with "next", the perplexity of the text
 * @typedef {{log: number, rank: number}} Score of a word: its log-probability, and its rank from 1; −1: there is no word
 */
export function scoresAt(run, row, words) {
  return cachedIn(run, `scores ${row} ${JSON.stringify(words)}`, async () => {
    const { outputs } = await askForJson(run, bodyOfScores(run, row, words)),
      { log_probabilities: logs, ranks, perplexity } = outputs.word_scores;
    return { scores: ranks[0][0].map((rank, at) => ({ log: Number(logs[0][0][at]), rank })), perplexity: perplexity && Number(perplexity[0]) };
  });
}
