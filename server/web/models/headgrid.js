/**
 * headgrid.js: all heads of a run as thumbnails on one canvas: layers down and heads across, or sorted by a measure.
 *
 * As in the map, one cell of the grid is real, the focused one, and it is the head that is open. All others are pixels.
 */
import { cssColour, h, sizeCanvas } from "../dom.js";
import { extentOf, scaleOf } from "../maps/colour.js";
import { drawThumb } from "../maps/thumb.js";
import { matrixOf, short } from "../request/tensor.js";
import { EXTRAS, extraOf, extraOfThumbs, hasRollout, measuresOf, withoutFirst } from "./measures.js";
import { hasHead } from "./wish.js";

const THUMB_SIDE = { least: 18, most: 104 },
  THUMB_GAP = 6,
  HEAD_TOP = 22,
  CAPTION = 16,
  SMALL_FONT = "12px system-ui, sans-serif";
const THUMB_PIXELS = 64;

/** The colours of heads whose links are drawn together: of one lightness, apart for colour-blind eyes too. */
const HEAD_COLOURS = ["#2f6fdb", "#c85a00", "#16876b", "#b3358f", "#7a5cd6", "#8a7000", "#c22f4a", "#3d7f9e"];

export const headColour = (linked, layer, head) => {
  const at = linked.findIndex(([l, n]) => l === layer && n === head);
  return at < 0 ? null : HEAD_COLOURS[at % HEAD_COLOURS.length];
};

export class HeadGrid {
  /**
   * @param {import("../main.js").App} app
   * @param {{onselect: (layer: number, head: number) => void, onkey: (key: string) => boolean, onopen: () => void}} hooks
   */
  constructor(app, hooks) {
    this.app = app;
    this.hooks = hooks;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.cell = h("div.cell", { role: "gridcell", tabindex: "0" });
    this.row = h("div", { role: "row" }, this.cell);
    this.grid = h("div.grid", { role: "grid" }, this.row);
    this.plot = h("div.map", {}, this.canvas, this.grid);
    this.element = h("div.headgrid", {}, this.plot);
    this.thumbs = new Map();
    /** @type {import("./textrun.js").TextRun | null} */
    this.run = null;
    /** @type {import("./wish.js").Wish | null} */
    this.wish = null;
    this.maps = null;
    this.places = [];
    this.plot.addEventListener("click", (event) => this.#click(event));
    this.plot.addEventListener("dblclick", () => this.hooks.onopen());
    this.plot.addEventListener("pointermove", (event) => this.#point(event));
    this.cell.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  /**
   * @param {import("./textrun.js").TextRun} run
   * @param {import("./wish.js").Wish} wish
   * @param {import("../request/tensor.js").Tensor} maps of all heads; without the first key where the wish hides it
   */
  show(run, wish, maps) {
    Object.assign(this, { run, wish, maps });
    this.places = wish.isSorted && wish.measure !== "none" ? this.#sorted() : this.#layered();
    this.grid.setAttribute("aria-label", this.app.t("models.grid"));
    this.#draw();
  }

  get #extras() {
    return EXTRAS.filter((name) => name !== "rollout" || hasRollout(this.run));
  }

  #layered() {
    const { layers, heads } = this.run,
      across = heads + this.#extras.length;
    this.across = across;
    return Array.from({ length: layers * across }, (_, at) => ({ layer: Math.floor(at / across), head: at % across }));
  }

  #order() {
    const { run, wish } = this;
    if (wish.measure === "none") return [];
    const values = measuresOf(run, wish.measure),
      sign = wish.measure === "entropy" ? 1 : -1;
    return Array.from(values.keys())
      .filter((at) => !Number.isNaN(values[at]))
      .sort((a, b) => sign * (values[a] - values[b]) || a - b);
  }

  /** The heads that the filter leaves, the first ones of the order. */
  #left() {
    const order = this.#order();
    return order.slice(0, Math.max(1, Math.round(order.length * (1 - this.wish.least))));
  }

  #sorted() {
    const { heads } = this.run;
    return this.#left().map((at) => ({ layer: Math.floor(at / heads), head: at % heads }));
  }

  // ---- drawing ---------------------------------------------------------------------------------------------------

  #layOut() {
    const { run, wish, element } = this,
      width = element.clientWidth,
      isFlow = wish.isSorted && wish.measure !== "none";
    this.left = isFlow ? 0 : 24;
    this.caption = wish.measure === "none" ? 0 : CAPTION;
    if (isFlow) {
      this.side = Math.max(44, Math.min(THUMB_SIDE.most, Math.floor(width / Math.min(8, run.heads)) - THUMB_GAP));
      this.across = Math.max(1, Math.floor((width + THUMB_GAP) / (this.side + THUMB_GAP)));
    } else {
      const room = Math.floor((width - this.left) / this.across) - THUMB_GAP;
      this.side = Math.max(THUMB_SIDE.least, Math.min(THUMB_SIDE.most, room));
      if (this.side < 40) this.caption = 0;
    }
    this.top = isFlow ? 0 : HEAD_TOP;
    this.down = Math.ceil(this.places.length / this.across);
    return {
      width: this.left + this.across * (this.side + THUMB_GAP),
      height: this.top + this.down * (this.side + THUMB_GAP + this.caption) + 4,
    };
  }

  #placeOf(at) {
    return {
      left: this.left + (at % this.across) * (this.side + THUMB_GAP),
      top: this.top + Math.floor(at / this.across) * (this.side + THUMB_GAP + this.caption) + 2,
    };
  }

  #draw() {
    if (!this.run || this.element.clientWidth === 0) return;
    const { width, height } = this.#layOut(),
      context = sizeCanvas(this.canvas, width, height);
    this.plot.style.width = width + "px";
    this.plot.style.height = height + "px";
    this.colours = Object.fromEntries(["ink", "muted", "hidden", "panel", "accent"].map((name) => [name, cssColour(name)]));
    const isLeft = this.wish.measure === "none" ? null : new Set(this.#left());
    if (this.top > 0) this.#drawNames(context);
    this.places.forEach((place, at) => this.#drawPlace(context, place, at, isLeft));
    this.#placeCell();
  }

  #drawNames(context) {
    const { run, wish } = this,
      extras = this.#extras;
    context.font = SMALL_FONT;
    context.textBaseline = "middle";
    context.textAlign = "center";
    for (let col = 0; col < this.across; col++) {
      const name = col < run.heads ? String(col) : this.app.t("models." + extras[col - run.heads]);
      context.fillStyle = col === wish.head ? this.colours.ink : this.colours.muted;
      context.fillText(name, this.left + col * (this.side + THUMB_GAP) + this.side / 2, HEAD_TOP - 12, this.side + 4);
    }
    context.textAlign = "right";
    for (let layer = 0; layer < run.layers; layer++) {
      context.fillStyle = layer === wish.layer ? this.colours.ink : this.colours.muted;
      context.fillText(String(layer), this.left - 8, this.#placeOf(layer * this.across).top + this.side / 2);
    }
  }

  #drawPlace(context, { layer, head }, at, isLeft) {
    const { side, run, wish } = this,
      { left, top } = this.#placeOf(at);
    const isOff = hasHead(wish.ablate, layer, head),
      isOut = isLeft !== null && head < run.heads && !isLeft.has(layer * run.heads + head);
    context.fillStyle = this.colours.hidden;
    context.fillRect(left, top, side, side);
    const thumb = this.#thumb(layer, head);
    context.imageSmoothingEnabled = side * (window.devicePixelRatio || 1) < THUMB_PIXELS;
    context.globalAlpha = isOff || isOut ? 0.2 : 1;
    if (thumb) context.drawImage(thumb, left, top, side, side);
    context.globalAlpha = 1;
    if (isOff) this.#cross(context, left, top);
    const colour = headColour(wish.linked, layer, head);
    if (colour) this.#frame(context, left + 2, top + 2, side - 4, colour, 4);
    if (layer === wish.layer && head === wish.head) this.#frame(context, left - 1, top - 1, side + 2, this.colours.accent, 2.5);
    if (this.caption > 0) this.#drawCaption(context, layer, head, left, top);
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

  #drawCaption(context, layer, head, left, top) {
    const { run, wish } = this;
    if (head >= run.heads) return;
    const value = measuresOf(run, wish.measure)[layer * run.heads + head];
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = this.colours.muted;
    const text = Number.isNaN(value) ? "–" : short(value, 2);
    context.fillText(this.top > 0 ? text : `${layer}·${head}  ${text}`, left + this.side / 2, top + this.side + 2, this.side);
  }

  /** Drawn once for each look. Each has the range of its own weights: what a head does shows at any length. */
  #thumb(layer, head) {
    const { maps, run, wish } = this,
      look = this.app.look(),
      key = [layer, head, look.palette, look.isDark, wish.hidesFirst].join(" ");
    if (this.thumbsOf !== maps) this.thumbs.clear();
    this.thumbsOf = maps;
    if (!this.thumbs.has(key)) {
      const matrix = this.#matrix(layer, head);
      if (!matrix) return null;
      const canvas = h("canvas"),
        isCausal = run.facts?.kind === "decoder",
        isWhole = wish.hidesFirst && run.isExact;
      drawThumb(
        canvas,
        matrix,
        scaleOf({ ...look, range: "max" }, extentOf(matrix.data), true),
        THUMB_PIXELS,
        (i, j) => (isCausal && j > i) || (isWhole && j === 0),
      );
      this.thumbs.set(key, canvas);
    }
    return this.thumbs.get(key);
  }

  /** Of a long text the rollout is made when it is opened. */
  #matrix(layer, head) {
    const { run, maps, wish } = this,
      name = this.#extras[head - run.heads];
    if (name === undefined) {
      const matrix = matrixOf(maps, layer, head);
      return wish.hidesFirst && run.isExact ? withoutFirst(matrix) : matrix;
    }
    if (!run.isExact) return name === "rollout" ? null : extraOfThumbs(maps, layer, name);
    const matrix = /** @type {import("../request/tensor.js").Matrix} */ (extraOf(run, layer, name));
    return wish.hidesFirst ? withoutFirst(matrix) : matrix;
  }

  // ---- the focused cell, pointer and keyboard ----------------------------------------------------------------------

  get #at() {
    const { layer, head } = this.wish;
    return this.places.findIndex((place) => place.layer === layer && place.head === head);
  }

  #placeCell() {
    const at = this.#at,
      { left, top } = this.#placeOf(Math.max(0, at)),
      { style } = this.cell;
    style.left = left + "px";
    style.top = top + "px";
    style.width = style.height = this.side + "px";
    this.grid.setAttribute("aria-rowcount", String(this.down));
    this.grid.setAttribute("aria-colcount", String(this.across));
    this.row.setAttribute("aria-rowindex", String(Math.floor(Math.max(0, at) / this.across) + 1));
    this.cell.setAttribute("aria-colindex", String((Math.max(0, at) % this.across) + 1));
    const { layer, head } = this.wish;
    this.cell.setAttribute("aria-label", this.describe(layer, head));
  }

  /** In words, for labels and titles. */
  describe(layer, head) {
    const { run, wish, app } = this,
      extra = EXTRAS[head - run.heads];
    const parts = [extra ? app.t("models.extraAt", { layer, name: app.t("models." + extra) }) : app.t("models.headAt", { layer, head })];
    if (!extra && wish.measure !== "none")
      parts.push(`${app.t("models.measure." + wish.measure)} ${short(measuresOf(run, wish.measure)[layer * run.heads + head], 3)}`);
    if (hasHead(wish.ablate, layer, head)) parts.push(app.t("models.off"));
    if (hasHead(wish.linked, layer, head)) parts.push(app.t("models.inLinks"));
    return parts.join(", ");
  }

  #placeAt(event) {
    const box = this.plot.getBoundingClientRect(),
      col = Math.floor((event.clientX - box.left - this.left) / (this.side + THUMB_GAP)),
      row = Math.floor((event.clientY - box.top - this.top) / (this.side + THUMB_GAP + this.caption));
    return row >= 0 && col >= 0 && col < this.across ? this.places[row * this.across + col] : undefined;
  }

  #point(event) {
    if (!this.run) return;
    const place = this.#placeAt(event);
    this.plot.style.cursor = place ? "pointer" : "";
    this.plot.title = place ? this.describe(place.layer, place.head) : "";
  }

  #click(event) {
    const place = this.run && this.#placeAt(event);
    if (!place) return;
    this.hooks.onselect(place.layer, place.head);
    this.cell.focus({ preventScroll: true });
  }

  #key(event) {
    if (!this.run) return;
    const at = Math.max(0, this.#at),
      last = this.places.length - 1,
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
    event.preventDefault();
  }

  #moveTo(at) {
    const { layer, head } = this.places[at];
    this.hooks.onselect(layer, head);
    this.app.say(this.describe(layer, head));
    requestAnimationFrame(() => this.cell.scrollIntoView({ block: "nearest", inline: "nearest" }));
  }
}
