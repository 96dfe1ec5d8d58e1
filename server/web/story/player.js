/**
 * player.js: plays a lesson page by page: a sentence, a picture of the step, and the arithmetic of one cell.
 */
import { bdi, h, sayOnce, symbol } from "../dom.js";
import { fetchFile } from "../exchange/files.js";
import { hasServer } from "../exchange/server.js";
import { createRowBars } from "../maps/bars.js";
import { savePage } from "../panels/export_actions.js";
import { cellName } from "../panels/explain.js";
import { explanationOf, formulaOf, workedOut, written } from "../panels/sidebar.js";
import { hiddenIn } from "../request/runs.js";
import { groupSize, labelAt, labelsFor, matrixIn, stepsIn, worded } from "../request/steps.js";
import { matrixOf, short } from "../request/tensor.js";
import { caseOfPage, checkedLesson, featuresOf, inLanguage, isLesson, LESSONS, viewOfPage } from "./lesson.js";
import { drawAlone, drawChange, drawHeads, drawProduct, drawSum, gridOf, transposedGrid } from "./diagram.js";

const OWN_LESSON = "own";

/** A picture that is drawn again so soon lets its terms fly again: the check of an answer comes after it. */
const FLIGHT_MS = 700;

/** Width of a picture on a phone, whose labels are smaller. */
const NARROW = 420;

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
    app.openCase({ ...caseOfPage(lesson, page, app.language, view.variant), view: { mode: "story", lesson: view.lesson, present: view.present, variant: view.variant, ...viewOfPage(lesson, page, view.variant) } }, state.view.mode === "story");
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
    await openPage(app, { lesson: OWN_LESSON, page: 0, variant: 0 });
  } catch (problem) {
    app.cannotUse(problem);
  }
  return true;
}

/** What the columns of a step are: of X, of Q and K, or of V. @returns {"input" | "query" | "value"} */
function kindOfColumns(id) {
  if (/^[qk](_rotated)?$/.test(id)) return "query";
  return ["v", "context", "concat"].includes(id) ? "value" : "input";
}

/** The name of one column of a step. */
function columnName({ run, view, nameOf }, { id, perHead }, at, width) {
  const head = perHead === "kv" ? Math.floor(view.head / groupSize(run.answer.outputs)) : view.head;
  return nameOf(kindOfColumns(id), perHead ? head * width + at : at, at);
}

/** The matrices of a run, as diagram.js draws them. */
function platesOf(seen) {
  const { run, view, nameOf } = seen,
    { request } = run.given,
    steps = stepsIn(run),
    model = run.check?.model,
    isHidden = hiddenIn(run, view, view.head);
  const has = (id) => steps.find((one) => one.id === id);
  const names = (step, kind, length) => {
    const labels = labelsFor(kind, request, view, length);
    return Array.from({ length }, (_, at) => (kind === "feature" ? columnName(seen, step, at, length) : labelAt(labels, at)));
  };
  const plate = (id) => {
    const step = has(id),
      matrix = matrixIn(step, run, view);
    return {
      grid: gridOf(matrix),
      name: worded(step.label, seen.t),
      rowNames: names(step, step.rows, matrix.rows),
      colNames: names(step, step.cols, matrix.cols),
      tone: /^[qkv](_rotated)?$/.test(id) ? id[0] : undefined,
      isWeight: step.isWeight,
      isHidden: step.isWeight ? isHidden : undefined,
    };
  };
  /** The columns of a weight that belong to the head; all columns of the output weight. */
  const weightOf = (name, label) => {
    const { cols } = model.linear[name],
      isOutput = name === "output",
      width = isOutput ? cols.length : model.size[name === "v" ? "dV" : "dK"],
      step = has(isOutput ? "projected" : name),
      head = step.perHead === "kv" ? Math.floor(view.head / groupSize(run.answer.outputs)) : view.head,
      from = isOutput ? 0 : head * width;
    return {
      grid: { rows: cols[0].length, cols: width, at: (i, j) => cols[from + j][i] },
      name: label,
      rowNames: Array.from(cols[0], (_, i) => nameOf(isOutput ? "value" : "input", i)),
      colNames: names(step, "feature", width),
      tone: isOutput ? undefined : name,
    };
  };
  return { has, plate, weightOf, model, names };
}

const transposedPlate = ({ grid, name, rowNames, colNames, tone }) => ({ grid: transposedGrid(grid), name: name + "ᵀ", rowNames: colNames, colNames: rowNames, tone });

/** @returns {SVGElement} the picture of a step */
function diagramOf(seen, id, place, room, more) {
  const { has, plate, weightOf, model } = platesOf(seen),
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
      return drawChange([plate("scores"), plate(id)], place, room, more);
    case "masked":
      return drawChange([plate("scaled"), plate(id)], place, room, more);
    case "attention":
      return drawChange([plate(Object.keys(seen.run.given.request.masks ?? {}).length > 0 ? "masked" : "scaled"), plate(id)], place, room, more);
    case "context":
      return drawProduct({ left: plate("attention"), upper: plate("v"), result: plate(id) }, place, room, more);
    case "residual":
    case "output":
      if (has("residual") && has("projected") && !seen.run.given.request.options?.norm) return drawSum(sumOf(seen, place.row), place, room, { ...more, choose: (_, j) => more.choose(place.row, j) });
    // falls through
    case "projected":
      if (model?.linear.output && has("projected"))
        return drawProduct({ left: plate("concat"), upper: weightOf("output", "W_O"), result: plate("projected") }, place, room, more);
      return drawAlone(plate(id), place, room, more);
    default:
      return drawAlone(plate(id), place, room, more);
  }
}

const lessonAfter = (id) => LESSONS[(LESSONS.indexOf(id) + 1) % LESSONS.length];

/** One row of X, what the heads add to it, and the sum. */
function sumOf(seen, row) {
  const { plate } = platesOf(seen),
    parts = ["in.query", "projected", "residual"].map((id) => plate(id));
  return {
    grid: { rows: 3, cols: parts[0].grid.cols, at: (i, j) => parts[i].grid.at(row, j) },
    name: parts[0].rowNames[row],
    rowNames: ["X", "+ projected", "= output"].map((name) => worded(name, seen.t)),
    colNames: parts[0].colNames,
  };
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

/** The column of the largest number of a row. */
function strongestOf({ cols, data }, row) {
  const values = Array.from({ length: cols }, (_, j) => data[row * cols + j]);
  return values.indexOf(Math.max(...values));
}

function headsDiagram(seen, place, room, more) {
  const { t } = seen,
    { outputs } = seen.run.answer,
    [, heads] = outputs.attention.shape;
  const plates = Array.from({ length: heads }, (_, head) => {
    const { plate } = platesOf({ ...seen, view: { ...seen.view, head } });
    return { ...plate("attention"), name: `${t("head")} ${head}` };
  });
  return drawHeads(plates, { ...place, head: seen.view.head }, room, more);
}

/** @param {import("../main.js").App} app @returns {import("../modes.js").Mode} */
export function createStory(app) {
  const { t, store } = app;
  const button = (label, text, action, kind = "button.icon") =>
    h(kind, { type: "button", title: label, "aria-label": label, onclick: action }, text);
  const choose = h("select", { "aria-label": t("story.lesson"), onchange: () => openPage(app, { lesson: choose.value, page: 0, variant: 0 }) });
  const present = h("button.present", { type: "button", onclick: () => presentNow(store.state.view.present !== "on") }, t("story.present"));
  const toLab = h("button.aside", { type: "button", onclick: () => store.setView({ mode: "lab" }) }, t("story.lab"));
  const say = h("p.say", { "aria-live": "polite" }),
    where = h("p.worked", {}),
    formula = h("p.formula", {}),
    diagram = h("div.scene", { tabindex: "0", role: "group", "aria-label": t("story.cell"), onkeydown: (event) => moveCell(event) }),
    bars = createRowBars((col) => store.setView({ col })),
    scale = h("input", { type: "range", min: 0, max: 1, step: 0.005, oninput: () => store.editRequest(["options", "scale"], Number(scale.value), "scale") }),
    scaleValue = h("output", {}),
    scaleField = h(
      "div.scale",
      {},
      h("label", {}, t("scale"), scale),
      scaleValue,
      h("button", { type: "button", onclick: () => store.editRequest(["options", "scale"], undefined, "scale") }, "1/√d"),
    ),
    row = h("div.story-row", {}, scaleField, bars.element);
  const question = h("p", {}),
    guesses = h("div.wordlist", {}),
    reply = h("p.reply", { role: "status" }),
    ask = h("div.ask", {}, question, guesses, reply),
    variants = h("span.segments", { role: "group", "aria-label": t("story.variant") });
  /** Which word was guessed on a page of a lesson. */
  const guessed = new Map();
  const save = h("button.aside", { type: "button", onclick: () => savePage(app, { lesson, view: { ...store.state.view, lesson: OWN_LESSON } }) }, t("story.save"));
  const after = h("button.aside", { type: "button", onclick: () => openPage(app, { lesson: lessonAfter(store.state.view.lesson), page: 0, variant: 0 }) });
  const turn = (way) => openPage(app, { page: store.state.view.page + way });
  const back = button(t("story.back"), "◀", () => turn(-1)),
    next = button(t("story.next"), "▶", () => turn(1)),
    dots = h("ol.dots", {}),
    count = h("span.count", {});
  const body = h("div.story-body", {}, diagram, h("div.story-side", {}, ask, where, formula, row));
  const element = h(
    "section.story",
    { "aria-label": t("mode.story") },
    h("div.story-head", {}, choose, variants),
    say,
    body,
    h("div.player", {}, back, dots, next, count),
    h("div.story-tools", {}, after, save, toLab, present),
  );
  let shown = null,
    lesson = null,
    drawn = null,
    flown = { key: "", until: 0 };

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
  new ResizeObserver(() => element.isConnected && shown && store.state.shown === store.state.given && draw(store.state)).observe(diagram);

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
    const words = inLanguage(pages[view.page].say, app.language);
    if (say.textContent !== words) say.replaceChildren(...symbol(words));
    ask.hidden ||= !pages[view.page].ask; // the answer comes later
    back.disabled = view.page === 0;
    next.disabled = view.page === pages.length - 1;
    after.hidden = !next.disabled || !hasServer() || view.lesson === OWN_LESSON;
    sayOnce(after, t("story.after", { lesson: t("lesson." + lessonAfter(view.lesson)) }));
    count.textContent = `${view.page + 1} / ${pages.length}`;
  }

  function showVariants({ view }) {
    const { variants: list = [], pages } = lesson;
    variants.hidden = list.length === 0 || Boolean(pages[view.page].request);
    variants.replaceChildren(
      ...list.map(({ name }, at) =>
        h("button", { type: "button", "aria-pressed": String(at === view.variant), onclick: () => changeVariant(at) }, bdi(inLanguage(name, app.language))),
      ),
    );
  }

  /** The buttons are made anew, so the focus is given back. */
  async function changeVariant(variant) {
    const { page } = store.state.view;
    await openPage(app, { page, variant });
    requestAnimationFrame(() => variants.children[variant]?.focus());
  }

  /** Asks which number of the row is the largest, and hides the row until a word is chosen. @returns {boolean} whether it still asks */
  function showQuestion({ run, view }, page, matrix, i) {
    ask.hidden = !page.ask;
    if (ask.hidden) return false;
    const key = [view.lesson, view.page, view.variant].join(),
      guess = guessed.get(key),
      labels = labelsFor("key", run.given.request, view, matrix.cols),
      best = strongestOf(matrix, i);
    const tell = (j) => {
      guessed.set(key, j);
      store.setView({ col: best });
      update(store.state).then(() => next.focus({ preventScroll: true }));
    };
    question.textContent = inLanguage(page.ask, app.language);
    guesses.replaceChildren(
      ...Array.from({ length: matrix.cols }, (_, j) => h(`button${guess !== undefined && j === best ? ".best" : ""}`, { type: "button", "aria-pressed": String(j === guess), onclick: () => tell(j) }, bdi(labelAt(labels, j)))),
    );
    sayOnce(reply, guess === undefined ? "" : t(guess === best ? "story.right" : "story.other", { word: labelAt(labels, best) }));
    return guess === undefined;
  }

  function draw(state) {
    const seen = { ...app.seen(), t, nameOf: featuresOf(lesson, state.view.page, app.language) },
      page = lesson.pages[state.view.page],
      step = stepsIn(seen.run).find(({ id }) => id === page.step) ?? seen.step,
      matrix = matrixIn(step, seen.run, seen.view);
    const { row: i, col: j } = state.view.row < 0 ? cellApart(seen) : state.view,
      row = Math.min(i, matrix.rows - 1),
      isAsking = showQuestion(seen, page, matrix, row),
      at = { row, col: Math.min(isAsking ? row : j < 0 ? strongestOf(matrix, row) : j, matrix.cols - 1) };
    shown = { place: at, rows: matrix.rows, cols: matrix.cols };
    const key = [state.view.lesson, state.view.page, state.view.variant, at.row, at.col, isAsking].join();
    showArithmetic({ ...seen, step }, at, matrix, isAsking);
    showRow(seen, page, at, isAsking);
    const { clientWidth: width, clientHeight: height } = diagram,
      unit = (width < NARROW ? 0.88 : 1) * (parseFloat(getComputedStyle(document.documentElement).fontSize) / 16),
      room = { width: width - 8, height: height - 8, unit },
      more = { choose: place, isAsking, isFresh: key !== flown.key || performance.now() < flown.until };
    if (key !== flown.key) flown = { key, until: performance.now() + FLIGHT_MS };
    if (room.width > 40 && room.height > 40) diagram.replaceChildren(page.step === "heads" ? headsDiagram(seen, at, room, more) : diagramOf(seen, step.id, at, room, more));
  }

  /** A row of X by its meanings: 2 · living + 1 · asks. @returns {import("../panels/explain.js").Part[]} */
  function meaningsOf(seen, i, matrix) {
    const all = Array.from({ length: matrix.cols }, (_, j) => ({ value: matrix.data[i * matrix.cols + j], name: columnName(seen, seen.step, j, matrix.cols) })),
      terms = all.filter(({ value }) => value !== 0).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    return terms.length === 0 ? ["0"] : terms.flatMap(({ value, name }, at) => [`${at > 0 ? " + " : ""}${written(value)} · `, bdi(name)]);
  }

  function showArithmetic(seen, { row: i, col: j }, matrix, isAsking) {
    const { run, view, step, nameOf } = seen,
      value = matrix.data[i * matrix.cols + j];
    const name = (kind, index, length) => (kind === "feature" ? columnName(seen, step, index, length) : labelAt(labelsFor(kind, run.given.request, view, length), index));
    const names = { i: name(step.rows, i, matrix.rows), j: name(step.cols, j, matrix.cols) },
      found = explanationOf(seen, i, j, undefined, nameOf),
      isInput = step.id.startsWith("in.");
    if (isInput) where.replaceChildren(bdi(names.i), " = ", ...meaningsOf(seen, i, matrix));
    else where.replaceChildren(`${cellName(step, names, t)} = `, ...(found?.worked ? workedOut(found.worked(written), t) : [short(value, 4)]));
    where.hidden = isAsking;
    formula.hidden = !found || isAsking;
    formula.replaceChildren(...(found ? formulaOf(found, names, t) : []));
    diagram.setAttribute("aria-label", `${t("story.cell")} ${isAsking ? question.textContent : where.textContent}`);
  }

  function showRow({ run, view }, page, { row: i, col }, isAsking) {
    const isRow = page.scale || ["scaled", "masked", "attention", "heads"].includes(page.step),
      tensor = run.answer.outputs.attention;
    row.hidden = !isRow || !tensor || isAsking;
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
    scale.max = String(Math.max(1, now));
    if (document.activeElement !== scale) scale.value = String(now);
  }

  /** Fills the rest of the window. */
  function fit() {
    const top = element.getBoundingClientRect().top + window.scrollY;
    element.style.setProperty("--fit", Math.max(360, window.innerHeight - top - 24) + "px");
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
    showVariants(now);
    fit();
    if (now.answer && (now.shown === now.given || now.isRefused)) draw(now);
  }
  const pictures = () => (shown ? [{ id: "story", title: say.textContent, origin: inLanguage(lesson.title, app.language), elements: [body] }] : []);
  return { element, update, focus: () => diagram.focus(), pictures };
}

/** Focuses the button for the next page, so that keys turn pages. @param {import("../main.js").App} app */
export async function openStory(app) {
  await openPage(app, {});
  requestAnimationFrame(() => app.startStory?.()); // createStory sets it, after the part has loaded
}
