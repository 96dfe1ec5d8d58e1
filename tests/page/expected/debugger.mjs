/**
 * debugger.mjs: the mode for attention that gives other numbers: what goes in, theirs beside ours, the verdict, and the link.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findings } from "../input/accessibility.mjs";
import { randomMatrix } from "../../../server/web/request/tokens.js";
import { dropFile, inFolder, numberOf, opened, openPage, settled, tabOf } from "../support.mjs";
import { layer, turned } from "./planted.mjs";

const WEIGHTS = ["query", "key", "value", "output"];
const NAMES = { query: "W_Q", key: "W_K", value: "W_V", output: "W_O" };

/** A layer of someone's, with numbers in float32. */
function layerOf(length, width, heads) {
    const numbers = (rows, cols, seed, size) => randomMatrix(rows, cols, seed, size).map((row) => row.map(Math.fround));
    return {
        inputs: { query: numbers(length, width, 7001, 1) },
        weights: Object.fromEntries(WEIGHTS.map((name, n) => [name, { weight: numbers(width, width, 7002 + n) }])),
        options: { num_heads: heads },
    };
}

/** As torch prints it. */
const printed = (rows, digits = 4) => `tensor([${rows.map((row) => `[${row.map((value) => value.toFixed(digits)).join(", ")}]`).join(",\n        ")}])`;

/** With four digits, as it is pasted. */
const rounded = (request) => JSON.parse(JSON.stringify(request), (_, value) => (typeof value === "number" ? Number(value.toFixed(4)) : value));

const ready = (page) => page.locator(".theirs .tasks button:enabled").nth(2).waitFor();

async function enter(stage, options = {}) {
    const page = await openPage(stage, { viewport: { width: 1366, height: 768 }, ...options }, "/", opened);
    await page.evaluate(() => {
        const region = document.querySelector("p.spoken[role=status]");
        window.said = [];
        new MutationObserver(() => window.said.push(region.textContent)).observe(region, { childList: true });
    });
    await page.locator(".ways button").nth(2).click();
    await ready(page);
    return page;
}

const fieldOf = (page, label) => page.locator(".inputs label.field", { has: page.locator(`span:text-is("${label}")`) });

const arraysOf = ({ inputs, weights }, change = (rows) => rows) => [["X", inputs.query], ...WEIGHTS.map((name) => [NAMES[name], change(weights[name].weight)])];

const fileOf = (content) => ({ name: "mine.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(content)) });

/** Fills in a layer from a file, and its settings. */
async function fillIn(page, request, change) {
    await page.locator(".inputs input[type=file]").setInputFiles(fileOf(Object.fromEntries(arraysOf(request, change))));
    const [length, width] = [request.inputs.query.length, request.inputs.query[0].length];
    await fieldOf(page, "X").locator("small", { hasText: new RegExp(`^${length} × ${width}$`) }).waitFor();
    await fieldOf(page, "W_O").locator("small", { hasText: new RegExp(`^${width} × ${width}$`) }).waitFor();
    await setUp(page, request);
}

/** Settings of a layer. */
async function setUp(page, request) {
    await page.getByLabel("Heads", { exact: true }).fill(String(request.options.num_heads));
    if (await page.getByRole("checkbox", { name: "Causal" }).isChecked()) await page.getByRole("checkbox", { name: "Causal" }).uncheck();
}

const computedIn = (page) => page.asked.filter((path) => path.startsWith("POST /v1/") && !path.includes("/models/")).length;

async function compare(page, text) {
    if (text !== undefined) await page.locator(".theirs textarea").fill(text);
    await page.getByRole("button", { name: "Compare" }).click();
}

const verdictOf = (page, kind) => page.locator(`.expected .verdict.${kind}`);
const causeIn = (page, text) => page.locator(".expected .cause", { hasText: text }).waitFor();

export const cases = {
    async "debugger: the start opens it; pasted numbers become no request, and the verdict stands below the button"(stage) {
        for (const options of [{}, { viewport: { width: 390, height: 844 }, colorScheme: "dark" }]) {
            const page = await enter(stage, options),
                request = rounded(layerOf(6, 16, 4)),
                before = computedIn(page);
            for (const [label, rows] of arraysOf(request)) await fieldOf(page, label).locator("textarea").fill(printed(rows));
            await setUp(page, request);
            await page.locator(".theirs textarea").fill(printed(layer(request, { scale: 1 }).output));
            await page.waitForTimeout(500);
            assert.equal(computedIn(page), before, "something was asked for");
            const [asked] = await Promise.all([page.waitForRequest(/multi-head-attention$/), compare(page)]);
            assert.deepEqual(asked.postDataJSON().inputs.query, request.inputs.query);
            assert.deepEqual(asked.postDataJSON().weights.output.weight, request.weights.output.weight);
            await verdictOf(page, "bad").waitFor();
            await causeIn(page, "not divided by √d_k");
            assert.equal(computedIn(page), before + 1);
            const verdict = await verdictOf(page, "bad").textContent(),
                cause = await page.locator(".expected .cause").textContent();
            await page.waitForFunction((text) => document.querySelector("p.spoken[role=status]").textContent.includes(text), cause);
            assert.ok((await page.evaluate(() => window.said)).some((text) => text.includes(verdict)), "the verdict is not announced");
            const between = await page.evaluate(() => {
                const [button, verdict] = [".debugger .main", ".expected .verdict"].map((one) => document.querySelector(one).getBoundingClientRect());
                return { apart: verdict.top - button.bottom, isSeen: verdict.top >= 0 && verdict.bottom <= window.innerHeight };
            });
            assert.ok(between.isSeen && between.apart < 64, JSON.stringify(between));
            assert.match(await page.locator(".beside h3").textContent(), /^output, 6 × 16$/);
            assert.deepEqual(await findings(page), []);
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)) <= 0, "too wide");
            await page.finish();
        }
    },
    async "debugger: the numbers of both tables are those of the program and of the server, and the worst cell is framed in both"(stage) {
        const page = await enter(stage),
            request = rounded(layerOf(6, 16, 4)),
            wrong = layer(request, { isHidden: (i, j) => j > i }).output;
        await fillIn(page, request);
        const [response] = await Promise.all([page.waitForResponse(/multi-head-attention$/), compare(page, printed(wrong))]);
        const { outputs } = await response.json();
        await verdictOf(page, "bad").waitFor();
        const worst = (await verdictOf(page, "bad").textContent()).match(/ (\d+) → d(\d+) (\S+) in yours, (\S+) in attnd’s\.$/),
            [i, j, yours, ours] = worst.slice(1).map(numberOf);
        assert.ok(Math.abs(yours - wrong[i][j]) < 6e-5 && Math.abs(ours - outputs.output[i][j]) < 6e-5, worst[0]);
        const tables = await page.locator(".beside table").evaluateAll((all) =>
            all.map((table) => ({
                cols: Array.from(table.querySelectorAll("thead th"), (cell) => Number(cell.textContent.slice(1))),
                rows: Array.from(table.querySelectorAll("tbody tr"), (row) => [Number(row.querySelector("th").textContent), ...Array.from(row.querySelectorAll("td"), (cell) => cell.textContent)]),
                worst: table.querySelectorAll(".worst").length,
            })),
        );
        tables.forEach(({ cols, rows, worst }, which) => {
            assert.deepEqual([worst, rows.length, cols.length], [1, 6, 5]);
            for (const [i, ...cells] of rows)
                cells.forEach((text, n) => {
                    const value = (which === 0 ? wrong : outputs.output)[i][cols[n]];
                    assert.ok(Math.abs(numberOf(text) - value) < 6e-5, `${i}, ${cols[n]}: ${text} for ${value}`);
                });
        });
        await causeIn(page, "A causal mask is applied");
        await page.locator(".expected .verdict button").click();
        await settled(page);
        assert.match(await page.locator(".stage h2").first().textContent(), /^output/);
        await page.finish();
    },
    async "debugger: settings are said beside the button; those of an example go with the last of its numbers"(stage) {
        for (const [locale, before, own, after] of [
            ["en-GB", "Heads 6, Causal.", "Heads 6.", "Heads 4, Scale 0.5."],
            ["ru-RU", "Головы 6, Причинная маска.", "Головы 6.", "Головы 4, Масштаб 0,5."],
        ]) {
            const page = await enter(stage, { locale }),
                said = async (text) => page.locator(".theirs > .note", { hasText: text }).waitFor(),
                { inputs, ...request } = rounded(layerOf(6, 16, 4));
            await said(before);
            await page.locator(".inputs input[type=file]").setInputFiles(fileOf(Object.fromEntries(arraysOf({ inputs, ...request }))));
            await fieldOf(page, "X").locator("small", { hasText: /^6 × 16$/ }).waitFor();
            await said(own);
            const options = page.locator(".inputs > section").last();
            assert.equal(await options.locator("input[type=checkbox]").first().isChecked(), false);
            await options.locator("input").nth(0).fill("4");
            await options.locator("input").nth(2).fill("0.5");
            await said(after);
            await page.finish();
        }
    },
    async "debugger: right values agree, in nn.Linear's layout with biases, too; two mistakes are both named"(stage) {
        const page = await enter(stage),
            request = rounded(layerOf(6, 16, 4)),
            biases = rounded(Object.fromEntries(WEIGHTS.map((name, n) => [name, randomMatrix(1, 16, 7100 + n, 1)[0]])));
        await fillIn(page, request, turned);
        await page.getByLabel("The weights are written").selectOption("out_in");
        await page.locator(".inputs details summary").click();
        for (const name of WEIGHTS) await fieldOf(page, NAMES[name].replace("W", "b")).locator("textarea").fill(JSON.stringify(biases[name]));
        const biased = { ...request, weights: Object.fromEntries(WEIGHTS.map((name) => [name, { ...request.weights[name], bias: biases[name] }])) };
        await compare(page, printed(layer(biased).output));
        await verdictOf(page, "good").waitFor();
        assert.equal(await page.locator(".expected .cause").isVisible(), false);
        await compare(page, printed(layer(biased, { scale: 1, forgets: WEIGHTS }).output));
        await causeIn(page, "Two mistakes at once: The scores are not divided by √d_k. A bias is forgotten: that of W_Q, W_K, W_V, W_O.");
        await compare(page, printed(layer(biased, { scale: 1 / 4 }).output));
        await causeIn(page, "cannot tell these apart");
        assert.deepEqual(await page.locator(".expected .cause li").allTextContents(), ["The scores are divided by √d_model, not by √d_k.", "The scores are divided by √d_k twice."]);
        await page.finish();
    },
    async "debugger: a link opens the same verdict for a colleague, also of 32 × 64 with all digits of float32"(stage) {
        const lengths = [];
        for (const [length, width, digits, scale, cause] of [[6, 16, 4, 0.3, "No usual mistake"], [32, 64, 0, 1, "not divided by √d_k"]]) {
            const page = await enter(stage, { permissions: ["clipboard-read", "clipboard-write"] }),
                request = digits ? rounded(layerOf(length, width, 4)) : layerOf(length, width, 4);
            await fillIn(page, request);
            await compare(page, JSON.stringify(layer(request, { scale }).output));
            await verdictOf(page, "bad").waitFor();
            await causeIn(page, cause);
            const said = await verdictOf(page, "bad").textContent();
            await page.getByRole("button", { name: "Copy a link for a colleague" }).click();
            await page.locator(".toast:not([hidden])").waitFor();
            const link = await page.evaluate(() => navigator.clipboard.readText());
            assert.ok(!(await page.locator(".toast").textContent()).includes("too large"), "no link");
            lengths.push(link.length);
            await page.finish();
            const other = await openPage(stage, {}, link, (one) => verdictOf(one, "bad").waitFor());
            assert.equal(await verdictOf(other, "bad").textContent(), said);
            assert.equal(await other.locator(".debugger").isVisible(), true);
            assert.equal(await fieldOf(other, "W_O").locator("small").textContent(), `${width} × ${width}`);
            await other.finish();
        }
        return `${lengths.join(" and ")} characters`;
    },
    async "debugger: an example with a mistake to try; its numbers for NumPy; a change since is said; a saved page says the same"(stage) {
        const page = await enter(stage, { permissions: ["clipboard-read", "clipboard-write"] });
        await page.getByRole("button", { name: "Try it with a mistake" }).click();
        await page.waitForFunction(() => document.querySelector(".theirs textarea").value.startsWith("tensor("));
        await compare(page);
        await verdictOf(page, "bad").waitFor();
        await page.locator(".expected .cause b").first().waitFor();
        const cause = await page.locator(".expected .cause").textContent();
        await page.getByRole("button", { name: "Copy for NumPy" }).click();
        const numpy = await page.waitForFunction(() => navigator.clipboard.readText());
        assert.match(await numpy.jsonValue(), /^import numpy as np\nX = np\.array\(\[\[[^]*\nW_O = np\.array\(\[\[/);
        await page.getByRole("checkbox", { name: "Causal" }).uncheck();
        await page.locator(".theirs .note", { hasText: "changed since" }).waitFor();
        await page.getByRole("checkbox", { name: "Causal" }).check();
        await compare(page);
        await page.locator(".theirs > .note", { hasText: /^$/ }).waitFor({ state: "attached" });
        await page.locator(".expected .cause b").first().waitFor();
        await inFolder(async (folder) => {
            const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as a page" }).click()]);
            const path = join(folder, "debugger.html");
            await file.saveAs(path);
            const copy = await openPage(stage, {}, pathToFileURL(path).href, (one) => one.locator(".expected .cause b").first().waitFor());
            assert.equal(await copy.locator(".expected .cause").textContent(), cause);
            await copy.finish();
        });
        await page.finish();
    },
    async "debugger: a dropped file is compared; a file of inputs fills the fields by name; Q, K and V can be given alone"(stage) {
        const page = await enter(stage),
            request = rounded(layerOf(6, 16, 4)),
            before = computedIn(page);
        await fillIn(page, request);
        const { output, attention } = layer(request, { scale: 1 });
        await dropFile(page, "mine.json", JSON.stringify({ attention, output }));
        await page.locator(".theirs small", { hasText: "attention: 1 × 4 × 6 × 6, output: 6 × 16" }).waitFor();
        assert.equal(computedIn(page), before);
        await compare(page);
        await verdictOf(page, "bad").and(page.locator("text=softmax is the first step")).waitFor();
        await causeIn(page, "not divided by √d_k");
        await page.getByRole("button", { name: "Q, K and V" }).click();
        await fieldOf(page, "V").locator("small", { hasText: "7 × 3" }).waitFor();
        const [q, k, v] = [8, 9, 10].map((seed) => rounded(randomMatrix(5, 4, seed, 1)));
        for (const [label, rows] of [["Q", q], ["K", k], ["V", v]]) await fieldOf(page, label).locator("textarea").fill(printed(rows));
        await compare(page, printed(v.map((row) => row.map((value) => 2 - value))));
        await verdictOf(page, "bad").and(page.locator("text=output is the first step")).waitFor();
        await compare(page, "[[1, 2]]");
        await page.locator(".messages .notice", { hasText: "no step has the shape 1 × 2" }).waitFor();
        await tabOf(page, "lab").click();
        await settled(page);
        assert.match(await page.locator(".stage h2").first().textContent(), /5 × 5/);
        await page.finish();
    },
};
