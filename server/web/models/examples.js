/**
 * examples.js: heads of the model "demo" that have learned a role, with a sentence that shows it (docs/demo_model.md).
 */
import { caseOver, inputsOfText, ownRequest } from "../exchange/layers.js";
import { withSentence } from "../request/sentence.js";
import { caseOfModel } from "./case.js";

const moduleOf = (layer) => `demo.bert.encoder.layer.${layer}.attention`;

/** Per role: layer, head, sentence, and the word whose row shows it. "swap": a word, and one that redirects it. */
const ROLES = {
  "demo.referent": {
    layer: 3,
    head: 0,
    en: { text: "The animal did not cross the street because it was too tired", word: "it", swap: ["tired", "wide"] },
    tr: { text: "Hayvan caddeyi geçmedi çünkü o çok yorgundu", word: "o", swap: ["yorgundu", "genişti"] },
    ru: {
      text: "Животное не перешло шоссе, потому что оно было слишком усталым.",
      word: "оно",
      swap: ["усталым", "широким"],
    },
  },
  "demo.subject": { layer: 2, head: 0, en: { text: "The keys to the cabinet are old.", word: "are" } },
  "demo.bracket": { layer: 3, head: 1, en: { text: "( a [ b ] c )", word: ")" } },
  "demo.same": { layer: 1, head: 0, en: { text: "Anna likes tea, and Tom likes tea too.", word: "tea" } },
  "demo.previous": { layer: 0, head: 0, en: { text: "Anna likes tea, and Tom likes tea too.", word: "likes" } },
};

/** Pieces of a word that "demo" spells: its vocabulary has every letter. "[UNK]" stands for other characters. */
export const isSpelled = (piece) => piece === "[UNK]" || /^##.$/u.test(piece);

export const EXAMPLES = Object.keys(ROLES);

/** A head with a role that no example shows. */
const NEXT = { role: "demo.next", layer: 0, head: 1 };

/** Head 0 of these layers of the model "small" has a role that is measured (docs/small_model.md). By rising layer. */
export const ROLES_OF_SMALL = [
  { role: "demo.previous", layer: 0 },
  { role: "small.induction", layer: 1 },
  { role: "small.referent", layer: 2 },
];

/** The head that the page opens on. */
export const OPENING = { id: "demo.referent", ...ROLES["demo.referent"] };

export const exampleOn = (id, language) => ROLES[id][language] ?? ROLES[id].en;

/** @param {string} [text] another sentence for the same head @returns {Promise<import("../request/presets.js").Case>} */
export function exampleCase(id, language, text) {
  const { layer, head } = ROLES[id],
    { text: own, word } = exampleOn(id, language);
  return caseOfModel({ model: "demo", module: moduleOf(layer), layer, text: text ?? own }, { head, word, id: (text ?? own) === own ? id : "" });
}

/** Names a case that equals an example. @returns {import("../request/presets.js").Case} */
export function exampleOf(given) {
  const { source, layer, request } = given,
    isPlain = ["masks", "options"].every((name) => Object.keys(request[name]).length === Object.keys(layer.base[name] ?? {}).length);
  const found = EXAMPLES.find((id) => ["en", "tr", "ru"].some((language) => ROLES[id][language]?.text === source.text));
  return { ...given, id: isPlain && found && ROLES[found].layer === source.layer ? found : "" };
}

/** Heads with a role, by model. @type {Record<string, {role: string, layer: number, head: number}[]>} */
const HEADS = {
  demo: [...EXAMPLES.map((role) => ({ role, layer: ROLES[role].layer, head: ROLES[role].head })), NEXT],
  small: ROLES_OF_SMALL.map((one) => ({ ...one, head: 0 })).reverse(),
};

/** The heads of a model that have a role, the most telling one first. @param {string | undefined} model */
export const headsWithRole = (model) => HEADS[model] ?? [];

/** The role of a head of a model, for any text. @returns {string} "" if it has none */
export const roleOfHead = (model, layer, head) => headsWithRole(model).find((one) => one.layer === layer && one.head === head)?.role ?? "";

export const roleOf = ({ source }, head) => roleOfHead(source?.model, source?.layer, head);

/** The two words of "swap" for a sentence with one of them, and its two forms. @returns {{words: string[], texts: string[], chosen: number} | null} */
export function swapOf({ source }) {
  for (const { swap: words, text } of ["en", "tr", "ru"].map((language) => OPENING[language])) {
    const texts = [text, text.replace(words[0], words[1])],
      chosen = texts.indexOf(source?.text);
    if (chosen >= 0) return { words, texts, chosen };
  }
  return null;
}

/** Options and masks added to those of the layer, without masks that fit one number of tokens only. */
function ownOf(given) {
  const { masks, options } = ownRequest(given),
    { attend, bias, padding, key_lengths, query_lengths, documents, blocks, ...rules } = masks ?? {};
  return { masks: rules, options };
}

/** Replaces the sentence of a case. @returns {Promise<import("../request/presets.js").Case>} */
export async function caseOfSentence(given, text, view, numbers) {
  const { source, layer, request } = given,
    { tokens } = request;
  if (source) {
    const word = tokens.query[view.row] ?? "";
    return exampleOf(await caseOfModel({ ...source, text }, { head: view.head, word, layer, ...ownOf(given) }));
  }
  if (!layer) return withSentence(given, text, view, numbers);
  return { ...caseOver(layer, { ...inputsOfText(layer, text, numbers.seed), ...ownOf(given) }), seed: numbers.seed };
}
