/**
 * opening.mjs: what a first visitor sees: what this is, a head that has learned something, and all of its map.
 */
import assert from "node:assert/strict";
import { answerTo, numberOf, openPage } from "../support.mjs";

const LOCALES = {
    "en-GB": { word: "it", noun: "animal", purpose: /^Attention, step by step: .*each word/ },
    "tr-TR": { word: "o", noun: "Hayvan", purpose: /^Adım adım dikkat: .*her sözcük/ },
    "ru-RU": { word: "оно", noun: "Животное", purpose: /^Внимание шаг за шагом: .*каждое слово/ },
};

/** The laptop, the desktop, and their themes. */
const WINDOWS = [
    { width: 1366, height: 768 },
    { width: 1440, height: 900 },
    { width: 1536, height: 864 },
    { width: 1920, height: 1080 },
];

const open = (stage, options) => openPage(stage, options, "/");

const readout = (page) => page.locator(".readout").textContent();

export const cases = {
    ...Object.fromEntries(
        Object.entries(LOCALES).map(([locale, { word, noun, purpose }]) => [
            `opening: it says what it is, and a trained head finds "${noun}" for "${word}"`,
            async (stage) => {
                const page = await open(stage, { locale });
                assert.match(await page.locator(".purpose").textContent(), purpose);
                const [, row, column, value] = /^(.+) → (.+?)(0[.,]9\d+|1)\[/.exec(await readout(page)) ?? [];
                assert.deepEqual([row, column], [word, noun], await readout(page));
                assert.ok(numberOf(value) > 0.9);
                assert.match(await page.locator(".role").textContent(), /3.* 0 /);
                assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
                assert.equal(new URL(page.url()).hash, "");
                await page.finish();
            },
        ]),
    ),
    async "opening: what the page shows is what the model computes"(stage) {
        const page = await open(stage),
            text = await page.getByLabel("Sentence").inputValue();
        const { outputs } = await page.evaluate(async (sentence) => {
            const body = JSON.stringify({ inputs: { text: sentence }, options: { layers: [3], heads: [0] } });
            const headers = { "Content-Type": "application/json" };
            return (await fetch("v1/models/demo/attention", { method: "POST", headers, body })).json();
        }, text);
        await page.getByRole("tab", { name: "Table" }).click();
        const cells = await page
            .locator(".table tbody tr")
            .evaluateAll((rows) => rows.map((row) => Array.from(row.querySelectorAll("td"), (td) => td.textContent)));
        cells.forEach((row, i) =>
            row.forEach((value, j) => assert.ok(Math.abs(numberOf(value) - outputs.attention[0][0][0][i][j]) < 1e-3, `${i} ${j}`)),
        );
        await page.finish();
    },
    async "opening: the whole map is above the fold"(stage) {
        for (const locale of Object.keys(LOCALES))
            for (const viewport of WINDOWS) {
                const page = await open(stage, { locale, viewport });
                const box = await page.locator(".map").boundingBox(),
                    where = `${locale} ${viewport.width} × ${viewport.height}`;
                assert.ok(box.y + box.height <= viewport.height, `${where}: ${box.y + box.height}`);
                const used = await page.evaluate(() => {
                    const bars = document.querySelector(".bars").getBoundingClientRect(),
                        stage_ = document.querySelector(".stage").getBoundingClientRect();
                    return (bars.right - stage_.left) / stage_.width;
                });
                assert.ok(used > 0.8, `${where}: ${used} of the width is used`);
                await page.finish();
            }
    },
    async "opening: the word that is written instead sends the head to the other noun"(stage) {
        const page = await open(stage);
        await answerTo(page, () => page.getByRole("button", { name: "wide", exact: true }).click());
        assert.match(await readout(page), /^it → street/);
        assert.match(await page.getByLabel("Sentence").inputValue(), /wide$/);
        await page.getByRole("button", { name: "tired", exact: true }).waitFor();
        await page.finish();
    },
    async "opening: the sentence is read as it is typed, by the same head"(stage) {
        const page = await open(stage);
        const { response } = await answerTo(page, () =>
            page.getByLabel("Sentence").fill("The trophy did not fit in the suitcase because it was too big"),
        );
        assert.ok(response.url().includes("/v1/"));
        await page.waitForFunction(() => /^it → trophy/.test(document.querySelector(".readout").textContent));
        await page.keyboard.press("Control+Home");
        await page.getByRole("button", { name: "Undo" }).click();
        await page.waitForFunction(() => /14 × 14/.test(document.querySelector(".stage h2").textContent));
        await page.finish();
    },
    async "opening: every trained example opens on its head, and the bars are those of the row"(stage) {
        const page = await open(stage);
        for (const [id, row, column] of [
            ["demo.subject", "are", "keys"],
            ["demo.bracket", ")", "("],
            ["demo.same", "tea", "tea"],
            ["demo.previous", "likes", "Tom"],
        ]) {
            await answerTo(page, () => page.getByRole("combobox", { name: "Example" }).selectOption(id));
            await page.waitForFunction(
                (text) => document.querySelector(".readout").textContent.startsWith(text),
                `${row} → ${column}`,
            );
            const widest = await page.locator(".bars button").evaluateAll((buttons) => {
                const wide = (one) => parseFloat(one.querySelector("i").style.width);
                return buttons.sort((a, b) => wide(b) - wide(a))[0].getAttribute("aria-pressed");
            });
            assert.equal(widest, "true", id);
        }
        await page.finish();
    },
    async "opening: without the model there is a sentence all the same"(stage) {
        const page = await openPage(stage, {}, "/", async (one) => {
            await one.context().route("**/v1/models/**", (route) => route.fulfill({ status: 404, json: { error: "no" } }));
            await one.reload();
            await one.locator(".stage h2", { hasText: "12 × 12" }).waitFor();
        });
        assert.equal(await page.locator(".role").isVisible(), false);
        assert.match(await page.locator(".panel").textContent(), /Seeded random numbers/);
        await page.finish();
    },
    async "opening: every step says in words what it does, and in what order"(stage) {
        const page = await open(stage);
        for (const button of await page.locator(".strip button").all()) {
            await button.click();
            const words = await page.locator(".in-words").textContent();
            assert.ok((await button.textContent()).startsWith(words + " "), words);
        }
        assert.match(await page.locator(".strip").textContent(), /X .*·.*W_Q .*,.*W_K .*→.*Q .*→.*QKᵀ .*→.*softmax .*→.*A V .*·.*W_O .*=.*· W_O .*output /);
        await page.finish();
    },
    async "opening: on a phone the strip shows to which side it goes on"(stage) {
        const page = await open(stage, { viewport: { width: 390, height: 844 } }),
            edges = () => page.locator(".strip").evaluate(({ classList }) => ["more-before", "more-after"].map((name) => classList.contains(name)));
        assert.deepEqual(await edges(), [true, true]);
        for (const [left, wanted] of [[0, [false, true]], [1e6, [true, false]]]) {
            await page.locator(".strip").evaluate((strip, to) => (strip.scrollLeft = to), left);
            await page.waitForFunction((name) => !document.querySelector(".strip").classList.contains(name), wanted[0] ? "more-after" : "more-before");
            assert.deepEqual(await edges(), wanted);
        }
        await page.finish();
    },
};
