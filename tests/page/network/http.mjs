/**
 * http.mjs: how the page is served: by Accept, compressed or not, with its policy, and not again when it is known.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { request } from "node:http";
import { gunzipSync } from "node:zlib";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
/** What a slow line waits for: the page with the words of one language. Others, and parts of the page, are files of their own. */
const GZIPPED_MAX = 90 * 1024;

/** Without the courtesies of fetch, which decompresses and follows. */
function get(url, headers = {}, method = "GET", path = "/") {
    return new Promise((resolve, reject) => {
        request(url + path, { headers, method }, (response) => {
            const chunks = [];
            response.on("data", (chunk) => chunks.push(chunk));
            response.on("end", () =>
                resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }),
            );
        })
            .on("error", reject)
            .end();
    });
}

export const cases = {
    async "http: a browser gets the page, a program the index"({ url }) {
        const types = {
            [BROWSER]: "text/html",
            "text/html": "text/html",
            "*/*": "application/json",
            "application/json": "application/json",
            "text/html;q=0.5, application/json": "application/json",
            "text/*, */*;q=0.1": "text/html",
            "text/html;q=0": "application/json",
        };
        for (const [accept, type] of Object.entries(types)) {
            const { status, headers } = await get(url, { Accept: accept });
            assert.equal(status, 200);
            assert.ok(headers["content-type"].startsWith(type), accept);
            assert.match(headers.vary, /Accept/);
        }
        assert.equal(JSON.parse((await get(url)).body).name, "attnd");
        assert.equal((await get(url, { Accept: "*/*" })).headers["content-security-policy"], undefined);
    },
    async "http: gzip for those who take it, and it is the same page"({ url }) {
        const plain = await get(url, { Accept: BROWSER }),
            packed = await get(url, { Accept: BROWSER, "Accept-Encoding": "br, gzip" });
        assert.equal(plain.headers["content-encoding"], undefined);
        assert.equal(packed.headers["content-encoding"], "gzip");
        assert.deepEqual(gunzipSync(packed.body), plain.body);
        assert.notEqual(plain.headers.etag, packed.headers.etag);
        for (const refused of ["gzip;q=0", "br", "identity", "*;q=0"])
            assert.equal(
                (await get(url, { Accept: BROWSER, "Accept-Encoding": refused })).headers["content-encoding"],
                undefined,
                refused,
            );
        assert.ok(packed.body.length <= GZIPPED_MAX, `${packed.body.length} bytes`);
        return `${packed.body.length} bytes gzipped, ${plain.body.length} plain`;
    },
    async "http: 304 for who has it, with the policy still in force"({ url }) {
        const first = await get(url, { Accept: BROWSER }),
            { etag } = first.headers;
        for (const known of [etag, `"other", ${etag}`, `W/${etag}`, "*"]) {
            const again = await get(url, { Accept: BROWSER, "If-None-Match": known });
            assert.equal(again.status, 304, known);
            assert.equal(again.body.length, 0);
            assert.equal(again.headers.etag, etag);
        }
        assert.equal((await get(url, { Accept: BROWSER, "If-None-Match": '"other"' })).status, 200);
        const head = await get(url, { Accept: BROWSER }, "HEAD");
        assert.equal(head.body.length, 0);
        assert.equal(Number(head.headers["content-length"]), first.body.length);
    },
    async "http: the policy allows this script and this style by their hashes, and nothing else"({ url }) {
        const { headers, body } = await get(url, { Accept: BROWSER }),
            policy = headers["content-security-policy"],
            html = body.toString();
        const hashOf = (pattern) =>
            "'sha256-" + createHash("sha256").update(pattern.exec(html)[1]).digest("base64") + "'";
        const hashes = [hashOf(/<script>([^]*?)<\/script>/)];
        for (const part of ["debugger", "diagnosis", "explorer", "lab", "player", "snapshot"]) {
            const text = JSON.parse((await get(url, {}, "GET", `/web/parts/${part}.json`)).body);
            hashes.push("'sha256-" + createHash("sha256").update(text).digest("base64") + "'");
        }
        assert.ok(policy.includes(`script-src ${hashes.join(" ")};`));
        assert.ok(policy.includes("style-src " + hashOf(/<style>([^]*?)<\/style>/)));
        assert.ok(policy.startsWith("default-src 'none'") && policy.includes("frame-ancestors 'none'"));
        assert.doesNotMatch(policy, /unsafe|\*|https?:/);
        assert.equal(headers["x-content-type-options"], "nosniff");
        assert.equal(headers["referrer-policy"], "no-referrer");
        assert.equal(headers["x-frame-options"], "DENY");
        assert.doesNotMatch(html, /\b(?:src|href)="(?!data:)/);
    },
    async "http: files of the page are compressed, known again, and refused by name where there are none"({ url }) {
        const path = "/web/texts/tr.json",
            plain = await get(url, {}, "GET", path),
            packed = await get(url, { "Accept-Encoding": "gzip" }, "GET", path);
        assert.equal(JSON.parse(plain.body).language, "Dil");
        assert.deepEqual(gunzipSync(packed.body), plain.body);
        const again = await get(url, { "If-None-Match": plain.headers.etag }, "GET", path);
        assert.deepEqual([again.status, again.body.length, again.headers.etag], [304, 0, plain.headers.etag]);
        for (const wrong of ["/web/texts/xx.json", "/web/texts/tr", "/web/texts/tr.json/"])
            assert.equal((await get(url, {}, "GET", wrong)).status, 404, wrong);
        const missing = JSON.parse((await get(url, {}, "GET", "/web/texts/xx.json")).body);
        assert.equal(missing.error, "the page has no file texts/xx.json");
    },
};
