/**
 * server.js: asks this server. A copy of the page that was opened from disk has none.
 */

import { Problem } from "../texts.js";

function tokensOf({ expected, received }) {
  const [n, most] = [received, expected].map((text) => /(\d+) tokens$/.exec(text)?.[1]);
  return n && most ? { n, most } : null;
}

/** What the server says when it refuses. */
export class Refusal extends Error {
  constructor(problem) {
    super(problem.detail ?? problem.error ?? String(problem.status));
    this.pointer = problem.pointer ?? "";
    this.status = problem.status;
    /** Of a text that is too long: how many tokens it has, and how many a model takes. */
    this.tokens = problem.pointer === "/inputs/text" ? tokensOf(problem) : null;
  }
}

/** @param {Promise<any>} answer @throws {Problem} where no answer comes: the server is gone, or the way to it */
export const reached = (answer) =>
  answer.catch((problem) => {
    throw problem.name === "AbortError" ? problem : new Problem("gone");
  });

export const hasServer = () => location.protocol !== "file:";

/** Kept as long as the page is open, and nowhere else. */
let apiKey = "";

export const hasKey = () => apiKey !== "";
export const useKey = (key) => {
  apiKey = key.trim();
};

/**
 * @param {string} path below the page's own
 * @param {{accept?: string, body?: object, signal?: AbortSignal}} [wish] with a body it is a POST
 * @returns {Promise<Response>} or throws a Refusal
 */
export async function ask(path, { accept = "application/json", body, signal } = {}) {
  const sent = body && { method: "POST", body: JSON.stringify(body) };
  const headers = {
    Accept: accept,
    ...(body ? { "Content-Type": "application/json" } : {}),
    ...(apiKey ? { Authorization: "Bearer " + apiKey } : {}),
  };
  // One address has several forms here, and what is kept may change: nothing is to come from the browser's cache.
  const response = await reached(fetch(path, { signal, headers, cache: "no-store", ...sent }));
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ error: response.statusText }));
  throw new Refusal({ status: response.status, ...problem });
}
