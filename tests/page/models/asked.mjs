/**
 * asked.mjs: sweeps, attributions, new tokens and experts, with the server's own answers.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { findings } from "../input/accessibility.mjs";
import { assertClose, numberOf, startServer } from "../support.mjs";
import { answerOf, computed, headCell, HIDDEN, openHead, openModels, say } from "./opened.mjs";

const GPT2 = new URL("../../others/models/gpt2", import.meta.url).pathname,
    T5 = new URL("../../others/models/t5", import.meta.url).pathname;

const asked = (page) => page.locator(".questions");
const question = (page, name) => asked(page).getByRole("button", { name, exact: true });

/** The sentence of the open question. */
async function saidOf(page, part) {
    await asked(page).locator(".said", { hasText: part }).waitFor();
    await computed(page);
    return asked(page).locator(".said").textContent();
}

const numbersIn = (text) => text.match(/[−+]?\d+\.\d+/g).map(numberOf);

/** A cell of the map of a sweep. @returns {Promise<string>} its label */
async function cellOfSweep(page, row, col) {
    const cell = asked(page).locator("[role=gridcell]");
    await cell.focus();
    await page.keyboard.press("Control+Home");
    for (let n = 0; n < row; n++) await page.keyboard.press("ArrowDown");
    for (let n = 0; n < col; n++) await page.keyboard.press("ArrowRight");
    return cell.getAttribute("aria-label");
}

export const cases = {
    async "asked: a sweep over heads and tokens is a map of what each change does, and its request is copied"(stage) {
        const page = await openModels(stage, { permissions: ["clipboard-read", "clipboard-write"] });
        await say(page, HIDDEN);
        await question(page, "Sweep").click();
        const sentence = await saidOf(page, "The log-probability of “animal” at “[MASK]”"),
            sweepOf = async (more) => (await answerOf(stage, HIDDEN, { return: ["sweep"], metric: { words: ["animal"], query: 10 }, ...more })).outputs.sweep,
            heads = await sweepOf({ sweep: { at: "context", over: ["layer", "head"], do: "zero" } });
        const [before, change] = numbersIn(sentence);
        assertClose(before, heads.unchanged[0], 4, sentence);
        assertClose(change, heads.values[0][3][0] - before, 3, sentence);
        assert.ok(sentence.endsWith("layer 3, head 0, set to 0."), sentence);
        await page.evaluate(() => navigator.clipboard.writeText(""));
        await asked(page).getByRole("button", { name: "Copy as curl" }).click();
        const line = await (await page.waitForFunction(() => navigator.clipboard.readText())).jsonValue(),
            { outputs } = JSON.parse(execFileSync("sh", ["-c", line], { encoding: "utf8" }));
        assertClose(outputs.sweep.values[0][1][1], heads.values[0][1][1], 6, "curl");
        await asked(page).getByLabel("Place").selectOption("query");
        await asked(page).getByLabel("Change").selectOption("mean");
        await saidOf(page, "set to its mean");
        const tokens = await sweepOf({ sweep: { at: "hidden", over: ["layer", "query"], do: "mean" } }),
            label = await cellOfSweep(page, 2, 2);
        assert.ok(label.startsWith("after layer 1, “animal”"), label);
        assertClose(numberOf(label.split(", ").at(-1)), tokens.values[0][2][2] - tokens.unchanged[0], 3, label);
        assert.match(await cellOfSweep(page, 0, 13), /^the embedding of “tired”/);
        assert.deepEqual(await findings(page), []);
        await asked(page).getByLabel("Place").selectOption("head");
        await saidOf(page, "layer 3, head 0");
        await cellOfSweep(page, 1, 1);
        await page.locator(".headview h2", { hasText: "layer 1, head 1" }).waitFor();
        await page.finish();
    },
    async "asked: with two sentences, a sweep takes each head from the other one"(stage) {
        const page = await openModels(stage),
            texts = [HIDDEN, HIDDEN.replace("tired", "wide")];
        await say(page, texts[0]);
        await page.getByLabel("Score these words").fill("animal, street");
        await page.keyboard.press("Enter");
        await page.getByRole("button", { name: "Compare two sentences" }).click();
        await page.getByLabel("Second sentence").fill(texts[1]);
        await page.keyboard.press("Enter");
        await computed(page);
        await question(page, "Sweep").first().click();
        await asked(page).getByLabel("Change").first().selectOption("replace");
        await page.waitForFunction(() => document.querySelectorAll(".said:not([hidden])").length === 2);
        const sweep = { at: "context", over: ["layer", "head"], do: "replace", from: 1, items: [0] };
        for (const [at, pair] of [texts, texts.toReversed()].entries()) {
            const options = { return: ["sweep"], metric: { words: ["animal", "street"], query: 10 }, sweep },
                { unchanged, values } = (await answerOf(stage, pair, options)).outputs.sweep,
                said = asked(page).nth(at).locator(".said", { hasText: "from the other sentence" });
            await said.waitFor();
            const sentence = await said.textContent(),
                [before, change] = numbersIn(sentence),
                changes = values[0].flat().map((value) => value - unchanged[0]);
            assert.ok(sentence.startsWith("The logit of “animal” less that of “street”"), sentence);
            assertClose(before, unchanged[0], 4, sentence);
            assertClose(Math.abs(change), Math.max(...changes.map(Math.abs)), 4, sentence);
        }
        await page.finish();
    },
    async "asked: an attribution has a bar for each part of the logit, on a phone, too"(stage) {
        const page = await openModels(stage, { viewport: { width: 390, height: 800 } });
        await say(page, HIDDEN);
        await question(page, "Attribution").click();
        const sentence = await saidOf(page, "The logit of “animal”"),
            options = { return: ["attribution", "word_scores"], words: ["animal"], queries: [10] },
            { attribution, word_scores: scores } = (await answerOf(stage, HIDDEN, options)).outputs;
        assertClose(numbersIn(sentence)[0], scores.logits[0][0][0], 4, sentence);
        const rows = await asked(page).locator("tbody tr").evaluateAll((lines) => lines.map((line) => Array.from(line.children, (cell) => cell.textContent)));
        const numberAt = (name) => numberOf(rows.find(([one]) => one === name)[1].replace("+", ""));
        assertClose(numberAt("layer 3, head 0"), attribution.heads[3][0][0][0][0], 4, "head");
        assertClose(numberAt("layer 3, feed-forward"), attribution.feed_forward[3][0][0][0], 4, "feed-forward");
        assertClose(rows.reduce((sum, [, text]) => sum + numberOf(text.replace("+", "")), 0), scores.logits[0][0][0], 3, "sum");
        assert.deepEqual(await findings(page), []);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        const [inside, box] = await asked(page).locator("table").evaluate((table) => [table.scrollWidth, table.clientWidth]);
        assert.ok(inside <= box, `${inside} in ${box}`);
        await page.finish();
    },
    async "asked: each press of a key appends a token, and maps, predictions and changes follow"(stage) {
        const server = await startServer(stage.attnd, { ATTND_MODEL: `gpt2=${GPT2}` }),
            own = { ...stage, url: server.url },
            page = await openModels(own);
        await page.locator(".model-choices select").first().selectOption("gpt2");
        await say(page, "The cat sat");
        await openHead(page, 1, 2);
        const grown = async (count) => answerOf(own, "The cat sat", { new_tokens: count, return: ["generated", "attention", "predictions"], queries: [-1] }, "gpt2");
        for (const count of [1, 2]) {
            await headCell(page).focus();
            await page.keyboard.press("n");
            await page.locator(".column .note", { hasText: `${5 + count} tokens` }).first().waitFor();
            const { generated, outputs } = await grown(count);
            const text = generated.text[0].trim();
            assert.equal(await saidOf(page, `“${text}”`), `The model appends “${text}”.`);
            assert.equal(await page.locator(".guess tbody th").first().textContent(), outputs.predictions.shown[0][0][0]);
            const [weight] = outputs.attention[1][0][2][0];
            await page.locator(".headview [role=gridcell]").first().focus();
            await page.keyboard.press("Home");
            assertClose(numberOf((await page.locator(".headview [role=gridcell]").first().getAttribute("aria-label")).split(", ").at(-1)), weight, 4, "weight");
        }
        await page.locator(".headview").getByRole("button", { name: "off", exact: true }).click();
        const { ids } = (await grown(2)).tokens,
            [row] = (await answerOf(own, undefined, { return: ["predictions"], queries: [-1], ablate: [[1, 2]] }, "gpt2", { ids })).outputs.predictions.shown[0];
        await page.locator(".effect", { hasText: `is now “${row[0]}”` }).waitFor();
        await saidOf(page, "The model without the changes appends “");
        await page.waitForTimeout(700);
        await page.reload();
        await computed(page);
        await page.locator(".effect", { hasText: `is now “${row[0]}”` }).waitFor();
        await question(page, "Attribution").click();
        await headCell(page).focus();
        await page.keyboard.press("n");
        await page.locator(".column .note", { hasText: "8 tokens" }).first().waitFor();
        await question(page, "One back").click();
        await page.locator(".column .note", { hasText: "7 tokens" }).first().waitFor();
        await say(page, "The cat");
        await page.locator(".column .note", { hasText: "3 tokens" }).first().waitFor();
        await page.finish();
        await server.stop();
    },
    async "asked: a text as long as the model takes has no next token, and the page says why"(stage) {
        const page = await openModels(stage),
            { longest } = (await (await fetch(`${stage.url}/v1/models`)).json()).models.find(({ name }) => name === "small");
        await page.locator(".model-choices select").first().selectOption("small");
        await say(page, "a ".repeat(longest - 3) + "b");
        await question(page, "New tokens").click();
        await page.locator(".column .note", { hasText: `${longest - 1} tokens` }).first().waitFor();
        assert.equal(await question(page, "Next token").isEnabled(), true);
        await question(page, "Next token").click();
        await page.locator(".column .note", { hasText: `${longest} tokens` }).first().waitFor();
        await asked(page).locator(".note", { hasText: `as long as the model takes: ${longest} tokens.` }).waitFor();
        assert.equal(await question(page, "Next token").isEnabled(), false);
        await question(page, "One back").click();
        await page.locator(".column .note", { hasText: `${longest - 1} tokens` }).first().waitFor();
        assert.equal(await question(page, "Next token").isEnabled(), true);
        await page.finish();
    },
    async "asked: a decoder behind an encoder has new tokens, and heads of the chosen part are changed"(stage) {
        const server = await startServer(stage.attnd, { ATTND_MODEL: `t5=${T5}` }),
            own = { ...stage, url: server.url },
            page = await openModels(own);
        await page.locator(".model-choices select").first().selectOption("t5");
        await say(page, "the cat");
        await question(page, "New tokens").click();
        await question(page, "Next token").click();
        await saidOf(page, "The model appends");
        await page.locator(".model-form select").first().selectOption("cross_attention");
        await computed(page);
        await openHead(page, 0, 1);
        await page.locator(".headview").getByRole("button", { name: "off", exact: true }).click();
        const { tokens } = await answerOf(own, "the cat", { new_tokens: 1, return: ["generated"] }, "t5"),
            intervention = { at: "context", part: "cross", layers: [0], heads: [1], do: "zero" },
            options = { return: ["predictions"], queries: [-1], interventions: [intervention] },
            { outputs } = await answerOf(own, "the cat", options, "t5", { target_ids: tokens.decoder.ids[0] });
        await page.locator(".effect", { hasText: `is now “${outputs.predictions.shown[0][0][0]}”` }).waitFor();
        await question(page, "Attribution").click();
        await saidOf(page, "The logit of");
        assert.match(await asked(page).locator("tbody").textContent(), /cross head/);
        await question(page, "Sweep").click();
        await asked(page).getByLabel("Place").selectOption("query");
        await saidOf(page, "set to 0");
        const sweep = { at: "hidden", part: "encoder", over: ["layer", "query"], do: "zero" },
            label = await cellOfSweep(page, 1, 1),
            metric = { words: [outputs.predictions.ids[0][0][0]], query: tokens.decoder.ids[0].length - 1 },
            swept = await answerOf(own, "the cat", { return: ["sweep"], metric, sweep, interventions: [intervention] }, "t5", { target_ids: tokens.decoder.ids[0] });
        assert.ok(label.startsWith(`after layer 0, “${tokens.encoder.shown[0][1].trim()}”`), label);
        assertClose(numberOf(label.split(", ").at(-1)), swept.outputs.sweep.values[0][1][1] - swept.outputs.sweep.unchanged[0], 3, label);
        await page.getByRole("button", { name: "Compare two sentences" }).click();
        await page.getByLabel("Second sentence").fill("the cat sat on a mat");
        await page.getByLabel("Text of the decoder").fill("a street");
        await page.keyboard.press("Enter");
        await computed(page);
        const replace = asked(page).first().getByLabel("Change").locator("[value=replace]");
        await asked(page).first().locator(".note", { hasText: "both sentences need as many tokens" }).waitFor();
        assert.equal(await replace.isDisabled(), true, "encoders of different lengths");
        await asked(page).first().getByLabel("Place").selectOption("head");
        await page.waitForFunction(() => !document.querySelector(".questions [value=replace]").disabled);
        await page.finish();
        await server.stop();
    },
};
