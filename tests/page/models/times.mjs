/**
 * times.mjs: how long people wait for the heads of a large model. Times are reported and not judged.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf, inFolder, openPage, settled, startServer, tabOf } from "../support.mjs";
import { npy, safetensors, zip } from "./dumps.mjs";
import { computed, headCell, sentence } from "./opened.mjs";
import { writeModel } from "./random_model.mjs";

/** Maps of 12 layers and heads for 512 tokens: shape, and numbers below 1 that are not alike. */
const LARGE = [12, 12, 512, 512],
    LARGE_COUNT = LARGE.reduce((product, size) => product * size);
const LARGE_FILES = {
    "float32.safetensors": () => safetensors("attentions", LARGE, {}, Float32Array.from({ length: LARGE_COUNT }, (_, at) => ((at * 7919) % 997) / 997)),
    "float16.npz": () => zip({ "attentions.npy": npy("<f2", LARGE, Buffer.from(Uint16Array.from({ length: LARGE_COUNT }, (_, at) => 0x2800 + ((at * 7919) % 4096)).buffer)) }, false),
};

/** Drops a file of any size, and counts the tasks that hold the page meanwhile. @returns {Promise<{opened: number, longest: number}>} in ms */
async function dropLarge(page, path) {
    await page.evaluate(() => document.body.append(Object.assign(document.createElement("input"), { type: "file", id: "large-file" })));
    await page.locator("#large-file").setInputFiles(path);
    return page.evaluate(async () => {
        let longest = 0;
        const observer = new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => (longest = Math.max(longest, duration))));
        observer.observe({ type: "longtask" });
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(document.querySelector("#large-file").files[0]);
        const begun = performance.now();
        document.querySelector("main").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
        while (!/12 layers × 12 heads/.test(document.querySelector(".grid-box .note")?.textContent) || !document.querySelector(".headview .readout b")) await new Promise((resolve) => setTimeout(resolve, 10));
        const opened = performance.now() - begun;
        await new Promise((resolve) => setTimeout(resolve, 500));
        return { opened: Math.round(opened), longest: Math.round(longest) };
    });
}

export const cases = {
    ...Object.fromEntries(
        Object.entries(LARGE_FILES).map(([name, bytes]) => [
            `models: a file of maps, 12 × 12 × 512 × 512, ${name}`,
            (stage) =>
                inFolder(async (folder) => {
                    writeFileSync(join(folder, name), bytes());
                    const page = await openPage(stage);
                    const { opened, longest } = await dropLarge(page, join(folder, name));
                    await page.finish();
                    return `opened after ${opened} ms, longest task ${longest} ms`;
                }),
        ]),
    ),
    async "models: another head in the laboratory, 12 heads of 64 tokens"(stage) {
        const page = await openPage(stage, {}, addressOf({ preset: "twelve" })),
            times = [];
        for (const head of [5, 1, 11, 0, 7]) {
            await settled(page);
            times.push(
                await page.evaluate(async (at) => {
                    const begun = performance.now();
                    document.querySelectorAll(".heads button")[at].click();
                    while (!document.querySelector(".stage h2").textContent.includes(`head ${at} `)) await new Promise((resolve) => setTimeout(resolve, 1));
                    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
                    return Math.round(performance.now() - begun);
                }, head),
            );
        }
        await page.finish();
        return `shown after ${times.join(", ")} ms`;
    },
    async "models: 12 × 12 heads of 512 tokens"(stage) {
        const folder = mkdtempSync(join(tmpdir(), "attnd-models-"));
        writeModel(join(folder, "large"), { layers: 12, heads: 12, width: 96, longest: 512 });
        const server = await startServer(stage.attnd, { ATTND_MODELS: folder });
        const page = await openPage({ ...stage, url: server.url });
        await tabOf(page, "models").click();
        await computed(page);
        await page.locator(".model-choices select").first().selectOption("large");
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
