/**
 * steps.js: the matrices of a computation, in their order, and what their rows and columns are.
 *
 * @typedef {object} Step
 * @property {string} id name of the output, or "in.query", "w.query", …
 * @property {string} label as in the papers
 * @property {string} group
 * @property {string[]} path in the request, if it is a tensor of it: then it can be edited
 * @property {"query" | "key" | "feature"} rows
 * @property {"query" | "key" | "feature"} cols
 * @property {boolean} isWeight values from 0 to 1
 * @property {"kv" | "q" | ""} perHead heads that have one each: of keys, of queries, or none
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
  step("projected", "projected", "mix", "query", "feature"),
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

/** Words of formulas and labels. Names of functions, as exp and softmax, are the same in every language. */
const WORDS = /\b(attention output|bias|context|dropped|head|input|key|mask|masked|mean|output|projected|residual|scale|scaled|score|sink|softcap|value|variance|weight)\b/g;

/** A formula or a step's label in the language of the page. @param {string} text @param {(key: string) => string} t */
export const worded = (text, t) => text.replace(WORDS, (word) => t("word." + word));

/**
 * @param {{given: object, answer: object}} run
 * @returns {Step[]} those of the run
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

/** Whether its cells can be edited: only those of nested arrays can. */
export const isEditable = (one, request) =>
  one.path !== null && Array.isArray(one.path.reduce((inner, name) => inner?.[name], request));

/** Tensors of a request are parsed once, because requests never change. */
const read = new WeakMap();

/** @param {Step} one */
export function tensorIn(one, { given, answer }) {
  if (!one.path) return answer.outputs[one.id];
  const json = one.path.reduce((inner, name) => inner[name], given.request);
  if (!read.has(json)) read.set(json, tensorFrom(json));
  return read.get(json);
}

/** Number of query heads that share one key head. */
export function groupSize(outputs) {
  const heads = outputs.attention?.shape[1] ?? 1;
  return heads / (outputs.k?.shape[1] ?? heads);
}

/**
 * The matrix of a step for the head and the batch item of a view.
 * @param {Step} one
 * @returns {import("./tensor.js").Matrix}
 */
export function matrixIn(one, run, view, tensor = tensorIn(one, run)) {
  const head = one.perHead === "kv" ? Math.floor(view.head / groupSize(run.answer.outputs)) : view.head;
  if (tensor.shape.length === 3 && one.path?.[0] === "weights") return matrixOf(tensor, head, head);
  return matrixOf(tensor, view.batch, head);
}

/** Path of one number in the request, for an editable tensor of rank 2 to 4. */
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
 * The names of rows or columns: their tokens, if there are as many.
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
