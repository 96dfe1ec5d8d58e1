/**
 * results.js: the section on expected values: how far the run is from them, where, and why.
 */
import { bdi, choice, h, numberField, sayOnce } from "../dom.js";
import { labelAt, labelsFor, tensorIn, worded } from "../request/steps.js";
import { withPart } from "../exchange/files.js";
import { short } from "../request/tensor.js";
import { cellAt, linesFor } from "./differences.js";
import { stepsThatFit } from "./matching.js";

/** The diagnosis is loaded only if values differ. */
export const diagnosisPart = () => withPart("diagnosis", () => import("./diagnosis.js"));

/** Formats a difference. */
const sized = (value) => (value === 0 ? "0" : short(value, 2));

const LABELLED = { query: "", key: "", feature: "d" };

/** @param {import("../main.js").App} app @param {HTMLElement[]} more what stands below the cause @param {string} cellText names the two numbers of the worst cell */
export function createExpected(app, more = [], cellText = "expected.cell") {
  const { t, store } = app;
  const change = (patch, stroke = 0) => store.change({ expected: { ...store.state.expected, ...patch } }, stroke);
  const tolerance = (name) => numberField((value) => change({ [name]: Math.max(0, value) }, name), { isNeeded: true, step: 1e-3 });
  const rtol = tolerance("rtol"),
    atol = tolerance("atol");
  const remove = h("button.link", { type: "button", onclick: () => store.change({ expected: null }) }, t("expected.remove"));
  const verdict = h("p.verdict", {}),
    body = h("tbody", {}),
    cause = h("div.cause", {}),
    note = h("p.note", {});
  const heads = [t("expected.step"), t("expected.absolute"), t("expected.relative"), t("expected.worst")];
  const table = h(
    "table.terms",
    {},
    h("caption.spoken", {}, t("expected.values")),
    h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)))),
    body,
  );
  const limits = h("div.row", {}, h("label.field", {}, h("span", {}, "rtol"), rtol.element), h("label.field", {}, h("span", {}, "atol"), atol.element));
  const parts = [h("div.head", {}, h("h2", {}, t("expected.title")), remove), verdict, cause, ...more, table, limits, note],
    element = h("section.expected", { hidden: true });

  const nameOf = (kind, at, length, view, request) => {
    const labels = labelsFor(kind, request, view, length);
    return labels ? labelAt(labels, at) : LABELLED[kind] + at;
  };

  /** "it → animal, head 2". */
  function placeOf(line, run) {
    const cell = cellAt(line, run),
      { shape } = tensorIn(line.step, run),
      view = { batch: cell.batch };
    const names = [
      bdi(nameOf(line.step.rows, cell.row, shape.at(-2) ?? 1, view, run.given.request)),
      " → ",
      bdi(nameOf(line.step.cols, cell.col, shape.at(-1), view, run.given.request)),
    ];
    if (cell.hasHead) names.push(`, ${t("head")} ${cell.head}`);
    return names;
  }

  const open = (line, run) => {
    const { row, col, head, batch, hasHead } = cellAt(line, run),
      { view } = store.state;
    const compare = view.compare === "difference" ? "now" : view.compare;
    store.setView({ mode: "lab", step: line.step.id, tab: "map", row, col, batch, head: hasHead ? head : view.head, compare });
  };

  /** If the name does not decide, a choice offers all steps that fit. */
  function stepCell(line, run, view) {
    const { given, step } = line,
      fitting = given.isNamed ? [] : stepsThatFit(given, run, view);
    if (fitting.length < 2) return worded(step.label, t);
    const chooseStep = (id) => change({ values: store.state.expected.values.map((one) => (one === given ? { ...one, step: id, isChosen: true } : one)) });
    return choice(fitting.map(({ id, label }) => [id, worded(label, t)]), step.id, chooseStep, { "aria-label": t("expected.step") });
  }

  function lineRow(line, run, view) {
    const cell = cellAt(line, run);
    const worst = h(
      "button",
      { type: "button", onclick: () => open(line, run), disabled: line.absolute === 0 },
      h("span.spoken", {}, `${worded(line.step.label, t)}: `, placeOf(line, run)),
      h("span", { "aria-hidden": "true" }, line.absolute === 0 ? "–" : `${cell.row}, ${cell.col}`),
    );
    return h(
      line.outside > 0 ? "tr.outside" : "tr",
      {},
      h("th", { scope: "row" }, stepCell(line, run, view)),
      h("td", {}, sized(line.absolute)),
      h("td", {}, sized(line.relative)),
      h("td", {}, worst),
    );
  }

  function sayVerdict(lines, run) {
    const first = lines.find(({ outside }) => outside > 0);
    verdict.className = "verdict " + (lines.length === 0 ? "open" : first ? "bad" : "good");
    if (!first) {
      verdict.textContent = lines.length === 0 ? t("expected.none") : t("expected.good", { n: lines.length });
      return;
    }
    verdict.replaceChildren(
      t("expected.first", { step: worded(first.step.label, t), n: first.outside, all: first.count }),
      " ",
      h("button.link", { type: "button", onclick: () => open(first, run) }, placeOf(first, run)),
      " ",
      t(cellText, { own: short(first.own, 5), expected: short(first.expected, 5) }),
    );
  }

  let drawn = [];

  const wordsOf = ({ id, of }) => t("expected.cause." + id, { of }).trim();

  /** One cause, or several that the values cannot tell apart. */
  function listOf(causes) {
    const [{ left, before }] = causes,
      all = causes.map(({ parts }) => parts.map(wordsOf).join(" "));
    const said = all.length > 1 ? [t("expected.either"), h("ul", {}, all.map((why) => h("li", {}, h("b", {}, why))))] : [h("b", {}, all[0])];
    return [causes[0].parts.length > 1 && t("expected.pair"), " ", ...said, " ", t("expected.left", { left: sized(left), before: sized(before) })];
  }

  async function sayCause(lines, run) {
    cause.hidden = true;
    if (lines.every(({ outside }) => outside === 0)) return;
    const mine = drawn,
      isOld = () => mine !== drawn;
    sayOnce(cause, t("expected.searching"));
    cause.hidden = false;
    const { causesOf } = await diagnosisPart(),
      causes = await causesOf(lines, run, isOld).catch(() => null);
    if (isOld()) return;
    cause.hidden = causes === null;
    if (!causes) return;
    cause.replaceChildren(...(causes.length > 0 ? listOf(causes).filter(Boolean) : [t("expected.unnamed")]));
    app.say(cause.textContent, "cause");
  }

  function update(state) {
    const { expected } = state;
    if (element.hidden !== !expected) element.replaceChildren(...(expected ? parts : []));
    element.hidden = !expected;
    if (!expected || !state.answer) return;
    const { run, view } = app.seen(),
      key = [expected, run.answer];
    rtol.update(expected.rtol);
    atol.update(expected.atol);
    if (key.every((part, at) => part === drawn[at])) return;
    drawn = key;
    const lines = linesFor(expected.values, run, expected),
      digits = Math.max(...expected.values.map((one) => one.digits));
    const guesses = lines.filter(({ given }) => !given.isNamed && !given.isChosen && stepsThatFit(given, run, view).length > 1);
    note.textContent = [
      ...guesses.map(({ step }) => t("expected.guess", { step: worded(step.label, t) })),
      ...(digits > 0 ? [t("expected.digits", { digits })] : []),
    ].join(" ");
    note.hidden = note.textContent === "";
    body.replaceChildren(...lines.map((line) => lineRow(line, run, view)));
    sayVerdict(lines, run);
    app.say(verdict.textContent, "verdict");
    sayCause(lines, run).catch((problem) => {
      cause.hidden = true;
      app.cannotUse(problem);
    });
    if (app.hasNewValues) element.scrollIntoView({ block: "nearest" });
    app.hasNewValues = false;
  }
  return { element, update };
}
