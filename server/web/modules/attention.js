/**
 * attention.js: draws the map, the links and the grid of heads in other pages (docs/modules.md).
 *
 * Each is drawn in a shadow tree, so that its style and that of the page stay apart. attention.d.ts has the types.
 */
import { cssColour, h } from "../dom.js";
import { extentOf, scaleOf } from "../maps/colour.js";
import { PictureGrid, THUMB_PIXELS } from "../maps/grid.js";
import { chosenLinks } from "../maps/chosen_links.js";
import { LinksView } from "../maps/links.js";
import { HeatmapView } from "../maps/heatmap.js";
import { drawThumb } from "../maps/thumb.js";
import { labelAt } from "../request/steps.js";
import { short } from "../request/tensor.js";
import { DrawingData } from "./drawing_data.js";

/** The build puts maps/style.css here. */
const MAPS_STYLE = "";

const FRAME_STYLE = `
:host { display: block; color: var(--ink); font: 0.8125rem/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
* { box-sizing: border-box; }
p { margin: 0; }
.note { font-size: 0.75rem; color: var(--muted); }
button { font: inherit; color: inherit; border-radius: 6px; cursor: pointer; }
`;

const DRAWING_DEFAULTS = { step: "attention", batch: 0, head: 0, palette: "viridis" };

const LIBRARY_WORDS = {
  query: "query",
  key: "key",
  queries: "queries",
  masked: "masked",
  layer: "layer",
  head: "head",
  heads: "heads by layer",
};

let style = null;

function styleOfAll() {
  if (style) return style;
  style = new CSSStyleSheet();
  style.replaceSync(MAPS_STYLE + FRAME_STYLE);
  return style;
}

/** What the three have in common: an element of the page, data, options, events. */
class Drawing extends EventTarget {
  /** @param {(drawing: Drawing) => {element: HTMLElement, show: (changed?: any) => void}} make */
  constructor(element, data, options, make) {
    super();
    this.host = h("div.attnd", {});
    this.spoken = h("p.spoken", { "aria-live": "polite" });
    this.data = data;
    this.options = { ...DRAWING_DEFAULTS, ...options };
    this.#read();
    const { element: drawn, show } = make(this),
      root = this.host.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [styleOfAll()];
    root.append(drawn, this.spoken);
    element.append(this.host);
    this.show = show;
    this.scheme = window.matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", show);
    show();
  }

  #read() {
    this.given = new DrawingData(this.data, this.options.step);
    this.options.layer ??= this.given.layerNumbers[0];
    this.words = { ...LIBRARY_WORDS, ...this.options.words };
  }

  update(options = {}, data = this.data) {
    const before = { data: this.data, options: this.options, given: this.given };
    try {
      this.data = data;
      this.options = { ...this.options, ...options };
      if (data !== before.data || this.options.step !== before.options.step) this.#read();
      this.show(options);
    } catch (problem) {
      Object.assign(this, before);
      throw problem;
    }
  }

  destroy() {
    this.scheme.removeEventListener("change", this.show);
    this.host.remove();
  }

  say(text) {
    this.spoken.textContent = text;
  }

  emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  /** The shown head, with its labels. */
  get seen() {
    const { given, options } = this,
      { layer, batch, head } = options,
      matrix = given.matrix(layer, batch, head);
    return {
      matrix,
      isHidden: given.hiddenIn(matrix, layer, batch, head),
      rowLabels: given.labels("query", batch, matrix.rows),
      colLabels: given.labels("key", batch, matrix.cols),
    };
  }

  scaleFor(matrix, range) {
    const extent = extentOf(matrix.data),
      isWeight = extent.low >= 0 && extent.high <= 1 + 1e-3;
    // Light text means a dark background.
    const isDark = Number(/\d+/.exec(cssColour("ink", this.spoken))?.[0]) > 127;
    return { extent, isWeight, scale: scaleOf({ palette: this.options.palette, range, isDark }, extent, isWeight) };
  }

  nameOf(layer, head) {
    const { words, given } = this,
      parts = given.layers > 1 ? [`${words.layer} ${layer}`] : [];
    return [...parts, `${words.head} ${head}`].join(", ");
  }
}

export function drawMap(element, data, options) {
  return new Drawing(element, data, { range: "full", ...options }, (drawing) => {
    const factsOf = ({ row, col }) => {
      const { matrix, isHidden, rowLabels, colLabels } = drawing.seen;
      return {
        row,
        col,
        query: labelAt(rowLabels, row),
        key: labelAt(colLabels, col),
        value: matrix.data[row * matrix.cols + col],
        isMasked: isHidden(row, col),
      };
    };
    const describe = (row, col) => {
      const { query, key, value, isMasked } = factsOf({ row, col });
      return `${query} → ${key}, ${isMasked ? drawing.words.masked : short(value, 6)}`;
    };
    const map = new HeatmapView({
      describe,
      onhover: (cell) => drawing.emit("hover", cell && factsOf(cell)),
      onselect: (row, col) => {
        drawing.say(describe(row, col));
        drawing.emit("select", factsOf({ row, col }));
      },
      onpaint: () => {},
      onkey: () => false,
    });
    const show = ({ row = map.focus.row, col = map.focus.col } = drawing.options) => {
      const { seen, words, options: wanted } = drawing,
        { layer, head, label = drawing.nameOf(layer, head) } = wanted,
        { isWeight, scale, extent } = drawing.scaleFor(seen.matrix, wanted.range);
      map.focus = { row, col };
      const sheet = {
        ...seen,
        scale,
        extent,
        isWeight,
        rowPrefix: "",
        colPrefix: "",
        rowAxis: words.query,
        colAxis: words.key,
        reservedWidth: 0,
        height: wanted.height,
        hasTotals: isWeight && wanted.totals !== false,
        isPainting: false,
        title: label,
        key: "",
      };
      map.show(/** @type {any} */ (sheet));
    };
    return { element: map.element, show };
  });
}

export function drawLinks(element, data, options) {
  return new Drawing(element, data, { mode: "top", top: 3, threshold: 0.1, ...options }, (drawing) => {
    const factsOf = (row) => {
      const { matrix, rowLabels, colLabels } = drawing.seen,
        { mode, top, threshold } = drawing.options,
        weights = matrix.data.subarray(row * matrix.cols, (row + 1) * matrix.cols);
      return {
        row,
        query: labelAt(rowLabels, row),
        links: chosenLinks(weights, mode, top, threshold).map(({ j, weight }) => ({
          col: j,
          key: labelAt(colLabels, j),
          value: weight,
        })),
      };
    };
    const links = new LinksView({
      onselect: (row) => drawing.emit("select", row === null ? null : factsOf(row)),
      onhover: (row) => drawing.emit("hover", row === null ? null : factsOf(row)),
    });
    const show = ({ row } = drawing.options) => {
      const { seen, words, options: wanted } = drawing,
        { mode, top, threshold } = wanted;
      links.show({ ...seen, mode, top, threshold, row: row ?? links.chosen ?? 0, chosen: row, queriesName: words.queries });
    };
    return { element: links.element, show };
  });
}

export function drawGrid(element, data, options) {
  return new Drawing(element, data, options, (drawing) => {
    const placeOf = (at) => {
      const { given } = drawing;
      return { layer: given.layerNumbers[Math.floor(at / given.heads)], head: at % given.heads };
    };
    const select = (at) => {
      drawing.update(placeOf(at));
      drawing.emit("select", placeOf(at));
    };
    const grid = new PictureGrid({
      onselect: select,
      onopen: () => drawing.emit("open", placeOf(grid.board.open)),
      onkey: () => false,
      onhover: (at) => drawing.emit("hover", at === null ? null : placeOf(at)),
      say: (text) => drawing.say(text),
    });
    const thumbOf = ({ layer, head }) => {
      const { given, options: wanted } = drawing,
        matrix = given.matrix(layer, wanted.batch, head),
        canvas = h("canvas");
      drawThumb(canvas, matrix, drawing.scaleFor(matrix, "max").scale, THUMB_PIXELS, given.hiddenIn(matrix, layer, wanted.batch, head));
      return canvas;
    };
    const pictureAt = (_, at) => ({
      canvas: () => thumbOf(placeOf(at)),
      label: () => drawing.nameOf(placeOf(at).layer, placeOf(at).head),
    });
    const show = () => {
      const { given, words, options: wanted } = drawing,
        { layer, head, label = words.heads } = wanted;
      grid.show({
        label,
        pictures: Array.from({ length: given.layers * given.heads }, pictureAt),
        across: given.heads,
        rowNames: given.layerNumbers.map(String),
        colNames: Array.from({ length: given.heads }, (_, at) => String(at)),
        hasCaptions: false,
        open: given.placeOf(layer) * given.heads + head,
      });
    };
    return { element: grid.element, show };
  });
}
