/**
 * support.mjs: a server and a browser for the length of the tests, and pages that report what they must not do.
 *
 * Nothing here knows the page's modules: it is driven as people drive it, by what can be seen, named and focused.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { chromium } from "playwright-core";

const START_MS = 20000;

/** The step of a loop over many places that are alike: one in so many is tried, and each of them with ATTN_LONG=1. */
export const oneIn = (places) => (process.env.ATTN_LONG ? 1 : places);

/** One in so many of a list. */
export const someOf = (list, places) => list.filter((_, n) => n % oneIn(places) === 0);

/** @returns {Promise<{url: string, stop: () => Promise<void>}>} attnd on a free port of 127.0.0.1 */
export function startServer(program, settings = {}) {
    const environment = { ...process.env, ATTND_LISTEN: "127.0.0.1:0", ATTND_DRAIN_DELAY: "0", ...settings };
    const child = spawn(program, [], { env: environment, stdio: ["ignore", "pipe", "pipe"] });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    return new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error("the server says no address")), START_MS);
        let said = "";
        const read = (data) => {
            said += data;
            const found = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(said);
            if (!found) return;
            clearTimeout(late);
            resolve({
                url: found[0],
                stop: () => {
                    child.kill("SIGTERM");
                    return ended;
                },
            });
        };
        child.stdout.on("data", read);
        child.stderr.on("data", read);
        child.once("error", reject);
    });
}

/** Without a sandbox only where there is no other way: Chromium refuses one to root. */
export const startBrowser = (executablePath) =>
    chromium.launch({
        executablePath,
        args: [
            "--disable-gpu",
            "--force-color-profile=srgb",
            "--font-render-hinting=none",
            // Names of other origins (origins.mjs).
            "--host-resolver-rules=MAP *.example 127.0.0.1",
            ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
        ],
    });

/** @param {object} content @returns {string} the address of a state, as the page writes it */
export const addressOf = (content) => "/#v1=" + deflateRawSync(JSON.stringify(content)).toString("base64url");

/** Twelve words through four heads of seeded numbers. */
export const SENTENCE = addressOf({ preset: "sentence" });

/** What every page is watched for. */
const WATCH = () => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
        window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile ?? ""}`),
    );
};

/**
 * A page in a context of its own; close() fails when it broke its policy, threw, or asked another origin for anything.
 * @param {{browser: object, url: string}} stage
 * @param {object} [options] of the context
 * @param {(page: object) => Promise<void>} [ready] resolves when the page can be used
 */
export async function openPage(stage, options = {}, path = SENTENCE, ready = settled) {
    const context = await stage.browser.newContext({
        viewport: { width: 1280, height: 900 },
        locale: "en-GB",
        ...options,
    });
    const page = await context.newPage(),
        wrong = [];
    page.asked = [];
    page.wrong = wrong;
    context.setDefaultTimeout(20000);
    await page.addInitScript(WATCH);
    page.on("pageerror", (error) => wrong.push("error: " + (error.stack ?? error.message)));
    page.on("console", (message) => {
        if (/Content Security Policy|violat/i.test(message.text())) wrong.push(message.text());
    });
    page.on("request", (request) => {
        const isOwn = request.url().startsWith(stage.url + "/") || /^(data|blob|file):/.test(request.url());
        if (!isOwn) wrong.push("asked " + request.url());
        if (!request.url().startsWith("blob:")) page.asked.push(`${request.method()} ${new URL(request.url()).pathname}`);
    });
    await page.goto(path.includes(":") ? path : stage.url + path);
    await ready(page).catch((problem) => {
        throw new Error([problem.message, ...wrong].join("\n"));
    });
    page.finish = async () => {
        wrong.push(...(await page.evaluate(() => window.violations)));
        await context.close();
        assert.deepEqual(wrong, []);
    };
    return page;
}

/** Until something is shown and nothing is being computed any more. */
export async function settled(page) {
    await page.waitForFunction(
        () => document.querySelector(".stage h2")?.textContent && !document.querySelector(".stage[aria-busy=true]"),
        null,
        { timeout: 30000 },
    );
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** Until the opening shows its sentence. */
export async function opened(page) {
    await page.locator(".word[aria-selected=true]").waitFor({ timeout: 30000 });
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** Tabs of the page, in their order. */
export const TABS = { start: 0, story: 1, lab: 2, models: 3, bug: 4 };
export const tabOf = (page, mode) => page.locator("header nav button").nth(TABS[mode]);

/** From the opening to the laboratory, with the sentence. */
export async function inLaboratory(page) {
    await opened(page);
    await tabOf(page, "lab").click();
    await settled(page);
}

/** Repeats a check of a picture until it holds: numbers stand before their picture is painted. */
export async function eventually(check) {
    for (const end = Date.now() + 20000; ; await new Promise((resolve) => setTimeout(resolve, 50)))
        try {
            return await check();
        } catch (problem) {
            if (Date.now() > end) throw problem;
        }
}

/** Does what is given, and waits for the server's answer to what came of it. */
export async function answerTo(page, action) {
    const [response] = await Promise.all([
        page.waitForResponse((r) => r.url().includes("/v1/") && r.request().method() === "POST"),
        action(),
    ]);
    const answer = response.ok() ? await response.json().catch(() => null) : null;
    await settled(page);
    return { response, answer, request: response.request().postDataJSON() };
}

/** What the menu "Copy" puts on the clipboard. */
export async function copied(page, kind) {
    await page.evaluate(() => navigator.clipboard.writeText(""));
    await page.locator(".menu", { hasText: "Copy" }).locator("summary").click();
    await page.getByRole("button", { name: kind, exact: true }).click();
    const text = await page.waitForFunction(() => navigator.clipboard.readText());
    return text.jsonValue();
}

const openMenu = (page, name) => page.locator(".menu", { hasText: name }).locator("summary").click();

/** Saves what the menu "Export" gives. @returns {Promise<string>} its path, with the name that the page gave it */
export async function exported(page, kind, folder, menu = "Export") {
    await openMenu(page, menu);
    const [file] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("button", { name: kind, exact: true }).click(),
    ]).catch(async (problem) => {
        const menus = await page.locator(".menu[open]").allTextContents();
        throw new Error([`${kind}, with ${menus.length} open menus: ${problem.message}`, ...page.wrong].join("\n"));
    });
    const path = join(folder, file.suggestedFilename());
    await file.saveAs(path);
    return path;
}

/** Work in a folder that is gone afterwards. */
export async function inFolder(work) {
    const folder = mkdtempSync(join(tmpdir(), "attnd-page-"));
    try {
        return await work(folder);
    } finally {
        rmSync(folder, { recursive: true });
    }
}

/** Shape and numbers of a file of NumPy's. */
export function readNpy(bytes) {
    const length = bytes.readUInt16LE(8),
        header = bytes.subarray(10, 10 + length).toString();
    assert.equal((10 + length) % 64, 0);
    const shape = /'shape': \(([\d, ]*)\)/
        .exec(header)[1]
        .split(",")
        .filter((size) => size.trim())
        .map(Number);
    const data = bytes.subarray(10 + length),
        isDouble = header.includes("<f8");
    return {
        shape,
        isDouble,
        data: Array.from({ length: data.length / (isDouble ? 8 : 4) }, (_, at) =>
            isDouble ? data.readDoubleLE(at * 8) : data.readFloatLE(at * 4),
        ),
    };
}

export const choosePreset = (page, id) =>
    answerTo(page, () => page.getByRole("combobox", { name: "Example" }).selectOption(id));

export const chooseStep = (page, name) =>
    page.locator(".strip button", { has: page.locator(".name", { hasText: name }) }).first().click();

/** Puts the focus on the one real cell of the grid, at [0, 0]. */
export async function focusGrid(page) {
    await page.locator("[role=gridcell]").focus();
    await page.keyboard.press("Control+Home");
}

/** Middle of a cell on the screen, worked out from the place of the first one. */
export async function cellPoint(page, row, col) {
    await focusGrid(page);
    const box = await page.locator("[role=gridcell]").boundingBox();
    return { x: box.x + (col + 0.5) * box.width, y: box.y + (row + 0.5) * box.height };
}

/** The table of the tab "Table": the exact numbers of its cells, or what stands for them, row by row. */
export async function tableOf(page) {
    await page.getByRole("tab", { name: "Table" }).click();
    const cells = await page
        .locator(".table tbody tr")
        .evaluateAll((rows) => rows.map((row) => Array.from(row.querySelectorAll("td"), (td) => (td.matches(".hidden-cell") ? td.textContent : td.title))));
    await page.getByRole("tab", { name: "Map" }).click();
    return cells;
}

/** Drops a file onto the page. @param {Buffer | string} content */
export const dropFile = (page, name, content) =>
    page.evaluate(
        ([name_, base64]) => {
            const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)),
                dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([bytes], name_));
            document
                .querySelector("main")
                .dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }));
        },
        [name, Buffer.from(content).toString("base64")],
    );

/** A number as the page writes it. */
export const numberOf = (text) => Number(text.replace(/−/g, "-").replace("∞", "Infinity").replace(",", "."));

/** Like page and server: to so many significant digits. */
export function assertClose(actual, expected, digits, what) {
    const bound = 0.6 * 10 ** (1 - digits) * Math.max(Math.abs(expected), 1e-30);
    assert.ok(Math.abs(actual - expected) <= bound, `${what}: ${actual} instead of ${expected}`);
}
