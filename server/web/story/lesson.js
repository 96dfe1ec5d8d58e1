/**
 * lesson.js: checks lessons. A lesson is a file: a request, and pages of a sentence and a view (docs/lessons.md).
 *
 * @typedef {string | Record<string, string>} Words one text for all languages, or one per language
 * @typedef {{say: Words, step: string, head?: number, row?: number, col?: number, scale?: boolean, ask?: Words,
 *            endpoint?: string, request?: object, inputs?: object, masks?: object, options?: object, tokens?: object}} Page
 * @typedef {Record<string, string[] | Record<string, string[]>>} Features names of columns: input, query, value
 * @typedef {{name: Words, inputs?: object, masks?: object, options?: object, tokens?: object}} Variant
 * @typedef {{title: Words, endpoint?: string, request: object, features?: Features, variants?: Variant[], pages: Page[]}} Lesson
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

const LANGUAGES = ["en", "tr", "ru"],
  VARIANTS_MOST = 4;

/** Members of a request that a variant and a page extend. */
const EXTENDED = ["inputs", "masks", "options", "tokens"];

const extendsWell = (one) => EXTENDED.every((name) => one[name] === undefined || isObject(one[name]));

/** @param {any} json @returns {Lesson} @throws {Problem} that names the wrong page */
export function checkedLesson(json) {
  if (!isLesson(json) || !isObject(json.request) || !isWording(json.title)) throw new Problem("lesson.parts");
  if (json.pages.length === 0 || json.pages.length > PAGES_MOST) throw new Problem("lesson.pages", { most: PAGES_MOST });
  const { variants = [], features = {} } = json;
  if (!Array.isArray(variants) || variants.length > VARIANTS_MOST || !variants.every((one) => isObject(one) && isWording(one.name) && extendsWell(one)))
    throw new Problem("lesson.variants", { most: VARIANTS_MOST });
  const areNames = (list) => Array.isArray(list) && list.every((name) => typeof name === "string");
  if (!isObject(features) || !Object.values(features).every((one) => LANGUAGES.every((language) => areNames(inLanguage(one, language)))))
    throw new Problem("lesson.features");
  json.pages.forEach((page, at) => {
    const isGood =
      isObject(page) && isWording(page.say) && typeof page.step === "string" && [page.head ?? 0, page.row ?? 0, page.col ?? 0].every(isCount);
    if (!isGood || !extendsWell(page) || !isWording(page.ask ?? "") || !isObject(page.request ?? {})) throw new Problem("lesson.page", { page: at + 1 });
  });
  json.pages.forEach((_, at) => LANGUAGES.forEach((language) => [{}, ...variants].forEach((_, variant) => requestOfPage(json, at, language, variant))));
  return json;
}

/** Lists by language; a tensor of shape and data is an object, too. */
const listsIn = (members = {}, language) =>
  Object.fromEntries(Object.entries(members).map(([name, list]) => [name, isObject(list) && !list.shape ? inLanguage(list, language) : list]));

/** The request of the page, or that of the lesson, of the variant and of what the page adds. @param {Lesson} lesson */
function requestOfPage({ request, pages, variants }, at, language, variant) {
  const page = pages[at],
    parts = page.request ? [page.request, page] : [request, variants?.[variant] ?? {}, page];
  const merge = (name) => Object.assign({}, ...parts.map((part) => (name === "inputs" || name === "tokens" ? listsIn(part[name], language) : part[name])));
  return checkedRequest({ ...parts[0], ...Object.fromEntries(EXTENDED.map((name) => [name, merge(name)])) });
}

/** @param {Lesson} lesson @param {number} at @param {number} variant @returns {import("../request/presets.js").Case} */
export function caseOfPage(lesson, at, language, variant = 0) {
  const endpoint = lesson.pages[at].endpoint ?? lesson.endpoint;
  return { id: "", endpoint: endpoint === BARE ? BARE : LAYER, request: requestOfPage(lesson, at, language, variant) };
}

/** Names of columns on a page: "d0", … where the lesson has none. @param {Lesson} lesson @returns {import("../panels/explain.js").NameOf} */
export function featuresOf({ features, pages }, at, language) {
  const known = pages[at].request ? {} : (features ?? {});
  return (kind, column, within = column) => inLanguage(known[kind], language)?.[column] ?? "d" + within;
}

/**
 * Members of a view that a page sets. Row −1 is where the heads differ; column −1 has the largest number of the row.
 * @param {Lesson} lesson @param {number} at @param {number} variant
 */
export function viewOfPage(lesson, at, variant = 0) {
  const { step, head = 0, row = step === "heads" ? -1 : 0, col = 0, request } = lesson.pages[at];
  return { page: at, step: step === "heads" ? "attention" : step, head, row, col: variant > 0 && !request ? -1 : col, batch: 0 };
}
