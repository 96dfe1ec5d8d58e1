/**
 * safety.mjs: what a text may not do to the page, whoever wrote it.
 */
import assert from "node:assert/strict";
import { answerTo, choosePreset, openPage } from "../support.mjs";

const EVIL = [
    "<img src=x onerror=alert(1)>",
    "</script><script>window.evil=1</script>",
    '"><b id=evil>',
    "javascript:alert(1)",
    "{{7*7}}",
    "\u202Ereversed",
    "a\u0000b",
    "<!--",
    "=1+1",
];

export const cases = {
    async "safety: tokens with HTML in them are letters"(stage) {
        const page = await openPage(stage),
            request = { inputs: { query: EVIL.map((_, i) => [i, 1]) }, tokens: { query: EVIL } };
        await page.getByLabel(/A request, an answer/).fill(JSON.stringify(request));
        await answerTo(page, () => page.getByRole("button", { name: "Use it" }).click());
        for (const tab of ["Links", "Table", "Map"]) {
            await page.getByRole("tab", { name: tab }).click();
            assert.equal(await page.locator("img, #evil").count(), 0);
            assert.equal(await page.evaluate(() => window.evil), undefined);
        }
        await page.getByRole("tab", { name: "Table" }).click();
        assert.ok((await page.locator(".table bdi").allTextContents()).includes(EVIL[0]));
        await page.finish();
    },
    async "safety: the same in an exported page and in an exported picture"(stage) {
        const page = await openPage(stage),
            request = { inputs: { query: EVIL.map((_, i) => [i, 1]) }, tokens: { query: EVIL } };
        await page.getByLabel(/A request, an answer/).fill(JSON.stringify(request));
        await answerTo(page, () => page.getByRole("button", { name: "Use it" }).click());
        for (const [kind, wrong] of [
            ["This page (HTML)", /<img|<b id=evil/],
            ["SVG", /<img|<script|<b id/],
        ]) {
            await page.locator(".menu", { hasText: "Export" }).locator("summary").click();
            const [file] = await Promise.all([
                page.waitForEvent("download"),
                page.getByRole("button", { name: kind, exact: true }).click(),
            ]);
            const chunks = [];
            for await (const chunk of await file.createReadStream()) chunks.push(chunk);
            assert.doesNotMatch(Buffer.concat(chunks).toString(), wrong, kind);
        }
        await page.finish();
    },
    async "safety: the policy stops what would get in all the same"(stage) {
        const page = await openPage(stage);
        const stopped = await page.evaluate(async () => {
            document.body.append(Object.assign(document.createElement("script"), { textContent: "window.evil = 1" }));
            const asked = await fetch("https://example.org/").then(
                () => "sent",
                () => "stopped",
            );
            await new Promise((resolve) => setTimeout(resolve, 50));
            const count = window.violations.length;
            window.violations = [];
            return { evil: window.evil, asked, count };
        });
        assert.deepEqual([stopped.evil, stopped.asked], [undefined, "stopped"]);
        assert.ok(stopped.count >= 2);
        await page.context().close();
    },
    async "safety: nothing is stored but language and theme"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "three");
        await page.getByRole("combobox", { name: "Theme" }).selectOption("dark");
        assert.deepEqual(await page.evaluate(() => Object.keys(localStorage)), ["attnd.theme"]);
        assert.equal((await page.context().cookies()).length, 0);
        await page.finish();
    },
};
