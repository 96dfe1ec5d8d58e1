/**
 * lesson.js: a lesson is a file: a request, and pages, each a sentence and a view (docs/lessons.md).
 *
 * @typedef {string | Record<string, string>} Words in every language, or by language
 * @typedef {{say: Words, step: string, head?: number, row?: number, col?: number, scale?: boolean,
 *            masks?: object, options?: object}} Page
 * @typedef {{title: Words, endpoint?: string, request: object, pages: Page[]}} Lesson
 */
import { BARE, LAYER } from "../request/presets.js";
import { checkedRequest, isCount, isObject } from "../request/request.js";
import { Problem } from "../texts.js";

/** Those that come along. */
export const LESSONS = ["hand", "masks", "cross"];

const PAGES_MOST = 60;

/** @param {any} words @param {string} language @returns {any} in that language, else in the first that there is */
export const inLanguage = (words, language) => (isObject(words) ? (words[language] ?? Object.values(words)[0]) : words);

const isWording = (value) =>
  typeof value === "string" || (isObject(value) && Object.keys(value).length > 0 && Object.values(value).every((one) => typeof one === "string"));

export const isLesson = (json) => isObject(json) && Array.isArray(json.pages);

/** @param {any} json @returns {Lesson} @throws {Problem} that says which page is wrong */
export function checkedLesson(json) {
  if (!isLesson(json) || !isObject(json.request) || !isWording(json.title)) throw new Problem("lesson.parts");
  if (json.pages.length === 0 || json.pages.length > PAGES_MOST) throw new Problem("lesson.pages", { most: PAGES_MOST });
  json.pages.forEach((page, at) => {
    const isGood =
      isObject(page) && isWording(page.say) && typeof page.step === "string" && [page.head ?? 0, page.row ?? 0, page.col ?? 0].every(isCount);
    if (!isGood || (page.masks && !isObject(page.masks)) || (page.options && !isObject(page.options)))
      throw new Problem("lesson.page", { page: at + 1 });
  });
  requestIn(json, "en");
  return json;
}

function requestIn(lesson, language) {
  const tokens = Object.fromEntries(
    Object.entries(lesson.request.tokens ?? {}).map(([name, list]) => [name, inLanguage(list, language)]),
  );
  return checkedRequest({ ...lesson.request, tokens });
}

/** @param {Lesson} lesson @param {number} at @returns {import("../request/presets.js").Case} */
export function caseOfPage(lesson, at, language) {
  const request = requestIn(lesson, language),
    { masks, options } = lesson.pages[at];
  return {
    id: "",
    endpoint: lesson.endpoint === BARE ? BARE : LAYER,
    request: { ...request, masks: { ...request.masks, ...masks }, options: { ...request.options, ...options } },
  };
}

/** @param {Lesson} lesson @param {number} at what of a view the page sets */
export function viewOfPage(lesson, at) {
  const { step, head = 0, row = 0, col = 0 } = lesson.pages[at];
  return { page: at, step: step === "heads" ? "attention" : step, head, row, col, batch: 0 };
}
