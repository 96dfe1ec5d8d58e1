/**
 * times.mjs: how long people wait for the heads of a large model. Times are reported and not judged.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPage, startServer, tabOf } from "../support.mjs";
import { computed, headCell, sentence } from "./opened.mjs";
import { writeModel } from "./random_model.mjs";

export const cases = {
    async "models: 12 × 12 heads of 512 tokens"(stage) {
        const folder = mkdtempSync(join(tmpdir(), "attnd-models-"));
        writeModel(join(folder, "large"), { layers: 12, heads: 12, width: 96, longest: 512 });
        const server = await startServer(stage.attnd, { ATTND_MODELS: folder });
        const page = await openPage({ ...stage, url: server.url });
        await tabOf(page, "models").click();
        await computed(page);
        await page.locator(".model-form select").first().selectOption("large");
        await computed(page);
        await sentence(page).fill("the ".repeat(510));
        const facts = page.locator(".grid-box .note", { hasText: "12 layers × 12 heads, 512 tokens" });
        const grid = await timed(() => Promise.all([facts.waitFor(), page.keyboard.press("Enter")]));
        await computed(page);
        const go = async (key) => {
            await headCell(page).focus();
            return timed(async () => {
                await page.keyboard.press(key);
                await computed(page);
            });
        };
        const fresh = await go("ArrowUp"),
            known = await go("ArrowDown");
        await page.finish();
        await server.stop();
        rmSync(folder, { recursive: true });
        return `grid after ${grid} ms, another head after ${fresh} ms, one that was open before after ${known} ms`;
    },
};

async function timed(work) {
    const begun = performance.now();
    await work();
    return Math.round(performance.now() - begun);
}
