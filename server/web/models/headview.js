/**
 * headview.js: the open head: as a map, or as links together with those of other heads.
 */
import { bdi, h } from "../dom.js";
import { scaleOf } from "../maps/colour.js";
import { createRest } from "../maps/rest.js";
import { LinksView } from "../maps/links.js";
import { HeatmapView } from "../maps/heatmap.js";
import { restOf, withoutFirst } from "../maps/stats.js";
import { oneTabStop } from "../focus.js";
import { curlOf } from "../panels/export_formats.js";
import { short } from "../request/tensor.js";
import { pathOfModel } from "./case.js";
import { canPatch, HEAD_STATES, isIn, NO_CHANGES, stateOfHead, toggled, whyUnpatched, withHead } from "./changes.js";
import { roleOfHead } from "./examples.js";
import { headColour } from "./headgrid.js";
import { EXTRAS, extraOf, strongest } from "./measures.js";
import { bodyAt, canChange, expertsAt, hasSteps, headOf } from "./textrun.js";
import { HEAD_TABS } from "./view_state.js";

/** Weights below this draw no line. */
const LINK_LEAST = 0.04;

/** @typedef {import("./textrun.js").TextRun} TextRun @typedef {import("./view_state.js").ViewState} ViewState */

/** @param {TextRun} run @returns {any} a matrix, or a promise of one */
export function mapOf(run, layer, head) {
  const name = EXTRAS[head - run.heads];
  return name ? extraOf(run, layer, name) : headOf(run, layer, head);
}

/**
 * @param {import("../main.js").App} app
 * @param {{change: (patch: object) => void, open: (run: TextRun, viewState: ViewState) => void}} hooks
 */
export function createHeadView(app, { change, open }) {
  const { t } = app;
  const valueAt = (row, col) => {
    const { matrix, isHidden } = map.sheet;
    return isHidden(row, col) ? t("masked") : short(matrix.data[row * matrix.cols + col], 6);
  };
  const describe = (row, col) => `${map.rowName(row)} → ${map.colName(col)}, ${valueAt(row, col)}`;
  const showReadout = (cell) => {
    const { row, col } = cell ?? map.focus;
    if (!map.sheet) return;
    showEdge();
    readout.replaceChildren(bdi(map.rowName(row)), h("span.arrow", {}, " → "), bdi(map.colName(col)), h("b", {}, valueAt(row, col)), expertsOf(row));
  };
  /** What the token of the row chose in the layer, if it had a choice. */
  const expertsOf = (row) => {
    const chosen = expertsAt(seen.run, seen.viewState.layer, row).map(({ expert, weight }) => `${expert} (${short(weight, 3)})`);
    return chosen.length > 0 ? h("small.experts", {}, " ", t("models.experts", { list: chosen.join(", ") })) : "";
  };
  const map = new HeatmapView({
    describe,
    onhover: showReadout,
    onselect: (row, col) => {
      change({ row });
      app.say(describe(row, col));
      showReadout(null);
    },
    onpaint() {},
    onkey: (key) => key === "m" && hideEdge(),
  });
  const links = new LinksView({ onselect: (row) => row !== null && change({ row }) });
  const title = h("h2", {}),
    role = h("p.role-of", {}),
    rest = createRest(t, (hidesFirst) => change({ hidesFirst })),
    readout = h("p.readout", {}),
    legend = h("p.head-legend", {}),
    note = h("p.note", {});
  const tabs = HEAD_TABS.map((id) => h("button", { type: "button", onclick: () => change({ tab: id }) }, t("tab." + id)));
  const segments = h("span.segments", { role: "group", "aria-label": t("views") }, tabs),
    updateTabStop = oneTabStop(segments);
  const openIt = h("button", { type: "button", onclick: () => open(seen.run, seen.viewState) }, t("models.open"));
  const link = h("button.rare", { type: "button", onclick: () => change({ linked: toggled(seen.viewState.linked, seen.viewState.layer, seen.viewState.head) }) }, t("models.link"));
  const states = HEAD_STATES.map((id) => h("button", { type: "button", onclick: () => setState(id) }, t("models.state." + id))),
    unpatched = h("p.note", {}),
    stateOf = h("span.row-of.rare", {}, t("models.thisHead"), h("span.segments", { role: "group", "aria-label": t("models.thisHead") }, states));
  const edge = h("button.rare", { type: "button", title: t("models.edgeHow"), onclick: () => hideEdge() }, t("models.edge"));
  const sentence = h("p", {}),
    copy = () => app.copyText(curlOf(pathOfModel(seen.run.facts.name), bodyAt(seen.run, seen.viewState.row)));
  const effect = h(
    "div.effect",
    { hidden: true },
    sentence,
    h("button.link", { type: "button", onclick: copy }, t("models.copy")),
    h("button.link", { type: "button", onclick: () => change(NO_CHANGES) }, t("models.unchanged")),
  );
  const element = h(
    "section.headview",
    {},
    h("div.head", {}, title, segments),
    role,
    rest.element,
    effect,
    legend,
    h("div.cell-of", {}, readout),
    h("div", {}, map.element, links.element),
    note,
    h("div.row-of", {}, openIt, link, edge, stateOf),
    unpatched,
  );
  let seen = { run: null, viewState: null, extent: null },
    drawn = "",
    tokensShown = "";

  const setState = (state) => change(withHead(seen.viewState, seen.viewState.layer, seen.viewState.head, state));
  const switchOff = () => setState(stateOfHead(seen.viewState, seen.viewState.layer, seen.viewState.head) === "off" ? "on" : "off");

  /** The edge of the chosen cell. @returns {import("./view_state.js").Edge} */
  const edgeAt = () => [seen.viewState.layer, seen.viewState.head, map.focus.row, map.focus.col];
  const isEdgeHidden = () => isIn(seen.viewState.edges, ...edgeAt());

  function showEdge() {
    edge.setAttribute("aria-pressed", String(isEdgeHidden()));
    edge.disabled = !isEdgeHidden() && seen.run.isCausal && map.focus.col > map.focus.row;
  }

  /** Hides the edge of the chosen cell, or shows it again. @returns {boolean} whether the view has edges */
  function hideEdge() {
    if (edge.hidden) return false;
    if (!edge.disabled) change({ edges: toggled(seen.viewState.edges, ...edgeAt()) });
    return true;
  }

  /** @param {string} text what the changes do; "": there are none */
  function tell(text) {
    sentence.textContent = text;
    effect.hidden = text === "";
  }

  function sheetOfMap(run, viewState, full) {
    const edges = run.changes.edges.filter(([layer, head]) => layer === viewState.layer && head === viewState.head);
    return {
      matrix: full,
      leavesFirst: viewState.hidesFirst,
      isHidden: (i, j) => (run.isCausal && j > i) || edges.some(([, , query, key]) => query === i && key === j),
      rowLabels: run.queries,
      colLabels: run.keys,
      rowPrefix: "",
      colPrefix: "",
      isWeight: true,
      extent: seen.extent,
      scale: scaleOf({ ...app.appearance(), range: viewState.range }, seen.extent, true),
      hasTotals: false,
      title: title.textContent,
      fileTitle: title.textContent,
      corner: "",
      key: "models",
      step: null,
      rowAxis: t("axis.query"),
      colAxis: t("axis.key"),
      reservedWidth: 0,
      hasHidden: false,
      isPainting: false,
    };
  }

  /** Keeps the old picture until the maps have come. Maps that come too late are dropped. */
  async function withMaps(run, viewState, heads, draw) {
    const key = (drawn = JSON.stringify([viewState.layer, viewState.head, viewState.tab, viewState.hidesFirst, heads]) + run.text);
    try {
      const found = heads.map(([layer, head]) => mapOf(run, layer, head));
      const maps = found.some((one) => one instanceof Promise) ? await Promise.all(found) : found;
      app.retries.done(element);
      if (key !== drawn || seen.run !== run) return;
      element.classList.remove("stale");
      draw(maps);
    } catch (problem) {
      if (key !== drawn) return;
      element.classList.add("stale");
      note.textContent = app.wordsOf(problem);
      if (problem.key === "gone") app.retries.add(element, () => key === drawn && withMaps(run, viewState, heads, draw));
    }
  }

  function drawMap(run, viewState) {
    withMaps(run, viewState, [[viewState.layer, viewState.head]], ([full]) => {
      const sheet = sheetOfMap(run, viewState, full);
      const row = Math.min(viewState.row, sheet.matrix.rows - 1);
      const tokens = JSON.stringify([run.facts?.name, run.keys]);
      if (map.focus.row !== row || tokens !== tokensShown) map.focus = { row, col: strongest(viewState.hidesFirst ? withoutFirst(full) : full, row) };
      tokensShown = tokens;
      map.show(sheet);
      showReadout(null);
      rest.update(restOf(full), run.keys[0], viewState.hidesFirst);
    });
  }

  function drawLinks(run, viewState) {
    const heads = viewState.linked.filter(([layer, head]) => layer < run.layers && head < run.heads);
    const shown = heads.length > 0 ? heads : [[viewState.layer, viewState.head]];
    withMaps(run, viewState, shown, (maps) => {
      const sheets = maps.map((full) => (viewState.hidesFirst ? withoutFirst(full) : full));
      links.show({
        matrix: sheets[0],
        heads:
          heads.length === 0
            ? undefined
            : sheets.map((matrix, at) => ({ matrix, colour: headColour(heads, ...heads[at]), name: heads[at].join("·") })),
        rowLabels: run.queries,
        colLabels: run.keys,
        row: viewState.row,
        queriesName: t("queries"),
        mode: "threshold",
        top: 3,
        threshold: LINK_LEAST,
      });
    });
    legend.replaceChildren(
      ...heads.map(([layer, head]) =>
        h(
          "button.chip",
          { type: "button", title: t("models.unlink"), onclick: () => change({ linked: toggled(viewState.linked, layer, head) }) },
          swatchOf(headColour(heads, layer, head)),
          `${layer}·${head} ×`,
        ),
      ),
    );
  }

  const swatchOf = (colour) => {
    const mark = h("i.dot", { "aria-hidden": "true" });
    mark.style.background = colour;
    return mark;
  };

  /** @param {{low: number, high: number}} extent of the heads that are shown @param {TextRun} [other] of a second text */
  function update(run, viewState, extent, other) {
    seen = { run, viewState, extent };
    const { layer, head, tab } = viewState,
      extra = EXTRAS[head - run.heads];
    title.textContent = extra ? t("models.extraAt", { layer, name: t("models." + extra) }) : t("models.headAt", { layer, head });
    const found = roleOfHead(run.facts?.name, layer, head);
    role.textContent = found && `${t("role.head", { layer, head })} ${t("role." + found)}`;
    role.hidden = !found;
    note.textContent = tab === "links" && viewState.linked.length === 0 ? t("models.linkHow") : "";
    HEAD_TABS.forEach((id, at) => tabs[at].setAttribute("aria-pressed", String(id === tab)));
    updateTabStop();
    openIt.disabled = link.disabled = Boolean(extra);
    openIt.hidden = !hasSteps(run);
    stateOf.hidden = !canChange(run);
    link.setAttribute("aria-pressed", String(isIn(viewState.linked, layer, head)));
    HEAD_STATES.forEach((id, at) => {
      states[at].hidden = id === "patched" && !other;
      states[at].disabled = Boolean(extra) || (id === "patched" && !canPatch(run, other));
      states[at].setAttribute("aria-pressed", String(!extra && id === stateOfHead(viewState, layer, head)));
    });
    unpatched.textContent = canChange(run) ? whyUnpatched(t, run, other) : "";
    unpatched.hidden = unpatched.textContent === "";
    edge.hidden = Boolean(extra) || tab !== "map" || !canChange(run);
    map.element.hidden = readout.hidden = tab !== "map";
    links.element.hidden = legend.hidden = tab !== "links";
    if (tab !== "map") rest.update(0);
    if (tab === "map") drawMap(run, viewState);
    else drawLinks(run, viewState);
  }
  const pictures = () => {
    const parts = seen.viewState.tab === "map" ? [map.element, readout] : [legend, links.element];
    return [{ id: "head", name: title.textContent, title: [`${seen.run.facts?.name ?? ""} ${title.textContent}`.trim(), sentence.textContent].filter(Boolean).join(". "), elements: parts }];
  };
  return { element, update, tell, switchOff, pictures };
}
