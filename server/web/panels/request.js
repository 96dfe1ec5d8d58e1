/**
 * validation.js: the panel of the request: text, options, kept layers, and data of one's own.
 */
import { choice, field, fileButton, h, numberField, numberOf, sayOnce } from "../dom.js";
import { createUses } from "../expected/own_data.js";
import { shapeOf } from "../exchange/api.js";
import { LAYER } from "../request/presets.js";
import { sentenceOf, DEFAULT_SEED } from "../request/sentence.js";
import { hasServer } from "../exchange/server.js";
import { getIn, VIEW_CHOICES } from "../store.js";

const OPTION = (name) => ["options", name];

/** A number field for a member of the request. Emptying the field removes the member. */
function number(app, path, attributes) {
  const stroke = path.join("/");
  const { element, update } = numberField((value) => app.store.editRequest(path, value, stroke), attributes);
  return {
    element,
    update: (request) => {
      const value = getIn(request, path);
      update(typeof value === "number" ? value : undefined);
    },
  };
}

function check(app, label, path) {
  const input = h("input", {
    type: "checkbox",
    onchange: () => {
      const layerValue = getIn(app.store.state.given.layer?.base, path);
      app.store.editRequest(path, input.checked ? layerValue || true : layerValue ? false : undefined);
    },
  });
  return {
    element: h("label.check", {}, input, label),
    update: (request) => {
      input.checked = Boolean(getIn(request, path));
    },
  };
}

const NORMS = ["", "layer post", "layer pre", "rms post", "rms pre"];

function normChoice(app) {
  const change = (value) => {
    const [type, position] = value.split(" ");
    app.store.editRequest(OPTION("norm"), value ? { type, position } : undefined);
  };
  const select = choice(
    NORMS.map((id) => [id, id ? app.t("norm." + id) : app.t("none")]),
    "",
    change,
  );
  const update = ({ options }) => {
    select.value = options?.norm ? `${options.norm.type} ${options.norm.position ?? "post"}` : "";
  };
  return { element: field(app.t("norm"), select), update };
}

function dropoutFields(app) {
  const path = OPTION("dropout"),
    { t } = app;
  const training = check(app, t("dropout"), OPTION("training"));
  const p = number(app, [...path, "p"], { min: 0, step: 0.05 });
  const seed = number(app, [...path, "seed"], { min: 0 });
  const row = h("div.row", {}, field("p", p.element), field(t("seed"), seed.element));
  training.element.firstChild.addEventListener("change", (event) => {
    const { given } = app.store.state;
    if (event.target.checked && !given.request.options?.dropout) app.store.editRequest(path, { p: 0.1, seed: 1 });
  });
  const update = (request) => {
    for (const one of [training, p, seed]) one.update(request);
    row.hidden = !request.options?.training;
  };
  return { element: h("div", {}, training.element, row), update };
}

/** Settings of a computation. @param {import("../main.js").App} app */
export function settingFields(app) {
  const { t } = app;
  const heads = number(app, OPTION("num_heads"), { min: 1 });
  const kvHeads = number(app, OPTION("kv_num_heads"), { min: 1, placeholder: t("kvHeads.same") });
  const scale = number(app, OPTION("scale"), { placeholder: "1/√d_k", step: 0.05 });
  const softcap = number(app, OPTION("softcap"), { min: 0, placeholder: t("off") });
  const window = number(app, ["masks", "sliding_window"], { min: 1, placeholder: t("off") });
  const causal = check(app, t("causal"), ["masks", "causal"]);
  const residual = check(app, t("residual"), OPTION("residual"));
  const norm = normChoice(app),
    dropout = dropoutFields(app);
  const parts = [heads, kvHeads, scale, softcap, window, causal, residual, norm, dropout];
  const layerOnly = h("div", {}, residual.element, norm.element);
  const element = h(
    "div",
    {},
    h("div.row", {}, field(t("heads"), heads.element), field(t("kvHeads"), kvHeads.element)),
    h("div.row", {}, field(t("scale"), scale.element), field(t("softcap"), softcap.element)),
    h("div.row", {}, field(t("window"), window.element), causal.element),
    layerOnly,
    dropout.element,
  );
  const update = ({ given }) => {
    for (const part of parts) part.update(given.request);
    layerOnly.hidden = given.endpoint !== LAYER;
  };
  return { element, update };
}

function optionFields(app) {
  const { t } = app,
    settings = settingFields(app);
  const painted = h(
    "p.note",
    {},
    t("painted"),
    " ",
    h(
      "button.link",
      { type: "button", onclick: () => app.store.editRequest(["masks", "attend"], undefined) },
      t("painted.clear"),
    ),
  );
  const palette = choice(
    VIEW_CHOICES.palette.map((id) => [id, t("palette." + id)]),
    "viridis",
    (value) => app.store.setView({ palette: value }),
  );
  const element = h("section", {}, h("h2", {}, t("options")), settings.element, painted, field(t("palette"), palette));
  const update = ({ given, view }) => {
    palette.value = view.palette;
    settings.update({ given });
    painted.hidden = given.request.masks?.attend === undefined;
  };
  return { element, update };
}

/** Delay between the last key and the computation of a sentence. */
const TYPED_MS = 350;

function textFields(app) {
  const { t } = app;
  let timer = 0,
    shown = null,
    isEmptied = false;
  const submitText = () => {
    clearTimeout(timer);
    isEmptied = text.value.trim() === "";
    if (isEmptied) sayNote(app.store.state);
    else app.openSentence(text.value, numbers());
  };
  const typed = () => {
    clearTimeout(timer);
    timer = setTimeout(submitText, TYPED_MS);
  };
  const enter = (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    submitText();
  };
  const text = h("textarea", { rows: 3, spellcheck: "false", dir: "auto", oninput: typed, onkeydown: enter });
  const integerField = (min, most) => {
    const { element, update } = numberField(() => typed(), { min, isNeeded: true });
    return { element, update, read: () => Math.max(min, Math.min(most, Math.round(numberOf(element.value)))) };
  };
  const width = integerField(1, 256),
    heads = integerField(1, 64),
    seed = integerField(0, 2 ** 31);
  const numbers = () => ({ width: width.read(), heads: heads.read(), seed: seed.read() });
  const row = h("div.row", {}, field("d_model", width.element), field(t("heads"), heads.element), field(t("seed"), seed.element));
  const make = h("button", { type: "button", onclick: submitText }, t("text.make")),
    note = h("p.note", { role: "status" });
  const element = h("section", {}, h("h2", {}, t("text")), field(t("text.label"), text), row, make, note);

  /** Says how the words become numbers. */
  function sayNote({ given: { source, layer, random } }) {
    const model = source?.model;
    if (isEmptied) sayOnce(note, t("text.empty"));
    else if (source) sayOnce(note, t(hasServer() ? "text.model" : "text.copy", { model }));
    else sayOnce(note, t(layer ? "text.layer" : random === "all" ? "text.note" : "text.own"));
  }

  const update = ({ given, view }) => {
    if (shown !== given.request.tokens && document.activeElement !== text) isEmptied = false;
    sayNote({ given });
    text.readOnly = Boolean(given.source) && !hasServer();
    element.hidden = shapeOf(given.request.inputs.query).length > 3;
    row.hidden = make.hidden = Boolean(given.source);
    width.element.disabled = heads.element.disabled = Boolean(given.layer);
    if (shown === given.request.tokens || document.activeElement === text) return;
    shown = given.request.tokens;
    text.value = given.source?.text ?? sentenceOf(given, view);
    if (document.activeElement?.closest(".row") === row) return;
    heads.update(given.request.options?.num_heads ?? 1);
    width.update(shapeOf(given.request.inputs.query).at(-1));
    seed.update(given.seed ?? DEFAULT_SEED);
  };
  return { element, update };
}

/** Most characters that a text field accepts without delay. */
const PASTED_MAX = 1 << 16;

function ownFields(app) {
  const { t } = app,
    uses = createUses(app);
  /** A large paste is opened at once and does not enter the field, because megabytes of text make a field slow. */
  const paste = (event) => {
    const pasted = event.clipboardData.getData("text/plain");
    if (pasted.length < PASTED_MAX || text.value !== "") return;
    event.preventDefault();
    uses.useText(pasted);
  };
  const text = h("textarea", { rows: 2, spellcheck: "false", placeholder: "[[1, 0], [0, 1]]", onpaste: paste });
  const element = h(
    "section",
    {},
    h("h2", {}, t("own")),
    field(t("own.label"), text),
    uses.element,
    h(
      "div.row",
      {},
      h("button", { type: "button", onclick: () => uses.useText(text.value) }, t("own.use")),
      ...fileButton(t("own.file"), uses.useFile),
    ),
    h("p.note", {}, t("own.note")),
    h("button", { type: "button", onclick: () => app.openMode("bug") }, t("opening.own")),
  );
  return { element, update: () => {} };
}

/** More names than this get a search field. */
const NAMES_SHOWN = 50;

/** The choice of a layer that the server keeps. It is hidden if there are none. */
function layerFields(app) {
  const { t } = app;
  const select = h("select", { onchange: () => select.value && app.openLayer(select.value) });
  const part = h("input", { type: "search", spellcheck: "false", oninput: () => list() });
  const search = field(t("layer.search"), part),
    facts = h("p.note", {});
  const element = h("section", {}, h("h2", {}, t("layer")), search, field(t("layer.label"), select), facts);
  let made = null;

  function list() {
    const { layer } = app.store.state.given,
      found = app.layers.filter(({ name }) => name.includes(part.value.trim()));
    const names = found.slice(0, NAMES_SHOWN).map(({ name }) => name);
    if (layer && !names.includes(layer.name)) names.unshift(layer.name);
    const rest = found.length - NAMES_SHOWN;
    select.replaceChildren(
      h("option", { value: "" }, t("layer.none")),
      ...names.map((name) => h("option", { value: name }, name)),
      ...(rest > 0 ? [h("option", { disabled: true }, t("rest", { n: rest }))] : []),
    );
    select.value = layer?.name ?? "";
    select.firstChild.disabled = Boolean(layer);
  }

  const update = ({ given: { layer } }) => {
    element.hidden = app.layers.length === 0 && !layer;
    search.hidden = app.layers.length <= NAMES_SHOWN;
    if (made && made[0] === app.layers && made[1] === layer) return;
    made = [app.layers, layer];
    list();
    facts.hidden = !layer;
    if (layer) facts.textContent = `${layer.d_model} → ${layer.d_out}, ${layer.dtype}; ${t("layer.note")}`;
  };
  return { element, update };
}

/** @param {import("../main.js").App} app */
export function createRequestPanel(app) {
  const parts = [textFields(app), optionFields(app), layerFields(app), ownFields(app)];
  const element = h(
    "details.panel",
    { open: window.matchMedia("(min-width: 60rem)").matches },
    h("summary", {}, app.t("request")),
    h(
      "div",
      {},
      parts.map((part) => part.element),
    ),
  );
  return { element, update: (state) => parts.forEach((part) => part.update(state)) };
}
