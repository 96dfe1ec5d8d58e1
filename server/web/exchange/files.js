/**
 * files.js: what the server has for this page beside it: texts of other languages, lessons.
 */
import { addTexts, hasTexts } from "../texts.js";
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
