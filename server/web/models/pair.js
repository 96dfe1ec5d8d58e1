/**
 * pair.js: two sentences above each other. A line that is drawn from a word to the one below it gives the open head, at that word
 * of each sentence, what it has there in the other one.
 *
 * Each pair of words is a button that holds its line. The pairs are one Tab stop, with arrow keys between them.
 */
import { bdi, h, svg } from "../dom.js";
import { oneTabStop } from "../focus.js";
import { canPatch, isIn, toggled } from "./changes.js";
import { plain } from "./measured.js";
import { canChange } from "./textrun.js";

/** @typedef {import("./textrun.js").TextRun} TextRun */

/** @param {import("../main.js").App} app @param {(patch: object) => void} change */
export function createPair(app, change) {
  const { t } = app,
    how = h("p", {}),
    said = h("p.note", { role: "status" }),
    list = h("div.pairs", { role: "toolbar", "aria-label": t("models.lines") }),
    stroke = svg("line", {}),
    band = svg("svg", { class: "band", "aria-hidden": "true" }, stroke),
    element = h("section.pair-box", { hidden: true }, how, h("div.pair-field", {}, list, band), said),
    updateTabStop = oneTabStop(list);
  let seen = null,
    made = "",
    from = null,
    isDrawn = false;

  const toggle = (at) => change({ lines: toggled(seen.lines, seen.layer, seen.head, at) });

  /** The word under the pointer: the number of its pair, and whether it is the lower one. */
  function wordAt({ clientX, clientY }) {
    const word = document.elementFromPoint(clientX, clientY)?.closest(".pairs .word-of"),
      at = word ? Array.from(list.children).indexOf(word.parentElement) : -1;
    return at < 0 ? null : { at, word, isLower: word === word.parentElement.lastElementChild };
  }

  function begin(event) {
    from = event.button === 0 ? wordAt(event) : null;
    if (!from) return;
    list.setPointerCapture(event.pointerId);
    draw(event);
  }

  /** A line from the word to the pointer. */
  function draw({ clientX, clientY }) {
    band.classList.toggle("drawing", from !== null);
    if (!from) return;
    const field = band.getBoundingClientRect(),
      box = from.word.getBoundingClientRect(),
      ends = { x1: box.left + box.width / 2 - field.left, y1: (from.isLower ? box.top : box.bottom) - field.top, x2: clientX - field.left, y2: clientY - field.top };
    for (const [name, value] of Object.entries(ends)) stroke.setAttribute(name, String(value));
  }

  function end(event) {
    if (!from) return;
    const to = wordAt(event),
      begun = from;
    from = null;
    draw(event);
    if (!to) return;
    isDrawn = true;
    said.textContent = to.at === begun.at ? "" : t("models.lineAside");
    list.children[begun.at].focus({ preventScroll: true });
    if (to.at === begun.at) toggle(to.at);
  }

  function cancel(event) {
    from = null;
    draw(event);
  }
  for (const [name, action] of Object.entries({ pointerdown: begin, pointermove: draw, pointerup: end, pointercancel: cancel, click: () => (isDrawn = false) })) list.addEventListener(name, action);

  /** @param {string} upper @param {string} lower @param {number} at */
  function makePair(upper, lower, at) {
    const word = (text) => h("span.word-of", {}, bdi(plain(text)));
    return h("button", { type: "button", "aria-pressed": "false", class: upper === lower ? "" : "differs", onclick: () => isDrawn || toggle(at) }, word(upper), h("i", { "aria-hidden": "true" }), word(lower));
  }

  /** @param {{run: TextRun, other?: TextRun}[]} shown @param {import("./view_state.js").ViewState} viewState */
  function update(shown, viewState) {
    const [one, two] = shown,
      isHead = one && viewState.head < one.run.heads;
    element.hidden = !two || !isHead || !canChange(one.run) || !canPatch(one.run, two.run);
    if (element.hidden) return;
    seen = { ...viewState, layer: Math.min(viewState.layer, one.run.layers - 1) };
    const key = JSON.stringify([one.run.queries, two.run.queries]);
    if (key !== made) {
      list.replaceChildren(...one.run.queries.map((word, at) => makePair(word, two.run.queries[at], at)));
      said.textContent = "";
    }
    made = key;
    how.textContent = t("models.lineHow", { head: t("models.headAt", { layer: seen.layer, head: seen.head }) });
    Array.from(list.children).forEach((button, at) => button.setAttribute("aria-pressed", String(isIn(seen.lines, seen.layer, seen.head, at))));
    updateTabStop();
  }
  return { element, update };
}
