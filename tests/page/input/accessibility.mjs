/**
 * accessibility.mjs: axe-core finds nothing however the page is looked at, and nothing is cut off.
 */
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { choosePreset, openPage } from "../support.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** axe is run through the debugger, as an extension would: the page's policy stays in force. */
export async function findings(page) {
    const session = await page.context().newCDPSession(page);
    await session.send("Runtime.evaluate", { expression: AXE });
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
        awaitPromise: true,
        returnByValue: true,
        expression:
            "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map(" +
            "(one) => one.id + ': ' + one.nodes.map((node) => node.target + ' ' + node.failureSummary).join(' | ')))",
    });
    assert.equal(exceptionDetails, undefined);
    return result.value;
}

const LOOKS = {
    light: { colorScheme: "light" },
    dark: { colorScheme: "dark" },
    "forced colours": { forcedColors: "active" },
    phone: { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
};

const overflow = (page) =>
    page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

export const cases = {
    ...Object.fromEntries(
        Object.entries(LOOKS).map(([name, options]) => [
            `accessibility: axe finds nothing, ${name}`,
            async (stage) => {
                const page = await openPage(stage, options);
                for (const preset of ["causal", "scripts"]) {
                    await choosePreset(page, preset);
                    for (const tab of ["Links", "Table", "Map"]) {
                        await page.getByRole("tab", { name: tab }).click();
                        assert.deepEqual(await findings(page), [], `${preset}, ${tab}`);
                    }
                }
                await page.getByRole("tab", { name: "Map" }).click();
                await page.getByRole("button", { name: "Keep as A" }).click();
                await page.getByRole("button", { name: "B − A" }).click();
                assert.deepEqual(await findings(page), [], "difference");
                await page.locator(".menu summary").first().click();
                assert.deepEqual(await findings(page), [], "menu");
                await page.finish();
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
            assert.equal(await page.getByRole("button", { name: word }).count(), 1);
            assert.equal(await page.evaluate(() => document.documentElement.lang), locale.slice(0, 2));
            assert.ok((await overflow(page)) <= 0);
            await page.finish();
        }
    },
};
