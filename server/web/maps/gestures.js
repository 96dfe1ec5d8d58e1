/**
 * gestures.js: pointer, touch and wheel on a map.
 */
import { TILE } from "./tiles.js";

/** A press that moves less than this, in CSS pixels, is a tap. */
const STILL = 4;

export class Gestures {
  /** @param {import("./heatmap.js").HeatmapView} map */
  constructor(map) {
    this.map = map;
    this.pointers = new Map();
    this.gesture = "";
    const { element } = map;
    element.addEventListener("pointermove", (event) => this.#move(event));
    element.addEventListener("pointerleave", () => map.hover(null));
    element.addEventListener("pointerdown", (event) => this.#press(event));
    element.addEventListener("pointerup", (event) => this.#release(event));
    element.addEventListener("pointercancel", (event) => this.#release(event));
    for (const type of ["touchstart", "touchmove"])
      element.addEventListener(type, (event) => event.touches.length > 1 && event.preventDefault(), { passive: false });
    element.addEventListener("dblclick", () => map.hooks.onkey("Enter", map.focus.row, map.focus.col));
    element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  #place(event) {
    const box = this.map.element.getBoundingClientRect();
    return { x: event.clientX - box.left - (this.map.origin?.x ?? 0), y: event.clientY - box.top - (this.map.origin?.y ?? 0) };
  }

  #move(event) {
    if (!this.map.sheet || !this.map.size) return;
    const now = this.#place(event),
      before = this.pointers.get(event.pointerId);
    if (before) this.#drag(event.pointerId, before, now);
    else this.map.hover(this.map.view.cellAt(now.x, now.y));
  }

  /** A gesture does one thing until every finger is up: it paints, or it pans (and zooms with two fingers). */
  #drag(id, before, now) {
    const isStill = Math.hypot(now.x - before.from.x, now.y - before.from.y) < STILL;
    if (this.gesture === "" && isStill) return;
    this.pointers.set(id, { ...now, from: before.from });
    if (this.gesture === "") this.gesture = this.map.sheet.isPainting ? "paint" : "travel";
    if (this.gesture === "paint") {
      if (id === this.painter) this.#paintTo(now);
      return;
    }
    const other = [...this.pointers].find(([one]) => one !== id)?.[1];
    if (other) this.#pinch(before, now, other);
    else this.map.view.panBy(now.x - before.x, now.y - before.y);
    this.map.draw();
  }

  #pinch(before, now, other) {
    const length = (a, b) => Math.max(1, Math.hypot(a.x - b.x, a.y - b.y));
    this.map.view.zoomAt(length(now, other) / length(before, other), (now.x + other.x) / 2, (now.y + other.y) / 2);
    this.map.view.panBy((now.x - before.x) / 2, (now.y - before.y) / 2);
  }

  /** Interpolates the cells between two pointer events. */
  #paintTo({ x, y }) {
    const { x: fromX, y: fromY } = this.painted,
      steps = Math.ceil((4 * Math.hypot(x - fromX, y - fromY)) / Math.min(this.map.view.cellWidth, this.map.view.cellHeight)) || 1;
    for (let n = this.painted.isNew ? 0 : 1; n <= steps; n++) {
      const cell = this.map.view.cellAt(fromX + ((x - fromX) * n) / steps, fromY + ((y - fromY) * n) / steps);
      if (!cell || (cell.row === this.painted.row && cell.col === this.painted.col)) continue;
      this.map.hooks.onpaint(cell.row, cell.col, this.painted.isNew);
      this.painted = { ...cell, isNew: false };
    }
    this.painted = { ...this.painted, x, y };
  }

  /** A finger paints when it moves or lifts, because a second finger may come first, to zoom. */
  #press(event) {
    if (event.button !== 0 || !this.map.sheet || !this.map.size) return;
    const place = this.#place(event);
    if (this.pointers.size === 0) {
      this.gesture = "";
      this.painter = event.pointerId;
      this.painted = { ...place, isNew: true };
    } else if (this.gesture === "") this.gesture = "travel";
    this.pointers.set(event.pointerId, { ...place, from: place });
    if (event.isTrusted) this.map.element.setPointerCapture(event.pointerId);
    if (this.map.sheet.isPainting && event.pointerType === "mouse") {
      this.gesture = "paint";
      this.#paintTo(place);
    }
  }

  #release(event) {
    const pressed = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (!pressed || event.type === "pointercancel") return;
    const place = this.#place(event),
      cell = this.map.view.cellAt(place.x, place.y);
    const isTap = Math.hypot(place.x - pressed.from.x, place.y - pressed.from.y) < STILL && this.gesture !== "travel";
    if (!cell || !isTap) return;
    if (this.map.sheet.isPainting && this.gesture === "") this.#paintTo(place);
    this.map.anchor = null;
    this.map.moveTo(cell.row, cell.col);
    this.map.cell.focus({ preventScroll: true });
  }

  /**
   * The wheel scrolls the page. It zooms if Ctrl is held (browsers report a pinch on a touchpad this way), or if the
   * map is large and has the focus.
   */
  #wheel(event) {
    if (!this.map.sheet || !this.map.size) return;
    const isTravel = Math.max(this.map.sheet.matrix.rows, this.map.sheet.matrix.cols) > TILE;
    if (!event.ctrlKey && !event.metaKey && !(isTravel && this.map.cell.matches(":focus"))) return;
    event.preventDefault();
    const { x, y } = this.#place(event);
    this.map.view.zoomAt(Math.exp(-event.deltaY * 0.002), x, y);
    this.map.draw();
  }
}
