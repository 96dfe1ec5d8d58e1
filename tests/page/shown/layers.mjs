/**
 * layers.mjs: layers that the server keeps: chosen, computed, checked, shared, and side by side.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { findings } from "../input/accessibility.mjs";
import { answerOf, colourAt } from "../models/opened.mjs";
import {
    answerTo,
    assertClose,
    copied,
    dropFile,
    eventually,
    focusGrid,
    inLaboratory,
    numberOf,
    opened,
    openPage,
    settled,
    someOf,
    startServer,
    tableOf,
} from "../support.mjs";

/** Numbers that are the same everywhere and unlike each other. */
const matrix = (rows, cols, seed) =>
    Array.from({ length: rows }, (_, i) =>
        Array.from({ length: cols }, (__, j) => Math.round(1000 * Math.sin(seed + 3.7 * i + 1.3 * j * j)) / 1000),
    );

const layerOf = (seed, { width = 6, keyWidth = width, heads = 2 } = {}) => ({
    weights: {
        layout: "in_out",
        query: { weight: matrix(width, 4, seed) },
        key: { weight: matrix(keyWidth, 4, seed + 1) },
        value: { weight: matrix(keyWidth, 4, seed + 2) },
        output: { weight: matrix(4, width, seed + 3), bias: matrix(1, width, seed)[0] },
    },
    masks: { causal: true },
    options: { num_heads: heads, residual: true, norm: { type: "layer" } },
});

const LAYERS = {
    "model.2": layerOf(2),
    "model.10": layerOf(10),
    "model.0": layerOf(0),
    wide: layerOf(5, { keyWidth: 9, heads: 1 }),
};

/** The layers of the model that is part of the program. */
const DEMO = [0, 1, 2, 3].map((layer) => `demo.bert.encoder.layer.${layer}.attention`),
    SMALL = [0, 1, 2, 3].map((layer) => `small.model.layers.${layer}.self_attn`);

/** A server of its own: others are to see none. */
async function withLayers(stage, work) {
    const server = await startServer(stage.attnd);
    try {
        for (const [name, layer] of Object.entries(LAYERS)) {
            const headers = { "Content-Type": "application/json" };
            const body = JSON.stringify(layer);
            const response = await fetch(`${server.url}/v1/layers/${name}`, { method: "PUT", headers, body });
            assert.equal(response.status, 201, await response.text());
        }
        await work({ ...stage, url: server.url });
    } finally {
        await server.stop();
    }
}

const choice = (page) => page.getByLabel("On this server");

const choose = (page, name) => answerTo(page, () => choice(page).selectOption(name));

const names = (page) => choice(page).locator("option").allTextContents();

export const cases = {
    async "layers: those of the model that comes along are offered where no others are kept"(stage) {
        const page = await openPage(stage);
        await choice(page).waitFor();
        assert.deepEqual(await names(page), ["Choose one", ...DEMO, ...SMALL]);
        await choose(page, DEMO[3]);
        assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
        await page.finish();
    },
    async "layers: of a sentence in a model the tab shows the model's own maps, and opens its layers with their inputs"(stage) {
        const page = await openPage(stage, {}, "/", inLaboratory),
            text = "The animal did not cross the street because it was too tired",
            { outputs } = await answerOf(stage, text);
        await page.getByRole("tab", { name: "Layers" }).click();
        await page.locator(".layers [role=grid][aria-busy=false]").waitFor();
        const cell = page.locator(".layers [role=gridcell]");
        assert.equal(await page.locator(".legend").first().isVisible(), true);
        assert.match(await page.locator(".layers .note").textContent(), /own|model demo for this sentence/);
        for (const layer of [0, 1, 2, 3]) {
            await cell.focus();
            await page.keyboard.press("Control+Home");
            for (let n = 0; n < layer; n++) await page.keyboard.press("ArrowDown");
            assert.equal(await cell.getAttribute("aria-label"), `layer ${layer}, head 0`);
            const { width, height } = await cell.boundingBox(),
                map = outputs.attention[layer][0][0];
            for (const row of [1, 5, 9, 12]) {
                const col = map[row].indexOf(Math.max(...map[row]));
                if (map[row][col] <= 0.95) continue;
                await eventually(async () => {
                    const [red, , blue] = await colourAt(page, ".layers", ((col + 0.5) * width) / 14, ((row + 0.5) * height) / 14);
                    assert.ok(red > 200 && blue < 80, `layer ${layer}, row ${row}: ${red} ${blue}`);
                });
            }
        }
        await page.keyboard.press("Control+Home");
        await page.keyboard.press("Enter");
        await page.locator(".stage h2", { hasText: "demo, layer 0" }).waitFor();
        await settled(page);
        await page.getByRole("tab", { name: "Table" }).click();
        await page.waitForFunction(() => document.querySelector(".verdict.good"));
        const cells = await tableOf(page);
        assertClose(numberOf(cells[9][8]), outputs.attention[0][0][0][9][8], 3, "the word before");
        await page.finish();
    },
    async "layers: one is chosen, computed by the server with its own weights, and checked"(stage) {
        await withLayers(stage, async (own) => {
            const page = await openPage(own);
            await choice(page).waitFor();
            assert.deepEqual(await names(page), ["Choose one", ...DEMO, "model.0", "model.2", "model.10", ...SMALL, "wide"]);
            const { request, response, answer } = await choose(page, "model.2");
            assert.ok(response.url().endsWith("/v1/layers/model.2/attention"));
            assert.deepEqual(Object.keys(request).sort(), ["inputs", "options", "tokens"]);
            assert.deepEqual(Object.keys(request.options), ["return"]);
            assert.equal(request.inputs.query[0].length, 6);
            assert.match(await page.locator(".stage h2").textContent(), /^model\.2 · softmax · head 0 · 12 × 12$/);
            assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
            assert.equal(await page.getByLabel("Causal").isChecked(), true);
            assert.equal(answer.outputs.attention[0][0][0][1], 0);
            assert.equal(await page.locator(".strip .name", { hasText: "W_Q" }).count(), 1);
            await page.finish();
        });
    },
    async "layers: what the request says goes before what the layer says, and comes back"(stage) {
        await withLayers(stage, async (own) => {
            const page = await openPage(own);
            const { request: before } = await choose(page, "model.2");
            const open = await answerTo(page, () => page.getByLabel("Causal").uncheck());
            assert.deepEqual(open.request.masks, { causal: false });
            assert.ok(open.answer.outputs.attention[0][0][0][1] > 0);
            assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
            assert.deepEqual((await answerTo(page, () => page.getByLabel("Causal").check())).request, before);
            const scale = page.getByLabel("Scale", { exact: true });
            assert.equal((await answerTo(page, () => scale.fill("0.25"))).request.options.scale, 0.25);
            assert.deepEqual((await answerTo(page, () => scale.fill(""))).request, before);
            await page.getByLabel("Sentence").fill("one two one");
            const spoken = await answerTo(page, () => page.getByRole("button", { name: "Make tokens" }).click());
            assert.ok(spoken.response.url().endsWith("/v1/layers/model.2/attention"));
            assert.deepEqual(spoken.request.tokens.query, ["one", "two", "one"]);
            await page.finish();
        });
    },
    async "layers: keys of another width get inputs of their own"(stage) {
        await withLayers(stage, async (own) => {
            const page = await openPage(own),
                { request } = await choose(page, "wide");
            assert.equal(request.inputs.query[0].length, 6);
            assert.equal(request.inputs.key[0].length, 9);
            assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
            await page.finish();
        });
    },
    async "layers: shared by an address, copied as curl, and saved as a page that needs no server"(stage) {
        await withLayers(stage, async (own) => {
            const page = await openPage(own, { permissions: ["clipboard-read", "clipboard-write"] });
            await choose(page, "model.2");
            const { request, answer } = await answerTo(page, () => page.getByLabel("softcap").fill("2"));
            await page.getByRole("button", { name: "Share", exact: true }).click();
            await page.locator(".toast").waitFor();
            const other = await page.context().newPage();
            const asked = other.waitForRequest((r) => r.url().endsWith("/v1/layers/model.2/attention"));
            await other.goto(await page.evaluate(() => navigator.clipboard.readText()));
            assert.deepEqual((await asked).postDataJSON(), request);
            const curl = await copied(page, "curl");
            assert.deepEqual(JSON.parse(execFileSync("sh", ["-c", curl])).outputs, answer.outputs);
            await page.locator(".menu", { hasText: "Export" }).locator("summary").click();
            const [file] = await Promise.all([
                page.waitForEvent("download"),
                page.getByRole("button", { name: "This page (HTML)", exact: true }).click(),
            ]);
            const path = (await file.path()) + ".html";
            await file.saveAs(path);
            assert.ok(readFileSync(path, "utf8").includes("base64"));
            const copy = await openPage(own, {}, pathToFileURL(path).href);
            await copy.getByRole("tab", { name: "Table" }).click();
            const shown = await copy.locator(".table tbody tr").nth(3).locator("td").allTextContents();
            answer.outputs.attention[0][0][3].slice(0, 4).forEach((value, j) =>
                assertClose(numberOf(shown[j]), value, 3, `[3, ${j}]`),
            );
            await copy.finish();
            await page.finish();
        });
    },
    async "layers: an address of a layer that is gone says so"(stage) {
        let address = "";
        await withLayers(stage, async (own) => {
            const page = await openPage(own, { permissions: ["clipboard-read", "clipboard-write"] });
            await choose(page, "model.2");
            await page.getByRole("button", { name: "Share", exact: true }).click();
            await page.locator(".toast").waitFor();
            address = new URL(page.url()).hash;
            await page.finish();
        });
        const page = await openPage(stage, {}, "/" + address, opened);
        assert.match(await page.locator(".notice").textContent(), /cannot be used.*model\.2/);
        assert.match(await page.locator(".answer").textContent(), /“it”.*“animal”/);
        await page.finish();
    },
    async "layers: several as a grid, each asked for once; one opens by click and by keyboard"(stage) {
        await withLayers(stage, async (own) => {
            const page = await openPage(own),
                asked = [];
            await choose(page, "model.2");
            page.on("request", (one) => {
                if (one.method() === "POST") asked.push(new URL(one.url()).pathname);
            });
            await page.getByRole("tab", { name: "Layers" }).click();
            await page.locator(".layers [role=grid][aria-busy=false]").waitFor();
            assert.deepEqual(
                asked.sort(),
                ["model.0", "model.10", "model.2"].map((name) => `/v1/layers/${name}/attention`),
            );
            const grid = page.getByRole("grid", { name: "Layers" });
            assert.equal(await grid.getAttribute("aria-rowcount"), "3");
            assert.equal(await grid.getAttribute("aria-colcount"), "2");
            const cell = page.locator(".layers [role=gridcell]");
            assert.equal(await cell.getAttribute("aria-label"), "model.2, head 0");
            await cell.focus();
            for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
            await page.locator(".spoken", { hasText: /^model\.10, head 1$/ }).waitFor({ state: "attached" });
            const opened = await answerTo(page, () => page.keyboard.press("Enter"));
            assert.ok(opened.response.url().includes("/model.10/"));
            await page.waitForFunction(() => /^model\.10 · .*head 1/.test(document.querySelector(".stage h2").textContent));
            const box = await cell.boundingBox();
            await page.mouse.click(box.x + 4, box.y - box.height);
            await page.waitForFunction(() => /^model\.2 · .*head 1/.test(document.querySelector(".stage h2").textContent));
            await page.getByRole("tab", { name: "Map" }).click();
            await settled(page);
            await focusGrid(page);
            assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
            await page.finish();
        });
    },
    async "layers: axe finds nothing in the grid, light, dark and in forced colours"(stage) {
        await withLayers(stage, async (own) => {
            const looks = [{ colorScheme: "dark" }, { colorScheme: "light" }, { forcedColors: "active" }];
            for (const look of someOf(looks, 3)) {
                const page = await openPage(own, look);
                await choose(page, "model.2");
                await page.getByRole("tab", { name: "Layers" }).click();
                assert.deepEqual(await findings(page), []);
                await page.finish();
            }
        });
    },
    async "layers: a thumbnail of the grid has the colours of that layer's weights"(stage) {
        await withLayers(stage, async (own) => {
            const page = await openPage(own),
                { request } = await choose(page, "model.0");
            const response = await fetch(`${own.url}/v1/layers/model.10/attention`, {
                method: "POST",
                headers: { "Content-Type": "application/json" },
                body: JSON.stringify({ inputs: request.inputs }),
            });
            const map = (await response.json()).outputs.attention[0][1];
            await page.getByRole("combobox", { name: "Colours" }).selectOption("grey");
            await page.getByRole("combobox", { name: "Range" }).selectOption("full");
            await page.getByRole("tab", { name: "Layers" }).click();
            await page.locator(".layers [role=grid][aria-busy=false]").waitFor();
            await page.locator(".layers [role=gridcell]").focus();
            await page.keyboard.press("Control+End");
            const reds = () =>
                page.evaluate((size) => {
                    const canvas = document.querySelector(".layers canvas"),
                        cell = document.querySelector(".layers [role=gridcell]").getBoundingClientRect(),
                        from = canvas.getBoundingClientRect(),
                        ratio = canvas.width / from.width,
                        context = canvas.getContext("2d");
                    return Array.from({ length: size * size }, (_, n) => {
                        const x = cell.left - from.left + (((n % size) + 0.5) * cell.width) / size,
                            y = cell.top - from.top + ((Math.floor(n / size) + 0.5) * cell.height) / size;
                        return context.getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1).data[0];
                    });
                }, map.length);
            await eventually(async () => {
                const found = await reds();
                map.flat().forEach((weight, n) => {
                    const [i, j] = [Math.floor(n / map.length), n % map.length];
                    const wanted = 255 - weight * (255 - 0x11);
                    if (j <= i) assert.ok(Math.abs(found[n] - wanted) <= 3, `[${i}, ${j}]: ${found[n]} for ${weight}`);
                });
            });
            await page.finish();
        });
    },
    async "layers: random inputs are named as such, wherever they are shown, and one's own are not"(stage) {
        await withLayers(stage, async (own) => {
            const languages = [
                ["en-GB", /^Random vectors stand in/, /no head has learned/, "random inputs"],
                ["tr-TR", /rastgele vektörler var/, /başlıklar öğrenmemiştir/, "rastgele girdiler"],
                ["ru-RU", /^Вместо слов — случайные векторы/, /головы ничему не учились/, "случайный вход"],
            ];
            for (const [locale, said, note, short] of someOf(languages, 3)) {
                const page = await openPage(own, { locale }),
                    label = page.locator(".stage .random"),
                    panel = page.locator(".panel");
                await page.locator("select", { hasText: "model.2" }).waitFor();
                assert.equal(await label.isVisible(), false);
                assert.match(await panel.textContent(), note);
                await answerTo(page, () => page.locator("select", { hasText: "model.2" }).selectOption("model.2"));
                assert.match(await label.textContent(), said);
                for (const tab of await page.locator(".stage").getByRole("tab").all()) {
                    await tab.click();
                    assert.equal(await label.isVisible(), true);
                }
                assert.doesNotMatch(await panel.textContent(), note);
                await page.locator(".stage").getByRole("tab").first().click();
                await page.locator(".menu summary").nth(1).click();
                const [file] = await Promise.all([
                    page.waitForEvent("download"),
                    page.getByRole("button", { name: "SVG", exact: true }).click(),
                ]);
                assert.match(readFileSync(await file.path(), "utf8"), new RegExp(`<title>model\\.2 · .* · ${short}<`));
                await answerTo(page, () => page.getByRole("checkbox").first().click());
                assert.equal(await label.isVisible(), true, "after an edit");
                await page.waitForFunction(() => location.hash);
                await page.reload();
                await settled(page);
                assert.match(await label.textContent(), said);
                const query = matrix(5, 6, 1);
                await answerTo(page, () => dropFile(page, "mine.json", JSON.stringify({ inputs: { query } })));
                assert.equal(await label.isVisible(), false);
                const { request } = await answerTo(page, () =>
                    page.locator("select", { hasText: "model.2" }).selectOption("model.10"),
                );
                assert.deepEqual(request.inputs.query, query);
                assert.equal(await label.isVisible(), false, "inputs of one's own");
                await page.finish();
            }
        });
    },
};
