/**
 * case_of_head.js: makes a case for the Lab from one layer of a run of a model.
 */
import { BARE } from "../request/presets.js";
import { base64OfBytes } from "../request/tensor.js";
import { strongest } from "./measures.js";
import { askForTensors, headOf } from "./textrun.js";

const STEPS_OF_LAYER = ["scores", "scaled", "masked", "v"];
/** In a layer that rotates queries and keys, the scores are products of these. */
const ROTATED = ["q_rotated", "k_rotated"],
  PLAIN = ["q", "k"];

const tensorInJson = (shape, data, dtype = "float32") => ({
  shape,
  dtype,
  base64: base64OfBytes(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
});

/** @returns {Promise<any>} tensors by name */
async function stepsOfLayer(run, layer, names) {
  const { tensors } = await askForTensors(run, { return: [...names, ...STEPS_OF_LAYER], layers: [layer] });
  return tensors;
}

/** The ratio of scaled to scores, at the score of largest magnitude. */
function scaleIn({ scores, scaled }) {
  let at = 0;
  for (let n = 1; n < scores.data.length; n++)
    if (Number.isFinite(scores.data[n]) && Math.abs(scores.data[n]) > Math.abs(scores.data[at] || 0)) at = n;
  return scaled.data[at] / scores.data[at];
}

/** The bias and the mask that lead from scaled to masked. */
function masksIn({ scaled, masked }) {
  const shape = masked.shape.slice(1);
  const bias = Float32Array.from(masked.data, (value, at) => (value === -Infinity ? 0 : value - scaled.data[at]));
  const attend = Uint8Array.from(masked.data, (value) => Number(value !== -Infinity));
  return {
    ...(bias.some((value) => value !== 0) ? { bias: tensorInJson(shape, bias) } : {}),
    ...(attend.includes(0) ? { attend: tensorInJson(shape, attend, "bool") } : {}),
  };
}

/** Whether q · k gives the last query's score of the first key; if not, the layer rotates q and k. */
function isMadeOf({ q, k, scores }) {
  const [rows, width] = q.shape.slice(-2);
  let sum = 0;
  for (let d = 0; d < width; d++) sum += q.data[(rows - 1) * width + d] * k.data[d];
  const score = scores.data[(rows - 1) * scores.shape.at(-1)];
  return Math.abs(sum - score) <= 1e-3 * Math.max(1, Math.abs(score));
}

async function requestOfLayer(run, layer) {
  const plain = await stepsOfLayer(run, layer, PLAIN),
    found = isMadeOf(plain) ? plain : await stepsOfLayer(run, layer, ROTATED);
  const tensor = (one) => tensorInJson(one.shape.slice(1), one.data);
  return {
    inputs: { query: tensor(found.q_rotated ?? found.q), key: tensor(found.k_rotated ?? found.k), value: tensor(found.v) },
    options: { scale: scaleIn(found) },
    masks: masksIn(found),
  };
}

/** @param {import("./textrun.js").TextRun} run @param {import("./view_state.js").ViewState} viewState @returns {Promise<import("../request/presets.js").Case>} */
export async function caseOfHead(run, { layer, head, row, range }) {
  const tokens = { query: run.queries, key: run.keys },
    col = strongest(await headOf(run, layer, head), row),
    view = { head, row, col, range };
  return { id: "", endpoint: BARE, request: { ...(await requestOfLayer(run, layer)), tokens }, view };
}
