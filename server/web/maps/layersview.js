/**
 * layersview.js: the same inputs through several kept layers: a row of heads for each, on one canvas.
 *
 * As in the map, one cell of the grid is real, the focused one; all others are pixels.
 */
import { thumbsOfLayer } from "../exchange/api.js";
import { extentOf, scaleOf } from "./colour.js";
import { cssColour, h, sizeCanvas } from "../dom.js";
import { likeLayer } from "../exchange/layers.js";
import { matrixOf } from "../request/tensor.js";
import { drawThumb } from "./thumb.js";

/** Layers asked for; of more, those around the one that is open. */
const LAYERS_SHOWN = 48;
const AT_ONCE = 3;

const SIDE = { least: 20, most: 88 },
  GAP = 6,
  TOP = 24,
  NAME_MAX = 168;

export class LayersView {
  /** @param {import("../main.js").App} app */
  constructor(app) {
    this.app = app;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.cell = h("div.cell", { role: "gridcell", tabindex: "0" });
    this.row = h("div", { role: "row" }, this.cell);
    this.grid = h("div.grid", { role: "grid" }, this.row);
    this.note = h("p.note", {});
    this.plot = h("div.map", {}, this.canvas, this.grid);
    this.element = h("div.layers", {}, this.plot, this.note);
    this.focus = { row: 0, col: 0 };
    this.layers = [];
    this.batch = 0;
    this.answers = new Map();
    this.plot.addEventListener("click", (event) => this.#click(event));
    this.plot.addEventListener("pointermove", (event) => this.#point(event));
    this.cell.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  /** @param {import("../store.js").State} state of a run over a layer */
  show({ shown, view }) {
    const { app } = this,
      { layer } = shown;
    const all = likeLayer(app.layers, layer);
    const at = Math.max(
      0,
      all.findIndex(({ name }) => name === layer.name),
    );
    const from = Math.max(0, Math.min(at - LAYERS_SHOWN / 2, all.length - LAYERS_SHOWN));
    this.layers = all.slice(from, from + LAYERS_SHOWN);
    this.note.textContent = [
      app.t("layers.note"),
      all.length > this.layers.length ? app.t("rest", { n: all.length - this.layers.length }) : "",
    ].join(" ");
    this.open = { row: at - from, col: view.head };
    if (this.asked !== shown) this.focus = { ...this.open };
    this.#moveTo(this.focus.row, this.focus.col, false);
    this.#ask(shown, view.batch);
    this.#draw();
  }

  hide() {
    this.element.remove();
    this.running?.abort();
    this.asked = null;
  }

  /** Asks for what is not there yet, a few layers at a time, the open one first. */
  async #ask(shown, batch) {
    if (this.asked === shown && this.batch === batch) return;
    Object.assign(this, { asked: shown, batch, answers: new Map() });
    this.running?.abort();
    this.grid.setAttribute("aria-busy", "true");
    const { signal } = (this.running = new AbortController()),
      waiting = [...this.layers].sort((a, b) => Number(b.name === shown.layer.name) - Number(a.name === shown.layer.name));
    const work = async () => {
      for (let one = waiting.shift(); one; one = waiting.shift()) {
        const answer = await thumbsOfLayer(one.name, shown, signal).catch(() => null);
        if (signal.aborted) return;
        this.answers.set(one.name, answer);
        this.#draw();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (!signal.aborted) this.grid.setAttribute("aria-busy", "false");
  }

  get #heads() {
    return this.layers.reduce((most, { num_heads: heads }) => Math.max(most, heads), 1);
  }

  #layOut(context) {
    context.font = "600 12px system-ui, sans-serif";
    const names = this.layers.map(({ name }) => context.measureText(name).width);
    this.left = Math.min(NAME_MAX, Math.ceil(Math.max(...names, 0))) + 12;
    const room = (this.element.clientWidth - this.left) / this.#heads - GAP;
    this.side = Math.floor(Math.max(SIDE.least, Math.min(SIDE.most, room)));
    return {
      width: this.left + this.#heads * (this.side + GAP),
      height: TOP + this.layers.length * (this.side + GAP),
    };
  }

  #draw() {
    if (this.element.clientWidth === 0 || this.layers.length === 0) return;
    const { width, height } = this.#layOut(this.canvas.getContext("2d")),
      context = sizeCanvas(this.canvas, width, height);
    this.plot.style.width = width + "px";
    this.plot.style.height = height + "px";
    this.colours = Object.fromEntries(["ink", "muted", "hidden", "line", "accent"].map((name) => [name, cssColour(name)]));
    this.#drawNames(context);
    this.layers.forEach((layer, row) => this.#drawLayer(context, layer, row));
    this.#frame(context, this.open, this.colours.accent);
    this.#placeCell();
  }

  #drawNames(context) {
    context.textBaseline = "middle";
    context.textAlign = "right";
    this.layers.forEach(({ name }, row) => {
      context.font = `${row === this.open.row ? "600 " : ""}12px system-ui, sans-serif`;
      context.fillStyle = row === this.open.row ? this.colours.ink : this.colours.muted;
      context.fillText(name, this.left - 10, TOP + row * (this.side + GAP) + this.side / 2, NAME_MAX);
    });
    context.textAlign = "center";
    context.font = "12px system-ui, sans-serif";
    for (let col = 0; col < this.#heads; col++) {
      context.fillStyle = col === this.open.col ? this.colours.ink : this.colours.muted;
      context.fillText(String(col), this.left + col * (this.side + GAP) + this.side / 2, TOP - 12);
    }
  }

  #drawLayer(context, { name, num_heads: heads }, row) {
    const outputs = this.answers.get(name)?.outputs,
      { side } = this,
      picture = h("canvas");
    for (let col = 0; col < heads; col++) {
      const left = this.left + col * (side + GAP),
        top = TOP + row * (side + GAP);
      context.fillStyle = this.colours.hidden;
      context.fillRect(left, top, side, side);
      if (!outputs) continue;
      const matrix = matrixOf(outputs.attention, this.batch, col),
        mask = matrixOf(outputs.mask, this.batch, col).data;
      const scale = scaleOf(this.app.look(), extentOf(matrix.data), true);
      drawThumb(picture, matrix, scale, 64, (i, j) => mask[i * matrix.cols + j] === 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(picture, left, top, side, side);
    }
  }

  #frame(context, { row, col }, colour) {
    context.lineWidth = 2;
    context.strokeStyle = colour;
    context.strokeRect(
      this.left + col * (this.side + GAP) - 1,
      TOP + row * (this.side + GAP) - 1,
      this.side + 2,
      this.side + 2,
    );
  }

  #placeCell() {
    const { style } = this.cell;
    style.left = this.left + this.focus.col * (this.side + GAP) + "px";
    style.top = TOP + this.focus.row * (this.side + GAP) + "px";
    style.width = style.height = this.side + "px";
  }

  // ---- pointer and keyboard --------------------------------------------------------------------------------------

  #cellAt(event) {
    const box = this.plot.getBoundingClientRect(),
      step = this.side + GAP;
    const [col, row] = [event.clientX - box.left - this.left, event.clientY - box.top - TOP].map((at) =>
      Math.floor(at / step),
    );
    return row >= 0 && col >= 0 && col < (this.layers[row]?.num_heads ?? 0) ? { row, col } : null;
  }

  #point(event) {
    const cell = this.#cellAt(event);
    this.plot.style.cursor = cell ? "pointer" : "";
    this.plot.title = cell ? this.#name(cell.row, cell.col) : "";
  }

  #click(event) {
    const cell = this.#cellAt(event);
    if (cell) this.#choose(cell);
  }

  #choose({ row, col }) {
    this.focus = { row, col };
    this.app.openLayer(this.layers[row].name, { ...this.app.store.state.view, head: col });
  }

  #name(row, col) {
    return `${this.layers[row].name}, ${this.app.t("head")} ${col}`;
  }

  #moveTo(row, col, isByHand = true) {
    row = Math.max(0, Math.min(this.layers.length - 1, row));
    if (!this.layers[row]) return;
    col = Math.max(0, Math.min(this.layers[row].num_heads - 1, col));
    this.focus = { row, col };
    this.grid.setAttribute("aria-rowcount", String(this.layers.length));
    this.grid.setAttribute("aria-colcount", String(this.#heads));
    this.grid.setAttribute("aria-label", this.app.t("tab.layers"));
    this.row.setAttribute("aria-rowindex", String(row + 1));
    this.cell.setAttribute("aria-colindex", String(col + 1));
    this.cell.setAttribute("aria-label", this.#name(row, col));
    if (!isByHand) return;
    this.app.say(this.#name(row, col));
    this.#placeCell();
    this.cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  #key(event) {
    const { row, col } = this.focus;
    const moves = {
      ArrowLeft: [row, col - 1],
      ArrowRight: [row, col + 1],
      ArrowUp: [row - 1, col],
      ArrowDown: [row + 1, col],
      Home: [event.ctrlKey ? 0 : row, 0],
      End: [event.ctrlKey ? this.layers.length - 1 : row, this.#heads],
    };
    const move = moves[event.key];
    if (move) this.#moveTo(move[0], move[1]);
    else if (event.key === "Enter" || event.key === " ") this.#choose(this.focus);
    else return;
    event.preventDefault();
  }
}

