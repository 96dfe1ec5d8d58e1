/**
 * view.mjs URL CHROMIUM PYTHON: in a browser, on pages of another origin: what head_view() of clients/python gives a
 * notebook, clients/js, and the page that the README shows.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { attnd } from "../../clients/js/index.js";
import { startBrowser } from "../page/support.mjs";

const [url, chromium, python] = process.argv.slice(2);
const PROGRAM = `
import sys; sys.path.insert(0, "clients/python")
import attnd
client = attnd.Client(sys.argv[1])
answer = client.model_attention("demo", "The animal did not cross the street because it was too tired")
print(answer["attention"][1, 0, 2, 9, 2])
print(attnd.head_view(answer, layer=3)._repr_html_(), end="\\0")
print(attnd.head_view(answer, layer=3, inline=True).html)
`;
const said = execFileSync(python, ["-c", PROGRAM, url], { encoding: "utf8" }),
    value = parseFloat(said),
    [html, inline] = said.slice(said.indexOf("\n") + 1).split("\0");

/** A notebook puts the output into its page and makes its scripts anew, because scripts of innerHTML do not run. */
const NOTEBOOK = `<!doctype html><html lang="en"><title>A notebook</title><main><h1>A notebook</h1><div id="out"></div></main><script>
    const out = document.querySelector("#out");
    out.innerHTML = decodeURIComponent(location.hash.slice(1));
    for (const old of out.querySelectorAll("script")) {
        const script = document.createElement("script");
        for (const { name, value } of old.attributes) script.setAttribute(name, value);
        script.textContent = old.textContent;
        old.replaceWith(script);
    }
</script>`;

const README_PAGE = /```html\n(.*?)```/s.exec(readFileSync(new URL("../../README.md", import.meta.url), "utf8"))[1];
const CLIENT_PAGE = /```html\n(.*?)```/s.exec(readFileSync(new URL("../../clients/js/README.md", import.meta.url), "utf8"))[1];
const SERIES = readFileSync(new URL("../../VERSION", import.meta.url), "utf8").trim().replace(/\.\d+$/, "");

/** A file on disk, in a browser without a way to any server. */
async function fromDisk(browser, content, work) {
    const folder = mkdtempSync(join(tmpdir(), "attnd-view-")),
        context = await browser.newContext(),
        asked = [];
    try {
        writeFileSync(join(folder, "view.html"), content);
        await context.setOffline(true);
        context.on("request", (request) => /^http/.test(request.url()) && asked.push(request.url()));
        const page = await context.newPage();
        await page.goto(pathToFileURL(join(folder, "view.html")).href);
        await work(page);
        assert.deepEqual(asked, []);
    } finally {
        await context.close();
        rmSync(folder, { recursive: true });
    }
}

async function onPage(browser, content, path, work) {
    const site = createServer((_, response) => response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(content));
    await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
    const page = await browser.newPage(),
        wrong = [];
    page.on("pageerror", (error) => wrong.push(String(error.stack ?? error)));
    try {
        await page.goto(`http://127.0.0.1:${site.address().port}/${path}`);
        await work(page);
        assert.deepEqual(wrong, []);
    } finally {
        await page.close();
        site.closeAllConnections();
        site.close();
    }
}

/** The grid's place two rows up and two to the right of the one that is open. */
async function opensAnotherHead(page) {
    const [grid, map] = [0, 1].map((at) => page.locator("[role=gridcell]").nth(at));
    await page.getByText("layer 3, head 0", { exact: true }).waitFor();
    assert.match(await map.getAttribute("aria-label"), /^\[CLS\] → \[CLS\], /);
    const box = await grid.boundingBox();
    await page.mouse.click(box.x + box.width / 2 + 2 * (box.width + 6), box.y - 2 * (box.height + 6));
    await page.getByText("layer 1, head 2", { exact: true }).first().waitFor();
    await map.focus();
    for (const key of ["Control+Home", ...Array(9).fill("ArrowDown"), "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    const [, word, shown] = /^it → (\w+), (.*)$/.exec(await map.getAttribute("aria-label"));
    assert.equal(word, "animal");
    assert.ok(Math.abs(Number(shown) - value) <= 1e-5 * value, `${shown}, not ${value}`);
}

const cases = {
    "a file opens with every head": (browser) =>
        onPage(browser, `<!doctype html><title>A file</title>${html}`, "", opensAnotherHead),
    "a notebook shows every head": (browser) => onPage(browser, NOTEBOOK, "#" + encodeURIComponent(html), opensAnotherHead),
    "an inline view opens from disk, without a server": (browser) =>
        fromDisk(browser, `<!doctype html><meta charset="utf-8"><title>A file</title>${inline}`, opensAnotherHead),
    "the README's page draws every head, in cells that one can see": (browser) =>
        onPage(browser, `<!doctype html>${README_PAGE.replaceAll("http://127.0.0.1:8080", url)}`, "", async (page) => {
            const head = await page.locator("[role=gridcell]").boundingBox(),
                grid = page.getByRole("grid");
            const answer = await attnd(url).models.attention("demo", { inputs: { text: JSON.parse(/text = (".*?")/.exec(README_PAGE)[1]) } }),
                [layers, , heads, , keys] = answer.outputs.attention.shape;
            const counts = [await grid.getAttribute("aria-rowcount"), await grid.getAttribute("aria-colcount")];
            assert.deepEqual(counts, [String(layers), String(heads)]);
            for (const size of [head.width / keys, head.height / keys]) assert.ok(size >= 6, `a cell has ${size} pixels`);
        }),
    "the README's page says that the server is away": (browser) =>
        onPage(browser, `<!doctype html>${README_PAGE.replaceAll("http://127.0.0.1:8080", "http://127.0.0.1:9")}`, "", (page) =>
            page.getByText("Failed to fetch").waitFor(),
        ),
    "the page of the JavaScript client's README computes; what is refused to it is said": (browser) =>
        onPage(browser, `<!doctype html><body>${CLIENT_PAGE.replaceAll("http://127.0.0.1:8080", url)}`, "", async (page) => {
            await page.getByText("layers, texts, heads, queries, keys: 4,1,4,6,6").waitFor();
            const words = await page.evaluate(async (address) => {
                const { attnd } = await import(address);
                return attnd().models.list().catch((error) => error.message);
            }, `${url}/web/${SERIES}/client.js`);
            assert.equal(words, `${url} cannot be reached, or its --cors-origin does not name this page: Failed to fetch`);
        }),
    "the JavaScript client that the server serves computes at that server, streams, and reads a refusal": (browser) =>
        onPage(browser, "<!doctype html><title>A page</title>", "", async (page) => {
            const found = await page.evaluate(async (address) => {
                const { attnd, AttndError } = await import(address);
                const client = attnd(),
                    query = { shape: [2, 2], data: Float32Array.of(1, 0, 0, 1) },
                    told = [];
                const { outputs } = await client.attention({ inputs: { query } }, { onTensor: (name) => told.push(name) });
                const problem = await client.attention({ inputs: { query, key: { shape: [1, 1], data: query.data.slice(1, 2) } } })
                    .catch((error) => error);
                return { sum: outputs.attention.data[0] + outputs.attention.data[1], told, pointer: problem.pointer,
                    isRefusal: problem instanceof AttndError };
            }, `${url}/web/${SERIES}/client.js`);
            assert.ok(Math.abs(found.sum - 1) < 1e-6);
            assert.deepEqual(found.told.sort(), ["attention", "output"]);
            assert.deepEqual([found.pointer, found.isRefusal], ["/inputs/key", true]);
        }),
    "a server that is away is said": (browser) =>
        onPage(browser, `<!doctype html>${html.replaceAll(url, "http://127.0.0.1:9")}`, "", (page) =>
            page.getByText("http://127.0.0.1:9 cannot be reached from this page").waitFor(),
        ),
};

const browser = await startBrowser(chromium);
let passed = 0,
    failed = 0;
for (const [name, check] of Object.entries(cases)) {
    try {
        await check(browser);
        passed++;
    } catch (problem) {
        failed++;
        console.log(`FAILED  ${name}\n${String(problem.stack ?? problem)}`);
    }
}
await browser.close();
console.log(`client-view: ${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
