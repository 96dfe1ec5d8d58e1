/**
 * compare.mjs: of two runs each shows its own numbers and its own mask, in every part of the page and in every file.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import {
    answerTo,
    assertClose,
    cellPoint,
    choosePreset,
    chooseStep,
    copied,
    eventually,
    exported,
    focusGrid,
    inFolder,
    numberOf,
    openPage,
    readNpy,
    settled,
    tableOf,
} from "../support.mjs";

const HIDDEN = "–";

/** A is the sentence without a mask; B is causal. The cell [0, 8], "The → it", is A's alone. */
async function openTwo(stage, options) {
    const page = await openPage(stage, options);
    await choosePreset(page, "three");
    const { answer: a, request } = await choosePreset(page, "sentence");
    await page.getByRole("button", { name: "Keep as A" }).click();
    const { answer: b } = await answerTo(page, () => page.getByLabel("Causal").check());
    const [ofA, ofB] = [a, b].map((answer) => answer.outputs);
    return { page, a: ofA, b: ofB, request };
}

const show = async (page, name) => {
    await page.locator(".compare").getByRole("button", { name, exact: true }).click();
    await settled(page);
};

async function goTo(page, row, col) {
    await focusGrid(page);
    for (let n = 0; n < row; n++) await page.keyboard.press("ArrowDown");
    for (let n = 0; n < col; n++) await page.keyboard.press("ArrowRight");
}

/** What every place says of the focused cell. */
const said = async (page) => ({
    readout: await page.locator(".readout b").textContent(),
    cell: (await page.locator("[role=gridcell]").getAttribute("aria-label")).split(", ").at(-1),
    heading: await page.locator(".explain .pairing b").textContent(),
});

const csvOf = (path) =>
    readFileSync(path, "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split(","));

export const cases = {
    async "compare: A alone has its own numbers and mask: map, number, table, checks, title"(stage) {
        const { page, a, b } = await openTwo(stage);
        await goTo(page, 0, 8);
        for (const text of Object.values(await said(page))) assert.equal(text, "masked");
        assert.match(await page.locator(".stage h2").textContent(), /^B · softmax · head 0/);
        await show(page, "A");
        const found = await said(page);
        for (const text of Object.values(found)) assertClose(numberOf(text), a.attention[0][0][0][8], 6, "A [0, 8]");
        assert.match(await page.locator(".stage h2").textContent(), /^A · softmax · head 0/);
        assert.equal(await page.getByRole("grid").getAttribute("aria-label"), await page.locator(".stage h2").textContent());
        assert.match(await page.locator(".checks h2").textContent(), /A$/);
        assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
        const [here, server] = await page.locator(".explain .sum b").allTextContents();
        assertClose(numberOf(server), a.attention[0][0][0][8], 7, "server");
        assertClose(numberOf(here), a.attention[0][0][0][8], 5, "here");
        assert.equal(await page.locator(".terms tbody tr").count(), 12);
        const table = await tableOf(page);
        a.attention[0][0].forEach((row, i) =>
            row.forEach((value, j) => assertClose(numberOf(table[i][j]), value, 3, `A [${i}, ${j}]`)),
        );
        await show(page, "B: now");
        const hidden = (await tableOf(page)).flat().filter((text) => text === HIDDEN);
        assert.equal(hidden.length, (12 * 11) / 2);
        assert.equal(b.attention[0][0][0][8], 0);
        await page.finish();
    },
    async "compare: B − A hides only what both hide, and is no sum of a mask"(stage) {
        const { page, a, b } = await openTwo(stage);
        await show(page, "B − A");
        await goTo(page, 0, 8);
        const difference = (i, j) => b.attention[0][0][i][j] - a.attention[0][0][i][j];
        for (const text of Object.values(await said(page))) assertClose(numberOf(text), difference(0, 8), 5, "B − A");
        assert.deepEqual(
            (await page.locator(".explain .sum b").allTextContents()).map(numberOf).map((value) => value.toFixed(6)),
            [b, a].map(({ attention }) => attention[0][0][0][8].toFixed(6)),
        );
        const table = await tableOf(page);
        table.forEach((row, i) =>
            row.forEach((text, j) => assertClose(numberOf(text), difference(i, j), 3, `[${i}, ${j}]`)),
        );
        assert.deepEqual(await page.locator(".checks h3").allTextContents(), ["B", "A"]);
        assert.equal(await page.locator(".verdict.good").count(), 2);
        await chooseStep(page, "+ mask");
        await settled(page);
        const scores = await tableOf(page);
        assert.equal(scores.flat().filter((text) => text === HIDDEN).length, (12 * 11) / 2);
        assert.ok(scores.every((row) => !row.some((text) => /∞|NaN/.test(text))));
        await page.finish();
    },
    async "compare: a mask of A alone is A's: the other way round"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "causal");
        await page.getByRole("button", { name: "Keep as A" }).click();
        const { answer } = await answerTo(page, () => page.getByLabel("Causal").uncheck());
        await show(page, "A");
        assert.equal((await tableOf(page)).flat().filter((text) => text === HIDDEN).length, (14 * 13) / 2);
        await show(page, "B: now");
        assert.equal((await tableOf(page)).flat().filter((text) => text === HIDDEN).length, 0);
        await show(page, "B − A");
        const table = await tableOf(page);
        assertClose(numberOf(table[0][13]), answer.outputs.attention[0][0][0][13], 3, "masked in A: all of B's");
        await page.finish();
    },
    async "compare: files hold the run that is shown, and say which in their names and titles"(stage) {
        await inFolder(async (folder) => {
            const { page, a, b } = await openTwo(stage, { permissions: ["clipboard-read", "clipboard-write"] });
            for (const [name, file, valueOf] of [
                ["A", "A", (i, j) => a.attention[0][0][i][j]],
                ["B: now", "B", (i, j) => b.attention[0][0][i][j]],
                ["B − A", "B-minus-A", (i, j) => b.attention[0][0][i][j] - a.attention[0][0][i][j]],
            ]) {
                await show(page, name);
                const [csv, npy, svg, png] = [
                    await exported(page, "CSV", folder),
                    await exported(page, "NPY", folder),
                    await exported(page, "SVG", folder),
                    await exported(page, "PNG", folder),
                ];
                for (const path of [csv, npy, svg, png])
                    assert.match(basename(path), new RegExp(`^attention-${file}-attention\\.`));
                const lines = csvOf(csv),
                    { data, isDouble } = readNpy(readFileSync(npy));
                assert.equal(isDouble, false);
                for (let i = 0; i < 12; i++)
                    for (let j = 0; j < 12; j++) {
                        assertClose(data[12 * i + j], valueOf(i, j), 5, `${name} npy [${i}, ${j}]`);
                        const text = lines[i + 1][j + 1],
                            isMasked = name === "B: now" && j > i;
                        if (isMasked) assert.equal(text, "");
                        else assertClose(Number(text), valueOf(i, j), 5, `${name} csv [${i}, ${j}]`);
                    }
                const title = /<title>([^<]*)</.exec(readFileSync(svg, "utf8"))[1];
                assert.ok(title.startsWith(name.replace(": now", "") + " · "), title);
                assert.equal(readFileSync(svg, "utf8").split("url(#hidden)").length - 1, name === "B: now" ? 66 : 0);
            }
            await show(page, "A");
            const json = await exported(page, "JSON", folder);
            assert.equal(basename(json), "attention-A.json");
            const { request, outputs } = JSON.parse(readFileSync(json, "utf8"));
            assert.equal(request.masks?.causal, undefined);
            assertClose(outputs.attention.data[8], a.attention[0][0][0][8], 6, "json");
            assert.equal(JSON.parse(await copied(page, "Request (JSON)")).masks?.causal, undefined);
            assert.equal(basename(await exported(page, "This page (HTML)", folder)), "attention-A.html");
            await page.finish();
        });
    },
    async "compare: colours and small pictures are those of the run that is shown"(stage) {
        const { page } = await openTwo(stage);
        const pixels = () =>
            page.evaluate(() => {
                const [map] = document.querySelectorAll(".map .cells"),
                    head = document.querySelector(".heads canvas"),
                    strip = document.querySelector(".strip [aria-pressed=true] canvas");
                const corner = document.querySelector("[role=gridcell]").getBoundingClientRect(),
                    from = map.getBoundingClientRect(),
                    ratio = map.width / from.width;
                const at = (canvas, x, y) => Array.from(canvas.getContext("2d").getImageData(x, y, 1, 1).data).join();
                return [
                    at(map, (corner.left - from.left + 8.15 * corner.width) * ratio, (corner.top - from.top + 4) * ratio),
                    at(head, 8, 0),
                    at(strip, 8, 0),
                ];
            });
        await focusGrid(page);
        const ofB = await pixels();
        await show(page, "A");
        await focusGrid(page);
        await settled(page);
        await eventually(async () => (await pixels()).forEach((colour, at) => assert.notEqual(colour, ofB[at], `picture ${at}`)));
        await show(page, "B: now");
        await focusGrid(page);
        await settled(page);
        await eventually(async () => assert.deepEqual(await pixels(), ofB));
        await page.finish();
    },
    async "compare: A is never painted or typed into; a change shows B"(stage) {
        const { page } = await openTwo(stage),
            paint = page.getByRole("button", { name: "Paint mask" });
        await paint.click();
        await show(page, "A");
        assert.equal(await paint.getAttribute("aria-pressed"), "false");
        const before = page.asked.length;
        const { x, y } = await cellPoint(page, 3, 3);
        await page.mouse.click(x, y);
        await page.keyboard.press("m");
        assert.match(await page.locator(".notice").textContent(), /A stays as it was kept/);
        await chooseStep(page, "X");
        await settled(page);
        assert.equal(await page.locator(".explain input").isVisible(), false);
        assert.match(await page.locator(".explain .note").first().textContent(), /A stays as it was kept/);
        assert.equal(page.asked.length, before);
        await chooseStep(page, "softmax");
        await paint.click();
        assert.match(await page.locator(".stage h2").textContent(), /^B · /);
        assert.equal(await page.locator(".notice").isVisible(), false);
        await show(page, "A");
        await answerTo(page, () => page.getByLabel("Scale", { exact: true }).fill("0.5"));
        assert.match(await page.locator(".stage h2").textContent(), /^B · /);
        await page.finish();
    },
    async "compare: runs of other shapes are shown each, and not subtracted"(stage) {
        const page = await openPage(stage);
        const { answer } = await choosePreset(page, "cross");
        await page.locator(".heads button").nth(3).click();
        await page.getByRole("button", { name: "Keep as A" }).click();
        await choosePreset(page, "three");
        assert.equal(await page.getByRole("button", { name: "B − A" }).isDisabled(), true);
        await show(page, "A");
        assert.match(await page.locator(".stage h2").textContent(), /^A · softmax · head 0 · 4 × 8$/);
        const table = await tableOf(page);
        assertClose(numberOf(table[3][7]), answer.outputs.attention[0][0][3][7], 3, "A");
        await page.getByRole("button", { name: "Drop A" }).click();
        await settled(page);
        assert.match(await page.locator(".stage h2").textContent(), /^softmax · head 0 · 3 × 3$/);
        assert.equal(await page.getByRole("button", { name: "Keep as A" }).count(), 1);
        await page.finish();
    },
    async "compare: where the two differ most is said"(stage) {
        const { page } = await openTwo(stage);
        await show(page, "B − A");
        const table = (await tableOf(page)).map((row) => row.map((text) => Math.abs(numberOf(text)) || 0)),
            most = Math.max(...table.flat());
        const said = await page.locator(".in-words").textContent();
        assertClose(Math.abs(numberOf(/: ([−\d.e]+),/.exec(said)[1])), most, 3, said);
        await page.finish();
    },
};
