/**
 * files.js: what the server has for this page beside it: texts of other languages, lessons, parts of the page itself.
 */
import { h } from "../dom.js";
import { addTexts, hasTexts, Problem } from "../texts.js";
import { ask, hasServer } from "./server.js";

/** @param {string} path below /web/ @returns {Promise<any>} */
export const fileOfPage = (path) => ask("web/" + path).then((response) => response.json());

/** @param {string} language @returns {Promise<boolean>} whether its texts are here now */
export async function fetchTexts(language) {
  if (hasTexts(language)) return true;
  if (!hasServer()) return false;
  const table = await fileOfPage(`texts/${language}.json`).catch(() => null);
  if (table) addTexts(language, table);
  return table !== null;
}

/** @type {Map<string, Promise<string>>} scripts by name: a copy on disk has them in elements of their own */
const parts = new Map();

/** @param {string} name @returns {Promise<string>} its script */
export function fetchPart(name) {
  const here = document.querySelector(`#part-${name}`);
  if (here) return Promise.resolve(JSON.parse(here.textContent));
  if (!parts.has(name)) parts.set(name, fileOfPage(`parts/${name}.json`));
  parts.get(name).catch(() => parts.delete(name));
  return parts.get(name);
}

/** @returns {Promise<Record<string, string>>} all of them, for a copy of the page */
export async function fetchParts() {
  const names = ["diagnosis", "dumps_worker", "models", "story"];
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await fetchPart(name)])));
}

const running = new Set();

/**
 * A part runs in the scope of the page, from an element of its own, because the policy knows the hash of its text.
 * @template Part
 * @param {string} name
 * @param {() => Part} use gives what the part exports
 * @returns {Promise<Part>}
 */
export async function withPart(name, use) {
  const text = await fetchPart(name);
  if (!running.has(name)) document.body.append(h("script", {}, text));
  running.add(name);
  try {
    return await use();
  } catch {
    running.delete(name);
    throw new Problem("part.other");
  }
}
