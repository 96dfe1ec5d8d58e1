/**
 * texts.js: the texts of the page in the chosen language. {name} stands for a value.
 *
 * texts/ has one table per language. The element "texts" of the page holds one of them. The others are fetched when
 * they are chosen.
 */

/** An error whose message is a text of the table. */
export class Problem extends Error {
  /** @param {string} key @param {Record<string, unknown>} [values] @param {string} [message] for code without a table */
  constructor(key, values, message = key) {
    super(message);
    this.key = key;
    this.values = values;
  }
}

export const LANGUAGES = [
  ["en", "English"],
  ["tr", "Türkçe"],
  ["ru", "Русский"],
];

/** @type {Map<string, Record<string, string>>} the first one is embedded in the page */
const textTables = new Map();

function textsHere() {
  const element = textTables.size === 0 && document.querySelector("#texts");
  if (element) textTables.set(element.getAttribute("lang"), JSON.parse(element.textContent));
  return textTables;
}

export const hasTexts = (language) => textsHere().has(language);

/** Language of the embedded table. @returns {string} */
export const ownLanguage = () => textsHere().keys().next().value;

/** @param {string} language @param {Record<string, string>} table */
export const addTexts = (language, table) => textsHere().set(language, table);

/** @returns {Record<string, string>} the embedded table if this language is not loaded */
export const tableOfTexts = (language) => textsHere().get(language) ?? textTables.get(ownLanguage());

/** @param {string} wanted such as "tr-TR" */
export function languageFrom(wanted) {
  const short = wanted.slice(0, 2).toLowerCase();
  return LANGUAGES.some(([id]) => id === short) ? short : "en";
}

/** @param {string} language @returns {(key: string, values?: Record<string, unknown>) => string} */
export function textsOf(language) {
  const table = tableOfTexts(language);
  return (key, values = {}) => {
    const text = table[key];
    if (text === undefined) throw new Error("no text for " + key);
    return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
  };
}
