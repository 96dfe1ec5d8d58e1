/**
 * text_panel.js: what is shown of one text: all heads, the open head, and the predictions of the model.
 */
import { bdi, h } from "../dom.js";
import { createLegend } from "../maps/legend.js";
import { canPatch, toggled } from "./changes.js";
import { createPredictions } from "./predictions.js";
import { HeadGrid } from "./headgrid.js";
import { createHeadView } from "./headview.js";
import { extentOfRun } from "./measures.js";
import { createQuestions } from "./asked/questions.js";
import { canChange, canGenerate, hasSteps, mapsWithoutFirst } from "./textrun.js";
import { createTrial } from "./trial.js";
import { MASK } from "./view_state.js";

/** @typedef {import("./textrun.js").TextRun} TextRun @typedef {import("./view_state.js").ViewState} ViewState */

/**
 * @param {import("../main.js").App} app
 * @param {{change: (patch: object) => void, open: (run: TextRun, viewState: ViewState) => void}} hooks
 */
export function createTextPanel(app, hooks) {
  const { t } = app;
  let seen = { run: null, viewState: null, other: undefined };
  const keys = { l: "linked", a: "ablate" };
  const grid = new HeadGrid(app, {
    onselect: (layer, head) => hooks.change({ layer, head }),
    onopen: () => hasSteps(seen.run) && seen.viewState.head < seen.run.heads && hooks.open(seen.run, seen.viewState),
    onkey: (key) => {
      const { run, viewState } = seen,
        name = keys[key];
      if (key === "n") return questions.addToken();
      if (!name || viewState.head >= run.heads || (name === "ablate" && !canChange(run))) return false;
      if (name === "ablate") view.switchOff();
      else hooks.change({ linked: toggled(viewState.linked, viewState.layer, viewState.head) });
      return true;
    },
  });
  const view = createHeadView(app, hooks),
    questions = createQuestions(app, hooks.change),
    trial = createTrial(app, hooks),
    predictions = createPredictions(app, { change: hooks.change, told }),
    legend = createLegend(t, (range) => hooks.change({ range })),
    title = h("h2", {}),
    facts = h("p.note", {}),
    how = h("p.note", {});
  const element = h(
    "section.column",
    {},
    title,
    trial.element,
    h("section.grid-box", {}, h("div.head", {}, h("h2", {}, t("models.grid")), facts), grid.element, legend.element, how),
    view.element,
    predictions.element,
    questions.element,
  );

  /** A sentence about the changes stands beside the control that made them. */
  function told(sentence) {
    if (sentence !== "") trial.tell(sentence);
    view.tell(trial.isAlone(seen.run.changes) ? "" : sentence);
  }

  /** Index of the chosen query; by default the masked word, else the last word. */
  function rowOfRun({ queries }, { row }) {
    if (row >= 0) return Math.min(row, queries.length - 1);
    const masked = queries.findIndex((word) => [MASK, "<mask>"].includes(word)),
      isSpecial = /^(\[SEP\]|<\/s>|\[PAD\])$/.test(queries.at(-1) ?? "");
    return masked >= 0 ? masked : Math.max(0, queries.length - (isSpecial ? 2 : 1));
  }

  /** To lay out the mode and to draw its pictures takes too long for one task. */
  const afterLayout = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

  /** Grid and open map share one colour range. Thumbnails of long texts without the first token are fetched first. */
  async function showMaps(run, viewState) {
    const isSeen = () => seen.run === run && seen.viewState === viewState;
    const failed = (problem) => {
      element.classList.add("stale");
      app.failed(problem, element, () => isSeen() && showMaps(run, viewState));
      return null;
    };
    const maps = viewState.hidesFirst && !run.isExact && run.keys.length > 1 ? mapsWithoutFirst(run) : run.maps,
      found = maps instanceof Promise ? await maps.catch(failed) : maps;
    if (found && !grid.pictures.isLaidOut) await afterLayout();
    if (!found || !isSeen()) return;
    app.retries.done(element);
    element.classList.remove("stale");
    grid.show(run, viewState, found);
    view.update(run, viewState, extentOfRun(run, found, viewState.hidesFirst), seen.other);
    legend.update({ scale: grid.scale, range: viewState.range, isWeight: true, isMasked: run.isCausal });
  }

  /** @param {TextRun} run @param {TextRun} base the same text without changes @param {ViewState} viewState @param {TextRun} [other] of a second text */
  function update(run, base, viewState, other) {
    const own = {
      ...viewState,
      row: rowOfRun(run, viewState),
      patched: canPatch(run, other) ? viewState.patched : [],
      lines: canPatch(run, other) ? viewState.lines : [],
      layer: Math.min(viewState.layer, run.layers - 1),
      head: Math.min(viewState.head, run.heads + 1),
    };
    if (viewState.head === run.heads + 2) own.head = viewState.head;
    seen = { run, viewState: own, other };
    title.replaceChildren(bdi(run.text));
    title.hidden = !other;
    facts.textContent = t("models.facts", { layers: run.layers, heads: run.heads, tokens: run.keys.length });
    const isSorted = own.isSorted && own.measure !== "none";
    const hints = [isSorted ? "" : "models.axes", hasSteps(run) ? "models.how" : "", run.facts ? "models.keys" : "models.keyOfLinks", run.facts && canGenerate(run.facts) ? "models.keyOfNew" : ""];
    how.textContent = hints.filter(Boolean).map((key) => t(key)).join(" ");
    showMaps(run, own);
    trial.update(run, base, own);
    predictions.update(run, base, own);
    questions.update({ run, viewState: own, other });
  }
  /** @returns {import("../panels/snapshot.js").Picture[]} */
  const pictures = () => {
    const origin = [seen.run.facts?.name, seen.run.text].filter(Boolean).join(" · "),
      sweep = questions.element.querySelector(".sweep");
    return [
      { id: "heads", name: t("models.grid"), title: `${t("models.grid")} · ${facts.textContent}`, origin, elements: [grid.element, legend.element] },
      ...view.pictures().map((one) => ({ ...one, origin })),
      ...(sweep ? [{ id: "sweep", name: t("models.question.sweep"), title: questions.element.querySelector(".said").textContent, origin, elements: [sweep] }] : []),
    ];
  };
  return { element, update, focus: () => grid.pictures.cell.focus(), pictures };
}
