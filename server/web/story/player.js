/**
 * player.js: plays a lesson page by page: a sentence, a picture of the step, and the arithmetic of one cell.
 */
import { h, sayOnce } from "../dom.js";
import { fetchFile } from "../exchange/files.js";
import { hasServer } from "../exchange/server.js";
import { createRowBars } from "../maps/bars.js";
import { savePage } from "../panels/export_actions.js";
import { cellName } from "../panels/explain.js";
import { explanationOf, formulaOf, written } from "../panels/sidebar.js";
import { hiddenIn } from "../request/runs.js";
import { labelAt, labelsFor, matrixIn, stepsIn } from "../request/steps.js";
import { matrixOf, short } from "../request/tensor.js";
import { caseOfPage, checkedLesson, inLanguage, isLesson, LESSONS, viewOfPage } from "./lesson.js";
import { drawAlone, drawChange, drawHeads, drawProduct, gridOf, transposedGrid } from "./diagram.js";

const OWN_LESSON = "own";

/** @type {Map<string, Promise<import("./lesson.js").Lesson>>} each is fetched once */
const lessons = new Map();

/** @returns {Promise<import("./lesson.js").Lesson>} */
function lessonOf({ view, lesson }) {
  if (view.lesson === OWN_LESSON && lesson) return Promise.resolve(lesson);
  const name = LESSONS.includes(view.lesson) ? view.lesson : LESSONS[0];
  if (!lessons.has(name)) lessons.set(name, fetchFile(`lessons/${name}.json`).then(checkedLesson));
  return lessons.get(name);
}

/** Opens a page of a lesson: its request, and its view. @param {import("../main.js").App} app */
async function openPage(app, target) {
  const { state } = app.store,
    view = { ...state.view, ...target };
  try {
    const lesson = await lessonOf({ ...state, view });
    const page = Math.max(0, Math.min(lesson.pages.length - 1, view.page));
    app.openCase({ ...caseOfPage(lesson, page, app.language), view: { mode: "story", lesson: view.lesson, present: view.present, ...viewOfPage(lesson, page) } }, state.view.mode === "story");
    app.notify("");
    app.retries.done("lesson");
  } catch (problem) {
    lessons.clear();
    app.failed(problem, "lesson", () => openPage(app, target));
  }
}

/** Opens a lesson from a file. @param {import("../main.js").App} app @param {File} file */
export async function openLessonFile(app, file) {
  const json = await file.text().then(JSON.parse).catch(() => null);
  if (!isLesson(json)) return false;
  try {
    app.store.change({ lesson: checkedLesson(json) });
    await openPage(app, { lesson: OWN_LESSON, page: 0 });
  } catch (problem) {
    app.cannotUse(problem);
  }
  return true;
}

/** The matrices of a run, as diagram.js draws them. */
function platesOf(seen, t) {
  const { run, view } = seen,
    { request } = run.given,
    steps = stepsIn(run),
    model = run.check?.model;
  const has = (id) => steps.find((one) => one.id === id);
  const names = (kind, length) => {
    const labels = labelsFor(kind, request, view, length);
    return Array.from({ length }, (_, at) => (kind === "feature" ? "d" + at : labelAt(labels, at)));
  };
  const plate = (id) => {
    const step = has(id),
      matrix = matrixIn(step, run, view);
    return {
      grid: gridOf(matrix),
      name: step.label,
      rowNames: names(step.rows, matrix.rows),
      colNames: names(step.cols, matrix.cols),
      isWeight: step.isWeight,
    };
  };
  /** The columns of a weight that belong to the head; all columns of the output weight. */
  const weightOf = (name, label) => {
    const { cols } = model.linear[name],
      width = name === "output" ? cols.length : model.size[name === "v" ? "dV" : "dK"],
      from = name === "output" ? 0 : view.head * width;
    return { grid: { rows: cols[0].length, cols: width, at: (i, j) => cols[from + j][i] }, name: label, colNames: names("feature", width) };
  };
  return { has, plate, weightOf, model, names };
}

const transposedPlate = ({ grid, name, rowNames, colNames }) => ({ grid: transposedGrid(grid), name: name + "ᵀ", rowNames: colNames, colNames: rowNames });

/** @returns {SVGElement} the picture of a step */
function diagramOf(seen, id, place, room, more, t) {
  const { has, plate, weightOf, model } = platesOf(seen, t),
    projects = model?.isLayer && ["q", "k", "v"].includes(id) && model.linear[id];
  if (projects) {
    const input = has(`in.${{ q: "query", k: "key", v: "value" }[id]}`) ?? has(id === "v" && has("in.key") ? "in.key" : "in.query");
    return drawProduct({ left: plate(input.id), upper: weightOf(id, `W_${id.toUpperCase()}`), result: plate(id) }, place, room, more);
  }
  const inner = has("q_rotated") ? ["q_rotated", "k_rotated"] : ["q", "k"];
  switch (id) {
    case "scores":
      return drawProduct({ left: plate(inner[0]), upper: transposedPlate(plate(inner[1])), result: plate(id) }, place, room, more);
    case "scaled":
      return drawChange({ before: plate("scores"), after: plate(id), sign: "· scale" }, place, room, more);
    case "masked":
      return drawChange({ before: plate("scaled"), after: plate(id), sign: "+ mask" }, place, room, more);
    case "attention":
      return drawChange({ before: plate("masked"), after: plate(id), sign: "softmax" }, place, room, more);
    case "context":
      return drawProduct({ left: plate("attention"), upper: plate("v"), result: plate(id) }, place, room, more);
    case "projected":
    case "output":
      if (model?.linear.output && has("projected"))
        return drawProduct({ left: plate("concat"), upper: weightOf("output", "W_O"), result: plate("projected") }, place, room, more);
      return drawAlone(plate(id), place, room, more);
    default:
      return drawAlone(plate(id), place, room, more);
  }
}

/** The cell where the shown head is farthest above the mean of the heads. */
function cellApart({ run, view }) {
  const { attention } = run.answer.outputs,
    maps = Array.from({ length: attention.shape[1] }, (_, head) => matrixOf(attention, view.batch, head).data),
    { cols, data } = matrixOf(attention, view.batch, view.head);
  let most = -Infinity,
    found = 0;
  data.forEach((weight, at) => {
    const apart = weight - maps.reduce((sum, map) => sum + map[at], 0) / maps.length;
    if (apart <= most) return;
    most = apart;
    found = at;
  });
  return { row: Math.floor(found / cols), col: found % cols };
}

function headsDiagram(seen, place, room, more, t) {
  const { outputs } = seen.run.answer,
    [, heads] = outputs.attention.shape;
  const plates = Array.from({ length: heads }, (_, head) => {
    const { plate } = platesOf({ ...seen, view: { ...seen.view, head } }, t);
    return { ...plate("attention"), name: `${t("head")} ${head}` };
  });
  return drawHeads(plates, { ...place, head: seen.view.head }, room, more);
}

/** @param {import("../main.js").App} app @returns {import("../modes.js").Mode} */
export function createStory(app) {
  const { t, store } = app;
  const button = (label, text, action, kind = "button.icon") =>
    h(kind, { type: "button", title: label, "aria-label": label, onclick: action }, text);
  const choose = h("select", { "aria-label": t("story.lesson"), onchange: () => openPage(app, { lesson: choose.value, page: 0 }) });
  const present = h("button", { type: "button", onclick: () => presentNow(store.state.view.present !== "on") }, t("story.present"));
  const toLab = h("button", { type: "button", onclick: () => store.setView({ mode: "lab" }) }, t("story.lab"));
  const say = h("p.say", { "aria-live": "polite" }),
    where = h("p.worked", {}),
    formula = h("p.formula", {}),
    diagram = h("div.scene", { tabindex: "0", role: "group", "aria-label": t("story.cell"), onkeydown: (event) => moveCell(event) }),
    bars = createRowBars((col) => store.setView({ col })),
    scale = h("input", { type: "range", min: 0, max: 2, step: 0.01, oninput: () => store.editRequest(["options", "scale"], Number(scale.value), "scale") }),
    scaleValue = h("output", {}),
    scaleField = h("label.scale", {}, t("scale"), scale, scaleValue),
    row = h("div.story-row", {}, scaleField, bars.element);
  const save = h("button", { type: "button", onclick: () => savePage(app, { lesson, view: { ...store.state.view, lesson: OWN_LESSON } }) }, t("story.save"));
  const turn = (way) => openPage(app, { page: store.state.view.page + way });
  const back = button(t("story.back"), "◀", () => turn(-1)),
    next = button(t("story.next"), "▶", () => turn(1)),
    dots = h("ol.dots", {}),
    count = h("span.count", {});
  const body = h("div.story-body", {}, diagram, h("div.story-side", {}, where, formula, row));
  const element = h(
    "section.story",
    { "aria-label": t("mode.story") },
    h("div.story-head", {}, choose, h("span.gap"), save, toLab, present),
    say,
    body,
    h("div.player", {}, back, dots, next, count),
  );
  let shown = null,
    lesson = null,
    drawn = null;

  function presentNow(isOn) {
    store.setView({ present: isOn ? "on" : "off" });
    const { fullscreenElement } = document;
    if (isOn && !fullscreenElement) document.documentElement.requestFullscreen?.().catch(() => {});
    if (!isOn && fullscreenElement) document.exitFullscreen();
  }

  function moveCell(event) {
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!way || !shown) return;
    event.preventDefault();
    event.stopPropagation();
    const { row: i, col: j } = shown.place;
    place(Math.max(0, Math.min(shown.rows - 1, i + way[0])), Math.max(0, Math.min(shown.cols - 1, j + way[1])));
    requestAnimationFrame(() => app.say(where.textContent));
  }

  const place = (i, j, head = store.state.view.head) => {
    store.setView({ row: i, col: j, head });
  };

  function onKey(event) {
    if (!element.isConnected || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const last = (lesson?.pages.length ?? 1) - 1,
      isButton = event.target.tagName === "BUTTON";
    const pages = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1, Home: -last, End: last, ...(isButton ? {} : { " ": 1 }) };
    if (pages[event.key]) turn(pages[event.key]);
    else if (event.key === "p") presentNow(store.state.view.present !== "on");
    else if (event.key === "Escape" && store.state.view.present === "on") presentNow(false);
    else return;
    event.preventDefault();
  }
  app.startStory = () => requestAnimationFrame(() => next.focus({ preventScroll: true }));
  app.storyKeys?.abort();
  app.storyKeys = new AbortController();
  document.addEventListener("keydown", onKey, { signal: app.storyKeys.signal });
  new ResizeObserver(() => element.isConnected && shown && draw(store.state)).observe(diagram);

  function showLessons({ view, lesson: own }) {
    const known = [...(hasServer() ? LESSONS : []).map((id) => [id, t("lesson." + id)]), ...(own ? [[OWN_LESSON, inLanguage(own.title, app.language)]] : [])];
    choose.replaceChildren(...known.map(([id, text]) => h("option", { value: id }, text)));
    choose.value = view.lesson;
    present.setAttribute("aria-pressed", String(view.present === "on"));
  }

  function makeDots({ pages }) {
    dots.replaceChildren(
      ...pages.map((page, at) => {
        const label = `${at + 1}. ${inLanguage(page.say, app.language)}`;
        return h("li", {}, button(label, "", () => openPage(app, { page: at }), "button.turn"));
      }),
    );
  }

  function showPages({ view }) {
    const { pages } = lesson;
    if (drawn !== lesson) makeDots(lesson);
    drawn = lesson;
    Array.from(dots.children, ({ firstChild: dot }, at) => {
      dot.classList.toggle("past", at < view.page);
      if (at === view.page) dot.setAttribute("aria-current", "step");
      else dot.removeAttribute("aria-current");
    });
    sayOnce(say, inLanguage(pages[view.page].say, app.language));
    back.disabled = view.page === 0;
    next.disabled = view.page === pages.length - 1;
    count.textContent = `${view.page + 1} / ${pages.length}`;
  }

  function draw(state) {
    const seen = app.seen(),
      page = lesson.pages[state.view.page],
      step = stepsIn(seen.run).find(({ id }) => id === page.step) ?? seen.step,
      matrix = matrixIn(step, seen.run, seen.view);
    const { row: i, col: j } = state.view.row < 0 ? cellApart(seen) : state.view,
      at = { row: Math.min(i, matrix.rows - 1), col: Math.min(j, matrix.cols - 1) };
    shown = { place: at, rows: matrix.rows, cols: matrix.cols };
    const room = { width: diagram.clientWidth - 8, height: diagram.clientHeight - 8 },
      more = { appearance: { ...app.appearance(), palette: "viridis", range: "full" }, choose: place };
    if (room.width > 40 && room.height > 40)
      diagram.replaceChildren(page.step === "heads" ? headsDiagram(seen, at, room, more, t) : diagramOf(seen, step.id, at, room, more, t));
    showArithmetic({ ...seen, step }, at, matrix);
    showRow(seen, page, at);
  }

  function showArithmetic(seen, { row: i, col: j }, matrix) {
    const { run, view, step } = seen,
      value = matrix.data[i * matrix.cols + j];
    const name = (kind, index, length) => (kind === "feature" ? "d" + index : labelAt(labelsFor(kind, run.given.request, view, length), index));
    const names = { i: name(step.rows, i, matrix.rows), j: name(step.cols, j, matrix.cols) };
    const found = explanationOf(seen, i, j);
    where.textContent = `${cellName(step, names)} = ${found?.worked ? found.worked(written) : short(value, 4)}`;
    formula.hidden = !found;
    formula.replaceChildren(...(found ? formulaOf(found, names) : []));
    diagram.setAttribute("aria-label", `${t("story.cell")} ${where.textContent}`);
  }

  function showRow({ run, view }, page, { row: i, col }) {
    const isRow = page.scale || ["scaled", "masked", "attention", "heads"].includes(page.step),
      tensor = run.answer.outputs.attention;
    row.hidden = !isRow || !tensor;
    if (row.hidden) return;
    const map = matrixIn({ ...stepsIn(run).find(({ id }) => id === "attention") }, run, view),
      isHidden = hiddenIn(run, view, view.head),
      labels = labelsFor("key", run.given.request, view, map.cols),
      keys = Array.from({ length: map.cols }, (_, j) => j);
    bars.update({
      names: keys.map((j) => labelAt(labels, j)),
      values: keys.map((j) => map.data[i * map.cols + j]),
      hidden: keys.map((j) => isHidden(i, j)),
      chosen: col,
    });
    scaleField.hidden = !page.scale;
    const now = run.answer.effective?.scale ?? 1;
    scaleValue.textContent = short(now, 3);
    if (document.activeElement !== scale) scale.value = String(now);
  }

  /** Fills the rest of the window. */
  function fit() {
    const top = element.getBoundingClientRect().top + window.scrollY;
    element.style.height = Math.max(360, window.innerHeight - top - 24) + "px";
  }
  window.addEventListener("resize", () => element.isConnected && fit());

  async function update(state) {
    document.documentElement.dataset.present = state.view.present;
    showLessons(state);
    const found = await lessonOf(state).catch((problem) => (lessons.clear(), app.cannotUse(problem), null));
    if (!found || store.state.view.mode !== "story") return;
    lesson = found;
    const now = store.state;
    if (!lesson.pages[now.view.page]) return;
    showPages(now);
    fit();
    if (now.answer) draw(now);
  }
  const pictures = () => (shown ? [{ id: "story", title: say.textContent, origin: inLanguage(lesson.title, app.language), elements: [body] }] : []);
  return { element, update, focus: () => diagram.focus(), pictures };
}

/** Focuses the button for the next page, so that keys turn pages. @param {import("../main.js").App} app */
export async function openStory(app) {
  await openPage(app, {});
  requestAnimationFrame(() => app.startStory?.()); // createStory sets it, after the part has loaded
}
