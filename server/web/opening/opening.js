/**
 * opening.js: the first mode: a sentence, and where a head that has learned something looks in it.
 */
import { bdi, h, sayOnce } from "../dom.js";
import { Refusal } from "../exchange/server.js";
import { exampleOn, OPENING, swapOf } from "../models/examples.js";
import { fixed } from "../request/tensor.js";
import { createPicture } from "./picture.js";
import { hasSameWords, nearWords, readSentence, tellingWord, withWords } from "./reading.js";

/** Delay between the last key and the request. */
const TYPED_MS = 350;
/** Unknown words for which others are offered. */
const UNKNOWN_MOST = 4;

/** The sentence that the mode shows. @param {import("../main.js").App} app */
export const openingText = ({ store, language }) => store.state.view.opening || exampleOn(OPENING.id, language).text;

/**
 * A text of the page with words of the sentence, each in <bdi>.
 * @param {import("../main.js").App} app @param {string} key @param {Record<string, string>} words @param {object} [values]
 */
function filled({ t }, key, words, values) {
  const marks = Object.keys(words).map((name) => [name, `\n${name}\n`]);
  return t(key, { ...Object.fromEntries(marks), ...values })
    .split("\n")
    .map((part) => (Object.hasOwn(words, part) ? bdi(words[part]) : part));
}

/** @param {import("../main.js").App} app */
export function createOpening(app) {
  const { t, store } = app,
    example = exampleOn(OPENING.id, app.language);
  const button = (name, action, attributes = {}) => h("button", { type: "button", onclick: action, ...attributes }, name);
  let reading = null,
    chosen = 0,
    wanted = null,
    running = null;

  const say = (text, stroke = 0) => store.setView({ opening: text === example.text ? "" : text }, stroke);
  const picture = createPicture({ label: t("opening.words"), unknown: t("opening.unknown"), choose });
  const answer = h("p.answer", { role: "status" }),
    swap = createSwap(app, (text) => say(text)),
    own = createOwn(app, example, say),
    unknown = createUnknown(app, (text) => say(text));
  const title = h("h2", {}, t("opening.title", OPENING));
  const element = h(
    "section.opening",
    { "aria-label": t("mode.start") },
    h("div.says", {}, answer, title),
    picture.element,
    h("div.changes", {}, swap.element, own.form),
    unknown.element,
    h("p.note", {}, t("opening.nowhere"), " ", t("opening.how")),
    h(
      "div.ways",
      {},
      button(t("opening.story"), () => app.openMode("story"), { class: "main" }),
      own.button,
      button(t("opening.own"), () => app.openOwnData()),
    ),
  );

  function choose(at) {
    chosen = at;
    picture.show(reading, at);
    showAnswer();
  }

  /** Says in a sentence what the thickest line shows. */
  function showAnswer() {
    const { words, weights } = reading,
      row = weights[chosen],
      at = row.indexOf(Math.max(...row)),
      [word, noun] = [words[chosen].text, words[at].text];
    const share = fixed(100 * row[at], 0),
      said = h("p", {}, filled(app, words[at].isSpecial ? "opening.rests" : "opening.looks", { word, noun }, { share }));
    if (said.textContent !== answer.textContent) answer.replaceChildren(...said.childNodes);
  }

  async function ask(text) {
    wanted = text;
    running?.abort();
    const { signal } = (running = new AbortController());
    try {
      const found = await readSentence(text, signal);
      if (signal.aborted) return;
      const isSame = hasSameWords(reading, found);
      reading = found;
      if (element.classList.contains("stale")) app.notify(""); // keeps a notice that was shown at start
      element.classList.remove("stale");
      app.retries.done("opening");
      choose(isSame ? chosen : tellingWord(found));
      await unknown.show(found, signal);
    } catch (problem) {
      if (!signal.aborted) failed(problem, text);
    }
  }

  function failed(problem, text) {
    if (problem instanceof Refusal && problem.status === 404) {
      const { given, view } = store.state; // a server without the model
      store.set({ given: { ...given, isUnused: false }, view: { ...view, mode: "lab" } });
      return;
    }
    element.classList.add("stale");
    app.failed(problem, "opening", () => ask(text));
  }

  function update() {
    const text = openingText(app);
    swap.update(text);
    own.update(text);
    if (text !== wanted) ask(text);
  }
  return { element, update, focus: picture.focus };
}

/** The two words that send the head to one noun or to the other. @param {import("../main.js").App} app */
function createSwap({ t }, say) {
  const element = h("div.swap", {}),
    name = h("span", {}, t("opening.swap")),
    segments = h("span.segments", { role: "group", "aria-label": t("opening.swap") });
  element.append(name, segments);
  let shown = null;
  function update(text) {
    const found = swapOf({ source: { text } });
    element.hidden = found === null;
    if (!found || shown === text) return;
    shown = text;
    const { words, chosen, texts } = found;
    if (segments.childElementCount === 0 || segments.textContent !== words.join(""))
      segments.replaceChildren(...words.map((word, at) => h("button", { type: "button", onclick: () => say(texts[at]) }, bdi(word))));
    for (let at = 0; at < 2; at++) segments.children[at].setAttribute("aria-pressed", String(at === chosen));
  }
  return { element, update };
}

/** A field for a sentence of the visitor's, behind a button. @param {import("../main.js").App} app */
function createOwn({ t }, example, say) {
  let timer = 0;
  const typed = () => {
    clearTimeout(timer);
    timer = setTimeout(submit, TYPED_MS);
  };
  const submit = (event) => {
    event?.preventDefault();
    clearTimeout(timer);
    if (input.value.trim() !== "") say(input.value, "opening");
  };
  const input = h("input", { type: "text", dir: "auto", spellcheck: "false", autocomplete: "off", "aria-label": t("text.label"), oninput: typed });
  const back = h("button", { type: "button", onclick: () => leave() }, t("opening.back"));
  const form = h("form.own", { hidden: true, onsubmit: submit }, input, back),
    button = h("button", { type: "button", "aria-expanded": "false", onclick: () => open(form.hidden) }, t("opening.yours"));
  const leave = () => {
    say(example.text);
    open(false);
  };
  function open(isWanted) {
    form.hidden = !isWanted;
    button.setAttribute("aria-expanded", String(isWanted));
    if (!isWanted) return;
    input.focus();
    input.select();
  }
  function update(text) {
    if (document.activeElement !== input) input.value = text;
  }
  return { form, button, update };
}

/** Names the words that the model does not know, and offers those that it knows. @param {import("../main.js").App} app */
function createUnknown(app, say) {
  const { t } = app,
    note = h("p", {}),
    list = h("ul", {}),
    element = h("div.unknowns", { role: "status", hidden: true }, note, list);

  async function show(reading, signal) {
    const unknown = reading.words.filter(({ isKnown }) => !isKnown);
    element.hidden = unknown.length === 0;
    list.replaceChildren();
    if (element.hidden) return;
    sayOnce(note, t("opening.spelled"));
    const near = await nearWords(reading, unknown, signal);
    if (signal.aborted) return;
    const offer = (word, other) => h("button", { type: "button", onclick: () => say(withWords(reading, new Map([[word, other]]))) }, bdi(other));
    list.replaceChildren(
      ...unknown.slice(0, UNKNOWN_MOST).flatMap((word, at) =>
        near[at].length === 0 ? [] : [h("li", {}, filled(app, "opening.near", { word: word.text }), " ", near[at].map((other) => offer(word, other)))],
      ),
    );
  }
  return { element, show };
}
