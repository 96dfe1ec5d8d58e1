/**
 * explain.js: explains one number: its dot product, its softmax or its norm, with the numbers filled in.
 *
 * @typedef {{own: string}} Own a word of the page's own, not of the request: it is translated
 * @typedef {{head: string[], lines: (string | number | Own)[][], marked: number}} Terms a table; marked: index of a line, or -1
 * @typedef {string | [string | Own, string]} Part of a written formula; with a kind: "of-q", "of-k" and "of-v" are numbers of
 *          Q, K and V, and "name" is the name of a term
 * @typedef {(value: number, digits?: number) => string} Write
 * @typedef {(kind: "input" | "query" | "value", column: number, within?: number) => string} NameOf names a column of X, of
 *          all heads' Q and K, or of all heads' V; within: the column in its head
 * @typedef {{formula: string, terms: Terms | null, notes: any[][], value: number | null, column?: string,
 *            worked?: (write: Write) => Part[]}} Explanation worked: the formula with numbers
 *          column: letter of the cell's column in the formula, if it is not j; the row is i
 */
import { rowMoments } from "../request/linear.js";
import { worded } from "../request/steps.js";

/** @type {NameOf} */
const plainNames = (kind, column, within = column) => "d" + within;

/** @param {string} word @returns {Own} */
const own = (word) => ({ own: word });

/** Names of cells in formulas; other steps go by their label. */
const CELL_NAMES = { scores: "score", scaled: "scaled", masked: "masked", attention: "weight", dropped: "dropped", context: "context", projected: "projected", residual: "residual" };

/** "weight[home, go]": a cell in words. @param {import("../request/steps.js").Step} step @param {{i: string, j: string}} names */
export const cellName = ({ id, label }, { i, j }, t) => `${worded(CELL_NAMES[id] ?? label, t)}[${i}, ${j}]`;

const TERMS_WORKED = 3;

/** Digits of numbers that are in an exponent, or near 1. */
const EXACT = 7;

/** "of-q" for Q and W_Q; "" for a matrix that is of none of the three. */
const kindOf = (name) => (/^(W_)?[QKV]$/.test(name) ? "of-" + name.at(-1).toLowerCase() : "");

/** Explains a sum of products. */
function products(formula, names, a, b, labels, start = 0) {
  const lines = labels.map((label, n) => [label, a(n), b(n), a(n) * b(n)]);
  const sum = lines.reduce((total, line) => total + line[3], start);
  const more = start !== 0 ? [[own("bias"), "", "", start]] : [];
  return {
    formula,
    terms: { head: ["", names[0], names[1], "×"], lines: [...lines, ...more], marked: -1 },
    notes: [],
    value: sum,
    worked: (write) => workedSum(lines, names, sum, write, start),
  };
}

/** A negative number inside a formula. */
const bracketed = (text) => (text[0] === "−" ? `(${text})` : text);

/** The largest terms of a sum by name, what the others add, and the result. @returns {any[]} Parts */
function workedSum(lines, names, sum, write, start) {
  const size = ([, a, b]) => Math.abs(a * b) + 1e-9 * (Math.abs(a) + Math.abs(b)),
    ordered = [...lines].sort((one, other) => size(other) - size(one)),
    rest = ordered.slice(TERMS_WORKED).reduce((total, line) => total + line[3], 0);
  const [kindA, kindB] = names.map(kindOf);
  const terms = ordered.slice(0, TERMS_WORKED).map(([name, a, b]) => [[bracketed(write(a)), kindA], " · ", [bracketed(write(b)), kindB], " ", [name, "name"]]);
  if (rest !== 0) terms.push([bracketed(write(rest)), " ", ["…", "name"]]);
  if (start !== 0) terms.push([bracketed(write(start)), " ", [own("bias"), "name"]]);
  return [...terms.flatMap((term, at) => (at === 0 ? term : [" + ", ...term])), ` = ${write(sum)}`];
}

const range = (length) => Array.from({ length }, (_, at) => at);

const row = (tensor, b, i) => {
  const width = tensor.shape.at(-1),
    from = (b * tensor.shape[1] + i) * width;
  return tensor.data.subarray(from, from + width);
};

/** Explains q, k or v of a layer: a row of the input times a column of the weight. */
function explainProjection(model, name, at, nameOf) {
  const { batch, i, h, j } = at;
  if (!model.isLayer) return { formula: name + " = input", terms: null, notes: [["givenAsIs"]], value: null };
  const d = model.steps[name].shape[3],
    linear = model.linear[name],
    x = row(model.sources[name], batch, i);
  const column = h * d + j;
  const letter = name.toUpperCase();
  const found = products(
    `${letter}[i, j] = Σ_d X[i, d] · W_${letter}[d, j]`,
    ["X", "W_" + letter],
    (n) => x[n],
    (n) => linear.cols[column][n],
    range(x.length).map((c) => nameOf("input", c)),
    linear.bias?.[column] ?? 0,
  );
  if (model.normed && x !== undefined && model.sources[name] === model.normed.query) found.notes.push(["normedFirst"]);
  return found;
}

function explainRotation(model, name, at, nameOf) {
  const source = model.steps[name[0]],
    d = source.shape[3];
  const from = ((at.batch * source.shape[1] + at.h) * source.shape[2] + at.i) * d;
  const lines = range(d).map((c) => [nameOf("query", at.h * d + c, c), source.data[from + c], model.steps[name].data[from + c]]);
  return {
    formula: "x′ = x cos mθ − y sin mθ,  y′ = y cos mθ + x sin mθ",
    value: lines[at.j][2],
    notes: [],
    terms: { head: ["", name[0].toUpperCase(), name[0].toUpperCase() + "′"], lines, marked: at.j },
  };
}

function explainScore(model, at, nameOf) {
  const { dK, heads, kvHeads, qLen, kvLen } = model.size;
  const q = (model.steps.q_rotated ?? model.steps.q).data,
    k = (model.steps.k_rotated ?? model.steps.k).data;
  const from = ((at.batch * heads + at.h) * qLen + at.i) * dK;
  const to = ((at.batch * kvHeads + Math.floor((at.h * kvHeads) / heads)) * kvLen + at.j) * dK;
  return products(
    "score[i, j] = Σ_d Q[i, d] · K[j, d]",
    ["Q", "K"],
    (n) => q[from + n],
    (n) => k[to + n],
    range(dK).map((c) => nameOf("query", at.h * dK + c, c)),
  );
}

function explainScaled(model, at, line, options) {
  const { bend } = model,
    score = line.scores[at.j];
  const lines = [
    [own("score"), score],
    [own("scale"), model.scale],
    [own("score · scale"), score * model.scale],
  ];
  if (bend) lines.push([own(bend.term[0]), bend.term[1]], [own(bend.formula.replace("{}", "score · scale")), line.scaled[at.j]]);
  const bent = (inner) => (bend ? bend.formula.replace("{}", inner) : inner);
  return {
    formula: `scaled[i, j] = ${bent("score[i, j] · scale")}` + (options.scale === undefined ? ",  scale = 1/√d_k" : ""),
    notes: [],
    worked: (write) => [
      bent(`${bracketed(write(score))} · ${write(model.scale)}`).replace(/\bc\b/g, bend ? write(bend.term[1]) : ""),
      ` = ${write(line.scaled[at.j])}`,
    ],
    terms: { head: ["", ""], lines, marked: lines.length - 1 },
    value: line.scaled[at.j],
  };
}

function hiddenNote(model, at) {
  const by = model.masks.hiddenBy(at.batch, at.h, at.i, at.j);
  return by ? [["hiddenBy", { mask: by }]] : [];
}

function explainMasked(model, at, line) {
  const added = line.masked[at.j] > -Infinity ? line.added[at.j] : -Infinity;
  const lines = [
    [own("scaled"), line.scaled[at.j]],
    [own("mask"), added],
  ];
  return {
    formula: "masked[i, j] = scaled[i, j] + mask[i, j]",
    terms: { head: ["", ""], lines, marked: -1 },
    worked: (write) => [`${write(line.scaled[at.j])} + ${bracketed(write(added))} = ${write(line.masked[at.j])}`],
    notes: hiddenNote(model, at),
    value: line.masked[at.j],
  };
}

/** Explains the whole row, because a weight depends on all scores of its row. */
function explainWeight(model, at, line, keyName) {
  const { top, sum, sink } = line;
  const lines = [],
    shown = range(line.masked.length).filter((j) => line.masked[j] > -Infinity || j === at.j);
  for (const j of shown) {
    const exp = sum > 0 ? Math.exp(line.masked[j] - top) : 0;
    lines.push([keyName(j), line.masked[j], exp, line.weights[j]]);
  }
  const before = line.masked.every((score, j) => score === line.scaled[j]) ? "scaled" : "masked";
  const marked = shown.indexOf(at.j);
  if (sink !== undefined) lines.push([own("sink"), sink, Math.exp(sink - top), Math.exp(sink - top) / sum]);
  const notes = [...hiddenNote(model, at), ...(sum > 0 ? [["softmaxSum", { top, sum }]] : [["noKeys"]])];
  return {
    formula: `weight[i, j] = exp(${before}[i, j] − max) / Σ exp(${before}[i, ·] − max)`,
    worked:
      sum > 0
        ? (write) => [`exp(${write(line.masked[at.j], EXACT)} − ${bracketed(write(top, EXACT))}) / ${write(sum, EXACT)} = ${write(line.weights[at.j], EXACT - 1)}`]
        : undefined,
    notes,
    value: line.weights[at.j],
    terms: { head: ["", "s", "exp(s − max)", "weight"], lines, marked },
  };
}

function explainDropped(model, at, line, options) {
  const p = options.dropout?.p ?? 0,
    value = model.steps.dropped?.data[indexOfCell(model, at)] ?? null;
  return {
    formula: "dropped[i, j] = weight[i, j] / (1 − p)  ∨  0",
    worked: (write) => [value ? `${write(line.weights[at.j])} / ${write(1 - p)} = ${write(value)}` : "0"],
    notes: [["dropoutSeed", { p, seed: options.dropout?.seed ?? 0 }]],
    value,
    terms: {
      head: ["", ""],
      lines: [
        [own("weight"), line.weights[at.j]],
        [own("1 − p"), 1 - p],
      ],
      marked: -1,
    },
  };
}

const indexOfCell = ({ size }, at) => ((at.batch * size.heads + at.h) * size.qLen + at.i) * size.kvLen + at.j;

function explainContext(model, at, line, keyName) {
  const { size, steps } = model,
    kv = at.batch * size.kvHeads + Math.floor((at.h * size.kvHeads) / size.heads);
  const dropped = steps.dropped?.data,
    from = indexOfCell(model, { ...at, j: 0 });
  const shown = range(size.kvLen).filter((j) => line.weights[j] > 0);
  const weight = (j) => (dropped ? dropped[from + j] : line.weights[j]);
  const found = products(
    "context[i, d] = Σ_j A[i, j] · V[j, d]",
    ["A", "V"],
    (n) => weight(shown[n]),
    (n) => steps.v.data[(kv * size.kvLen + shown[n]) * size.dV + at.j],
    shown.map(keyName),
  );
  return { ...found, column: "d" };
}

function explainConcat(model, at) {
  const { dV } = model.size,
    head = Math.floor(at.j / dV);
  return {
    formula: "concat[i] = [head 0 | head 1 | …]",
    terms: null,
    notes: [["fromHead", { head, feature: at.j % dV }]],
    value: row(model.steps.concat, at.batch, at.i)[at.j],
  };
}

function explainProjected(model, at, nameOf, named = "projected") {
  const x = row(model.steps.concat, at.batch, at.i),
    linear = model.linear.output;
  return products(
    `${named}[i, j] = Σ_d concat[i, d] · W_O[d, j]`,
    ["concat", "W_O"],
    (n) => x[n],
    (n) => linear.cols[at.j][n],
    range(x.length).map((c) => nameOf("value", c)),
    linear.bias?.[at.j] ?? 0,
  );
}

function explainResidual(model, at, named = "residual") {
  const sublayer = model.steps.projected ? "projected" : "concat",
    added = row(model.steps[sublayer], at.batch, at.i)[at.j];
  const x = row(model.inputs.query, at.batch, at.i)[at.j];
  return {
    formula: `${named}[i, j] = X[i, j] + ${sublayer}[i, j]`,
    worked: (write) => [`${write(x)} + ${bracketed(write(added))} = ${write(x + added)}`],
    terms: {
      head: ["", ""],
      lines: [
        [own("X"), x],
        [own(sublayer), added],
      ],
      marked: -1,
    },
    notes: [],
    value: x + added,
  };
}

function explainOutput(model, at, options, nameOf) {
  const before = model.steps.residual ?? model.steps.projected ?? model.steps.concat;
  const isNormed = model.isLayer && options.norm && options.norm.position !== "pre";
  if (!isNormed) {
    const found = model.steps.residual ? explainResidual(model, at, "output") : model.steps.projected ? explainProjected(model, at, nameOf, "output") : null;
    return found ?? { formula: "output", terms: null, notes: [["sameAsBefore"]], value: null };
  }
  const width = before.shape.at(-1),
    from = (at.batch * before.shape[1] + at.i) * width;
  const { mean, deviation } = rowMoments(before.data, from, width, options.norm);
  const x = before.data[from + at.j],
    { gain, shift } = model.affine;
  const lines = [
    [own("x"), x],
    [own("mean"), mean],
    [own("√(variance + ε)"), deviation],
    ["γ", gain[at.j]],
    ["β", shift[at.j]],
  ];
  return {
    formula: "(x − mean) / √(variance + ε) · γ + β",
    worked: (write) => [
      `(${write(x)} − ${bracketed(write(mean))}) / ${write(deviation)} · ${bracketed(write(gain[at.j]))} + ${bracketed(write(shift[at.j]))}`,
      ` = ${write(((x - mean) / deviation) * gain[at.j] + shift[at.j])}`,
    ],
    terms: { head: ["", ""], lines, marked: -1 },
    notes: [],
    value: ((x - mean) / deviation) * gain[at.j] + shift[at.j],
  };
}

/**
 * @param {import("../request/reference.js").Model} model
 * @param {string} id of the step
 * @param {{batch: number, h: number, i: number, j: number}} at cell; in steps of keys and values, h is their head
 * @param {(i: number) => object} lineOf computes row i of the map, as rowOf does
 * @param {(j: number) => string} keyName
 * @param {object} options of the request
 * @param {NameOf} [nameOf]
 * @returns {Explanation | null} null: an input, or a step that the page has no equation for
 */
export function explainCell(model, id, at, lineOf, keyName, options, nameOf = plainNames) {
  const line = ["scores", "scaled", "masked", "attention", "dropped", "context"].includes(id) ? lineOf(at.i) : null;
  switch (id) {
    case "q":
    case "k":
    case "v":
      return explainProjection(model, id, at, nameOf);
    case "q_rotated":
    case "k_rotated":
      return explainRotation(model, id, at, nameOf);
    case "scores":
      return explainScore(model, at, nameOf);
    case "scaled":
      return explainScaled(model, at, line, options);
    case "masked":
      return explainMasked(model, at, line);
    case "attention":
      return explainWeight(model, at, line, keyName);
    case "dropped":
      return explainDropped(model, at, line, options);
    case "context":
      return explainContext(model, at, line, keyName);
    case "concat":
      return explainConcat(model, at);
    case "projected":
      return explainProjected(model, at, nameOf);
    case "residual":
      return explainResidual(model, at);
    case "output":
      return options.feed_forward ? null : explainOutput(model, at, options, nameOf);
    default:
      return null;
  }
}
