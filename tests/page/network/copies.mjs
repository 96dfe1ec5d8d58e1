/**
 * copies.mjs: pages saved from every mode open from disk: without a server, without an error, and axe finds
 * nothing; and they say of what they are copies.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findings } from "../input/accessibility.mjs";
import { addressOf, answerTo, dropFile, exported, inFolder, inLaboratory, opened, openPage, settled, tabOf } from "../support.mjs";

const drawn = (page) => page.locator(".scene svg").waitFor();

const modelShown = (page) => page.locator(".headview .readout b").waitFor();

async function inModels(page) {
    await opened(page);
    await tabOf(page, "models").click();
    await modelShown(page);
}

/** Makes a copy of what is open. */
const fromLaboratory = (page, folder) => exported(page, "This page (HTML)", folder);

async function fromStory(page, folder) {
    await tabOf(page, "story").click();
    await drawn(page);
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as a page" }).click()]);
    const path = join(folder, file.suggestedFilename());
    await file.saveAs(path);
    return path;
}

/** Opens a copy, and lists what the browser complains of from its first moment on. */
async function openCopy(stage, path, ready) {
    const copy = await openPage(stage, { viewport: { width: 1366, height: 768 } }, pathToFileURL(path).href, ready),
        complaints = [];
    copy.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
    await copy.reload();
    await ready(copy);
    return { copy, complaints };
}

/** What is copied, and what is done with the copy. */
const COPIES = {
    "a head of a model": { path: "/", come: inLaboratory, save: fromLaboratory, ready: settled },
    "an edited request": { path: addressOf({ preset: "padding", view: { step: "q" } }), save: fromLaboratory, ready: settled },
    links: { path: addressOf({ preset: "cross", view: { tab: "links" } }), save: fromLaboratory, ready: settled },
    "the opening": { path: "/", come: opened, save: fromLaboratory, ready: opened },
    "a model": { path: "/", come: inModels, save: fromLaboratory, ready: modelShown },
    "the story": { path: "/", come: opened, save: fromStory, ready: drawn },
};

const OPENED = Object.fromEntries(
    Object.entries(COPIES).map(([name, { path, come, save, ready }]) => [
        `copies: saved from the page, it opens from disk without an error, and axe finds nothing: ${name}`,
        (stage) =>
            inFolder(async (folder) => {
                const page = await openPage(stage, {}, path, come),
                    file = await save(page, folder);
                await page.finish();
                const { copy, complaints } = await openCopy(stage, file, ready);
                assert.deepEqual(await findings(copy), []);
                await copy.locator("header nav button:visible").last().click();
                await dropFile(copy, "heads.json", JSON.stringify({ attentions: [[[[1, 0], [0.5, 0.5]]]], tokens: ["a", "b"] }));
                await copy.locator(".headview .readout b").waitFor();
                assert.deepEqual(await findings(copy), []);
                assert.deepEqual(complaints, []);
                assert.deepEqual(copy.asked.filter((one) => !one.endsWith(".html")), []);
                await copy.finish();
            }),
    ]),
);

/** Saves the run as JSON, and opens it again. */
async function reopened(page, folder) {
    const path = await exported(page, "JSON", folder);
    await answerTo(page, () => dropFile(page, "run.json", readFileSync(path)));
}

async function saysItsModel(page) {
    assert.match(await page.locator(".stage h2").textContent(), /^demo, layer 3 · softmax · head 0/);
    assert.match(await page.locator(".role").textContent(), /^Layer 3, head 0 looks for the noun/);
    assert.doesNotMatch(await page.locator(".panel").textContent(), /stand in for a trained model/);
    assert.equal(await page.getByLabel("Sentence").inputValue(), "The animal did not cross the street because it was too tired");
    assert.equal(await page.getByRole("button", { name: "Make tokens" }).isVisible(), false);
}

export const cases = {
    ...OPENED,
    async "copies: a page and a JSON of a trained model say its model, and nothing replaces its vectors"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage, {}, "/", inLaboratory),
                path = await fromLaboratory(page, folder);
            await reopened(page, folder);
            await saysItsModel(page);
            await answerTo(page, () => page.getByRole("button", { name: "wide" }).click());
            await page.getByRole("button", { name: "tired" }).waitFor();
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href, settled);
            await saysItsModel(copy);
            assert.match(await copy.locator(".panel .note").first().textContent(), /This copy has no server/);
            assert.equal(await copy.getByLabel("Sentence").isEditable(), false);
            assert.equal(await copy.locator(".role button").count(), 0);
            await copy.getByLabel("Causal").check();
            await copy.waitForFunction(() => location.hash || history.state);
            await copy.waitForTimeout(600);
            await copy.reload();
            await settled(copy);
            await saysItsModel(copy);
            await copy.finish();
        });
    },
    async "copies: of the opening one switches the word, and goes on to its laboratory, without a server"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage, {}, "/", opened),
                [word, path] = [await page.locator(".says h2").textContent(), await fromLaboratory(page, folder)];
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href, opened);
            assert.equal(await copy.locator(".says h2").textContent(), word);
            await copy.getByRole("button", { name: "wide" }).click();
            await copy.getByText("“it” looks at “street”").waitFor();
            await tabOf(copy, "lab").click();
            await settled(copy);
            assert.match(await copy.locator(".stage h2").textContent(), /^demo, layer 3 · softmax · head 0/);
            await tabOf(copy, "start").click();
            await copy.getByRole("button", { name: "Your sentence" }).click();
            await copy.getByRole("textbox", { name: "Sentence" }).fill("A cat sat");
            await copy.getByText("This copy has no server.").waitFor();
            await copy.finish();
        });
    },
    async "copies: of a model one sees every head, and the copy names the model and the sentence"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage, {}, "/", inModels),
                seen = async (one) => [await one.locator(".headview .readout").textContent(), await one.locator(".guess-table").first().textContent()],
                before = await seen(page),
                path = await fromLaboratory(page, folder);
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href, modelShown);
            assert.deepEqual(await seen(copy), before);
            assert.equal(await copy.locator(".model-choices select").first().inputValue(), "demo");
            await copy.locator(".grid-box [role=gridcell]").focus();
            await copy.keyboard.press("ArrowUp");
            await copy.getByRole("heading", { name: "layer 2, head 0" }).waitFor();
            await copy.finish();
        });
    },
    async "copies: on a site of another they have no server either"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage, { permissions: ["clipboard-read", "clipboard-write"] }, "/", opened),
                content = readFileSync(await fromLaboratory(page, folder));
            await page.locator(".menu", { hasText: "Export" }).locator("summary").click();
            await page.getByRole("button", { name: "<iframe>" }).click();
            const line = await (await page.waitForFunction(() => navigator.clipboard.readText())).jsonValue();
            assert.match(line, /^<iframe src="attention-start.html" /);
            await page.finish();
            const frame = `<!doctype html><html lang="en"><title>A site</title><h1>A site</h1>${line}`,
                site = createServer(({ url }, response) => response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(url === "/" ? frame : content));
            await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
            const other = await stage.browser.newPage();
            try {
                await other.goto(`http://127.0.0.1:${site.address().port}/`);
                await other.frameLocator("iframe").getByText("“it” looks at “animal”").waitFor();
                await other.frameLocator("iframe").getByRole("button", { name: "wide" }).click();
                await other.frameLocator("iframe").getByText("“it” looks at “street”").waitFor();
            } finally {
                await other.close();
                site.closeAllConnections();
                site.close();
            }
        });
    },
    async "copies: of a request of one's own no page says that random numbers stand in"(stage) {
        const page = await openPage(stage);
        await answerTo(page, () => dropFile(page, "mine.json", JSON.stringify({ inputs: { query: [[1, 0], [0, 1]] }, tokens: { query: ["a", "b"] } })));
        assert.match(await page.locator(".panel .note").first().textContent(), /keep their vectors/);
        await page.finish();
    },
};
