/**
 * progress.js: one bar for the requests that take long, with a button that stops them.
 *
 * A server that sends no events leaves the bar without a value.
 */
import { h } from "./dom.js";
import { listenToWaits, waits } from "./exchange/waiting.js";

const SHOWN_AFTER_MS = 500;

/** What the events of a server count. */
const COUNTED = ["layer", "token", "preparation"];

/** @param {import("./main.js").App} app */
export function createProgress(app) {
  const label = h("label#progress-label", { for: "progress" }),
    bar = h("progress#progress", {}),
    stop = h("button", { type: "button", onclick: () => waits.forEach((wait) => wait.stop()) }),
    element = h("section.waiting", { hidden: true, "aria-labelledby": label.id }, label, bar, stop);
  let timer = 0;

  /** Of several slow requests, the first one that says how far it is. */
  function slowest() {
    const slow = [...waits].filter(({ since }) => performance.now() - since >= SHOWN_AFTER_MS);
    return slow.find(({ progress }) => progress) ?? slow[0];
  }

  function show({ progress }) {
    if (progress?.of) [bar.max, bar.value] = [progress.of, progress.done];
    else bar.removeAttribute("value");
    const what = !progress?.of ? "unknown" : COUNTED.includes(progress.what) ? progress.what : "task";
    label.textContent = app.t("progress." + what, progress ?? {});
    stop.textContent = app.t("stop");
    if (element.hidden) app.say(label.textContent, "progress"); // once: later numbers would interrupt the reader
    element.hidden = false;
  }

  function update() {
    const wait = slowest();
    clearTimeout(timer);
    if (waits.size > 0) timer = setTimeout(update, SHOWN_AFTER_MS);
    if (wait) show(wait);
    else element.hidden = true;
  }

  listenToWaits(update);
  return element;
}
