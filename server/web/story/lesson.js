/**
 * lesson.js: checks lessons. A lesson is a file: a request, and pages of a sentence and a view (docs/lessons.md).
 *
 * @typedef {string | Record<string, string>} Words one text for all languages, or one per language
 * @typedef {{say: Words, step: string, head?: number, row?: number, col?: number, scale?: boolean,
 *            inputs?: object, masks?: object, options?: object, tokens?: object}} Page
 * @typedef {{title: Words, endpoint?: string, request: object, pages: Page[]}} Lesson
 */
import { BARE, LAYER } from "../request/presets.js";
import { checkedRequest, isCount, isObject } from "../request/validation.js";
import { Problem } from "../texts.js";

/** The lessons that the server has. */
export const LESSONS = ["hand", "masks", "cross"];

const PAGES_MOST = 60;

/** @param {any} words @param {string} language @returns {any} the text in that language, else the first one */
export const inLanguage = (words, language) => (isObject(words) ? (words[language] ?? Object.values(words)[0]) : words);

const isWording = (value) =>
  typeof value === "string" || (isObject(value) && Object.keys(value).length > 0 && Object.values(value).every((one) => typeof one === "string"));

export const isLesson = (json) => isObject(json) && Array.isArray(json.pages);

/** @param {any} json @returns {Lesson} @throws {Problem} that names the wrong page */
export function checkedLesson(json) {
  if (!isLesson(json) || !isObject(json.request) || !isWording(json.title)) throw new Problem("lesson.parts");
  if (json.pages.length === 0 || json.pages.length > PAGES_MOST) throw new Problem("lesson.pages", { most: PAGES_MOST });
  json.pages.forEach((page, at) => {
    const isGood =
      isObject(page) && isWording(page.say) && typeof page.step === "string" && [page.head ?? 0, page.row ?? 0, page.col ?? 0].every(isCount);
    if (!isGood || OWN_OF_PAGE.some((name) => page[name] !== undefined && !isObject(page[name])))
      throw new Problem("lesson.page", { page: at + 1 });
  });
  json.pages.forEach((_, at) => requestOfPage(json, at, "en"));
  return json;
}

/** Members of a request that a page extends. */
const OWN_OF_PAGE = ["inputs", "masks", "options", "tokens"];

function requestOfPage({ request, pages }, at, language) {
  const merged = OWN_OF_PAGE.map((name) => [name, { ...request[name], ...pages[at][name] }]),
    extended = { ...request, ...Object.fromEntries(merged) };
  const tokens = Object.entries(extended.tokens).map(([name, list]) => [name, inLanguage(list, language)]);
  return checkedRequest({ ...extended, tokens: Object.fromEntries(tokens) });
}

/** @param {Lesson} lesson @param {number} at @returns {import("../request/presets.js").Case} */
export function caseOfPage(lesson, at, language) {
  return { id: "", endpoint: lesson.endpoint === BARE ? BARE : LAYER, request: requestOfPage(lesson, at, language) };
}

/** Members of a view that a page sets. Row −1 is where the heads differ. @param {Lesson} lesson @param {number} at */
export function viewOfPage(lesson, at) {
  const { step, head = 0, row = step === "heads" ? -1 : 0, col = 0 } = lesson.pages[at];
  return { page: at, step: step === "heads" ? "attention" : step, head, row, col, batch: 0 };
}
