/**
 * server.js: HTTP requests to the server. A copy of the page opened from disk has none.
 */

import { Problem } from "../texts.js";
import { answerTaken, isCopy, keepAnswer } from "./kept.js";
import { inSight } from "./waiting.js";

const EVENTS = "text/event-stream";

function tokensOf({ expected, received }) {
  const [n, most] = [received, expected].map((text) => /(\d+) tokens$/.exec(text)?.[1]);
  return n && most ? { n, most } : null;
}

/** An error response of the server. */
export class Refusal extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.error ?? String(problem.status));
    this.pointer = problem.pointer ?? "";
    this.status = problem.status;
    /** If a text is too long: its number of tokens, and the most that the model takes. */
    this.tokens = problem.pointer === "/inputs/text" ? tokensOf(problem) : null;
  }
}

/** @param {Promise<any>} answer @throws {Problem} "gone" if the server does not answer */
export const reached = (answer) =>
  answer.catch((problem) => {
    throw problem.name === "AbortError" ? problem : new Problem("gone");
  });

export const hasServer = () => !isCopy() && location.protocol !== "file:";

/** Held in memory only, until the page is closed. */
let apiKey = "";

export const hasKey = () => apiKey !== "";
export const useKey = (key) => {
  apiKey = key.trim();
};

/**
 * Tells of each progress in a stream of events. @param {(progress: import("./waiting.js").Progress) => void} tell
 * @returns {Promise<{name: string, data: string}>} the last event
 */
async function followed(response, tell) {
  const reader = response.body?.getReader(),
    decoder = new TextDecoder();
  for (let text = reader ? "" : await response.text(), end; ; ) {
    while ((end = text.indexOf("\n\n")) >= 0) {
      const [name, ...lines] = text.slice("event: ".length, end).split("\ndata: "),
        data = lines.join("\n");
      text = text.slice(end + 2);
      if (name !== "progress") return { name, data };
      tell(JSON.parse(data));
    }
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (done) throw new Problem("gone");
    text += decoder.decode(value, { stream: true });
  }
}

/** The answer of a stream of events, as the server would have sent it without one. */
async function answerOfEvents(response, tell) {
  const { name, data } = await reached(followed(response, tell));
  if (name === "error") throw new Refusal(JSON.parse(data));
  return new Response(data, { headers: { "Content-Type": "application/json" } });
}

/**
 * @param {string} path relative to the page
 * @param {{accept?: string, body?: object, signal?: AbortSignal, hasEvents?: boolean}} [options] with a body, the method is
 *        POST; hasEvents: the server may say how far it is, and then answers in JSON
 * @returns {Promise<Response>} or throws a Refusal, or the Problem "stopped"; of a copy, "copy.none"
 */
export async function ask(path, { accept = "application/json", body, signal, hasEvents = false } = {}) {
  if (isCopy()) {
    const taken = answerTaken(path, body, accept);
    if (taken) return taken;
    throw new Problem("copy.none");
  }
  const sent = body && { method: "POST", body: JSON.stringify(body) };
  const headers = {
    Accept: hasEvents ? `${EVENTS}, ${accept};q=0.9` : accept,
    ...(body ? { "Content-Type": "application/json" } : {}),
    ...(apiKey ? { Authorization: "Bearer " + apiKey } : {}),
  };
  const send = async (ownSignal, tell) => {
    // A URL has several representations, and kept layers may change, so the browser's cache is not used.
    const response = await reached(fetch(path, { signal: ownSignal, headers, cache: "no-store", ...sent }));
    if (response.ok) return keepAnswer(path, body, response.headers.get("Content-Type") === EVENTS ? await answerOfEvents(response, tell) : response);
    const problem = await response.json().catch(() => ({ error: response.statusText }));
    throw new Refusal({ status: response.status, ...problem });
  };
  return body ? inSight(signal, send, () => new Problem("stopped")) : send(signal);
}
