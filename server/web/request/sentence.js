/**
 * sentence.js: replaces the sentence of a case, and keeps the rest of it.
 */
import { LAYER } from "./presets.js";
import { tensorFrom } from "./tensor.js";
import { embed, randomWeights, splitText } from "./tokens.js";

export const DEFAULT_SEED = 7;

const PAD = "[PAD]";

/** Longer sentences are not shown as text. */
const WORDS_WRITTEN = 64;

/** The words of all batch items, without padding. */
function listsOf({ tokens }) {
  const query = tokens?.query ?? [],
    lists = Array.isArray(query[0]) ? query : [query];
  return lists.map((list) => list.filter((word) => word !== PAD));
}

/** @returns {string} the words of the shown batch item */
export function sentenceOf({ request }, { batch }) {
  const lists = listsOf(request),
    words = lists[Math.min(batch, lists.length - 1)];
  return words.length <= WORDS_WRITTEN ? words.join(" ") : "";
}

/** Masks written for a number of tokens are dropped if the number changes. */
function masksFor({ lengths, isSameLength }, masks = {}) {
  const { attend, bias, padding, documents, blocks, ...free } = masks,
    remaining = isSameLength ? masks : free;
  return {
    ...remaining,
    ...(masks.key_lengths ? { key_lengths: lengths } : {}),
    ...(masks.query_lengths ? { query_lengths: lengths } : {}),
  };
}

const widthOf = (tensor) => tensorFrom(tensor).shape.at(-1);

/** Draws new weights for those that the request has. */
function weightsFor({ weights, inputs, options }, { width, heads, seed }) {
  const drawn = randomWeights({
    width,
    keyWidth: inputs.key ? widthOf(inputs.key) : width,
    heads,
    kvHeads: options?.kv_num_heads,
    d: Math.max(1, Math.floor(width / heads)),
    seed,
  });
  return Object.fromEntries(Object.keys(weights).map((name) => [name, drawn[name]]));
}

/** Words that were typed with their numbers keep them. Other words get random ones. */
function rowsOf(words, request, width, seed, isDrawn) {
  const drawn = embed(words, width, seed);
  if (isDrawn || !Array.isArray(request.inputs.query)) return drawn;
  const [known] = listsOf(request);
  return words.map((word, at) => request.inputs.query[known.indexOf(word)] ?? drawn[at]);
}

/**
 * @param {import("./presets.js").Case} given
 * @param {string} text
 * @param {{batch: number}} view with the batch item that gets the sentence
 * @param {{width: number, heads: number, seed: number}} numbers
 * @returns {import("./presets.js").Case}
 */
export function withSentence(given, text, { batch }, numbers) {
  const { request, endpoint } = given,
    before = tensorFrom(request.inputs.query).shape,
    isDrawn = given.random === "all",
    width = endpoint === LAYER && isDrawn ? numbers.width : before.at(-1);
  const isOther = width !== before.at(-1) || numbers.heads !== (request.options?.num_heads ?? 1) || numbers.seed !== given.seed;
  const lists = listsOf(request),
    isBatch = before.length === 3;
  lists[isBatch ? Math.min(batch, lists.length - 1) : 0] = splitText(text);
  const most = Math.max(...lists.map(({ length }) => length)),
    full = lists.map((list) => [...list, ...Array.from({ length: most - list.length }, () => PAD)]);
  const rows = full.map((list) => rowsOf(list, request, width, numbers.seed, isDrawn)),
    isSameLength = most === before.at(-2) && (isBatch ? lists.length === before[0] : true);
  const isNew = endpoint === LAYER && isDrawn && isOther;
  return {
    ...given,
    id: "",
    random: isDrawn ? "all" : "inputs",
    seed: numbers.seed,
    request: {
      ...request,
      inputs: { ...request.inputs, query: isBatch ? rows : rows[0] },
      ...(isNew ? { weights: weightsFor(request, { ...numbers, width }) } : {}),
      masks: masksFor({ lengths: lists.map(({ length }) => length), isSameLength }, request.masks),
      options: isNew ? { ...request.options, num_heads: numbers.heads } : request.options,
      tokens: { ...request.tokens, query: isBatch ? full : full[0] },
    },
  };
}
