/**
 * states.mjs: a walk through all that the page can look like, in any language and on any screen.
 *
 * walk() opens state after state on one page, and gives the name of each when it is there. Nothing is found by its words.
 */
import { presetCase } from "../../../server/web/request/presets.js";
import { SENTENCES } from "../../../server/web/models/view_state.js";
import { computed } from "../models/opened.mjs";
import { addressOf, dropFile, opened, settled, tabOf } from "../support.mjs";

const STEPS = ["in.query", "w.query", "q", "scores", "masked", "context", "output"];
const LESSONS = ["hand", "masks", "cross"];

const HOSTILE = { endpoint: "../admin/delete-everything", request: { inputs: { query: [[1]] } } };
const DUMP = { attentions: [[[[1, 0], [0.5, 0.5]]]], tokens: ["a", "b"] };

async function openMode(page, mode) {
    await tabOf(page, mode).click();
    if (mode === "models") await computed(page);
    if (mode === "story") await page.locator(".scene svg").waitFor();
}

/** On a phone the panel and a part of the bar are folded. */
async function unfold(page) {
    const more = page.locator("header .more");
    if ((await more.isVisible()) && (await more.getAttribute("aria-expanded")) === "false") await more.click();
    if (!(await page.locator(".panel").evaluate((panel) => panel.open))) await page.locator(".panel > summary").click();
}

const notice = (page) => page.locator(".notice > div").waitFor();
const headsField = (page) => page.locator(".panel section").nth(1).locator("input").first();

/** What the causal example gives without its mask: expected values that a usual mistake explains. */
async function unmasked(stage) {
    const { endpoint, request } = presetCase("causal"),
        body = { ...request, masks: undefined, options: { ...request.options, return: ["attention"] } };
    const response = await fetch(`${stage.url}/v1/${endpoint}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    return JSON.stringify((await response.json()).outputs.attention);
}

/** A word of the sentence, and as a slip of the finger spells it. */
const UNKNOWN = { en: ["animal", "anmal"], tr: ["Hayvan", "Hayvn"], ru: ["Животное", "Живтное"] };

async function* opening(page, open, stage, language) {
    yield "first visit";
    await page.locator(".swap button").nth(1).click();
    await page.locator(".swap button[aria-pressed=true]").nth(0).waitFor();
    await page.locator(".sentence").press("Home");
    yield "the special token";
    await page.locator(".foot summary").click();
    yield "help";
    await page.locator(".swap button").nth(0).click();
    await page.locator(".ways button").nth(1).click();
    const box = page.locator(".own input"),
        [known, unknown] = UNKNOWN[language];
    await box.fill((await box.inputValue()).replace(known, unknown));
    await page.locator(".readers").waitFor();
    yield "a sentence of other words";
    await page.locator(".readers button", { hasText: "demo" }).click();
    await page.locator(".unknowns li button").first().waitFor();
    yield "an unknown word";
}

async function* laboratory(page, open, stage) {
    await tabOf(page, "lab").click();
    await settled(page);
    yield "the sentence in the laboratory";
    await page.locator(".stage [role=tab]").nth(3).click();
    await page.locator(".stage .headgrid canvas").waitFor();
    yield "layers";
    for (const step of STEPS) {
        await open(addressOf({ preset: "causal", view: { step } }));
        yield `step ${step}`;
    }
    for (const [at, tab] of [[1, "links"], [2, "table"], [0, "map"]]) {
        await page.locator(".strip button[aria-pressed=true]").focus();
        await open(addressOf({ preset: "scripts", view: { tab } }));
        if (tab === "links") await page.locator(".links button").nth(at).click();
        yield tab;
    }
    await open(addressOf({ preset: "padding" }));
    await unfold(page);
    await page.locator(".panel input[type=checkbox]").last().check();
    await settled(page);
    yield "a batch, in training";
    await page.locator(".compare button").nth(3).click();
    await page.locator(".compare button").nth(1).click();
    yield "A";
    await page.locator(".compare button").nth(2).click();
    yield "B − A";
    await open(addressOf({ preset: "cross" }));
    await page.locator(".tools .pair button").first().click();
    await page.locator(".stage .cell").focus();
    for (const key of ["Shift+ArrowRight", "m"]) await page.keyboard.press(key);
    await page.locator(".panel .note button").waitFor({ state: "attached" });
    await unfold(page);
    yield "painting";
    for (const at of [0, 1]) {
        await page.locator(".menu summary").nth(at).click();
        yield `menu ${at}`;
        await page.keyboard.press("Escape");
    }
    await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.reject(new Error("no"))));
    await page.locator(".actions > button").click();
    await notice(page);
    yield "copied by hand";
    await page.evaluate(() => (navigator.clipboard.writeText = () => Promise.resolve()));
    await page.locator(".actions > button").click();
    await page.locator(".toast").waitFor();
    yield "copied";
    await open(addressOf({ preset: "causal" }));
    await unfold(page);
    const own = page.locator(".panel section", { has: page.locator("textarea[placeholder]") });
    await own.locator("textarea").fill(await unmasked(stage));
    await own.locator("select").first().selectOption("values");
    await own.locator("button").first().click();
    await page.locator(".expected .cause:not([hidden])").waitFor();
    yield "expected values, and why they differ";
    await page.locator(".panel input[placeholder='1/√d_k']").fill("x");
    yield "no number";
    await own.locator("select").first().selectOption("request");
    await own.locator("textarea").fill("a, b");
    await own.locator("button").first().click();
    await notice(page);
    yield "unusable data";
}

async function* trouble(page, open) {
    await open(addressOf({ preset: "causal" }));
    await unfold(page);
    await headsField(page).fill("5");
    await notice(page);
    yield "refused by the server";
    await page.route("**/v1/**", (route) => route.abort("connectionrefused"));
    await headsField(page).fill("4");
    await page.locator(".notice button:not(.close)").waitFor();
    yield "server gone";
    await page.unroute("**/v1/**");
    await page.route("**/v1/**", (route) => route.fulfill({ status: 401, json: { error: "401" } }));
    await headsField(page).fill("2");
    await page.locator(".notice form").waitFor();
    yield "a key is wanted";
    await page.unroute("**/v1/**");
    for (const [name, path] of [["hostile link", addressOf(HOSTILE)], ["broken link", "/#v1=abc"]]) {
        await open(path, opened);
        await notice(page);
        yield name;
    }
}

async function* debugging(page, open) {
    await open("/", opened);
    await page.locator(".ways button").nth(2).click();
    await page.locator(".inputs details summary").click();
    await page.locator(".theirs .tasks button:enabled").nth(2).waitFor();
    yield "the debugger";
    await page.locator(".theirs .tasks button").nth(2).click();
    await page.waitForFunction(() => document.querySelector(".theirs textarea").value !== "");
    await page.locator(".debugger .main").click();
    await page.locator(".expected .cause b").first().waitFor();
    yield "the debugger, with a mistake";
    await page.locator(".inputs textarea").first().fill("1 2 x");
    await page.locator(".inputs small.wrong").waitFor();
    await page.locator(".debugger .main").click();
    await notice(page);
    yield "the debugger, with a wrong number";
}

async function* story(page, open) {
    await open(addressOf({ preset: "three" }));
    await openMode(page, "story");
    for (const lesson of LESSONS) {
        await page.locator(".story select").selectOption(lesson);
        await page.waitForFunction(
            (id) => document.querySelector(".story select").value === id && /^1 /.test(document.querySelector(".count").textContent),
            lesson,
        );
        const pages = await page.locator(".turn").count();
        for (let at = 0; at < pages; at++) {
            await page.locator(".turn").nth(at).click();
            await page.locator(`.dots li:nth-child(${at + 1}) [aria-current]`).waitFor();
            if (lesson === "hand" || at === 0) yield `story ${lesson}, page ${at + 1}`;
        }
    }
    await page.keyboard.press("p");
    await page.locator("header nav").waitFor({ state: "hidden" });
    yield "presented";
    await page.keyboard.press("p");
    await page.locator("header nav").waitFor();
}

async function* models(page, open, stage, language) {
    await open(addressOf({ preset: "three" }));
    await openMode(page, "models");
    yield "models";
    await page.locator(".model-choices [aria-expanded]").click();
    yield "all tools of models";
    await page.locator(".model-tools .row-of select").selectOption("entropy");
    await page.locator(".headview .row-of button").nth(1).click();
    await page.locator(".headgrid [role=gridcell]").press("ArrowRight");
    await page.locator(".headview .row-of button").nth(1).click();
    await page.locator(".headview .segments button").nth(1).click();
    await page.locator(".headview .chip").nth(1).waitFor();
    await page.locator(".headview .tokens button").nth(2).click();
    yield "sorted heads, links of two";
    await page.locator(".headview .row-of button").nth(4).click();
    await page.locator(".model-tools .chip").waitFor();
    await page.locator(".dump-how summary").click();
    await computed(page);
    yield "a head switched off";
    await page.locator(".model-tools > button").click();
    await page.locator(".columns.two .column").nth(1).waitFor();
    await computed(page);
    yield "two sentences";
    await page.locator(".model-choices select").last().selectOption(SENTENCES[language].at(-1));
    await dropFile(page, "heads.json", JSON.stringify(DUMP));
    await page.locator(".model-top .note:not([hidden])").waitFor();
    yield "maps from a file";
}

/**
 * @param {object} page of openPage()
 * @param {{url: string}} stage
 * @param {string} language
 */
export async function* walk(page, stage, language) {
    const open = async (path, ready = settled) => {
        await page.goto("about:blank");
        await page.goto(stage.url + path);
        await ready(page);
    };
    for (const part of [opening, laboratory, debugging, story, models, trouble]) yield* part(page, open, stage, language);
}
