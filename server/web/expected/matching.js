/**
 * matching.js: finds the step of a run that expected values belong to, by name and shape, and maps their cells to it.
 *
 * @typedef {import("../request/tensor.js").Tensor} Tensor
 * @typedef {{name: string, tensor: Tensor, digits: number}} Found
 * @typedef {{at: (n: number) => number, count: number}} Placing at: index of the n-th value in the run's tensor
 */
import { groupSize, stepsIn, tensorIn } from "../request/steps.js";
import { countOf } from "../request/tensor.js";

/** Other names of steps, in lower case, without spaces and signs. */
const ALIASES = {
  attention: ["attn", "attnweights", "attentionweights", "attnprobs", "probs", "softmax", "a", "p"],
  scores: ["score", "logits", "qk", "qkt", "energy"],
  scaled: ["scaledscores"],
  masked: ["maskedscores"],
  context: ["contextlayer", "ctx", "av"],
  concat: ["concatenated", "merged"],
  output: ["out", "attnoutput", "y", "o"],
  q: ["queries"],
  k: ["keys"],
  v: ["values"],
  "in.query": ["x", "inputsquery"],
  "in.key": ["inputskey"],
  "in.value": ["inputsvalue"],
  "w.query": ["wq", "weightsqueryweight", "qprojweight"],
  "w.key": ["wk", "weightskeyweight", "kprojweight"],
  "w.value": ["wv", "weightsvalueweight", "vprojweight"],
  "w.output": ["wo", "weightsoutputweight", "oprojweight", "outprojweight"],
  "b.query": ["bq", "weightsquerybias", "qprojbias"],
  "b.key": ["bk", "weightskeybias", "kprojbias"],
  "b.value": ["bv", "weightsvaluebias", "vprojbias"],
  "b.output": ["bo", "weightsoutputbias", "oprojbias", "outprojbias"],
};

/** Outputs of an answer that the page does not show as steps. */
const NO_STEPS = ["mask", "lse", "entropy"];

const plainName = (name) => name.toLowerCase().replace(/^outputs\./, "").replace(/\.npy$/, "").replace(/[^\p{L}\d]/gu, "");

/** @returns {import("../request/steps.js").Step | undefined} */
export function stepNamed(name, steps) {
  const plain = plainName(name);
  return steps.find(({ id }) => plainName(id) === plain || ALIASES[id]?.includes(plain));
}

const squeezed = (shape) => shape.filter((size) => size !== 1).join();

/** Index of the first number that belongs to a head and a batch item. */
function startOf(own, rank, step, run, { batch, head }) {
  const lead = own.slice(0, own.length - rank),
    size = countOf(own.slice(own.length - rank));
  const h = step.perHead === "kv" ? Math.floor(head / groupSize(run.answer.outputs)) : head;
  if (lead.length === 2) return (batch * lead[1] + h) * size;
  return (step.path?.[0] === "weights" ? h : batch) * size;
}

/**
 * Accepts the whole tensor; the layout (batch, length, heads, d), with or without joined heads; or the shown part.
 * @returns {Placing | null} null: the shape fits in no way
 */
export function placingOf(found, step, run, view) {
  const own = tensorIn(step, run).shape,
    { shape } = found.tensor,
    count = countOf(shape);
  if (squeezed(shape) === squeezed(own)) return { at: (n) => n, count };
  const [batch, heads, length, d] = own;
  const headsLast = [[batch, length, heads, d], [batch, length, heads * d]].map(squeezed);
  if (own.length === 4 && headsLast.includes(squeezed(shape)))
    return {
      at: (n) => {
        const b = Math.floor(n / (length * heads * d)),
          i = Math.floor(n / (heads * d)) % length;
        return ((b * heads + (Math.floor(n / d) % heads)) * length + i) * d + (n % d);
      },
      count,
    };
  const rank = shape.length;
  if (rank < 2 || rank >= own.length || String(own.slice(-rank)) !== String(shape)) return null;
  const start = startOf(own, rank, step, run, view);
  return { at: (n) => start + n, count };
}

function rowsSumToOne({ shape, data }) {
  const cols = shape.at(-1) ?? 1;
  for (let from = 0; from < data.length; from += cols) {
    let sum = 0;
    for (const value of data.subarray(from, from + cols)) {
      if (!(value >= 0)) return false;
      sum += value;
    }
    if (Math.abs(sum - 1) > 1e-2) return false;
  }
  return true;
}

/** Squared distance, over cells where both numbers are finite. */
function distance(found, placing, own) {
  let sum = 0;
  for (let n = 0; n < placing.count; n++) {
    const between = found.tensor.data[n] - own.data[placing.at(n)];
    if (between - between === 0) sum += between * between;
  }
  return sum;
}

/** @returns {import("../request/steps.js").Step[]} those whose shape the values have */
export const stepsThatFit = (found, run, view) => stepsIn(run).filter((step) => placingOf(found, step, run, view));

/** Values closer to a step than this share of their size belong to the step. */
const SURELY = 0.05;

const sizeOf = ({ data }) => data.reduce((sum, value) => (value - value === 0 ? sum + value * value : sum), 0);

/**
 * Decides by name; for weights and masked scores by their numbers; by closeness to a step; else for the output, if it
 * has the shape. A mistake leads away from every step, and most people bring the output.
 * @returns {import("../request/steps.js").Step | undefined}
 */
export function guessedStep(found, run, view) {
  if (NO_STEPS.includes(plainName(found.name))) return undefined;
  const steps = stepsThatFit(found, run, view),
    named = stepNamed(found.name, steps);
  if (named) return named;
  const computed = steps.filter(({ path }) => !path),
    ofId = (id) => computed.find((step) => step.id === id);
  if (found.tensor.data.includes(-Infinity) && ofId("masked")) return ofId("masked");
  if (ofId("attention") && rowsSumToOne(found.tensor)) return ofId("attention");
  const apart = new Map(computed.map((step) => [step, distance(found, placingOf(found, step, run, view), tensorIn(step, run))]));
  const output = ofId("output"),
    [nearest] = computed.sort((a, b) => apart.get(a) - apart.get(b) || Number(b === output) - Number(a === output));
  if (nearest && apart.get(nearest) <= SURELY ** 2 * sizeOf(found.tensor)) return nearest;
  return output ?? nearest ?? steps[0];
}
