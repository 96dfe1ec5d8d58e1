/**
 * reading.js: one sentence as one head of a model reads it, in words as they are written.
 *
 * The model reads pieces of words. A weight on a word is the sum of the weights on its pieces. A weight from a word is
 * the mean of those from its pieces. So the weights from a word sum to 1, as those of a piece do (Clark et al., "What
 * Does BERT Look At?", 2019, section 4.1).
 *
 * @typedef {object} Word
 * @property {string} text as it is written
 * @property {number[]} pieces
 * @property {number} from first character in the text
 * @property {number} to the character behind the last one
 * @property {boolean} isJoined no space stands in front of it
 * @property {boolean} isSpecial a token that the model adds
 * @property {boolean} isKnown the model has it in its vocabulary, and does not spell it
 *
 * @typedef {{text: string, words: Word[], weights: number[][], model: string, role: string, layer: number, head: number}} Reading
 *          weights: of each word on each word
 */
import { ask, Refusal } from "../exchange/server.js";
import { pathOfModel } from "../models/case.js";
import { isSpelled, OPENING, ROLES_OF_SMALL } from "../models/examples.js";

/** The token that stands before each text of "small", whose tokenizer cuts bytes. */
const BEGINNING = "<|endoftext|>";

const LETTER = /[\p{L}\p{M}\p{N}]/u,
  NO_SPACES = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u, // their words stand side by side
  JOINER = /[\p{M}\u200d]/u;

/** Whether a piece of a byte-level BPE goes on with the word before it: by a letter of both, or as its neighbour. */
function goesOn(characters, from, last) {
  const [before, behind] = [characters[from - 1], characters[from]];
  if (from !== last.to) return from < last.to;
  return (LETTER.test(before) && LETTER.test(behind) && !NO_SPACES.test(behind)) || JOINER.test(before) || JOINER.test(behind);
}

/** @returns {Word[]} */
function wordsOf(text, { text: [pieces], offsets: [offsets] }) {
  const isOfBytes = pieces[0] === BEGINNING,
    characters = Array.from(text),
    words = [];
  pieces.forEach((piece, at) => {
    const [begin, to] = offsets[at],
      from = begin + /^\s*/u.exec(characters.slice(begin, to).join(""))[0].length, // pieces of bytes begin with the space before a word
      last = words.at(-1),
      isSpace = begin < from && from === to;
    if (isSpace || (from < to && (piece.startsWith("##") || (isOfBytes && last.from < last.to && goesOn(characters, from, last))))) {
      last.pieces.push(at);
      if (isSpace) return;
      last.to = Math.max(last.to, to);
      last.isKnown &&= !isSpelled(piece);
    } else
      words.push({ pieces: [at], from, to, isSpecial: from === to, isKnown: !isSpelled(piece), isJoined: from > 0 && last?.to === from });
  });
  return words.map((word) => ({ ...word, text: word.isSpecial ? pieces[word.pieces[0]] : characters.slice(word.from, word.to).join("") }));
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

const weightOf = (map, query, key) => sum(query.pieces.map((i) => sum(key.pieces.map((j) => map[i][j])))) / query.pieces.length;

/** One reading for each of these layers of the model. @returns {Promise<Reading[]>} */
async function readLayers(model, heads, text, signal) {
  const options = { return: ["attention"], layers: heads.map(({ layer }) => layer), heads: [0] };
  const { outputs, tokens } = await (await ask(pathOfModel(model), { body: { inputs: { text }, options }, signal })).json();
  const words = wordsOf(text, tokens);
  return heads.map(({ role, layer }, at) => {
    const [[map]] = outputs.attention[at];
    return { text, words, weights: words.map((query) => words.map((key) => weightOf(map, query, key))), model, role, layer, head: 0 };
  });
}

export const isMissing = (problem) => problem instanceof Refusal && problem.status === 404;

/** @returns what was promised, or the refusal by the server */
const orRefusal = (promised) =>
  promised.catch((problem) => {
    if (problem instanceof Refusal) return problem;
    throw problem;
  });

function orThrow(found) {
  if (found instanceof Refusal) throw found;
  return found;
}

const isKnownTo = ({ words }) => words.every(({ isKnown }) => isKnown);

/**
 * The head of "demo" reads a sentence of words that it knows, and the heads of "small" any other: one reading each, by
 * rising layer. Without "small", or if it is wanted, "demo" reads what it can.
 * @param {string} text @param {boolean} isDemoWanted @param {AbortSignal} [signal] @returns {Promise<Reading[]>}
 */
export async function readSentence(text, isDemoWanted, signal) {
  const read = (model, heads) => orRefusal(readLayers(model, heads, text, signal));
  const known = await read("demo", [{ role: OPENING.id, layer: OPENING.layer }]);
  if (isMissing(known)) throw known;
  const isRefused = known instanceof Refusal;
  if (isDemoWanted || (!isRefused && isKnownTo(known[0]))) return orThrow(known);
  const free = await read("small", ROLES_OF_SMALL);
  return orThrow(isMissing(free) ? known : free);
}

/** Least weight on another word of a head that is sure of it, and of one that is shown first all the same. */
export const SURE_FROM = 0.5;
const TOLD_FROM = 0.2;

/** What the head for pronouns was trained on. */
const PRONOUN = /^(it|he|she|they|o|onlar|он|она|оно|они)$/iu;

/** The last pronoun with a word behind it; −1: there is none. @param {Word[]} words */
function pronounIn(words) {
  const last = words.findLastIndex(({ text }) => /\p{L}/u.test(text));
  return words.findLastIndex(({ text }, at) => at < last && PRONOUN.test(text));
}

/**
 * The word that points at another word most, and its weight there. In "small", which does not look ahead, the word that decides what a
 * pronoun means stands behind it, and the noun in front of it.
 * @param {Reading} reading
 */
function strongestIn({ words, weights, role }) {
  const pronoun = role === "small.referent" ? pronounIn(words) : -1,
    isLink = (i, j) => i !== j && !words[i].isSpecial && !words[j].isSpecial && (pronoun < 0 || (i > pronoun && j < pronoun));
  let found = { at: Math.max(0, words.findIndex(({ isSpecial }) => !isSpecial)), weight: -1 };
  weights.forEach((row, i) => row.forEach((weight, j) => isLink(i, j) && weight > found.weight && (found = { at: i, weight })));
  return found;
}

/** Whether the head looks for what a pronoun means, and finds none that it has learned. @param {Reading} reading */
export const lacksPronoun = ({ role, words }) => role === "small.referent" && !words.some(({ text }) => PRONOUN.test(text));

/** The reading to show first: the highest layer that looks at a word. The head for pronouns may be unsure, but needs one. @param {Reading[]} readings */
export function tellingReading(readings) {
  const isTelling = (reading) => {
    const { weight } = strongestIn(reading);
    return reading.role === "small.referent" ? pronounIn(reading.words) >= 0 && weight >= TOLD_FROM : weight >= SURE_FROM;
  };
  return readings.findLast(isTelling) ?? readings[0];
}

/** The word to show first. @param {Reading} reading */
export const tellingWord = (reading) => strongestIn(reading).at;

/** Whether at most one word differs. @param {Reading | null} before @param {Reading} reading */
export const hasSameWords = (before, { words }) =>
  before?.words.length === words.length && words.filter(({ text }, at) => text !== before.words[at].text).length <= 1;

/** The text with other words in the place of some of its own. @param {Reading} reading @param {Map<Word, string>} others */
export function withWords({ text }, others) {
  const characters = Array.from(text);
  for (const [{ from, to }, other] of [...others].reverse()) characters.splice(from, to - from, other);
  return characters.join("");
}

/** Most words that are offered. */
const OFFERED = 3;

/** Least number of letters to insert, remove or replace (Levenshtein). */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + Number(a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length];
}

/** All words of "demo", which are the predictions at any token. @type {Promise<string[]> | null} */
let vocabulary = null;

async function wordsOfDemo() {
  const body = { inputs: { text: "a" }, options: { return: ["predictions"], predictions_k: 1000, queries: [0] } };
  const { outputs } = await (await ask(pathOfModel("demo"), { body })).json();
  return outputs.predictions.tokens[0][0].filter((word) => /^\p{L}{2,}$/u.test(word));
}

/**
 * Words that the model knows and that are spelled almost like an unknown one, the nearest first.
 * @param {Word[]} unknown @returns {Promise<string[][]>} for each unknown word
 */
export async function nearWords(unknown) {
  vocabulary ??= wordsOfDemo().catch((problem) => {
    vocabulary = null;
    throw problem;
  });
  const known = await vocabulary;
  return unknown.map((word) => {
    const text = word.text.toLowerCase(),
      [first] = word.text,
      most = Math.min(2, text.length / 3),
      written = (one) => (first === first.toLowerCase() ? one : one[0].toUpperCase() + one.slice(1));
    return known
      .map((one) => ({ one, far: distance(one, text) }))
      .filter(({ far }) => far <= most)
      .sort((a, b) => a.far - b.far)
      .slice(0, OFFERED)
      .map(({ one }) => written(one));
  });
}
