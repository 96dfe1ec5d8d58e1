/**
 * kept.js: answers about models, which a copy of the page takes along. It repeats them in the place of a server.
 */
import { base64OfBytes, bytesOfBase64 } from "../request/tensor.js";

/** Most answers that are kept, and the longest of them. */
const ANSWERS_MOST = 24,
  BYTES_MOST = 1 << 22;

/** The last answers, by what was asked. @type {Map<string, {type: string, bytes: Promise<ArrayBuffer>}>} */
const answers = new Map();

const keyOf = (path, body) => path + (body ? " " + JSON.stringify(body) : "");

/** @param {string} path @param {object | undefined} body @param {Response} response is still to be read */
export function keepAnswer(path, body, response) {
  const isOfModel = path.startsWith("v1/models") || (!body && path.startsWith("v1/layers/"));
  if (!isOfModel || Number(response.headers.get("Content-Length")) > BYTES_MOST) return response;
  const key = keyOf(path, body) + (path.startsWith("v1/layers/") ? response.headers.get("Content-Type") : "");
  answers.delete(key);
  const bytes = response.clone().arrayBuffer();
  bytes.catch(() => answers.delete(key)); // it was given up
  answers.set(key, { type: response.headers.get("Content-Type"), bytes });
  if (answers.size > ANSWERS_MOST) answers.delete(answers.keys().next().value);
  return response;
}

/** @returns {Promise<Record<string, {type: string, base64: string}>>} as a copy holds them */
export async function answersToTake() {
  const found = await Promise.all(Array.from(answers, async ([key, { type, bytes }]) => [key, { type, base64: base64OfBytes(new Uint8Array(await bytes)) }]));
  return Object.fromEntries(found);
}

/** @type {Record<string, {type: string, base64: string}> | null} */
let taken = null;

/** What this page took along, if it is a copy. */
const answersTaken = () => (taken ??= JSON.parse(document.querySelector("#answers")?.textContent ?? "{}"));

export const isCopy = () => document.querySelector("#state") !== null;
export const hasAnswers = () => Object.keys(answersTaken()).length > 0;

/** @param {string} path @param {object | undefined} body @param {string} accept @returns {Response | null} null: it did not take this answer along */
export function answerTaken(path, body, accept) {
  const answer = answersTaken(),
    found = answer[keyOf(path, body)] ?? answer[keyOf(path, body) + accept];
  return found ? new Response(bytesOfBase64(found.base64), { headers: { "Content-Type": found.type } }) : null;
}
