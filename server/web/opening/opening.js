/**
 * opening.js: the first mode: a sentence, and where a head that has learned something looks in it.
 */
import { bdi, h, sayOnce } from "../dom.js";
import { exampleCase, exampleOn, OPENING, ROLES_OF_SMALL, swapOf } from "../models/examples.js";
import { fixed } from "../request/tensor.js";
import { createPicture } from "./picture.js";
import { hasSameWords, isMissing, lacksPronoun, nearWords, readSentence, SURE_FROM, tellingReading, tellingWord, withWords } from "./reading.js";

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
  let readings = [],
    reading = null,
    chosen = 0,
    wanted = null,
    running = null;

  const say = (text, stroke = 0) => store.setView({ opening: text === example.text ? "" : text }, stroke);
  const picture = createPicture({ label: t("opening.words"), unknown: t("opening.unknown"), choose });
  const answer = h("p.answer", { role: "status" }),
    swap = createSwap(app, (text) => say(text)),
    own = createOwn(app, example, say),
    unknown = createUnknown(app, (text) => say(text)),
    readers = createReaders(app);
  const title = h("h2", {}),
    rest = h("span", {});
  const element = h(
    "section.opening",
    { "aria-label": t("mode.start") },
    h("div.says", {}, answer, title),
    picture.element,
    h("div.changes", {}, swap.element, own.form),
    readers.element,
    unknown.element,
    h("p.note", {}, rest, " ", t("opening.how")),
    h(
      "div.ways",
      {},
      button(t("opening.story"), () => app.openMode("story"), { class: "main" }),
      own.button,
      button(t("opening.own"), () => app.openMode("bug")),
    ),
  );

  function choose(at) {
    chosen = at;
    picture.show(reading, at);
    showAnswer();
  }

  function show(found, at) {
    reading = found;
    const { model, role } = found;
    title.textContent = t("opening.title." + model, { ...found, role: t("role." + role) });
    rest.textContent = t("opening.nowhere." + model);
    readers.update(found);
    app.isReadBySmall = model === "small";
    choose(at);
  }

  /** Says in a sentence what the thickest line shows. */
  function showAnswer() {
    const { words, weights } = reading,
      row = weights[chosen],
      at = row.indexOf(Math.max(...row)),
      [word, noun] = [words[chosen].text, words[at].text];
    const share = fixed(100 * row[at], 0),
      key = words[at].isSpecial ? "opening.rests" : row[at] < SURE_FROM ? "opening.unsure" : "opening.looks",
      said = h("p", {}, filled(app, key, { word, noun }, { share }), lacksPronoun(reading) && ` ${t("opening.noPronoun")}`);
    if (said.textContent !== answer.textContent) answer.replaceChildren(...said.childNodes);
  }

  async function ask(text, reader) {
    wanted = [text, reader === "demo"];
    running?.abort();
    const { signal } = (running = new AbortController());
    try {
      readings = await readSentence(text.trim(), reader === "demo", signal);
      if (signal.aborted) return;
      if (element.classList.contains("stale")) app.notify(""); // keeps a notice that was shown at start
      element.classList.remove("stale");
      app.retries.done("opening");
      const found = readingBy(reader);
      show(found, hasSameWords(reading, found) && found.model === reading.model ? chosen : tellingWord(found));
      await unknown.show(found, signal);
    } catch (problem) {
      if (!signal.aborted) failed(problem, text, reader);
    }
  }

  const readingBy = (reader) => readings.find(({ model, role }) => model === "small" && role === reader) ?? tellingReading(readings);

  function failed(problem, text, reader) {
    if (isMissing(problem)) {
      const { given, view } = store.state; // a server without the model
      store.set({ given: { ...given, isUnused: false }, view: { ...view, mode: "lab" } });
      return;
    }
    element.classList.add("stale");
    app.failed(problem, "opening", () => ask(text, reader));
  }

  function update() {
    const text = openingText(app),
      { reader } = store.state.view;
    swap.update(text);
    own.update(text);
    if (text !== wanted?.[0] || (reader === "demo") !== wanted[1]) ask(text, reader);
    else if (readings.length > 1 && readingBy(reader) !== reading) show(readingBy(reader), tellingWord(readingBy(reader)));
  }
  const pictures = () => (reading ? [{ id: "start", title: answer.textContent, origin: title.textContent, elements: [picture.element] }] : []);
  /** A copy has both forms of the sentence, and its case in the Lab. */
  const complete = () => {
    const { text, model } = reading,
      texts = swapOf({ source: { text } })?.texts ?? [text];
    return Promise.all(texts.flatMap((one) => [readSentence(one, store.state.view.reader === "demo"), model === "demo" && exampleCase(OPENING.id, app.language, one)]));
  };
  return { element, update, focus: picture.focus, pictures, complete };
}

/** Buttons side by side, of which one is pressed. @param {string} label @param {(at: number) => void} choose */
function createSegments(label, choose) {
  const segments = h("span.segments", { role: "group", "aria-label": label }),
    element = h("div.choice", {}, h("span", {}, label), segments);
  let shown = "";
  function update(names, chosen) {
    if (shown !== names.join("\n")) segments.replaceChildren(...names.map((name, at) => h("button", { type: "button", onclick: () => choose(at) }, bdi(name))));
    shown = names.join("\n");
    names.forEach((_, at) => segments.children[at].setAttribute("aria-pressed", String(at === chosen)));
  }
  return { element, update };
}

/** The two words that send the head to one noun or to the other. @param {import("../main.js").App} app */
function createSwap({ t }, say) {
  let found = null;
  const { element, update: show } = createSegments(t("opening.swap"), (at) => say(found.texts[at]));
  element.classList.add("swap");
  function update(text) {
    found = swapOf({ source: { text } });
    element.hidden = found === null;
    if (found) show(found.words, found.chosen);
  }
  return { element, update };
}

/** Which model reads a sentence with words that "demo" does not know, and which head of "small". @param {import("../main.js").App} app */
function createReaders({ t, store }) {
  const readers = ["small", "demo"],
    roles = ROLES_OF_SMALL.map(({ role }) => role);
  const model = createSegments(t("opening.reader"), (at) => store.setView({ reader: readers[at] === "demo" ? "demo" : "" })),
    head = createSegments(t("opening.head"), (at) => store.setView({ reader: roles[at] }));
  const element = h("div.readers", { hidden: true }, model.element, head.element);
  function update({ model: reader, role, words }) {
    const isSmall = reader === "small";
    element.hidden = !isSmall && (store.state.view.reader !== "demo" || words.every(({ isKnown }) => isKnown));
    head.element.hidden = !isSmall;
    model.update(readers, readers.indexOf(reader));
    head.update(
      roles.map((one) => t("opening.head." + one)),
      roles.indexOf(role),
    );
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
    const near = await nearWords(unknown);
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
