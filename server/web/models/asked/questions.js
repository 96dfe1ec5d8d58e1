/**
 * questions.js: what can be asked about a text beside its maps and predictions. One question is open at a time.
 *
 * @typedef {import("../textrun.js").TextRun} TextRun
 * @typedef {{run: TextRun, viewState: import("../view_state.js").ViewState, other?: TextRun}} Seen other: the run of a second text
 * @typedef {{sentence: string, content: any[], body: object}} Answered what is said and shown, and the request that asks it
 *
 * @typedef {object} Question
 * @property {string} id
 * @property {(run: TextRun) => boolean} isFor
 * @property {any[]} controls
 * @property {(seen: Seen) => void} [update] of the controls
 * @property {(seen: Seen, signal: AbortSignal) => Promise<Answered>} answer
 */
import { bdi, h } from "../../dom.js";
import { curlOf } from "../../panels/export_formats.js";
import { short } from "../../request/tensor.js";
import { createAttribution } from "./attribution.js";
import { pathOfModel } from "../case.js";
import { createGeneration } from "./generation.js";
import { plain, unended } from "../measured.js";
import { whyUnscored } from "../scores.js";
import { createSweep } from "./sweep.js";
import { tableOf } from "../table.js";
import { bodyOf, expertsAt, PASSED_MS } from "../textrun.js";

/** What each token chose in every layer of a mixture of experts. @param {import("../../main.js").App} app @returns {Question} */
function createExperts(app) {
  const { t } = app;
  const line = (run, row, layer) => {
    const chosen = expertsAt(run, layer, row).map(({ expert, weight }) => `${expert} (${short(weight, 3)})`);
    return h("tr", {}, h("th", { scope: "row" }, String(layer)), h("td", {}, chosen.join(", ") || "–"));
  };
  const answer = async ({ run, viewState: { row } }) => ({
    sentence: t("models.expertsSaid", { token: plain(run.queries[row]) }),
    content: [tableOf(t("models.question.experts"), [t("models.layer"), t("models.expertsOf")], Array.from({ length: run.layers }, (_, layer) => line(run, row, layer)))],
    body: bodyOf(run, { return: ["experts"], queries: [row], digits: 4 }),
  });
  return { id: "experts", isFor: (run) => Boolean(run.experts), controls: [], answer };
}

/** @param {import("../../main.js").App} app @param {(patch: object) => void} change */
export function createQuestions(app, change) {
  const { t } = app,
    generation = createGeneration(app, change),
    /** @type {Question[]} */
    questions = [createSweep(app, change), createAttribution(app), generation, createExperts(app)];
  const buttons = questions.map(({ id }) =>
    h("button", { type: "button", onclick: () => change({ question: seen.viewState.question === id ? "" : id }) }, t("models.question." + id)),
  );
  const how = h("p.note", {}),
    controls = h("div.row-of", {}),
    sentence = h("p.said", {}),
    content = h("div.guesses", {}),
    copy = h("button.link", { type: "button", onclick: () => app.copyText(curlOf(pathOfModel(seen.run.facts.name), asked)) }, t("models.copy")),
    opened = h("div.question", {}, how, controls, sentence, content, copy),
    element = h(
      "section.questions.rare",
      {},
      h("div.head", {}, h("h2", {}, t("models.questions")), h("span.segments", { role: "group", "aria-label": t("models.questions") }, buttons)),
      opened,
    );
  /** @type {Seen} */
  let seen,
    drawn = [],
    wanted = null,
    running = null,
    asked = null;

  function show(answered) {
    sentence.replaceChildren(...(answered?.sentence ? [bdi(answered.sentence)] : []));
    sentence.hidden = !answered?.sentence;
    content.replaceChildren(...(answered?.content ?? []));
    asked = answered?.body;
    copy.hidden = !asked;
  }

  /** The button that stopped the request is gone: the focus moves on from it. */
  function stopped(again) {
    const button = h("button", { type: "button", onclick: again }, t("again"));
    content.replaceChildren(h("p.note", {}, t("models.stopped")), button);
    button.focus();
  }

  async function fill(question, now) {
    const mine = (wanted = now);
    running?.abort();
    running = new AbortController();
    content.setAttribute("aria-busy", "true");
    await new Promise((resolve) => setTimeout(resolve, PASSED_MS));
    if (wanted !== mine) return;
    try {
      const answered = await question.answer(now, running.signal);
      if (wanted !== mine) return;
      show(answered);
      app.say(unended(answered.sentence), "question");
      app.retries.done(content);
    } catch (problem) {
      if (wanted !== mine) return;
      const again = () => wanted === mine && fill(question, now);
      show(null);
      if (problem.key === "stopped") stopped(again);
      else content.replaceChildren(h("p.note", {}, whyUnscored(t, problem, now.viewState.words) ? t("models.unasked") : app.wordsOf(problem)));
      if (problem.key === "gone") app.retries.add(content, again);
    }
    content.setAttribute("aria-busy", "false");
  }

  /** @param {Seen} now */
  function update(now) {
    const { run, viewState, other } = now,
      { question: id, row, words, sweepOver, sweepDo } = viewState,
      question = questions.find((one) => one.id === id && one.isFor(run)),
      key = [run, other, question, row, words, sweepOver, sweepDo, app.appearance().isDark];
    seen = now;
    questions.forEach((one, at) => {
      buttons[at].hidden = !one.isFor(run);
      buttons[at].setAttribute("aria-pressed", String(one === question));
    });
    element.hidden = buttons.every((button) => button.hidden);
    opened.hidden = !question;
    for (const one of questions) one.update?.(now);
    if (key.every((part, at) => part === drawn[at])) return;
    if (question !== drawn[2]) {
      show(null);
      controls.replaceChildren(...(question?.controls ?? []));
      how.textContent = question ? t("models.questionHow." + question.id) : "";
    }
    drawn = key;
    app.retries.cancel(content);
    wanted = null;
    running?.abort();
    content.setAttribute("aria-busy", "false");
    if (question) fill(question, now);
  }
  return { element, update, addToken: () => generation.isFor(seen.run) && (generation.add(), true) };
}
