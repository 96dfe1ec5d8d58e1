/**
 * values.mjs: what is shown is what the server computed, at its place: on maps that are not square, so that rows taken
 * for columns cannot pass.
 */
import assert from "node:assert/strict";
import {
    eventually,
    inLaboratory,
    addressOf,
    answerTo,
    assertClose,
    cellPoint,
    choosePreset,
    chooseStep,
    focusGrid,
    numberOf,
    openPage,
    settled,
    someOf,
    tableOf,
} from "../support.mjs";

const readout = async (page) => {
    const { text, value } = await page
        .locator(".readout")
        .evaluate((p) => ({
            text: Array.from(p.querySelectorAll("bdi"), (b) => b.textContent),
            value: p.querySelector("b").textContent,
        }));
    return { row: text[0], col: text[1], value };
};

export const cases = {
    async "values: hovering says the server's number for that query and key"(stage) {
        const page = await openPage(stage);
        for (const preset of ["cross", "bare"]) {
            const { answer, request } = await choosePreset(page, preset);
            const map = answer.outputs.attention[0][0],
                queries = request.tokens?.query,
                keys = request.tokens?.key;
            assert.notEqual(map.length, map[0].length);
            const cells = map.flatMap((row, i) => row.map((weight, j) => [i, j, weight]));
            for (const [i, j, weight] of someOf(cells, 3)) {
                const { x, y } = await cellPoint(page, i, j);
                await page.mouse.move(x, y);
                const found = await readout(page);
                assert.equal(found.row, queries ? queries[i] : String(i));
                assert.equal(found.col, keys ? keys[j] : String(j));
                assertClose(numberOf(found.value), weight, 7, `${preset} [${i}, ${j}]`);
            }
        }
        await page.finish();
    },
    async "values: zoomed and dragged, what is under the pointer is still the server's number"(stage) {
        const page = await openPage(stage),
            { answer } = await choosePreset(page, "bare"),
            map = answer.outputs.attention[0][0];
        const from = await cellPoint(page, 2, 3);
        await page.mouse.move(from.x, from.y);
        await page.keyboard.down("Control");
        await page.mouse.wheel(0, -300);
        await page.keyboard.up("Control");
        await settled(page);
        await page.mouse.down();
        await page.mouse.move(from.x - 60, from.y - 30, { steps: 4 });
        await page.mouse.up();
        await settled(page);
        const seen = new Set();
        for (const [x, y] of [
            [-90, -60],
            [0, 0],
            [80, 40],
            [-80, 60],
        ]) {
            await page.mouse.move(from.x + x, from.y + y);
            const [, i, j] = /\[(\d+), (\d+)\]/.exec(await page.locator(".readout small").textContent());
            seen.add(i + j);
            assertClose(numberOf((await readout(page)).value), map[i][j], 7, `[${i}, ${j}]`);
        }
        assert.ok(seen.size > 2);
        await page.finish();
    },
    async "values: a click on a cell writes its sum out"(stage) {
        const page = await openPage(stage),
            { answer, request } = await choosePreset(page, "cross");
        const { x, y } = await cellPoint(page, 2, 5);
        await page.mouse.click(x, y);
        await page.locator(".pairing", { hasText: request.tokens.key[5] }).waitFor();
        const [here, server] = await page.locator(".explain .sum b").allTextContents();
        assertClose(numberOf(server), answer.outputs.attention[0][0][2][5], 7, "server");
        assertClose(numberOf(here), answer.outputs.attention[0][0][2][5], 5, "here");
        assert.equal(await page.locator(".terms tbody tr").count(), request.tokens.key.length);
        assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "gridcell");
        await page.finish();
    },
    async "values: every step shows the server's matrix, of the chosen head"(stage) {
        const page = await openPage(stage),
            { answer } = await choosePreset(page, "cross");
        await page.locator(".heads button").nth(2).click();
        const steps = {
            Q: "q",
            K: "k",
            V: "v",
            QKᵀ: "scores",
            "· scale": "scaled",
            "+ mask": "masked",
            softmax: "attention",
            "A V": "context",
        };
        for (const [label, name] of Object.entries(steps)) {
            await page
                .locator(".strip button")
                .filter({ has: page.locator(".name", { hasText: new RegExp(`^${label.replace("+", "\\+")}\\s*$`) }) })
                .click();
            await settled(page);
            await page.getByRole("tab", { name: "Table" }).click();
            const cells = await page
                .locator(".table tbody tr")
                .evaluateAll((rows) =>
                    rows.map((row) => Array.from(row.querySelectorAll("td"), (td) => td.title || td.textContent)),
                );
            const wanted = answer.outputs[name][0][2];
            assert.equal(cells.length, wanted.length, name);
            wanted.forEach((row, i) =>
                row.forEach((value, j) => assertClose(numberOf(cells[i][j]), value, 6, `${name} [${i}, ${j}]`)),
            );
            await page.getByRole("tab", { name: "Map" }).click();
        }
        await page.finish();
    },
    async "values: the written-out sums end in the server's number"(stage) {
        const page = await openPage(stage),
            { answer } = await answerTo(page, () =>
                page.getByRole("combobox", { name: "Example" }).selectOption("cross"),
            );
        const places = {
            Q: "q",
            QKᵀ: "scores",
            "· scale": "scaled",
            "+ mask": "masked",
            softmax: "attention",
            "A V": "context",
            concat: "concat",
            projected: "projected",
        };
        for (const [label, name] of Object.entries(places)) {
            await page
                .locator(".strip button")
                .filter({ has: page.locator(".name", { hasText: new RegExp(`^${label.replace("+", "\\+")}\\s*$`) }) })
                .click();
            await focusGrid(page);
            await page.keyboard.press("ArrowDown");
            await page.keyboard.press("ArrowRight");
            await page.waitForFunction(
                (text) => document.querySelector(".stage h2").textContent.startsWith(text),
                label,
            );
            await settled(page);
            const [here, server] = await page.locator(".explain .sum b").allTextContents();
            const given = answer.outputs[name],
                value =
                    given[0][0]?.[1] === undefined || typeof given[0][0] === "number" ? given[1][1] : given[0][0][1][1];
            assertClose(numberOf(server), value, 7, name + " from the server");
            assertClose(numberOf(here), value, 4, name + " from the page");
        }
        await page.finish();
    },
    async "values: masked cells are hatched and named so, and are written as a dash: they are no zeros"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "causal");
        await focusGrid(page);
        await page.keyboard.press("ArrowRight");
        assert.equal((await readout(page)).value, "masked");
        assert.match(await page.locator("[role=gridcell]").getAttribute("aria-label"), /masked/);
        const bars = await page.locator(".stage .row-bars button > :last-child").allTextContents();
        assert.deepEqual(bars, bars.map((_, j) => (j === 0 ? "1.00" : "–")));
        const table = await tableOf(page);
        assert.equal(table.length, 14);
        table.forEach((line, i) => line.forEach((text, j) => (j > i ? assert.equal(text, "–", `[${i}, ${j}]`) : assert.ok(Number.isFinite(numberOf(text)), `[${i}, ${j}]: ${text}`))));
        await page.finish();
    },
    async "values: heads sort by what they do"(stage) {
        const page = await openPage(stage),
            { answer } = await choosePreset(page, "causal");
        const first = answer.outputs.attention[0].map((map) => map.reduce((sum, row) => sum + row[0], 0));
        const wanted = first.map((_, head) => head).sort((a, b) => first[b] - first[a]);
        await page.getByRole("combobox", { name: "Sort heads" }).selectOption("first");
        await settled(page);
        const order = await page
            .locator(".heads button")
            .evaluateAll((buttons) => buttons.map((button) => Number(button.dataset.head)));
        assert.deepEqual(order, wanted);
        await page.finish();
    },
    async "values: links are those of the strongest keys"(stage) {
        const page = await openPage(stage),
            { answer, request } = await choosePreset(page, "cross");
        await page.getByRole("tab", { name: "Links" }).click();
        await page.getByRole("group", { name: "Queries" }).getByRole("button").nth(1).click();
        const row = answer.outputs.attention[0][0][1];
        const best = row
            .map((weight, j) => [weight, request.tokens.key[j]])
            .sort((a, b) => b[0] - a[0])
            .slice(0, 3)
            .map(([, token]) => token);
        const said = page.locator(".links .note bdi");
        await eventually(async () => assert.deepEqual(await said.allTextContents(), [request.tokens.query[1], ...best]));
        await page.getByRole("combobox", { name: "Which links" }).selectOption("threshold");
        await page.getByRole("slider").fill("0.2");
        await page.getByRole("group", { name: "Queries" }).getByRole("button").nth(2).click();
        const above = answer.outputs.attention[0][0][2].flatMap((w, j) => (w >= 0.2 ? [request.tokens.key[j]] : []));
        await eventually(async () => assert.deepEqual(await said.allTextContents(), [request.tokens.query[2], ...above]));
        await page.finish();
    },
    async "values: weights that are next to nothing have no link, and the links of the chosen word stand out"(stage) {
        const page = await openPage(stage, {}, "/", inLaboratory);
        await page.getByRole("tab", { name: "Links" }).click();
        assert.deepEqual(await page.locator(".links .note bdi").allTextContents(), ["it", "animal"]);
        assert.equal(await page.locator(".links [aria-pressed=true]").textContent(), "it");
        await page.finish();
    },
    async "values: a mistake in a number would be found"(stage) {
        const page = await openPage(stage);
        await page.route("**/v1/**", async (route) => {
            const response = await route.fetch(),
                json = await response.json();
            if (json.outputs?.context) json.outputs.context[0][0][0][0] += 0.01;
            await route.fulfill({ response, json });
        });
        await choosePreset(page, "cross");
        assert.match(await page.locator(".verdict").getAttribute("class"), /bad/);
        assert.match(await page.locator(".checks").textContent(), /1\.0e−2 in context/);
        await chooseStep(page, "softmax");
        await page.finish();
    },
    async "values: a first request that is refused leaves no empty controls"(stage) {
        const refused = addressOf({ endpoint: "attention", request: { inputs: { query: [[1, 0], [0, 1]], key: [[1], [2]] } } });
        const page = await openPage(stage, {}, refused, (one) => one.locator(".notice", { hasText: "refuses" }).waitFor());
        for (const part of [".strip", ".stage", ".rail"]) assert.equal(await page.locator(part).isVisible(), false, part);
        await answerTo(page, () => page.getByRole("combobox", { name: "Example" }).selectOption("three"));
        for (const part of [".strip", ".stage", ".rail"]) assert.ok(await page.locator(part).isVisible(), part);
        await page.finish();
    },
    async "values: long words push nothing out of its place"(stage) {
        const query = ["Donaudampfschifffahrtsgesellschaftskapitän", "x", "muvaffakiyetsizleştiricileştiriveremeyebileceklerimizdenmişsinizcesine"];
        const page = await openPage(stage, {}, addressOf({ endpoint: "attention", request: { inputs: { query: [[1, 0], [0, 1], [1, 1]] }, tokens: { query } } }));
        const wide = await page.evaluate(() => {
            const over = (inner, outer) => inner.getBoundingClientRect().right - outer.getBoundingClientRect().right;
            const rail = Array.from(document.querySelectorAll(".explain :is(td, th, p, b, .pairing > span)"), (one) => over(one, document.querySelector(".explain")));
            const legend = document.querySelector(".legend").getBoundingClientRect(),
                place = document.querySelector(".readout").lastChild.getBoundingClientRect();
            return [...rail, ...(place.bottom > legend.top ? [place.right - legend.left] : [])];
        });
        assert.ok(Math.max(...wide) <= 0, String(Math.max(...wide)));
        await page.finish();
    },
    async "values: what stands below the heads is said, with its unit"(stage) {
        const page = await openPage(stage);
        const note = page.locator(".rail section", { has: page.locator(".heads") }).locator(".note");
        assert.equal(await note.isVisible(), false);
        for (const [sort, said] of [["entropy", /in nats/], ["first", /in %/], ["diagonal", /in %/], ["distance", /in tokens/]]) {
            await page.getByRole("combobox", { name: "Sort heads" }).selectOption(sort);
            await page.waitForFunction((text) => document.querySelector(".heads + .note").textContent.match(text), said.source);
        }
        await page.finish();
    },
    async "values: a double click on a cell of the input changes it"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "three");
        await chooseStep(page, "X");
        const { x, y } = await cellPoint(page, 1, 2);
        await page.mouse.dblclick(x, y);
        const { request } = await answerTo(page, () => page.keyboard.type("7"));
        assert.equal(request.inputs.query[1][2], 7);
        await page.finish();
    },
};
