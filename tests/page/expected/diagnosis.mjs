/**
 * diagnosis.mjs: for each of the usual mistakes values are made as an implementation with that mistake makes them, written
 * here anew, and the page names the mistake; where it is none of them, it names none.
 */
import assert from "node:assert/strict";
import { causeOf } from "../../../server/web/expected/diagnosis.js";
import { cellAt, linesFor, DEFAULT_TOLERANCE } from "../../../server/web/expected/differences.js";
import { guessedStep } from "../../../server/web/expected/matching.js";
import { modelOf } from "../../../server/web/request/reference.js";
import { randomMatrix } from "../../../server/web/request/tokens.js";

const VIEW = { batch: 0, head: 0 };

const times = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, value, n) => sum + value * b[n][j], 0)));
const turned = (a) => a[0].map((_, j) => a.map((row) => row[j]));
const each = (a, change) => a.map((row, i) => row.map((value, j) => change(value, i, j)));

function softmax(row) {
    const top = Math.max(...row),
        powers = row.map((value) => (top === -Infinity ? 0 : Math.exp(value - top))),
        sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((value) => (sum === 0 ? 0 : value / sum));
}

/** The softmax of what all heads have for a query and a key. */
const overHeads = (maps) => maps.map((map, h) => each(map, (_, i, j) => softmax(maps.map((one) => one[i][j]))[h]));

/** Features of head h of so many: side by side, as they should be. */
const beside = (x, heads) =>
    Array.from({ length: heads }, (_, h) => x.map((row) => row.slice((h * row.length) / heads, ((h + 1) * row.length) / heads)));

/** Rows of numbers in their order, cut into others. */
const cut = (numbers, width) =>
    Array.from({ length: numbers.length / width }, (_, n) => numbers.slice(n * width, (n + 1) * width));

const reshaped = (x, heads) => cut(cut(x.flat(), x[0].length / heads), x.length);

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

/** A layer with the parts that a mistake replaces. */
function layer(request, mistake = {}) {
    const { inputs, weights } = request,
        w = { ...Object.fromEntries(Object.entries(weights).map(([name, { weight }]) => [name, weight])), ...mistake.weights };
    const source = inputs.key ?? inputs.query,
        split = mistake.split ?? beside,
        isHidden = mistake.isHidden ?? ((i, j) => Boolean(request.masks?.causal) && j > i + source.length - inputs.query.length),
        round = mistake.round ?? ((value) => value);
    const rounded = (a) => each(a, round);
    const { num_heads: heads, kv_num_heads: kvHeads = heads } = request.options,
        biasOf = (name) => (mistake.forgets?.includes(name) ? undefined : weights[name].bias),
        project = (x, name) => each(times(rounded(x), rounded(w[name])), (value, _, j) => value + (biasOf(name)?.[j] ?? 0)),
        groupOf = mistake.groupOf ?? ((h) => Math.floor((h * kvHeads) / heads));
    const [q, k, v] = [
        [inputs.query, "query", heads],
        [source, "key", kvHeads],
        [source, "value", kvHeads],
    ].map(([x, name, count]) => split(rounded(project(x, name)), count));
    const d = q[0][0].length;
    const scores = q.map((one, h) => rounded(times(one, (mistake.transpose ?? turned)(k[groupOf(h)]))));
    const scaled = scores.map((one) => each(one, (value) => round(value * (mistake.scale ?? 1 / Math.sqrt(d))))),
        masked = scaled.map((one) => each(one, (value, i, j) => (!mistake.isLate && isHidden(i, j) ? (mistake.hidden ?? -Infinity) : value)));
    const rows = mistake.softmax ?? ((a) => a.map(softmax)),
        attention = (mistake.isOverHeads ? overHeads(masked) : masked.map(rows))
            .map(rounded)
            .map((one) => each(one, (value, i, j) => (mistake.isLate && isHidden(i, j) ? 0 : value)));
    const context = attention.map((one, h) => rounded(times(one, v[groupOf(h)])));
    const join = mistake.join ?? ((all) => all[0].map((_, i) => all.flatMap((one) => one[i])));
    return { attention: [attention], context: [context], output: rounded(project(join(context), "output")) };
}

const tensorOf = (json) => {
    const shape = [];
    for (let inner = json; Array.isArray(inner); inner = inner[0]) shape.push(inner.length);
    return { shape, data: Float64Array.from(json.flat(Infinity)) };
};

const runOf = (request) => ({ given: { request, endpoint: "multi-head-attention" }, answer: { outputs: modelOf(request, true).steps } });

/** @param {object} values by step */
async function causeIn(request, values, digits = 0) {
    const run = runOf(request),
        expected = Object.entries(values).map(([step, json]) => ({ name: step, tensor: tensorOf(json), digits, step, view: VIEW }));
    return causeOf(linesFor(expected, run, DEFAULT_TOLERANCE), run);
}

const toHalf = (value) => {
    if (value === 0 || !Number.isFinite(value)) return value;
    const unit = 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(value)))) - 10);
    return Math.round(value / unit) * unit;
};

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
    [
        "headsInterleaved",
        {
            split: (x, heads) => Array.from({ length: heads }, (__, h) => x.map((row) => row.filter((___, c) => c % heads === h))),
            join: (all) => all[0].map((row, i) => row.flatMap((__, c) => all.map((one) => one[i][c]))),
        },
    ],
    ["headsReshaped", { split: reshaped, join: (all) => cut(all.flat(2), WIDTH) }],
    ["headsReshaped", { split: reshaped }],
    ...["query", "key", "value", "output"].map((name) => ["transposed", { weights: { [name]: turned(REQUEST.weights[name].weight) } }]),
    ["transposed", { weights: Object.fromEntries(Object.entries(REQUEST.weights).map(([name, { weight }]) => [name, turned(weight)])) }],
    ["float16", { round: toHalf }],
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
    ["ropeNone", {}, TURNED],
];

export const cases = {
    async "diagnosis: without a mistake all steps agree and nothing is said"() {
        for (const request of [REQUEST, OPEN, SELF, BIASED, GROUPED]) {
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
                assert.ok(id === "float16" ? cause.left < cause.before : cause.left < 1e-9 * cause.before, `${id} leaves ${cause.left}`);
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
        for (const [id, mistake, request = REQUEST] of MISTAKES.filter(([id]) => id !== "float16"))
            assert.equal((await causeIn(request, { output: rounded(layer(request, mistake).output) }, 4))?.id, id);
        const run = runOf(REQUEST),
            exact = { name: "", tensor: tensorOf(rounded(layer(REQUEST).output)), digits: 4, step: "output", view: VIEW };
        assert.equal(linesFor([exact], run, DEFAULT_TOLERANCE)[0].outside, 0);
        assert.ok(linesFor([{ ...exact, digits: 0 }], run, { rtol: 0, atol: 1e-6 })[0].outside > 0);
    },
    async "diagnosis: nothing is said of noise, of one wrong number, and of two mistakes at once"() {
        const noise = tensorOf(randomMatrix(5, WIDTH, 99, 1));
        const right = layer(REQUEST);
        assert.equal(await causeIn(REQUEST, { output: cut(Array.from(noise.data), WIDTH) }), null);
        assert.equal(await causeIn(REQUEST, { output: each(right.output, (value, i, j) => (i + j === 3 ? value + 0.5 : value)) }), null);
        assert.equal(await causeIn(REQUEST, layer(REQUEST, { scale: 1, isLate: true })), null);
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
