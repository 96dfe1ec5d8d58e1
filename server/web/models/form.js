/**
 * form.js: the form of the Models mode, and the controls for the order of the heads.
 */
import { choice, field, h } from "../dom.js";
import { NO_CHANGES } from "./changes.js";
import { headsWithRole } from "./examples.js";
import { areToolsOpen, MASK, MEASURES, PARTS, sentenceBeside, SENTENCES, unmasked } from "./view_state.js";

/** The models of the program, which have learned from such sentences. A language model hides no words. */
const HAS_SAMPLES = { demo: () => true, small: (sentence) => !sentence.includes(MASK) };

/**
 * What another model makes of the view: a head that has a role opens, and a sentence of the list hides a word only from models that fill it in.
 * @param {import("./textrun.js").Facts} facts @param {string[]} texts @returns {Partial<import("./view_state.js").ViewState>}
 */
export function toModel({ name, kind }, texts, language) {
  const [first] = headsWithRole(name);
  return {
    model: name,
    ...NO_CHANGES,
    ...(first ? { layer: first.layer, head: first.head } : {}),
    hidesFirst: Boolean(first),
    texts: kind === "encoder" ? texts : texts.map((text) => unmasked(text, language)),
    linked: [],
    row: -1,
    newTokens: 0,
  };
}

/** Fields for a sentence and a second one to compare, and choices of the model, of a sentence to try, and of all tools. Enter submits. */
export function createForm(app, { change, viewState, toModelOf }) {
  const { t } = app;
  const model = choice([], "", (value) => toModelOf(value));
  const inputOf = () => h("input", { type: "text", spellcheck: "false", autocomplete: "off" });
  const [text, second, target] = [inputOf(), inputOf(), inputOf()];
  const part = choice(
    PARTS.map((id) => [id, t("models." + id)]),
    PARTS[0],
    (value) => change({ part: value, row: -1, ...NO_CHANGES }),
  );
  const samples = h("select", { "aria-label": t("models.samples"), onchange: () => useSample(samples.value) });
  const twice = h("button.rare", { type: "button", onclick: () => both() }, t("models.two"));
  const send = (event) => {
    event?.preventDefault();
    const before = viewState(),
      texts = [text.value, ...(before.texts.length > 1 ? [second.value] : [])];
    if (texts.some((one) => one.trim() === "")) return;
    const isSame = String([...texts, target.value]) === String([...before.texts, before.target]);
    change({ texts, target: target.value, row: -1, ...(isSame ? {} : { edges: [], lines: [], newTokens: 0 }) });
  };
  const useSample = (sentence) => {
    text.value = sentence;
    send();
  };
  const both = () => {
    const { texts } = viewState(),
      isOne = texts.length === 1;
    change({ texts: isOne ? [texts[0], sentenceBeside(texts[0], app.language)] : [texts[0]] });
  };
  const secondField = field(t("models.second"), second),
    targetField = field(t("models.target"), target),
    partField = field(t("models.part"), part);
  const element = h(
    "form.model-form",
    { onsubmit: send },
    field(t("models.sentence"), text),
    secondField,
    targetField,
    partField,
    h("button.main", {}, t("models.run")),
  );
  const tools = h("button", { type: "button", onclick: () => change({ tools: areToolsOpen(viewState()) ? "closed" : "open" }) }, t("models.tools")),
    choices = h("div.model-choices", {}, h("label.check", {}, t("models.model"), model), samples, tools);
  let made = "",
    known = null;

  function makeOptions(now, facts) {
    const isFitting = HAS_SAMPLES[now.model] ?? (() => false),
      key = JSON.stringify([facts.map(({ name, state }) => [name, state]), app.language, now.model]);
    if (key !== made) {
      model.replaceChildren(...facts.map(({ name }) => h("option", { value: name }, name)));
      samples.replaceChildren(
        h("option", { value: "", disabled: true, selected: true }, t("models.samples")),
        ...SENTENCES[app.language].filter(isFitting).map((sentence) => h("option", {}, sentence)),
      );
    }
    made = key;
    model.value = now.model;
    samples.selectedIndex = 0;
  }

  /** Overwrites the fields only if the texts of the state have changed, so that typing is not disturbed. */
  function update(now, facts, dump) {
    makeOptions(now, facts);
    const key = JSON.stringify([now.texts, now.target]);
    if (key !== known) [text.value, second.value, target.value] = [now.texts[0], now.texts[1] ?? "", now.target];
    known = key;
    const one = facts.find(({ name }) => name === now.model),
      isTwo = one?.kind === "encoder-decoder";
    element.hidden = choices.hidden = twice.hidden = facts.length === 0 || Boolean(dump);
    tools.setAttribute("aria-expanded", String(areToolsOpen(now)));
    part.value = now.part;
    samples.hidden = !one || !Object.hasOwn(HAS_SAMPLES, one.name);
    secondField.hidden = now.texts.length < 2;
    targetField.hidden = partField.hidden = !isTwo;
    twice.textContent = t(now.texts.length > 1 ? "models.one" : "models.two");
    text.disabled = second.disabled = ["image", "audio"].includes(one?.kind);
  }
  return { element, choices, twice, update };
}

/** Controls that sort and filter the heads, for all texts. */
export function createTools(app, { change }) {
  const { t } = app;
  const measure = choice(
    MEASURES.map((id) => [id, t("models.measure." + id)]),
    "none",
    (value) => change({ measure: value, isSorted: value !== "none", least: value === "none" ? 0 : least.valueAsNumber }),
  );
  const check = (name) => h("input", { type: "checkbox", onchange: (event) => change({ [name]: event.target.checked }) });
  const [sorted, hidesFirst] = [check("isSorted"), check("hidesFirst")];
  const least = h("input", { type: "range", min: 0, max: 0.95, step: 0.05, oninput: () => change({ least: least.valueAsNumber }) });
  const label = (input, text) => h("label.check", {}, input, text);
  const byMeasure = [label(sorted, t("models.sorted")), h("label.check", {}, t("models.least"), least)];
  const element = h(
    "div.row-of.rare",
    {},
    h("label.check", {}, t("models.measure"), measure),
    byMeasure,
    label(hidesFirst, t("models.hideFirst")),
  );
  const update = (now) => {
    measure.value = now.measure;
    sorted.checked = now.isSorted;
    hidesFirst.checked = now.hidesFirst;
    least.value = String(now.least);
    for (const one of byMeasure) one.hidden = now.measure === "none";
  };
  return { element, update };
}
