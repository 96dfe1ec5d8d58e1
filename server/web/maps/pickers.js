/**
 * pickers.js: thumbnails of all steps, from the input to the output, and of all heads.
 */
import { extentOf, scaleOf } from "./colour.js";
import { fadeEdges, h, symbol } from "../dom.js";
import { oneTabStop } from "../focus.js";
import { hiddenIn } from "../request/runs.js";
import { matrixIn, stepsIn, tensorIn, worded } from "../request/steps.js";
import { VIEW_CHOICES } from "../store.js";
import { headStats, restOf, sortedHeads, withoutFirst } from "./stats.js";
import { matrixOf, short } from "../request/tensor.js";
import { drawThumb, thumbSize } from "./thumb.js";

/** Extents of whole tensors, so that all heads have the same colours. */
const extents = new WeakMap();
export function extentOfTensor(tensor) {
  if (!extents.has(tensor)) extents.set(tensor, extentOf(tensor.data));
  return extents.get(tensor);
}

/** All heads share one range. If one head is here in full, the range is that of the thumbnails. */
export const extentOfStep = ({ id }, { answer }, tensor) => extentOfTensor(id === "attention" ? (answer.thumbs ?? tensor) : tensor);

/** The share of the first token in a map of weights, if the head is one of a model's and rests there; else 0. */
export const restIn = (step, { given }, map) => (step.isWeight && given.source ? restOf(map) : 0);

/** The map as its thumbnail shows it. */
const shownOf = (step, run, view, map) => (view.rest === "left" && restIn(step, run, map) > 0 ? withoutFirst(map) : map);

/** Thumbnails leave cells of 0 out that are hidden, or of the token on which a head rests. */
const leftIn = (shown, map, isHidden) => (shown === map ? isHidden : (i, j) => j === 0 || Boolean(isHidden?.(i, j)));

/** The sign before the thumbnail of a step. */
const SIGNS = {
  "w.query": "·",
  "w.key": ",",
  "w.value": ",",
  "w.qkv": "·",
  q: "→",
  k: ",",
  v: ",",
  q_rotated: "→",
  k_rotated: ",",
  scores: "→",
  scaled: "→",
  masked: "→",
  attention: "→",
  dropped: "→",
  context: "→",
  concat: "→",
  "w.output": "·",
  projected: "=",
  residual: "→",
  attention_output: "→",
  feed_forward: "→",
  output: "→",
};

/** @param {import("../main.js").App} app */
export function createStepPicker(app) {
  const list = h("ol", {}),
    element = h("div.strip", { role: "toolbar", "aria-label": app.t("steps") }, list),
    updateTabStop = oneTabStop(element);
  let made = "",
    shownStep = null;
  const buttons = new Map();

  const markEdges = fadeEdges(element);

  function make(steps) {
    buttons.clear();
    const groups = new Map();
    for (const one of steps) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
    list.replaceChildren(
      ...Array.from(groups, ([group, members]) =>
        h("li", {}, h("span", {}, app.t("group." + group)), h("div", {}, members.flatMap(makeButton))),
      ),
    );
  }

  /** The accessible name begins with words, because screen readers cannot read the symbols. */
  function makeButton(one) {
    const canvas = h("canvas", { "aria-hidden": "true" }),
      shape = h("small", {});
    const button = h(
      "button",
      { type: "button", onclick: () => app.openStep(one.id) },
      h("span.aloud", {}, app.t("words." + one.id) + " "),
      h("span.thumb", { title: app.t("words." + one.id) }, canvas),
      h("span.name", {}, symbol(worded(one.label, app.t)), " "),
      shape,
    );
    buttons.set(one.id, { button, canvas, shape });
    return [SIGNS[one.id] && h("span.sign", { "aria-hidden": "true" }, SIGNS[one.id]), button];
  }

  /** Scrolls sideways only; scrollIntoView would also move the page. */
  function reveal(button) {
    shownStep = button;
    element.scrollLeft = button.offsetLeft - (element.clientWidth - button.offsetWidth) / 2;
    markEdges();
  }

  function update({ answer }) {
    if (!answer) return;
    const { run, view, step } = app.seen(),
      steps = stepsIn(run),
      key = steps.map((one) => one.id).join();
    if (key !== made) make(steps);
    made = key;
    for (const one of steps) {
      const { button, canvas, shape } = buttons.get(one.id),
        tensor = tensorIn(one, run),
        matrix = matrixIn(one, run, view);
      const isOpen = one.id === step.id;
      button.setAttribute("aria-pressed", String(isOpen));
      if (isOpen && shownStep !== button) reveal(button);
      shape.textContent = `${matrix.rows} × ${matrix.cols}`;
      const size = thumbSize(matrix, 44, 56);
      canvas.style.width = size.width + "px";
      canvas.style.height = size.height + "px";
      const scale = scaleOf(app.appearance(), extentOfStep(one, run, tensor), one.isWeight);
      const shown = shownOf(one, run, view, matrix);
      drawThumb(canvas, shown, scale, 96, leftIn(shown, matrix, one.isWeight ? hiddenIn(run, view, view.head) : undefined));
    }
    updateTabStop();
  }
  return { element, update };
}

const HEADS_SHOWN = 96;

/** Orders whose numbers are shown as percentages. */
const SHARES = ["first", "diagonal"];

/** @param {import("../main.js").App} app */
export function createHeadPicker(app) {
  const { t } = app,
    grid = h("div.heads", {}),
    unit = h("p.note", {});
  const sort = h(
    "select",
    { "aria-label": t("sort"), onchange: () => app.store.setView({ sort: sort.value }) },
    VIEW_CHOICES.sort.map((id) => h("option", { value: id }, t("sort." + id))),
  );
  const batch = h("select", {
    "aria-label": t("batch"),
    onchange: () => app.store.setView({ batch: Number(batch.value) }),
  });
  const element = h("section", {}, h("div.head", {}, h("h2", {}, t("heads")), batch, sort), grid, unit);
  const stats = new WeakMap(),
    shown = [];

  const statsOf = (matrix) => stats.get(matrix) ?? stats.set(matrix, headStats(matrix)).get(matrix);

  function makeUntil(count) {
    while (shown.length < count) {
      const canvas = h("canvas", { "aria-hidden": "true" }),
        caption = h("span", {});
      const button = h("button", { type: "button" }, canvas, caption);
      button.onclick = () => app.store.setView({ head: Number(button.dataset.head) });
      shown.push({ button, canvas, caption });
    }
    grid.replaceChildren(...shown.slice(0, count).map(({ button }) => button));
  }

  function updateBatch(size, at) {
    batch.hidden = size < 2;
    if (batch.length !== size)
      batch.replaceChildren(...Array.from({ length: size }, (_, b) => h("option", { value: b }, `${t("batch")} ${b}`)));
    batch.value = String(Math.min(at, size - 1));
  }

  function update({ answer: now }) {
    const { run, view } = now ? app.seen() : { run: null, view: null },
      answer = run?.answer,
      tensor = answer?.thumbs ?? answer?.outputs.attention;
    element.hidden = !tensor;
    if (!tensor) return;
    const count = Math.min(tensor.shape[1], HEADS_SHOWN);
    const maps = Array.from({ length: count }, (_, head) => matrixOf(tensor, view.batch, head));
    const order = sortedHeads(maps.map(statsOf), view.sort);
    if (grid.childElementCount !== count) makeUntil(count);
    updateBatch(tensor.shape[0], view.batch);
    sort.value = view.sort;
    unit.hidden = view.sort === "order";
    unit.textContent = unit.hidden ? "" : t("unit." + view.sort);
    const scale = scaleOf(app.appearance(), extentOfTensor(tensor), true);
    order.forEach((head, at) => {
      const { button, canvas, caption } = shown[at],
        { [view.sort]: value } = statsOf(maps[head]);
      button.dataset.head = String(head);
      button.setAttribute("aria-pressed", String(head === view.head));
      button.setAttribute("aria-label", `${t("head")} ${head}`);
      caption.textContent = value === undefined ? String(head) : `${head} · ${short(value * (SHARES.includes(view.sort) ? 100 : 1), 2)}`;
      canvas.style.aspectRatio = `${Math.min(3, Math.max(1 / 3, maps[head].cols / maps[head].rows))}`;
      const seen = shownOf({ isWeight: true }, run, view, maps[head]);
      drawThumb(canvas, seen, scale, 64, leftIn(seen, maps[head], answer.thumbs ? undefined : hiddenIn(run, view, head)));
    });
  }
  return { element, update };
}
