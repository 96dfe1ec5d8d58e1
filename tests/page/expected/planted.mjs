/**
 * planted.mjs: attention with mistakes, written here anew and in another way than the page computes it.
 */
import { causesOf } from "../../../server/web/expected/diagnosis.js";
import { linesFor, DEFAULT_TOLERANCE } from "../../../server/web/expected/differences.js";
import { modelOf } from "../../../server/web/request/reference.js";

export const times = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, value, n) => sum + value * b[n][j], 0)));
export const turned = (a) => a[0].map((_, j) => a.map((row) => row[j]));
export const each = (a, change) => a.map((row, i) => row.map((value, j) => change(value, i, j)));

export function softmax(row) {
    const top = Math.max(...row),
        powers = row.map((value) => (top === -Infinity ? 0 : Math.exp(value - top))),
        sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((value) => (sum === 0 ? 0 : value / sum));
}

/** The softmax of what all heads have for a query and a key. */
const overHeads = (maps) => maps.map((map, h) => each(map, (_, i, j) => softmax(maps.map((one) => one[i][j]))[h]));

/** Features of head h of so many: side by side, as they should be. */
export const beside = (x, heads) =>
    Array.from({ length: heads }, (_, h) => x.map((row) => row.slice((h * row.length) / heads, ((h + 1) * row.length) / heads)));

/** Rows of numbers in their order, cut into others. */
export const cut = (numbers, width) =>
    Array.from({ length: numbers.length / width }, (_, n) => numbers.slice(n * width, (n + 1) * width));

export const reshaped = (x, heads) => cut(cut(x.flat(), x[0].length / heads), x.length);

/** Features of head h lie heads apart. */
export const interleaved = {
    split: (x, heads) => Array.from({ length: heads }, (_, h) => x.map((row) => row.filter((__, c) => c % heads === h))),
    join: (all) => all[0].map((row, i) => row.flatMap((_, c) => all.map((one) => one[i][c]))),
};

/** Turns pairs of features: those half a row apart, or neighbours. */
function turnedByPlace(x, layout) {
    const half = x[0].length / 2;
    return x.map((row, place) => {
        const out = row.slice();
        for (let n = 0; n < half; n++) {
            const [a, b] = layout === "half" ? [n, n + half] : [2 * n, 2 * n + 1],
                angle = place / 10000 ** (n / half);
            out[a] = row[a] * Math.cos(angle) - row[b] * Math.sin(angle);
            out[b] = row[b] * Math.cos(angle) + row[a] * Math.sin(angle);
        }
        return out;
    });
}

export const toHalf = (value) => {
    if (value === 0 || !Number.isFinite(value)) return value;
    const unit = 2 ** (Math.max(-14, Math.floor(Math.log2(Math.abs(value)))) - 10);
    return (value / unit + 1.5 * 2 ** 52 - 1.5 * 2 ** 52) * unit; // to the even neighbour of a half
};

/** Exponentials and each sum in half precision. */
export function halfSoftmax(row) {
    const top = Math.max(...row),
        powers = row.map((value) => (top === -Infinity ? 0 : toHalf(Math.exp(toHalf(value - top))))),
        sum = powers.reduce((a, b) => toHalf(a + b), 0);
    return powers.map((value) => (sum === 0 ? 0 : value / sum));
}

/** A layer with the parts that a mistake replaces. */
export function layer(request, mistake = {}) {
    const { inputs, weights } = request,
        w = { ...Object.fromEntries(Object.entries(weights).map(([name, { weight }]) => [name, weight])), ...mistake.weights };
    const source = inputs.key ?? inputs.query,
        split = mistake.split ?? beside,
        { causal, attend } = request.masks ?? {},
        isHidden = mistake.isHidden ?? ((i, j) => Boolean(causal && j > i + source.length - inputs.query.length) || Boolean(attend && !attend[i][j])),
        round = mistake.round ?? ((value) => value);
    const rounded = (a) => each(a, round);
    const { num_heads: heads, kv_num_heads: kvHeads = heads } = request.options,
        biasOf = (name) => (mistake.forgets?.includes(name) ? undefined : weights[name].bias),
        project = (x, name) => each(times(rounded(x), rounded(w[name])), (value, _, j) => value + (biasOf(name)?.[j] ?? 0)),
        groupOf = mistake.groupOf ?? ((h) => Math.floor((h * kvHeads) / heads));
    const [qPlain, kPlain, v] = [
        [inputs.query, "query", heads],
        [source, "key", kvHeads],
        [source, "value", kvHeads],
    ].map(([x, name, count]) => split(rounded(project(x, name)), count));
    const { rope: layout = request.options.rope?.layout } = mistake,
        [q, k] = [qPlain, kPlain].map((heads_) => (layout ? heads_.map((one) => turnedByPlace(one, layout)) : heads_));
    const d = q[0][0].length;
    const scores = q.map((one, h) => rounded(times(one, (mistake.transpose ?? turned)(k[groupOf(h)]))));
    const scaled = scores.map((one) => each(one, (value) => round(value * (mistake.scale ?? 1 / Math.sqrt(d))))),
        masked = scaled.map((one) => each(one, (value, i, j) => (!mistake.isLate && isHidden(i, j) ? (mistake.hidden ?? -Infinity) : value)));
    const rows = mistake.softmax ?? ((a) => a.map(softmax)),
        attention = (mistake.isOverHeads ? overHeads(masked) : masked.map(rows))
            .map(rounded)
            .map((one, h) => each(one, (value, i, j) => (mistake.isLate && isHidden(i, j) ? 0 : (mistake.drop?.(value, i, j, h) ?? value))));
    const context = attention.map((one, h) => rounded(times(one, v[groupOf(h)])));
    const join = mistake.join ?? ((all) => all[0].map((_, i) => all.flatMap((one) => one[i])));
    return { attention: [attention], context: [context], output: rounded(project(join(context), "output")) };
}

export const tensorOf = (json) => {
    const shape = [];
    for (let inner = json; Array.isArray(inner); inner = inner[0]) shape.push(inner.length);
    return { shape, data: Float64Array.from(json.flat(Infinity)) };
};

export const VIEW = { batch: 0, head: 0 };

export const runOf = (request) => ({ given: { request, endpoint: "multi-head-attention" }, answer: { outputs: modelOf(request, true).steps } });

/** What the page says of values. @param {object} values by step */
export async function causesIn(request, values, digits = 0) {
    const run = runOf(request),
        expected = Object.entries(values).map(([step, json]) => ({ name: step, tensor: tensorOf(json), digits, step, view: VIEW }));
    return causesOf(linesFor(expected, run, DEFAULT_TOLERANCE), run);
}
