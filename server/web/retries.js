/**
 * retries.js: repeats what failed because the server did not answer, with growing delays.
 */
import { h } from "./dom.js";

/** The first delay. It doubles with every try, up to RETRY_MOST_MS. */
const RETRY_MS = 2000;
const RETRY_MOST_MS = 30000;

/** @param {import("./main.js").App} app */
export function createRetries(app) {
  /** Functions that try again, by key. @type {Map<unknown, () => void>} */
  const waiting = new Map();
  let retry = null,
    tries = 0,
    timer = 0;

  function askAgain() {
    clearTimeout(timer);
    timer = 0;
    for (const again of [...waiting.values()]) again();
  }

  function say() {
    retry = h("button", { type: "button", onclick: askAgain }, app.t("retry"));
    app.notify(h("b", {}, app.t("gone")), " ", app.t("gone.again"), " ", retry);
  }

  /** Adds a retry, and shows the notice if it is not shown yet. A newer retry replaces an older one of the same key. */
  function add(what, again) {
    if (!waiting.has(what) && !retry?.isConnected) say();
    waiting.set(what, again);
    timer ||= setTimeout(askAgain, Math.min(RETRY_MOST_MS, RETRY_MS * 2 ** tries++));
  }

  /** Cancels a retry. @returns {boolean} whether it was the last one */
  function cancel(what) {
    if (!waiting.delete(what) || waiting.size > 0) return false;
    clearTimeout(timer);
    timer = tries = 0;
    if (retry.isConnected) app.notify("");
    return true;
  }

  /** A retry succeeded. After the last one, the layers are listed again. */
  function done(what) {
    if (cancel(what)) app.findLayers();
  }

  window.addEventListener("online", askAgain);
  return { add, cancel, done };
}
