/**
 * run.mjs --attnd PROGRAM --firefox PROGRAM: the page in Firefox, by WebDriver BiDi, with a server of its own.
 *
 * One browser goes from mode to mode, as a person does. Numbers are compared with what the server answers.
 */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import puppeteer from "puppeteer-core";
import { AXE, RUN_AXE } from "../input/axe.mjs";
import { presetCase } from "../../../server/web/request/presets.js";
import { addressOf, assertClose, numberOf, startServer } from "../support.mjs";

const WAIT_MS = 30000;
const LESSON_PAGES = 9;
const SENTENCE = "The animal did not cross the street because it was too tired";

const { values: options } = parseArgs({ options: { attnd: { type: "string" }, firefox: { type: "string" } } });

/** What the page must not do, said in Firefox's words. */
async function watch(page, wrong) {
    page.on("pageerror", (error) => wrong.push("error: " + error.message));
    page.on("console", (message) => message.type() === "error" && wrong.push("console: " + message.text()));
    await page.evaluateOnNewDocument(() => {
        window.violations = [];
        document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => window.violations.push(`${violatedDirective} ${blockedURI}`));
    });
}

const until = (page, test, ...values) => page.waitForFunction(test, { timeout: WAIT_MS }, ...values);
const textOf = (page, selector) => page.$eval(selector, (element) => element.textContent);
const labelOf = (page, selector) => page.$eval(selector, (element) => element.getAttribute("aria-label"));

/** Until the laboratory shows the answer to what is asked. */
const settled = (page) => until(page, () => document.querySelector(".stage h2")?.textContent && !document.querySelector(".stage[aria-busy=true]"));

const findings = async (page) => {
    await page.evaluate(AXE);
    return page.evaluate(RUN_AXE);
};

const openMode = (page, at) => page.evaluate((n) => document.querySelectorAll("header nav button")[n].click(), at);

async function attend(url, path, body) {
    const response = await fetch(url + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    return response.json();
}

/** Goes to a cell of a map by the keyboard. @returns {Promise<number>} what its label says */
async function numberAt(page, cell, row, col) {
    await page.focus(cell);
    await page.keyboard.down("Control");
    await page.keyboard.press("Home");
    await page.keyboard.up("Control");
    for (let n = 0; n < row; n++) await page.keyboard.press("ArrowDown");
    for (let n = 0; n < col; n++) await page.keyboard.press("ArrowRight");
    return numberOf((await labelOf(page, cell)).split(", ").at(-1));
}

/** Saves a file by a press of a button. @returns {Promise<string>} its path */
async function savedBy(page, folder, press, ending = ".html") {
    const before = new Set(readdirSync(folder));
    await page.evaluate(press);
    const saved = () => readdirSync(folder).find((name) => !before.has(name) && name.endsWith(ending) && statSync(join(folder, name)).size > 0 && !existsSync(join(folder, name + ".part")));
    for (const late = Date.now() + WAIT_MS; !saved() && Date.now() < late; ) await new Promise((resolve) => setTimeout(resolve, 100));
    return join(folder, saved());
}

/** Presses a button of the menu "Export". */
const EXPORT = (text) => `(() => {
    const menu = document.querySelectorAll(".menu")[1];
    menu.querySelector("summary").click();
    Array.from(menu.querySelectorAll("button")).find((button) => button.textContent.endsWith(${JSON.stringify(text)})).click();
})()`;

/** Saves a copy of the page, by a press of a button, and opens it. */
async function openSaved(page, folder, press) {
    const path = await savedBy(page, folder, press);
    await page.goto("about:blank");
    await page.goto(pathToFileURL(path).href);
}

const CELL = ".stage [role=gridcell]";

const CASES = {
    async "the page opens on a head of the demo, with the server's number"({ page, url }) {
        await page.goto(url + "/");
        await until(page, () => document.querySelector(".answer").textContent.startsWith("“it” looks at “animal”"));
        await openMode(page, 2);
        await settled(page);
        const { outputs } = await attend(url, "/v1/models/demo/attention", { inputs: { text: SENTENCE } });
        assertClose(numberOf(await textOf(page, ".readout b")), outputs.attention[3][0][0][9][2], 6, "it → animal");
        await until(page, () => document.querySelector(".verdict.good"));
    },
    async "the links and their words are saved as a picture"({ page, url, folder }) {
        await page.goto("about:blank");
        await page.goto(url + addressOf({ preset: "cross", view: { tab: "links" } }));
        await settled(page);
        const path = await savedBy(page, folder, EXPORT("PNG"), ".png"),
            bytes = readFileSync(path);
        await page.goto("about:blank");
        const [width, most] = await page.evaluate(async (base64) => {
            const image = Object.assign(new Image(), { src: "data:image/png;base64," + base64 });
            await image.decode();
            const context = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height }).getContext("2d");
            context.drawImage(image, 0, 0);
            const { data } = context.getImageData(0, 0, image.width, image.height);
            let blue = 0;
            for (let at = 0; at < data.length; at += 4) blue += Number(data[at + 2] > data[at] + 24);
            return [image.width, blue];
        }, bytes.toString("base64"));
        assert.ok(width > 600 && most > 1000, `${width} wide, ${most} dots of links`);
    },
    async "the laboratory edits, and shows what the server computes"({ page, url }) {
        await page.goto("about:blank");
        await page.goto(url + addressOf({ preset: "three" }));
        await settled(page);
        await page.type(".panel input[placeholder='1/√d_k']", "0,5");
        await until(page, () => document.querySelector(".checks dl")?.textContent.includes("0.5"));
        await settled(page);
        const { endpoint, request } = presetCase("three");
        const body = { ...request, options: { ...request.options, scale: 0.5, return: ["attention"] } };
        const { outputs } = await attend(url, "/v1/" + endpoint, body);
        for (const [row, col] of [[0, 0], [1, 1], [2, 1]]) assertClose(await numberAt(page, CELL, row, col), outputs.attention[0][0][row][col], 5, `[${row}, ${col}]`);
        await until(page, () => document.querySelector(".verdict.good"));
    },
    async "the map zooms, pans and is painted"({ page, url }) {
        await page.goto("about:blank");
        await page.goto(url + addressOf({ preset: "causal" }));
        await settled(page);
        const width = () => page.$eval(CELL, (cell) => parseFloat(cell.style.width)),
            before = await width();
        await page.focus(CELL);
        for (let n = 0; n < 3; n++) await page.keyboard.press("+");
        await until(page, (least) => parseFloat(document.querySelector(".stage [role=gridcell]").style.width) > least, 1.2 * before);
        const box = await (await page.$(".stage .map")).boundingBox(),
            middle = { x: box.x + box.width / 3, y: box.y + box.height / 2 };
        const seen = async () => {
            await page.mouse.click(middle.x, middle.y);
            return (await textOf(page, ".readout small")).match(/\d+/g).map(Number);
        };
        const [row, col] = await seen();
        await page.mouse.move(middle.x, middle.y);
        await page.mouse.down();
        await page.mouse.move(middle.x - 90, middle.y - 90, { steps: 4 });
        await page.mouse.up();
        const [row2, col2] = await seen();
        assert.ok(row2 > row && col2 > col, `${row}, ${col} and then ${row2}, ${col2}`);
        await page.keyboard.press("0");
        await numberAt(page, CELL, 3, 0);
        await page.keyboard.press("m");
        await until(page, () => document.querySelector(".spoken").textContent.endsWith("masked"));
    },
    async "the story turns its pages, and writes out a cell"({ page }) {
        await openMode(page, 1);
        await until(page, () => document.querySelector(".scene svg") && document.activeElement.closest(".player"));
        const said = [];
        for (let n = 0; n < LESSON_PAGES; n++) {
            said.push(await textOf(page, ".say"));
            if (n === 1) await until(page, () => document.querySelector(".story .worked").textContent === "Q[it, living] = 1 · 3 (tired) + 1 · 0 (asks) + 0 · 0 (living) = 3");
            if (n === 2) assert.equal((await page.$$(".beam")).length, 2);
            await page.keyboard.press("ArrowRight");
            if (n < LESSON_PAGES - 1) await until(page, (old) => document.querySelector(".say").textContent !== old, said[n]);
        }
        assert.equal(new Set(said).size, LESSON_PAGES);
        assert.deepEqual(await findings(page), []);
    },
    async "a head of a model shows the server's numbers"({ page, url }) {
        await openMode(page, 3);
        await until(page, () => document.querySelector(".models .readout b") && !document.querySelector(".models [aria-busy=true]"));
        const { outputs } = await attend(url, "/v1/models/demo/attention", { inputs: { text: SENTENCE.replace("because it", "because the [MASK]") } });
        await page.focus(".headgrid [role=gridcell]");
        for (const key of ["ArrowUp", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
        assert.equal(await labelOf(page, ".headgrid [role=gridcell]"), "layer 2, head 2");
        await until(page, () => document.querySelector(".headview h2").textContent === "layer 2, head 2" && !document.querySelector(".models [aria-busy=true]"));
        assertClose(await numberAt(page, ".headview [role=gridcell]", 4, 7), outputs.attention[2][0][2][4][7], 5, "cross → street");
        assert.deepEqual(await findings(page), []);
    },
    async "a copy of the page opens from disk, and computes there"({ page, url, folder, wrong }) {
        await page.goto("about:blank");
        await page.goto(url + addressOf({ preset: "cross" }));
        await settled(page);
        assert.deepEqual(await findings(page), []);
        const number = await numberAt(page, CELL, 1, 2);
        await openSaved(page, folder, EXPORT("(HTML)"));
        await settled(page);
        assert.match(await textOf(page, ".checks"), /Opened from disk/);
        assertClose(await numberAt(page, CELL, 1, 2), number, 5, "from disk");
        assert.deepEqual(await findings(page), []);
        assert.deepEqual(wrong, []);
    },
    async "a lesson opens from disk"({ page, url, folder, wrong }) {
        await page.goto("about:blank");
        await page.goto(url + "/");
        await until(page, () => document.querySelector(".word"));
        await openMode(page, 1);
        await until(page, () => document.querySelector(".scene svg"));
        const said = await textOf(page, ".say");
        await openSaved(page, folder, () => document.querySelector(".story-tools button:not([hidden])").click());
        await until(page, (text) => document.querySelector(".scene svg") && document.querySelector(".say").textContent === text, said);
        assert.deepEqual(await findings(page), []);
        assert.deepEqual(wrong, []);
    },
};

async function main() {
    const folder = mkdtempSync(join(tmpdir(), "attnd-firefox-")),
        server = await startServer(options.attnd);
    const browser = await puppeteer.launch({
        browser: "firefox",
        executablePath: options.firefox,
        extraPrefsFirefox: { "browser.download.folderList": 2, "browser.download.dir": folder, "browser.download.useDownloadDir": true },
    });
    const page = await browser.newPage(),
        wrong = [];
    await page.setViewport({ width: 1366, height: 768 });
    await watch(page, wrong);
    let passed = 0,
        failed = 0;
    for (const [name, run] of Object.entries(CASES)) {
        try {
            await run({ page, url: server.url, folder, wrong });
            wrong.push(...(await page.evaluate(() => window.violations.splice(0))));
            assert.deepEqual(wrong.splice(0), []);
            passed++;
            console.log(`ok      firefox: ${name}`);
        } catch (problem) {
            failed++;
            console.log(`FAILED  firefox: ${name}\n${String(problem.stack ?? problem).replace(/^/gm, "        ")}`);
        }
    }
    await browser.close();
    await server.stop();
    rmSync(folder, { recursive: true });
    console.log(`test-firefox: ${passed} passed, ${failed} failed, 0 skipped`);
    return failed === 0 ? 0 : 1;
}

process.exit(await main());
