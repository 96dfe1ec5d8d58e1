/**
 * heatmap.js: one large matrix: cells, labels, totals, hatched masked cells, and marks of the hovered and the focused cell.
 *
 * Two canvases lie on each other: the cells, and the marks above them, so that hovering draws only a few lines. An ARIA
 * grid lies above both, for keyboards and screen readers. Only its focused cell is an element.
 */
import { cssAt } from "./colour.js";
import { cssColour, h, sizeCanvas } from "../dom.js";
import { labelAt } from "../request/steps.js";
import { cellText, fixed } from "../request/tensor.js";
import { totalsOf } from "./stats.js";
import { Gestures } from "./gestures.js";
import { Tiles, TILE } from "./tiles.js";
import { Viewport } from "./viewport.js";

const FONT = "system-ui, sans-serif",
  LABEL_MAX = 104,
  TOTAL_WIDTH = 52,
  TOTAL_HEIGHT = 40;
/** Most tiles that are started per frame. */
const TILES_A_FRAME = 2;
/** Distance between the starts of slanted labels, in CSS pixels. The lines themselves are nearer to each other. */
const SLANTED_APART = 18;
const HATCH_CELLS = 40000;
/** A map wider than this leaves room beside it. */
const ROOMY = 560;
/** Space below a map that ends with the window. */
const BELOW = 14;

/**
 * @typedef {object} Sheet what is drawn
 * @property {import("../request/tensor.js").Matrix} matrix
 * @property {import("./colour.js").Scale} scale
 * @property {string[] | null} rowLabels
 * @property {string[] | null} colLabels
 * @property {string} rowPrefix before a number that stands for a label
 * @property {string} colPrefix
 * @property {string} rowAxis name of the rows
 * @property {string} colAxis
 * @property {number} [height] maximum, in CSS pixels
 * @property {number} reservedWidth width to leave free beside the map, if the map is wide enough
 * @property {boolean} hasTotals
 * @property {boolean} hasHidden whether a mask hides cells
 * @property {(i: number, j: number) => boolean} isHidden
 * @property {number} [resting] mean share of the first column, if the head rests there; else 0
 * @property {boolean} [leavesFirst] the first column has no colours; its numbers stay
 * @property {string} title
 * @property {string} fileTitle title in exported pictures
 * @property {string} corner first field of an exported table
 * @property {string} key a new key discards the drawn tiles
 * @property {boolean} isWeight
 * @property {boolean} isPainting dragging over cells changes the mask
 * @property {import("../request/steps.js").Step} step
 * @property {{low: number, high: number}} extent
 */

export class HeatmapView {
  /**
   * @param {{onhover: Function, onselect: Function, onpaint: Function, onkey: Function, describe: Function,
   *          onlayout?: (used: {width: number, top: number}) => void}} hooks
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.view = new Viewport();
    this.cells = h("canvas.cells", { "aria-hidden": "true" });
    this.mark = h("canvas.mark", { "aria-hidden": "true" });
    this.cell = h("div.cell", { role: "gridcell", tabindex: "0" });
    this.row = h("div", { role: "row" }, this.cell);
    this.grid = h("div.grid", { role: "grid" }, this.row);
    this.element = h("div.map", {}, this.cells, this.mark, this.grid);
    this.focus = { row: 0, col: 0 };
    /** The opposite corner of a selected range. @type {{row: number, col: number} | null} */
    this.anchor = null;
    this.hovered = null;
    new Gestures(this);
    this.cell.addEventListener("keydown", (event) => this.#key(event));
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.element);
  }

  /** @param {Sheet} sheet */
  show(sheet) {
    const isNew = this.sheet?.matrix.data !== sheet.matrix.data || this.sheet.key !== sheet.key;
    this.sheet = sheet;
    if (isNew) {
      this.tiles = new Tiles(sheet.matrix, sheet.isHidden);
      this.totals = null;
      this.hovered = null;
    }
    if (this.anchor?.row >= sheet.matrix.rows || this.anchor?.col >= sheet.matrix.cols) this.anchor = null;
    this.tiles.recolour(sheet.scale);
    this.grid.setAttribute("aria-rowcount", String(sheet.matrix.rows));
    this.grid.setAttribute("aria-colcount", String(sheet.matrix.cols));
    this.grid.setAttribute("aria-label", sheet.title);
    this.moveTo(
      Math.min(this.focus.row, sheet.matrix.rows - 1),
      Math.min(this.focus.col, sheet.matrix.cols - 1),
      false,
    );
    this.draw();
  }

  /** Draws in the next frame, once per frame. */
  draw() {
    this.isDirty = true;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.isDirty && this.sheet && this.element.clientWidth > 0) this.#drawNow();
    });
  }

  zoom(factor) {
    const { left, top } = this.view.placeOf(this.focus.row, this.focus.col);
    this.view.zoomAt(
      factor,
      Math.max(0, Math.min(left, this.view.plotWidth)),
      Math.max(0, Math.min(top, this.view.plotHeight)),
    );
    this.draw();
  }

  fit() {
    this.view.fit();
    this.draw();
  }

  /** The selected cells: rows and columns, both ends included. */
  get range() {
    const { focus, anchor } = this,
      { row, col } = anchor ?? focus;
    return {
      from: Math.min(row, focus.row),
      to: Math.max(row, focus.row),
      first: Math.min(col, focus.col),
      last: Math.max(col, focus.col),
    };
  }

  /** Moves the focus to a cell. */
  moveTo(row, col, isByHand = true) {
    this.focus = { row, col };
    this.cell.setAttribute("aria-colindex", String(col + 1));
    this.row.setAttribute("aria-rowindex", String(row + 1));
    this.cell.setAttribute("aria-label", this.hooks.describe(row, col));
    if (!isByHand) return;
    this.view.reveal(row, col);
    this.draw();
    this.hooks.onselect(row, col);
  }

  // ---- drawing ---------------------------------------------------------------------------------------------------

  #colours() {
    const names = ["ink", "muted", "line", "hidden", "hatch", "accent"];
    return Object.fromEntries(names.map((name) => [name, cssColour(name, this.element)]));
  }

  /** Height for map, labels and totals: as the sheet says, else down to the end of the window. */
  #mostHeight() {
    if (this.sheet.height) return this.sheet.height;
    const above = this.element.getBoundingClientRect().top + window.scrollY,
      isSeen = above < window.innerHeight / 2;
    return Math.max(320, isSeen ? Math.min(window.innerHeight - above - BELOW, 960) : Math.min(window.innerHeight * 0.72, 720));
  }

  #layOut(context) {
    const { sheet } = this,
      { matrix } = sheet,
      width = this.element.clientWidth;
    context.font = `12px ${FONT}`;
    const widest = (labels, prefix, length) => {
      const texts = labels ? labels.slice(0, 512) : [prefix + (length - 1)];
      return Math.min(LABEL_MAX, Math.ceil(Math.max(...texts.map((text) => context.measureText(text).width))));
    };
    this.rowLabelWidth = widest(sheet.rowLabels, sheet.rowPrefix, matrix.rows);
    const axis = Math.ceil(context.measureText(sheet.rowAxis + " ↓").width);
    this.rowLabelWidth = Math.max(this.rowLabelWidth, axis);
    this.colLabelWidth = widest(sheet.colLabels, sheet.colPrefix, matrix.cols);
    const slanted = Math.ceil(this.colLabelWidth * 0.72) + 14;
    this.origin = { x: this.rowLabelWidth + 12, y: Math.max(36, slanted) };
    const right = Math.max(sheet.hasTotals ? TOTAL_WIDTH : 8, Math.min(slanted, 60));
    const bottom = sheet.hasTotals ? TOTAL_HEIGHT : 8;
    this.view.place(
      Math.max(40, width - this.origin.x - right - (width > ROOMY ? sheet.reservedWidth : 0)),
      this.#mostHeight() - this.origin.y - bottom,
      matrix.rows,
      matrix.cols,
    );
    return { width, height: this.origin.y + this.view.plotHeight + bottom, right };
  }

  #drawNow() {
    this.isDirty = false;
    const { width, height, right } = this.#layOut(this.cells.getContext("2d"));
    this.size = { width, height };
    const context = sizeCanvas(this.cells, width, height);
    if (this.element.style.height !== height + "px") this.element.style.height = height + "px";
    // One finger scrolls the page over a map that is shown in full. Two fingers never zoom the page here.
    this.element.style.touchAction = this.sheet.isPainting || this.view.zoom > 1 ? "none" : "pan-x pan-y";
    this.hooks.onlayout?.({ width: this.origin.x + this.view.plotWidth + right, top: this.origin.y });
    this.colours = this.#colours();
    context.save();
    context.translate(this.origin.x, this.origin.y);
    this.#drawCells(context);
    this.#drawHatch(context);
    this.#drawValues(context);
    this.#drawRowLabels(context);
    this.#drawColLabels(context);
    this.#drawAxes(context);
    if (this.sheet.hasTotals) this.#drawTotals(context);
    context.restore();
    this.#drawMark();
  }

  #drawCells(context) {
    const { view, tiles } = this,
      ratio = window.devicePixelRatio || 1;
    context.fillStyle = this.colours.hidden;
    context.fillRect(0, 0, view.plotWidth, view.plotHeight);
    context.save();
    context.beginPath();
    context.rect(0, 0, view.plotWidth, view.plotHeight);
    context.clip();
    context.imageSmoothingEnabled = false;
    const small = Math.min(view.cellWidth, view.cellHeight) * ratio;
    const wanted = Math.min(tiles.topLevel, Math.max(0, Math.floor(Math.log2(1 / small) + 0.2)));
    const budget = { left: TILES_A_FRAME };
    if (!this.#coversAll(wanted)) this.#drawLevel(context, tiles.topLevel, budget);
    this.#drawLevel(context, wanted, budget);
    if (this.sheet.leavesFirst) {
      context.fillStyle = this.colours.hidden;
      context.fillRect(view.placeOf(0, 0).left, 0, view.cellWidth, view.plotHeight);
    }
    context.restore();
  }

  /** Whether all visible tiles of a level are made. If not, the coarsest level is drawn below. */
  #coversAll(level) {
    return this.#tilesSeen(level).every(([x, y]) => this.tiles.get(level, x, y, false));
  }

  #tilesSeen(level) {
    const size = TILE * 2 ** level,
      { fromRow, toRow, fromCol, toCol } = this.view.seen,
      seen = [];
    for (let y = Math.floor(fromRow / size); y * size < toRow; y++)
      for (let x = Math.floor(fromCol / size); x * size < toCol; x++) seen.push([x, y]);
    return seen;
  }

  #drawLevel(context, level, budget) {
    const { view, tiles } = this,
      size = TILE * 2 ** level;
    for (const [x, y] of this.#tilesSeen(level)) {
      const begins = budget.left > 0;
      const picture = tiles.get(level, x, y, begins, () => this.draw());
      if (!picture) {
        budget.left -= begins ? 1 : 0;
        if (!begins) this.isDirty = true;
        continue;
      }
      const { left, top } = view.placeOf(y * size, x * size),
        step = 2 ** level;
      const [right, bottom] = [
        left + picture.width * step * view.cellWidth,
        top + picture.height * step * view.cellHeight,
      ];
      context.drawImage(picture, left, top, right - left, bottom - top);
    }
    if (this.isDirty) this.draw();
  }

  /** Adjacent hidden cells of a row are one rectangle. */
  #drawHatch(context) {
    const { view, sheet } = this,
      { fromRow, toRow, fromCol, toCol } = view.seen;
    if (Math.min(view.cellWidth, view.cellHeight) < 5 || (toRow - fromRow) * (toCol - fromCol) > HATCH_CELLS) return;
    const path = new Path2D();
    let isAny = false;
    for (let i = fromRow; i < toRow; i++)
      for (let j = fromCol; j < toCol; j++) {
        const start = j;
        while (j < toCol && (sheet.isHidden(i, j) || (sheet.leavesFirst && j === 0))) j++;
        if (j === start) continue;
        const { left, top } = view.placeOf(i, start);
        path.rect(left, top, (j - start) * view.cellWidth, view.cellHeight);
        isAny = true;
      }
    if (!isAny) return;
    context.save();
    context.beginPath();
    context.rect(0, 0, view.plotWidth, view.plotHeight);
    context.clip();
    context.clip(path);
    context.strokeStyle = this.colours.hatch;
    context.lineWidth = 1;
    context.beginPath();
    const shift = (((view.x * view.cellWidth + view.y * view.cellHeight) % 6) + 6) % 6;
    for (let at = -shift; at < view.plotWidth + view.plotHeight; at += 6) {
      context.moveTo(at, 0);
      context.lineTo(at - view.plotHeight, view.plotHeight);
    }
    context.stroke();
    context.restore();
  }

  #drawValues(context) {
    const { view, sheet } = this;
    if (view.cellWidth < 34 || view.cellHeight < 16) return;
    const { fromRow, toRow, fromCol, toCol } = view.seen,
      { cols, data } = sheet.matrix;
    context.save();
    context.beginPath();
    context.rect(0, 0, view.plotWidth, view.plotHeight);
    context.clip();
    context.font = `${view.cellWidth < 44 ? 10.5 : 12}px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let i = fromRow; i < toRow; i++)
      for (let j = fromCol; j < toCol; j++) {
        if (sheet.isHidden(i, j)) continue;
        const value = data[i * cols + j],
          { left, top } = view.placeOf(i, j);
        context.fillStyle = sheet.leavesFirst && j === 0 ? this.colours.ink : cssAt(sheet.scale, value).isLight ? "#101418" : "#ffffff";
        context.fillText(cellText(value), left + view.cellWidth / 2, top + view.cellHeight / 2 + 0.5);
      }
    context.restore();
  }

  /** Rows or columns per label, so that labels do not overlap. */
  #stride(size, apart = 15) {
    const strides = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
    return strides.find((stride) => stride * size >= apart) ?? 10000;
  }

  #drawRowLabels(context) {
    const { view, sheet, focus, hovered } = this,
      { fromRow, toRow } = view.seen,
      stride = this.#stride(view.cellHeight);
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let i = Math.ceil(fromRow / stride) * stride; i < toRow; i += stride) {
      const { top } = view.placeOf(i, 0),
        middle = top + view.cellHeight / 2;
      if (middle < 0 || middle > view.plotHeight) continue;
      this.#label(context, sheet.rowLabels, sheet.rowPrefix, i, i === focus.row || i === hovered?.row);
      context.fillText(this.text, -8, middle, this.rowLabelWidth);
    }
  }

  #drawColLabels(context) {
    const { view, sheet, focus, hovered } = this,
      { fromCol, toCol } = view.seen,
      isFlat = this.colLabelWidth + 6 <= view.cellWidth * this.#stride(view.cellWidth),
      stride = this.#stride(view.cellWidth, SLANTED_APART);
    context.textAlign = isFlat ? "center" : "left";
    context.textBaseline = isFlat ? "alphabetic" : "middle";
    for (let j = Math.ceil(fromCol / stride) * stride; j < toCol; j += stride) {
      const { left } = view.placeOf(0, j),
        middle = left + view.cellWidth / 2;
      if (middle < 0 || middle > view.plotWidth) continue;
      this.#label(context, sheet.colLabels, sheet.colPrefix, j, j === focus.col || j === hovered?.col);
      context.save();
      context.translate(middle, -8);
      if (!isFlat) context.rotate(-Math.PI / 4);
      context.fillText(this.text, 0, 0, LABEL_MAX);
      context.restore();
    }
  }

  #label(context, labels, prefix, at, isMarked) {
    context.fillStyle = isMarked ? this.colours.ink : this.colours.muted;
    context.font = `${isMarked ? "600 " : ""}12px ${FONT}`;
    const text = labels ? labels[at] : prefix + at;
    this.text = text.length > 24 ? text.slice(0, 23) + "…" : text;
  }

  /** Draws the names of the axes in the corner, and Σ at the totals. */
  #drawAxes(context) {
    const { sheet, view, origin } = this;
    context.font = `italic 12px ${FONT}`;
    context.fillStyle = this.colours.muted;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.fillText(`${sheet.colAxis} →`, -8, -origin.y + 9, origin.x - 10);
    context.fillText(`${sheet.rowAxis} ↓`, -8, -9, origin.x - 10);
    if (!sheet.hasTotals) return;
    context.fillText("Σ", -8, view.plotHeight + 16);
    context.textAlign = "left";
    context.fillText("Σ", view.plotWidth + 20, -9);
  }

  #drawTotals(context) {
    const { view } = this,
      { fromRow, toRow } = view.seen;
    this.totals ??= totalsOf(this.sheet.matrix);
    context.font = `11px ${FONT}`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = this.colours.muted;
    const stride = this.#stride(view.cellHeight);
    for (let i = Math.ceil(fromRow / stride) * stride; i < toRow; i += stride) {
      const middle = view.placeOf(i, 0).top + view.cellHeight / 2;
      if (middle >= 0 && middle <= view.plotHeight)
        context.fillText(fixed(this.totals.row[i], 3), view.plotWidth + 8, middle);
    }
    this.#drawColTotals(context);
  }

  /** Bars below the columns. Columns narrower than a pixel share the bar of the largest. */
  #drawColTotals(context) {
    const { view } = this,
      { fromCol, toCol } = view.seen,
      { col } = this.totals;
    const most = col.reduce((a, b) => Math.max(a, b), 1e-30),
      step = Math.max(1, Math.floor(1 / view.cellWidth));
    const base = view.plotHeight + 6,
      tall = TOTAL_HEIGHT - 18;
    for (let j = fromCol; j < toCol; j += step) {
      let value = 0;
      for (let n = j; n < Math.min(j + step, toCol); n++) value = Math.max(value, col[n]);
      const left = Math.max(0, view.placeOf(0, j).left),
        wide = Math.max(1, view.cellWidth * step - (view.cellWidth > 4 ? 2 : 0));
      context.globalAlpha = 0.45;
      context.fillRect(
        left + (view.cellWidth > 4 ? 1 : 0),
        base,
        Math.min(wide, view.plotWidth - left),
        Math.max(1, (tall * value) / most),
      );
      context.globalAlpha = 1;
    }
    if (view.cellWidth < 30) return;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    for (let j = fromCol; j < toCol; j++) {
      const { left } = view.placeOf(0, j),
        middle = left + view.cellWidth / 2;
      if (middle >= 0 && middle <= view.plotWidth) context.fillText(fixed(col[j], 2), middle, base + TOTAL_HEIGHT - 8);
    }
  }

  /** Frames the hovered cell, the focused cell and the selected range, and moves the element of the focused cell. */
  #drawMark() {
    const { view, hovered, focus, origin } = this;
    const context = sizeCanvas(this.mark, this.size.width, this.size.height);
    context.save();
    context.translate(origin.x, origin.y);
    context.beginPath();
    context.rect(-2, -2, view.plotWidth + 4, view.plotHeight + 4);
    context.clip();
    if (hovered) this.#frame(context, hovered, this.colours.ink, 1.5);
    this.#frame(context, focus, this.colours.accent, 2.5);
    const { from, to, first, last } = this.range;
    if (this.anchor) this.#frame(context, { row: from, col: first }, this.colours.accent, 2.5, last + 1 - first, to + 1 - from);
    context.restore();
    const { left, top } = view.placeOf(focus.row, focus.col),
      { style } = this.cell;
    style.left = origin.x + Math.max(0, Math.min(left, view.plotWidth)) + "px";
    style.top = origin.y + Math.max(0, Math.min(top, view.plotHeight)) + "px";
    style.width = Math.max(3, view.cellWidth) + "px";
    style.height = Math.max(3, view.cellHeight) + "px";
  }

  #frame(context, { row, col }, colour, width, across = 1, down = 1) {
    const { left, top } = this.view.placeOf(row, col),
      [w, t] = [across * this.view.cellWidth, down * this.view.cellHeight];
    context.lineWidth = width + 2;
    context.strokeStyle = "rgb(255 255 255 / 0.8)";
    context.strokeRect(left, top, w, t);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.strokeRect(left, top, w, t);
  }

  // ---- keyboard --------------------------------------------------------------------------------------------------

  /** @param {{row: number, col: number} | null} cell the one below the pointer */
  hover(cell) {
    if (cell?.row === this.hovered?.row && cell?.col === this.hovered?.col) return;
    this.hovered = cell;
    if (this.size && !this.isDirty) this.#drawMark();
    this.hooks.onhover(cell);
  }

  #key(event) {
    const { rows, cols } = this.sheet.matrix,
      { row, col } = this.focus;
    const isFar = event.ctrlKey || event.metaKey;
    const moves = {
      ArrowLeft: [row, col - 1],
      ArrowRight: [row, col + 1],
      ArrowUp: [row - 1, col],
      ArrowDown: [row + 1, col],
      Home: [isFar ? 0 : row, 0],
      End: [isFar ? rows - 1 : row, cols - 1],
      PageUp: [row - 8, col],
      PageDown: [row + 8, col],
    };
    const move = moves[event.key];
    if (move) {
      this.anchor = event.shiftKey ? (this.anchor ?? this.focus) : null;
      this.moveTo(Math.max(0, Math.min(rows - 1, move[0])), Math.max(0, Math.min(cols - 1, move[1])));
    } else if (event.key === "+" || event.key === "=") {
      this.zoom(1.5);
    } else if (event.key === "-") {
      this.zoom(1 / 1.5);
    } else if (event.key === "0") {
      this.fit();
    } else if (!this.hooks.onkey(event.key, row, col)) {
      return;
    }
    event.preventDefault();
  }

  /** Label of a row, for messages. */
  rowName(row) {
    return this.sheet.rowLabels ? labelAt(this.sheet.rowLabels, row) : this.sheet.rowPrefix + row;
  }

  colName(col) {
    return this.sheet.colLabels ? labelAt(this.sheet.colLabels, col) : this.sheet.colPrefix + col;
  }
}
