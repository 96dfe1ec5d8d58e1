/**
 * shown.mjs: expected values on the page: pasted, dropped into the table of steps, and the way from there to a cell.
 */
import assert from "node:assert/strict";
import { findings } from "../input/accessibility.mjs";
import { answerTo, choosePreset, numberOf, openPage, settled } from "../support.mjs";

const SECTION = ".expected";

async function paste(page, text, use = "values") {
    const panel = page.locator(".panel");
    if (!(await panel.getAttribute("open").then((open) => open !== null))) await panel.locator("summary").click();
    const own = panel.locator("section", { has: page.locator("textarea[placeholder]") });
    await own.locator("textarea").fill(text);
    await own.getByRole("combobox").selectOption(use);
    await own.getByRole("button").first().click();
}

/** As torch prints it. */
const printed = (json, depth = 1) =>
    Array.isArray(json[0])
        ? `[${json.map((one) => printed(one, depth + 1)).join(",\n" + " ".repeat(7 + depth))}]`
        : `[${json.map((value) => value.toFixed(4)).join(", ")}]`;

const softmax = (row) => {
    const powers = row.map((value) => Math.exp(value)),
        sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((value) => value / sum);
};

/** What the causal example gives without 1/√d. */
const unscaled = ({ outputs }) => outputs.scores.map((b) => b.map((head) => head.map((row, i) => [...softmax(row.slice(0, i + 1)), ...row.slice(i + 1).map(() => 0)])));

const linesOf = (page) =>
    page.locator(SECTION + " tbody tr").evaluateAll((rows) =>
        rows.map((row) => [
            row.querySelector("th select")?.selectedOptions[0].textContent ?? row.querySelector("th").textContent,
            ...Array.from(row.querySelectorAll("td"), (cell) => cell.textContent),
        ]),
    );

export const cases = {
    async "expected: a wrong map is found, its worst cell opens, and the cause is said"(stage) {
        const page = await openPage(stage);
        const { answer } = await choosePreset(page, "causal");
        const wrong = unscaled(answer);
        await paste(page, `tensor(${printed(wrong)}, grad_fn=<SoftmaxBackward0>)`);
        const section = page.locator(SECTION);
        await section.locator(".verdict.bad", { hasText: "first step outside" }).waitFor();
        await section.locator(".cause", { hasText: "not divided by √d_k" }).waitFor();
        const worst = { beyond: -Infinity },
            absolutes = [];
        answer.outputs.attention[0].forEach((head, h) =>
            head.forEach((row, i) =>
                row.forEach((value, j) => {
                    const expected = Number(wrong[0][h][i][j].toFixed(4)),
                        size = Math.abs(value - expected),
                        beyond = size - 1e-3 * expected; // the rest of the tolerance is the same in all cells
                    absolutes.push(size);
                    if (beyond > worst.beyond) Object.assign(worst, { beyond, h, i, j });
                }),
            ),
        );
        const [[step, absolute]] = await linesOf(page);
        assert.equal(step, "softmax");
        assert.ok(Math.abs(numberOf(absolute) - Math.max(...absolutes)) < 0.006, absolute);
        await section.getByRole("row").nth(1).getByRole("button").click();
        await settled(page);
        assert.match(await page.locator(".stage h2").first().textContent(), new RegExp(`softmax.*head ${worst.h}`));
        assert.equal(await page.locator(".readout small").textContent(), `[${worst.i}, ${worst.j}]`);
        assert.deepEqual(await findings(page), []);
        await page.finish();
    },
    async "expected: right values of four digits agree as a plain list, and the worst cell is one outside the tolerance"(stage) {
        const page = await openPage(stage),
            { answer } = await choosePreset(page, "causal"),
            list = printed(answer.outputs.attention),
            section = page.locator(SECTION);
        await paste(page, list);
        await section.locator(".verdict.good").waitFor();
        await section.locator(".note", { hasText: "4 digits" }).waitFor();
        // Small and wrong by more than it may be, beside a large value that differs more and may.
        const rows = answer.outputs.output.map((row) => row.slice()),
            large = rows[1].reduce((most, value, at) => (Math.abs(value) > Math.abs(rows[1][most]) ? at : most), 0);
        rows[1][large] *= 1 + 5e-4;
        rows[0][3] = answer.outputs.output[0][3] + 2e-5 + 1.2e-3 * Math.abs(answer.outputs.output[0][3]);
        await paste(page, JSON.stringify({ output: rows }));
        await section.locator(".verdict.bad", { hasText: "(1 of" }).waitFor();
        await section.locator("tr.outside button").click();
        assert.match(await page.locator(".readout small").textContent(), /^\[0, 3\]/);
        await page.finish();
    },
    async "expected: a verdict comes into sight, its step is said to be a guess, and another request has none"(stage) {
        const page = await openPage(stage, { viewport: { width: 1366, height: 500 } }),
            { answer } = await choosePreset(page, "causal"),
            section = page.locator(SECTION);
        await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
        await paste(page, JSON.stringify(answer.outputs.output.map((row) => row.map((value) => -3 * value))));
        await section.locator(".verdict.bad", { hasText: "output is the first step" }).waitFor();
        await page.waitForFunction(() => {
            const { top, bottom } = document.querySelector(".expected .verdict").getBoundingClientRect();
            return top >= 0 && bottom <= window.innerHeight;
        });
        const note = section.locator(".note", { hasText: "“output” is a guess" });
        await note.waitFor();
        await section.getByRole("combobox", { name: "Step" }).selectOption({ label: "concat" });
        await note.waitFor({ state: "detached" });
        await choosePreset(page, "grouped");
        await section.waitFor({ state: "hidden" });
        await page.finish();
    },
    async "expected: an answer of the server agrees with itself in every step, until the request changes"(stage) {
        const page = await openPage(stage);
        const { answer } = await choosePreset(page, "causal");
        await paste(page, JSON.stringify(answer));
        const section = page.locator(SECTION);
        await section.locator(".verdict.good").waitFor();
        const lines = await linesOf(page);
        assert.ok(lines.length >= 9, String(lines));
        assert.ok(lines.every(([, absolute]) => absolute === "0"), String(lines));
        await answerTo(page, () => page.getByLabel("Scale", { exact: true }).fill("1"));
        await section.locator(".verdict.bad", { hasText: "· scale is the first step" }).waitFor();
        await section.getByLabel("atol").fill("1000");
        await section.locator(".verdict.good").waitFor();
        await section.getByRole("button", { name: "Remove" }).click();
        assert.equal(await section.isVisible(), false);
        await page.finish();
    },
    async "expected: the step can be chosen where only the shape is known"(stage) {
        const page = await openPage(stage);
        const { answer } = await choosePreset(page, "bare");
        await paste(page, printed(answer.outputs.scaled).replace(/,/g, ""));
        const section = page.locator(SECTION);
        await section.locator(".verdict.good").waitFor();
        assert.equal((await linesOf(page))[0][0], "· scale");
        await section.locator("tbody select").selectOption({ label: "softmax" });
        await section.locator(".verdict.bad", { hasText: "softmax is the first step" }).waitFor();
        await paste(page, "0.5 0.5");
        await page.locator(".notice", { hasText: "no step has the shape 1 × 2" }).waitFor();
        await paste(page, "[[1. 2. ... 3.]]");
        await page.locator(".notice", { hasText: "np.set_printoptions" }).waitFor();
        await page.finish();
    },
    async "expected: arrays become inputs, weights and masks of the request at hand"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "three");
        const weight = "array([[1. , 0.5],\n       [0. , 1. ],\n       [0.5, 0. ]], dtype=float32)";
        const { request } = await answerTo(page, () => paste(page, weight, "w.query"));
        assert.deepEqual(request.weights.query.weight, [[1, 0.5], [0, 1], [0.5, 0]]);
        const masked = await answerTo(page, () => paste(page, "tensor([[True, False, False], [True, True, False], [True, True, True]])", "mask"));
        assert.deepEqual(masked.request.masks.attend, [[true, false, false], [true, true, false], [true, true, true]]);
        assert.deepEqual(masked.request.weights.query.weight, [[1, 0.5], [0, 1], [0.5, 0]]);
        const biased = await answerTo(page, () => paste(page, "0 -inf -inf\n0 0 -inf\n0 0 0.5", "mask"));
        assert.deepEqual(biased.request.masks.bias[2], [0, 0, 0.5]);
        const x = await answerTo(page, () => paste(page, "1;2,5;0\n0;1;0\n1;1;1", "in.query"));
        assert.deepEqual(x.request.inputs.query[0], [1, 2.5, 0]);
        await page.finish();
    },
    async "expected: an X of as many rows keeps the words, an X of other length is computed without them"(stage) {
        const page = await openPage(stage),
            { request } = await choosePreset(page, "causal");
        const rows = (count) => JSON.stringify(Array.from({ length: count }, (_, i) => Array.from({ length: 24 }, (_, j) => ((i + 2 * j) % 5) / 4)));
        const same = await answerTo(page, () => paste(page, rows(request.inputs.query.length), "in.query"));
        assert.deepEqual(same.request.tokens, request.tokens);
        const other = await answerTo(page, () => paste(page, rows(5), "in.query"));
        assert.equal(other.response.status(), 200, await other.response.text());
        assert.deepEqual([other.request.inputs.query.length, other.request.tokens], [5, undefined]);
        await page.finish();
    },
    async "expected: on a phone and in the dark nothing is cut off, and axe finds nothing"(stage) {
        const page = await openPage(stage, { viewport: { width: 390, height: 844 }, colorScheme: "dark", hasTouch: true });
        const { answer } = await choosePreset(page, "causal");
        await paste(page, JSON.stringify({ attention: unscaled(answer), output: answer.outputs.output }));
        await page.locator(SECTION + " .cause").or(page.locator(SECTION + " .verdict.bad")).first().waitFor();
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.ok(wide <= 0, `${wide} px too wide`);
        assert.deepEqual(await findings(page), []);
        await page.finish();
    },
};
