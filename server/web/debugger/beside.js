/**
 * beside.js: theirs beside ours: the numbers of the first step that differs, around its worst cell.
 */
import { bdi, h } from "../dom.js";
import { apart, cellAt, roundingOf } from "../expected/differences.js";
import { placingOf } from "../expected/matching.js";
import { labelAt, labelsFor, tensorIn, worded } from "../request/steps.js";
import { fixed, scientific } from "../request/tensor.js";

/** Rows and columns that are shown; on a phone fewer. */
const ROWS = 8,
  COLS = 5,
  COLS_NARROW = 4;
const colsShown = () => (window.matchMedia("(max-width: 30rem)").matches ? COLS_NARROW : COLS);

/** The window of so many places around one. */
function around(at, count, all) {
  const from = Math.max(0, Math.min(at - Math.floor(count / 2), all - count));
  return Array.from({ length: Math.min(count, all) }, (_, n) => from + n);
}

/** One format for all numbers of both tables. */
function writerFor(numbers) {
  const most = Math.max(...numbers.filter(Number.isFinite).map(Math.abs), 0),
    write = most >= 1e4 || (most > 0 && most < 1e-2) ? (value) => scientific(value, 2) : (value) => fixed(value, 4);
  return (value) => (Number.isFinite(value) ? write(value) : Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞");
}

/** @param {import("../main.js").App} app */
export function createBeside(app) {
  const { t, store } = app,
    element = h("div.beside", { hidden: true });

  function update(lines, run) {
    const line = lines.find(({ outside }) => outside > 0) ?? lines[0];
    element.hidden = !line;
    if (line) draw(line, run);
  }

  function draw(line, run) {
    const { step, given } = line,
      { rtol, atol } = store.state.expected,
      { shape, data } = tensorIn(step, run),
      { row, col, head, batch, hasHead } = cellAt(line, run);
    const cols = shape.at(-1) ?? 1,
      rows = shape.at(-2) ?? 1,
      start = Math.floor(line.index / (rows * cols)) * rows * cols,
      placing = placingOf(given, step, run, given.view);
    const theirs = new Map();
    for (let n = 0; n < placing.count; n++) {
      const at = placing.at(n) - start;
      if (at >= 0 && at < rows * cols) theirs.set(at, given.tensor.data[n]);
    }
    const shown = { rows: around(row, ROWS, rows), cols: around(col, colsShown(), cols) },
      places = shown.rows.flatMap((i) => shown.cols.map((j) => i * cols + j));
    const write = writerFor(places.flatMap((at) => [theirs.get(at), data[start + at]]));
    const limit = (expected) => atol + rtol * Math.abs(expected) + roundingOf(given);
    const isOutside = (at) => !(apart(step.id, data[start + at], theirs.get(at)) <= limit(theirs.get(at)));
    const names = (kind, count) => {
      const labels = labelsFor(kind, run.given.request, { batch }, count);
      return (at) => (labels ? labelAt(labels, at) : (kind === "feature" ? "d" : "") + at);
    };
    const rowName = names(step.rows, rows),
      colName = names(step.cols, cols);
    const cell = (value, i, j) => {
      const kind = i === row && j === col ? ".worst" : "",
        text = write(value);
      return h("td" + kind, {}, isOutside(i * cols + j) ? h("b", {}, text) : text);
    };
    const table = (title, valueAt) =>
      h(
        "table.terms",
        {},
        h("caption", {}, title),
        h("thead", {}, h("tr", {}, h("td", {}), shown.cols.map((j) => h("th", { scope: "col" }, bdi(colName(j)))))),
        h("tbody", {}, shown.rows.map((i) => h("tr", {}, h("th", { scope: "row" }, bdi(rowName(i))), shown.cols.map((j) => cell(valueAt(i * cols + j), i, j))))),
      );
    const part = [worded(step.label, t), hasHead && `${t("head")} ${head}`, `${rows} × ${cols}`].filter(Boolean).join(", ");
    element.replaceChildren(
      h("h3", {}, part),
      h("div.tables", {}, table(t("bug.theirs.table"), (at) => theirs.get(at)), table(t("bug.ours.table"), (at) => data[start + at])),
      h("p.note", {}, t("bug.tables")),
    );
  }
  return { element, update };
}
