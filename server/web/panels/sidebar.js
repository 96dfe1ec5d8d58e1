/**
 * sidebar.js: the sections beside the map: how the chosen number was computed, and what the page has checked.
 */
import { explainCell } from "./explain.js";
import { bdi, h, numberField, sayOnce, symbol } from "../dom.js";
import { rowOf } from "../request/reference.js";
import { cellPath, groupSize, isEditable, labelAt, labelsFor, matrixIn, worded } from "../request/steps.js";
import { getIn } from "../store.js";
import { fixed, scientific, short } from "../request/tensor.js";

/** Most lines of a sum. The other terms are added up in one line. */
const LINES = 14;

/** The largest lines, in their order, and always the marked one. */
function chosenLines({ lines, marked }) {
  if (lines.length <= LINES) return { shown: lines.map((line, at) => [line, at]), rest: [] };
  const size = (line) => Math.abs(Number(line.at(-1)) || 0);
  const order = lines
    .map((_, at) => at)
    .sort((a, b) => Number(b === marked) - Number(a === marked) || size(lines[b]) - size(lines[a]));
  const chosen = new Set(order.slice(0, LINES - 1));
  return {
    shown: lines.map((line, at) => [line, at]).filter(([, at]) => chosen.has(at)),
    rest: lines.filter((_, at) => !chosen.has(at)),
  };
}

/** Formats a number so that three columns of numbers fit. */
export function written(value, digits = 4) {
  if (typeof value !== "number") return value;
  const isSmall = value !== 0 && Math.abs(value) < 1e-3;
  return isSmall ? scientific(value, digits - 2) : short(value, digits);
}

/** @param {string | number | import("./explain.js").Own} label */
const labelled = (label, t) => bdi(typeof label === "object" ? worded(label.own, t) : String(label));

/** The formula with numbers. @param {import("./explain.js").Part[]} parts */
export const workedOut = (parts, t) =>
  parts.map((part) => (typeof part === "string" ? part : part[1] === "name" ? h("small", {}, "(", labelled(part[0], t), ")") : h("span", { class: part[1] }, part[0])));

/** "score[i, j]" with the names of the cell's row and column. */
export function formulaOf({ formula, column = "j" }, { i, j }, t) {
  const names = { i, [column]: j },
    named = (part) => part.split(/\b([a-z])\b/).map((one) => (names[one] ? bdi(names[one]) : one));
  return worded(formula, t).split(/(\[[^\]]*\])/).flatMap((part) => (part[0] === "[" ? named(part) : symbol(part)));
}

function termsTable(terms, t) {
  const { shown, rest } = chosenLines(terms);
  const body = shown.map(([line, at]) =>
    h(
      at === terms.marked ? "tr.marked" : "tr",
      {},
      h("th", { scope: "row" }, labelled(line[0], t)),
      line.slice(1).map((value) => h("td", {}, written(value))),
    ),
  );
  if (rest.length > 0) {
    const sum = rest.reduce((total, line) => total + (Number(line.at(-1)) || 0), 0);
    const gaps = Math.max(0, terms.head.length - 2);
    body.push(
      h(
        "tr",
        {},
        h("th", { scope: "row" }, t("rest", { n: rest.length })),
        Array.from({ length: gaps }, () => h("td", {})),
        h("td", {}, written(sum)),
      ),
    );
  }
  const head = terms.head.some((text) => text !== "")
    ? h(
        "thead",
        {},
        h(
          "tr",
          {},
          terms.head.map((text, at) => (at === 0 ? h("td", {}) : h("th", { scope: "col" }, worded(text, t)))),
        ),
      )
    : null;
  return h("table.terms", {}, head, h("tbody", {}, body));
}

/** How the number of a cell was computed, by the page's own computation; null: not known. */
export function explanationOf({ run, view, step }, row, col, lineOf = rowOf, nameOf = undefined) {
  const { answer, given, check } = run;
  if (!check?.model || (!check.model.steps.context && !["scores", "scaled", "masked", "attention"].includes(step.id)))
    return null;
  const head = step.perHead === "kv" ? Math.floor(view.head / groupSize(answer.outputs)) : view.head;
  const at = { batch: view.batch, h: head, i: row, j: col };
  const keys = labelsFor("key", given.request, view, check.model.size.kvLen);
  return explainCell(
    check.model,
    step.id,
    at,
    (i) => lineOf(check.model, view.batch, view.head, i),
    (j) => labelAt(keys, j),
    given.request.options ?? {},
    nameOf,
  );
}

/** @param {import("../main.js").App} app */
export function createCell(app) {
  const { t, store } = app,
    pairing = h("p.pairing", {}),
    note = h("p.note", {}),
    body = h("div", {});
  let drawn = null,
    lastRow = null,
    path = null;
  const field = numberField((value) => store.editRequest(path, value, path.join("/")), {
    step: 0.1,
    isNeeded: true,
    "aria-label": t("edit"),
  });
  /** Enter and Escape return the focus to the map. */
  const leave = (event) => {
    if (event.key === "Enter" || event.key === "Escape") app.mainView.map.cell.focus({ preventScroll: true });
  };
  const editor = h("label.field", { onkeydown: leave }, h("span", {}, t("edit")), field.element);
  const element = h("section.explain", {}, h("h2", {}, t("cell")), pairing, note, editor, body);
  app.editCell = () => {
    field.element.focus();
    field.element.select();
  };

  /** Computes a row of the map once while neither the model nor the row changes. */
  function lineOf(model, batch, head, i) {
    const key = [model, batch, head, i];
    if (!lastRow || key.some((part, at) => part !== lastRow.key[at]))
      lastRow = { key, line: rowOf(model, batch, head, i) };
    return lastRow.line;
  }

  /** Path of the number in the request; null if it is not editable, as in A and in a difference. */
  function pathIn({ mode, step, view }, row, col) {
    const { request } = store.state.given;
    if (mode !== "now" || !isEditable(step, request)) return null;
    const path = cellPath(step, request, view, row, col);
    return typeof getIn(request, path) === "number" ? path : null;
  }

  /** Text typed for another place is discarded. */
  function showEditor(found) {
    if (String(found) !== String(path)) field.update(undefined);
    path = found;
    editor.hidden = path === null;
    if (path) field.update(getIn(store.state.given.request, path));
  }

  function update(state) {
    if (!state.answer) return;
    const seen = app.seen(),
      { map } = app.mainView,
      { matrix, isHidden } = map.sheet,
      { row, col } = map.focus;
    showEditor(pathIn(seen, row, col));
    const { run, before, step, view, mode } = seen,
      isStale = state.isRefused && mode !== "kept";
    const key = [matrix.data, run.answer, run.check, before, step.id, row, col, view.head, view.batch, isStale];
    if (drawn && key.every((part, at) => part === drawn[at])) return;
    drawn = key;
    const value = matrix.data[row * matrix.cols + col],
      found = before ? null : explanationOf(seen, row, col, lineOf);
    note.textContent = isStale ? t("stale") : mode !== "now" && step.path ? t("kept.fixed") : "";
    note.hidden = note.textContent === "";
    pairing.replaceChildren(
      h("span", {}, bdi(map.rowName(row)), h("span.arrow", {}, " → "), bdi(map.colName(col))),
      h("b", {}, isHidden(row, col) ? t("masked") : short(value, 6)),
    );
    const names = { i: map.rowName(row), j: map.colName(col) };
    body.replaceChildren(...(before ? subtraction(seen, row, col) : found ? writtenOut(found, names, value, run.answer) : []));
  }

  /** The two numbers of B − A. */
  function subtraction({ run, before, step, view }, row, col) {
    const [b, a] = [run, before].map((one) => {
      const { cols, data } = matrixIn(step, one, view);
      return data[row * cols + col];
    });
    return [h("p.sum", {}, h("span", {}, "B"), h("b", {}, short(b, 9)), h("span", {}, "A"), h("b", {}, short(a, 9)))];
  }

  function writtenOut(found, names, value, answer) {
    const parts = [h("p.formula", {}, formulaOf(found, names, t))];
    if (found.worked) parts.push(h("p.worked", {}, workedOut(found.worked(written), t)));
    if (found.terms) parts.push(termsTable(found.terms, t));
    for (const [note, values] of found.notes) parts.push(h("p.note", {}, t("note." + note, noteValues(values))));
    if (found.value !== null && !answer.isLocal)
      parts.push(
        h(
          "p.sum",
          {},
          h("span", {}, t("here")),
          h("b", {}, short(found.value, 9)),
          h("span", {}, t("server")),
          h("b", {}, short(value, 9)),
        ),
      );
    return parts;
  }

  function noteValues(values = {}) {
    return Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, name === "mask" ? t("mask." + value) : written(value)]),
    );
  }
  return { element, update };
}

/** Tolerance. Float32 has 24 bits, and the sums and exponentials of a layer lose a few of them. */
const bound = (answer) => (answer.effective?.compute === "float64" ? 1e-9 : 1e-4);

function scaleOfWorst(answer, worst) {
  const data = answer.outputs[worst.name]?.data;
  if (!data) return 1;
  let most = 1;
  for (let at = 0; at < Math.min(data.length, 100000); at++)
    if (Number.isFinite(data[at])) most = Math.max(most, Math.abs(data[at]));
  return most;
}

/** What the page has checked of each shown run. A difference shows two. */
export function createChecks(app) {
  const { t } = app,
    title = h("h2", {}, t("checks")),
    blocks = [createCheck(app), createCheck(app)];
  const element = h("section.checks", {}, title, blocks[0].element);
  function update(state) {
    if (!state.answer) return;
    const { run, before, name, mode } = app.seen();
    title.textContent = [t("checks"), before ? "" : name].filter(Boolean).join(" · ");
    blocks[0].update(run, before ? "B" : "", state.isRefused && mode !== "kept");
    if (before) element.append(blocks[1].element);
    else blocks[1].element.remove();
    if (before) blocks[1].update(before, "A", false);
  }
  return { element, update };
}

function createCheck({ t, wordsOf: why }) {
  const list = h("dl", {}),
    verdict = h("p.verdict", { role: "status" }),
    title = h("h3", {}),
    element = h("div", {}, title, verdict, list);
  const line = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
  let drawn = [];

  function wordsOf({ answer, check }, isClose) {
    const { unknown, failed, worst } = check;
    if (answer.isLocal) return t("check.local");
    if (failed) return t("check.failed", { why: why(failed) });
    if (unknown.length > 0) return t("check.unknown", { names: unknown.join(", ") });
    return worst ? t(isClose ? "check.good" : "check.bad") : t("check.nothing");
  }

  /** @param {import("../request/runs.js").Run} run @param {string} name "" if it is the only one */
  function update(run, name, isStale) {
    title.hidden = name === "";
    title.textContent = name;
    const key = [run.answer, run.check, isStale];
    if (key.every((part, at) => part === drawn[at])) return;
    drawn = key;
    draw(run, isStale);
  }

  function draw(run, isStale) {
    const { answer, check } = run;
    if (!check) {
      verdict.className = "verdict open";
      sayOnce(verdict, t("check.now"));
      list.replaceChildren();
      return;
    }
    const { worst, unknown, failed } = check;
    const isClose = worst && worst.difference <= bound(answer) * scaleOfWorst(answer, worst),
      isOpen = isStale || answer.isLocal || unknown.length > 0 || failed || !worst;
    verdict.className = "verdict " + (isOpen ? "open" : isClose ? "good" : "bad");
    sayOnce(verdict, isStale ? t("stale") : wordsOf(run, isClose));
    list.replaceChildren(...linesOf(answer, check));
  }

  function linesOf(answer, { worst, sums, isSampled, compared }) {
    const timing = Object.fromEntries(
      Array.from(answer.timing.matchAll(/(\w+);dur=([\d.]+)/g), ([, name, ms]) => [name, Number(ms)]),
    );
    return [
      worst &&
        line(
          t("check.difference"),
          h("b", {}, scientific(worst.difference, 1)),
          worst.name ? ` ${t("check.in", { name: worst.name })}` : "",
        ),
      sums &&
        line(t("check.sums"), sums.least <= sums.most ? `${fixed(sums.least, 7)} … ${fixed(sums.most, 7)}` : "–"),
      sums && sums.empty > 0 && line(t("check.empty"), String(sums.empty)),
      line(t("check.compared"), isSampled ? t("check.sample") : t("check.steps", { n: compared.length })),
      timing.compute !== undefined && line(t("check.time"), t("check.ms", { n: short(timing.compute, 3) })),
      line(t("check.round"), t("check.ms", { n: answer.elapsed.toFixed(0) })),
      answer.effective?.scale !== undefined && line(t("scale"), short(answer.effective.scale, 5)),
    ]
      .filter(Boolean)
      .flat();
  }
  return { element, update };
}
