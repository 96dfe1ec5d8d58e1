/**
 * languages.mjs: the page has the words of one language, and fetches those of another when it is chosen.
 */
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { answerTo, exported, inFolder, openPage } from "../support.mjs";

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
            await page.getByRole("button", { name: word, exact: true }).waitFor();
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
        await late.getByRole("button", { name: "Поделиться", exact: true }).waitFor();
        await late.finish();
    },
    async "languages: an exported page has its language in it, and offers no other"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage);
            await choice(page).selectOption("tr");
            await page.getByRole("button", { name: "Paylaş", exact: true }).waitFor();
            const path = await exported(page, "Bu sayfa (HTML)", folder, "Dışa aktar");
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href);
            assert.equal(await copy.evaluate(() => document.documentElement.lang), "tr");
            assert.equal(await copy.getByRole("button", { name: "Paylaş", exact: true }).count(), 1);
            assert.deepEqual(await choice(copy).locator("option").allTextContents(), ["Türkçe"]);
            await copy.finish();
        });
    },
    async "languages: where the language has a decimal comma, numbers have it, and fields take it"(stage) {
        for (const locale of ["tr-TR", "ru-RU"]) {
            const page = await openPage(stage, { locale }),
                scale = page.locator(".panel input[placeholder='1/√d_k']");
            const { request } = await answerTo(page, () => scale.fill("0,375"));
            assert.equal(request.options.scale, 0.375);
            await scale.blur();
            assert.equal(await scale.inputValue(), "0,375");
            for (const part of [".readout", ".rail", ".legend", ".bars"]) {
                const text = await page.locator(part).innerText();
                assert.doesNotMatch(text, /\d\.\d/, `${locale} ${part}`);
                if (part !== ".legend") assert.match(text, /\d,\d/, `${locale} ${part}`);
            }
            await page.locator(".stage [role=tab]").nth(2).click();
            assert.doesNotMatch(await page.locator(".table tbody").innerText(), /\d\.\d/);
            await page.finish();
        }
    },
};
