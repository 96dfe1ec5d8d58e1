/**
 * scored.mjs: words that are scored at a token, as the model is and as it is changed, with the server's own answers.
 */
import assert from "node:assert/strict";
import { assertClose, numberOf } from "../support.mjs";
import { findings } from "../input/accessibility.mjs";
import { answerOf, computed, HIDDEN, openHead, openModels, say, SENTENCE } from "./opened.mjs";

/** The rows of the scored words. */
async function scoresOf(page, count) {
    await page.waitForFunction((wanted) => document.querySelectorAll(".scores tbody tr").length === wanted, count);
    await computed(page);
    return page.locator(".scores tbody tr").evaluateAll((rows) => rows.map((row) => Array.from(row.children, (cell) => cell.textContent)));
}

export const cases = {
    async "scored: given words have log-probabilities and ranks, before and after, and the text its perplexity"(stage) {
        const page = await openModels(stage);
        await say(page, HIDDEN);
        await openHead(page, 3, 0);
        await page.getByLabel("Score these words").fill("animal, street,monkey");
        await page.keyboard.press("Enter");
        const options = { return: ["word_scores"], queries: [10], words: ["animal", "street", "monkey"] },
            scored = async (more) => (await answerOf(stage, HIDDEN, { ...options, ...more })).outputs.word_scores;
        const check = (rows, scores, from) =>
            rows.forEach((row, at) => {
                assertClose(numberOf(row[from]), scores.log_probabilities[0][0][at], 4, row[0]);
                assert.equal(Number(row[from + 1]), scores.ranks[0][0][at]);
            });
        const before = await scoresOf(page, 3);
        assert.deepEqual(before.map(([word]) => word), options.words);
        check(before, await scored({}), 1);
        await page.locator(".headview").getByRole("button", { name: "off", exact: true }).click();
        await page.waitForFunction(() => document.querySelector(".scores tbody tr")?.childElementCount === 5);
        const after = await scoresOf(page, 3);
        check(after, await scored({}), 1);
        check(after, await scored({ ablate: [[3, 0]] }), 3);
        await page.getByLabel("The text's own token, too").check();
        const own = (await scoresOf(page, 4))[3],
            [next, changed] = [await scored({ words: "next" }), await scored({ words: "next", ablate: [[3, 0]] })];
        assert.equal(own[0], "[MASK]");
        check([own], next, 1);
        check([own], changed, 3);
        const [now, was] = (await page.locator(".perplexity").textContent()).match(/[\d.]+/g).map(Number);
        assertClose(now, changed.perplexity[0], 4, "perplexity after");
        assertClose(was, next.perplexity[0], 4, "perplexity before");
        await page.waitForTimeout(700);
        await page.reload();
        assert.deepEqual((await scoresOf(page, 4))[3], own);
        assert.deepEqual(await findings(page), []);
        await page.finish();
    },
    async "scored: a word of several tokens is refused beside the field, and the next one is scored"(stage) {
        const page = await openModels(stage);
        await page.getByLabel("Score these words").fill("animal, hippopotamus");
        await page.keyboard.press("Enter");
        await page.locator(".refusal", { hasText: "tokens" }).waitFor();
        const { error, detail } = await answerOf(stage, SENTENCE, { return: ["word_scores"], words: ["animal", "hippopotamus"], queries: [9], digits: 6 }),
            [, count] = / is (\d+) tokens/.exec(detail ?? error);
        assert.equal(await page.locator(".refusal").textContent(), `“hippopotamus” is ${count} tokens to this model, and only words of one token are scored.`);
        await page.getByRole("button", { name: "Attribution" }).click();
        await page.locator(".question .note", { hasText: "the words to score cannot be used" }).waitFor();
        assert.equal(await page.getByLabel("Score these words").getAttribute("aria-invalid"), "true");
        await page.getByLabel("Score these words").fill('" animal"');
        await page.keyboard.press("Enter");
        assert.equal((await scoresOf(page, 1))[0][0], " animal");
        assert.equal(await page.locator(".refusal").isVisible(), false);
        await page.finish();
    },
};
