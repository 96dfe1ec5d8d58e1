/**
 * headgrid.js: all heads of a run as pictures: a grid of layers and heads, or a list sorted by a measure.
 */
import { h } from "../dom.js";
import { scaleOf } from "../maps/colour.js";
import { PictureGrid, THUMB_PIXELS } from "../maps/grid.js";
import { withoutFirst } from "../maps/stats.js";
import { drawThumb } from "../maps/thumb.js";
import { matrixOf, short } from "../request/tensor.js";
import { isIn, stateOfHead } from "./changes.js";
import { headsWithRole, roleOfHead } from "./examples.js";
import { extentOfRun, EXTRAS, extraOf, extraOfThumbs, hasRollout, measuresOf } from "./measures.js";

/** Colours of heads whose links are drawn together. The first three are distinct for colour-blind readers. */
const HEAD_COLOURS = ["#2f6fdb", "#c85a00", "#b3358f", "#16876b", "#7a5cd6", "#8a7000", "#c22f4a", "#3d7f9e"];

/** How long thumbnails are made in a frame, so that the page stays responsive. */
const MADE_MS = 8;

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
    this.pictures = new PictureGrid({
      onselect: (at) => hooks.onselect(this.places[at].layer, this.places[at].head),
      onopen: hooks.onopen,
      onkey: hooks.onkey,
      say: (text) => app.say(text),
    });
    this.element = this.pictures.element;
    this.thumbs = new Map();
    /** @type {import("./textrun.js").TextRun | null} */
    this.run = null;
    /** @type {import("./view_state.js").ViewState | null} */
    this.viewState = null;
    this.maps = null;
    /** @type {import("../maps/colour.js").Scale | null} shared by all pictures */
    this.scale = null;
    this.places = [];
    this.makes = 0; // since then, in this frame; 0: not yet
    this.frame = 0;
  }

  /**
   * @param {import("./textrun.js").TextRun} run
   * @param {import("./view_state.js").ViewState} viewState
   * @param {import("../request/tensor.js").Tensor} maps of all heads; pooled maps lack a hidden first key
   */
  show(run, viewState, maps) {
    Object.assign(this, { run, viewState, maps, makes: 0, scale: scaleOf({ ...this.app.appearance(), range: viewState.range }, extentOfRun(run, maps, viewState.hidesFirst), true) });
    const { t } = this.app,
      isList = viewState.isSorted && viewState.measure !== "none",
      extras = this.#extras,
      passing = viewState.measure === "none" ? null : new Set(this.#passing()),
      numbers = (length) => Array.from({ length }, (_, at) => String(at));
    this.places = isList ? this.#sorted() : this.#layered();
    this.pictures.show({
      label: t("models.grid"),
      pictures: this.places.map((place) => this.#picture(place, passing, isList)),
      across: isList ? run.heads : run.heads + extras.length,
      rowNames: isList ? null : numbers(run.layers),
      colNames: [...numbers(run.heads), ...extras.map((name) => t("models." + name))],
      hasCaptions: viewState.measure !== "none" || headsWithRole(run.facts?.name).length > 0,
      open: this.places.findIndex(({ layer, head }) => layer === viewState.layer && head === viewState.head),
    });
  }

  get #extras() {
    return EXTRAS.filter((name) => name !== "rollout" || hasRollout(this.run));
  }

  #layered() {
    const { layers, heads } = this.run,
      across = heads + this.#extras.length;
    return Array.from({ length: layers * across }, (_, at) => ({ layer: Math.floor(at / across), head: at % across }));
  }

  #order() {
    const { run, viewState } = this;
    if (viewState.measure === "none") return [];
    const values = measuresOf(run, viewState.measure),
      sign = viewState.measure === "entropy" ? 1 : -1;
    return Array.from(values.keys())
      .filter((at) => !Number.isNaN(values[at]))
      .sort((a, b) => sign * (values[a] - values[b]) || a - b);
  }

  /** The heads that pass the filter, sorted. */
  #passing() {
    const order = this.#order();
    return order.slice(0, Math.max(1, Math.round(order.length * (1 - this.viewState.least))));
  }

  #sorted() {
    const { heads } = this.run;
    return this.#passing().map((at) => ({ layer: Math.floor(at / heads), head: at % heads }));
  }

  /** @returns {import("../maps/grid.js").Picture} */
  #picture({ layer, head }, passing, isList) {
    const { run, viewState } = this,
      state = stateOfHead(viewState, layer, head),
      isOut = passing !== null && head < run.heads && !passing.has(layer * run.heads + head);
    return {
      canvas: () => this.#thumb(layer, head),
      label: () => this.#describe(layer, head),
      caption: this.#caption(layer, head, isList),
      colour: headColour(viewState.linked, layer, head),
      isFaint: state !== "on" || isOut,
      isCrossed: state === "off",
    };
  }

  #caption(layer, head, isList) {
    const { run, viewState } = this;
    if (head >= run.heads) return "";
    if (viewState.measure === "none") return this.#role(layer, head, "short.");
    const value = measuresOf(run, viewState.measure)[layer * run.heads + head],
      text = Number.isNaN(value) ? "–" : short(value, 2);
    return isList ? `${layer}·${head}  ${text}` : text;
  }

  /** What a head of the program's own models has learned. @returns {string} "" of other heads */
  #role(layer, head, form = "") {
    const role = roleOfHead(this.run.facts?.name, layer, head);
    return role && this.app.t("role." + form + role);
  }

  /** Draws each thumbnail once per colour scale. All share the range of the open map. */
  #thumb(layer, head) {
    const { maps, run, viewState, scale } = this,
      key = [layer, head, scale.name, scale.low, scale.high, viewState.hidesFirst].join(" ");
    if (this.thumbsOf !== maps) this.thumbs.clear();
    this.thumbsOf = maps;
    if (!this.thumbs.has(key)) {
      const matrix = this.#mayMake() && this.#matrix(layer, head);
      if (!matrix) return null;
      const canvas = h("canvas"),
        hidesColumn = viewState.hidesFirst && run.isExact;
      drawThumb(canvas, matrix, scale, THUMB_PIXELS, (i, j) => (run.isCausal && j > i) || (hidesColumn && j === 0));
      this.thumbs.set(key, canvas);
    }
    return this.thumbs.get(key);
  }

  /** Whether this frame may make one more; later frames make the rest. */
  #mayMake() {
    this.makes ||= performance.now();
    if (performance.now() - this.makes < MADE_MS) return true;
    this.frame ||= requestAnimationFrame(() => {
      this.makes = this.frame = 0;
      this.pictures.draw();
    });
    return false;
  }

  /** The rollout of a long text is made when it is opened. */
  #matrix(layer, head) {
    const { run, maps, viewState } = this,
      name = this.#extras[head - run.heads];
    if (run.thumbs && name !== "rollout") return matrixOf(viewState.hidesFirst ? run.thumbs.withoutFirst : run.thumbs.full, layer, head);
    if (name === undefined) {
      const matrix = matrixOf(maps, layer, head);
      return viewState.hidesFirst && run.isExact ? withoutFirst(matrix) : matrix;
    }
    if (!run.isExact) return name === "rollout" ? null : extraOfThumbs(maps, layer, name);
    const matrix = /** @type {import("../request/tensor.js").Matrix} */ (extraOf(run, layer, name));
    return viewState.hidesFirst ? withoutFirst(matrix) : matrix;
  }

  /** Accessible name and tooltip. */
  #describe(layer, head) {
    const { run, viewState, app } = this,
      extra = EXTRAS[head - run.heads];
    const parts = [extra ? app.t("models.extraAt", { layer, name: app.t("models." + extra) }) : app.t("models.headAt", { layer, head })];
    if (this.#role(layer, head)) parts.push(this.#role(layer, head, "short."));
    if (!extra && viewState.measure !== "none")
      parts.push(`${app.t("models.measure." + viewState.measure)} ${short(measuresOf(run, viewState.measure)[layer * run.heads + head], 3)}`);
    const state = stateOfHead(viewState, layer, head);
    if (state !== "on") parts.push(app.t("models.state." + state));
    if (isIn(viewState.linked, layer, head)) parts.push(app.t("models.inLinks"));
    return parts.join(", ");
  }
}
