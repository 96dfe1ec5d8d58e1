/**
 * measured.js: what sweeps and attributions measure at a token: the logit of a word, or the difference of two.
 */
import { wordsIn } from "./scores.js";
import { predictionsAt } from "./textrun.js";

/** A token as sentences quote it, without the space that many vocabularies put before a word. */
export const plain = (token) => token.trim() || token;

/** A sentence for app.say, which puts a full stop behind each text. */
export const unended = (sentence) => sentence.replace(/\.$/, "");

/**
 * The words that are scored, at most two; without them the best prediction.
 * @param {import("./textrun.js").TextRun} run
 * @returns {Promise<{words: (string | number)[], names: string[]}>} words: as requests have them
 */
export async function measuredAt(run, row, words) {
  const named = wordsIn(words).slice(0, 2);
  if (named.length > 0) return { words: named, names: named.map(plain) };
  const { id, word } = (await predictionsAt(run, row)).last[0];
  return { words: [id ?? word], names: [plain(word)] };
}

/** A number with its sign. */
export const signed = (text) => (/^[−-]/.test(text) ? text : "+" + text);
