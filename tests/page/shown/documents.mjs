/**
 * documents.mjs: the pictures of the page in docs/page.md.
 *
 *     node tests/page/shown/documents.mjs --attnd PROGRAM [--only WORD] [--chromium PROGRAM]     writes docs/img/page-*.png
 *
 * Fonts are the machine's, so no test compares them. Look at each after a change of the page.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { deflateSync } from "node:zlib";
import { computed } from "../models/opened.mjs";
import { chunkOf, numbers } from "./animated.mjs";
import { inLaboratory, opened, openPage, startBrowser, startServer, tabOf } from "../support.mjs";

const FOLDER = fileURLToPath(new URL("../../../docs/img/", import.meta.url));

async function inModels(page) {
    await opened(page);
    await tabOf(page, "models").click();
    await computed(page);
    await page.locator(".trial .main").waitFor();
}

/** The page of the story that asks, with its answer. */
async function inStory(page) {
    await opened(page);
    await tabOf(page, "story").click();
    await page.locator(".turn").nth(3).click();
    await page.locator(".wordlist button").first().click();
    await page.locator(".story .worked", { hasText: "score" }).waitFor();
}

/** By name: size, what is opened, language and theme. */
const PICTURES = {
    "start-1366-en": [1366, 768, opened],
    "story-1366-en": [1366, 768, inStory],
    "models-1366-en": [1366, 768, inModels],
    "lab-1366-en": [1366, 768, inLaboratory],
    "lab-390-en": [390, 844, inLaboratory],
    "lab-1440-ru-dark": [1440, 900, inLaboratory, "ru-RU", "dark"],
    "lab-1920-tr": [1920, 1080, inLaboratory, "tr-TR"],
};

/**
 * At most 256 colours of a picture, and the index of the nearest one for each pixel. Colours are cut into boxes of as many colours
 * each, so that rare ones, as those of a legend, stay; a box has the colour that is used most. Runs in the page.
 */
async function indexed(base64) {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)),
        bitmap = await createImageBitmap(new Blob([bytes])),
        context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height),
        words = new Uint32Array(data.buffer),
        uses = new Map();
    for (const word of words) uses.set(word, (uses.get(word) ?? 0) + 1);
    const partsOf = (word) => [word & 255, (word >> 8) & 255, (word >> 16) & 255],
        rangeOf = (box, part) => Math.max(...box.map((word) => partsOf(word)[part])) - Math.min(...box.map((word) => partsOf(word)[part])),
        widest = (box) => [0, 1, 2].sort((one, other) => rangeOf(box, other) - rangeOf(box, one))[0];
    let boxes = [Array.from(uses.keys())];
    while (boxes.length < 256 && boxes.some((box) => box.length > 1))
        boxes = boxes.flatMap((box) => {
            if (box.length < 2) return [box];
            const part = widest(box),
                sorted = box.sort((one, other) => partsOf(one)[part] - partsOf(other)[part]);
            return [sorted.slice(0, box.length >> 1), sorted.slice(box.length >> 1)];
        });
    const palette = boxes.slice(0, 256).map((box) => partsOf(box.reduce((most, word) => (uses.get(word) > uses.get(most) ? word : most)))),
        places = new Map();
    for (const word of uses.keys()) {
        const wanted = partsOf(word),
            apart = palette.map((one) => one.reduce((sum, part, n) => sum + (part - wanted[n]) ** 2, 0));
        places.set(word, apart.indexOf(Math.min(...apart)));
    }
    return { palette: palette.flat(), pixels: Array.from(words, (word) => places.get(word)) };
}

/** A PNG of at most 256 colours, a third as large. @returns {Buffer} */
function pngOf({ palette, pixels }, width, height) {
    const lines = Buffer.alloc((width + 1) * height);
    for (let row = 0; row < height; row++) lines.set(pixels.slice(row * width, (row + 1) * width), row * (width + 1) + 1);
    const header = Buffer.concat([numbers(width, height), Buffer.from([8, 3, 0, 0, 0])]); // 8 bits, of a palette
    return Buffer.concat([
        Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
        chunkOf("IHDR", header),
        chunkOf("PLTE", Buffer.from(palette)),
        chunkOf("IDAT", deflateSync(lines, { level: 9 })),
        chunkOf("IEND"),
    ]);
}

const { values } = parseArgs({ options: { attnd: { type: "string" }, only: { type: "string", default: "" }, chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" } } });
const server = await startServer(values.attnd),
    browser = await startBrowser(values.chromium);
for (const [name, [width, height, ready, locale = "en-GB", colorScheme = "light"]] of Object.entries(PICTURES).filter(([id]) => id.includes(values.only))) {
    const page = await openPage({ browser, url: server.url }, { viewport: { width, height }, locale, colorScheme, reducedMotion: "reduce" }, "/", ready);
    await page.waitForTimeout(1000); // tiles and checks come after the numbers
    const drawn = await page.evaluate(indexed, (await page.screenshot()).toString("base64"));
    writeFileSync(`${FOLDER}page-${name}.png`, pngOf(drawn, width, height));
    await page.finish();
}
await browser.close();
await server.stop();
