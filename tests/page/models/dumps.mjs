/**
 * dumps.mjs: maps that other programs have written, dropped onto the page.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { deflateRawSync } from "node:zlib";
import { assertClose, dropFile, eventually, exported, inFolder, numberOf, openPage, tabOf } from "../support.mjs";
import { answerOf, cellOf, colourAt, computed, headCell, openHead, openModels, SENTENCE, sentence } from "./opened.mjs";

const TOKENS = ["a", "cat", "sat", "on", "a"];
const [LAYERS, HEADS] = [3, 2];

/** Rows that sum to 1, and no two alike. */
const weight = (l, h, i, j) => {
    const raw = (k) => 1 + ((l * 7 + h * 5 + i * 3 + k * 2) % 11);
    return raw(j) / TOKENS.reduce((sum, _, k) => sum + raw(k), 0);
};

const nested = (...sizes) => {
    const level = (at) =>
        at.length === 4 ? weight(...at) : Array.from({ length: sizes[at.length] }, (_, n) => level([...at, n]));
    return level([]);
};
const MAPS = nested(LAYERS, HEADS, TOKENS.length, TOKENS.length);
const FLAT = Float32Array.from(MAPS.flat(3));

export function safetensors(name, shape, metadata, numbers = FLAT) {
    const header = JSON.stringify({
        __metadata__: metadata,
        [name]: { dtype: "F32", shape, data_offsets: [0, numbers.byteLength] },
    });
    const padded = header.padEnd(Math.ceil(header.length / 8) * 8),
        length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(padded.length));
    return Buffer.concat([length, Buffer.from(padded), Buffer.from(numbers.buffer)]);
}

export function npy(descr, shape, bytes) {
    const header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.join(", ")},), }`.padEnd(117) + "\n",
        head = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
    return Buffer.concat([head, Buffer.from(header), bytes]);
}

/** A text in NumPy's arrays: as many places as the longest has, four bytes each. */
function words(list) {
    const room = Math.max(...list.map((word) => word.length)),
        bytes = Buffer.alloc(4 * room * list.length);
    list.forEach((word, n) => Array.from(word).forEach((c, at) => bytes.writeUInt32LE(c.codePointAt(0), 4 * (n * room + at))));
    return npy(`<U${room}`, [list.length], bytes);
}

/** A zip of files, packed or not. The sums are not looked at. */
export function zip(files, isPacked) {
    const parts = [],
        entries = [];
    let at = 0;
    for (const [name, content] of Object.entries(files)) {
        const body = isPacked ? deflateRawSync(content) : content,
            fixed = Buffer.alloc(26);
        fixed.writeUInt16LE(20, 0);
        fixed.writeUInt16LE(isPacked ? 8 : 0, 4);
        fixed.writeUInt32LE(body.length, 14);
        fixed.writeUInt32LE(content.length, 18);
        fixed.writeUInt16LE(name.length, 22);
        parts.push(Buffer.from("PK\x03\x04"), fixed, Buffer.from(name), body);
        const place = Buffer.alloc(16);
        place.writeUInt32LE(at, 12);
        entries.push(Buffer.from("PK\x01\x02\x14\x00", "latin1"), fixed, place.subarray(2), Buffer.from(name));
        at += 30 + name.length + body.length;
    }
    const directory = Buffer.concat(entries),
        end = Buffer.alloc(22);
    end.write("PK\x05\x06", "latin1");
    end.writeUInt16LE(Object.keys(files).length, 10);
    end.writeUInt32LE(directory.length, 12);
    end.writeUInt32LE(at, 16);
    return Buffer.concat([...parts, directory, end]);
}

const shape = [LAYERS, HEADS, TOKENS.length, TOKENS.length];
const ARRAYS = { "attentions.npy": npy("<f4", shape, Buffer.from(FLAT.buffer)), "tokens.npy": words(TOKENS) };
const FORMS = {
    "heads.safetensors": safetensors("attentions", shape, { tokens: TOKENS.join("\n") }),
    "json.safetensors": safetensors("attention", [LAYERS, 1, ...shape.slice(1)], { tokens: JSON.stringify(TOKENS) }),
    "plain.npz": zip(ARRAYS, false),
    "packed.npz": zip(ARRAYS, true),
    "heads.json": JSON.stringify({ attentions: MAPS, tokens: TOKENS }),
    "batch.json": JSON.stringify({ attentions: MAPS.map((layer) => [layer]), tokens: TOKENS }),
    "bertviz.json": JSON.stringify({ attention: [{ name: null, attn: MAPS, left_text: TOKENS, right_text: TOKENS }] }),
    "circuitsvis.json": JSON.stringify(MAPS.map((attention, layer) => ({ layer, tokens: TOKENS, attention }))),
};

const numberIn = (label) => numberOf(label.slice(label.lastIndexOf(", ") + 2));

async function showsMaps(page, name) {
    await page.locator(".model-top .note", { hasText: name }).waitFor();
    await computed(page);
    await openHead(page, 2, 1);
    assert.equal(await headCell(page).getAttribute("aria-label"), "layer 2, head 1", name);
    const label = await cellOf(page, 3, 1);
    assert.match(label, /^on → cat, /, name);
    assertClose(numberIn(label), weight(2, 1, 3, 1), 5, name);
}

export const cases = {
    async "dumps: maps with tokens open from each of the forms that people have"(stage) {
        const page = await openPage(stage);
        for (const [name, content] of Object.entries(FORMS)) {
            await dropFile(page, name, content);
            await showsMaps(page, name);
        }
        assert.equal(await page.getByRole("button", { name: "off", exact: true }).isVisible(), false);
        assert.equal(await page.locator(".guess").isVisible(), false, "predictions of a file");
        await page.finish();
    },
    async "dumps: a file opens where Models says how to write one"(stage) {
        const page = await openPage(stage);
        await tabOf(page, "models").click();
        await computed(page);
        await page.locator(".dump-how > summary").click();
        const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.locator(".dump-how button").first().click()]);
        await chooser.setFiles({ name: "plain.npz", mimeType: "application/zip", buffer: FORMS["plain.npz"] });
        await showsMaps(page, "plain.npz");
        await page.finish();
    },
    async "dumps: the server's own views and answers open, with its numbers"(stage) {
        const page = await openPage(stage);
        const whole = await answerOf(stage, SENTENCE);
        for (const [name, content] of [
            ["answer.json", whole],
            ["view.json", await answerOf(stage, SENTENCE, { view: "bertviz" })],
        ]) {
            await dropFile(page, name, JSON.stringify(content));
            await page.locator(".model-top .note", { hasText: name }).waitFor();
            await computed(page);
            await openHead(page, 1, 2);
            assertClose(numberIn(await cellOf(page, 5, 3)), whole.outputs.attention[1][0][2][5][3], 5, name);
        }
        await page.finish();
    },
    async "dumps: measures, mean and rollout of maps without a server's word are by the same equations"(stage) {
        const page = await openPage(stage),
            answer = await answerOf(stage, SENTENCE, { return: ["attention", "head_scores", "rollout"] });
        const { head_scores: scores, rollout } = answer.outputs;
        delete answer.outputs.head_scores;
        await dropFile(page, "answer.json", JSON.stringify(answer));
        await page.locator(".model-top .note", { hasText: "answer.json" }).waitFor();
        await computed(page);
        for (const name of ["entropy", "previous_token", "first_token", "same_token", "induction"]) {
            await page.locator(".model-tools .row-of select").selectOption(name);
            await page.getByLabel("Sorted").uncheck();
            for (const [layer, head] of [[0, 2], [1, 0]]) {
                await openHead(page, layer, head);
                const label = await headCell(page).getAttribute("aria-label");
                assertClose(numberOf(label.split(" ").at(-1)), scores[name][layer][0][head], 3, name);
            }
        }
        await openHead(page, 3, 6);
        assertClose(numberIn(await cellOf(page, 9, 2)), rollout[3][0][9][2], 4, "rollout");
        await page.finish();
    },
    async "dumps: a file does not wear the form of a model, has no steps to open, and is closed"(stage) {
        const page = await openModels(stage);
        await openHead(page, 3, 0);
        await page.keyboard.press("a");
        await computed(page);
        await dropFile(page, "heads.json", FORMS["heads.json"]);
        await showsMaps(page, "heads.json");
        assert.equal(await page.locator(".model-form").isVisible(), false);
        assert.equal(await page.locator(".changed").isVisible(), false);
        assert.equal(await page.getByRole("button", { name: "All steps" }).isVisible(), false);
        await headCell(page).focus();
        for (const key of ["Enter", "a"]) await page.keyboard.press(key);
        await computed(page);
        assert.equal(await tabOf(page, "models").getAttribute("aria-selected"), "true");
        assert.equal(await headCell(page).getAttribute("aria-label"), "layer 2, head 1");
        assert.doesNotMatch(await page.locator(".grid-box").textContent(), /all steps|switches/);
        await page.getByRole("button", { name: "Close the file" }).click();
        await page.locator(".grid-box .note", { hasText: "4 layers × 4 heads, 14 tokens" }).waitFor();
        assert.equal(await sentence(page).inputValue(), SENTENCE);
        await page.finish();
    },
    async "dumps: later keys that no head sees are masked, in the thumbnails and in the open map"(stage) {
        const page = await openPage(stage),
            causal = [[[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]]];
        await dropFile(page, "causal.json", JSON.stringify({ attentions: [causal], tokens: ["a", "b", "c"] }));
        await page.locator(".model-top .note", { hasText: "causal.json" }).waitFor();
        await computed(page);
        assert.equal(await cellOf(page, 0, 1), "a → b, masked");
        assert.match(await cellOf(page, 2, 0), /0\.2$/);
        assert.equal(await page.locator(".grid-box .swatch").isVisible(), true);
        const bidirectional = [[[0.5, 0.5, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]]];
        await dropFile(page, "other.json", JSON.stringify({ attentions: [causal, bidirectional], tokens: ["a", "b", "c"] }));
        await page.locator(".model-top .note", { hasText: "other.json" }).waitFor();
        await computed(page);
        assert.equal(await cellOf(page, 0, 1), "a → b, 0");
        await page.finish();
    },
    async "dumps: thumbnails and the open map of large maps have one range, and the page answers while they are read"(stage) {
        const page = await openPage(stage),
            [layers, heads, length] = [8, 8, 256],
            halves = new Uint16Array(layers * heads * length * length);
        // Half a weight for the query itself and the first key: 0x3800 is 0.5 in float16, 0x3c00 is 1.
        for (let n = 0; n < layers * heads; n++)
            for (let i = 0; i < length; i++) {
                const row = (n * length + i) * length;
                halves[row] = i === 0 ? 0x3c00 : 0x3800;
                halves[row + i] = i === 0 ? 0x3c00 : 0x3800;
            }
        const file = zip({ "attentions.npy": npy("<f2", [layers, heads, length, length], Buffer.from(halves.buffer)) }, true);
        await page.evaluate(() => {
            window.made = 0;
            const { Worker } = window;
            window.Worker = class extends Worker {
                postMessage(message, ...rest) {
                    if (message instanceof File) window.made++;
                    super.postMessage(message, ...rest);
                }
            };
            window.longest = 0;
            let last = performance.now();
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = () => {
                window.longest = Math.max(window.longest, performance.now() - last);
                last = performance.now();
                if (!window.isOver) port2.postMessage(0);
            };
            window.DecompressionStream = window.DataView = undefined; // to unpack and to read is the worker's
            port2.postMessage(0);
        });
        const begun = Date.now();
        await dropFile(page, "large.npz", file);
        await page.locator(".grid-box .note", { hasText: "8 layers × 8 heads, 256 tokens" }).waitFor();
        await computed(page);
        const whole = Date.now() - begun,
            { made, longest } = await page.evaluate(() => ((window.isOver = true), { made: window.made, longest: window.longest }));
        assert.equal(made, 1);
        await page.locator(".grid-box").getByRole("combobox", { name: "Range" }).selectOption("full");
        await computed(page);
        const cell = page.locator(".headgrid [role=gridcell]"),
            { width, height } = await cell.boundingBox();
        await eventually(async () => {
            const colour = await colourAt(page, ".headgrid", 0.01 * width, 0.6 * height);
            // Viridis in its middle: 0.5 of 0 to 1.
            assert.ok([0x21, 0x91, 0x8c].every((part, n) => Math.abs(part - colour[n]) < 40), `${colour}`);
        });
        await page.finish();
        return `${whole} ms, longest task ${Math.round(longest)} ms`;
    },
    async "dumps: a file that holds no maps says what is wrong with it"(stage) {
        const page = await openPage(stage);
        for (const [name, content, why] of [
            ["other.npz", zip({ "x.npy": ARRAYS["attentions.npy"] }, false), /no array “attentions”/],
            ["cut.npz", FORMS["plain.npz"].subarray(0, 300), /zip file cannot be read/],
            ["flat.json", JSON.stringify({ attentions: [[1, 0]] }), /2|queries/],
        ]) {
            await dropFile(page, name, content);
            await page.locator(".notice", { hasText: why }).waitFor();
        }
        await page.finish();
    },
    async "dumps: the lines of Python are shown, and copied as they are"(stage) {
        const page = await openModels(stage, { permissions: ["clipboard-read", "clipboard-write"] });
        await page.locator(".dump-how summary").click();
        const code = await page.locator(".dump-how pre").textContent();
        assert.equal(code.split("\n").filter((line) => !line.startsWith("#")).length, 5);
        await page.locator(".dump-how button").last().click();
        await page.waitForFunction(async (wanted) => (await navigator.clipboard.readText()) === wanted, code);
        await page.finish();
    },
    async "dumps: a copy of the page from disk says that it runs no model, and opens maps"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage),
                path = await exported(page, "This page (HTML)", folder);
            const copy = await openPage(stage, {}, pathToFileURL(path).href);
            await tabOf(copy, "models").click();
            await copy.getByText("no model runs here", { exact: false }).waitFor();
            await dropFile(copy, "heads.safetensors", FORMS["heads.safetensors"]);
            await showsMaps(copy, "heads.safetensors");
            await copy.finish();
            await page.finish();
        });
    },
    async "dumps: the lines of Python run, and the page opens every file that they write"(stage) {
        const page = await openModels(stage);
        await page.locator(".dump-how summary").click();
        const code = await page.locator(".dump-how pre").textContent();
        await inFolder(async (folder) => {
            const has = (python, name) => spawnSync(python, ["-c", "import " + name]).status === 0,
                python = ["python3", "/usr/bin/python3"].find((one) => has(one, "numpy"));
            assert.ok(python, "no Python with Debian's python3-numpy");
            const hasSafetensors = has(python, "safetensors.numpy"),
                lines = code.split("\n").filter((line) => hasSafetensors || !line.includes("safetensors")),
                { status, stderr } = spawnSync(python, ["-c", lines.join("\n").replace(/^# or: /gm, "")], { cwd: folder, encoding: "utf8" });
            assert.equal(status, 0, stderr);
            const files = readdirSync(folder);
            assert.ok(files.includes("heads.npz") && files.includes("heads.json"), String(files));
            for (const name of files) {
                await dropFile(page, name, readFileSync(join(folder, name)));
                await page.locator(".model-top .note", { hasText: name }).waitFor();
                await page.locator(".grid-box .note", { hasText: "2 layers × 4 heads, 3 tokens" }).waitFor();
                assert.match(await cellOf(page, 2, 1), /^sat → cat, 0\.3333/);
            }
        });
        await page.finish();
    },
};
