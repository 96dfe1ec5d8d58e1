/**
 * offline.mjs: a server that does not answer, and one that is there again.
 */
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { findings } from "../input/accessibility.mjs";
import { openModels, sentence } from "../models/opened.mjs";
import { answerTo, choosePreset, dropFile, exported, inFolder, inLaboratory, openPage, settled } from "../support.mjs";

const STALE = { "en-GB": /^Old:/, "tr-TR": /^Eski:/, "ru-RU": /^Устарело:/ };
const GONE = { "en-GB": /cannot be reached/, "tr-TR": /ulaşılamıyor/, "ru-RU": /недоступен/ };

/** Requests fail as they do when nobody listens. */
const cut = (page) => page.route("**/v1/**", (route) => route.abort("connectionrefused"));
const mend = (page) => page.unroute("**/v1/**");

/** Both "The number" and "Checked here" say it. */
const isStale = (page, locale = "en-GB") =>
    page.waitForFunction((source) => {
        const says = (element) => new RegExp(source).test(element.textContent);
        return (
            document.querySelector(".lab").classList.contains("stale") &&
            says(document.querySelector(".verdict")) &&
            Array.from(document.querySelectorAll(".explain .note")).some(says)
        );
    }, STALE[locale].source);

const isFresh = (page) =>
    page.waitForFunction(
        () =>
            !document.querySelector(".lab").classList.contains("stale") &&
            document.querySelector(".verdict.good") &&
            !document.querySelector(".notice").checkVisibility(),
    );

const saysGone = (page, locale = "en-GB") => page.locator(".notice", { hasText: GONE[locale] }).waitFor();

const scale = (page) => page.locator(".panel input[placeholder='1/√d_k']");

export const cases = {
    ...Object.fromEntries(
        Object.keys(GONE).map((locale) => [
            `offline: a server that is gone is said to be gone, and what is shown is said to be old, in ${locale}`,
            async (stage) => {
                const page = await openPage(stage, { locale });
                await cut(page);
                await scale(page).fill("0.3");
                await saysGone(page, locale);
                assert.doesNotMatch(await page.locator(".notice").textContent(), /fetch|refuses|reddetti|отказал/);
                await isStale(page, locale);
                assert.equal(await page.locator(".verdict.good").count(), 0);
                await page.finish();
            },
        ]),
    ),
    async "offline: the page asks again by a button, and by itself, and is fresh then"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "cross");
        await cut(page);
        await scale(page).fill("0.3");
        await saysGone(page);
        await mend(page);
        const answer = await answerTo(page, () => page.getByRole("button", { name: "Try now" }).click());
        assert.equal(answer.request.options.scale, 0.3);
        await isFresh(page);
        await cut(page);
        await scale(page).fill("0.4");
        await saysGone(page);
        const again = await answerTo(page, () => mend(page));
        assert.equal(again.request.options.scale, 0.4);
        await isFresh(page);
        await page.finish();
    },
    async "offline: a sentence that was typed while the server was gone is answered once it is back"(stage) {
        const page = await openPage(stage, {}, "/", inLaboratory),
            box = page.getByLabel("Sentence");
        await cut(page);
        await box.fill("The animal did not cross the street because it was too wide");
        await saysGone(page);
        await isStale(page);
        assert.equal(await page.locator(".verdict.good").count(), 0);
        await mend(page);
        await isFresh(page);
        await page.locator(".readout", { hasText: "it → street" }).waitFor();
        await cut(page);
        await box.fill("The animal did not cross the street because it was too tired");
        await saysGone(page);
        await isStale(page);
        await page.getByLabel("Causal").check(); // both are asked for again
        await mend(page);
        await page.getByRole("button", { name: "Try now" }).click({ timeout: 3000 }).catch(() => {}); // unless the page was quicker
        await isFresh(page);
        await page.locator(".stage h2", { hasText: "14 × 14" }).waitFor();
        await page.waitForFunction(() => document.querySelector(".explain .note") && document.querySelector(".legend .swatch:not(.absent)"));
        assert.match(await page.locator(".stage .bars, .readout").first().textContent(), /./);
        assert.equal(await box.inputValue(), "The animal did not cross the street because it was too tired");
        await page.finish();
    },
    async "offline: an example that was chosen while the server was gone opens once it is back"(stage) {
        const page = await openPage(stage, {}, "/", inLaboratory);
        await cut(page);
        await page.getByRole("combobox", { name: "Example" }).selectOption("demo.previous");
        await saysGone(page);
        await mend(page);
        await page.locator(".stage h2", { hasText: "demo, layer 0" }).waitFor();
        await isFresh(page);
        await page.finish();
    },
    async "offline: in the models, what is shown is said to be old, and the sentence is asked for again"(stage) {
        const page = await openModels(stage);
        await cut(page);
        await sentence(page).fill("Anna likes tea");
        await page.keyboard.press("Enter");
        await saysGone(page);
        await page.locator(".columns.stale").waitFor();
        assert.match(await page.locator(".old").textContent(), STALE["en-GB"]);
        assert.deepEqual(await findings(page), []);
        await mend(page);
        await page.locator(".grid-box .note", { hasText: "5 tokens" }).waitFor();
        assert.equal(await page.locator(".columns.stale").count(), 0);
        assert.equal(await page.locator(".old").isVisible(), false);
        assert.equal(await page.locator(".notice").isVisible(), false);
        await page.finish();
    },
    async "offline: an answer that breaks off in the middle is the server's absence too"(stage) {
        const page = await openPage(stage);
        await page.evaluate(() => {
            const { fetch } = window;
            window.fetch = async (...asked) => {
                const response = await fetch(...asked);
                const broken = new ReadableStream({
                    start: (controller) => controller.error(new TypeError("network error")),
                });
                return asked[0].includes("v1/") ? new Response(broken, { headers: response.headers }) : response;
            };
        });
        await page.getByLabel("Causal").check();
        await saysGone(page);
        await isStale(page);
        await page.finish();
    },
    async "offline: A, which was kept, is not old"(stage) {
        const page = await openPage(stage);
        await page.getByRole("button", { name: "Keep as A" }).click();
        await answerTo(page, () => page.getByLabel("Causal").check());
        await cut(page);
        await scale(page).fill("0.3");
        await isStale(page);
        await page.getByRole("button", { name: "A", exact: true }).click();
        await page.locator(".stage h2", { hasText: /^A · / }).waitFor();
        assert.equal(await page.locator(".verdict.good").count(), 1);
        assert.equal(await page.locator(".lab.stale").count(), 0);
        await page.finish();
    },
    async "offline: what the server refuses is not its absence"(stage) {
        const page = await openPage(stage);
        const { response } = await answerTo(page, () => page.getByLabel("Heads", { exact: true }).last().fill("5"));
        assert.equal(response.status(), 400);
        await settled(page);
        assert.match(await page.locator(".notice").textContent(), /The server refuses/);
        await isStale(page);
        assert.equal(await page.getByRole("button", { name: "Try now" }).count(), 0);
        await page.finish();
    },
    async "offline: the part for models comes when it is opened, and an exported page has it"(stage) {
        const page = await openPage(stage),
            isPart = (path) => path === "GET /web/parts/explorer.json";
        assert.deepEqual(page.asked.filter(isPart), []);
        await page.getByRole("tab", { name: "Models" }).click();
        await page.locator(".models .readout b").waitFor();
        await page.getByRole("tab", { name: "Laboratory" }).click();
        await page.getByRole("tab", { name: "Models" }).click();
        assert.equal(page.asked.filter(isPart).length, 1);
        await page.getByRole("tab", { name: "Laboratory" }).click();
        await inFolder(async (folder) => {
            const path = await exported(page, "This page (HTML)", folder);
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href);
            await copy.getByRole("tab", { name: "Models" }).click();
            await copy.getByText("This copy of the page has no server").waitFor();
            await dropFile(copy, "heads.json", JSON.stringify({ attentions: [[[[1, 0], [0.25, 0.75]]]], tokens: ["a", "b"] }));
            await copy.locator(".headview .readout b").waitFor();
            await copy.finish();
        });
    },
    async "offline: a part of another version is not run, and the page says so"(stage) {
        const page = await openPage(stage);
        await page.route("**/web/parts/*", (route) => route.fulfill({ json: "window.isForeign = true;" }));
        await page.getByRole("tab", { name: "Models" }).click();
        await page.locator(".notice", { hasText: "Load the page again" }).waitFor();
        assert.equal(await page.evaluate(() => window.isForeign), undefined);
        await page.context().close(); // the policy was broken, and said so
    },
};
