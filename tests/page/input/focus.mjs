/**
 * focus.mjs: the way to the map by Tab, bars that are one stop, and a focus that is never lost.
 */
import assert from "node:assert/strict";
import { chooseStep, focusGrid, opened, openPage, SENTENCE, settled, tabOf } from "../support.mjs";
import { computed } from "../models/opened.mjs";

const MODES = ["start", "story", "lab", "models"];
const MAP = ".sentence, .scene, .body [role=gridcell], .headgrid [role=gridcell]";
const MOST_STOPS = 11;
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
const SKIP = { "en-GB": "Skip to the map", "tr-TR": "Haritaya geç", "ru-RU": "Перейти к карте" };

const READY = {
    start: opened,
    story: (page) => page.locator(".scene svg").waitFor(),
    lab: settled,
    models: computed,
};

async function openMode(page, mode) {
    await tabOf(page, mode).click();
    await READY[mode](page);
}

/** A page of this mode as it comes up, with nothing focused yet. */
async function openCold(stage, mode, options) {
    const first = await openPage(stage, {}, "/", opened);
    await openMode(first, mode);
    await first.waitForTimeout(600); // until the address has followed
    const page = await openPage(stage, options, first.url(), READY[mode]);
    await first.finish();
    return page;
}

const isAt = (page, what) => page.evaluate((selector) => document.activeElement.matches(selector), what);
const hasFocus = (page, what) => page.waitForFunction((selector) => document.activeElement.matches(selector), what);
const name = (page) =>
    page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent);

export const cases = {
    ...Object.fromEntries(
        MODES.map((mode) => [
            `focus: Tab comes to the map in at most ${MOST_STOPS} stops from a cold page, ${mode}`,
            async (stage) => {
                for (const options of [{}, PHONE]) {
                    const page = await openCold(stage, mode, options),
                        stops = [];
                    while (stops.length < MOST_STOPS && !(await isAt(page, MAP))) {
                        await page.keyboard.press("Tab");
                        stops.push(await name(page));
                    }
                    assert.ok(await isAt(page, MAP), stops.join(" | "));
                    await page.finish();
                }
            },
        ]),
    ),
    async "focus: the first stop is a link to the map, in each language and mode, and it leaves the address alone"(stage) {
        for (const [locale, text] of Object.entries(SKIP)) {
            const page = await openPage(stage, { locale }, "/", opened);
            await page.evaluate(() => {
                window.jumps = [];
                window.addEventListener("hashchange", ({ newURL }) => window.jumps.push(newURL));
            });
            for (const mode of MODES) {
                await openMode(page, mode);
                await page.evaluate(() => document.activeElement.blur());
                await page.locator(".skip").focus();
                const { x, width } = await page.locator(".skip").boundingBox();
                assert.ok(x >= 0 && width > 0, `it is seen: ${x}`);
                assert.equal(await name(page), text);
                await page.keyboard.press("Enter");
                await hasFocus(page, MAP);
                assert.notEqual(await page.evaluate(() => location.hash), "#main");
            }
            assert.deepEqual(await page.evaluate(() => window.jumps), []);
            await page.finish();
        }
    },
    async "focus: a bar of buttons is one stop, and arrow keys go through it"(stage) {
        const page = await openPage(stage);
        for (const [bar, keys] of [
            [".strip", ["ArrowRight", "Home", "ArrowLeft", "End"]],
            ["header nav", ["ArrowRight", "Home", "ArrowLeft"]],
            [".actions", ["ArrowRight", "ArrowRight", "ArrowLeft"]],
        ]) {
            const stops = page.locator(`${bar} :is(button, summary)[tabindex="0"]:visible`);
            assert.equal(await stops.count(), 1, bar);
            await stops.focus();
            for (const key of keys) {
                const before = await name(page);
                await page.keyboard.press(key);
                assert.ok(await isAt(page, `${bar} *`), `${bar}, ${key}`);
                assert.ok((await name(page)) !== before || key === "End", `${bar}, ${key}: ${before}`);
                assert.equal(await stops.count(), 1, bar);
            }
        }
        await page.locator(".strip [tabindex='0']").focus();
        await page.keyboard.press("Home");
        await page.keyboard.press("Enter");
        await page.locator(".stage h2", { hasText: "X ·" }).waitFor();
        await page.finish();
    },
    async "focus: steps have names in words"(stage) {
        const page = await openPage(stage);
        const names = await page.locator(".strip button").allTextContents();
        assert.ok(names.includes("Each query scores each key. QKᵀ 12 × 12"), names.join("\n"));
        for (const one of names) assert.match(one, /^\p{Lu}.{12,}\. .+ \d+ × \d+$/u);
        await page.finish();
    },
    async "focus: it stays when the language or the mode is another"(stage) {
        for (const options of [{}, PHONE]) {
            const page = await openPage(stage, options, "/", opened);
            const more = page.locator("header .more");
            for (const language of ["tr", "ru", "en"]) {
                if ((await more.isVisible()) && (await more.getAttribute("aria-expanded")) === "false") await more.click();
                const select = page.locator("header select", { has: page.locator("option[value=tr]") });
                await select.focus();
                await select.selectOption(language);
                await page.waitForFunction((wanted) => document.documentElement.lang === wanted, language);
                assert.equal(await page.evaluate(() => document.activeElement.value), language);
            }
            for (const mode of MODES) {
                await tabOf(page, mode).focus();
                await page.keyboard.press("Enter");
                await READY[mode](page);
                if (mode === "story") await hasFocus(page, ".player button");
                else assert.ok(await isAt(page, "header nav button[aria-selected=true]"), mode);
            }
            await page.finish();
        }
    },
    async "focus: it goes on when what has it goes away"(stage) {
        const page = await openPage(stage, {}, SENTENCE);
        const press = async (what, where) => {
            await what.focus();
            await page.keyboard.press("Enter");
            await hasFocus(page, where).catch(async () => assert.fail(`not at ${where}: ${(await name(page)).slice(0, 60)}`));
        };
        const button = (text) => page.getByRole("button", { name: text, exact: true });
        await button("Keep as A").focus();
        await page.keyboard.press("Enter");
        await press(button("Drop A"), ".compare button");
        await chooseStep(page, "softmax");
        await focusGrid(page);
        await page.keyboard.press("m");
        await press(button("Remove it"), ".panel *");
        await page.locator("header .pair button:enabled").first().focus();
        await page.keyboard.press("Enter");
        await openMode(page, "story");
        await press(page.locator(".turn").nth(3), ".turn[aria-current]");
        await press(button("Open in the laboratory"), ".body [role=gridcell]");
        await openMode(page, "models");
        await page.getByRole("button", { name: "All tools" }).click();
        await press(page.locator(".words button").nth(2), ".words button[aria-pressed=true]");
        await press(button("Compare two sentences"), ".model-tools button");
        await press(button("off").first(), ".headview button");
        await press(button("All as it was").first(), ".headview *");
        await press(button("mean").first(), ".headview button");
        await press(page.locator(".changed .chip"), ".model-tools *");
        await press(button("All steps").first(), ".body [role=gridcell]");
        await page.finish();
    },
};
