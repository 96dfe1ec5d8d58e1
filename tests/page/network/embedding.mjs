/**
 * embedding.mjs: the module that pages of others import: from another origin, its pictures, keys and events, and its types.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { tableOf } from "../../../server/web/maps/colour.js";
import { findings } from "../input/accessibility.mjs";
import { eventually, inFolder } from "../support.mjs";

const ROOT = new URL("../../../", import.meta.url);
const EXAMPLE = readFileSync(new URL("examples/heads.html", ROOT));
const VERSION = readFileSync(new URL("VERSION", ROOT), "utf8").trim();
const SERIES = VERSION.replace(/\.\d+$/, "");
const BLANK = `<!doctype html><html lang="en"><title>A page</title><main><h1>A page</h1><div id="here" style="width: 500px"></div></main>`;

const WEIGHTS = [
    [1, 0, 0],
    [0.25, 0.75, 0],
    [0.5, 0.125, 0.375],
];

/** A page of another port, which says what went wrong in it. */
async function onOtherOrigin({ browser, url }, path, work, options = {}) {
    const site = createServer((request, response) =>
        response.writeHead(200, { "Content-Type": "text/html" }).end(request.url.startsWith("/heads") ? EXAMPLE : BLANK),
    );
    await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
    const context = await browser.newContext({ viewport: { width: 1000, height: 900 }, ...options }),
        page = await context.newPage(),
        wrong = [];
    page.on("pageerror", (error) => wrong.push(String(error.stack ?? error)));
    try {
        await page.goto(`http://127.0.0.1:${site.address().port}${path}?server=${encodeURIComponent(url)}`);
        await work(page).catch((problem) => {
            throw new Error([problem.stack, ...wrong].join("\n"));
        });
        assert.deepEqual(wrong, []);
    } finally {
        await context.close();
        site.closeAllConnections();
        site.close();
    }
}

/** Draws into #here and keeps the events in window.told. */
const draw = (page, { url }, name, data, options = {}) =>
    page.evaluate(
        async ([address, name_, data_, options_]) => {
            const library = await import(address);
            window.told = [];
            window.drawing = library[name_](document.querySelector("#here"), data_, options_);
            for (const type of ["select", "hover", "open"])
                window.drawing.addEventListener(type, ({ detail }) => window.told.push([type, detail]));
            await new Promise((resolve) => setTimeout(resolve, 300));
        },
        [`${url}/web/${SERIES}/attention.js`, name, data, options],
    );

const told = (page, type) => page.evaluate((wanted) => window.told.filter(([one]) => one === wanted).at(-1)?.[1], type);
const update = (page, options, data) => page.evaluate(([o, d]) => window.drawing.update(o, d ?? undefined), [options, data]);
const cell = (page) => page.locator(".attnd [role=gridcell]").first();
const labelOf = (page) => cell(page).getAttribute("aria-label");

/** The colour in the middle of the cell that is away from the focused one by so many of its sizes. */
const colourAt = (page, right, down) =>
    page.evaluate(
        ([x, y]) => {
            const root = document.querySelector(".attnd").shadowRoot,
                canvas = root.querySelector("canvas"),
                box = root.querySelector("[role=gridcell]").getBoundingClientRect(),
                whole = canvas.getBoundingClientRect(),
                ratio = canvas.width / whole.width;
            const at = [box.left - whole.left + (x + 0.2) * box.width, box.top - whole.top + (y + 0.2) * box.height];
            return [...canvas.getContext("2d").getImageData(at[0] * ratio, at[1] * ratio, 1, 1).data.subarray(0, 3)];
        },
        [right, down],
    );

function colourOf(value) {
    const word = tableOf("viridis")[Math.round(value * 255)];
    return [word & 255, (word >> 8) & 255, (word >> 16) & 255];
}

async function refusal(page, work) {
    return work().then(
        () => "nothing",
        (problem) => problem.message.split("\n")[0].replace(/^.*Error: /, ""),
    );
}

export const cases = {
    async "embedding: the module is kept for ever by its whole version, and is asked for anew by the first two numbers"({ url }) {
        for (const [name, type] of [["attention.js", "text/javascript"], ["attention.d.ts", "application/typescript"]]) {
            const [lasting, anew] = await Promise.all([VERSION, SERIES].map((version) => fetch(`${url}/web/${version}/${name}`)));
            assert.equal(await lasting.text(), await anew.text());
            assert.equal(lasting.headers.get("cache-control"), "public, max-age=31536000, immutable");
            assert.equal(anew.headers.get("cache-control"), "no-cache");
            for (const { headers } of [lasting, anew]) {
                assert.equal(headers.get("content-type"), type);
                assert.equal(headers.get("access-control-allow-origin"), "*");
                const again = await fetch(anew.url, { headers: { "If-None-Match": headers.get("etag") } });
                assert.equal(again.status, 304);
            }
        }
        const other = await fetch(`${url}/web/99.0/attention.js`);
        assert.equal(other.status, 404);
        assert.match((await other.json()).error, new RegExp(`/web/${VERSION.replaceAll(".", "\\.")}/attention\\.js`));
    },
    async "embedding: heads.html shows every head, and a click opens one as a map and as links"(stage) {
        const body = { inputs: { text: "The animal did not cross the street because it was too tired" } };
        const response = await fetch(stage.url + "/v1/models/demo/attention", {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify(body),
        });
        const { outputs } = await response.json();
        await onOtherOrigin(stage, "/heads", async (page) => {
            const map = page.locator("#map [role=gridcell]");
            await page.getByRole("heading", { name: "Layer 3, head 0" }).waitFor();
            assert.match(await map.getAttribute("aria-label"), /^it → animal, 0\.99999/);
            const box = await page.locator("#grid [role=gridcell]").boundingBox();
            await page.mouse.click(box.x + box.width / 2 + 2 * (box.width + 6), box.y - 2 * (box.height + 6));
            await page.getByRole("heading", { name: "Layer 1, head 2" }).waitFor();
            const value = outputs.attention[1][0][2][9][2];
            const [label, shown] = /^it → animal, (.*)$/.exec(await map.getAttribute("aria-label"));
            assert.ok(Math.abs(Number(shown.replace("−", "-")) - value) <= 1e-5 * value, label);
            const largest = Math.max(...outputs.attention[1][0][2][9]);
            await page.locator("#links").getByText(new RegExp(`^it → .* ${Number(largest.toPrecision(3))}`)).waitFor();
            await map.focus();
            for (const key of ["Control+Home", "ArrowDown"]) await page.keyboard.press(key);
            assert.match(await map.getAttribute("aria-label"), /^The → \[CLS\], /); // as the text has it; the vocabulary has "the"
        });
    },
    async "embedding: each cell of a map has the colour of its number, and what a mask hides has none"(stage) {
        await onOtherOrigin(stage, "/", async (page) => {
            const mask = [1, 0, 0, 1, 1, 0, 1, 1, 1];
            await draw(page, stage, "drawMap", {
                outputs: { attention: [[WEIGHTS]], mask: { shape: [1, 1, 3, 3], data: mask } },
                tokens: { query: ["a", "b", "c"] },
            });
            for (const [i, row] of WEIGHTS.entries())
                for (const [j, value] of row.entries())
                    await eventually(async () => {
                        const colour = await colourAt(page, j, i);
                        if (mask[i * 3 + j]) assert.deepEqual(colour, colourOf(value), `${i}, ${j}`);
                        else assert.notDeepEqual(colour, colourOf(0), `${i}, ${j}`);
                    });
            await cell(page).focus();
            await page.keyboard.press("ArrowRight");
            assert.equal(await labelOf(page), "a → b, masked");
            await page.keyboard.press("Control+End");
            assert.deepEqual(await told(page, "select"), { row: 2, col: 2, query: "c", key: "c", value: 0.375, isMasked: false });
            const box = await cell(page).boundingBox();
            await page.mouse.move(box.x - box.width / 2, box.y + 5);
            assert.deepEqual(await told(page, "hover"), { row: 2, col: 1, query: "c", key: "b", value: 0.125, isMasked: false });
        });
    },
    async "embedding: an answer of an encoder and a decoder has the layers, the words and the mask of each"(stage) {
        const maps = [[[WEIGHTS]], [[WEIGHTS]]],
            mask = [[[[[1, 0, 1], [1, 1, 1], [1, 1, 1]]]], [[[[0, 1, 1], [1, 1, 1], [1, 1, 1]]]]];
        const answer = {
            outputs: { encoder_attention: maps, cross_attention: maps, cross_mask: mask },
            layers: { encoder: [0, 1], decoder: [2, 5] },
            tokens: { encoder: { text: [["a", "b", "c"]] }, decoder: { text: [["x", "y", "z"]] } },
        };
        await onOtherOrigin(stage, "/", async (page) => {
            await draw(page, stage, "drawMap", answer, { step: "cross_attention", col: 1 });
            assert.equal(await labelOf(page), "x → b, masked");
            await update(page, { layer: 5, col: 0 });
            assert.equal(await labelOf(page), "x → a, masked");
            await update(page, { step: "encoder_attention", layer: 1, row: 1, col: 0 });
            assert.equal(await labelOf(page), "b → a, 0.25");
        });
    },
    async "embedding: other options and other numbers replace what is shown, and what is not there changes nothing"(stage) {
        await onOtherOrigin(stage, "/", async (page) => {
            const numbers = { shape: [2, 2, 2, 2], data: Array.from({ length: 16 }, (_, at) => at / 16) };
            await draw(page, stage, "drawMap", { numbers, tokens: ["x", "y"], layers: [4, 7] });
            assert.equal(await labelOf(page), "x → x, 0");
            await update(page, { layer: 7, head: 1 });
            assert.equal(await labelOf(page), "x → x, 0.75");
            const grid = page.locator(".attnd [role=grid]");
            assert.equal(await grid.getAttribute("aria-label"), "layer 7, head 1");
            assert.equal(await refusal(page, () => update(page, { head: 2 })), "there is no head 2: there are 2");
            assert.equal(await refusal(page, () => update(page, { layer: 5 })), "there is no layer 5: there are 4, 7");
            assert.equal(
                await refusal(page, () => update(page, {}, { outputs: {} })),
                "the answer has no attention: name it in options.return",
            );
            assert.equal(await labelOf(page), "x → x, 0.75");
            await update(page, { layer: 0, head: 0, row: 1, col: 0, words: { masked: "gizli" } }, [WEIGHTS]);
            assert.equal(await labelOf(page), "1 → 0, 0.25");
            await page.evaluate(() => window.drawing.destroy());
            assert.equal(await page.locator("#here > *").count(), 0);
        });
    },
    async "embedding: links name the largest weights, and a press says them"(stage) {
        await onOtherOrigin(stage, "/", async (page) => {
            await draw(page, stage, "drawLinks", { numbers: WEIGHTS, tokens: ["a", "b", "c"] }, { top: 2 });
            await page.getByRole("group", { name: "queries" }).getByRole("button", { name: "c" }).click();
            const links = [
                { col: 0, key: "a", value: 0.5 },
                { col: 2, key: "c", value: 0.375 },
            ];
            assert.deepEqual(await told(page, "select"), { row: 2, query: "c", links });
            assert.equal(await page.locator(".attnd .links .note").textContent(), "c → a 0.5, c 0.375");
            await update(page, { row: 0 });
            assert.equal(await page.getByRole("button", { name: "a", pressed: true }).count(), 1);
        });
    },
    async "embedding: the grid goes by keys and says where it is; Enter opens"(stage) {
        await onOtherOrigin(stage, "/", async (page) => {
            const head = WEIGHTS.map((row) => row.map((value) => value));
            await draw(page, stage, "drawGrid", [[head, head], [head, head]]);
            await cell(page).focus();
            await page.keyboard.press("ArrowDown");
            await page.keyboard.press("ArrowRight");
            assert.equal(await labelOf(page), "layer 1, head 1");
            assert.equal(await page.locator(".attnd .spoken").textContent(), "layer 1, head 1");
            await page.keyboard.press("Enter");
            assert.deepEqual(await told(page, "open"), { layer: 1, head: 1 });
        });
    },
    async "embedding: axe finds nothing, light and dark, and the page's own style stays out"(stage) {
        for (const colorScheme of ["light", "dark"])
            await onOtherOrigin(
                stage,
                "/",
                async (page) => {
                    await page.addStyleTag({ content: ":root { color-scheme: light dark } .map, .grid, button { display: none !important }" });
                    for (const name of ["drawMap", "drawLinks", "drawGrid"]) await draw(page, stage, name, [[WEIGHTS]]);
                    assert.ok(await page.locator(".attnd button").first().isVisible());
                    assert.deepEqual(await findings(page), []);
                },
                { colorScheme },
            );
    },
    async "embedding: the types hold in TypeScript's strict mode, and refuse what is not there"({ url }) {
        await inFolder(async (folder) => {
            const types = await (await fetch(`${url}/web/${SERIES}/attention.d.ts`)).text();
            writeFileSync(join(folder, "attention.d.ts"), types);
            writeFileSync(
                join(folder, "page.ts"),
                `import { drawGrid, drawLinks, drawMap, type Cell } from "./attention.js";
                declare const library: typeof import("./attention.js");
                const here = document.querySelector("#here")!;
                const grid = drawGrid(here, { shape: [1, 2, 2], data: new Float32Array(8) }, { palette: "grey" });
                const map = drawMap(here, { outputs: { attention: [[[[1]]]] } }, { range: "log", height: 300 });
                const links = drawLinks(here, [[1]], { mode: "threshold", threshold: 0.5, row: null });
                grid.addEventListener("select", ({ detail }) => map.update({ layer: detail.layer, head: detail.head }));
                map.addEventListener("hover", ({ detail }) => { const cell: Cell | null = detail; console.log(cell?.key); });
                links.update({}, { numbers: [[0.5, 0.5]], tokens: ["a", "b"] });
                // @ts-expect-error no such palette
                drawMap(here, [[1]], { palette: "rainbow" });
                // @ts-expect-error no such option
                grid.update({ totals: false });
                // @ts-expect-error no such event
                map.addEventListener("open", () => {});
                library.drawMap(here, [[1]]).destroy();`,
            );
            const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc"),
                options = "--noEmit --strict --target esnext --module esnext --moduleResolution bundler".split(" ");
            const { stdout, status } = spawnSync(process.execPath, [compiler, ...options, join(folder, "page.ts")], {
                encoding: "utf8",
            });
            assert.equal(stdout, "");
            assert.equal(status, 0);
            const module = await (await fetch(`${url}/web/${SERIES}/attention.js`)).text(),
                exported = module.match(/\bexport ?\{([^}]*)\};?\s*$/)[1].split(",").map((one) => one.trim().split(" as ").at(-1)),
                declared = Array.from(types.matchAll(/^export function (\w+)/gm), ([, name]) => name);
            assert.deepEqual(exported.sort(), declared.sort());
        });
    },
};
