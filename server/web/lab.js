/**
 * lab.js: the Lab mode: one computation with all its steps, its request, and explanations of its numbers.
 */
import { h } from "./dom.js";
import { createExpected } from "./expected/results.js";
import { createStage } from "./maps/main_view.js";
import { createHeads, createStrip } from "./maps/pickers.js";
import { createPanel } from "./panels/request.js";
import { createCell, createChecks } from "./panels/sidebar.js";

/** The sections beside the map, from top to bottom. */
const RAIL = [createExpected, createHeads, createCell, createChecks];

/** The map comes before the request panel in Tab order. @param {import("./main.js").App} app */
export function createLab(app) {
  app.stage = createStage(app);
  const strip = createStrip(app),
    panel = createPanel(app),
    rail = RAIL.map((create) => create(app));
  const parts = [strip, app.stage, ...rail];
  const element = h(
    "div.lab",
    {},
    strip.element,
    h("div.work", {}, app.stage.element, h("div.rail", {}, rail.map((section) => section.element))),
    panel.element,
  );
  function update(state) {
    panel.update(state);
    element.classList.toggle("empty", !state.answer);
    if (!state.answer) return;
    element.classList.toggle("stale", state.isRefused && app.seen().mode !== "kept");
    for (const part of parts) part.update(state);
  }
  return { element, update, focus: app.stage.focus };
}
