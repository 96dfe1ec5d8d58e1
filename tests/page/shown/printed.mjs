/**
 * printed.mjs: on paper stands what is shown, without controls.
 */
import assert from "node:assert/strict";
import { eventually, inLaboratory, opened, openPage, tabOf } from "../support.mjs";

const inMode = (mode, shown) => async (page) => {
    await opened(page);
    await tabOf(page, mode).click();
    await page.locator(shown).waitFor();
};

/** What each mode prints, and on how many pages at most. */
const MODES = {
    start: [opened, [".answer", ".picture"], 1],
    story: [inMode("story", ".scene svg"), [".say", ".scene svg"], 1],
    lab: [inLaboratory, [".stage h2", ".stage .map", ".readout"], 2],
    models: [inMode("models", ".headview .readout b"), [".headgrid", ".headview .map"], 3],
};

export const cases = {
    async "printed: the line of the opening goes from word to word, and comes back to the screen"(stage) {
        const page = await openPage(stage, { viewport: { width: 1366, height: 900 } }, "/", opened);
        /** How far the line begins and ends from the middle of its words, in pixels. */
        const away = () =>
            page.evaluate(() => {
                const line = document.querySelector(".arcs path"),
                    ends = [0, line.getTotalLength()].map((at) => line.getPointAtLength(at).matrixTransform(line.getScreenCTM()).x);
                return Math.max(...[".word.asking .text", "#word-2 .text"].map((selector, at) => {
                    const { left, width } = document.querySelector(selector).getBoundingClientRect();
                    return Math.abs(left + width / 2 - ends[at]);
                }));
            });
        await eventually(async () => assert.ok((await away()) < 2));
        await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
        await page.emulateMedia({ media: "print" });
        await page.setViewportSize({ width: 720, height: 1000 });
        await page.waitForTimeout(100);
        assert.ok((await away()) < 2, `${await away()} pixels away on paper`);
        await page.emulateMedia({ media: "screen" });
        await page.setViewportSize({ width: 1366, height: 900 });
        await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
        await eventually(async () => assert.ok((await away()) < 2));
        await page.finish();
    },
    async "printed: what is shown, in black on white, and no control"(stage) {
        for (const [mode, [come, shown, most]] of Object.entries(MODES)) {
            const page = await openPage(stage, { viewport: { width: 1366, height: 900 }, colorScheme: "dark" }, "/", come),
                paper = await page.pdf({ format: "A4" }),
                pages = paper.toString("latin1").match(/\/Type \/Page\b/g).length;
            await page.emulateMedia({ media: "print" });
            const controls = await page.locator(":is(select, input, textarea, summary, [role=tab]):visible").evaluateAll((all) => all.map((one) => one.outerHTML.slice(0, 80)));
            assert.deepEqual(controls, [], mode);
            for (const selector of shown) assert.ok(await page.locator(selector).first().isVisible(), `${mode}: ${selector}`);
            assert.equal(await page.evaluate(() => getComputedStyle(document.body).color), "rgb(21, 25, 31)", mode);
            assert.ok(pages <= most, `${mode}: ${pages} pages`);
            const ground = () => page.evaluate(() => Array.from(document.querySelectorAll(".map, .headgrid"), (one) => one.checkVisibility() && getComputedStyle(one).backgroundColor).filter(Boolean));
            assert.ok((await ground()).every((colour) => colour === "rgb(23, 26, 31)"), "pale labels on white");
            await page.finish();
        }
    },
};
