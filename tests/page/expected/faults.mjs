/**
 * faults.mjs: 200 planted faults, 100 right values, and values that are wrong for another reason, at the sizes that people bring.
 *
 * Each fault is planted in the output, and in the weights where it shows there. It counts as named if the page names it, alone
 * or among causes that the values cannot tell apart. Nothing else may be named. The larger size takes minutes: ATTN_LONG=1.
 */
import assert from "node:assert/strict";
import { linesFor, DEFAULT_TOLERANCE } from "../../../server/web/expected/differences.js";
import { guessedStep } from "../../../server/web/expected/matching.js";
import { randomMatrix } from "../../../server/web/request/tokens.js";
import { causesIn, cut, each, halfSoftmax, interleaved, layer, reshaped, runOf, softmax, tensorOf, toHalf, turned, VIEW } from "./planted.mjs";

const FAULTS = 200,
    RIGHT = 100,
    NAMED = 0.95;

const WEIGHTS = ["query", "key", "value", "output"];

let seed = 1000;

/** @param {{causal?: boolean, attend?: boolean, biased?: boolean, kvHeads?: number, rope?: boolean, longer?: number}} more */
function requestOf([length, width, heads], { causal, attend, biased, kvHeads = heads, rope, longer = 0 } = {}) {
    const columns = { query: width, key: (width * kvHeads) / heads, value: (width * kvHeads) / heads, output: width };
    const weight = (count) => ({ weight: randomMatrix(width, count, seed++), ...(biased ? { bias: randomMatrix(1, count, seed++, 1)[0] } : {}) });
    return {
        inputs: { query: randomMatrix(length, width, seed++, 1), ...(longer ? { key: randomMatrix(length + longer, width, seed++, 1) } : {}) },
        weights: Object.fromEntries(WEIGHTS.map((name) => [name, weight(columns[name])])),
        masks: {
            ...(causal ? { causal } : {}),
            ...(attend ? { attend: Array.from({ length }, (_, i) => Array.from({ length }, (__, j) => i === j || (7 * i + 3 * j) % 3 !== 0)) } : {}),
        },
        options: { num_heads: heads, ...(kvHeads < heads ? { kv_num_heads: kvHeads } : {}), ...(rope ? { rope: { layout: "half" } } : {}) },
    };
}

const turnedIn = ({ weights }, ...names) => ({ weights: Object.fromEntries(names.map((name) => [name, turned(weights[name].weight)])) });
const exchanged = ({ weights }, a, b) => ({ weights: { [a]: weights[b].weight, [b]: weights[a].weight } });
const joined = (width) => (all) => cut(all.flat(2), width);
const dropped = (value, i, j, h) => (Math.abs(Math.sin(91 * i + 57 * j + 33 * h + 5)) < 0.16 ? 0 : value / 0.9);

/** Ids of the page, what the request has, and the mistake. @type {[string, object, (request: any, size: number[]) => object][]} */
const ANYWHERE = [
    ["scaleNone", { causal: true }, () => ({ scale: 1 })],
    ["scaleWidth", {}, (_, [, width]) => ({ scale: 1 / Math.sqrt(width) })],
    ["scaleTwice", {}, (_, [, width, heads]) => ({ scale: heads / width })],
    ["maskNone", { causal: true }, () => ({ isHidden: () => false })],
    ["maskAfter", { causal: true }, () => ({ isLate: true })],
    ["maskZero", { causal: true }, () => ({ hidden: 0 })],
    ["maskInverted", { causal: true }, () => ({ isHidden: (i, j) => j <= i })],
    ["maskInverted", { attend: true }, ({ masks }) => ({ isHidden: (i, j) => masks.attend[i][j] })],
    ["causalAdded", {}, () => ({ isHidden: (i, j) => j > i })],
    ["causalStrict", { causal: true }, () => ({ isHidden: (i, j) => j >= i })],
    ["causalLoose", { causal: true }, () => ({ isHidden: (i, j) => j > i + 1 })],
    ["causalTop", { causal: true, longer: 3 }, () => ({ isHidden: (i, j) => j > i })],
    ["softmaxQueries", {}, () => ({ softmax: (a) => turned(turned(a).map(softmax)) })],
    ["softmaxHeads", {}, () => ({ isOverHeads: true })],
    ["dropoutScaled", {}, () => ({ softmax: (a) => each(a.map(softmax), (value) => value / 0.9) })],
    ["headsInterleaved", {}, () => interleaved],
    ["headsReshaped", {}, (_, [, width]) => ({ split: reshaped, join: joined(width) })],
    ["keysReshaped", { longer: 1 }, () => ({ transpose: (k) => cut(k.flat(), k.length) })],
    ["transposed", {}, (request) => turnedIn(request, "query")],
    ["transposed", { causal: true }, (request) => turnedIn(request, "key")],
    ["transposed", {}, (request) => turnedIn(request, ...WEIGHTS)],
    ["biasNone", { biased: true }, () => ({ forgets: WEIGHTS })],
    ["biasNone", { biased: true }, () => ({ forgets: ["query"] })],
    ["groupsTiled", { kvHeads: 2 }, () => ({ groupOf: (h) => h % 2 })],
    ["ropeNone", { rope: true }, () => ({ rope: null })],
    ["rope", { rope: true }, () => ({ rope: "interleaved" })],
    ["swapped", { causal: true }, (request) => exchanged(request, "query", "key")],
    ["swapped", {}, (request) => exchanged(request, "key", "value")],
    ["float16", { causal: true }, () => ({ round: toHalf })],
    ["float16.softmax", {}, () => ({ round: toHalf, softmax: (a) => a.map(halfSoftmax) })],
    ["scaleNone, maskNone", { causal: true }, () => ({ scale: 1, isHidden: () => false })],
    ["scaleNone, biasNone", { biased: true }, () => ({ scale: 1, forgets: WEIGHTS })],
    ["scaleNone, transposed", {}, (request) => ({ scale: 1, ...turnedIn(request, "query") })],
    ["scaleNone, causalAdded", {}, () => ({ scale: 1, isHidden: (i, j) => j > i })],
    ["transposed", {}, (request) => turnedIn(request, "query", "key")],
    ["maskNone, ropeNone", { causal: true, rope: true }, () => ({ rope: null, isHidden: () => false })],
];

/** They show in the output, or in the weights, alone. */
const IN_OUTPUT = [
        ["headsJoined", {}, (_, [, width]) => ({ join: joined(width) })],
        ["transposed", {}, (request) => turnedIn(request, "value")],
        ["biasNone", { biased: true }, () => ({ forgets: ["output"] })],
        ["maskNone, headsJoined", { causal: true }, (_, [, width]) => ({ isHidden: () => false, join: joined(width) })],
        ["transposed, transposed", {}, (request) => turnedIn(request, "value", "output")],
        ["scaleNone, headsReshaped", {}, (_, [, width]) => ({ scale: 1, split: reshaped, join: joined(width) })],
    ],
    IN_WEIGHTS = [["dropoutActive", {}, () => ({ drop: dropped })]];

const PLANTED = [
    ...ANYWHERE.flatMap((fault) => [[...fault, "output"], [...fault, "attention"]]),
    ...IN_OUTPUT.map((fault) => [...fault, "output"]),
    ...IN_WEIGHTS.map((fault) => [...fault, "attention"]),
];

const REQUESTS = [{}, { causal: true }, { biased: true }, { kvHeads: 2 }, { rope: true }, { attend: true }, { causal: true, longer: 3 }];

/** How other programs give numbers: whole, in float32, and with four digits. @type {[number, (value: number) => number][]} */
const FORMS = [
    [0, (value) => value],
    [0, Math.fround],
    [4, (value) => Math.round(value * 1e4) / 1e4],
];

const deep = (json, change) => (Array.isArray(json) ? json.map((one) => deep(one, change)) : change(json));

const idsOf = ({ parts }) => parts.map(({ id }) => id).join(", ");

async function namesFaults(size) {
    const said = { named: 0, alone: 0 },
        unnamed = [];
    for (let n = 0; n < FAULTS; n++) {
        const [id, more, plant, step] = PLANTED[n % PLANTED.length],
            request = requestOf(size, more),
            [digits, write] = id.startsWith("float16") ? FORMS[1] : FORMS[n % FORMS.length];
        const values = layer(request, plant(request, size))[step],
            given = { name: "", tensor: tensorOf(deep(values, write)), digits, view: VIEW };
        const run = runOf(request),
            guessed = guessedStep(given, run, VIEW);
        if (linesFor([{ ...given, step: guessed.id }], run, DEFAULT_TOLERANCE)[0].outside === 0) {
            unnamed.push(`${id} in ${step}: agrees`);
            continue;
        }
        const causes = await causesIn(request, { [guessed.id]: deep(values, write) }, digits),
            ids = causes.map(idsOf);
        assert.ok(causes.length === 0 || ids.includes(id), `${id} in ${step}: ${ids.join(" or ")} is said`);
        if (causes.length === 0) unnamed.push(`${id} in ${step}: nothing is said`);
        else said.named++;
        if (causes.length === 1) said.alone++;
    }
    assert.ok(said.named >= NAMED * FAULTS, `${said.named} of ${FAULTS}\n${unnamed.join("\n")}`);
    return `${said.named} of ${FAULTS}, ${said.alone} of them without another cause beside it; ${unnamed.join("; ")}`;
}

async function accusesNobody(size) {
    for (let n = 0; n < RIGHT; n++) {
        const request = requestOf(size, REQUESTS[n % REQUESTS.length]),
            [digits, write] = FORMS[n % FORMS.length],
            values = layer(request);
        for (const step of ["output", "attention"]) {
            const right = deep(values[step], write),
                [line] = linesFor([{ name: "", tensor: tensorOf(right), digits, step, view: VIEW }], runOf(request), DEFAULT_TOLERANCE);
            assert.equal(line.outside, 0, `${n}: ${line.own} and ${line.expected}`);
            assert.deepEqual(await causesIn(request, { [step]: right }, digits), []);
        }
    }
}

const noise = (value, i, j) => value + 0.02 * Math.sin(12.9 * i + 78.2 * j);

/** What no mistake of the list explains. @type {[string, object, (request: any) => object, (rows: number[][]) => number[][]][]} */
const OTHERS = [
    ["noise", {}, () => ({}), (rows) => each(rows, noise)],
    ["one wrong number", { causal: true }, () => ({}), (rows) => each(rows, (value, i, j) => (i === 2 && j === 3 ? value + 0.5 : value))],
    ["another scale", {}, () => ({ scale: 0.3 }), (rows) => rows],
    ["another scale, and the mask", { causal: true }, () => ({ scale: 2, isHidden: () => false }), (rows) => rows],
    ["rows in another order", {}, () => ({}), (rows) => [...rows.slice(1), rows[0]]],
    ["a wrong weight", { biased: true }, ({ weights }) => ({ weights: { value: each(weights.value.weight, (value, i, j) => (i === j ? -value : value)) } }), (rows) => rows],
    ["dropout at work", {}, () => ({ drop: dropped }), (rows) => rows],
    ["a mistake with noise", {}, () => ({ scale: 1 }), (rows) => each(rows, (value, i, j) => 3 * noise(value, j, i) - 2 * value)],
    ["other inputs", { rope: true }, (request) => ({ weights: Object.fromEntries(WEIGHTS.map((name, n) => [name, randomMatrix(request.weights[name].weight.length, request.weights[name].weight[0].length, 77 + n)])) }), (rows) => rows],
    ["nothing but zeros", {}, () => ({}), (rows) => each(rows, () => 0)],
];

async function saysNothing(size) {
    for (const [what, more, plant, write] of OTHERS) {
        const request = requestOf(size, more),
            causes = await causesIn(request, { output: write(layer(request, plant(request)).output) });
        assert.deepEqual(causes, [], `${what}: ${causes.map(idsOf).join(" or ")} is said`);
    }
}

const SIZES = [[6, 16, 4], ...(process.env.ATTN_LONG ? [[32, 64, 4]] : [])];

export const cases = Object.fromEntries(
    SIZES.flatMap((size) => {
        const of = `${size[0]} × ${size[1]}`;
        return [
            [`faults: at ${of}, 95 in 100 planted faults are named, and nothing that is not there`, () => namesFaults(size)],
            [`faults: at ${of}, right values are accused of nothing`, () => accusesNobody(size)],
            [`faults: at ${of}, nothing is said of what is wrong for another reason`, () => saysNothing(size)],
        ];
    }),
);
