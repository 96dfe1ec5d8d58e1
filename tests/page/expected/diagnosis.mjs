/**
 * diagnosis.mjs: for each of the usual mistakes values are made as an implementation with that mistake makes them, written
 * here anew, and the page names the mistake; where it is none of them, it names none.
 */
import assert from "node:assert/strict";
import { cellAt, linesFor, DEFAULT_TOLERANCE } from "../../../server/web/expected/differences.js";
import { guessedStep } from "../../../server/web/expected/matching.js";
import { randomMatrix } from "../../../server/web/request/tokens.js";
import { causesIn, cut, each, halfSoftmax, interleaved, layer, reshaped, runOf, softmax, tensorOf, times, toHalf, turned, VIEW } from "./planted.mjs";

const HEADS = 2,
    WIDTH = 8;

const REQUEST = {
    inputs: { query: randomMatrix(5, WIDTH, 1, 1), key: randomMatrix(7, WIDTH, 2, 1) },
    weights: {
        query: { weight: randomMatrix(WIDTH, WIDTH, 3) },
        key: { weight: randomMatrix(WIDTH, WIDTH, 4) },
        value: { weight: randomMatrix(WIDTH, WIDTH, 5) },
        output: { weight: randomMatrix(WIDTH, WIDTH, 6) },
    },
    masks: { causal: true },
    options: { num_heads: HEADS },
};

/** The one cause that the page finds; null: none. */
async function causeIn(request, values, digits) {
    const causes = await causesIn(request, values, digits);
    assert.ok(causes.length < 2 && (causes[0]?.parts.length ?? 1) === 1, JSON.stringify(causes));
    return causes.length === 0 ? null : { ...causes[0], ...causes[0].parts[0] };
}

const { masks: _, ...OPEN } = REQUEST;
const SELF = { ...REQUEST, inputs: { query: randomMatrix(4, WIDTH, 8, 1) } }; // d = 4 = len

const BIASED = {
    ...REQUEST,
    weights: Object.fromEntries(Object.entries(REQUEST.weights).map(([name, one], n) => [name, { ...one, bias: randomMatrix(1, WIDTH, 20 + n, 1)[0] }])),
};
const GROUPED = {
    ...REQUEST,
    weights: { ...REQUEST.weights, key: { weight: randomMatrix(WIDTH, 4, 11) }, value: { weight: randomMatrix(WIDTH, 4, 12) } },
    options: { num_heads: 4, kv_num_heads: 2 },
};
const TURNED = { ...REQUEST, options: { num_heads: HEADS, rope: { layout: "half" } } };
const weightOf = (name) => REQUEST.weights[name].weight;

/** id, what is wrong, and the request if it is another one. */
const MISTAKES = [
    ["scaleNone", { scale: 1 }],
    ["scaleWidth", { scale: 1 / Math.sqrt(WIDTH) }],
    ["scaleTwice", { scale: HEADS / WIDTH }],
    ["scaleUsual", { scale: 0.5 }, { ...REQUEST, options: { num_heads: HEADS, scale: 0.7 } }],
    ["maskAfter", { isLate: true }],
    ["maskNone", { isHidden: () => false }],
    ["maskInverted", { isHidden: (i, j) => j <= i + 2 }],
    ["maskZero", { hidden: 0 }],
    ["causalTop", { isHidden: (i, j) => j > i }],
    ["causalBottom", { isHidden: (i, j) => j > i + 2 }, { ...REQUEST, masks: { causal: { align: "top_left" } } }],
    ["causalAdded", { isHidden: (i, j) => j > i + 2 }, OPEN],
    ["softmaxQueries", { softmax: (a) => turned(turned(a).map(softmax)) }, OPEN],
    ["keysPlain", { transpose: (k) => k }, SELF],
    ["keysReshaped", { transpose: (k) => cut(k.flat(), k.length) }],
    ["headsJoined", { join: (all) => cut(all.flat(2), WIDTH) }],
    ["headsInterleaved", interleaved],
    ["headsReshaped", { split: reshaped, join: (all) => cut(all.flat(2), WIDTH) }],
    ["headsReshaped", { split: reshaped }],
    ...["query", "key", "value", "output"].map((name) => ["transposed", { weights: { [name]: turned(REQUEST.weights[name].weight) } }]),
    ["transposed", { weights: Object.fromEntries(Object.entries(REQUEST.weights).map(([name, { weight }]) => [name, turned(weight)])) }],
    ["float16", { round: toHalf }],
    ["float16.softmax", { round: toHalf, softmax: (a) => a.map(halfSoftmax) }],
    ["causalStrict", { isHidden: (i, j) => j >= i + 2 }],
    ["causalStrict", { isHidden: (i, j) => j >= i }, SELF],
    ["causalLoose", { isHidden: (i, j) => j > i + 3 }],
    ["softmaxHeads", { isOverHeads: true }, OPEN],
    ["softmaxHeads", { isOverHeads: true }],
    ["dropoutScaled", { softmax: (a) => each(a.map(softmax), (value) => value / 0.9) }],
    ["groupsTiled", { groupOf: (h) => h % 2 }, GROUPED],
    ...["query", "value", "output"].map((name) => ["biasNone", { forgets: [name] }, BIASED]),
    ["biasNone", { forgets: ["query", "key", "value", "output"] }, BIASED],
    ["swapped", { weights: { query: weightOf("key"), key: weightOf("query") } }],
    ["swapped", { weights: { key: weightOf("value"), value: weightOf("key") } }],
    ["ropeNone", { rope: null }, TURNED],
];

export const cases = {
    async "diagnosis: without a mistake all steps agree and nothing is said"() {
        for (const request of [REQUEST, OPEN, SELF, BIASED, GROUPED, TURNED]) {
            const values = layer(request),
                run = runOf(request);
            for (const [step, json] of Object.entries(values)) {
                const expected = { name: "", tensor: tensorOf(json), digits: 0, step, view: VIEW };
                const [line] = linesFor([expected], run, DEFAULT_TOLERANCE);
                assert.equal(line.outside, 0, step);
                assert.ok(line.absolute < 1e-12, step);
                assert.equal(guessedStep(expected, run, VIEW).id === step || step === "output", true, step);
            }
            assert.equal(await causeIn(request, values), null);
        }
    },
    async "diagnosis: each of the usual mistakes is named, with what it leaves"() {
        for (const [id, mistake, request = REQUEST] of MISTAKES) {
            const values = layer(request, mistake);
            for (const given of [values, { output: values.output }]) {
                const cause = await causeIn(request, given);
                assert.equal(cause?.id, id);
                if (id === "transposed")
                    assert.equal(cause.of.split(", ").length, Object.keys(mistake.weights).length);
                assert.ok(id.startsWith("float16") ? cause.left < cause.before : cause.left < 1e-9 * cause.before, `${id} leaves ${cause.left}`);
            }
        }
    },
    async "diagnosis: the result alone is taken for the output, so that its mistake is named"() {
        for (const [id, mistake, request = REQUEST] of MISTAKES) {
            const { output } = layer(request, mistake),
                found = { name: "", tensor: tensorOf(output), digits: 0 };
            assert.equal(guessedStep(found, runOf(request), VIEW).id, "output", id);
        }
    },
    async "diagnosis: values that torch printed with four digits are enough"() {
        const rounded = (json) => (Array.isArray(json) ? json.map(rounded) : Math.round(json * 1e4) / 1e4);
        for (const [id, mistake, request = REQUEST] of MISTAKES.filter(([id]) => !id.startsWith("float16")))
            assert.equal((await causeIn(request, { output: rounded(layer(request, mistake).output) }, 4))?.id, id);
        const run = runOf(REQUEST),
            exact = { name: "", tensor: tensorOf(rounded(layer(REQUEST).output)), digits: 4, step: "output", view: VIEW };
        assert.equal(linesFor([exact], run, DEFAULT_TOLERANCE)[0].outside, 0);
        assert.ok(linesFor([{ ...exact, digits: 0 }], run, { rtol: 0, atol: 1e-6 })[0].outside > 0);
    },
    async "diagnosis: nothing is said of noise, of one wrong number, and of a mistake that is not on the list"() {
        const noise = tensorOf(randomMatrix(5, WIDTH, 99, 1));
        const right = layer(REQUEST);
        assert.equal(await causeIn(REQUEST, { output: cut(Array.from(noise.data), WIDTH) }), null);
        assert.equal(await causeIn(REQUEST, { output: each(right.output, (value, i, j) => (i + j === 3 ? value + 0.5 : value)) }), null);
        assert.equal(await causeIn(REQUEST, layer(REQUEST, { scale: 0.3 })), null);
    },
    async "diagnosis: two mistakes at once are both named, and a pair only where no single one explains the values"() {
        for (const [ids, mistake, request = REQUEST] of [
            ["scaleNone, maskAfter", { scale: 1, isLate: true }],
            ["scaleNone, maskNone", { scale: 1, isHidden: () => false }],
            ["scaleNone, transposed", { scale: 1, weights: { query: turned(weightOf("query")) } }, OPEN],
            ["transposed, transposed", { weights: { query: turned(weightOf("query")), value: turned(weightOf("value")) } }],
            ["scaleNone, biasNone", { scale: 1, forgets: ["query", "key", "value", "output"] }, BIASED],
            ["maskNone, headsJoined", { isHidden: () => false, join: (all) => cut(all.flat(2), WIDTH) }],
        ]) {
            const causes = await causesIn(request, { output: layer(request, mistake).output });
            assert.deepEqual(causes.map(({ parts }) => parts.map(({ id }) => id).join(", ")), [ids]);
            assert.ok(causes[0].left < 1e-9 * causes[0].before, ids);
        }
    },
    async "diagnosis: causes that the values cannot tell apart are all named"() {
        const request = { ...REQUEST, inputs: { query: randomMatrix(5, 16, 40, 1) }, options: { num_heads: 4 } };
        request.weights = Object.fromEntries(Object.keys(REQUEST.weights).map((name, n) => [name, { weight: randomMatrix(16, 16, 41 + n) }]));
        const causes = await causesIn(request, { output: layer(request, { scale: 1 / 4 }).output });
        assert.deepEqual(causes.map(({ parts }) => parts.map(({ id }) => id).join()), ["scaleWidth", "scaleTwice"]); // √16 = 4
    },
    async "diagnosis: dropout at work is seen in the weights, and its p with it"() {
        const drop = (value, i, j, h) => ((i * 31 + j * 17 + h * 7) % 5 === 0 ? 0 : value / 0.8),
            { attention, output } = layer(OPEN, { drop });
        for (const given of [{ attention }, { attention, output }]) {
            const cause = await causeIn(OPEN, given);
            assert.deepEqual([cause?.id, cause?.of], ["dropoutActive", "p = 0.2"]);
        }
        const few = layer(OPEN, { drop: (value, i, j) => (i + j === 0 ? 0 : value / 0.5) });
        assert.equal(await causeIn(OPEN, { attention: few.attention }), null);
    },
    async "diagnosis: rows without a key that are NaN elsewhere"() {
        const request = { ...REQUEST, masks: { attend: each(times(randomMatrix(5, 1, 1), randomMatrix(1, 7, 1)), (__, i) => i !== 2) } };
        const { attention } = layer(request, { isHidden: (i) => i === 2 });
        for (const one of attention[0]) one[2].fill(NaN);
        assert.equal((await causeIn(request, { attention }))?.id, "maskNaN");
    },
    "differences: the worst cell of a head beside others, of one head, and of heads side by side"() {
        const run = runOf(REQUEST),
            { attention } = layer(REQUEST),
            { q } = run.answer.outputs;
        attention[0][1][3][2] += 0.25;
        const whole = { name: "attn_weights", tensor: tensorOf(attention), digits: 0, step: "attention", view: VIEW },
            part = { ...whole, tensor: tensorOf(attention[0][1]), view: { batch: 0, head: 1 } };
        for (const one of [whole, part]) {
            assert.equal(guessedStep(one, run, one.view).id, "attention");
            const [line] = linesFor([one], run, DEFAULT_TOLERANCE);
            assert.equal(line.outside, 1);
            assert.ok(Math.abs(line.absolute - 0.25) < 1e-12);
            assert.deepEqual(cellAt(line, run), { row: 3, col: 2, head: 1, batch: 0, hasHead: true });
        }
        const flat = { name: "", digits: 0, step: "q", view: VIEW, tensor: { shape: [1, 5, WIDTH], data: new Float64Array(q.data.length) } };
        for (let i = 0; i < 5; i++)
            for (let c = 0; c < WIDTH; c++) flat.tensor.data[i * WIDTH + c] = q.data[(Math.floor(c / 4) * 5 + i) * 4 + (c % 4)];
        assert.equal(guessedStep(flat, run, VIEW).id, "q");
        assert.equal(linesFor([flat], run, DEFAULT_TOLERANCE)[0].absolute, 0);
    },
    "differences: masked scores of −1e9 and scores that nobody reads agree; lines come in the order of the steps"() {
        const run = runOf(REQUEST),
            low = (name) => ({ shape: run.answer.outputs[name].shape, data: run.answer.outputs[name].data.map((value) => (value === -Infinity ? -1e9 : value)) });
        const expected = ["attention", "masked", "scaled"].map((step) => ({ name: "", tensor: low(step), digits: 0, step, view: VIEW }));
        const lines = linesFor(expected, run, { rtol: 0, atol: 0 });
        assert.deepEqual(lines.map(({ step, outside }) => [step.id, outside]), [["scaled", 0], ["masked", 0], ["attention", 0]]);
    },
};
