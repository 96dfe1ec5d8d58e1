/**
 * waiting.js: what cannot be had because the server is gone is asked for again, less and less often, until it is here.
 */
import { h } from "./dom.js";

/** A server that does not answer is asked again after this, then twice that, up to the most. */
const RETRY_MS = 2000;
const RETRY_MOST_MS = 30000;

/** @param {import("./main.js").App} app */
export function createWaiting(app) {
  /** What asks again, by what it is for. @type {Map<unknown, () => void>} */
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

  /** Said once; the newest wish of a kind takes the place of the one before. */
  function wait(what, again) {
    if (!waiting.has(what) && !retry?.isConnected) say();
    waiting.set(what, again);
    timer ||= setTimeout(askAgain, Math.min(RETRY_MOST_MS, RETRY_MS * 2 ** tries++));
  }

  /** Nobody wants it any more. @returns {boolean} whether it was the last that was waited for */
  function drop(what) {
    if (!waiting.delete(what) || waiting.size > 0) return false;
    clearTimeout(timer);
    timer = tries = 0;
    if (retry.isConnected) app.notify("");
    return true;
  }

  /** The server has answered. */
  function stop(what) {
    if (drop(what)) app.findLayers();
  }

  window.addEventListener("online", askAgain);
  return { wait, drop, stop };
}
