/**
 * lab.js: the Lab mode: one computation with all its steps, its request, and explanations of its numbers.
 */
import { h } from "./dom.js";
import { createExpected } from "./expected/results.js";
import { createMainView } from "./maps/main_view.js";
import { createHeadPicker, createStepPicker } from "./maps/pickers.js";
import { createRequestPanel } from "./panels/request.js";
import { createCell, createChecks } from "./panels/sidebar.js";

/** The sections beside the map, from top to bottom. */
const SIDEBAR = [createExpected, createHeadPicker, createCell, createChecks];

/** The map comes before the request panel in Tab order. @param {import("./main.js").App} app */
export function createLab(app) {
  app.mainView = createMainView(app);
  app.setAsking(app.isAsking);
  const stepPicker = createStepPicker(app),
    panel = createRequestPanel(app),
    sections = SIDEBAR.map((create) => create(app));
  const parts = [stepPicker, app.mainView, ...sections];
  const element = h(
    "div.lab",
    {},
    stepPicker.element,
    h("div.work", {}, app.mainView.element, h("div.rail", {}, sections.map((section) => section.element))),
    panel.element,
  );
  function update(state) {
    panel.update(state);
    element.classList.toggle("empty", !state.answer);
    if (!state.answer) return;
    element.classList.toggle("stale", state.isRefused && app.seen().mode !== "kept");
    for (const part of parts) part.update(state);
  }
  return { element, update, focus: app.mainView.focus, pictures: app.mainView.pictures };
}
