/**
 * frontends.mjs: programs that nobody here wrote, on a page of another origin: Plotly, Vega-Lite, Swagger UI.
 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { REQUEST } from "../pages/request.js";

const PAGE = new URL("..", import.meta.url).pathname;

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** Serves pages/ and, as /modules/, node_modules/. */
async function withPages(work) {
    const server = createServer(async (request, response) => {
        const path = normalize(new URL(request.url, "http://localhost").pathname).replace(
            /^\/modules\//,
            "/node_modules/",
        );
        try {
            const content = await readFile(join(PAGE, path));
            response
                .writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" })
                .end(content);
        } catch {
            response.writeHead(404).end();
        }
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
        return await work(`http://127.0.0.1:${server.address().port}`);
    } finally {
        server.closeAllConnections();
        server.close();
    }
}

async function onPage({ browser, url }, name, work) {
    await withPages(async (origin) => {
        const context = await browser.newContext(),
            page = await context.newPage(),
            wrong = [];
        page.on("pageerror", (error) => wrong.push(error.stack ?? error.message));
        await page.goto(`${origin}/pages/${name}.html?server=${encodeURIComponent(url)}`);
        try {
            await work(page);
        } catch (problem) {
            throw new Error([problem.stack, ...wrong].join("\n"));
        } finally {
            await context.close();
        }
        assert.deepEqual(wrong, []);
    });
}

/** softmax(q kᵀ / √2), written out once more. */
const expected = () =>
    REQUEST.inputs.query.map((q) => {
        const exps = REQUEST.inputs.key.map((k) => Math.exp((q[0] * k[0] + q[1] * k[1]) / Math.SQRT2));
        return exps.map((value) => value / exps.reduce((sum, one) => sum + one, 0));
    });

function assertSame(drawn) {
    expected().forEach((row, i) =>
        row.forEach((value, j) => assert.ok(Math.abs(drawn(i, j) - value) < 1e-6, `[${i}, ${j}]`)),
    );
}

export const cases = {
    async "front-ends: Plotly draws outputs.attention as a heat map"(stage) {
        await onPage(stage, "plotly", async (page) => {
            await page.waitForFunction(() => window.drawn);
            const drawn = await page.evaluate(() => window.drawn);
            assertSame((i, j) => drawn[i][j]);
            assert.equal(await page.locator(".heatmaplayer image").count(), 1);
        });
    },
    async 'front-ends: Vega-Lite loads the view "rows" by its own loader'(stage) {
        await onPage(stage, "vega", async (page) => {
            await page.waitForFunction(() => window.drawn);
            const drawn = await page.evaluate(() => window.drawn);
            const place = (list, value) => (typeof value === "number" ? value : list.indexOf(value));
            assert.equal(drawn.length, 6);
            assertSame(
                (i, j) =>
                    drawn.find(
                        ({ query, key }) =>
                            place(REQUEST.tokens.query, query) === i && place(REQUEST.tokens.key, key) === j,
                    ).weight,
            );
            assert.equal(await page.locator(".mark-rect.role-mark path").count(), 6);
        });
    },
    async "front-ends: Swagger UI runs a call of the OpenAPI document"(stage) {
        await onPage(stage, "swagger", async (page) => {
            page.setDefaultTimeout(120000); // Swagger UI lays out every schema, which takes long on a busy machine
            const operation = page.locator(".opblock", {
                has: page.locator(".opblock-summary-path[data-path='/v1/attention']"),
            });
            await operation.locator(".opblock-summary-control").first().click();
            await operation.getByRole("button", { name: "Try it out" }).click();
            // Filled in from their examples, but for pictures alone: an answer in JSON goes without them.
            for (const field of await operation.locator("tr[data-param-in=query] input").all()) await field.fill("");
            for (const field of await operation.locator("tr[data-param-in=query] select").all())
                await field.selectOption("");
            const [response] = await Promise.all([
                page.waitForResponse((r) => r.url().endsWith("/v1/attention") && r.request().method() === "POST"),
                operation.getByRole("button", { name: "Execute" }).click(),
            ]);
            assert.equal(response.status(), 200);
            await operation.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor();
        });
    },
};
