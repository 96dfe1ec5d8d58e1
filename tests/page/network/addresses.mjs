/**
 * addresses.mjs: what the address of the page may ask for, and what the page says of one that asks for more.
 */
import assert from "node:assert/strict";
import {
    addressOf,
    answerTo,
    choosePreset,
    dropFile,
    inLaboratory,
    opened,
    openPage,
    settled,
    someOf,
    TABS,
} from "../support.mjs";

const REQUEST = { inputs: { query: [[1, 0], [0, 1]] } };

const hashOf = (content) => addressOf(content).slice(1);

const open = (stage, hash, ready = settled) => openPage(stage, {}, "/" + hash, ready);

/** What the opening asks for. */
const USUAL = ["GET /", "POST /v1/models/demo/attention", "GET /v1/layers"];

async function reload(page) {
    await page.reload();
    await settled(page);
}

const shown = async (page) => ({
    title: await page.locator(".stage h2").textContent(),
    cells: await page.locator(".table td").allTextContents(),
});

export const cases = {
    async "addresses: only the page's two endpoints can be named"(stage) {
        for (const endpoint of ["../admin/delete-everything", "attention/gradients", "//example.org/", "", 7, null]) {
            const page = await open(stage, hashOf({ endpoint, request: REQUEST }), opened);
            assert.match(await page.locator(".notice").textContent(), /cannot be used: .*not an endpoint/, String(endpoint));
            assert.deepEqual(page.asked.filter((path) => !USUAL.includes(path)), []);
            await page.finish();
        }
        const page = await open(stage, hashOf({ endpoint: "attention", request: REQUEST }));
        assert.match(await page.locator(".stage h2").textContent(), /2 × 2/);
        assert.equal(await page.locator(".notice").isVisible(), false);
        await page.finish();
    },
    async "addresses: a Back right after a mode has opened returns to the mode before, and Forward to it"(stage) {
        for (const mode of ["lab", "models", "story"]) {
            const page = await openPage(stage, {}, "/", opened);
            const isOpen = (name) => page.waitForFunction((at) => document.querySelectorAll("header nav button")[at].getAttribute("aria-selected") === "true", TABS[name]);
            await page.evaluate(
                (at) =>
                    new Promise((resolve) => {
                        const tab = document.querySelectorAll("header nav button")[at];
                        tab.click();
                        const look = () => (tab.getAttribute("aria-selected") === "true" ? setTimeout(() => resolve(history.back()), 100) : requestAnimationFrame(look));
                        look();
                    }),
                TABS[mode],
            );
            await isOpen("start");
            await opened(page);
            assert.equal(new URL(page.url()).hash, "", mode);
            await page.goForward();
            await isOpen(mode);
            await page.finish();
        }
    },
    async "addresses: only what can be a name asks for a kept layer"(stage) {
        for (const layer of ["..", ".", "../../version", "a/b", "", "a?b", {}, ["a"]]) {
            const page = await open(stage, hashOf({ layer, request: REQUEST }), opened);
            assert.match(await page.locator(".notice").textContent(), /cannot name a kept layer/, String(layer));
            assert.deepEqual(page.asked.filter((path) => !USUAL.includes(path)), []);
            await page.finish();
        }
    },
    async "addresses: a request that the page could not show is refused in one sentence"(stage) {
        for (const [request, said] of [
            [{}, /inputs\.query/],
            [{ weights: {} }, /inputs\.query/],
            [{ inputs: {} }, /inputs\.query/],
            [{ inputs: { query: 5 } }, /inputs\.query/],
            [{ inputs: { query: [[1], [2, 3]] } }, /inputs\.query/],
            [{ inputs: [] }, /inputs must be an object/],
            [{ ...REQUEST, masks: "causal" }, /masks must be an object/],
            [{ ...REQUEST, tokens: { query: "ab" } }, /lists of words/],
            [7, /request must be an object/],
            [null, /request must be an object/],
        ]) {
            const page = await open(stage, hashOf({ endpoint: "attention", request }), opened);
            assert.match(await page.locator(".notice").textContent(), said, JSON.stringify(request));
            assert.match(await page.locator(".answer").textContent(), /“it”.*“animal”/);
            await page.finish();
        }
    },
    async "addresses: values of a view that there are not fall back to the usual ones"(stage) {
        const views = [
            { tab: "nothing", sort: "__proto__", palette: "constructor", range: "x", linkMode: "toString", step: "nowhere" },
            { head: -1, batch: -1, row: -5, col: 1.5, linkTop: -3, linkThreshold: 7 },
            { head: 1.5, row: 1.5, tab: ["map"], sort: null, palette: 3, step: {} },
            { head: 1e9, batch: 1e9, row: 1e9, col: 1e9, compare: "kept", paint: true },
        ];
        for (const view of someOf(views, 2))
            for (const content of [{ preset: "cross" }, { endpoint: "attention", request: REQUEST }]) {
                const page = await open(stage, hashOf({ ...content, view }));
                const title = await page.locator(".stage h2").textContent();
                assert.match(title, /^softmax · head \d · (4 × 8|2 × 2)$/);
                assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
                assert.equal(await page.getByRole("tab", { name: "Map" }).getAttribute("aria-selected"), "true");
                assert.equal(await page.getByRole("button", { name: "Paint mask" }).getAttribute("aria-pressed"), "false");
                for (const tab of ["Links", "Table", "Map"]) await page.getByRole("tab", { name: tab }).click();
                await page.finish();
            }
    },
    async "addresses: a broken one says so, at the start and when it is put in later"(stage) {
        for (const hash of ["#v1=AAAA", "#v1=" + "x".repeat(5000), "#v1=%%", "#v1=", hashOf(null), hashOf(7), hashOf({})]) {
            const page = await open(stage, hash, opened);
            assert.match(await page.locator(".notice").textContent(), /cannot be used: the address/, hash.slice(0, 20));
            assert.match(await page.locator(".answer").textContent(), /“it”.*“animal”/);
            await page.finish();
        }
        const page = await open(stage, "", opened);
        await page.evaluate(() => {
            location.hash = "#v1=AAAA";
        });
        await page.locator(".notice", { hasText: "cannot be used: the address" }).waitFor();
        await page.evaluate((hash) => {
            location.hash = hash;
        }, hashOf({ endpoint: "attention", request: REQUEST }));
        await page.locator(".stage h2", { hasText: "2 × 2" }).waitFor();
        assert.equal(await page.locator(".notice").isVisible(), false);
        await page.finish();
    },
    async "addresses: reloading brings back edits, view and A, and the address follows every change"(stage) {
        const page = await openPage(stage, {}, "/", opened);
        assert.equal(new URL(page.url()).hash, "");
        await inLaboratory(page);
        await choosePreset(page, "cross");
        await page.getByRole("button", { name: "Keep as A" }).click();
        await answerTo(page, () => page.getByLabel("Scale", { exact: true }).fill("0.75"));
        await page.locator(".heads button").nth(2).click();
        await page.getByRole("tab", { name: "Table" }).click();
        await page.getByRole("button", { name: "B − A" }).click();
        const before = await shown(page);
        await page.waitForFunction(() => location.hash);
        await reload(page);
        await page.locator(".stage h2", { hasText: "B − A" }).waitFor();
        assert.deepEqual(await shown(page), before);
        assert.equal(await page.getByLabel("Scale", { exact: true }).inputValue(), "0.75");
        await page.getByRole("button", { name: "Drop A" }).click();
        await answerTo(page, () => page.getByLabel("Causal").check());
        await reload(page);
        assert.equal(await page.getByLabel("Causal").isChecked(), true);
        assert.equal(await page.getByRole("button", { name: "Keep as A" }).count(), 1);
        await page.finish();
    },
    async "addresses: after Share the address does not stay behind"(stage) {
        const page = await openPage(stage, { permissions: ["clipboard-read", "clipboard-write"] });
        await answerTo(page, () => page.getByLabel("Causal").check());
        await page.getByRole("button", { name: "Share", exact: true }).click();
        await page.locator(".toast", { hasText: "address" }).waitFor();
        const address = page.url();
        await answerTo(page, () => page.getByLabel("Causal").uncheck());
        await page.waitForFunction((before) => location.href !== before, address);
        await reload(page);
        assert.equal(await page.getByLabel("Causal").isChecked(), false);
        await page.finish();
    },
    async "addresses: an edit is there also where the page is reloaded at once"(stage) {
        const page = await openPage(stage);
        await answerTo(page, () => page.getByLabel("Causal").check());
        await page.evaluate(() => {
            document.querySelector(".heads button:nth-child(3)").click();
            location.reload();
        });
        await page.locator(".stage h2", { hasText: "head 2" }).waitFor();
        assert.equal(await page.getByLabel("Causal").isChecked(), true);
        await page.finish();
    },
    async "addresses: what is too long for one is kept beside it"(stage) {
        const page = await openPage(stage);
        const query = Array.from({ length: 300 }, (_, i) =>
            Array.from({ length: 120 }, (__, j) => Math.sin(i * 12.9898 + j * 78.233) * 43758.5453 % 1),
        );
        await answerTo(page, () => dropFile(page, "mine.json", JSON.stringify({ inputs: { query } })));
        await page.waitForFunction(() => history.state);
        assert.equal(new URL(page.url()).hash, "");
        await reload(page);
        assert.match(await page.locator(".stage h2").textContent(), /300 × 300/);
        await choosePreset(page, "three");
        await page.waitForFunction(() => location.hash && !history.state);
        await reload(page);
        assert.match(await page.locator(".stage h2").textContent(), /3 × 3/);
        await page.finish();
    },
    async "addresses: Back and Forward go through the examples that were opened, with what was done to them"(stage) {
        const page = await openPage(stage, {}, "/", inLaboratory),
            title = (text) => page.locator(".stage h2", { hasText: text }).waitFor();
        const saved = (before) => page.waitForFunction((hash) => location.hash !== hash, before);
        await page.waitForFunction(() => location.hash);
        const sentence = await page.evaluate(() => location.hash);
        await choosePreset(page, "three");
        await saved(sentence);
        await answerTo(page, () => page.getByLabel("Causal").uncheck());
        await choosePreset(page, "cross");
        await page.waitForTimeout(1000);
        await page.goBack();
        await title("3 × 3");
        assert.equal(await page.getByLabel("Causal").isChecked(), false);
        await page.goBack();
        await title("14 × 14");
        await page.goForward();
        await title("3 × 3");
        await page.goForward();
        await title("4 × 8");
        await page.finish();
    },
    async "addresses: what is typed is in the fragment, and in no query"(stage) {
        const page = await openPage(stage, {}, "/", inLaboratory),
            asked = [];
        page.on("request", (request) => asked.push(request.url()));
        await answerTo(page, () => page.getByLabel("Sentence").fill("A secret that the log need not know"));
        await page.waitForFunction(() => location.hash);
        assert.equal(new URL(page.url()).search, "");
        for (const url of asked) assert.doesNotMatch(url, /secret|\?/, url);
        await page.finish();
    },
    async "addresses: expected values are in the address; where they are too large, that is said"(stage) {
        const page = await openPage(stage, { permissions: ["clipboard-read", "clipboard-write"] });
        await choosePreset(page, "three");
        const own = page.locator(".panel section", { has: page.locator("textarea[placeholder]") });
        const expect = async (text) => {
            await own.locator("textarea").fill(text);
            await own.getByRole("combobox").selectOption("values");
            await own.getByRole("button").first().click();
            await page.locator(".expected .verdict").waitFor();
        };
        await expect("[[1, 0, 0], [0.5, 0.5, 0], [0.123456789012, 0.4, 0.4]]");
        const verdict = await page.locator(".expected .verdict").textContent();
        await page.getByRole("button", { name: "Share", exact: true }).click();
        await page.locator(".toast", { hasText: "holds what you see" }).waitFor();
        const other = await page.context().newPage();
        await other.goto(await page.evaluate(() => navigator.clipboard.readText()));
        await other.locator(".expected .verdict").waitFor();
        assert.equal(await other.locator(".expected .verdict").textContent(), verdict);
        await other.close();
        await choosePreset(page, "twelve");
        const row = (i) => Array.from({ length: 64 }, (_, j) => Math.abs(Math.sin(i * 12.9898 + j * 78.233) * 43758.5453) % 1);
        await expect(JSON.stringify(Array.from({ length: 12 }, (_, h) => Array.from({ length: 64 }, (__, i) => row(h * 64 + i)))));
        await page.locator(".toast", { hasText: "too large for it" }).waitFor();
        await page.waitForFunction(() => location.hash && history.state);
        await reload(page);
        await page.locator(".expected .verdict").waitFor();
        await page.finish();
    },
};
