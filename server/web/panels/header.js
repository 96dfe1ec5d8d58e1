/**
 * header.js: the bar at the top: modes, examples, undo, share, copy, export, language and theme.
 */
import { choice, h } from "../dom.js";
import { EXAMPLES } from "../models/examples.js";
import { PRESETS } from "../request/presets.js";
import { hasAnswers } from "../exchange/kept.js";
import { hasServer } from "../exchange/server.js";
import { VIEW_CHOICES } from "../store.js";
import { oneTabStop } from "../focus.js";
import { hasTexts, LANGUAGES } from "../texts.js";
import { copiesOf, exportsOf } from "./export_actions.js";

/**
 * A button that opens a list. Escape closes it, and so does the focus when it leaves.
 * @param {string} label @param {() => [string, () => void][]} itemsNow names and actions, asked for when it opens
 */
function menu(label, itemsNow) {
  const fill = () => list.replaceChildren(...itemsNow().map(([text, action]) => h("button", { type: "button", onclick: choose(action) }, text)));
  const list = h("div", {}),
    details = h("details.menu", {}, h("summary", { onclick: fill }, label), list);
  const choose = (action) => () => {
    details.open = false;
    details.firstChild.focus();
    action();
  };
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

/** @param {import("../main.js").App} app @param {boolean} isOpen whether a narrow screen shows all of the bar */
export function createHeader(app, isOpen) {
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
  const copies = menu(t("copy"), () => copiesOf(app)),
    exports = menu(t("export"), () => exportsOf(app));
  const languages = LANGUAGES.filter(([id]) => hasServer() || hasTexts(id));
  const language = choice(languages, app.language, app.setLanguage, { "aria-label": t("language") });
  const themes = ["auto", "light", "dark"].map((id) => [id, t("theme." + id)]);
  const theme = choice(themes, app.theme, app.setTheme, { "aria-label": t("theme") });
  /** A copy has the opening with its answers, and the story with its lesson. */
  const isAway = (mode) => !hasServer() && ((mode === "start" && !hasAnswers()) || (mode === "story" && !store.state.lesson));
  const modes = VIEW_CHOICES.mode.map((mode) =>
    h(
      "button",
      { type: "button", role: "tab", "aria-controls": "main", hidden: isAway(mode), onclick: () => app.openMode(mode) },
      t("mode." + mode),
    ),
  );
  const history = h("span.pair", {}, undo, redo),
    ofLab = [presets, copies];
  const shareButton = h("button", { type: "button", onclick: app.share }, t("share"));
  const tabs = h("nav.segments", { role: "tablist", "aria-label": t("modes") }, modes),
    actions = h("div.actions", { role: "toolbar", "aria-label": t("actions") }, shareButton, copies, exports),
    updateTabs = oneTabStop(tabs),
    updateActions = oneTabStop(actions);
  const more = h("button.icon.more", { type: "button", "aria-label": t("more"), "aria-controls": "more", onclick: () => open(!isOpen) }, "⋯");
  const open = (wanted) => {
    isOpen = wanted;
    element.classList.toggle("open", isOpen);
    more.setAttribute("aria-expanded", String(isOpen));
  };
  const element = h(
    "header.bar",
    {},
    h("h1", {}, "attnd"),
    tabs,
    more,
    presets,
    history,
    h("span.gap"),
    h("div.rest#more", {}, actions, h("span.pair.choices", {}, language, theme)),
  );
  open(isOpen);
  return {
    element,
    language,
    isOpen: () => isOpen,
    update(state) {
      VIEW_CHOICES.mode.forEach((mode, at) => modes[at].setAttribute("aria-selected", String(mode === state.view.mode)));
      modes[VIEW_CHOICES.mode.indexOf("bug")].hidden = state.view.mode !== "bug";
      for (const one of ofLab) one.hidden = state.view.mode !== "lab";
      history.hidden = state.view.mode === "story" || state.view.mode === "start";
      shareButton.hidden = theme.hidden = state.view.mode === "start";
      updateTabs();
      updateActions();
      presets.value = state.given.id;
      undo.disabled = store.past.length === 0;
      redo.disabled = store.future.length === 0;
    },
  };
}
