/**
 * story.mjs: a lesson is turned page by page, fits the window, is shared by its address, and can be a teacher's own.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { addressOf, dropFile, exported, inFolder, numberOf, opened, openPage, settled, tableOf, tabOf } from "../support.mjs";

const NAMES = ["hand", "masks", "cross"],
    LESSONS = NAMES.map((name) =>
    JSON.parse(readFileSync(new URL(`../../../server/web/lessons/${name}.json`, import.meta.url), "utf8")),
);

const drawn = (page) => page.waitForFunction(() => document.querySelector(".scene svg"));

/** The hand-made lesson, at a page. */
async function openStory(stage, options = {}) {
    const page = await openPage(stage, options);
    await tabOf(page, "story").click();
    await drawn(page);
    return page;
}

const said = (page, text) =>
    page.waitForFunction((wanted) => document.querySelector(".say")?.textContent === wanted, text);

/** The lesson that begins with a sentence; its page has the keys. */
async function chooseLesson(page, say, language) {
    const name = NAMES[LESSONS.findIndex(({ pages }) => pages[0].say === say)];
    if ((await page.locator(".story select").inputValue()) === name) return;
    await page.locator(".story select").selectOption(name);
    await said(page, say[language]);
    await page.locator(".turn").first().focus();
}

const wrote = (page, wanted) => page.waitForFunction((text) => document.querySelector(".story .worked").textContent.startsWith(text), wanted);

/** The sum of a cell is written, with this value. */
const ended = (page, cell, value) =>
    page.waitForFunction(
        ([named, wanted]) => {
            const written = document.querySelector(".story .worked").textContent;
            return written.split(" = ")[0].endsWith(named) && written.endsWith(wanted);
        },
        [cell, value],
    );

/** Pages of the hand-made lesson. */
const [Q_PAGE, GUESS_PAGE, SCALE_PAGE, WEIGHT_PAGE, CONTEXT_PAGE, HEADS_PAGE] = [1, 3, 4, 5, 6, 7];

/** Pages of the lesson on masks. */
const [NO_MASK_PAGE, CAUSAL_PAGE, HIDDEN_PAGE, MIX_PAGE, WINDOW_PAGE, PADDING_PAGE] = [1, 2, 3, 4, 5, 6];

/** Answers to a question, with a word that is wrong. */
async function guess(page) {
    if (await page.locator(".wordlist button").first().isVisible()) await page.locator(".wordlist button").nth(1).click();
}

/** The value of a written formula whose names are small, and the number after it. */
const readFormula = (page, place) =>
    page.locator(place).evaluate((worked) => {
        const copy = worked.cloneNode(true);
        for (const name of copy.querySelectorAll("small")) name.remove();
        const parts = copy.textContent.split(" = "),
            [sum, value] = parts.slice(-2);
        return { parts: parts.length, sum, value };
    });

/** "2 · 3 + exp(−1)" as a number. */
function valueOf(sum) {
    const plain = sum.replace(/−/g, "-").replace(/·/g, "*").replace(/,/g, ".").replace(/∞/g, "Infinity").replace(/exp/g, "Math.exp");
    assert.match(plain, /^[-+*/(). \dInfityMathexp]+$/, sum);
    return new Function(`return ${plain}`)();
}

function assertTrue({ sum, value }, what) {
    const [found, said] = [valueOf(sum), numberOf(value)];
    if (Number.isFinite(said)) assert.ok(Math.abs(found - said) <= 2e-3 * Math.max(Math.abs(said), 1e-3), `${what}: ${sum} = ${value}`);
    else assert.equal(found, said);
}

/** What people with each kind of colour blindness see (Machado, Oliveira and Fernandes, 2009), on linear RGB. */
const SIGHTS = {
    full: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, value, at) => sum + value * vector[at], 0));
const linearOf = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));

/** Coordinates of OKLab, in which equal distances look equal. */
function seenAs(hex, sight) {
    const rgb = times(sight, linearOf(hex)).map((c) => Math.min(1, Math.max(0, c)));
    const lms = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], rgb);
    return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], lms.map(Math.cbrt));
}

function contrastOf(one, other) {
    const [light, dark] = [one, other].map((hex) => times([[0.2126, 0.7152, 0.0722]], linearOf(hex))[0]).sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
}

const turnTo = async (page, lesson, at, language = "en") => {
    await page.locator(".turn").nth(at).click();
    await said(page, lesson.pages[at].say[language]);
};

export const cases = {
    "story: the lessons that come along have nine pages or less, names for columns and a guess, in three languages"() {
        assert.equal(LESSONS[0].pages.length, 9);
        for (const { title, features, request, pages } of LESSONS) {
            assert.ok(pages.length <= 9);
            assert.ok(pages.some(({ ask }) => ask), title.en);
            for (const text of [title, ...pages.flatMap(({ say, ask }) => (ask ? [say, ask] : [say]))]) {
                assert.deepEqual(Object.keys(text), ["en", "tr", "ru"]);
                assert.equal(new Set(Object.values(text)).size, 3);
            }
            for (const [kind, columns] of [["input", request.weights.query.weight.length], ["query", request.weights.query.weight[0].length], ["value", request.weights.value.weight[0].length]]) {
                assert.deepEqual(Object.keys(features[kind]), ["en", "tr", "ru"]);
                for (const names of Object.values(features[kind])) assert.equal(names.length, columns, `${title.en}: ${kind}`);
            }
        }
    },
    async "story: keys turn the pages, and every picture fits at every size, with lines beside the numbers"(stage) {
        for (const [width, height, locale, language] of [
            [390, 844, "tr-TR", "tr"],
            [1366, 768, "ru-RU", "ru"],
            [1440, 900, "en-GB", "en"],
            [1920, 1080, "en-GB", "en"],
        ]) {
            const page = await openStory(stage, { locale, viewport: { width, height } });
            for (const [at, { say }] of LESSONS.flatMap(({ pages }) => pages.map((one, at) => [at, one]))) {
                if (at === 0) await chooseLesson(page, say, language);
                await said(page, say[language]);
                await guess(page);
                await drawn(page);
                const { outside, struck, bottom, numbers } = await page.evaluate(() => {
                    const scene = document.querySelector(".scene").getBoundingClientRect(),
                        boxes = Array.from(document.querySelectorAll(".scene text:not(.term)"), (text) => ({ name: text.textContent, ...text.getBoundingClientRect().toJSON() })),
                        numbers = Array.from(document.querySelectorAll(".plate-number"), (text) => text.getBoundingClientRect());
                    const outside = boxes.filter(({ top, bottom, left, right }) => top < scene.top - 1 || bottom > scene.bottom + 1 || left < scene.left - 1 || right > scene.right + 1);
                    const origin = document.querySelector(".scene svg").getBoundingClientRect();
                    const points = Array.from(document.querySelectorAll(".beam"), (beam) =>
                        Array.from({ length: 60 }, (_, n) => beam.getPointAtLength((n / 59) * beam.getTotalLength())),
                    ).flat();
                    const isOn = ({ x, y }) => numbers.some(({ left, right, top, bottom }) => x + origin.left > left && x + origin.left < right && y + origin.top > top + 2 && y + origin.top < bottom - 2);
                    return { outside: outside.map(({ name }) => name), struck: points.filter(isOn).length, bottom: document.querySelector(".story").getBoundingClientRect().bottom, numbers: numbers.length };
                });
                const what = `${width}: ${say[language]}`;
                assert.deepEqual(outside, [], what);
                assert.equal(struck, 0, what);
                assert.ok(numbers > 0, what);
                if (width > 960) assert.ok(bottom <= height, what);
                await page.keyboard.press("ArrowRight");
            }
            await page.keyboard.press("Home");
            await said(page, LESSONS.at(-1).pages[0].say[language]);
            await page.finish();
        }
    },
    async "story: a cell is a row and a column, written out with the words' names"(stage) {
        const page = await openStory(stage);
        await wrote(page, "it = 1 · tired + 1 · asks");
        await turnTo(page, LESSONS[0], Q_PAGE);
        await wrote(page, "Q[it, living] = 1 · 3 (tired) + 1 · 0 (asks) + 0 · 0 (living) = 3");
        assert.equal(await page.locator(".beam").count(), 2);
        await page.locator(".result rect").first().click();
        await wrote(page, "Q[Animal, living] = ");
        await page.locator(".scene").focus();
        await page.keyboard.press("ArrowRight");
        await wrote(page, "Q[Animal, place] = ");
        await said(page, LESSONS[0].pages[Q_PAGE].say.en);
        await page.finish();
    },
    async "story: the last page leads to the next lesson, and no other page does"(stage) {
        const page = await openStory(stage),
            after = page.getByRole("button", { name: /^Next lesson/ });
        for (const [at, lesson] of LESSONS.entries()) {
            assert.equal(await after.isVisible(), false);
            await turnTo(page, lesson, lesson.pages.length - 1);
            await after.click();
            await said(page, LESSONS[(at + 1) % LESSONS.length].pages[0].say.en);
        }
        await page.finish();
    },
    async "story: a guess comes before the answer, for each last word"(stage) {
        const page = await openStory(stage);
        await turnTo(page, LESSONS[0], GUESS_PAGE);
        await page.locator(".wordlist button", { hasText: "avoids" }).waitFor();
        const untold = () => page.locator(".plate-number", { hasText: "?" }).count();
        assert.equal(await untold(), 6);
        assert.equal(await page.locator(".story .worked").isVisible(), false);
        await guess(page);
        await wrote(page, "score[it, Animal] = 3 · 2 (living) + 0 · 0 (place) = 6");
        assert.equal(await untold(), 0);
        assert.equal(await page.locator(".wordlist .best").textContent(), "Animal");
        assert.match(await page.locator(".reply").textContent(), /^The largest number of the row is that of “Animal”/);
        await page.locator(".story-head .segments button", { hasText: "wide" }).click();
        await page.waitForFunction(() => document.querySelector(".reply").textContent === "");
        await page.locator(".wordlist button", { hasText: "street" }).click();
        await wrote(page, "score[it, street] = 3 · 2 (place) + 0 · 0 (living) = 6");
        assert.match(await page.locator(".reply").textContent(), /^Right/);
        await turnTo(page, LESSONS[0], WEIGHT_PAGE);
        await wrote(page, "weight[it, street] = ");
        await page.finish();
    },
    async "story: a mask takes a word away, a guess comes before its answer, and hidden words add nothing"(stage) {
        for (const [locale, language, [sleeps, cat, dog, barks, small]] of [
            ["en-GB", "en", ["sleeps", "cat", "dog", "barks", "small"]],
            ["tr-TR", "tr", ["uyuyor", "kedi", "köpek", "havlıyor", "küçük"]],
            ["ru-RU", "ru", ["спит", "кошка", "собака", "лает", "малое"]],
        ]) {
            const page = await openStory(stage, { locale });
            await page.locator(".story select").selectOption("masks");
            await said(page, LESSONS[1].pages[0].say[language]);
            const comma = (text) => (language === "en" ? text : text.replaceAll(".", ","));
            await turnTo(page, LESSONS[1], NO_MASK_PAGE, language);
            await ended(page, `[${sleeps}, ${dog}]`, comma(" = 0.48945"));
            await turnTo(page, LESSONS[1], CAUSAL_PAGE, language);
            await page.locator(".wordlist button", { hasText: dog }).click();
            await ended(page, `[${sleeps}, ${cat}]`, comma("4.243 + 0 = 4.243"));
            assert.equal(await page.locator(".wordlist .best").textContent(), cat);
            await turnTo(page, LESSONS[1], HIDDEN_PAGE, language);
            await ended(page, `[${sleeps}, ${dog}]`, comma("exp(−∞ − 4.242641) / 1.028739 = 0"));
            await turnTo(page, LESSONS[1], MIX_PAGE, language);
            await ended(page, `[${sleeps}, ${small}]`, comma(" = 0.9721"));
            assert.doesNotMatch(await page.locator(".story .worked").textContent(), new RegExp(`\\((${dog}|${barks})\\)`));
            await turnTo(page, LESSONS[1], WINDOW_PAGE, language);
            await page.locator(".wordlist button", { hasText: dog }).click();
            await ended(page, `[${barks}, ${dog}]`, comma(" = 0.985834"));
            await page.finish();
        }
    },
    async "story: every number of a picture is that of the answer, hidden ones are dashes, and every formula gives the value after it"(stage) {
        const page = await openStory(stage);
        let outputs = null,
            dashes = 0;
        page.on("response", async (response) => {
            if (response.request().method() === "POST") outputs = (await response.json().catch(() => null))?.outputs ?? outputs;
        });
        for (const [n, lesson] of LESSONS.entries()) {
            await page.locator(".story select").selectOption(NAMES[n]);
            for (const [at, { step, head = 0, row = 3, say, ask }] of lesson.pages.entries()) {
                outputs = null;
                await page.locator(".turn").nth(at).click();
                await said(page, say.en);
                if (ask) {
                    await page.locator(".wordlist button").nth(1).click();
                    await page.locator(".reply").filter({ hasText: /./ }).waitFor();
                }
                await page.waitForTimeout(150);
                if (!step.startsWith("in.")) assertTrue(await readFormula(page, ".story .worked"), say.en);
                const id = step === "heads" ? "attention" : step;
                if (!outputs?.[id]) continue;
                const tensor = outputs[id],
                    matrix = tensor[0][0][0]?.length ? tensor[0][head] : tensor[0][0].length ? tensor[0] : tensor,
                    wanted = (step === "output" && lesson === LESSONS[0] ? [matrix[row]] : matrix).flat(),
                    shown = (await page.locator(".scene .plate.result").last().locator(".plate-number").allTextContents()).slice(-wanted.length);
                const hidden = outputs.masked?.[0][head].flat().map((score) => !Number.isFinite(score)) ?? [];
                assert.equal(shown.length, wanted.length, say.en);
                shown.forEach((text, cell) => {
                    const isOut = hidden[cell] && ["attention", "masked"].includes(id);
                    dashes += Number(isOut);
                    if (isOut) assert.equal(text, id === "masked" ? "−∞" : "–", say.en);
                    else assert.ok(Math.abs(numberOf(text) - wanted[cell]) <= 0.0051 * Math.max(1, Math.abs(wanted[cell])), `${say.en}: ${text} for ${wanted[cell]}`);
                });
            }
        }
        assert.equal(dashes, 10 + 10 + 16 + 10 + 12); // causal twice, window, padding, documents
        await page.finish();
    },
    async "story: in the laboratory, too, every formula gives the value after it"(stage) {
        const page = await openPage(stage, {}, addressOf({ preset: "sentence" }));
        let found = 0;
        for (const button of await page.locator(".strip button").all()) {
            await button.click();
            await page.waitForTimeout(100);
            if (!(await page.locator(".explain .worked").isVisible())) continue;
            found++;
            const written = await readFormula(page, ".explain .worked");
            assertTrue(written, "laboratory");
            const heading = await page.locator(".explain .pairing b").textContent();
            assert.ok(Math.abs(numberOf(heading) - numberOf(written.value)) <= 1e-3 * Math.abs(numberOf(heading)) + 1e-9, `${heading} and ${written.value}`);
        }
        assert.ok(found >= 7, `${found} formulas`);
        await page.finish();
    },
    "story: Q, K and V can be read on the page, and told apart by everybody"() {
        const style = readFileSync(new URL("../../../server/web/maps/style.css", import.meta.url), "utf8");
        const colour = (name, at) => new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(style)[at + 1];
        for (const at of [0, 1]) {
            const colours = ["q", "k", "v"].map((name) => colour(name, at));
            for (const one of colours) for (const ground of ["ground", "panel"]) assert.ok(contrastOf(one, colour(ground, at)) >= 4.5, `${one} on ${ground}`);
            for (const [kind, sight] of Object.entries(SIGHTS))
                for (const [a, b] of [[0, 1], [0, 2], [1, 2]]) {
                    const [one, other] = [colours[a], colours[b]].map((hex) => seenAs(hex, sight));
                    assert.ok(Math.hypot(...one.map((value, n) => value - other[n])) >= 0.18, `${colours[a]} and ${colours[b]}: ${kind}`);
                }
        }
    },
    async "story: Q, K and V have one colour each, in the story, the strip and the formulas, by day and by night"(stage) {
        for (const colorScheme of ["light", "dark"]) {
            const page = await openStory(stage, { colorScheme });
            const wanted = await page.evaluate(() => ["q", "k", "v"].map((name) => {
                const probe = document.body.appendChild(document.createElement("i"));
                probe.style.color = `var(--${name})`;
                const { color } = getComputedStyle(probe);
                probe.remove();
                return color;
            }));
            assert.equal(new Set(wanted).size, 3);
            const colours = (place, property = "color") => page.locator(place).evaluateAll((all, name) => all.map((one) => getComputedStyle(one)[name]), property);
            await turnTo(page, LESSONS[0], GUESS_PAGE);
            await guess(page);
            await wrote(page, "score[");
            assert.deepEqual(await colours(".plate-name .of-q", "fill"), [wanted[0], wanted[0]]);
            assert.deepEqual(await colours(".plate-name .of-k", "fill"), [wanted[1], wanted[1]]);
            assert.deepEqual(new Set(await colours(".story .formula .of-q")), new Set([wanted[0]]));
            assert.deepEqual(new Set(await colours(".story .worked .of-k")), new Set([wanted[1]]));
            await tabOf(page, "lab").click();
            await page.locator(".strip .of-v").first().waitFor();
            for (const [n, name] of ["q", "k", "v"].entries()) assert.deepEqual(new Set(await colours(`.strip .of-${name}`)), new Set([wanted[n]]));
            await page.finish();
        }
        await inFolder(async (folder) => {
            const page = await openPage(stage, {}, addressOf({ preset: "three", view: { step: "q" } }));
            assert.match(readFileSync(await exported(page, "SVG", folder), "utf8"), /<tspan fill="[^"]+">Q<\/tspan>/);
            await page.finish();
        });
    },
    async "story: a value is named by its step, and a mix of values sums over the words"(stage) {
        for (const [locale, language, [it, animal, living], [scaled, weight, context]] of [
            ["en-GB", "en", ["it", "Animal", "living"], ["scaled", "weight", "context"]],
            ["tr-TR", "tr", ["o", "Hayvan", "canlı"], ["ölçekli", "ağırlık", "bağlam"]],
            ["ru-RU", "ru", ["оно", "Животное", "живое"], ["масштабированная", "вес", "контекст"]],
        ]) {
            const page = await openStory(stage, { locale });
            for (const [at, name] of [[SCALE_PAGE, scaled], [WEIGHT_PAGE, weight]]) {
                await turnTo(page, LESSONS[0], at, language);
                await wrote(page, `${name}[${it}, ${animal}] = `);
            }
            await turnTo(page, LESSONS[0], CONTEXT_PAGE, language);
            await wrote(page, `${context}[${it}, ${living}] = `);
            assert.equal(await page.locator(".story .formula").textContent(), `${context}[${it}, ${living}] = Σ_j A[${it}, j] · V[j, ${living}]`);
            await tabOf(page, "lab").click();
            await page.locator(".stage h2", { hasText: "A V" }).waitFor();
            assert.equal(await page.locator(".explain .formula").textContent(), `${context}[${it}, d0] = Σ_j A[${it}, j] · V[j, d0]`);
            await page.finish();
        }
    },
    async "story: in formulas, tables and names of steps no word stays English"(stage) {
        const english = /\b(attention|bias|context|dropped|head|input|key|mask(?:ed)?|mean|output|projected|residual|scaled?|score|sink|softcap|value|variance|weight)\b/;
        for (const [locale, language] of [["tr-TR", "tr"], ["ru-RU", "ru"]]) {
            const page = await openStory(stage, { locale });
            const isWhole = async (places, what) => {
                for (const text of await page.locator(places).allTextContents()) assert.doesNotMatch(text, english, `${what}: ${text}`);
            };
            for (const [n, { pages }] of LESSONS.entries()) {
                await page.locator(".story select").selectOption(NAMES[n]);
                for (const [at, { say }] of pages.entries()) {
                    await page.locator(".turn").nth(at).click();
                    await said(page, say[language]);
                    await guess(page);
                    await drawn(page);
                    await isWhole(".story .worked, .story .formula, .plate-name, .plate-row", say[language]);
                }
            }
            await page.finish();
            const options = { num_heads: 1, residual: true, softcap: 5, sinks: [0.5], norm: { type: "layer", position: "post" } },
                weight = [[1, 0], [0, 1]],
                biased = { weight, bias: [1, 2] },
                request = { inputs: { query: weight }, weights: { query: biased, key: { weight }, value: { weight }, output: biased }, options, masks: { causal: true } },
                lab = await openPage(stage, { locale }, addressOf({ endpoint: "multi-head-attention", request }));
            const buttons = await lab.locator(".strip button").all();
            for (const button of buttons) {
                await button.click();
                await settled(lab);
                for (const text of await lab.locator(".strip .name, .stage h2, .explain").allTextContents()) assert.doesNotMatch(text, english, text);
            }
            assert.ok(buttons.length >= 14);
            await lab.finish();
        }
    },
    async "story: on the page of two heads the marked row is the one where they look elsewhere"(stage) {
        const page = await openStory(stage);
        await turnTo(page, LESSONS[0], HEADS_PAGE);
        await wrote(page, "weight[it, tired] = ");
        await page.getByRole("button", { name: "Open in the laboratory" }).click();
        await page.locator(".stage h2", { hasText: "softmax" }).waitFor();
        const strongest = [];
        for (const head of [0, 1]) {
            await page.locator(".heads button").nth(head).click();
            await page.locator(".stage h2", { hasText: `head ${head}` }).waitFor();
            const row = (await tableOf(page))[3].map((text) => (text === "–" ? -1 : numberOf(text)));
            strongest.push(row.indexOf(Math.max(...row)));
        }
        assert.deepEqual(strongest, [0, 5]);
        await page.finish();
    },
    async "story: padding is [PAD], and two documents are two sentences"(stage) {
        for (const [locale, language, first] of [
            ["en-GB", "en", "Black"],
            ["tr-TR", "tr", "Kara"],
            ["ru-RU", "ru", "Чёрная"],
        ]) {
            const page = await openStory(stage, { locale });
            await page.locator(".story select").selectOption("masks");
            await said(page, LESSONS[1].pages[0].say[language]);
            const columns = () => page.locator(".scene .plate.result .plate-col").allTextContents();
            for (const [at, { tokens }] of LESSONS[1].pages.entries()) {
                if (!tokens) continue;
                await turnTo(page, LESSONS[1], at, language);
                const wanted = tokens.query[language];
                assert.equal(wanted[0], first);
                await page.waitForFunction(
                    (last) => Array.from(document.querySelectorAll(".scene .plate.result .plate-col")).at(-1)?.textContent === last,
                    wanted.at(-1),
                );
                assert.deepEqual(await columns(), wanted);
            }
            assert.deepEqual(LESSONS[1].pages[PADDING_PAGE].tokens.query[language].slice(3), ["[PAD]", "[PAD]"]);
            await page.finish();
        }
    },
    async "story: the scale of a long row moves its bars, and a button divides again"(stage) {
        const page = await openStory(stage);
        await turnTo(page, LESSONS[0], SCALE_PAGE);
        assert.equal(LESSONS[0].pages[SCALE_PAGE].request.inputs.key[0].length, 64);
        const bars = async (wanted) => {
            await page.waitForFunction((text) => document.querySelector(".story .row-bars button > :last-child")?.textContent === text, wanted[0]);
            assert.deepEqual(await page.locator(".story .row-bars button > :last-child").allTextContents(), wanted);
        };
        await bars(["0.53", "0.22", "0.12", "0.04", "0.01", "0.08"]);
        await page.locator(".scale input").fill("1");
        await bars(["1.00", "0.00", "0.00", "0.00", "0.00", "0.00"]);
        await wrote(page, "scaled[it, Animal] = 24 · 1 = 24");
        await page.locator(".scale button").click();
        await bars(["0.53", "0.22", "0.12", "0.04", "0.01", "0.08"]);
        await page.finish();
    },
    async "story: on a phone the slider of the scale is on the first screen"(stage) {
        const page = await openStory(stage, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
        await turnTo(page, LESSONS[0], SCALE_PAGE);
        await page.locator(".scale").waitFor();
        const [{ y, height }, player] = await Promise.all([".scale", ".player"].map((one) => page.locator(one).boundingBox()));
        assert.ok(y > 0 && y + height <= player.y, `${y + height} of ${player.y}`);
        await page.finish();
    },
    async "story: its address brings back the page, the cell and the lesson"(stage) {
        const page = await openStory(stage);
        await page.locator(".story select").selectOption("masks");
        await turnTo(page, LESSONS[1], 1);
        await page.waitForFunction(() => location.hash);
        await page.waitForTimeout(600);
        const other = await openPage(stage, {}, page.url(), drawn);
        await said(other, LESSONS[1].pages[1].say.en);
        assert.equal(await other.locator(".story select").inputValue(), "masks");
        assert.equal(await other.locator(".count").textContent(), "2 / 8");
        await other.finish();
        await page.finish();
    },
    async "story: a teacher's own lesson opens by drop, and says which page is wrong"(stage) {
        const page = await openPage(stage),
            lesson = {
                title: "Mine",
                request: { inputs: { query: [[1, 0], [0, 1]] } },
                endpoint: "attention",
                pages: [{ say: "Only this", step: "attention", row: 1 }],
            };
        await dropFile(page, "mine.json", JSON.stringify(lesson));
        await said(page, "Only this");
        assert.equal(await page.locator(".count").textContent(), "1 / 1");
        await page.waitForFunction(() => location.hash);
        await page.waitForTimeout(600);
        const other = await openPage(stage, {}, page.url(), drawn);
        await said(other, "Only this");
        await other.finish();
        await dropFile(page, "wrong.json", JSON.stringify({ ...lesson, pages: [...lesson.pages, { say: 7 }] }));
        await page.locator(".notice", { hasText: "page 2 of the lesson" }).waitFor();
        await page.finish();
        for (const [members, why] of [
            [{ features: { input: [1] } }, "the features of a lesson"],
            [{ variants: [{ inputs: {} }] }, "at most 4 variants"],
        ]) {
            const other = await openPage(stage);
            await dropFile(other, "wrong.json", JSON.stringify({ ...lesson, ...members }));
            await other.locator(".notice", { hasText: why }).waitFor();
            await other.finish();
        }
        const hostile = await openPage(stage, {}, addressOf({ preset: "three", lesson: { pages: [1] } }), opened);
        assert.match(await hostile.locator(".notice").textContent(), /a lesson needs/);
        await hostile.finish();
    },
    async "story: presenting hides the bar and enlarges the names, and Escape brings it back"(stage) {
        const page = await openStory(stage, { viewport: { width: 1920, height: 1080 } });
        const size = () => page.locator(".plate-row").first().evaluate((label) => parseFloat(getComputedStyle(label).fontSize));
        const before = await size();
        await page.keyboard.press("p");
        await page.waitForFunction(() => !document.querySelector(".bar nav").checkVisibility());
        await page.waitForFunction((least) => parseFloat(getComputedStyle(document.querySelector(".plate-row")).fontSize) > least, 1.5 * before);
        assert.equal(await page.getByRole("button", { name: "Save as a page" }).isVisible(), false);
        await page.getByRole("button", { name: "Present" }).click();
        await page.waitForFunction(() => document.querySelector(".bar nav").checkVisibility());
        await page.finish();
    },
    async "story: terms fly into their sum, and motion stops where it is not wanted"(stage) {
        for (const [reducedMotion, names] of [
            ["reduce", ["none", "none"]],
            ["no-preference", ["beam", "fly"]],
        ]) {
            const page = await openStory(stage, { reducedMotion });
            await turnTo(page, LESSONS[0], Q_PAGE);
            await page.waitForFunction((wanted) => {
                const names = [".beam", ".term"].map((part) => document.querySelector(part)).map((one) => one && getComputedStyle(one).animationName);
                return names.join() === wanted;
            }, names.join());
            await page.finish();
        }
    },
    async "story: a lesson saved as a page opens from disk, at its page, and turns"(stage) {
        await inFolder(async (folder) => {
            const page = await openStory(stage);
            await turnTo(page, LESSONS[0], 3);
            const [file] = await Promise.all([
                page.waitForEvent("download"),
                page.getByRole("button", { name: "Save as a page" }).click(),
            ]);
            const path = join(folder, file.suggestedFilename());
            await file.saveAs(path);
            await page.finish();
            const copy = await openPage(stage, {}, pathToFileURL(path).href, drawn);
            await said(copy, LESSONS[0].pages[3].say.en);
            for (const [at, { say }] of LESSONS[0].pages.entries()) {
                await copy.locator(".turn").nth(at).click();
                await said(copy, say.en);
                assert.equal(await copy.locator(".notice").isVisible(), false);
            }
            await copy.finish();
        });
    },
};
