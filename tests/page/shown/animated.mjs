/**
 * animated.mjs: the moving picture of README.md: "tired" becomes "wide", and the line goes from "animal" to "street".
 *
 *     node tests/page/shown/animated.mjs --attnd PROGRAM [--chromium PROGRAM]     writes docs/img/opening.png
 *
 * It is an APNG of screenshots. The times of the transitions are set, so that each picture shows the same moment on
 * every machine; fonts are the machine's.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { deflateSync, inflateSync } from "node:zlib";
import { opened, openPage, startBrowser, startServer } from "../support.mjs";

const SIZE = { width: 880, height: 300 };
/** How long a sentence stands, and the moments of a transition, in ms. */
const STANDS_MS = 2000,
    STEP_MS = 100,
    MOVES_MS = 600;

/** The check of a PNG's chunk: CRC-32, as in ISO 3309. */
function crc32(bytes) {
    let crc = -1;
    for (const byte of bytes) {
        crc ^= byte;
        for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc >>> 0;
}

/** @returns {Buffer} */
export function chunkOf(type, ...parts) {
    const body = Buffer.concat([Buffer.from(type), ...parts]),
        [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(body.length - 4);
    check.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, check]);
}

/** Chunks of a PNG. @param {Buffer} png @returns {{type: string, data: Buffer}[]} */
function chunksOf(png) {
    const found = [];
    for (let at = 8; at < png.length; ) {
        const length = png.readUInt32BE(at);
        found.push({ type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
        at += 12 + length;
    }
    return found;
}

export const numbers = (...values) => {
    const bytes = Buffer.alloc(4 * values.length);
    values.forEach((value, at) => bytes.writeUInt32BE(value, 4 * at));
    return bytes;
};

/** PNG files of one size and type as one that moves. @param {{png: Buffer, ms: number}[]} frames @returns {Buffer} */
function apngOf(frames) {
    const [header, ...others] = frames.map(({ png }) => chunksOf(png).find(({ type }) => type === "IHDR").data);
    assert.ok(others.every((one) => one.equals(header)), "frames of two kinds");
    let sequence = 0;
    const parts = frames.flatMap(({ png, ms }, n) => {
        const delay = Buffer.from([ms >> 8, ms & 255, 1000 >> 8, 1000 & 255, 0, 0]), // of 1/1000 s; nothing is kept, nothing blended
            control = chunkOf("fcTL", numbers(sequence++, header.readUInt32BE(0), header.readUInt32BE(4), 0, 0), delay),
            lines = inflateSync(Buffer.concat(chunksOf(png).filter(({ type }) => type === "IDAT").map(({ data }) => data))),
            data = deflateSync(lines, { level: 9 }); // smaller than the browser makes it
        return [control, n === 0 ? chunkOf("IDAT", data) : chunkOf("fdAT", numbers(sequence++), data)];
    });
    return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunkOf("IHDR", header), chunkOf("acTL", numbers(frames.length, 0)), ...parts, chunkOf("IEND")]);
}

/** @param {{browser: object, url: string}} stage @param {number} step between two moments @returns {Promise<{png: Buffer, ms: number}[]>} */
async function framesOfOpening(stage, step) {
    const page = await openPage(stage, { viewport: SIZE, colorScheme: "light" }, "/", opened),
        frames = [];
    await page.evaluate(() => {
        const style = new CSSStyleSheet();
        style.replaceSync("header, .purpose, .note, .ways, footer { display: none !important } .opening { min-height: 0; padding-top: 1rem }");
        document.adoptedStyleSheets = [style];
    });
    const toMoment = (ms) =>
        page.evaluate((time) => {
            for (const animation of document.getAnimations()) {
                animation.pause();
                animation.currentTime = time;
            }
            return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        }, ms);
    const take = async (ms) => frames.push({ png: await page.screenshot(), ms });
    const end = () => page.evaluate(() => document.getAnimations().forEach((animation) => animation.finish()));
    await end();
    for (const [word, noun] of [
        ["wide", "street"],
        ["tired", "animal"],
    ]) {
        await take(STANDS_MS);
        await page.evaluate(
            ([name, said]) =>
                new Promise((resolve) => {
                    const answer = document.querySelector(".answer");
                    new MutationObserver((_, observer) => {
                        if (!answer.textContent.includes(said)) return;
                        observer.disconnect();
                        requestAnimationFrame(() => {
                            for (const animation of document.getAnimations()) animation.pause();
                            resolve();
                        });
                    }).observe(answer, { childList: true });
                    Array.from(document.querySelectorAll(".swap button")).find(({ textContent }) => textContent === name).click();
                }),
            [word, noun],
        );
        for (let ms = step; ms < MOVES_MS; ms += step) {
            await toMoment(ms);
            await take(step);
        }
        await end();
    }
    await page.finish();
    return frames;
}

export const cases = {
    async "animated: the picture of the README moves from one noun to the other, and back"(stage) {
        const frames = await framesOfOpening(stage, 200),
            page = await stage.browser.newPage();
        const same = (a, b) => frames[a].png.equals(frames[b].png);
        assert.equal(frames.length, 6);
        for (const [a, b] of [[0, 1], [1, 2], [0, 3]]) assert.ok(!same(a, b), `frames ${a} and ${b} are alike`);
        const size = await page.evaluate(async (base64) => {
            const decoder = new ImageDecoder({ type: "image/png", data: Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)) });
            await decoder.completed;
            return decoder.tracks.selectedTrack.frameCount;
        }, apngOf(frames).toString("base64")).catch(() => null); // a page without a secure context has no decoder
        if (size !== null) assert.equal(size, frames.length);
        await page.close();
    },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const { values } = parseArgs({ options: { attnd: { type: "string" }, chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" } } });
    const server = await startServer(values.attnd),
        browser = await startBrowser(values.chromium);
    writeFileSync(new URL("../../../docs/img/opening.png", import.meta.url), apngOf(await framesOfOpening({ browser, url: server.url }, STEP_MS)));
    await browser.close();
    await server.stop();
}
