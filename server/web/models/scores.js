/**
 * scores.js: log-probabilities and ranks of given words at one token, in the model as it is and in the changed one.
 */
import { field, h } from "../dom.js";
import { short } from "../request/tensor.js";
import { curlOf } from "../panels/export_formats.js";
import { pathOfModel } from "./case.js";
import { tableOf, wordCell } from "./table.js";
import { bodyOfScores, canScore, PASSED_MS, scoresAt } from "./textrun.js";

/** Words between commas. One in quotes keeps its spaces and commas, for vocabularies that have " Mary". */
export const wordsIn = (text) =>
  Array.from(text.matchAll(/\s*"([^"]*)"\s*|[^,]+/g), ([whole, quoted]) => quoted ?? whole.trim()).filter((word) => word !== "");

/** The refusal of a word of several tokens, in the page's words; "": the server refuses something else. @param {any} problem */
export function whyUnscored(t, problem, words) {
  const [, at] = /\/words\/(\d+)$/.exec(problem.pointer ?? "") ?? [],
    [, n] = / is (\d+) tokens/.exec(problem.message) ?? [];
  return at && n ? t("models.unscored", { word: wordsIn(words)[at], n }) : "";
}

/** The token that the text has there: of an encoder the token itself. @param {import("./textrun.js").TextRun} run */
const tokenOf = ({ facts, queries }, row) => queries[facts.kind === "encoder" ? row : row + 1] ?? "…";

/** @param {import("../main.js").App} app @param {(patch: object) => void} change */
export function createScores(app, change) {
  const { t } = app;
  const input = h("input", { type: "text", spellcheck: "false", autocomplete: "off", onchange: () => change({ words: input.value }) }),
    ofText = h("input", { type: "checkbox", onchange: () => change({ scoresText: ofText.checked }) }),
    refusal = h("p.refusal", { role: "status", hidden: true }),
    body = h("div.guesses", {}),
    copy = h("button.link", { type: "button", hidden: true, onclick: () => copyRequest() }, t("models.copy"));
  const send = (event) => {
    event.preventDefault();
    change({ words: input.value });
  };
  const element = h(
    "form.scores.rare",
    { onsubmit: send },
    field(t("models.score"), input, t("models.scoreHow")),
    h("label.check", {}, ofText, t("models.scoreText")),
    refusal,
    body,
    copy,
  );
  let drawn = [],
    wanted = null;

  const numbers = ({ log, rank }) => (rank < 0 ? [h("td", {}, "–"), h("td", {}, "–")] : [h("td", {}, short(log)), h("td", {}, String(rank))]);

  /** @param {Awaited<ReturnType<typeof scoresAt>>[]} before @param {Awaited<ReturnType<typeof scoresAt>>[] | undefined} after */
  function show(token, names, before, after) {
    const [scores, changed] = [before, after].map((answers) => answers?.flatMap((answer) => answer.scores)),
      head = [t("models.log"), t("models.rank")];
    const line = (word, at) => h("tr", {}, wordCell(word), numbers(scores[at]), changed && numbers(changed[at]));
    const perplexities = [before, after].map((answers) => answers?.at(-1).perplexity);
    body.replaceChildren(
      tableOf(t("models.scores", { token }), [t("models.word"), ...head, ...(after ? head.map((name) => t("models.afterOf", { name })) : [])], names.map(line)),
      perplexities[0] === undefined
        ? ""
        : h("p.perplexity", {}, after ? t("models.perplexityWas", { now: short(perplexities[1]), before: short(perplexities[0]) }) : t("models.perplexity", { now: short(perplexities[0]) })),
    );
  }

  /** A refusal stands beside the field. */
  function refuse(problem) {
    refusal.textContent = problem ? whyUnscored(t, problem, drawn[3]) || app.wordsOf(problem) : "";
    refusal.hidden = !problem;
    input.setAttribute("aria-invalid", String(Boolean(problem)));
  }

  function copyRequest() {
    const [run, , row, words] = drawn,
      list = wordsIn(words);
    app.copyText(curlOf(pathOfModel(run.facts.name), bodyOfScores(run, row, list.length > 0 ? list : "next")));
  }

  async function fill(run, base, row, words, isOfText) {
    const mine = (wanted = [run, row]),
      list = wordsIn(words),
      asked = [...(list.length > 0 ? [list] : []), ...(isOfText ? [/** @type {"next"} */ ("next")] : [])];
    copy.hidden = asked.length === 0;
    if (asked.length === 0) {
      refuse(null);
      body.replaceChildren();
      return;
    }
    body.setAttribute("aria-busy", "true");
    await new Promise((resolve) => setTimeout(resolve, PASSED_MS));
    if (wanted !== mine) return;
    try {
      const runs = run === base ? [base] : [base, run],
        [before, after] = await Promise.all(runs.map((one) => Promise.all(asked.map((given) => scoresAt(one, row, given)))));
      if (wanted !== mine) return;
      refuse(null);
      show(run.queries[row], [...list, ...(isOfText ? [tokenOf(run, row)] : [])], before, after);
      app.retries.done(element);
    } catch (problem) {
      if (wanted !== mine) return;
      body.replaceChildren();
      refuse(problem);
      if (problem.key === "gone") app.retries.add(element, () => wanted === mine && fill(run, base, row, words, isOfText));
    }
    if (wanted === mine) body.setAttribute("aria-busy", "false");
  }

  /** @param {import("./textrun.js").TextRun} run @param {import("./textrun.js").TextRun} base @param {import("./view_state.js").ViewState} viewState */
  function update(run, base, { row, words, scoresText }) {
    const key = [run, base, row, words, scoresText];
    if (key.every((part, at) => part === drawn[at])) return;
    if (words !== drawn[3]) input.value = words;
    drawn = key;
    ofText.checked = scoresText;
    element.hidden = !canScore(run);
    app.retries.cancel(element);
    wanted = null;
    body.setAttribute("aria-busy", "false");
    if (!element.hidden) fill(run, base, row, words, scoresText);
  }
  return { element, update };
}
