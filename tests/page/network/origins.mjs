/**
 * origins.mjs: what a browser lets pages of other origins do to a server without keys: another name, another port, no
 * origin at all, a name that was pointed at the server, elements that show what they may not read, and a proxy that
 * ends TLS in front.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer } from "../support.mjs";

const LAYER = JSON.stringify({
    weights: { query: { weight: [[1]] }, key: { weight: [[1]] }, value: { weight: [[1]] } },
});
const BODY = JSON.stringify({ inputs: { query: [[1, 2]] } });
const CACHED = JSON.stringify({ inputs: { query: [[1, 2]] }, options: { cache: "c" } });
const JSON_TYPE = { "Content-Type": "application/json" };

/** Runs in the page: what fetch makes of it, "blocked" when the page gets nothing to read. */
async function fetchAll(requests) {
    const got = [];
    for (const { url, ...init } of requests)
        got.push(
            await fetch(url, init).then(
                (response) => (response.type === "opaque" ? "opaque" : response.status),
                () => "blocked",
            ),
        );
    return got;
}

/** Every way to what is kept, with preflight and without. */
const attacks = (url) => [
    { url: url + "/v1/layers" },
    { url: url + "/v1/layers/kept" },
    { url: url + "/v1/layers/new", method: "PUT", headers: JSON_TYPE, body: LAYER },
    { url: url + "/v1/layers/kept", method: "DELETE" },
    { url: url + "/v1/attention", method: "POST", headers: JSON_TYPE, body: CACHED },
    { url: url + "/metrics" },
];
const blindAttacks = (url) => [
    { url: url + "/v2/repository/models/kept/unload", method: "POST", mode: "no-cors" },
    { url: url + "/v1/attention", method: "POST", mode: "no-cors", body: CACHED },
    { url: url + "/v1/layers/kept/attention", method: "POST", mode: "no-cors", body: CACHED },
    { url: url + "/v1/layers", mode: "no-cors" },
];
const harmless = (url) => [
    { url: url + "/v1/attention", method: "POST", headers: JSON_TYPE, body: BODY },
    { url: url + "/v2/models/attention" },
    { url: url + "/openapi.json" },
    { url: url + "/livez" },
];

/** Asked by a program, with any Host: {status, text}. */
const program = (url, path, { method = "GET", body, host } = {}) =>
    new Promise((resolve, reject) => {
        const sent = ask(url + path, { method, headers: { ...JSON_TYPE, ...(host ? { Host: host } : {}) } }, (reply) => {
            let text = "";
            reply.on("data", (data) => (text += data)).on("end", () => resolve({ status: reply.statusCode, text }));
        });
        sent.on("error", reject).end(body);
    });

/** A server with one layer, and a check that it is all that is kept. */
async function withKept({ attnd }, settings, work) {
    const server = await startServer(attnd, settings);
    try {
        assert.equal((await program(server.url, "/v1/layers/kept", { method: "PUT", body: LAYER })).status, 201);
        await work(server.url);
        const { layers } = JSON.parse((await program(server.url, "/v1/layers")).text);
        assert.deepEqual(
            layers.filter(({ name }) => !/^(demo|small)\./.test(name)).map(({ name, state }) => [name, state]),
            [["kept", "ready"]],
        );
        assert.deepEqual(JSON.parse((await program(server.url, "/v1/caches")).text), { caches: [] });
    } finally {
        await server.stop();
    }
}

const BLANK = "<!doctype html><title>a page</title>";

/** Pages of other origins: /, and whatever is asked for with ?html=. */
async function withSite(work) {
    const site = createServer((request, response) =>
        response
            .writeHead(200, { "Content-Type": "text/html" })
            .end(new URL(request.url, "http://a").searchParams.get("html") ?? BLANK),
    );
    await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
    try {
        return await work(site.address().port);
    } finally {
        site.closeAllConnections();
        site.close();
    }
}

async function withPage({ browser }, address, work, options = {}) {
    const context = await browser.newContext(options),
        page = await context.newPage();
    try {
        const response = await page.goto(address);
        return await work(page, response);
    } finally {
        await context.close();
    }
}

async function assertForeign(evaluate, url) {
    assert.deepEqual(await evaluate(harmless(url)), [200, 200, 200, 200]);
    assert.deepEqual(await evaluate(attacks(url)), attacks(url).map(() => "blocked"));
    await evaluate(blindAttacks(url)); // what the page sees is nothing either way; withKept looks what became of it
}

/** Ends TLS like a proxy in front, and keeps Host; without: header fields that it does not pass on. */
async function withProxy(url, without, work) {
    const folder = mkdtempSync(join(tmpdir(), "attnd-proxy-"));
    const [key, cert] = [join(folder, "key"), join(folder, "cert")];
    execFileSync("openssl", [
        ..."req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=proxy".split(" "),
        ...["-keyout", key, "-out", cert],
    ]);
    const proxy = createSecureServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
        const headers = { ...request.headers };
        for (const name of without) delete headers[name];
        const forwarded = ask(url + request.url, { method: request.method, headers }, (reply) => {
            response.writeHead(reply.statusCode, reply.headers);
            reply.pipe(response);
        });
        forwarded.on("error", () => response.destroy());
        request.pipe(forwarded);
    });
    rmSync(folder, { recursive: true });
    await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    try {
        return await work(proxy.address().port);
    } finally {
        proxy.closeAllConnections();
        proxy.close();
    }
}

export const cases = {
    async "origins: a page of another name or another port reaches what is open, and nothing that is kept"(stage) {
        await withKept(stage, {}, (url) =>
            withSite(async (port) => {
                for (const name of ["127.0.0.1", "localhost", "other.example"])
                    await withPage(stage, `http://${name}:${port}/`, (page) =>
                        assertForeign((requests) => page.evaluate(fetchAll, requests), url),
                    );
            }),
        );
    },
    async "origins: a page without an origin of its own is no more than another one"(stage) {
        await withKept(stage, { ATTND_CORS_ORIGIN: "*,https://friend.example" }, (url) =>
            withSite((port) =>
                withPage(stage, `http://127.0.0.1:${port}/`, async (page) => {
                    await page.setContent(`<iframe sandbox="allow-scripts" srcdoc="<p>sandboxed"></iframe>`);
                    const frame = page.frames().find((candidate) => candidate !== page.mainFrame());
                    assert.equal(await frame.evaluate(() => self.origin), "null");
                    await assertForeign((requests) => frame.evaluate(fetchAll, requests), url);
                }),
            ),
        );
    },
    async "origins: an origin that is named reaches everything"({ attnd, browser }) {
        await withSite(async (port) => {
            const friend = `http://friend.example:${port}`;
            const server = await startServer(attnd, { ATTND_CORS_ORIGIN: `*,${friend}` });
            try {
                await withPage({ browser }, friend, async (page) => {
                    const got = await page.evaluate(fetchAll, [
                        { url: server.url + "/v1/layers/new", method: "PUT", headers: JSON_TYPE, body: LAYER },
                        { url: server.url + "/v1/layers/new" },
                        { url: server.url + "/v1/attention", method: "POST", headers: JSON_TYPE, body: CACHED },
                        { url: server.url + "/v1/layers/new", method: "DELETE" },
                    ]);
                    assert.deepEqual(got, [201, 200, 200, 204]);
                });
                await withPage({ browser }, `http://foe.example:${port}`, async (page) =>
                    assert.deepEqual(await page.evaluate(fetchAll, [{ url: server.url + "/v1/layers" }]), ["blocked"]),
                );
            } finally {
                await server.stop();
            }
        });
    },
    async "origins: binary tensors, trace fields and times cross origins"(stage) {
        await withSite((port) =>
            withPage(stage, `http://other.example:${port}/`, async (page) => {
                const got = await page.evaluate(async (url) => {
                    const header = new TextEncoder().encode(
                        '{"inputs":[{"name":"QUERY","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}],' +
                            '"parameters":{"binary_data_output":true}}',
                    );
                    const response = await fetch(url + "/v2/models/attention/infer", {
                        method: "POST",
                        headers: {
                            "Content-Type": "application/octet-stream",
                            "Inference-Header-Content-Length": String(header.length),
                            traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                            tracestate: "a=b",
                            baggage: "c=d",
                        },
                        body: new Blob([header, new Float32Array([1, 2])]),
                    });
                    const bytes = await response.arrayBuffer();
                    const times = performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("infer"));
                    return {
                        status: response.status,
                        split: Number(response.headers.get("Inference-Header-Content-Length")),
                        bytes: bytes.byteLength,
                        timed: times.map(({ serverTiming }) => serverTiming.map(({ name }) => name))[0],
                    };
                }, stage.url);
                assert.equal(got.status, 200);
                assert.ok(got.split > 0 && got.split < got.bytes, JSON.stringify(got));
                assert.ok(got.timed.includes("compute"), JSON.stringify(got));
            }),
        );
    },
    async "origins: no element shows a layer, whether or not the browser says where it stands"(stage) {
        const elements = (url) =>
            `<!doctype html><img src="${url}/v1/layers/kept"><script src="${url}/v1/layers/kept"></script>` +
            `<link rel="stylesheet" href="${url}/v1/layers/kept">`;
        const answered = async (url, status) => {
            const line = `attnd_requests_total{method="GET",route="/v1/layers/{name}",status="${status}"} `;
            const { text } = await program(url, "/metrics");
            return Number(text.split("\n").find((one) => one.startsWith(line))?.slice(line.length) ?? 0);
        };
        await withSite((port) =>
            withKept(stage, { ATTND_HOST_NAMES: "attnd.example" }, async (url) => {
                // To 127.0.0.1 a browser sends Sec-Fetch-Site, over plain HTTP to a name it does not: there the answer
                // itself says that no other origin may have it.
                for (const [name, status] of [
                    ["127.0.0.1", 403],
                    ["attnd.example", 200],
                ]) {
                    const target = url.replace("127.0.0.1", name),
                        lost = new Set();
                    const context = await stage.browser.newContext(),
                        page = await context.newPage();
                    page.on("requestfailed", (request) => lost.add(request.resourceType()));
                    await page.goto(`http://evil.example:${port}/?html=${encodeURIComponent(elements(target))}`);
                    await page.waitForLoadState("load");
                    assert.equal(await page.evaluate(() => document.querySelector("img").naturalWidth), 0);
                    assert.deepEqual([...lost].sort(), ["image", "script", "stylesheet"]);
                    await context.close();
                    assert.equal(await answered(url, status), 3, `answers of ${name}`);
                }
            }),
        );
    },
    async "origins: a name that was pointed at the server is told that it is not the server's"(stage) {
        await withKept(stage, {}, async (url) => {
            const rebound = url.replace("127.0.0.1", "rebind.example");
            await withPage(stage, rebound + "/", async (page, response) => {
                assert.equal(response.status(), 421);
                const got = await page.evaluate(fetchAll, [...attacks(rebound), ...harmless(rebound)]);
                assert.deepEqual([...new Set(got)], [421]);
            });
        });
    },
    async "origins: behind a proxy that ends TLS, the server's own page does everything"(stage) {
        const own = { ignoreHTTPSErrors: true };
        await withKept(stage, { ATTND_HOST_NAMES: "attnd.example" }, async (url) => {
            // Without Sec-Fetch-Site, as an old browser or a strict proxy has it, Origin and Host decide.
            for (const without of [[], ["sec-fetch-site"]])
                await withProxy(url, without, async (port) => {
                    for (const name of ["127.0.0.1", "localhost", "attnd.example"]) {
                        const origin = `https://${name}:${port}`;
                        const work = async (page, response) => {
                            assert.equal(response.status(), 200);
                            const got = await page.evaluate(fetchAll, [
                                { url: origin + "/v1/layers/new", method: "PUT", headers: JSON_TYPE, body: LAYER },
                                { url: origin + "/v1/layers/new" },
                                { url: origin + "/v1/layers/new", method: "DELETE" },
                            ]);
                            assert.deepEqual(got, [201, 200, 204], `${origin} without ${without}`);
                        };
                        await withPage(stage, origin + "/", work, own);
                        const foreign = async (page) => {
                            const got = await page.evaluate(fetchAll, attacks(origin));
                            assert.deepEqual(got, got.map(() => "blocked"));
                        };
                        const other = name === "localhost" ? "127.0.0.1" : "localhost";
                        await withPage(stage, `https://${other}:${port}/`, foreign, own);
                    }
                    const status = async (page, response) => assert.equal(response.status(), 421);
                    await withPage(stage, `https://stranger.example:${port}/`, status, own);
                });
        });
    },
};
