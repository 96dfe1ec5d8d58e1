/**
 * share.js: the state as the hash of a URL, and as JSON.
 */
import { base64OfBytes, bytesOfBase64, nestedOf, tensorFrom } from "../request/tensor.js";
import { caseOver, fetchLayer, ownRequest } from "./layers.js";
import { caseOfModel, originFrom, originOf } from "../models/case.js";
import { exampleOf } from "../models/examples.js";
import { BARE, LAYER, PRESETS, presetCase } from "../request/presets.js";
import { checkedRequest, isCount } from "../request/validation.js";
import { checkedLesson } from "../story/lesson.js";
import { DEFAULT_VIEW, VIEW_CHOICES } from "../store.js";
import { Problem } from "../texts.js";

/** Browsers open much longer addresses. A layer of 64 features and 32 tokens with expected values needs 120,000 characters. */
const HASH_MAX = 1 << 17;

/** A longer state is not packed. */
const TEXT_MAX = 1 << 22;

/** Digits of the numbers of an address that would be too long with all of them: float32 has no more. */
const DIGITS = 9;

async function through(stream, bytes) {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

const toUrl = (text) => text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const fromUrl = (text) =>
  text
    .replace(/-/g, "+")
    .replace(/_/g, "/")
    .padEnd(Math.ceil(text.length / 4) * 4, "=");

/** Members of a view that differ from the default, except the paint mode. */
export function viewToShare(view) {
  return Object.fromEntries(
    Object.entries(view).filter(
      ([name, value]) => value !== DEFAULT_VIEW[name] && name !== "paint",
    ),
  );
}

function isPossible(name, value) {
  if (VIEW_CHOICES[name]) return VIEW_CHOICES[name].includes(value);
  if (name === "linkThreshold") return value >= 0 && value <= 1;
  if (name === "models") return typeof value === "object";
  if (typeof DEFAULT_VIEW[name] === "number") return isCount(value);
  return ["step", "opening", "reader"].includes(name) && typeof value === "string";
}

/** Ignores unknown names and invalid values. */
export function viewFromShared(given) {
  const view = { ...DEFAULT_VIEW };
  for (const [name, value] of Object.entries(given ?? {}))
    if (Object.hasOwn(DEFAULT_VIEW, name) && isPossible(name, value)) view[name] = value;
  return view;
}

/** Refers to an unedited preset, a text in a model and a kept layer by name. Writes out any other request. */
function contentOfCase({ id, endpoint, layer, request, random, seed, source, copyOf, ...given }) {
  const own = ownRequest({ ...given, layer, request });
  if (layer && source?.inputs === request.inputs) {
    const { model, module, layer: at, text } = source;
    return { source: { model, module, layer: at, text }, request: { masks: own.masks, options: own.options } };
  }
  return id && PRESETS.includes(id) ? { preset: id } : { endpoint, layer: layer?.name, random, seed, request: own, ...(layer ? {} : originOf({ source, copyOf, random, seed })) };
}

/** Each case is serialized once, however often the view changes. */
const caseTexts = new WeakMap();

function textOfCase(given) {
  if (!caseTexts.has(given)) caseTexts.set(given, JSON.stringify(contentOfCase(given)));
  return caseTexts.get(given);
}

/** Expected values are serialized once, with all their digits. */
const expectedTexts = new WeakMap();

export function textOfExpected({ values, rtol, atol }) {
  const number = (value) => (Number.isFinite(value) ? value : String(value)),
    write = ({ tensor, ...one }) => JSON.stringify({ ...one, tensor: nestedOf(tensor, number) });
  for (const one of values) if (!expectedTexts.has(one)) expectedTexts.set(one, write(one));
  return `{"rtol":${rtol},"atol":${atol},"values":[${values.map((one) => expectedTexts.get(one))}]}`;
}

/** @returns {string} the state as JSON, which stateOf reads */
export function textOfState({ given, baseline, expected, lesson, view }) {
  const members = {
    view: JSON.stringify(viewToShare(view)),
    kept: baseline && textOfCase(baseline.given),
    expected: expected && textOfExpected(expected),
    lesson: lesson && JSON.stringify(lesson),
  };
  const written = Object.entries(members).map(([name, text]) => (text ? `,"${name}":${text}` : ""));
  return `${textOfCase(given).slice(0, -1)}${written.join("")}}`;
}

/** The text with numbers of as many digits as float32 has. */
const shortened = (text) => JSON.stringify(JSON.parse(text, (_, value) => (typeof value === "number" ? Number(value.toPrecision(DIGITS)) : value)));

const packedHash = async (text) => "#v1=" + toUrl(base64OfBytes(await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text))));

/** @param {string} text of a state @returns {Promise<string | null>} null: too long for a URL */
export async function hashOf(text) {
  if (text.length > TEXT_MAX) return null;
  const whole = await packedHash(text);
  if (whole.length <= HASH_MAX) return whole;
  if (whole.length > 2 * HASH_MAX) return null; // 17 digits become 9
  const short = await packedHash(shortened(text));
  return short.length <= HASH_MAX ? short : null;
}

async function contentOf(packed) {
  try {
    const bytes = await through(new DecompressionStream("deflate-raw"), bytesOfBase64(fromUrl(packed)));
    const content = JSON.parse(new TextDecoder().decode(bytes));
    if (content !== null && typeof content === "object") return content;
  } catch {
    // Reported below.
  }
  throw new Problem("share.broken");
}

/** @returns {Promise<Awaited<ReturnType<typeof stateOf>> | null>} null: the hash holds no state */
export async function stateOfHash(hash) {
  const [, packed] = /^#v1=(.*)$/.exec(hash) ?? [];
  return packed === undefined ? null : stateOf(await contentOf(packed));
}

/** @returns {Promise<import("../request/presets.js").Case>} @throws {Problem} if it names something unknown */
async function caseOfContent({ preset, endpoint, layer, request: shared, copyOf, random: drawn, seed, source }) {
  if (PRESETS.includes(preset)) return presetCase(preset);
  if (source) return exampleOf(await caseOfModel(source, { masks: shared?.masks, options: shared?.options }));
  if (shared === undefined) throw new Problem("share.broken");
  const request = checkedRequest(shared),
    random = drawn === "all" || drawn === "inputs" ? drawn : undefined;
  if (layer !== undefined) return caseOver(await fetchLayer(layer), { ...request, random });
  if (endpoint !== LAYER && endpoint !== BARE) throw new Problem("share.endpoint", { name: endpoint });
  return { id: "", endpoint, request, random, seed: Number.isSafeInteger(seed) ? seed : undefined, ...originFrom(copyOf, request) };
}

function expectedOf({ values, rtol, atol }) {
  try {
    const read = ({ name, step, isNamed, isChosen, digits, view, tensor }) => {
      if (typeof name !== "string" || typeof step !== "string" || ![digits, view.batch, view.head].every(isCount)) throw new Error(name);
      return { name, step, isNamed: Boolean(isNamed), isChosen: Boolean(isChosen), digits, view: { batch: view.batch, head: view.head }, tensor: tensorFrom(tensor) };
    };
    if (rtol >= 0 && atol >= 0) return { rtol, atol, values: values.map(read) };
  } catch {
    // Reported below.
  }
  throw new Problem("share.broken");
}

/**
 * @param {any} content as textOfState and pageWith write it
 * @returns {Promise<{given: object, view: object, baselineCase: object | null, expected: any, lesson: any}>} baselineCase is to be computed, too
 */
export async function stateOf(content) {
  const given = await caseOfContent(content),
    baselineCase = content.kept ? await caseOfContent(content.kept) : null;
  const view = viewFromShared({ ...given.view, ...content.view });
  const lesson = content.lesson ? checkedLesson(content.lesson) : null,
    expected = content.expected ? expectedOf(content.expected) : null;
  const isUnused = view.mode === "start" && PRESETS.includes(given.id);
  return { given: { ...given, isUnused }, view: baselineCase ? view : { ...view, compare: "now" }, baselineCase, expected, lesson };
}
