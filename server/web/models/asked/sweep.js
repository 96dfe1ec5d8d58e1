/**
 * sweep.js: a sweep: the model runs once for each layer and head, or each layer and token, with a change there. A map shows how
 * far each change moves what the model says at one token.
 */
import { bdi, choice, h } from "../../dom.js";
import { extentOf, scaleOf } from "../../maps/colour.js";
import { HeatmapView } from "../../maps/heatmap.js";
import { short } from "../../request/tensor.js";
import { canPatch, isPatched, whyUnpatched } from "../changes.js";
import { measuredAt, plain, signed } from "../measured.js";
import { answerAbout, bodyOf, canPredict } from "../textrun.js";
import { SWEEP_DO, SWEEP_OVER } from "../view_state.js";

/** In CSS pixels. */
const HEIGHT = 320;

/** What is changed at each place. */
const PLACES = { head: "context", query: "hidden" };

/** Of an encoder-decoder, heads are those of the shown part. Beside the maps to the encoder, the tokens are the encoder's: their keys. */
const isOfEncoder = (run, over) => run.part === "cross_attention" && over === "query";
const partOf = (run, over) => (run.part === "attention" ? {} : { part: isOfEncoder(run, over) ? "encoder" : run.part.split("_")[0] });
const axisOf = (run, over) => (isOfEncoder(run, over) ? "keys" : "queries");
const tokensOf = (run) => run[axisOf(run, "query")];

/** What a run says at a token without each of its heads. @returns {Promise<{values: number[][], before: number}>} log-probabilities of the word */
export async function sweptHeads(run, row, words) {
  const sweep = { at: PLACES.head, ...partOf(run, "head"), over: ["layer", "head"], do: "zero" },
    { values, unchanged } = (await answerAbout(run, bodyOf(run, { return: ["sweep"], metric: { words, query: row }, sweep, digits: 6 }))).outputs.sweep;
  return { values: values[0].map((heads) => heads.map(Number)), before: Number(unchanged[0]) };
}

/** @param {import("../../main.js").App} app @param {(patch: object) => void} change @returns {import("./questions.js").Question} */
export function createSweep(app, change) {
  const { t } = app,
    over = choice(SWEEP_OVER.map((id) => [id, t("models.sweepOver." + id)]), SWEEP_OVER[0], (value) => change({ sweepOver: value })),
    what = choice(SWEEP_DO.map((id) => [id, t("models.sweepDo." + id)]), SWEEP_DO[0], (value) => change({ sweepDo: value })),
    unpatched = h("p.note", {}),
    readout = h("p.readout", {});
  /** The shown sweep. */
  let shown = null;

  /** Rows of a sweep over queries begin with the embeddings. */
  function placeAt(row, col) {
    if (shown.over === "head") return t("models.headAt", { layer: row, head: col });
    const token = plain(tokensOf(shown.run)[col]);
    return row === 0 ? t("models.embeddingAt", { token }) : t("models.tokenAt", { layer: row - 1, token });
  }
  const changeAt = (row, col) => signed(short(shown.matrix.data[row * shown.matrix.cols + col]));
  const describe = (row, col) => `${placeAt(row, col)}, ${changeAt(row, col)}`;
  const showReadout = (cell) => {
    const { row, col } = cell ?? map.focus;
    readout.replaceChildren(bdi(placeAt(row, col)), h("b", {}, changeAt(row, col)));
  };
  const map = new HeatmapView({
    describe,
    onhover: showReadout,
    onselect: (row, col) => {
      showReadout(null);
      app.say(describe(row, col));
      if (shown.over === "head") change({ layer: row, head: col });
    },
    onpaint() {},
    onkey: () => false,
  });

  function show(run, overWhat, name, matrix, largest) {
    const extent = extentOf(matrix.data),
      { rows, cols } = matrix,
      isOverHeads = overWhat === "head";
    shown = { run, over: overWhat, matrix };
    map.focus = { row: Math.floor(largest / cols), col: largest % cols };
    map.show({
      matrix,
      scale: scaleOf(app.appearance(), extent, false),
      isHidden: () => false,
      rowLabels: isOverHeads ? null : [t("models.embedding"), ...Array.from({ length: rows - 1 }, (_, layer) => String(layer))],
      colLabels: isOverHeads ? null : tokensOf(run),
      rowPrefix: "",
      colPrefix: "",
      isWeight: false,
      extent,
      hasTotals: false,
      title: name,
      fileTitle: name,
      corner: "",
      key: name,
      step: null,
      rowAxis: t(isOverHeads ? "models.layer" : "models.afterLayer").toLowerCase(),
      colAxis: t(isOverHeads ? "models.head" : isOfEncoder(run, overWhat) ? "axis.key" : "axis.query"),
      height: HEIGHT,
      reservedWidth: 0,
      hasHidden: false,
      isPainting: false,
    });
    showReadout(null);
  }

  /** @param {import("./questions.js").Seen} seen */
  async function answer({ run, viewState, other }, signal) {
    const { row, words, sweepOver } = viewState,
      isReplaced = viewState.sweepDo === "replace" && canPatch(run, other, axisOf(run, sweepOver)),
      sweepDo = viewState.sweepDo === "replace" && !isReplaced ? "zero" : viewState.sweepDo,
      isPaired = isReplaced || isPatched(run.changes),
      measured = await measuredAt(run, row, words);
    const sweep = { at: PLACES[sweepOver], ...partOf(run, sweepOver), over: ["layer", sweepOver], do: sweepDo, ...(isReplaced ? { from: 1 } : {}), ...(isPaired ? { items: [0] } : {}) },
      options = { return: ["sweep"], metric: { words: measured.words, query: row }, sweep, digits: 6 },
      body = bodyOf({ ...run, other: other?.inputs }, options, isPaired);
    const { values, unchanged } = (await answerAbout(run, body, signal)).outputs.sweep,
      before = Number(unchanged[0]),
      data = Float32Array.from(values[0].flat(), (value) => Number(value) - before),
      largest = data.reduce((best, value, at) => (Math.abs(value) > Math.abs(data[best]) ? at : best), 0);
    const measure = t(measured.names.length > 1 ? "models.measured.two" : "models.measured.log", { word: measured.names[0], other: measured.names[1] ?? "" });
    show(run, sweepOver, t("models.question.sweep"), { rows: values[0].length, cols: values[0][0].length, data }, largest);
    const { row: layer, col } = map.focus;
    return {
      sentence: t("models.sweepSaid", { measure, token: plain(run.queries[row]), before: short(before), change: changeAt(layer, col), place: placeAt(layer, col), what: t("models.sweepDo." + sweepDo) }),
      content: [h("div.sweep", {}, readout, map.element)],
      body,
    };
  }

  const update = ({ run, viewState, other }) => {
    over.value = viewState.sweepOver;
    const axis = axisOf(run, viewState.sweepOver),
      isPossible = canPatch(run, other, axis),
      last = what.querySelector("[value=replace]");
    last.hidden = !other;
    last.disabled = !isPossible;
    unpatched.textContent = whyUnpatched(t, run, other, axis);
    unpatched.hidden = unpatched.textContent === "";
    what.value = viewState.sweepDo === "replace" && !isPossible ? "zero" : viewState.sweepDo;
  };
  const label = (text, control) => h("label.check", {}, text, control);
  return {
    id: "sweep",
    isFor: (run) => canPredict(run) && run.facts.returns.includes("sweep"),
    controls: [label(t("models.sweepOver"), over), label(t("models.sweepDo"), what), unpatched],
    update,
    answer,
  };
}
