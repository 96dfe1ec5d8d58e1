/**
 * files.js: files of the page that the server has below /web/: texts, lessons, and parts of the script.
 */
import { h } from "../dom.js";
import { addTexts, hasTexts, Problem } from "../texts.js";
import { ask, hasServer } from "./server.js";

/** @param {string} path below /web/ @returns {Promise<any>} */
export const fetchFile = (path) => ask("web/" + path).then((response) => response.json());

/** @param {string} language @returns {Promise<boolean>} whether its texts are loaded */
export async function fetchTexts(language) {
  if (hasTexts(language)) return true;
  if (!hasServer()) return false;
  const table = await fetchFile(`texts/${language}.json`).catch(() => null);
  if (table) addTexts(language, table);
  return table !== null;
}

/** @type {Map<string, Promise<string>>} scripts by name; a copy on disk has them in elements of its own */
const parts = new Map();

/** @param {string} name @returns {Promise<string>} its script */
export function fetchPart(name) {
  const here = document.querySelector(`#part-${name}`);
  if (here) return Promise.resolve(JSON.parse(here.textContent));
  if (!parts.has(name)) parts.set(name, fetchFile(`parts/${name}.json`));
  parts.get(name).catch(() => parts.delete(name));
  return parts.get(name);
}

/** @returns {Promise<Record<string, string>>} all parts, for a copy of the page */
export async function fetchParts() {
  const names = ["debugger", "diagnosis", "dumps_worker", "explorer", "lab", "player", "snapshot"];
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await fetchPart(name)])));
}

const running = new Set();

/**
 * Runs a part in an element of its own, because the security policy allows scripts by their hash. The part takes modules
 * from the page (mk/bundle_modules.sh).
 * @template Part
 * @param {string} name
 * @param {() => Part} use returns what the part exports
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
