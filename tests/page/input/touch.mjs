/**
 * touch.mjs: fingers on the map, as the browser's own input sees them: one gesture does one thing.
 */
import assert from "node:assert/strict";
import { answerTo, choosePreset, opened, openPage, settled, tabOf } from "../support.mjs";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

/** Fingers that go from place to place in so many steps. @param {{from: object, to: object}[]} fingers */
async function gesture(page, fingers, steps = 8) {
    const session = await page.context().newCDPSession(page);
    const at = (part) =>
        fingers.map(({ from, to }, id) => ({
            id,
            x: from.x + (to.x - from.x) * part,
            y: from.y + (to.y - from.y) * part,
        }));
    const send = (type, touchPoints) => session.send("Input.dispatchTouchEvent", { type, touchPoints });
    await send("touchStart", at(0).slice(0, 1));
    if (fingers.length > 1) await send("touchStart", at(0));
    for (let n = 1; n <= steps; n++) await send("touchMove", at(n / steps));
    await send("touchEnd", []);
    await session.detach();
    await settled(page);
}

/** Middle of a cell, without the keyboard: from the one real cell and what it says of its place. */
async function middleOf(page, row, col) {
    const cell = page.locator("[role=gridcell]"),
        box = await cell.boundingBox();
    const [i, j] = [
        Number(await page.locator("[role=row]").getAttribute("aria-rowindex")) - 1,
        Number(await cell.getAttribute("aria-colindex")) - 1,
    ];
    return { x: box.x + (col - j + 0.5) * box.width, y: box.y + (row - i + 0.5) * box.height };
}

const measures = (page) =>
    page.evaluate(() => {
        const box = document.querySelector("[role=gridcell]").getBoundingClientRect();
        return {
            cell: box.width,
            x: box.x,
            y: box.y + window.scrollY,
            page: window.visualViewport.scale,
            scroll: window.visualViewport.pageTop,
        };
    });

/** The map in the middle of the screen, so that there is a way to scroll either way. */
async function toMiddle(page) {
    await page.locator(".map").evaluate((map) => map.scrollIntoView({ block: "center" }));
    await settled(page);
}

async function openMap(stage, preset = "causal", options = PHONE) {
    const page = await openPage(stage, options);
    await choosePreset(page, preset);
    await toMiddle(page);
    return page;
}

async function startPainting(page) {
    await page.getByRole("button", { name: "Paint mask" }).click();
    await toMiddle(page);
}

/** The painted mask as the server is told of it: rows of "." and "#". */
async function painted(page) {
    await page.getByText("A painted mask is in force.").waitFor({ state: "attached" });
    await settled(page);
    const { request } = await answerTo(page, () => page.getByLabel("Causal").evaluate((box) => box.click()));
    return request.masks.attend.map((row) => row.map((isOpen) => (isOpen ? "." : "#")).join(""));
}

async function pinch(page, row, col, factor) {
    const { x, y } = await middleOf(page, row, col);
    await gesture(page, [
        { from: { x: x - 20, y: y - 20 }, to: { x: x - 20 * factor, y: y - 20 * factor } },
        { from: { x: x + 20, y: y + 20 }, to: { x: x + 20 * factor, y: y + 20 * factor } },
    ]);
}

/** The middles of what the bar shows, from the top. */
const rowsOfBar = (page) =>
    page.locator("header > :visible").evaluateAll((all) => {
        const middles = all.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => (top + bottom) / 2);
        return middles.sort((a, b) => a - b).filter((middle, at) => at === 0 || middle - middles[at - 1] > 8);
    });

export const cases = {
    async "touch: on a phone the bar has two rows at most, unfolds, and every control of it is on the screen"(stage) {
        for (const locale of ["en-GB", "tr-TR", "ru-RU"]) {
            const page = await openPage(stage, { ...PHONE, locale }, "/", opened);
            for (const mode of ["lab", "story", "models", "start"]) {
                await tabOf(page, mode).tap();
                assert.ok((await rowsOfBar(page)).length <= 2, `${locale}, mode ${mode}`);
            }
            await page.locator("header .more").tap();
            assert.equal(await page.locator("header .more").getAttribute("aria-expanded"), "true");
            const lefts = await page.locator("header :is(button, select, summary):visible").evaluateAll((all) =>
                all.map((one) => one.getBoundingClientRect()).filter(({ left, right }) => left < 0 || right > window.innerWidth),
            );
            assert.deepEqual(lefts, [], locale);
            await page.finish();
        }
    },
    async "touch: the strip shows that there is more of it, at the sides where there is"(stage) {
        const page = await openPage(stage, PHONE),
            strip = page.locator(".strip");
        assert.ok(await strip.evaluate((one) => one.scrollWidth > one.clientWidth + 100));
        const open = await strip.locator("[aria-pressed=true]").boundingBox();
        assert.ok(open.x >= 0 && open.x + open.width <= 390, "the open step is seen");
        for (const [place, classes] of [
            [0, /more-after$/],
            [1e6, /more-before$/],
        ]) {
            await strip.evaluate((one, left) => (one.scrollLeft = left), place);
            await page.waitForFunction((wanted) => new RegExp(wanted).test(document.querySelector(".strip").className.trim()), classes.source);
            assert.match(await strip.evaluate((one) => getComputedStyle(one).maskImage), /gradient/);
        }
        await page.finish();
    },
    async "touch: a pinch on the map zooms the map alone, beside it the page alone"(stage) {
        const page = await openMap(stage),
            before = await measures(page);
        await pinch(page, 6, 6, 3);
        const after = await measures(page);
        assert.ok(after.cell > 1.5 * before.cell, `cells of ${before.cell} and ${after.cell} px`);
        assert.equal(after.page, 1);
        assert.equal(after.scroll, before.scroll);
        const title = await page.locator(".stage h2").boundingBox();
        const { x, y } = { x: title.x + 60, y: title.y + 8 };
        await gesture(page, [
            { from: { x: x - 20, y }, to: { x: x - 50, y } },
            { from: { x: x + 20, y }, to: { x: x + 150, y } },
        ]);
        const beside = await measures(page);
        assert.ok(beside.page > 1.2, `the page is zoomed by ${beside.page}`);
        assert.equal(beside.cell, after.cell);
        await page.finish();
    },
    async "touch: one finger scrolls the page past a whole map, and moves a zoomed one both ways"(stage) {
        const page = await openMap(stage);
        const whole = await measures(page),
            from = await middleOf(page, 8, 6);
        await gesture(page, [{ from, to: { x: from.x, y: from.y - 120 } }]);
        const scrolled = await measures(page);
        assert.ok(scrolled.scroll > whole.scroll + 60, `scrolled by ${scrolled.scroll - whole.scroll}`);
        assert.deepEqual([scrolled.x, scrolled.y], [whole.x, whole.y]);
        for (let n = 0; n < 3; n++) await page.getByRole("button", { name: "Zoom in" }).click();
        await toMiddle(page);
        const zoomed = await measures(page);
        assert.ok(zoomed.cell > 1.5 * whole.cell);
        const map = await page.locator(".map").boundingBox(),
            middle = { x: map.x + map.width / 2, y: map.y + map.height / 2 };
        const seen = async () => {
            await gesture(page, [{ from: middle, to: middle }], 0);
            return page.locator(".readout small").textContent();
        };
        const places = [await seen()];
        for (const [x, y] of [
            [0, -80],
            [-80, 0],
            [0, 80],
        ]) {
            await gesture(page, [{ from: middle, to: { x: middle.x + x, y: middle.y + y } }]);
            places.push(await seen());
        }
        const [[i0, j0], [i1, j1], [i2, j2], [i3, j3]] = places.map((text) => text.match(/\d+/g).map(Number));
        assert.ok(i1 > i0 && j1 === j0, `down: ${places}`);
        assert.ok(j2 > j1 && i2 === i1, `right: ${places}`);
        assert.ok(i3 < i2 && j3 === j2, `up: ${places}`);
        assert.equal((await measures(page)).scroll, zoomed.scroll);
        await page.finish();
    },
    async "touch: a vertical stroke paints every cell, and does not scroll"(stage) {
        const page = await openMap(stage, "cross");
        await startPainting(page);
        const before = await measures(page),
            [from, to] = [await middleOf(page, 0, 2), await middleOf(page, 3, 2)];
        await gesture(page, [{ from, to }], 20);
        assert.equal((await measures(page)).scroll, before.scroll);
        assert.deepEqual(await painted(page), Array(4).fill("..#....."));
        await page.finish();
    },
    async "touch: a pinch while painting zooms and paints nothing, a tap paints its cell"(stage) {
        const page = await openMap(stage, "cross");
        await startPainting(page);
        const before = await measures(page),
            asked = page.asked.length;
        await pinch(page, 1, 3, 3);
        const after = await measures(page);
        assert.ok(after.cell > 1.3 * before.cell, `cells of ${before.cell} and ${after.cell} px`);
        assert.equal(after.page, 1);
        assert.equal(page.asked.length, asked);
        await page.getByRole("button", { name: "Show all" }).click();
        await toMiddle(page);
        const place = await middleOf(page, 1, 3);
        await gesture(page, [{ from: place, to: place }], 0);
        assert.deepEqual(await painted(page), ["........", "...#....", "........", "........"]);
        await page.finish();
    },
    async "touch: a fast stroke leaves no cell out, by mouse and by finger"(stage) {
        for (const options of [{}, PHONE]) {
            const page = await openMap(stage, "scripts", options);
            await startPainting(page);
            const [from, to] = [await middleOf(page, 0, 0), await middleOf(page, 10, 10)];
            if (options.hasTouch) await gesture(page, [{ from, to }], 2);
            else {
                await page.mouse.move(from.x, from.y);
                await page.mouse.down();
                await page.mouse.move(to.x, to.y, { steps: 2 });
                await page.mouse.up();
            }
            const rows = await painted(page);
            for (let n = 0; n <= 10; n++) assert.equal(rows[n][n], "#", rows.join("\n"));
            assert.ok(rows.join("").split("#").length - 1 <= 31, rows.join("\n"));
            await page.finish();
        }
    },
    async "touch: the wheel scrolls the page past a large map that has not the focus"(stage) {
        const page = await openMap(stage, "large", {});
        const box = await page.locator(".map").boundingBox(),
            width = () => page.locator("[role=gridcell]").evaluate((cell) => parseFloat(cell.style.width));
        await page.evaluate(() => window.scrollTo(0, 0));
        await page.getByRole("tab", { name: "Map" }).focus();
        await page.mouse.move(box.x + 300, 500);
        const before = await width();
        await page.mouse.wheel(0, 120);
        await page.waitForFunction(() => window.scrollY > 0);
        assert.equal(await width(), before);
        await page.mouse.click(box.x + 300, 500);
        await page.mouse.wheel(0, -2000);
        await page.waitForFunction(
            (least) => parseFloat(document.querySelector("[role=gridcell]").style.width) > least,
            before + 0.5,
        );
        await page.finish();
    },
};
