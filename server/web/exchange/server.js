/**
 * server.js: HTTP requests to the server. A copy of the page opened from disk has none.
 */

import { Problem } from "../texts.js";

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

export const hasServer = () => location.protocol !== "file:";

/** Held in memory only, until the page is closed. */
let apiKey = "";

export const hasKey = () => apiKey !== "";
export const useKey = (key) => {
  apiKey = key.trim();
};

/**
 * @param {string} path relative to the page
 * @param {{accept?: string, body?: object, signal?: AbortSignal}} [options] with a body, the method is POST
 * @returns {Promise<Response>} or throws a Refusal
 */
export async function ask(path, { accept = "application/json", body, signal } = {}) {
  const sent = body && { method: "POST", body: JSON.stringify(body) };
  const headers = {
    Accept: accept,
    ...(body ? { "Content-Type": "application/json" } : {}),
    ...(apiKey ? { Authorization: "Bearer " + apiKey } : {}),
  };
  // A URL has several representations, and kept layers may change, so the browser's cache is not used.
  const response = await reached(fetch(path, { signal, headers, cache: "no-store", ...sent }));
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ error: response.statusText }));
  throw new Refusal({ status: response.status, ...problem });
}
