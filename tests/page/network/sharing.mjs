/**
 * sharing.mjs: addresses, commands and files say exactly what was shown.
 */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
    answerTo,
    assertClose,
    choosePreset,
    chooseStep,
    copied,
    exported,
    inFolder,
    inLaboratory,
    numberOf,
    opened,
    openPage,
    readNpy,
    settled,
    startServer,
} from "../support.mjs";

const PERMISSIONS = { permissions: ["clipboard-read", "clipboard-write"] };

const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

export const cases = {
    async "sharing: the address brings back an edited request and the view"(stage) {
        const page = await openPage(stage, PERMISSIONS);
        await choosePreset(page, "cross");
        const { request } = await answerTo(page, () => page.getByLabel("Scale", { exact: true }).fill("0.75"));
        await page.locator(".heads button").nth(3).click();
        await page.getByRole("tab", { name: "Links" }).click();
        await page.getByRole("button", { name: "Share", exact: true }).click();
        await page.locator(".toast").waitFor();
        const address = await clipboard(page);
        assert.equal(address, page.url());
        assert.match(address, /#v1=/);
        const other = await page.context().newPage();
        const asked = other.waitForRequest((r) => r.url().includes("/v1/"));
        await other.goto(address);
        assert.deepEqual((await asked).postDataJSON(), request);
        await settled(other);
        assert.match(await other.locator(".stage h2").textContent(), /head 3/);
        assert.equal(await other.getByRole("tab", { name: "Links" }).getAttribute("aria-selected"), "true");
        await page.finish();
    },
    async "sharing: a broken address opens the page as it is"(stage) {
        for (const hash of ["#v1=AAAA", "#v1=" + "x".repeat(5000), "#something"]) {
            const page = await openPage(stage, {}, "/" + hash, opened);
            assert.match(await page.locator(".answer").textContent(), /“it”.*“animal”/);
            await page.finish();
        }
    },
    async "sharing: curl and Python ask for what is shown and get the same"(stage) {
        const page = await openPage(stage, PERMISSIONS);
        await page.getByLabel("Sentence").fill("it's \"quoted\" $HOME `x` \\ 'so'");
        const { answer } = await answerTo(page, () => page.getByRole("button", { name: "Make tokens" }).click());
        for (const [kind, run] of [
            ["curl", (text) => execFileSync("sh", ["-c", text])],
            ["Python", (text) => execFileSync("python3", ["-c", text])],
        ]) {
            const json = JSON.parse(run(await copied(page, kind)));
            assert.deepEqual(kind === "curl" ? json.outputs : json, answer.outputs, kind);
        }
        await page.finish();
    },
    async "sharing: a server with keys is asked with one, which is neither stored nor copied"(stage) {
        await inFolder(async (folder) => {
            const { stdout, stderr } = spawnSync(stage.attnd, ["key", "reader"], { encoding: "utf8" });
            const [key] = /attnd_[0-9a-f]+/.exec(stderr);
            writeFileSync(join(folder, "keys"), stdout);
            const server = await startServer(stage.attnd, { ATTND_KEYS: join(folder, "keys") });
            const ready = (page) => page.getByLabel("API key").waitFor();
            const page = await openPage({ ...stage, url: server.url }, PERMISSIONS, "/", ready);
            await page.getByLabel("API key").fill(key);
            await page.keyboard.press("Enter");
            await inLaboratory(page);
            const { answer } = await answerTo(page, () => page.getByLabel("Causal").check());
            assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
            assert.equal(await page.locator(".notice").isVisible(), false);
            for (const [kind, program] of [
                ["curl", "sh"],
                ["Python", "python3"],
            ]) {
                const text = await copied(page, kind);
                assert.ok(!text.includes(key));
                const environment = { ...process.env, ATTND_KEY: key };
                const json = JSON.parse(execFileSync(program, ["-c", text], { env: environment }));
                assert.deepEqual(kind === "curl" ? json.outputs : json, answer.outputs, kind);
            }
            assert.doesNotMatch(readFileSync(await exported(page, "This page (HTML)", folder), "utf8"), new RegExp(key));
            assert.deepEqual(await page.evaluate(() => Object.keys(localStorage)), []);
            await page.finish();
            await server.stop();
        });
    },
    async "sharing: CSV, NPY, JSON, SVG and PNG hold the numbers shown"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage),
                { answer } = await choosePreset(page, "cross"),
                map = answer.outputs.attention[0][0];
            const csv = readFileSync(await exported(page, "CSV", folder), "utf8")
                .trim()
                .split("\n")
                .map((line) => line.split(","));
            assert.equal(csv.length, map.length + 1);
            map.forEach((row, i) =>
                row.forEach((value, j) => assertClose(Number(csv[i + 1][j + 1]), value, 7, `csv [${i}, ${j}]`)),
            );
            const npy = readNpy(readFileSync(await exported(page, "NPY", folder)));
            assert.deepEqual(npy.shape, [1, 4, 4, 8]);
            answer.outputs.attention.flat(3).forEach((value, at) => assertClose(npy.data[at], value, 7, `npy ${at}`));
            const json = JSON.parse(readFileSync(await exported(page, "JSON", folder), "utf8"));
            assert.deepEqual(json.outputs.attention.shape, [1, 4, 4, 8]);
            assertClose(json.outputs.attention.data[9], map[1][1], 7, "json");
            const svg = readFileSync(await exported(page, "SVG", folder), "utf8");
            assert.equal(svg.match(/<rect /g).length, 4 * 8 + 2);
            assert.ok(
                readFileSync(await exported(page, "PNG", folder))
                    .subarray(1, 4)
                    .equals(Buffer.from("PNG")),
            );
            await page.finish();
        });
    },
    async "sharing: the exported page opens from disk, computes by itself, and can be edited"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage),
                { answer } = await choosePreset(page, "cross");
            const path = await exported(page, "This page (HTML)", folder);
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href);
            assert.match(await copy.locator(".stage h2").textContent(), /4 × 8/);
            assert.match(await copy.locator(".checks").textContent(), /Opened from disk/);
            await copy.getByRole("tab", { name: "Table" }).click();
            const cells = await copy
                .locator(".table tbody tr")
                .evaluateAll((rows) =>
                    rows.map((row) => Array.from(row.querySelectorAll("td"), (td) => td.textContent)),
                );
            answer.outputs.attention[0][0].forEach((row, i) =>
                row.forEach((value, j) => assertClose(numberOf(cells[i][j]), value, 3, `[${i}, ${j}]`)),
            );
            await copy.getByLabel("Causal").check();
            await copy.locator(".table .hidden-cell").first().waitFor();
            await chooseStep(copy, "X");
            await copy.finish();
        });
    },
};
