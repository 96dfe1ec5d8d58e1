/**
 * languages.mjs: the page has the words of one language, and fetches those of another when it is chosen.
 */
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { exported, inFolder, openPage } from "../support.mjs";

const choice = (page) => page.locator("header select").filter({ has: page.locator("option[value=tr]") });

const fetched = (page) => page.asked.filter((one) => one.includes("/web/texts/"));

export const cases = {
    async "languages: texts are fetched when their language is chosen, and once"(stage) {
        const page = await openPage(stage);
        assert.deepEqual(fetched(page), []);
        for (const [language, word] of [
            ["tr", "Paylaş"],
            ["en", "Share"],
            ["tr", "Paylaş"],
        ]) {
            await choice(page).selectOption(language);
            await page.getByRole("button", { name: word }).waitFor();
            assert.ok(await choice(page).evaluate((select) => select === document.activeElement));
        }
        assert.deepEqual(fetched(page), ["GET /web/texts/tr.json"]);
        await page.finish();
    },
    async "languages: one that cannot be fetched is not taken, and that is said"(stage) {
        const page = await openPage(stage);
        await page.route("**/web/**", (route) => route.abort("connectionrefused"));
        await choice(page).selectOption("ru");
        await page.locator(".notice", { hasText: "cannot be reached" }).waitFor();
        assert.equal(await choice(page).inputValue(), "en");
        await page.finish();
        const late = await openPage(stage, { locale: "ru-RU" });
        await late.getByRole("button", { name: "Поделиться" }).waitFor();
        await late.finish();
    },
    async "languages: an exported page has its language in it, and offers no other"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage);
            await choice(page).selectOption("tr");
            await page.getByRole("button", { name: "Paylaş" }).waitFor();
            const path = await exported(page, "Bu sayfa (HTML)", folder, "Dışa aktar");
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href);
            assert.equal(await copy.evaluate(() => document.documentElement.lang), "tr");
            assert.equal(await copy.getByRole("button", { name: "Paylaş" }).count(), 1);
            assert.deepEqual(await choice(copy).locator("option").allTextContents(), ["Türkçe"]);
            await copy.finish();
        });
    },
};
