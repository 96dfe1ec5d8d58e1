/**
 * copies.mjs: pages saved from every mode open from disk: without a server, without an error, and axe finds nothing.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findings } from "../input/accessibility.mjs";
import { addressOf, dropFile, exported, inFolder, openPage, settled } from "../support.mjs";

const drawn = (page) => page.locator(".scene svg").waitFor();

/** Makes a copy of what is open. */
const fromLaboratory = (page, folder) => exported(page, "This page (HTML)", folder);

async function fromStory(page, folder) {
    await page.locator("header nav button").first().click();
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
    "a head of a model": { path: "/", save: fromLaboratory, ready: settled },
    "an edited request": { path: addressOf({ preset: "padding", view: { step: "q" } }), save: fromLaboratory, ready: settled },
    links: { path: addressOf({ preset: "cross", view: { tab: "links" } }), save: fromLaboratory, ready: settled },
    "the story": { path: "/", save: fromStory, ready: drawn },
};

export const cases = Object.fromEntries(
    Object.entries(COPIES).map(([name, { path, save, ready }]) => [
        `copies: saved from the page, it opens from disk without an error, and axe finds nothing: ${name}`,
        (stage) =>
            inFolder(async (folder) => {
                const page = await openPage(stage, {}, path),
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
