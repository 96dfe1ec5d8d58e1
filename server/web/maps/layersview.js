/**
 * layersview.js: the same inputs through several kept layers: a row of heads for each.
 */
import { thumbsOfLayer } from "../exchange/api.js";
import { extentOf, scaleOf } from "./colour.js";
import { h } from "../dom.js";
import { likeLayer } from "../exchange/layers.js";
import { PictureGrid, THUMB_PIXELS } from "./grid.js";
import { matrixOf } from "../request/tensor.js";
import { drawThumb } from "./thumb.js";

/** Layers asked for; of more, those around the one that is open. */
const LAYERS_SHOWN = 48;
const AT_ONCE = 3;

export class LayersView {
  /** @param {import("../main.js").App} app */
  constructor(app) {
    this.app = app;
    this.pictures = new PictureGrid({
      onselect: (at) => this.#choose(at),
      onopen: () => this.#choose(this.focus),
      onkey: (key) => key === " " && this.#choose(this.focus),
      onmove: (at) => (this.focus = at),
      say: (text) => app.say(text),
    });
    this.note = h("p.note", {});
    this.element = h("div.layers", {}, this.pictures.element, this.note);
    this.focus = 0;
    this.layers = [];
    this.batch = 0;
    this.answers = new Map();
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
    this.across = this.layers.reduce((most, { num_heads: heads }) => Math.max(most, heads), 1);
    this.note.textContent = [
      app.t("layers.note"),
      all.length > this.layers.length ? app.t("rest", { n: all.length - this.layers.length }) : "",
    ].join(" ");
    this.open = (at - from) * this.across + view.head;
    if (this.asked !== shown) this.focus = this.open;
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
    this.pictures.grid.setAttribute("aria-busy", "true");
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
    if (!signal.aborted) this.pictures.grid.setAttribute("aria-busy", "false");
  }

  #draw() {
    const { layers, across, focus, open } = this;
    if (layers.length === 0) return;
    this.pictures.show({
      label: this.app.t("tab.layers"),
      pictures: layers.flatMap((layer) =>
        Array.from({ length: across }, (_, head) => (head < layer.num_heads ? this.#picture(layer, head) : null)),
      ),
      across,
      rowNames: layers.map(({ name }) => name),
      colNames: Array.from({ length: across }, (_, head) => String(head)),
      hasCaptions: false,
      open,
      focus,
    });
  }

  /** @returns {import("./grid.js").Picture} */
  #picture({ name }, head) {
    return { canvas: () => this.#thumb(name, head), label: () => `${name}, ${this.app.t("head")} ${head}` };
  }

  #thumb(name, head) {
    const outputs = this.answers.get(name)?.outputs;
    if (!outputs) return null;
    const matrix = matrixOf(outputs.attention, this.batch, head),
      mask = matrixOf(outputs.mask, this.batch, head).data,
      picture = h("canvas");
    const scale = scaleOf(this.app.look(), extentOf(matrix.data), true);
    drawThumb(picture, matrix, scale, THUMB_PIXELS, (i, j) => mask[i * matrix.cols + j] === 0);
    return picture;
  }

  #choose(at) {
    this.focus = at;
    const { store, openLayer } = this.app;
    openLayer(this.layers[Math.floor(at / this.across)].name, { ...store.state.view, head: at % this.across });
    return true;
  }
}
