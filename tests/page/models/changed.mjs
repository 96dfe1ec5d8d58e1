/**
 * changed.mjs: a head that is off, averaged or patched, and an edge that is hidden, with the server's own answers.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { assertClose, eventually, numberOf, someOf } from "../support.mjs";
import { findings } from "../input/accessibility.mjs";
import { answerOf, cellOf, computed, guessesOf, HIDDEN, openHead, openModels, openTrial, say, SENTENCE } from "./opened.mjs";

const button = (page, name) => page.locator(".headview").getByRole("button", { name, exact: true });
const effect = (page) => page.locator(".effect");
const predictionsOf = async (stage, options) =>
    (await answerOf(stage, HIDDEN, { return: ["predictions"], queries: [10], ...options })).outputs.predictions;
const shareIn = (text) => Array.from(text.matchAll(/([\d.]+) %/g), ([, number]) => Number(number) / 100);
const MEAN = { at: "context", layers: [3], heads: [0], do: "mean" };
const PATCH = { at: "context", layers: [3], heads: [0], items: [0], do: "replace", from: 1 };
const OTHER = "from the other sentence";
const EDGE = { at: "attention", layers: [3], heads: [0], queries: [10], keys: [2], do: "mask" };

/** Until the page says what the changes do. */
async function told(page, part) {
    const sentence = page.locator(".effect:visible p, .trial-said").filter({ hasText: part }).first();
    await sentence.waitFor({ timeout: 60000 });
    await computed(page);
    return sentence.textContent();
}

/** The words with a bar, and the share of each. */
const barsOf = (page) => page.locator(".bars-of li").evaluateAll((all) => all.map(({ children: [name, bar, size] }) => [name.textContent, parseFloat(bar.firstChild.style.width) / 100, size.textContent]));

export const cases = {
    async "changed: it opens on a hidden word, and one control switches off the head that matters most, and on again"(stage) {
        const locales = [["en-GB", HIDDEN, "animal"], ["tr-TR", "Hayvan caddeyi geçmedi çünkü [MASK] çok yorgundu", "hayvan"], ["ru-RU", "Животное не перешло шоссе, потому что [MASK] было слишком усталым.", "животное"]];
        for (const [locale, text, noun] of someOf(locales, 2)) {
            const page = await openTrial(stage, { locale }),
                said = page.locator(".trial-said"),
                before = await answerOf(stage, text, { return: ["predictions"] }),
                query = before.tokens.text[0].indexOf("[MASK]"),
                of = (answer) => ({ word: answer.outputs.predictions.shown[0][0][0], share: answer.outputs.predictions.probabilities[0][0][0] });
            const whole = of(await answerOf(stage, text, { return: ["predictions"], queries: [query] })),
                without = of(await answerOf(stage, text, { return: ["predictions"], queries: [query], ablate: [[3, 0]] }));
            assert.equal(whole.word, noun);
            assert.ok((await said.textContent()).includes(noun));
            const check = async ({ word, share }) =>
                eventually(async () => {
                    const [[name, width]] = await barsOf(page);
                    assert.equal(name, word);
                    assert.ok(Math.abs(width - share) < 1e-3, `${width} / ${share}`);
                });
            await check(whole);
            const [{ values, unchanged }] = [(await answerOf(stage, text, { return: ["sweep"], metric: { words: [whole.word], query }, sweep: { at: "context", over: ["layer", "head"], do: "zero" } })).outputs.sweep],
                change = ([layer, head]) => Math.abs(values[0][layer][head] - unchanged[0]),
                roles = [[0, 0], [0, 1], [1, 0], [2, 0], [3, 0], [3, 1]];
            assert.ok(roles.every((place) => change(place) <= change([3, 0])), "the head matters most");
            await page.locator(".trial .main").click();
            await check(without);
            await page.waitForFunction((word) => document.querySelector(".trial-said").textContent.includes(word), without.word);
            const sentence = await said.textContent();
            assert.ok(sentence.includes(whole.word), sentence);
            const [one, other] = shareIn(sentence.replaceAll(/(\d),(\d)/g, "$1.$2"));
            assert.ok(Math.abs(one - without.share) < 0.006 && Math.abs(other - whole.share) < 0.006, sentence);
            assert.equal(await effect(page).isVisible(), false, "said once");
            assert.deepEqual(await findings(page), []);
            await page.locator(".trial .main").click();
            await check(whole);
            assert.equal(await page.locator(".changed").isVisible(), false);
            await page.finish();
        }
    },
    async "changed: a head off or at its mean, one sentence says what it does, and one click goes back"(stage) {
        const page = await openModels(stage);
        await say(page, HIDDEN);
        await openHead(page, 3, 0);
        assert.equal(await effect(page).isVisible(), false);
        const before = await predictionsOf(stage, {});
        for (const [name, words, options] of [["off", "off", { ablate: [[3, 0]] }], ["mean", "at its mean", { interventions: [MEAN] }]]) {
            await button(page, name).click();
            const sentence = await told(page, `head 0 ${words}`),
                after = await predictionsOf(stage, options);
            assert.ok(sentence.startsWith(`With layer 3 head 0 ${words}, the prediction at “[MASK]” is now “${after.tokens[0][0][0]}”`), sentence);
            assert.ok(sentence.includes(`(was “${before.tokens[0][0][0]}”`), sentence);
            const [now, was] = shareIn(sentence);
            assert.ok(Math.abs(now - after.probabilities[0][0][0]) < 0.006 && Math.abs(was - before.probabilities[0][0][0]) < 0.006, sentence);
            assert.equal((await guessesOf(page, 0))[0][2], after.tokens[0][0][0]);
            assert.deepEqual(await page.locator(".changed .chip").allTextContents(), [`3·0 ${name} ×`]);
        }
        assert.deepEqual(await findings(page), []);
        await button(page, "as it is").click();
        await computed(page);
        assert.equal(await effect(page).isVisible(), false);
        assert.equal((await guessesOf(page, 0))[0].length, 2);
        await page.finish();
    },
    async "changed: maps of later layers are those after the change"(stage) {
        const page = await openModels(stage);
        await openHead(page, 1, 3);
        await button(page, "off").click();
        await told(page, "layer 1 head 3 off");
        await openHead(page, 3, 0);
        const { outputs } = await answerOf(stage, SENTENCE, { ablate: [[1, 3]] });
        const label = await cellOf(page, 9, 7);
        assertClose(numberOf(label.split(", ").at(-1)), outputs.attention[3][0][0][9][7], 4, "weight");
        await page.finish();
    },
    async "changed: an edge is hidden at the chosen cell, and a reload and one click bring it back"(stage) {
        const page = await openModels(stage);
        await say(page, HIDDEN);
        await openHead(page, 3, 0);
        await cellOf(page, 10, 2);
        await button(page, "Hide this edge").click();
        const sentence = await told(page, "→"),
            after = await predictionsOf(stage, { interventions: [EDGE] }),
            { outputs } = await answerOf(stage, HIDDEN, { interventions: [EDGE] });
        assert.ok(sentence.startsWith("With “[MASK] → animal” hidden in layer 3 head 0, "), sentence);
        assert.ok(Math.abs(shareIn(sentence)[0] - after.probabilities[0][0][0]) < 0.006, sentence);
        assert.equal(await cellOf(page, 10, 2), "[MASK] → animal, masked");
        const row = outputs.attention[3][0][0][10],
            next = row.indexOf(Math.max(...row));
        assert.ok(next !== 2);
        assertClose(numberOf((await cellOf(page, 10, next)).split(", ").at(-1)), row[next], 4, "weight");
        await page.waitForTimeout(700);
        await page.reload();
        await computed(page);
        await cellOf(page, 10, 2);
        assert.equal(await told(page, "at “[MASK]”"), sentence);
        assert.equal(await button(page, "Hide this edge").getAttribute("aria-pressed"), "true");
        await page.keyboard.press("m");
        await computed(page);
        assert.equal(await effect(page).isVisible(), false);
        await page.keyboard.press("m");
        await told(page, "→");
        await effect(page).getByRole("button", { name: "All as it was" }).click();
        await computed(page);
        assert.equal(await page.locator(".changed").isVisible(), false);
        await page.finish();
    },
    async "changed: with two sentences, a head has its context from the other one, in both"(stage) {
        const page = await openModels(stage);
        await say(page, HIDDEN);
        await openHead(page, 3, 0);
        assert.equal(await button(page, OTHER).isVisible(), false);
        await page.getByRole("button", { name: "Compare two sentences" }).click();
        const texts = [HIDDEN, HIDDEN.replace("tired", "wide")];
        await page.getByLabel("Second sentence").fill("Anna likes tea");
        await page.keyboard.press("Enter");
        await computed(page);
        assert.equal(await button(page, OTHER).first().isEnabled(), false);
        await page.locator(".headview .note", { hasText: "both sentences need as many tokens (15 and 5)" }).waitFor();
        await page.getByLabel("Second sentence").fill(texts[1]);
        await page.keyboard.press("Enter");
        await computed(page);
        await button(page, OTHER).first().click();
        await page.waitForFunction(() => document.querySelectorAll(".effect:not([hidden])").length === 2);
        const sentences = await effect(page).locator("p").allTextContents();
        for (const [at, pair] of [texts, texts.toReversed()].entries()) {
            const { outputs } = await answerOf(stage, pair, { return: ["predictions", "attention"], queries: [10], layers: [3], interventions: [PATCH] }),
                { tokens, probabilities } = outputs.predictions;
            assert.ok(sentences[at].includes(`head 0 from the other sentence, the prediction at “[MASK]” is now “${tokens[0][0][0]}”`), sentences[at]);
            assert.ok(Math.abs(shareIn(sentences[at])[0] - probabilities[0][0][0]) < 0.006, sentences[at]);
        }
        await page.getByLabel("Second sentence").fill("Anna likes tea");
        await page.keyboard.press("Enter");
        await computed(page);
        assert.equal(await button(page, OTHER).first().isDisabled(), true);
        assert.equal(await effect(page).first().isVisible(), false);
        await page.finish();
    },
    async "changed: a line from a word to the one below it, by the pointer or by keys, gives a head what it has in the other sentence"(stage) {
        const page = await openTrial(stage),
            texts = [HIDDEN, HIDDEN.replace("tired", "wide")],
            pair = page.locator(".pairs button").nth(10);
        assert.equal(await page.locator(".pair-box").isVisible(), false);
        await page.getByRole("button", { name: "All tools" }).click();
        await page.getByRole("button", { name: "Compare two sentences" }).click();
        await computed(page);
        assert.equal(await page.getByLabel("Second sentence").inputValue(), texts[1]);
        await pair.waitFor();
        const draw = async (from, to) => {
            await pair.scrollIntoViewIfNeeded();
            for (const [one, button] of [[from, "down"], [to, "up"]]) {
                const { x, y, width, height } = await one.boundingBox();
                await page.mouse.move(x + width / 2, y + height / 2, { steps: 3 });
                await page.mouse[button]();
            }
        };
        await draw(pair.locator("span").last(), page.locator(".pairs button").nth(8).locator("span").first());
        await page.locator(".pair-box .note", { hasText: "same place" }).waitFor();
        assert.equal(await page.locator(".changed").isVisible(), false);
        const check = async () => {
            await page.waitForFunction(() => document.querySelectorAll(".effect:not([hidden])").length === 2);
            await computed(page);
            const sentences = await effect(page).locator("p").allTextContents();
            for (const [at, two] of [texts, texts.toReversed()].entries()) {
                const { outputs } = await answerOf(stage, two, { return: ["predictions"], queries: [10], interventions: [{ ...PATCH, queries: [10] }] }),
                    { tokens, probabilities } = outputs.predictions;
                assert.ok(sentences[at].includes(`layer 3 head 0 at “[MASK]” from the other sentence, the prediction at “[MASK]” is now “${tokens[0][0][0]}”`), sentences[at]);
                assert.ok(Math.abs(shareIn(sentences[at])[0] - probabilities[0][0][0]) < 0.006, sentences[at]);
            }
        };
        await draw(pair.locator("span").first(), pair.locator("span").last());
        await check();
        assert.equal(await pair.getAttribute("aria-pressed"), "true");
        assert.deepEqual(await findings(page), []);
        for (const [key, isDrawn] of [["Enter", false], [" ", true]]) {
            await pair.press(key);
            await computed(page);
            assert.equal(await pair.getAttribute("aria-pressed"), String(isDrawn));
        }
        await check();
        await pair.press("ArrowRight");
        assert.equal(await page.evaluate(() => document.activeElement.textContent), "waswas");
        await page.getByLabel("Second sentence").fill("Anna likes tea");
        await page.keyboard.press("Enter");
        await computed(page);
        assert.equal(await page.locator(".pair-box").isVisible(), false);
        assert.equal(await page.locator(".changed").isVisible(), false);
        await page.finish();
    },
    async "changed: the request is copied as a line that gives the same answer"(stage) {
        const page = await openModels(stage, { permissions: ["clipboard-read", "clipboard-write"] });
        await say(page, HIDDEN);
        await openHead(page, 3, 0);
        await button(page, "mean").click();
        const sentence = await told(page, "at its mean");
        await page.evaluate(() => navigator.clipboard.writeText(""));
        await button(page, "Copy as curl").click();
        const line = await (await page.waitForFunction(() => navigator.clipboard.readText())).jsonValue();
        const { outputs } = JSON.parse(execFileSync("sh", ["-c", line], { encoding: "utf8" }));
        assert.ok(sentence.includes(`“${outputs.predictions.tokens[0][0][0]}”`), sentence);
        assert.deepEqual(outputs.predictions, (await predictionsOf(stage, { interventions: [MEAN], digits: 4 })));
        await page.finish();
    },
};
