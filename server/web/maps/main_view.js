/**
 * main_view.js: the large view of the Lab: a matrix as a map, as links, as a table, or beside those of other layers.
 */
import { createRowBars } from "./bars.js";
import { extentOf, scaleOf } from "./colour.js";
import { bdi, choice, fadeEdges, h, numberField } from "../dom.js";
import { hasServer } from "../exchange/server.js";
import { roleOf, swapOf } from "../models/examples.js";
import { createLegend } from "./legend.js";
import { LayersView } from "./layersview.js";
import { LinksView } from "./links.js";
import { HeatmapView } from "./heatmap.js";
import { hiddenSeen, matrixSeen, tensorSeen } from "../request/runs.js";
import { labelAt, labelsFor, worded } from "../request/steps.js";
import { extentOfStep, restIn } from "./pickers.js";
import { createRest } from "./rest.js";
import { VIEW_CHOICES } from "../store.js";
import { fixed, short, scientific } from "../request/tensor.js";
import { drawThumb } from "./thumb.js";

const TABLE_ROWS = 24,
  TABLE_COLS = 14;

/** Start of a window of most items: 0 if that includes the chosen one, else around it. */
const windowAt = (chosen, length, most) => (chosen < most ? 0 : Math.max(0, Math.min(chosen - most / 2, length - most)));

const PREFIX = { query: "", key: "", feature: "d" };

/** @param {import("../main.js").App} app */
export function createMainView(app) {
  const { t, store } = app;
  const readout = h("p.readout", {});
  const map = new HeatmapView({
    describe: (row, col) => describe(row, col),
    onhover: (cell) => showReadout(cell),
    onselect: (row, col) => {
      store.setView({ row, col });
      app.say(map.anchor ? t("table.window", map.range) : describe(row, col));
      showReadout(null);
    },
    onpaint: (row, col, isFirst) => app.paint(row, col, isFirst),
    onkey: (key, row, col) => app.cellKey(key, row, col, map.range),
    onlayout: (used) => bars.place(used, map.element.clientWidth),
  });
  const bars = createBars(app, (col) => map.moveTo(map.focus.row, col));
  const links = new LinksView({ onselect: (row) => row !== null && store.setView({ row, col: app.seen().view.col }) });
  const layers = new LayersView(app, (scale, isMasked) => legend.update({ scale, range: store.state.view.range, isWeight: true, isMasked }));
  const table = h("div.table", { tabindex: "0", role: "region", "aria-label": t("tab.table") });
  const markTable = fadeEdges(table);
  const linkTools = createLinkTools(app),
    mapTools = createMapTools(app, map),
    legend = createLegend(t, (range) => store.setView({ range }));
  const tabs = createTabs(app),
    compare = createCompare(app);
  const title = h("h2", {}),
    words = h("p.in-words", {}),
    role = h("p.role", {}),
    rest = createRest(t, (isLeft) => store.setView({ rest: isLeft ? "left" : "shown" })),
    random = h("p.random", {}, t("random"));
  const first = h("canvas.first", { hidden: true, role: "img", "aria-label": t("stage.first") });
  const body = h("div.body", { role: "tabpanel", id: "stage-body" }, first, map.element, bars.element, links.element, table);
  const element = h(
    "section.stage",
    { "aria-label": t("stage") },
    h("div.head", {}, title, compare.element, tabs.element),
    words,
    body,
    role,
    rest.element,
    random,
    h("div.tools", {}, readout, legend.element, mapTools.element, linkTools.element),
  );

  /** Shows a small preview while the full map is on its way. @param {import("../request/tensor.js").Matrix} matrix */
  function showFirst(matrix) {
    drawThumb(first, matrix, scaleOf(app.appearance(), extentOf(matrix.data), true), 1024);
    map.element.hidden = links.element.hidden = table.hidden = legend.element.hidden = true;
    first.hidden = false;
  }

  function describe(row, col) {
    if (!map.sheet) return "";
    const { matrix, isHidden } = map.sheet;
    const value = isHidden(row, col) ? t("masked") : short(matrix.data[row * matrix.cols + col], 6);
    return `${map.rowName(row)} → ${map.colName(col)}, ${value}`;
  }

  function showReadout(cell) {
    const { row, col } = cell ?? map.focus;
    if (!map.sheet) return;
    const { matrix, isHidden } = map.sheet;
    const value = isHidden(row, col) ? t("masked") : short(matrix.data[row * matrix.cols + col], 7);
    readout.replaceChildren(
      bdi(map.rowName(row)),
      h("span.arrow", {}, " → "),
      bdi(map.colName(col)),
      h("b", {}, value),
      h("small", { title: t("place") }, `[${row}, ${col}]`),
    );
  }

  const placeOf = ({ source, layer, copyOf }) => (source ? `${source.model}, ${t("layer.number", { n: source.layer })}` : (layer?.name ?? copyOf));

  /** Shows the role of the head in its model, and a word that redirects it. */
  function showRole({ run, view, step }) {
    const found = step.perHead ? roleOf(run.given, view.head) : "",
      swap = found === "demo.referent" && hasServer() && swapOf(run.given);
    role.hidden = !run.given.source;
    const other = swap && 1 - swap.chosen,
      write = swap && h("button.link", { type: "button", onclick: () => app.openSource(swap.texts[other]) }, bdi(swap.words[other]));
    const facts = { layer: run.given.source?.layer, head: view.head };
    role.replaceChildren(
      ...(role.hidden ? [] : [h("b", {}, t("role.head", facts)), " ", found ? t("role." + found) : t("role.none")]),
      ...(write ? [" ", t("role.try", { from: swap.words[swap.chosen] }), " ", write, "."] : []),
    );
  }

  /** @returns {import("./heatmap.js").Sheet | null} */
  function sheetOf(seen) {
    const { mode, name, run, step, view } = seen;
    if (!step) return null;
    const matrix = matrixSeen(seen),
      { request } = run.given,
      isWeight = step.isWeight && mode !== "difference";
    const resting = mode === "difference" ? 0 : restIn(step, run, matrix);
    const extent = mode === "difference" ? extentOf(matrix.data) : extentOfStep(step, run, tensorSeen(seen));
    const head = step.perHead && `${t("head")} ${view.head}`,
      title = [name, placeOf(run.given), worded(step.label, t), head, `${matrix.rows} × ${matrix.cols}`].filter(Boolean).join(" · ");
    return {
      matrix,
      isHidden: hiddenSeen(seen, matrix),
      resting,
      leavesFirst: resting > 0 && view.rest === "left",
      rowLabels: labelsFor(step.rows, request, view, matrix.rows),
      colLabels: labelsFor(step.cols, request, view, matrix.cols),
      rowPrefix: PREFIX[step.rows],
      colPrefix: PREFIX[step.cols],
      rowAxis: t("axis." + step.rows),
      colAxis: t("axis." + step.cols),
      reservedWidth: isWeight && matrix.cols <= BARS_SHOWN ? BARS_LEAST : 0,
      isWeight,
      extent,
      scale: scaleOf(app.appearance(), extent, isWeight),
      hasTotals: isWeight,
      title,
      fileTitle: title + (run.given.random === "inputs" ? ` · ${t("random.short")}` : ""),
      corner: step.cols === "key" ? `${mode === "difference" ? name : step.id}: query\\key` : "",
      key: [step.id, mode].join(),
      step,
      hasHidden: step.cols === "key" && (run.answer.outputs.mask?.data.includes(0) ?? Boolean(request.masks)),
      isPainting: view.paint && mode === "now" && step.cols === "key",
    };
  }

  /** Says where two runs differ most. */
  function largestOf({ matrix: { data, cols }, rowLabels, colLabels, rowPrefix, colPrefix }) {
    let at = 0;
    data.forEach((value, n) => {
      if (Math.abs(value) > Math.abs(data[at] || 0)) at = n;
    });
    const name = (labels, prefix, index) => (labels ? labelAt(labels, index) : prefix + index),
      place = `${name(rowLabels, rowPrefix, Math.floor(at / cols))} → ${name(colLabels, colPrefix, at % cols)}`;
    return t("compare.largest", { value: short(data[at] || 0, 3), place });
  }

  function drawTable(sheet) {
    const { matrix, rowLabels, colLabels, rowPrefix, colPrefix, isHidden } = sheet,
      { row, col } = map.focus;
    const fromRow = windowAt(row, matrix.rows, TABLE_ROWS),
      fromCol = windowAt(col, matrix.cols, TABLE_COLS);
    const rows = Math.min(TABLE_ROWS, matrix.rows),
      cols = Math.min(TABLE_COLS, matrix.cols);
    const name = (labels, prefix, at) => bdi(labels ? labelAt(labels, at) : prefix + at);
    const shown = Array.from({ length: rows * cols }, (_, n) => [fromRow + Math.floor(n / cols), fromCol + (n % cols)])
      .filter(([i, j]) => !isHidden(i, j))
      .map(([i, j]) => matrix.data[i * matrix.cols + j]);
    const written = formatOf(shown, sheet.isWeight),
      cell = (at) => h("td", { title: short(matrix.data[at], 7) }, written(matrix.data[at]));
    const head = h(
      "tr",
      {},
      h("td", {}),
      Array.from({ length: cols }, (_, j) => h("th", { scope: "col" }, name(colLabels, colPrefix, fromCol + j))),
    );
    const lines = Array.from({ length: rows }, (_, i) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, name(rowLabels, rowPrefix, fromRow + i)),
        Array.from({ length: cols }, (__, j) =>
          isHidden(fromRow + i, fromCol + j)
            ? h("td.hidden-cell", { title: t("masked") }, "–")
            : cell((fromRow + i) * matrix.cols + fromCol + j),
        ),
      ),
    );
    const window = t("table.window", {
      from: fromRow,
      to: fromRow + rows - 1,
      first: fromCol,
      last: fromCol + cols - 1,
    });
    table.replaceChildren(
      h("table", {}, h("caption", {}, `${sheet.title}; ${window}`), h("thead", {}, head), h("tbody", {}, lines)),
    );
    markTable();
  }

  /** The answer that was announced last. */
  let said = null;

  /** The layers are in the document only while they are shown, so that it has one grid at a time. */
  function showLayers(state, isOpen) {
    if (!isOpen) {
      layers.hide();
      return;
    }
    if (!layers.element.isConnected) body.append(layers.element);
    layers.show(state);
  }

  function update(state) {
    const seen = state.answer ? app.seen() : null,
      sheet = seen && sheetOf(seen);
    element.classList.toggle("busy", state.isBusy);
    if (!sheet) return;
    const { view, run, mode } = seen,
      isMap = sheet.step.cols === "key";
    const isOpen = { map: true, links: isMap && mode !== "difference", table: true, layers: Boolean(run.given.layer) };
    const tab = isOpen[view.tab] ? view.tab : "map";
    first.hidden = true;
    title.textContent = sheet.title;
    words.textContent = mode === "difference" ? largestOf(sheet) : t("words." + sheet.step.id);
    showRole(seen);
    rest.update(tab === "map" ? sheet.resting : 0, labelAt(sheet.colLabels, 0), sheet.leavesFirst);
    random.hidden = run.given.random !== "inputs";
    map.element.hidden = tab !== "map";
    links.element.hidden = tab !== "links";
    table.hidden = tab !== "table";
    tabs.update(tab, isOpen);
    compare.element.hidden = tab === "layers";
    compare.update(state, seen);
    legend.element.hidden = tab === "links" || tab === "table";
    const { isWeight, hasHidden, isPainting } = sheet;
    legend.update({ scale: sheet.scale, range: view.range, isWeight, isMasked: isMap && (hasHidden || isPainting) }); // painting moves nothing
    mapTools.update(sheet.isPainting, tab === "map", isMap);
    linkTools.update(state, tab === "links");
    readout.hidden = tab !== "map";
    if (map.focus.row !== view.row || map.focus.col !== view.col)
      map.focus = { row: Math.min(view.row, sheet.matrix.rows - 1), col: Math.min(view.col, sheet.matrix.cols - 1) };
    map.show(sheet);
    showReadout(map.hovered);
    bars.update(sheet, map, tab === "map");
    showLayers({ shown: run.given, view }, tab === "layers");
    if (said && said !== run.answer) app.say(`${sheet.title}: ${describe(map.focus.row, map.focus.col)}`, "result");
    said = run.answer;
    if (tab === "table") drawTable(sheet);
    if (tab === "links")
      links.show({
        ...sheet,
        row: view.row,
        chosen: view.row,
        queriesName: t("queries"),
        mode: view.linkMode,
        top: view.linkTop,
        threshold: view.linkThreshold,
      });
  }
  /** The map itself is saved with all of its cells (panels/export_formats.js). @returns {import("../panels/snapshot.js").Picture[]} */
  function pictures() {
    const views = { links: links.element, table, layers: layers.element },
      [id, view] = Object.entries(views).find(([, one]) => one.checkVisibility()) ?? [],
      { source, layer } = app.seen().run.given;
    if (id === "layers") return [{ id, title: `${source?.model ?? layer.name} · ${t("tab.layers")}`, origin: source?.text, elements: [view, legend.element] }];
    return id ? [{ id, title: map.sheet.fileTitle, origin: source?.text, elements: [view] }] : [];
  }
  /** Focuses the open view. */
  function focus() {
    const found = Array.from(body.querySelectorAll("[role=gridcell], .table, .links button")).find((one) => one.checkVisibility());
    found?.focus();
  }
  return { element, update, map, showFirst, focus, pictures };
}

/** Most decimals of a table, and those of weights that would need more. */
const DECIMALS_MOST = 5,
  DECIMALS_OF_WEIGHTS = 4;

/**
 * One form for all numbers of a table, so that their digits stand below each other: three significant digits of the
 * smallest. Weights below 0.00005 are 0.0000. @param {number[]} values @returns {(value: number) => string}
 */
function formatOf(values, isWeight) {
  const sizes = values.filter((value) => value !== 0 && Number.isFinite(value)).map(Math.abs),
    decimals = sizes.every(Number.isInteger) ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.min(...sizes)))),
    isPlain = decimals <= DECIMALS_MOST && Math.max(0, ...sizes) < 1e6;
  const write = isPlain ? (value) => fixed(value, decimals) : isWeight ? (value) => fixed(value, DECIMALS_OF_WEIGHTS) : (value) => scientific(value, 2);
  return (value) => (Number.isFinite(value) ? write(value) : short(value));
}

/** Smallest and largest width of the bars, and the most keys that they show. */
const BARS_LEAST = 200,
  BARS_MOST = 420,
  BARS_SHOWN = 24;

/** The weights of the selected row, beside the map, if there is room. @param {import("../main.js").App} app */
function createBars({ t }, moveTo) {
  const title = h("h3", {}),
    bars = createRowBars(moveTo),
    element = h("div.bars", {}, title, bars.element);
  let isWanted = false,
    hasRoom = false;
  const show = () => {
    element.hidden = !isWanted || !hasRoom;
  };

  function place({ width, top }, fullWidth) {
    hasRoom = fullWidth - width >= BARS_LEAST;
    element.style.left = width + "px";
    element.style.top = top - 28 + "px";
    element.style.width = Math.min(BARS_MOST, fullWidth - width) + "px";
    show();
  }

  function update({ matrix, isWeight, isHidden }, map, isMap) {
    isWanted = isMap && isWeight && matrix.cols <= BARS_SHOWN;
    show();
    if (!isWanted) return;
    const { row, col } = map.focus,
      [before, after] = t("bars", { word: "\n" }).split("\n"),
      cols = Array.from({ length: matrix.cols }, (_, at) => at);
    title.replaceChildren(before, bdi(map.rowName(row)), after);
    bars.update({
      names: cols.map((at) => map.colName(at)),
      values: cols.map((at) => matrix.data[row * matrix.cols + at]),
      hidden: cols.map((at) => isHidden(row, at)),
      chosen: col,
    });
  }
  return { element, place, update };
}

/** Arrow keys move between the tabs, as the ARIA tabs pattern asks. */
function createTabs(app) {
  const ids = VIEW_CHOICES.tab;
  const buttons = ids.map((id) =>
    h(
      "button",
      {
        type: "button",
        role: "tab",
        "aria-controls": "stage-body",
        onclick: () => app.store.setView({ tab: id }),
        onkeydown: (event) => {
          const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!way) return;
          const open = buttons.filter((button) => !button.disabled);
          const next = open[(open.indexOf(event.target) + way + open.length) % open.length];
          next.focus();
          next.click();
        },
      },
      app.t("tab." + id),
    ),
  );
  const element = h("div.segments", { role: "tablist", "aria-label": app.t("views") }, buttons);
  const update = (tab, isOpen) =>
    ids.forEach((id, at) => {
      buttons[at].setAttribute("aria-selected", String(id === tab));
      buttons[at].tabIndex = id === tab ? 0 : -1;
      buttons[at].disabled = !isOpen[id];
      buttons[at].hidden = id === "layers" && !isOpen[id];
    });
  return { element, update };
}

function createCompare(app) {
  const { t } = app,
    ids = ["now", "kept", "difference"];
  const keep = h("button.link", { type: "button", onclick: app.keepBaseline }, t("compare.keep"));
  const drop = h("button.link", { type: "button", onclick: app.dropBaseline }, t("compare.drop"));
  const buttons = ids.map((id) =>
    h("button", { type: "button", onclick: () => app.compare(id) }, t("compare." + id)),
  );
  const segments = h("span.segments", { role: "group", "aria-label": t("compare") }, buttons);
  const update = ({ baseline }, { mode, canSubtract }) => {
    segments.hidden = drop.hidden = baseline === null;
    keep.textContent = baseline === null ? t("compare.keep") : t("compare.again");
    ids.forEach((id, at) => buttons[at].setAttribute("aria-pressed", String(id === mode)));
    buttons[2].disabled = !canSubtract;
  };
  return { element: h("span.compare", {}, segments, keep, drop), update };
}

function createMapTools(app, map) {
  const { t, store } = app;
  const button = (text, label, action) =>
    h("button.icon", { type: "button", title: label, "aria-label": label, onclick: action }, text);
  let isPainting = false;
  const toggle = () => {
    const wanted = !isPainting;
    app.compare("now");
    store.setView({ paint: wanted });
  };
  const paint = h(
    "button.icon",
    { type: "button", title: `${t("paint")}. ${t("paint.how")}`, "aria-label": t("paint"), onclick: toggle },
    "✎",
  );
  const element = h(
    "span.pair",
    {},
    paint,
    button("−", t("zoom.out"), () => map.zoom(1 / 1.6)),
    button("+", t("zoom.in"), () => map.zoom(1.6)),
    button("⤢", t("zoom.fit"), () => map.fit()),
  );
  const update = (isOn, isShown, isMap) => {
    isPainting = isOn;
    element.hidden = !isShown;
    paint.hidden = !isMap;
    paint.setAttribute("aria-pressed", String(isOn));
  };
  return { element, update };
}

function createLinkTools(app) {
  const { t, store } = app;
  const mode = choice(
    VIEW_CHOICES.linkMode.map((id) => [id, t("links." + id)]),
    "top",
    (linkMode) => store.setView({ linkMode }),
    { "aria-label": t("links.mode") },
  );
  const top = numberField((value) => store.setView({ linkTop: Math.max(1, Math.round(value)) }, "linkTop"), {
    min: 1,
    isNeeded: true,
    "aria-label": t("links.top"),
  });
  const threshold = h("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.01,
    "aria-label": t("links.threshold"),
    oninput: () => store.setView({ linkThreshold: Number(threshold.value) }, "linkThreshold"),
  });
  const value = h("output", {}),
    element = h("span.pair", {}, mode, top.element, threshold, value);
  const update = ({ view }, isShown) => {
    element.hidden = !isShown;
    mode.value = view.linkMode;
    top.element.hidden = view.linkMode !== "top";
    threshold.hidden = value.hidden = view.linkMode === "top";
    top.update(view.linkTop);
    threshold.value = String(view.linkThreshold);
    value.textContent = fixed(view.linkThreshold, 2);
  };
  return { element, update };
}
