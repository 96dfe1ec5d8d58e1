/**
 * rail.js: beside the map: how the chosen number came about, and what the page has checked.
 */
import { explainCell } from "./explain.js";
import { bdi, h } from "./dom.js";
import { rowOf } from "./reference.js";
import { cellPath, groupSize, isEditable, labelAt, labelsFor, matrixIn } from "./steps.js";
import { short } from "./tensor.js";

/** Lines of a sum that are written out; the rest is added up in one. */
const LINES = 14;

/** Most lines as they come, the marked one always. */
function chosenLines({ lines, marked }) {
  if (lines.length <= LINES) return { shown: lines.map((line, at) => [line, at]), rest: [] };
  const size = (line) => Math.abs(Number(line.at(-1)) || 0);
  const order = lines
    .map((_, at) => at)
    .sort((a, b) => Number(b === marked) - Number(a === marked) || size(lines[b]) - size(lines[a]));
  const kept = new Set(order.slice(0, LINES - 1));
  return {
    shown: lines.map((line, at) => [line, at]).filter(([, at]) => kept.has(at)),
    rest: lines.filter((_, at) => !kept.has(at)),
  };
}

/** Narrow enough for three columns of them. */
function written(value) {
  if (typeof value !== "number") return value;
  const isSmall = value !== 0 && Math.abs(value) < 1e-3;
  return isSmall ? value.toExponential(2).replace(/-/g, "−") : short(value, 4);
}

function termsTable(terms, t) {
  const { shown, rest } = chosenLines(terms);
  const body = shown.map(([line, at]) =>
    h(
      at === terms.marked ? "tr.marked" : "tr",
      {},
      h("th", { scope: "row" }, bdi(String(line[0]))),
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
          terms.head.map((text, at) => (at === 0 ? h("td", {}) : h("th", { scope: "col" }, text))),
        ),
      )
    : null;
  return h("table.terms", {}, head, h("tbody", {}, body));
}

/** @param {import("./main.js").App} app */
export function createCell(app) {
  const { t, store } = app,
    body = h("div", {});
  const element = h("section.explain", {}, h("h2", {}, t("cell")), body);
  let drawn = null,
    lastRow = null;

  /** Rows of the map are computed once for as long as the model is the same. */
  function lineOf(model, batch, head, i) {
    const key = [model, batch, head, i];
    if (!lastRow || key.some((part, at) => part !== lastRow.key[at]))
      lastRow = { key, line: rowOf(model, batch, head, i) };
    return lastRow.line;
  }

  function explanation({ answer, shown, view, check }, step, row, col) {
    if (!check?.model || (!check.model.steps.context && !["scores", "scaled", "masked", "attention"].includes(step.id)))
      return null;
    const head = step.perHead === "kv" ? Math.floor(view.head / groupSize(answer.outputs)) : view.head;
    const at = { batch: view.batch, h: head, i: row, j: col };
    const keys = labelsFor("key", shown.request, view, check.model.size.kvLen);
    return explainCell(
      check.model,
      step.id,
      at,
      (i) => lineOf(check.model, view.batch, view.head, i),
      (j) => labelAt(keys, j),
      shown.request.options ?? {},
    );
  }

  function editor(state, step, row, col, value) {
    const { given, view } = state;
    if (!isEditable(step, given.request)) return null;
    const path = cellPath(step, given.request, view, row, col);
    const input = h("input", {
      type: "number",
      step: "0.1",
      value,
      "aria-label": t("edit"),
      oninput: () =>
        input.value !== "" && !input.validity.badInput && store.editRequest(path, Number(input.value), path.join("/")),
    });
    app.cellInput = input;
    return h("label.field", {}, h("span", {}, t("edit")), input);
  }

  function update(state) {
    const { answer, shown, view, check, given, kept } = state,
      step = answer && app.currentStep();
    if (!step) return;
    const key = [answer, check, step.id, view.row, view.col, view.head, view.batch, view.compare, kept];
    if (drawn && key.every((part, at) => part === drawn[at])) return;
    const isTyping =
      body.contains(document.activeElement) &&
      document.activeElement.tagName === "INPUT" &&
      drawn &&
      [2, 3, 4, 5, 6].every((at) => key[at] === drawn[at]);
    drawn = key;
    if (isTyping) return;
    const matrix = matrixIn(step, { given: shown, answer }, view);
    const row = Math.min(view.row, matrix.rows - 1),
      col = Math.min(view.col, matrix.cols - 1),
      value = matrix.data[row * matrix.cols + col];
    const name = (kind, at, length) => {
      const labels = labelsFor(kind, shown.request, view, length);
      return labels ? labels[at] : (kind === "feature" ? "d" : "") + at;
    };
    app.cellInput = null;
    const found = explanation(state, step, row, col);
    body.replaceChildren(
      ...[
        h(
          "p.pairing",
          {},
          h(
            "span",
            {},
            bdi(name(step.rows, row, matrix.rows)),
            h("span.arrow", {}, " → "),
            bdi(name(step.cols, col, matrix.cols)),
          ),
          h("b", {}, short(value, 6)),
        ),
        given === shown || isEditable(step, given.request) ? editor(state, step, row, col, value) : null,
        ...(found ? writtenOut(found, value, answer) : []),
      ].filter(Boolean),
    );
  }

  function writtenOut(found, value, answer) {
    const parts = [h("p.formula", {}, found.formula)];
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

/** @param {import("./main.js").App} app */
export function createChecks(app) {
  const { t } = app,
    list = h("dl", {}),
    verdict = h("p.verdict", { role: "status" });
  const element = h("section.checks", {}, h("h2", {}, t("checks")), verdict, list);
  const line = (name, ...value) => [h("dt", {}, name), h("dd", {}, ...value)];
  let drawn = null;

  /** Float32 has 24 bits; sums and exponentials of a layer lose a few of them. */
  const bound = (answer) => (answer.effective?.compute === "float64" ? 1e-9 : 1e-4);

  function update({ answer, check }) {
    if (drawn === check) return;
    drawn = check;
    if (!check) {
      verdict.className = "verdict open";
      verdict.textContent = t("check.now");
      list.replaceChildren();
      return;
    }
    const { worst, sums, unknown, isSampled, failed, compared } = check;
    const isClose = worst && worst.difference <= bound(answer) * scaleOfWorst(answer, worst);
    verdict.className =
      "verdict " + (answer.isLocal || unknown.length > 0 || failed || !worst ? "open" : isClose ? "good" : "bad");
    verdict.textContent = answer.isLocal
      ? t("check.local")
      : failed
        ? t("check.failed", { why: failed })
        : unknown.length > 0
          ? t("check.unknown", { names: unknown.join(", ") })
          : !worst
            ? t("check.nothing")
            : t(isClose ? "check.good" : "check.bad");
    const timing = Object.fromEntries(
      Array.from(answer.timing.matchAll(/(\w+);dur=([\d.]+)/g), ([, name, ms]) => [name, Number(ms)]),
    );
    list.replaceChildren(
      ...[
        worst &&
          line(
            t("check.difference"),
            h("b", {}, worst.difference.toExponential(1)),
            worst.name ? ` ${t("check.in", { name: worst.name })}` : "",
          ),
        sums &&
          line(t("check.sums"), sums.least <= sums.most ? `${sums.least.toFixed(7)} … ${sums.most.toFixed(7)}` : "–"),
        sums && sums.empty > 0 && line(t("check.empty"), String(sums.empty)),
        line(t("check.compared"), isSampled ? t("check.sample") : t("check.steps", { n: compared.length })),
        timing.compute !== undefined && line(t("check.time"), `${short(timing.compute, 3)} ms`),
        line(t("check.round"), `${answer.elapsed.toFixed(0)} ms`),
        answer.effective?.scale !== undefined && line(t("scale"), short(answer.effective.scale, 5)),
      ]
        .filter(Boolean)
        .flat(),
    );
  }

  function scaleOfWorst(answer, worst) {
    const data = answer.outputs[worst.name]?.data;
    if (!data) return 1;
    let most = 1;
    for (let at = 0; at < Math.min(data.length, 100000); at++)
      if (Number.isFinite(data[at])) most = Math.max(most, Math.abs(data[at]));
    return most;
  }
  return { element, update };
}
