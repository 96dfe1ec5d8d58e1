/**
 * grid.js: many matrices as thumbnails on one canvas: in rows and columns with names, or one after another.
 *
 * As in the map, only the focused cell is an element. The others are pixels.
 */
import { cssColour, h, sizeCanvas } from "../dom.js";

const SIDE = { least: 18, most: 104, leastOfFlow: 44, leastWithCaption: 40 },
  GAP = 6,
  NAMES_LEFT = { least: 24, most: 180, gap: 12 },
  NAMES_TOP = 22,
  CAPTION = 16,
  SMALL_FONT = "12px system-ui, sans-serif",
  CAPTION_FONT = "11px system-ui, sans-serif";
/** Pictures per row that fit the width, when they come one after another. */
const FLOW_MOST = 8;

/** Largest side of a picture, in pixels. */
export const THUMB_PIXELS = 64;

/**
 * @typedef {object} Picture
 * @property {() => HTMLCanvasElement | null} canvas called when the picture is drawn; null: not made yet
 * @property {() => string} label accessible name
 * @property {string} [caption] below the picture, if there is room
 * @property {string | null} [colour] of a frame
 * @property {boolean} [isFaint]
 * @property {boolean} [isCrossed]
 *
 * @typedef {object} Board what is shown
 * @property {string} label
 * @property {(Picture | null)[]} pictures row by row; null: an empty place at the end of a row
 * @property {number} across pictures per row
 * @property {string[] | null} rowNames null: one after another, as many per row as fit
 * @property {string[]} colNames
 * @property {boolean} hasCaptions
 * @property {number} open index of the open picture
 * @property {number} [focus] index of the focused picture; by default the open one
 */

export class PictureGrid {
  /**
   * @param {{onselect: (at: number) => void, onopen: () => void, onkey: (key: string) => boolean,
   *          say: (text: string) => void, onmove?: (at: number) => void, onhover?: (at: number | null) => void}} hooks
   *          onmove: called for moves by the keyboard; without it, a move selects
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.cell = h("div.cell", { role: "gridcell", tabindex: "0" });
    this.row = h("div", { role: "row" }, this.cell);
    this.grid = h("div.grid", { role: "grid" }, this.row);
    this.plot = h("div.map", {}, this.canvas, this.grid);
    this.element = h("div.headgrid", {}, this.plot);
    /** @type {Board | null} */
    this.board = null;
    this.hovered = -1;
    this.plot.addEventListener("click", (event) => this.#click(event));
    this.plot.addEventListener("dblclick", () => this.hooks.onopen());
    this.plot.addEventListener("pointermove", (event) => this.#hover(this.board ? this.#placeAt(event) : -1));
    this.plot.addEventListener("pointerleave", () => this.#hover(-1));
    this.cell.addEventListener("keydown", (event) => this.#key(event));
    this.isLaidOut = false;
    new ResizeObserver(([{ contentRect }]) => {
      this.isLaidOut = contentRect.width > 0;
      this.draw();
    }).observe(this.element);
  }

  /** @param {Board} board */
  show(board) {
    this.board = board;
    this.grid.setAttribute("aria-label", board.label);
    this.draw();
  }

  // ---- drawing ---------------------------------------------------------------------------------------------------

  #layOut() {
    const { board, element } = this,
      width = element.clientWidth,
      isFlow = board.rowNames === null;
    this.left = isFlow ? 0 : this.#widthOfNames();
    this.top = isFlow ? 0 : NAMES_TOP;
    this.caption = board.hasCaptions ? CAPTION : 0;
    this.across = board.across;
    if (isFlow) {
      const room = Math.floor(width / Math.min(FLOW_MOST, board.across)) - GAP;
      this.side = Math.max(SIDE.leastOfFlow, Math.min(SIDE.most, room));
      this.across = Math.max(1, Math.floor((width + GAP) / (this.side + GAP)));
    } else {
      const room = Math.floor((width - this.left) / this.across) - GAP;
      this.side = Math.max(SIDE.least, Math.min(SIDE.most, room));
      if (this.side < SIDE.leastWithCaption) this.caption = 0;
    }
    this.down = Math.ceil(board.pictures.length / this.across);
    return {
      width: this.left + this.across * (this.side + GAP),
      height: this.top + this.down * (this.side + GAP + this.caption) + 4,
    };
  }

  #widthOfNames() {
    const context = this.canvas.getContext("2d");
    context.font = "600 " + SMALL_FONT;
    const widest = Math.ceil(Math.max(0, ...this.board.rowNames.map((name) => context.measureText(name).width)));
    return Math.max(NAMES_LEFT.least, Math.min(NAMES_LEFT.most, widest + NAMES_LEFT.gap));
  }

  #placeOf(at) {
    return {
      left: this.left + (at % this.across) * (this.side + GAP),
      top: this.top + Math.floor(at / this.across) * (this.side + GAP + this.caption) + 2,
    };
  }

  draw() {
    if (!this.board || this.element.clientWidth === 0) return;
    const { width, height } = this.#layOut(),
      context = sizeCanvas(this.canvas, width, height);
    this.plot.style.width = width + "px";
    this.plot.style.height = height + "px";
    this.colours = Object.fromEntries(["ink", "muted", "hidden", "accent"].map((name) => [name, cssColour(name, this.element)]));
    if (this.board.rowNames) this.#drawNames(context);
    this.board.pictures.forEach((picture, at) => picture && this.#drawPicture(context, picture, at));
    this.#placeCell();
  }

  #drawNames(context) {
    const { rowNames, colNames, open } = this.board;
    const mark = (isOpen) => {
      context.font = (isOpen ? "600 " : "") + SMALL_FONT;
      context.fillStyle = isOpen ? this.colours.ink : this.colours.muted;
    };
    context.textBaseline = "middle";
    context.textAlign = "center";
    colNames.forEach((name, col) => {
      mark(col === open % this.across);
      context.fillText(name, this.left + col * (this.side + GAP) + this.side / 2, NAMES_TOP - 12, this.side + 4);
    });
    context.textAlign = "right";
    rowNames.forEach((name, row) => {
      mark(row === Math.floor(open / this.across));
      context.fillText(name, this.left - 8, this.#placeOf(row * this.across).top + this.side / 2, this.left - 8);
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {Picture} picture @param {number} at */
  #drawPicture(context, { canvas, caption, colour, isFaint, isCrossed }, at) {
    const { side } = this,
      { left, top } = this.#placeOf(at),
      drawn = canvas();
    context.fillStyle = this.colours.hidden;
    context.fillRect(left, top, side, side);
    context.imageSmoothingEnabled = side * (window.devicePixelRatio || 1) < THUMB_PIXELS;
    context.globalAlpha = isFaint ? 0.2 : 1;
    if (drawn) context.drawImage(drawn, left, top, side, side);
    context.globalAlpha = 1;
    if (isCrossed) this.#cross(context, left, top);
    if (colour) this.#frame(context, left + 2, top + 2, side - 4, colour, 4);
    if (at === this.board.open) this.#frame(context, left - 1, top - 1, side + 2, this.colours.accent, 2.5);
    if (this.caption > 0 && caption) this.#drawCaption(context, caption, left, top);
  }

  #cross(context, left, top) {
    context.strokeStyle = this.colours.ink;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(left, top);
    context.lineTo(left + this.side, top + this.side);
    context.moveTo(left + this.side, top);
    context.lineTo(left, top + this.side);
    context.stroke();
  }

  #frame(context, left, top, size, colour, width) {
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.strokeRect(left, top, size, size);
  }

  #drawCaption(context, caption, left, top) {
    context.font = CAPTION_FONT;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = this.colours.muted;
    context.fillText(caption, left + this.side / 2, top + this.side + 2, this.side);
  }

  // ---- the focused cell, pointer and keyboard ----------------------------------------------------------------------

  get #at() {
    return Math.max(0, this.board.focus ?? this.board.open);
  }

  #placeCell() {
    const at = this.#at,
      { left, top } = this.#placeOf(at),
      { style } = this.cell;
    style.left = left + "px";
    style.top = top + "px";
    style.width = style.height = this.side + "px";
    this.grid.setAttribute("aria-rowcount", String(this.down));
    this.grid.setAttribute("aria-colcount", String(this.across));
    this.row.setAttribute("aria-rowindex", String(Math.floor(at / this.across) + 1));
    this.cell.setAttribute("aria-colindex", String((at % this.across) + 1));
    this.cell.setAttribute("aria-label", this.board.pictures[at]?.label() ?? "");
  }

  /** @returns {number} −1: no picture */
  #placeAt(event) {
    const box = this.plot.getBoundingClientRect(),
      col = Math.floor((event.clientX - box.left - this.left) / (this.side + GAP)),
      row = Math.floor((event.clientY - box.top - this.top) / (this.side + GAP + this.caption)),
      at = row * this.across + col;
    return row >= 0 && col >= 0 && col < this.across && this.board.pictures[at] ? at : -1;
  }

  #hover(at) {
    this.plot.style.cursor = at < 0 ? "" : "pointer";
    this.plot.title = at < 0 ? "" : this.board.pictures[at].label();
    if (at !== this.hovered) this.hooks.onhover?.(at < 0 ? null : at);
    this.hovered = at;
  }

  #click(event) {
    const at = this.board ? this.#placeAt(event) : -1;
    if (at < 0) return;
    this.hooks.onselect(at);
    this.cell.focus({ preventScroll: true });
  }

  #key(event) {
    if (!this.board) return;
    const at = this.#at,
      last = this.board.pictures.length - 1,
      isFar = event.ctrlKey || event.metaKey,
      begin = at - (at % this.across);
    const moves = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at - this.across,
      ArrowDown: at + this.across,
      Home: isFar ? 0 : begin,
      End: isFar ? last : Math.min(last, begin + this.across - 1),
    };
    const to = moves[event.key];
    if (to !== undefined) this.#moveTo(to >= 0 && to <= last ? to : at);
    else if (event.key === "Enter") this.hooks.onopen();
    else if (isFar || !this.hooks.onkey(event.key)) return;
    else requestAnimationFrame(() => this.hooks.say(this.cell.getAttribute("aria-label"))); // as the key has changed it
    event.preventDefault();
  }

  #moveTo(at) {
    const { pictures } = this.board;
    while (at > 0 && !pictures[at]) at--;
    const label = pictures[at].label();
    if (this.hooks.onmove) {
      this.board.focus = at;
      this.#placeCell();
      this.hooks.onmove(at);
    } else this.hooks.onselect(at);
    this.hooks.say(label);
    requestAnimationFrame(() => this.cell.scrollIntoView({ block: "nearest", inline: "nearest" }));
  }
}
