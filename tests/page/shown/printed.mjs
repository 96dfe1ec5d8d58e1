/**
 * printed.mjs: on paper stands what is shown, without controls.
 */
import assert from "node:assert/strict";
import { inLaboratory, opened, openPage, tabOf } from "../support.mjs";

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
    async "printed: what is shown, in black on white, and no control"(stage) {
        for (const [mode, [come, shown, most]] of Object.entries(MODES)) {
            const page = await openPage(stage, { viewport: { width: 1366, height: 900 }, colorScheme: "dark" }, "/", come),
                paper = await page.pdf({ format: "A4" }),
                pages = paper.toString("latin1").match(/\/Type \/Page\b/g).length;
            if (process.env.TAKE) (await import("node:fs")).writeFileSync(`${process.env.TAKE}/${mode}.pdf`, paper);
            await page.emulateMedia({ media: "print" });
            const controls = await page.locator(":is(select, input, textarea, summary, [role=tab]):visible").evaluateAll((all) => all.map((one) => one.outerHTML.slice(0, 80)));
            assert.deepEqual(controls, [], mode);
            for (const selector of shown) assert.ok(await page.locator(selector).first().isVisible(), `${mode}: ${selector}`);
            assert.equal(await page.evaluate(() => getComputedStyle(document.body).color), "rgb(21, 25, 31)", mode);
            assert.ok(pages <= most, `${mode}: ${pages} pages`);
            await page.finish();
        }
    },
};
