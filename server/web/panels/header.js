/**
 * header.js: the bar: what to start from, undo, share, copy, export, language and theme.
 */
import { choice, h } from "../dom.js";
import { EXAMPLES } from "../models/examples.js";
import { PRESETS } from "../request/presets.js";
import { hasServer } from "../exchange/server.js";
import { VIEW_CHOICES } from "../store.js";
import { hasTexts, LANGUAGES } from "../texts.js";

/** A button that opens a list; Escape and a click elsewhere close it. */
function menu(label, items) {
  const details = h("details.menu", {}, h("summary", {}, label));
  const choose = (action) => () => {
    details.open = false;
    details.firstChild.focus();
    action();
  };
  details.append(
    h(
      "div",
      {},
      items.map(([text, action]) => h("button", { type: "button", onclick: choose(action) }, text)),
    ),
  );
  details.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    details.open = false;
    details.firstChild.focus();
  });
  details.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !details.contains(event.relatedTarget)) details.open = false;
  });
  return details;
}

/** @param {import("../main.js").App} app */
export function createHeader(app) {
  const { t, store } = app;
  const options = (ids) => ids.map((id) => h("option", { value: id }, t("preset." + id)));
  const presets = h(
    "select.presets",
    { "aria-label": t("presets"), onchange: () => presets.value && app.openPreset(presets.value) },
    hasServer() && h("optgroup", { label: t("presets.trained") }, options(EXAMPLES)),
    h("optgroup", { label: t("presets.made") }, options(PRESETS)),
    h("option", { value: "" }, t("preset.own")),
  );
  const undo = h(
    "button.icon",
    { type: "button", title: t("undo") + " (Ctrl+Z)", "aria-label": t("undo"), onclick: () => store.undo() },
    "↶",
  );
  const redo = h(
    "button.icon",
    { type: "button", title: t("redo") + " (Ctrl+Y)", "aria-label": t("redo"), onclick: () => store.redo() },
    "↷",
  );
  const copies = menu(t("copy"), [
    ["curl", app.copyCurl],
    ["Python", app.copyPython],
    [t("copy.json"), app.copyJson],
  ]);
  const exports = menu(t("export"), [
    ["PNG", app.savePng],
    ["SVG", app.saveSvg],
    ["CSV", app.saveCsv],
    ["NPY", app.saveNpy],
    ["JSON", app.saveJson],
    [t("export.html"), app.saveHtml],
  ]);
  const languages = LANGUAGES.filter(([id]) => hasServer() || hasTexts(id));
  const language = choice(languages, app.language, app.setLanguage, { "aria-label": t("language") });
  const themes = ["auto", "light", "dark"].map((id) => [id, t("theme." + id)]);
  const theme = choice(themes, app.theme, app.setTheme, { "aria-label": t("theme") });
  const modes = VIEW_CHOICES.mode.map((mode) =>
    h("button", { type: "button", hidden: mode === "story" && !hasServer(), onclick: () => app.openMode(mode) }, t("mode." + mode)),
  );
  const history = h("span.pair", {}, undo, redo),
    ofLab = [presets, history, copies, exports];
  const element = h(
    "header.bar",
    {},
    h("h1", {}, "attnd"),
    h("nav.segments", { "aria-label": t("modes") }, modes),
    presets,
    history,
    h("span.gap"),
    h("button", { type: "button", onclick: app.share }, t("share")),
    copies,
    exports,
    h("span.pair.choices", {}, language, theme),
    h("p.purpose", {}, t("purpose")),
  );
  return {
    element,
    language,
    update(state) {
      VIEW_CHOICES.mode.forEach((mode, at) => modes[at].setAttribute("aria-pressed", String(mode === state.view.mode)));
      for (const one of ofLab) one.hidden = state.view.mode !== "lab";
      presets.value = state.given.id;
      undo.disabled = store.past.length === 0;
      redo.disabled = store.future.length === 0;
    },
  };
}
