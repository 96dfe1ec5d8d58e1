/**
 * numbers.mjs: fields for numbers: what they read, and that they never say another number than the one that is computed.
 */
import assert from "node:assert/strict";
import { answerTo, choosePreset, chooseStep, focusGrid, inLaboratory, numberOf, openPage, settled } from "../support.mjs";

const LOCALES = ["en-GB", "tr-TR", "ru-RU"];

/** The field of the cell [row, col] of X, focused by Enter, in an example with numbers written by hand. */
async function openCell(page, row, col) {
    await choosePreset(page, "three");
    await chooseStep(page, "X");
    await focusGrid(page);
    for (let n = 0; n < row; n++) await page.keyboard.press("ArrowDown");
    for (let n = 0; n < col; n++) await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Enter");
    const field = page.locator(".explain input");
    await field.waitFor();
    return field;
}

const heading = (page) => page.locator(".explain .pairing b").textContent();
const shown = (page) => page.locator(".readout b").textContent();

/** The field, the heading beside it and the map say the same. */
async function saysOnly(page, field, text) {
    await settled(page);
    await page.waitForFunction((wanted) => document.querySelector(".explain .pairing b").textContent === wanted, text);
    assert.equal(await field.inputValue(), text);
    assert.equal(await shown(page), text);
    assert.equal(await heading(page), text);
}

export const cases = {
    ...Object.fromEntries(
        LOCALES.map((locale) => [
            `numbers: "1,5" is 1.5, never 15, in ${locale}`,
            async (stage) => {
                const page = await openPage(stage, { locale });
                await page.locator(".bar select").first().selectOption("three");
                await page.locator(".stage h2", { hasText: "3 × 3" }).waitFor();
                await page.locator(".strip button").first().click();
                await focusGrid(page);
                await page.keyboard.press("Enter");
                const asked = [];
                page.on("request", (one) => one.method() === "POST" && asked.push(one.postDataJSON()));
                await page.keyboard.type("1,5", { delay: 60 });
                const written = (text) => (locale === "en-GB" ? text : text.replace(".", ","));
                await page.waitForFunction((text) => document.querySelector(".explain .pairing b").textContent === text, written("1.5"));
                const scale = page.locator(".panel input[placeholder='1/√d_k']");
                await scale.focus();
                await page.keyboard.type("2,5", { delay: 60 });
                await page.waitForFunction((text) => document.querySelector(".checks dl").textContent.includes(text), written("2.5"));
                assert.deepEqual([asked.at(-1).inputs.query[0][0], asked.at(-1).options.scale], [1.5, 2.5]);
                for (const { inputs, options } of asked)
                    assert.ok(inputs.query[0][0] <= 1.5 && (options.scale ?? 2) <= 2.5);
                await page.finish();
            },
        ]),
    ),
    async "numbers: what is no number is marked, sent nowhere, and gone after leaving"(stage) {
        const page = await openPage(stage),
            field = await openCell(page, 0, 1),
            asked = [];
        page.on("request", (one) => one.method() === "POST" && asked.push(one));
        for (const text of ["abc", "1.234,5", "-", "1e400", ""]) {
            await field.fill(text);
            assert.equal(await field.getAttribute("aria-invalid"), "true", text);
        }
        await page.getByRole("tab", { name: "Map" }).focus();
        assert.equal(await field.inputValue(), "0.7");
        assert.equal(await field.getAttribute("aria-invalid"), "false");
        assert.deepEqual(asked, []);
        await saysOnly(page, field, "0.7");
        await page.finish();
    },
    async "numbers: the field, its heading and the map agree while typing, undoing and redoing"(stage) {
        const page = await openPage(stage),
            field = await openCell(page, 1, 2);
        await answerTo(page, () => page.keyboard.type("9"));
        await saysOnly(page, field, "9");
        assert.equal(await page.evaluate(() => document.activeElement.tagName), "INPUT");
        await answerTo(page, () => page.keyboard.press("Control+z"));
        await saysOnly(page, field, "0.3");
        await answerTo(page, () => page.keyboard.press("Control+y"));
        await saysOnly(page, field, "9");
        await answerTo(page, () => page.getByRole("button", { name: "Undo" }).click());
        await saysOnly(page, field, "0.3");
        await page.finish();
    },
    async "numbers: Ctrl+Z on half a number takes back the typing, not the edit before"(stage) {
        const page = await openPage(stage),
            field = await openCell(page, 1, 2);
        await answerTo(page, () => page.keyboard.type("9"));
        await field.fill("");
        await page.keyboard.press("Control+z");
        await saysOnly(page, field, "9");
        await answerTo(page, () => page.keyboard.press("Control+z"));
        await saysOnly(page, field, "0.3");
        await page.finish();
    },
    async "numbers: another example under the field replaces what it says"(stage) {
        const page = await openPage(stage),
            field = await openCell(page, 0, 0);
        await answerTo(page, () => page.keyboard.type("9"));
        await choosePreset(page, "bare");
        await chooseStep(page, "X");
        await settled(page);
        assert.equal(await field.inputValue(), String(Number((await shown(page)).replace("−", "-"))));
        await page.finish();
    },
    async "numbers: arrows step a field, and Enter and Escape go back to the map"(stage) {
        const page = await openPage(stage),
            field = await openCell(page, 0, 1);
        await answerTo(page, () => page.keyboard.press("ArrowUp"));
        await saysOnly(page, field, "0.8");
        await page.keyboard.press("Enter");
        assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "gridcell");
        await page.keyboard.press("Enter");
        await page.keyboard.type("abc");
        await page.keyboard.press("Escape");
        assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "gridcell");
        await saysOnly(page, field, "0.8");
        await page.finish();
    },
    async "numbers: a table has one form, its digits stand below each other, and the whole number is a hint"(stage) {
        const page = await openPage(stage, { viewport: { width: 1366, height: 768 } }, "/", inLaboratory);
        for (const step of ["softmax", "· scale"]) {
            await chooseStep(page, step);
            await page.getByRole("tab", { name: "Table" }).click();
            const cells = await page.locator(".table tbody td").evaluateAll((all) => all.map(({ textContent, title }) => [textContent, title]));
            const forms = new Set(cells.map(([text]) => text.replace(/^−?\d+/, "").replace(/\d/g, "0")));
            assert.equal(forms.size, 1, `${step}: ${[...forms].join(" ")}`);
            const [decimals] = [...forms].map((form) => form.length - 1);
            for (const [text, whole] of cells) assert.ok(Math.abs(numberOf(text) - numberOf(whole)) <= 0.51 * 10 ** -decimals, `${step}: ${text} for ${whole}`);
            await page.getByRole("tab", { name: "Map" }).click();
        }
        await page.finish();
    },
};
