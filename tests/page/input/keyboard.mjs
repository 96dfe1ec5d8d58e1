/**
 * keyboard.mjs: all of it without a pointer.
 */
import assert from "node:assert/strict";
import { choosePreset, focusGrid, openPage, settled } from "../support.mjs";

const place = (page) =>
    page.evaluate(() =>
        [document.querySelector("[role=row]").ariaRowIndex, document.querySelector("[role=gridcell]").ariaColIndex].map(
            (at) => Number(at) - 1,
        ),
    );

const focused = (page) =>
    page.evaluate(() => document.activeElement?.getAttribute("role") ?? document.activeElement?.tagName);

export const cases = {
    async "keyboard: Tab reaches everything that can be done, and the map is one stop"(stage) {
        const page = await openPage(stage),
            stops = [];
        for (let n = 0; n < 200; n++) {
            await page.keyboard.press("Tab");
            const name = await page.evaluate(() => {
                const element = document.activeElement;
                return element === document.body
                    ? null
                    : element.getAttribute("aria-label") || element.textContent.trim().slice(0, 30) || element.tagName;
            });
            if (name === null) break;
            stops.push(name);
        }
        const wanted = ["Share", "X12 × 16", "Make tokens", "Paint mask", "Map", "head 3"];
        for (const name of wanted) assert.ok(stops.includes(name), `${name} in ${stops}`);
        assert.equal(await page.locator("[role=gridcell]").count(), 1);
        await page.finish();
    },
    async "keyboard: arrows, Home, End and Page walk the cells, and stay inside"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "cross");
        await focusGrid(page);
        const walk = [
            ["ArrowRight", [0, 1]],
            ["ArrowDown", [1, 1]],
            ["ArrowLeft", [1, 0]],
            ["ArrowLeft", [1, 0]],
            ["End", [1, 7]],
            ["ArrowRight", [1, 7]],
            ["PageDown", [3, 7]],
            ["ArrowDown", [3, 7]],
            ["Home", [3, 0]],
            ["PageUp", [0, 0]],
            ["ArrowUp", [0, 0]],
            ["Control+End", [3, 7]],
            ["Control+Home", [0, 0]],
        ];
        for (const [key, wanted] of walk) {
            await page.keyboard.press(key);
            assert.deepEqual(await place(page), wanted, key);
            assert.equal(await focused(page), "gridcell");
        }
        const grid = page.getByRole("grid");
        assert.equal(await grid.getAttribute("aria-rowcount"), "4");
        assert.equal(await grid.getAttribute("aria-colcount"), "8");
        await page.finish();
    },
    async "keyboard: the focused cell says its tokens and its weight"(stage) {
        const page = await openPage(stage),
            { answer, request } = await choosePreset(page, "cross");
        await focusGrid(page);
        for (const key of ["ArrowDown", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
        const said = await page.locator(".spoken").textContent(),
            weight = answer.outputs.attention[0][0][1][2];
        assert.ok(said.startsWith(`${request.tokens.query[1]} → ${request.tokens.key[2]}, `), said);
        assert.ok(Math.abs(Number(said.split(", ").at(-1)) - weight) < 1e-6, said);
        assert.equal(await page.locator("[role=gridcell]").getAttribute("aria-label"), said);
        assert.equal(await page.locator(".spoken").getAttribute("aria-live"), "polite");
        const box = await page.locator("[role=gridcell]").boundingBox(),
            grid = await page.getByRole("grid").boundingBox();
        assert.ok(box.x > grid.x && box.y > grid.y && box.width >= 20);
        await page.finish();
    },
    async "keyboard: zoom, tabs, menus and undo"(stage) {
        const page = await openPage(stage);
        await focusGrid(page);
        const width = async () => (await page.locator("[role=gridcell]").boundingBox()).width,
            before = await width();
        await page.keyboard.press("+");
        await settled(page);
        assert.ok((await width()) > before);
        await page.keyboard.press("0");
        await settled(page);
        assert.equal(await width(), before);
        await page.getByRole("tab", { name: "Map" }).focus();
        await page.keyboard.press("ArrowRight");
        assert.equal(await page.getByRole("tab", { name: "Links" }).getAttribute("aria-selected"), "true");
        const summary = page.locator(".menu summary").first();
        await summary.focus();
        await page.keyboard.press("Enter");
        assert.equal(await page.getByRole("button", { name: "curl" }).isVisible(), true);
        await page.keyboard.press("Escape");
        assert.equal(await page.getByRole("button", { name: "curl" }).isVisible(), false);
        await choosePreset(page, "three");
        await page.keyboard.press("Control+z");
        await page.waitForFunction(() => document.querySelector(".stage h2").textContent.includes("12 × 12"));
        await page.keyboard.press("Control+y");
        await page.waitForFunction(() => document.querySelector(".stage h2").textContent.includes("3 × 3"));
        await page.finish();
    },
};
