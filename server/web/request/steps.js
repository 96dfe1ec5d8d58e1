/**
 * steps.js: the matrices of a computation in the order in which they arise, and what their rows and columns are.
 *
 * @typedef {object} Step
 * @property {string} id name of the output, or "in.query", "w.query", …
 * @property {string} label as in the papers
 * @property {string} group
 * @property {string[]} path where in the request it stands, when it does: then it can be edited
 * @property {"query" | "key" | "feature"} rows
 * @property {"query" | "key" | "feature"} cols
 * @property {boolean} isWeight values from 0 to 1
 * @property {"kv" | "q" | ""} perHead whether there is one for each head, of which kind
 */
import { matrixOf, tensorFrom } from "./tensor.js";

/** @returns {any} */
const step = (id, label, group, rows, cols, more = {}) => ({
  id,
  label,
  group,
  rows,
  cols,
  isWeight: false,
  perHead: "",
  path: null,
  ...more,
});

const OUTPUTS = [
  step("q", "Q", "project", "query", "feature", { perHead: "q" }),
  step("k", "K", "project", "key", "feature", { perHead: "kv" }),
  step("v", "V", "project", "key", "feature", { perHead: "kv" }),
  step("q_rotated", "Q′", "project", "query", "feature", { perHead: "q" }),
  step("k_rotated", "K′", "project", "key", "feature", { perHead: "kv" }),
  step("scores", "QKᵀ", "score", "query", "key", { perHead: "q" }),
  step("scaled", "· scale", "score", "query", "key", { perHead: "q" }),
  step("masked", "+ mask", "score", "query", "key", { perHead: "q" }),
  step("attention", "softmax", "attend", "query", "key", { perHead: "q", isWeight: true }),
  step("dropped", "dropout", "attend", "query", "key", { perHead: "q", isWeight: true }),
  step("context", "A V", "mix", "query", "feature", { perHead: "q" }),
  step("concat", "concat", "mix", "query", "feature"),
  step("projected", "· W_O", "mix", "query", "feature"),
  step("residual", "+ X", "finish", "query", "feature"),
  step("attention_output", "attention output", "finish", "query", "feature"),
  step("feed_forward", "FF", "finish", "query", "feature"),
  step("output", "output", "finish", "query", "feature"),
];

const INPUTS = [
  ["query", "X", "query"],
  ["key", "X key", "key"],
  ["value", "X value", "key"],
];
const WEIGHTS = [
  ["query", "W_Q"],
  ["key", "W_K"],
  ["value", "W_V"],
  ["qkv", "W_QKV"],
];

/**
 * @param {{given: object, answer: object}} run
 * @returns {Step[]} only those that there are
 */
export function stepsIn({ given, answer }) {
  const { inputs, weights = {} } = given.request;
  const found = [];
  for (const [name, label, rows] of INPUTS)
    if (inputs[name]) found.push(step("in." + name, label, "input", rows, "feature", { path: ["inputs", name] }));
  const weight = (name, label, group) =>
    step("w." + name, label, group, "feature", "feature", { path: ["weights", name, "weight"] });
  for (const [name, label] of WEIGHTS) if (weights[name]?.weight) found.push(weight(name, label, "input"));
  for (const one of OUTPUTS) {
    if (one.id === "projected" && weights.output?.weight) found.push(weight("output", "W_O", "mix"));
    const tensor = answer.outputs[one.id];
    if (tensor) found.push(one.id === "output" && tensor.shape.length === 4 ? { ...one, perHead: "q" } : one);
  }
  return found;
}

/** Whether its cells can be typed into: plain nested arrays only. */
export const isEditable = (one, request) =>
  one.path !== null && Array.isArray(one.path.reduce((inner, name) => inner?.[name], request));

/** Tensors of the request, which is never changed in place, are read once. */
const read = new WeakMap();

/** @param {Step} one */
export function tensorIn(one, { given, answer }) {
  if (!one.path) return answer.outputs[one.id];
  const json = one.path.reduce((inner, name) => inner[name], given.request);
  if (!read.has(json)) read.set(json, tensorFrom(json));
  return read.get(json);
}

/** Heads of queries that share one head of keys. */
export function groupSize(outputs) {
  const heads = outputs.attention?.shape[1] ?? 1;
  return heads / (outputs.k?.shape[1] ?? heads);
}

/**
 * The matrix of a step that a head and a batch item see.
 * @param {Step} one
 * @returns {import("./tensor.js").Matrix}
 */
export function matrixIn(one, run, view, tensor = tensorIn(one, run)) {
  const head = one.perHead === "kv" ? Math.floor(view.head / groupSize(run.answer.outputs)) : view.head;
  if (tensor.shape.length === 3 && one.path?.[0] === "weights") return matrixOf(tensor, head, head);
  return matrixOf(tensor, view.batch, head);
}

/** Path of one number of an editable tensor of rank 2 to 4, in the request. */
export function cellPath(one, request, view, row, col) {
  const json = one.path.reduce((inner, name) => inner[name], request);
  const rank = Array.isArray(json[0]?.[0]) ? (Array.isArray(json[0][0][0]) ? 4 : 3) : 2;
  const lead =
    rank === 2
      ? []
      : rank === 4
        ? [view.batch, view.head]
        : [one.path[0] === "weights" ? Math.min(view.head, json.length - 1) : Math.min(view.batch, json.length - 1)];
  return [...one.path, ...lead, row, col];
}

const listFor = (tokens, batch) => (Array.isArray(tokens?.[0]) ? tokens[Math.min(batch, tokens.length - 1)] : tokens);

/**
 * What a row or column is called: its token, else its number.
 * @param {"query" | "key" | "feature"} kind
 * @returns {string[] | null} null: numbers
 */
export function labelsFor(kind, request, view, length) {
  if (kind === "feature") return null;
  const tokens = request.tokens ?? {};
  const list = listFor(kind === "key" && (tokens.key || request.inputs.key) ? tokens.key : tokens.query, view.batch);
  return list && list.length === length ? list : null;
}

export const labelAt = (labels, at) => (labels ? labels[at] : String(at));
