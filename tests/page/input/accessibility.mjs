/**
 * accessibility.mjs: axe-core finds nothing however the page is looked at, and nothing is cut off.
 */
import assert from "node:assert/strict";
import { choosePreset, oneIn, opened, openPage, someOf } from "../support.mjs";
import { AXE, RUN_AXE } from "./axe.mjs";
import { walk } from "./states.mjs";
import { foreignTexts, vocabularyOf } from "./wording.mjs";

/** axe is run through the debugger, as an extension would: the page's policy stays in force. */
export async function findings(page) {
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: AXE });
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
        awaitPromise: true,
        returnByValue: true,
        expression: RUN_AXE,
    });
    assert.equal(exceptionDetails, undefined);
    return result.value;
}

/** Every state is seen in each language, and in each look. */
const LOOKS = {
    "en-GB, light": { colorScheme: "light", viewport: { width: 1366, height: 768 } },
    "tr-TR, forced colours": { forcedColors: "active", viewport: { width: 1366, height: 768 } },
    "ru-RU, dark, a phone": { colorScheme: "dark", viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
};

/** axe takes two seconds a state. */
const ONE_IN = oneIn(3 * Object.keys(LOOKS).length);

const overflow = (page) =>
    page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

/** Buttons whose words are wider than they are. */
const narrowButtons = (page) =>
    page.evaluate(() =>
        Array.from(document.querySelectorAll("button:not(.spoken)"))
            .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
            .map(({ textContent }) => textContent),
    );

export const cases = {
    ...Object.fromEntries(
        someOf(Object.entries(LOOKS), 2).map(([name, options], look) => [
            `accessibility: axe finds nothing and no word is of another language, in any state: ${name}`,
            async (stage) => {
                const locale = name.slice(0, 5),
                    language = name.slice(0, 2);
                const page = await openPage(stage, { ...options, locale }, "/", opened),
                    vocabulary = language === "en" ? null : vocabularyOf(language);
                let states = 0;
                for await (const state of walk(page, stage, language)) {
                    const refusal = state === "refused by the server" ? ".notice > div" : undefined;
                    if ((states + look) % ONE_IN === 0) assert.deepEqual(await findings(page), [], state);
                    if (vocabulary) assert.deepEqual(await foreignTexts(page, vocabulary, refusal), [], state);
                    assert.ok((await overflow(page)) <= 0, `${state}: ${await overflow(page)} px too wide`);
                    assert.deepEqual(await narrowButtons(page), [], state);
                    states++;
                }
                await page.finish();
                return `${states} states`;
            },
        ]),
    ),
    async "accessibility: nothing is cut off at 200 % and on a phone"(stage) {
        for (const viewport of [
            { width: 640, height: 450 },
            { width: 320, height: 640 },
        ]) {
            const page = await openPage(stage, { viewport });
            for (const preset of ["causal", "padding"]) {
                await choosePreset(page, preset);
                assert.ok((await overflow(page)) <= 0, `${viewport.width}: ${await overflow(page)} px too wide`);
            }
            await page.finish();
        }
    },
    async "accessibility: nothing moves for those who asked for that"(stage) {
        const page = await openPage(stage, { reducedMotion: "reduce" });
        const moving = await page.evaluate(
            () =>
                Array.from(document.querySelectorAll("*")).filter((element) => {
                    const style = getComputedStyle(element);
                    return style.transitionDuration !== "0s" || style.animationName !== "none";
                }).length,
        );
        assert.equal(moving, 0);
        await page.finish();
    },
    async "accessibility: tokens of every script stand in bdi"(stage) {
        const page = await openPage(stage),
            { request } = await choosePreset(page, "scripts");
        for (const tab of ["Links", "Table"]) {
            await page.getByRole("tab", { name: tab }).click();
            const shown = await page.locator(".stage bdi").allTextContents();
            for (const token of request.tokens.query) assert.ok(shown.includes(token), token);
        }
        await page.finish();
    },
    async "accessibility: the three languages are complete on the page, and declared"(stage) {
        for (const [locale, word] of [
            ["tr-TR", "Paylaş"],
            ["ru-RU", "Поделиться"],
            ["en-GB", "Share"],
        ]) {
            const page = await openPage(stage, { locale });
            assert.equal(await page.getByRole("button", { name: word, exact: true }).count(), 1);
            assert.equal(await page.evaluate(() => document.documentElement.lang), locale.slice(0, 2));
            assert.ok((await overflow(page)) <= 0);
            await page.finish();
        }
    },
};
