/**
 * keyboard.mjs: all of it without a pointer.
 */
import assert from "node:assert/strict";
import { answerTo, choosePreset, focusGrid, openPage, settled } from "../support.mjs";

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
        const wanted = ["Share", "Make tokens", "Paint mask", "Map", "head 3"];
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
        const label = await page.locator("[role=gridcell]").getAttribute("aria-label"),
            weight = answer.outputs.attention[0][0][1][2];
        assert.ok(label.startsWith(`${request.tokens.query[1]} → ${request.tokens.key[2]}, `), label);
        assert.ok(Math.abs(Number(label.split(", ").at(-1)) - weight) < 1e-6, label);
        await page.locator(".spoken", { hasText: label }).waitFor({ state: "attached" }); // the new result may come before it
        assert.equal(await page.locator(".spoken").getAttribute("aria-live"), "polite");
        const box = await page.locator("[role=gridcell]").boundingBox(),
            grid = await page.getByRole("grid").boundingBox();
        assert.ok(box.x > grid.x && box.y > grid.y && box.width >= 20);
        await page.finish();
    },
    async "keyboard: Shift and arrow keys choose several cells, m masks them, and the screen reader hears which"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "cross");
        await focusGrid(page);
        for (const key of ["ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown"]) await page.keyboard.press(key);
        await page.locator(".spoken", { hasText: "rows 0–1, columns 1–3" }).waitFor({ state: "attached" });
        const { request } = await answerTo(page, () => page.keyboard.press("m"));
        const rows = request.masks.attend.map((row) => row.map((isOpen) => (isOpen ? "." : "#")).join(""));
        assert.deepEqual(rows, [".###....", ".###....", "........", "........"]);
        await page.locator(".spoken", { hasText: /→ .*, masked$/ }).waitFor({ state: "attached" });
        await answerTo(page, () => page.keyboard.press("Control+z"));
        assert.equal(await page.getByText("A painted mask is in force.").isVisible(), false);
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
