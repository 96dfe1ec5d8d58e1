/**
 * layersview.js: one row of heads per layer: for a text in a model, its maps in all layers; for other requests, the
 * same inputs in several kept layers.
 */
import { thumbsOfLayer } from "../exchange/api.js";
import { extentOfAll, scaleOf } from "./colour.js";
import { h } from "../dom.js";
import { likeLayer } from "../exchange/layers.js";
import { mapsOfSource, moduleAt } from "../models/case.js";
import { PictureGrid, THUMB_PIXELS } from "./grid.js";
import { Masks } from "../request/masks.js";
import { matrixOf, tensorFrom } from "../request/tensor.js";
import { drawThumb } from "./thumb.js";

/** Most layers that are shown, around the open one. */
const LAYERS_SHOWN = 48;
const AT_ONCE = 3;

export class LayersView {
  /** @param {import("../main.js").App} app @param {(scale: import("./colour.js").Scale, isMasked: boolean) => void} onscale */
  constructor(app, onscale) {
    this.app = app;
    this.onscale = onscale;
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
    /** By layer name: maps, and a test for masked cells. @type {Map<string, {maps: import("../request/tensor.js").Tensor, isHidden: Function} | null>} */
    this.answers = new Map();
  }

  /** @param {{shown: any, view: any}} state of a run over a layer */
  show({ shown, view }) {
    const { app } = this,
      { layer, source } = shown,
      isModel = Boolean(source);
    const all = isModel ? this.#layersOfModel(shown) : likeLayer(app.layers, layer);
    const at = isModel
      ? source.layer
      : Math.max(
          0,
          all.findIndex(({ name }) => name === layer.name),
        );
    const from = Math.max(0, Math.min(at - LAYERS_SHOWN / 2, all.length - LAYERS_SHOWN));
    this.layers = all.slice(from, from + LAYERS_SHOWN);
    this.across = this.layers.reduce((most, { num_heads: heads }) => Math.max(most, heads), 1);
    this.note.textContent = [
      isModel ? app.t("layers.model", { model: source.model }) : app.t("layers.note"),
      all.length > this.layers.length ? app.t("rest", { n: all.length - this.layers.length }) : "",
    ].join(" ");
    this.open = (at - from) * this.across + view.head;
    if (this.asked !== shown) this.focus = this.open;
    this.#ask(shown, view.batch);
    this.#draw();
  }

  /** Before the model has answered, only the layers up to the open one are known. @param {any} shown */
  #layersOfModel({ source, layer }) {
    const found = this.#isOfAsked(source) ? this.maps : null,
      [layers, heads] = found?.shape ?? [source.layer + 1, layer.num_heads];
    return Array.from({ length: layers }, (_, n) => ({ name: moduleAt(source, n), num_heads: heads, n }));
  }

  /** Whether the maps of this text have been asked for. All its layers share them. */
  #isOfAsked({ model, text }) {
    const { source } = this.asked ?? {};
    return source?.model === model && source.text === text;
  }

  hide() {
    this.element.remove();
    this.running?.abort();
    this.asked = null;
  }

  /** Fetches what is missing. */
  async #ask(shown, batch) {
    if (this.asked === shown && this.batch === batch) return;
    const isSame = shown.source && this.maps && this.#isOfAsked(shown.source);
    Object.assign(this, { asked: shown, batch, ...(isSame ? {} : { answers: new Map(), maps: null }) });
    if (isSame) return;
    this.running?.abort();
    this.pictures.grid.setAttribute("aria-busy", "true");
    const { signal } = (this.running = new AbortController());
    try {
      await (shown.source ? this.#askModel(shown, signal) : this.#askLayers(shown, signal));
      this.app.retries.done(this);
      if (!signal.aborted) this.pictures.grid.setAttribute("aria-busy", "false");
    } catch (problem) {
      if (signal.aborted) return;
      this.app.failed(problem, this, () => {
        this.asked = null;
        if (this.element.isConnected) this.app.update(this.app.store.state);
        else this.app.retries.cancel(this);
      });
    }
  }

  async #askModel(shown, signal) {
    const maps = await mapsOfSource(shown.source, signal);
    if (signal.aborted) return;
    const [layers, heads, rows, cols] = maps.shape,
      length = tensorFrom(shown.source.inputs.query).shape[0],
      masks = new Masks(shown.layer.base.masks ?? {}, length, length),
      size = heads * rows * cols;
    this.maps = maps;
    for (let n = 0; n < layers; n++)
      this.answers.set(moduleAt(shown.source, n), {
        maps: { shape: [1, heads, rows, cols], data: maps.data.subarray(n * size, (n + 1) * size) },
        isHidden: (head) => (i, j) => masks.hiddenBy(0, head, Math.floor((i * length) / rows), Math.floor((j * length) / cols)) !== null,
      });
    this.show({ shown, view: this.app.seen().view });
  }

  /** Fetches AT_ONCE layers in parallel, the open one first. */
  async #askLayers(shown, signal) {
    const waiting = [...this.layers].sort((a, b) => Number(b.name === shown.layer.name) - Number(a.name === shown.layer.name));
    const work = async () => {
      for (let one = waiting.shift(); one; one = waiting.shift()) {
        const { name } = one,
          found = await thumbsOfLayer(name, shown, signal).catch((problem) => {
            if (problem.key === "gone") throw problem;
            return null; // a layer that refuses the inputs has no pictures
          });
        if (signal.aborted) return;
        this.answers.set(name, found && { maps: found.outputs.attention, isHidden: (head) => this.#hiddenBy(found.outputs.mask, head) });
        this.#draw();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  #hiddenBy(mask, head) {
    const { cols, data } = matrixOf(mask, this.batch, head);
    return (i, j) => data[i * cols + j] === 0;
  }

  #draw() {
    const { layers, across, focus, open } = this;
    if (layers.length === 0) return;
    const there = layers.flatMap(({ name }) => this.answers.get(name) ?? []);
    this.scale = scaleOf(this.app.appearance(), extentOfAll(there.map(({ maps }) => maps)), true);
    this.onscale(this.scale, Object.keys(this.asked.request.masks ?? {}).length > 0);
    this.pictures.show({
      label: this.app.t("tab.layers"),
      pictures: layers.flatMap((layer) =>
        Array.from({ length: across }, (_, head) => (head < layer.num_heads ? this.#picture(layer, head) : null)),
      ),
      across,
      rowNames: layers.map((layer) => this.#nameOf(layer)),
      colNames: Array.from({ length: across }, (_, head) => String(head)),
      hasCaptions: false,
      open,
      focus,
    });
  }

  #nameOf({ name, n }) {
    return n === undefined ? name : this.app.t("layer.number", { n });
  }

  /** @returns {import("./grid.js").Picture} */
  #picture(layer, head) {
    return { canvas: () => this.#thumb(layer, head), label: () => `${this.#nameOf(layer)}, ${this.app.t("head")} ${head}` };
  }

  #thumb({ name }, head) {
    const found = this.answers.get(name);
    if (!found) return null;
    const picture = h("canvas");
    drawThumb(picture, matrixOf(found.maps, this.batch, head), this.scale, THUMB_PIXELS, found.isHidden(head));
    return picture;
  }

  #choose(at) {
    this.focus = at;
    const { store, openLayer, openSourceAt } = this.app,
      { name, n } = this.layers[Math.floor(at / this.across)],
      view = { ...store.state.view, head: at % this.across };
    if (n === undefined) openLayer(name, view);
    else openSourceAt({ ...this.asked.source, module: name, layer: n }, { ...view, row: -1, col: -1 });
    return true;
  }
}
