/**
 * presets.mjs: every example opens, agrees with the page's own computation, and shows in every view.
 */
import assert from "node:assert/strict";
import { PRESETS } from "../../../server/web/request/presets.js";
import { choosePreset, numberOf, openPage, someOf } from "../support.mjs";

const NODES_MAX = 1500;

const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);

export const cases = {
    async "presets: a sentence that the server has computed"(stage) {
        const page = await openPage(stage);
        assert.match(await page.locator(".stage h2").textContent(), /^softmax · head 0 · 12 × 12$/);
        assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
        await page.finish();
    },
    ...Object.fromEntries(
        someOf(PRESETS, 2).filter((id) => id !== "large").map((id) => [
            `presets: ${id} in every view`,
            async (stage) => {
                const page = await openPage(stage);
                if (id !== "sentence") {
                    const { response } = await choosePreset(page, id);
                    assert.equal(response.status(), 200, await response.text());
                }
                assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
                let most = 0;
                for (const tab of ["Links", "Table", "Map"]) {
                    await page.getByRole("tab", { name: tab }).click();
                    assert.equal(await page.getByRole("tab", { name: tab }).getAttribute("aria-selected"), "true");
                    most = Math.max(most, await nodes(page));
                }
                for (const button of await page.locator(".strip button").all()) await button.click();
                assert.ok(most <= NODES_MAX, `${most} nodes`);
                await page.finish();
                return `${most} nodes`;
            },
        ]),
    ),
    async "presets: each opens on a weight that is above an equal share of its row, and on another word"(stage) {
        const page = await openPage(stage);
        for (const id of PRESETS.filter((one) => one !== "large" && one !== "twelve")) {
            const { answer } = await choosePreset(page, id);
            const [, row, col] = (/\[(\d+), (\d+)\]$/.exec(await page.locator(".readout").textContent()) ?? []).map(Number),
                map = answer.outputs.attention[id === "padding" ? 1 : 0][0],
                keys = map[row].filter((weight) => weight > 0).length;
            assert.ok(map[row][col] > 1 / keys, `${id} [${row}, ${col}]`);
            assert.notEqual(row + map[0].length - map.length, col, id);
        }
        await page.finish();
    },
    async "presets: many heads keep their colours where the first row has a weight of 1"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "twelve");
        const high = numberOf(await page.locator(".legend span").nth(1).textContent());
        assert.ok(high > 0.05 && high < 0.9, String(high));
        await page.locator(".legend select").selectOption("max");
        await page.waitForFunction(() => document.querySelectorAll(".legend span")[1].textContent === "1");
        await page.finish();
    },
};
