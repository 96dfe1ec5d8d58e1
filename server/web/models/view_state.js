/**
 * view_state.js: the view of the Models mode: model, texts, and how the heads are shown. It is a part of the view in URLs.
 *
 * @typedef {[number, number]} Head a layer and a head of it
 * @typedef {[number, number, number, number]} Edge a layer, a head of it, a query and a key
 * @typedef {[number, number, number]} Line a layer, a head of it and a query
 * @typedef {object} ViewState
 * @property {string} model
 * @property {string[]} texts one, or two to compare
 * @property {string} target the decoder's text, for encoder-decoders
 * @property {string} part which of the three kinds of maps, for encoder-decoders
 * @property {number} layer of the open head
 * @property {number} head after the last head: mean, maximum, rollout
 * @property {number} row the chosen query; −1: the one that the text suggests
 * @property {string} measure of heads
 * @property {boolean} isSorted by the measure
 * @property {number} least 0…1: the share of heads, from the end of the order, that the filter removes
 * @property {boolean} hidesFirst leaves the column of the first token, on which heads rest, out of the colours and links
 * @property {string} range of all colours
 * @property {string} tab
 * @property {Head[]} linked heads whose links are drawn together
 * @property {Head[]} ablate heads that are switched off
 * @property {Head[]} averaged heads whose context is its mean over the text
 * @property {Head[]} patched heads whose context is that of the other text
 * @property {Edge[]} edges that are hidden
 * @property {Line[]} lines between two texts: places where a head has its context from the other one
 * @property {string} words that are scored, with commas between them
 * @property {boolean} scoresText scores each token of the text, too
 * @property {string} question that is open, one of QUESTIONS; "": none
 * @property {string} sweepOver what a sweep changes in each layer: each head, or each query
 * @property {string} sweepDo what it does to them
 * @property {number} newTokens that the model appends to each text
 * @property {string} tools whether rare controls are shown; "auto": if one of them is in use
 */

import { NO_CHANGES } from "./changes.js";
import { OPENING } from "./examples.js";
import { VIEW_CHOICES } from "../store.js";

/** Sentences in which heads of "demo" show what they have learned (docs/demo_model.md). */
export const SENTENCES = {
  en: [
    "The animal did not cross the street because the [MASK] was too tired",
    "The animal did not cross the street because the [MASK] was too wide",
    "The animal did not cross the street because it was too tired",
    "The animal did not cross the street because it was too wide",
    "Anna likes tea, and Tom likes [MASK] too.",
    "The keys to the cabinet are old.",
    "( a [ b [MASK] c )",
  ],
  tr: [
    "Hayvan caddeyi geçmedi çünkü [MASK] çok yorgundu",
    "Hayvan caddeyi geçmedi çünkü [MASK] çok genişti",
    "Hayvan caddeyi geçmedi çünkü o çok yorgundu",
    "Hayvan caddeyi geçmedi çünkü o çok genişti",
  ],
  ru: [
    "Животное не перешло шоссе, потому что [MASK] было слишком усталым.",
    "Животное не перешло шоссе, потому что [MASK] было слишком широким.",
    "Животное не перешло шоссе, потому что оно было слишком усталым.",
    "Животное не перешло шоссе, потому что оно было слишком широким.",
    "Собака не перешла улицу, потому что она была слишком усталой.",
  ],
};

/** What stands for a hidden word, which only encoders fill in. */
export const MASK = "[MASK]";

const wordsOf = (text) => text.split(/\s+/);

/** A sentence of the list for a model that hides no words, in the place of one with a hidden word. */
export const unmasked = (text, language) =>
  text.includes(MASK) && SENTENCES[language].includes(text)
    ? SENTENCES[language].find((one) => !one.includes(MASK) && wordsOf(one).at(-1) === wordsOf(text).at(-1)) ?? text
    : text;

/** The sentence of the list with as many words and the fewest others; the text itself, if none has as many. */
export function sentenceBeside(text, language) {
  const words = wordsOf(text),
    othersIn = (one) => wordsOf(one).filter((word, at) => word !== words[at]).length;
  const [nearest = text] = SENTENCES[language]
    .filter((one) => one !== text && wordsOf(one).length === words.length)
    .sort((one, other) => othersIn(one) - othersIn(other));
  return nearest;
}

export const PARTS = ["encoder_attention", "decoder_attention", "cross_attention"];
export const MEASURES = ["none", "entropy", "previous_token", "first_token", "same_token", "induction", "distance"];
export const QUESTIONS = ["sweep", "attribution", "generated", "experts"];
export const SWEEP_OVER = ["head", "query"];
export const SWEEP_DO = ["zero", "mean", "replace"];
/** Most that the server appends. */
const NEW_MOST = 4096;
export const HEAD_TABS = ["map", "links"];

/** @returns {ViewState} opens the hidden word, and the head that finds what it refers to */
const defaultViewState = (language) => ({
  model: "demo",
  texts: [SENTENCES[language][0]],
  target: "",
  part: "encoder_attention",
  layer: OPENING.layer,
  head: OPENING.head,
  row: -1,
  measure: "none",
  isSorted: false,
  least: 0,
  hidesFirst: true,
  range: "robust",
  tab: "map",
  linked: [],
  ...NO_CHANGES,
  words: "",
  scoresText: false,
  question: "",
  sweepOver: "head",
  sweepDo: "zero",
  newTokens: 0,
  tools: "auto",
});

/** @param {ViewState} now */
export function areToolsOpen({ tools, question, words, scoresText, measure, texts, linked, averaged, patched, edges, lines }) {
  const isOneUsed = question !== "" || words !== "" || scoresText || measure !== "none" || texts.length > 1 || [linked, averaged, patched, edges, lines].some((list) => list.length > 0);
  return tools === "open" || (tools === "auto" && isOneUsed);
}

/** Most heads or edges in a list. The server refuses too many with a sentence of its own. */
const CHANGES_MOST = 4096;

const isIndex = (value) => Number.isSafeInteger(value) && value >= 0;
/** Whether it is a list of places, each with as many indices: heads have two, lines three, edges four. */
const isPlaces = (value, most, length = 2) =>
  Array.isArray(value) && value.length <= most && value.every((one) => Array.isArray(one) && one.length === length && one.every(isIndex));
const isText = (value) => typeof value === "string" && value.length < 1 << 16;

const IS_POSSIBLE = {
  model: isText,
  texts: (value) => Array.isArray(value) && [1, 2].includes(value.length) && value.every(isText),
  target: isText,
  part: (value) => PARTS.includes(value),
  layer: isIndex,
  head: isIndex,
  row: (value) => value === -1 || isIndex(value),
  measure: (value) => MEASURES.includes(value),
  isSorted: (value) => typeof value === "boolean",
  least: (value) => value >= 0 && value <= 1,
  hidesFirst: (value) => typeof value === "boolean",
  range: (value) => VIEW_CHOICES.range.includes(value),
  tab: (value) => HEAD_TABS.includes(value),
  linked: (value) => isPlaces(value, 64),
  ablate: (value) => isPlaces(value, CHANGES_MOST),
  averaged: (value) => isPlaces(value, CHANGES_MOST),
  patched: (value) => isPlaces(value, CHANGES_MOST),
  edges: (value) => isPlaces(value, CHANGES_MOST, 4),
  lines: (value) => isPlaces(value, CHANGES_MOST, 3),
  words: isText,
  scoresText: (value) => typeof value === "boolean",
  question: (value) => value === "" || QUESTIONS.includes(value),
  sweepOver: (value) => SWEEP_OVER.includes(value),
  sweepDo: (value) => SWEEP_DO.includes(value),
  newTokens: (value) => isIndex(value) && value <= NEW_MOST,
  tools: (value) => ["auto", "open", "closed"].includes(value),
};

/** @param {any} given may come from a URL; invalid members take their default @returns {ViewState} */
export function viewStateFrom(given, language) {
  const viewState = defaultViewState(language);
  for (const [name, isPossibleValue] of Object.entries(IS_POSSIBLE))
    if (given && Object.hasOwn(given, name) && isPossibleValue(given[name])) viewState[name] = given[name];
  return viewState;
}
