/**
 * story.mjs: a lesson is turned page by page, fits the window, is shared by its address, and can be a teacher's own.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { addressOf, dropFile, inFolder, numberOf, opened, openPage, tableOf, tabOf } from "../support.mjs";

const LESSONS = ["hand", "masks", "cross"].map((name) =>
    JSON.parse(readFileSync(new URL(`../../../server/web/lessons/${name}.json`, import.meta.url), "utf8")),
);

const drawn = (page) => page.waitForFunction(() => document.querySelector(".scene svg"));

/** The hand-made lesson, at a page. */
async function openStory(stage, options = {}) {
    const page = await openPage(stage, options);
    await tabOf(page, "story").click();
    await drawn(page);
    return page;
}

const said = (page, text) =>
    page.waitForFunction((wanted) => document.querySelector(".say")?.textContent === wanted, text);

const turnTo = async (page, lesson, at, language = "en") => {
    await page.locator(".turn").nth(at).click();
    await said(page, lesson.pages[at].say[language]);
};

export const cases = {
    "story: the lessons that come along have nine pages or less, in three languages"() {
        assert.equal(LESSONS[0].pages.length, 9);
        for (const { title, pages } of LESSONS)
            for (const text of [title, ...pages.map(({ say }) => say)]) {
                assert.deepEqual(Object.keys(text), ["en", "tr", "ru"]);
                assert.equal(new Set(Object.values(text)).size, 3);
            }
    },
    async "story: keys and buttons turn the pages, and every page fits the window"(stage) {
        for (const [locale, language] of [
            ["en-GB", "en"],
            ["ru-RU", "ru"],
        ]) {
            const page = await openStory(stage, { locale, viewport: { width: 1366, height: 768 } });
            for (const { say } of LESSONS[0].pages) {
                await said(page, say[language]);
                await drawn(page);
                const [story, ...parts] = await page.evaluate(() =>
                    [".story", ".scene svg", ".player"].map((part) => {
                        const { top, bottom } = document.querySelector(part).getBoundingClientRect();
                        return { part, top, bottom };
                    }),
                );
                assert.ok(story.bottom <= 768, say[language]);
                for (const { part, top, bottom } of parts)
                    assert.ok(top >= story.top && bottom <= story.bottom, `${part}: ${say[language]}`);
                await page.keyboard.press("ArrowRight");
            }
            await page.keyboard.press("Home");
            await said(page, LESSONS[0].pages[0].say[language]);
            await page.finish();
        }
    },
    async "story: a cell is a row and a column, written out with the words' names"(stage) {
        const page = await openStory(stage);
        await turnTo(page, LESSONS[0], 2);
        await page.waitForFunction(() => document.querySelector(".story .worked").textContent === "score[home, go] = 1 · 2 + 3 · 1 = 5");
        assert.equal(await page.locator(".beam").count(), 2);
        await page.locator(".result rect").first().click();
        await page.waitForFunction(() => document.querySelector(".story .worked").textContent.startsWith("score[I, I] = 2 · 1"));
        await page.locator(".scene").focus();
        await page.keyboard.press("ArrowRight");
        await page.waitForFunction(() => document.querySelector(".story .worked").textContent.startsWith("score[I, go] = 2 · 2"));
        await said(page, LESSONS[0].pages[2].say.en);
        await page.finish();
    },
    async "story: a value is named by its step, and a mix of values sums over the words"(stage) {
        for (const [locale, language, [home, go]] of [
            ["en-GB", "en", ["home", "go"]],
            ["tr-TR", "tr", ["gidiyorum", "eve"]],
            ["ru-RU", "ru", ["домой", "иду"]],
        ]) {
            const page = await openStory(stage, { locale });
            const starts = (wanted) => page.waitForFunction((text) => document.querySelector(".story .worked").textContent.startsWith(text), wanted);
            for (const [at, name] of [[2, "score"], [3, "scaled"], [5, "weight"]]) {
                await turnTo(page, LESSONS[0], at, language);
                await starts(`${name}[${home}, ${go}] = `);
            }
            await turnTo(page, LESSONS[0], 6, language);
            await starts(`context[${home}, d0] = `);
            assert.equal(await page.locator(".story .formula").textContent(), `context[${home}, d0] = Σ_j A[${home}, j] · V[j, d0]`);
            await tabOf(page, "lab").click();
            await page.locator(".stage h2", { hasText: "A V" }).waitFor();
            assert.equal(await page.locator(".explain .formula").textContent(), `context[${home}, d0] = Σ_j A[${home}, j] · V[j, d0]`);
            await page.finish();
        }
    },
    async "story: on the page of two heads the marked row is the one where they look elsewhere"(stage) {
        const page = await openStory(stage);
        await turnTo(page, LESSONS[0], 7);
        await page.waitForFunction(() => document.querySelector(".story .worked").textContent.startsWith("weight[go, go] = "));
        await page.getByRole("button", { name: "Open in the laboratory" }).click();
        await page.locator(".stage h2", { hasText: "softmax" }).waitFor();
        const strongest = [];
        for (const head of [0, 1]) {
            await page.locator(".heads button").nth(head).click();
            await page.locator(".stage h2", { hasText: `head ${head}` }).waitFor();
            const row = (await tableOf(page))[1].map((text) => (text === "–" ? -1 : numberOf(text)));
            strongest.push(row.indexOf(Math.max(...row)));
        }
        assert.deepEqual(strongest, [0, 1]);
        await page.finish();
    },
    async "story: padding is [PAD], and two documents are two sentences"(stage) {
        for (const [locale, language, first] of [
            ["en-GB", "en", "The"],
            ["tr-TR", "tr", "Kedi"],
            ["ru-RU", "ru", "Кошка"],
        ]) {
            const page = await openStory(stage, { locale });
            await page.locator(".story select").selectOption("masks");
            await said(page, LESSONS[1].pages[0].say[language]);
            const columns = () => page.locator(".scene .plate.result .plate-col").allTextContents();
            for (const [at, { tokens }] of LESSONS[1].pages.entries()) {
                if (!tokens) continue;
                await turnTo(page, LESSONS[1], at, language);
                const wanted = tokens.query[language];
                assert.equal(wanted[0], first);
                await page.waitForFunction(
                    (last) => Array.from(document.querySelectorAll(".scene .plate.result .plate-col")).at(-1)?.textContent === last,
                    wanted.at(-1),
                );
                assert.deepEqual(await columns(), wanted);
            }
            assert.deepEqual(LESSONS[1].pages[4].tokens.query[language].slice(3), ["[PAD]", "[PAD]"]);
            await page.finish();
        }
    },
    async "story: the scale moves the bars of the row"(stage) {
        const page = await openStory(stage);
        await turnTo(page, LESSONS[0], 3);
        const bars = () => page.locator(".story .row-bars button > :last-child").allTextContents();
        assert.deepEqual(await bars(), ["0.10", "0.03", "0.87"]);
        await page.locator(".scale input").fill("0");
        await page.waitForFunction(() => document.querySelector(".story .row-bars").textContent.includes("0.33"));
        assert.deepEqual(await bars(), ["0.33", "0.33", "0.33"]);
        await page.finish();
    },
    async "story: its address brings back the page, the cell and the lesson"(stage) {
        const page = await openStory(stage);
        await page.locator(".story select").selectOption("masks");
        await turnTo(page, LESSONS[1], 1);
        await page.waitForFunction(() => location.hash);
        await page.waitForTimeout(600);
        const other = await openPage(stage, {}, page.url(), drawn);
        await said(other, LESSONS[1].pages[1].say.en);
        assert.equal(await other.locator(".story select").inputValue(), "masks");
        assert.equal(await other.locator(".count").textContent(), "2 / 6");
        await other.finish();
        await page.finish();
    },
    async "story: a teacher's own lesson opens by drop, and says which page is wrong"(stage) {
        const page = await openPage(stage),
            lesson = {
                title: "Mine",
                request: { inputs: { query: [[1, 0], [0, 1]] } },
                endpoint: "attention",
                pages: [{ say: "Only this", step: "attention", row: 1 }],
            };
        await dropFile(page, "mine.json", JSON.stringify(lesson));
        await said(page, "Only this");
        assert.equal(await page.locator(".count").textContent(), "1 / 1");
        await page.waitForFunction(() => location.hash);
        await page.waitForTimeout(600);
        const other = await openPage(stage, {}, page.url(), drawn);
        await said(other, "Only this");
        await other.finish();
        await dropFile(page, "wrong.json", JSON.stringify({ ...lesson, pages: [...lesson.pages, { say: 7 }] }));
        await page.locator(".notice", { hasText: "page 2 of the lesson" }).waitFor();
        await page.finish();
        const hostile = await openPage(stage, {}, addressOf({ preset: "three", lesson: { pages: [1] } }), opened);
        assert.match(await hostile.locator(".notice").textContent(), /a lesson needs/);
        await hostile.finish();
    },
    async "story: presenting hides the bar, and Escape brings it back"(stage) {
        const page = await openStory(stage);
        await page.keyboard.press("p");
        await page.waitForFunction(() => !document.querySelector(".bar nav").checkVisibility());
        await page.getByRole("button", { name: "Present" }).click();
        await page.waitForFunction(() => document.querySelector(".bar nav").checkVisibility());
        await page.finish();
    },
    async "story: motion stops where it is not wanted"(stage) {
        for (const [reducedMotion, name] of [
            ["reduce", "none"],
            ["no-preference", "beam"],
        ]) {
            const page = await openStory(stage, { reducedMotion });
            await turnTo(page, LESSONS[0], 2);
            await page.waitForFunction((wanted) => {
                const beam = document.querySelector(".beam");
                return beam && getComputedStyle(beam).animationName === wanted;
            }, name);
            await page.finish();
        }
    },
    async "story: a lesson saved as a page opens from disk, at its page, and turns"(stage) {
        await inFolder(async (folder) => {
            const page = await openStory(stage);
            await turnTo(page, LESSONS[0], 3);
            const [file] = await Promise.all([
                page.waitForEvent("download"),
                page.getByRole("button", { name: "Save as a page" }).click(),
            ]);
            const path = join(folder, file.suggestedFilename());
            await file.saveAs(path);
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href, drawn);
            await said(copy, LESSONS[0].pages[3].say.en);
            for (const [at, { say }] of LESSONS[0].pages.entries()) {
                await copy.locator(".turn").nth(at).click();
                await said(copy, say.en);
                assert.equal(await copy.locator(".notice").isVisible(), false);
            }
            await copy.finish();
        });
    },
};
