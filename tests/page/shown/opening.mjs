/**
 * opening.mjs: what a first visitor sees: a sentence, and where a head that has learned something looks in it; and one
 * click behind it, the laboratory with all of its map.
 */
import assert from "node:assert/strict";
import { answerTo, inLaboratory, numberOf, opened, openPage, someOf, tabOf } from "../support.mjs";

const LOCALES = {
    "en-GB": { word: "it", noun: "animal", other: "street", purpose: /^Attention, step by step: .*each word/, yours: "Your sentence" },
    "tr-TR": { word: "o", noun: "Hayvan", other: "caddeyi", purpose: /^Adım adım dikkat: .*her sözcük/, yours: "Kendi cümleniz" },
    "ru-RU": { word: "оно", noun: "Животное", other: "шоссе", purpose: /^Внимание шаг за шагом: .*каждое слово/, yours: "Своё предложение" },
};

/** The laptop, the desktop, and their themes. */
const WINDOWS = [
    { width: 1366, height: 768 },
    { width: 1440, height: 900 },
    { width: 1536, height: 864 },
    { width: 1920, height: 1080 },
];
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/** Controls that a visitor meets before a click, outside the foot. Words are one: a listbox. */
const CONTROLS_MOST = 12;

const open = (stage, options) => openPage(stage, options, "/", opened);
const openLab = (stage, options) => openPage(stage, options, "/", inLaboratory);

const readout = (page) => page.locator(".readout").textContent();
const said = (page) => page.locator(".answer").textContent();

/** Words with their bars and numbers, as they are drawn. */
const wordsOf = (page) =>
    page.locator(".word").evaluateAll((all) =>
        all.map((word) => ({
            text: word.querySelector("bdi").textContent,
            isChosen: word.getAttribute("aria-selected") === "true",
            isUnknown: getComputedStyle(word.querySelector(".text")).textDecorationLine === "underline",
            bar: parseFloat(word.querySelector("i").style.height) / 100,
            value: word.querySelector(".value").textContent,
        })),
    );

/** The links, thickest first: the words at their two ends, by where they are drawn, and their width. */
const linksOf = (page) =>
    page.evaluate(() => {
        const picture = document.querySelector(".picture").getBoundingClientRect(),
            words = Array.from(document.querySelectorAll(".word"), (word) => ({ name: word.querySelector("bdi").textContent, box: word.querySelector(".text").getBoundingClientRect() }));
        const wordAt = (x, y) => words.find(({ box }) => x + picture.left > box.left && x + picture.left < box.right && Math.abs(y + picture.top - box.top) < 4)?.name;
        return Array.from(document.querySelectorAll(".arcs path"))
            .filter((path) => path.style.strokeOpacity > 0)
            .map((path) => {
                const numbers = path.getAttribute("d").match(/-?[\d.]+/g).map(Number);
                return { from: wordAt(...numbers.slice(0, 2)), to: wordAt(...numbers.slice(-2)), width: parseFloat(path.style.strokeWidth) };
            });
    });

/** Where the drawn line ends: not what it will be, but what is painted now. */
const endOfLine = (page) =>
    page.evaluate(() => {
        const path = document.querySelector(".arcs path"),
            drawn = getComputedStyle(path).getPropertyValue("d").match(/-?[\d.]+/g).map(Number);
        return drawn.at(-2);
    });

/** The weights of the head, of the server. */
async function headOf(stage, text, layer = 3, model = "demo") {
    const body = JSON.stringify({ inputs: { text }, options: { return: ["attention"], layers: [layer], heads: [0] } });
    const response = await fetch(`${stage.url}/v1/models/${model}/attention`, { method: "POST", headers: { "Content-Type": "application/json" }, body }),
        { outputs, tokens } = await response.json();
    return { map: outputs.attention[0][0][0], pieces: tokens.text[0] };
}

async function write(page, text, yours = "Your sentence") {
    const box = page.locator(".own input");
    if (!(await box.isVisible())) await page.getByRole("button", { name: yours }).click();
    await box.fill(text);
    await page.waitForFunction((wanted) => document.querySelector(".sentence").textContent.length && Array.from(document.querySelectorAll(".word:not(.special) bdi"), (word) => word.textContent).join("") === wanted.replace(/\s/g, ""), text);
}

export const cases = {
    ...Object.fromEntries(
        Object.entries(LOCALES).map(([locale, { word, noun, other, purpose }]) => [
            `opening: "${word}" is linked to "${noun}", and the switch moves the line to "${other}"`,
            async (stage) => {
                const page = await open(stage, { locale });
                assert.match(await page.locator(".purpose").textContent(), purpose);
                assert.match(await page.locator(".says h2").textContent(), /3\D+0 .*demo|demo.* 3\D+0 /);
                assert.deepEqual((await linksOf(page)).map(({ from, to }) => [from, to]), [[word, noun]]);
                assert.match(await said(page), new RegExp(`[“«]${word}[”»].*[“«]${noun}[”»]`));
                assert.equal((await page.locator(".swap [aria-pressed=true]").textContent()).length > 0, true);
                await page.locator(".swap [aria-pressed=false]").click();
                await page.waitForFunction((text) => document.querySelector(".answer").textContent.includes(text), other);
                const [link, ...others] = await linksOf(page);
                assert.deepEqual([link.from, link.to, others], [word, other, []]);
                await page.finish();
            },
        ]),
    ),
    async "opening: bars, numbers and lines are the server's weights, of every word"(stage) {
        const page = await open(stage),
            { map, pieces } = await headOf(stage, "The animal did not cross the street because it was too tired");
        const list = page.locator(".sentence");
        await list.press("Home");
        for (const [i, row] of map.entries()) {
            const words = await wordsOf(page);
            assert.deepEqual(words.map(({ text }) => text.toLowerCase()), pieces.map((piece) => piece.toLowerCase()));
            assert.ok(words[i].isChosen);
            words.forEach(({ bar, value }, j) => {
                assert.ok(Math.abs(bar - row[j]) < 1e-6, `${i} ${j}: ${bar} for ${row[j]}`);
                assert.equal(value, row[j].toFixed(2), `${i} ${j}`);
            });
            const wanted = row.map((weight, j) => ({ weight, to: words[j].text })).filter(({ weight }) => weight >= 0.02).sort((a, b) => b.weight - a.weight);
            const links = await linksOf(page);
            assert.deepEqual(links.map(({ to }) => to), wanted.map(({ to }) => to), pieces[i]);
            links.forEach(({ width }, at) => assert.ok(Math.abs(width - 1 - 7 * wanted[at].weight) < 1e-3, `${i}: ${width}`));
            await list.press("ArrowRight");
        }
        await page.finish();
    },
    async "opening: a word of several pieces gives and takes what its pieces do"(stage) {
        const page = await open(stage, { locale: "tr-TR" }),
            { map, pieces } = await headOf(stage, "Hayvan caddeyi geçmedi çünkü o çok yorgundu");
        assert.deepEqual(pieces.slice(2, 4), ["cadde", "##yi"]);
        await page.locator(".sentence").press("Home");
        const row = map[0],
            words = await wordsOf(page);
        assert.deepEqual(words.map(({ text }) => text), ["[CLS]", "Hayvan", "caddeyi", "geçmedi", "çünkü", "o", "çok", "yorgundu", "[SEP]"]);
        assert.ok(Math.abs(words[2].bar - row[2] - row[3]) < 1e-6);
        await page.locator(".word", { hasText: "caddeyi" }).click();
        const [bar] = (await wordsOf(page)).map((one) => one.bar);
        assert.ok(Math.abs(bar - (map[2][0] + map[3][0]) / 2) < 1e-6, `${bar}`);
        await page.finish();
    },
    async "opening: the line moves once from the pronoun to the noun, and to the other noun by the switch"(stage) {
        const page = await open(stage, { reducedMotion: "no-preference" });
        await page.waitForFunction(() => document.querySelector(".arcs.drawing path")?.getAnimations().length > 0);
        await page.waitForFunction(() => !document.querySelector(".arcs.drawing"));
        const from = await endOfLine(page);
        await page.evaluate(() => document.querySelector(".arcs path").addEventListener("transitionrun", ({ propertyName }) => ((window.ran ??= []).push(propertyName))));
        await page.getByRole("button", { name: "wide" }).click();
        await page.waitForFunction(() => window.ran?.includes("d"));
        await page.waitForFunction(() => document.querySelector(".arcs path").getAnimations().length === 0);
        assert.ok((await endOfLine(page)) > from + 100);
        await page.finish();
    },
    async "opening: with reduced motion the line is there at once, and jumps"(stage) {
        const page = await open(stage, { reducedMotion: "reduce" }),
            still = () => page.evaluate(() => document.getAnimations().length);
        assert.equal(await still(), 0);
        const from = await endOfLine(page);
        await page.getByRole("button", { name: "wide" }).click();
        await page.waitForFunction(() => document.querySelector(".answer").textContent.includes("street"));
        assert.equal(await still(), 0);
        assert.ok((await endOfLine(page)) > from + 100);
        await page.finish();
    },
    async "opening: on a phone the first screen has the sentence, the links and the switch"(stage) {
        for (const locale of Object.keys(LOCALES)) {
            const page = await open(stage, { ...PHONE, locale }),
                arc = await page.locator(".arcs path").first().boundingBox();
            const ends = await page.locator(".word, .swap").evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ bottom, right }) => [bottom, right]));
            for (const [bottom, right] of ends) assert.ok(bottom <= 844 && right <= 390, `${locale}: ${bottom}, ${right}`);
            assert.ok(arc.height > 20 && arc.y > 0 && arc.y + arc.height < 844, locale);
            const { y, height } = await page.locator(".ways button").last().boundingBox();
            assert.ok(y + height <= 844, `${locale}: the third button ends at ${y + height}`);
            const crossed = await page.evaluate(() => {
                const [path] = document.querySelectorAll(".arcs path"),
                    from = document.querySelector(".picture").getBoundingClientRect(),
                    length = path.getTotalLength(),
                    points = Array.from({ length: 100 }, (_, n) => path.getPointAtLength((n * length) / 99)).map(({ x, y: down }) => ({ x: from.left + x, y: from.top + down }));
                const isIn = ({ left, right, top, bottom }) => points.some(({ x, y: down }) => x > left && x < right && down > top + 1 && down < bottom - 1);
                return Array.from(document.querySelectorAll(".word .text, .word .value")).filter((one) => isIn(one.getBoundingClientRect())).map((one) => one.textContent);
            });
            assert.deepEqual(crossed, [], locale);
            await page.finish();
        }
    },
    async "opening: a word with a full stop or a comma has its number"(stage) {
        const page = await open(stage, { locale: "ru-RU" }),
            shown = () => page.locator(".word").evaluateAll((all) => all.filter((word) => getComputedStyle(word.querySelector(".value")).visibility === "visible").map((word) => word.querySelector("bdi").textContent));
        assert.deepEqual(await shown(), ["[CLS]", "Животное", "не", "перешло", "шоссе", "потому", "что", "оно", "было", "слишком", "усталым", "[SEP]"]);
        await page.finish();
    },
    async "opening: the field for one's own sentence shows all of the first one, and its button looks pressed"(stage) {
        for (const [width, locale] of someOf([[1366, "ru-RU"], [1440, "en-GB"], [1920, "tr-TR"]], 2)) {
            const page = await open(stage, { locale, viewport: { width, height: 900 } }),
                own = page.getByRole("button", { name: LOCALES[locale].yours }),
                ground = () => own.evaluate((one) => getComputedStyle(one).backgroundColor);
            const before = await ground();
            await own.click();
            await page.mouse.move(0, 0);
            assert.notEqual(await ground(), before);
            const [inside, box] = await page.locator(".own input").evaluate((one) => [one.scrollWidth, one.clientWidth]);
            assert.ok(inside <= box, `${locale} ${width}: ${inside} in ${box}`);
            await page.finish();
        }
    },
    async "opening: on a laptop all of it is on the first screen, and the sentence on one line"(stage) {
        for (const locale of Object.keys(LOCALES))
            for (const viewport of WINDOWS) {
                const page = await open(stage, { locale, viewport }),
                    where = `${locale} ${viewport.width}`;
                const tops = await page.locator(".word").evaluateAll((all) => all.map((word) => word.offsetTop));
                assert.equal(new Set(tops).size, 1, where);
                const { y, height } = await page.locator(".ways").boundingBox();
                assert.ok(y + height <= viewport.height, `${where}: ${y + height}`);
                await page.finish();
            }
    },
    async "opening: it has at most a dozen controls, and asks for at most four files of at most 90 KB together"(stage) {
        for (const locale of Object.keys(LOCALES)) {
            const page = await open(stage, { locale });
            const controls = page.locator(":is(button, select, input, textarea, summary, [role=listbox], [role=slider]):visible");
            const found = await controls.evaluateAll((all) => all.filter((one) => !one.closest(".foot")).map((one) => one.getAttribute("aria-label") ?? one.textContent));
            assert.ok(found.length <= CONTROLS_MOST, found.join(" | "));
            await page.waitForTimeout(300);
            assert.ok(page.asked.length <= 4, page.asked.join(", "));
            const bytes = await page.evaluate(() => ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0));
            assert.ok(bytes <= 90 * 1024, `${locale}: ${bytes} bytes`);
            await page.finish();
        }
    },
    async "opening: words that the model does not know are underlined, and words that it knows are offered"(stage) {
        const page = await open(stage);
        assert.equal(await page.locator(".unknowns").isVisible(), false);
        await write(page, "The anmal did not cross the street because it was too exhausted");
        await page.getByRole("button", { name: "demo", exact: true }).click();
        await page.locator(".word.unknown").first().waitFor();
        const unknown = (await wordsOf(page)).filter(({ isUnknown }) => isUnknown).map(({ text }) => text);
        assert.deepEqual(unknown, ["anmal", "exhausted"]);
        assert.match(await page.locator(".unknowns").textContent(), /does not know the underlined words/);
        assert.match(await page.getByRole("option", { name: /anmal/ }).textContent(), /unknown to the model/);
        const offers = page.locator(".unknowns li");
        await offers.first().waitFor();
        assert.equal(await offers.count(), 1, "no word is spelled like exhausted");
        assert.deepEqual(await offers.locator("bdi:first-of-type").first().textContent(), "anmal");
        for (const offer of await offers.locator("button").allTextContents()) {
            const { pieces } = await headOf(stage, offer);
            assert.equal(pieces.length, 3, `${offer} is one word of the vocabulary`);
        }
        assert.equal(await offers.first().locator("button").first().textContent(), "animal");
        await offers.first().getByRole("button", { name: "animal" }).click();
        await page.waitForFunction(() => document.querySelectorAll(".word.unknown").length === 1);
        assert.match(await page.locator(".own input").inputValue(), /^The animal did/);
        await page.getByRole("button", { name: "Back to the first sentence" }).click();
        await page.getByRole("button", { name: "wide" }).waitFor();
        assert.equal(await page.locator(".unknowns").isVisible(), false);
        await page.finish();
    },
    async "opening: a sentence with other words is read by the language model, by the head that one chooses"(stage) {
        const page = await open(stage),
            text = "Ağaçlar uyur, щётка спит; 小さな犬 sleeps. The oak sleeps; ağaçlar uyur",
            written = [/^<\|endoftext\|>$/, "Ağaçlar", "uyur", ",", "щётка", "спит", ";", "小", "さ", "な", "犬", "sleeps", ".", "The", "oak", "sleeps", ";", "ağaçlar", "uyur"];
        assert.equal(await page.locator(".readers").isVisible(), false);
        await write(page, text);
        assert.equal(await page.locator(".unknowns").isVisible(), false);
        for (const [layer, name] of [[0, "the word before"], [1, "what followed last time"], [2, "the noun of a pronoun"]]) {
            await page.getByRole("button", { name }).click();
            await page.locator(".says h2", { hasText: `Layer ${layer}, head 0 of the language model “small”` }).waitFor();
            const { map, pieces } = await headOf(stage, text, layer, "small");
            assert.deepEqual(pieces.slice(-2), ["Ġuy", "ur"]);
            await page.locator(".sentence").press("End");
            const words = await wordsOf(page);
            words.forEach(({ text: word }, at) => (at === 0 ? assert.match(word, written[0]) : assert.equal(word, written[at])));
            const of = (bars) => bars.reduce((sum, bar) => sum + bar, 0);
            assert.ok(Math.abs(of(words.map(({ bar }) => bar)) - 1) < 1e-4);
            assert.ok(Math.abs(words[0].bar - (map.at(-2)[0] + map.at(-1)[0]) / 2) < 1e-6);
            await page.locator(".sentence").press("Home");
            assert.deepEqual((await wordsOf(page)).map(({ bar }) => bar > 0), words.map((_, at) => at === 0));
        }
        await page.waitForTimeout(600); // the address
        await page.reload();
        await page.locator(".readers [aria-pressed=true]", { hasText: "the noun of a pronoun" }).waitFor();
        await tabOf(page, "lab").click();
        await page.locator(".notice", { hasText: "The laboratory shows the model “demo”" }).waitFor();
        await page.finish();
    },
    async "opening: in a sentence with a pronoun, the word behind it is asked, and a head that is unsure says so"(stage) {
        for (const [text, word, noun] of [
            ["My grandmother repaired an antique violin yesterday because it was broken", "broken", "violin"],
            ["Моя бабушка вчера чинила старую скрипку, потому что она была сломана", "сломана", "скрипку"],
            ["Büyükannem dün eski kemanı onardı çünkü o kırıktı", "kırıktı", "kemanı"],
        ]) {
            const page = await open(stage);
            await write(page, text);
            await page.locator(".says h2", { hasText: "Layer 2, head 0" }).waitFor();
            const words = await wordsOf(page),
                share = words.find((one) => one.text === noun).bar,
                sentence = await said(page);
            assert.ok(sentence.includes(`“${word}” looks at “${noun}”`), sentence);
            assert.ok(sentence.includes(`with ${Math.round(100 * share)} % of its attention`), sentence);
            assert.equal(sentence.startsWith("This head is unsure"), share < 0.5, sentence);
            assert.ok(!sentence.includes("no pronoun"), sentence);
            await write(page, text.split(" ").slice(0, 5).join(" "));
            await page.locator(".readers button", { hasText: "the noun of a pronoun" }).click();
            await page.locator(".answer", { hasText: "This sentence has no pronoun that the head has learned" }).waitFor();
            await page.finish();
        }
    },
    async "opening: a sentence of one's own is in the address, comes back, and goes to the laboratory"(stage) {
        const page = await open(stage),
            text = "The trophy did not fit in the suitcase because it was too big";
        await write(page, text);
        assert.deepEqual((await linksOf(page)).map(({ from, to }) => [from, to]), [["it", "trophy"]]);
        await page.waitForFunction(() => location.hash);
        await page.waitForTimeout(600);
        await page.reload();
        await opened(page);
        assert.match(await said(page), /trophy/);
        const address = page.url();
        await inLaboratory(page);
        await page.waitForFunction((before) => location.href !== before, address); // a moment after a change
        assert.equal(await page.getByLabel("Sentence").inputValue(), text);
        assert.match(await readout(page), /^it → trophy/);
        await page.goBack();
        await opened(page);
        assert.match(await said(page), /trophy/);
        await page.finish();
    },
    async "opening: a sentence that is too long is refused in words, and the old picture is pale"(stage) {
        const page = await open(stage);
        await page.getByRole("button", { name: "Your sentence" }).click();
        await page.locator(".own input").fill("word ".repeat(300));
        await page.locator(".notice", { hasText: "too long for the model" }).waitFor();
        await page.locator(".opening.stale").waitFor();
        await write(page, "Anna likes tea");
        assert.equal(await page.locator(".opening.stale").count(), 0);
        assert.equal(await page.locator(".notice").isVisible(), false);
        await page.finish();
    },
    async "opening: its buttons lead to the story and to the debugger; the foot to the interface and back"(stage) {
        const page = await open(stage);
        await page.getByRole("button", { name: "How does it work?" }).click();
        await page.locator(".scene svg").waitFor();
        await tabOf(page, "start").click();
        await opened(page);
        await page.getByRole("button", { name: "My attention gives other numbers" }).click();
        await page.locator(".debugger .main").waitFor();
        const foot = page.locator(".foot");
        for (const name of ["server/web/", "Licence: Apache 2.0"]) assert.ok((await foot.textContent()).includes(name), name);
        await foot.locator("summary").click();
        assert.match(await foot.textContent(), /arrow keys/);
        await foot.getByRole("link", { name: "HTTP" }).click();
        await page.locator("nav a.page").click();
        await page.locator(".bar").waitFor();
        await page.finish();
    },
    ...Object.fromEntries(
        Object.entries(LOCALES).map(([locale, { word, noun, purpose }]) => [
            `opening: one click from it is the laboratory, where a trained head finds "${noun}" for "${word}"`,
            async (stage) => {
                const page = await open(stage, { locale });
                assert.equal(new URL(page.url()).hash, "");
                await inLaboratory(page);
                assert.match(await page.locator(".purpose").textContent(), purpose);
                const [, row, column, value] = /^(.+) → (.+?)(0[.,]9\d+|1)\[/.exec(await readout(page)) ?? [];
                assert.deepEqual([row, column], [word, noun], await readout(page));
                assert.ok(numberOf(value) > 0.9);
                assert.match(await page.locator(".role").textContent(), /3.* 0 /);
                assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
                await page.finish();
            },
        ]),
    ),
    async "opening: what the laboratory shows is what the model computes"(stage) {
        const page = await openLab(stage),
            text = await page.getByLabel("Sentence").inputValue();
        const { outputs } = await page.evaluate(async (sentence) => {
            const body = JSON.stringify({ inputs: { text: sentence }, options: { layers: [3], heads: [0] } });
            const headers = { "Content-Type": "application/json" };
            return (await fetch("v1/models/demo/attention", { method: "POST", headers, body })).json();
        }, text);
        await page.getByRole("tab", { name: "Table" }).click();
        const cells = await page
            .locator(".table tbody tr")
            .evaluateAll((rows) => rows.map((row) => Array.from(row.querySelectorAll("td"), (td) => td.textContent)));
        cells.forEach((row, i) =>
            row.forEach((value, j) => assert.ok(Math.abs(numberOf(value) - outputs.attention[0][0][0][i][j]) < 1e-3, `${i} ${j}`)),
        );
        await page.finish();
    },
    async "opening: in the laboratory the whole map is above the fold"(stage) {
        for (const locale of someOf(Object.keys(LOCALES), 3))
            for (const viewport of WINDOWS) {
                const page = await openLab(stage, { locale, viewport });
                const box = await page.locator(".map").boundingBox(),
                    where = `${locale} ${viewport.width} × ${viewport.height}`;
                assert.ok(box.y + box.height <= viewport.height, `${where}: ${box.y + box.height}`);
                const used = await page.evaluate(() => {
                    const bars = document.querySelector(".bars").getBoundingClientRect(),
                        stage_ = document.querySelector(".stage").getBoundingClientRect();
                    return (bars.right - stage_.left) / stage_.width;
                });
                assert.ok(used > 0.8, `${where}: ${used} of the width is used`);
                await page.finish();
            }
    },
    async "opening: the word that is written instead sends the head to the other noun"(stage) {
        const page = await openLab(stage);
        await answerTo(page, () => page.getByRole("button", { name: "wide", exact: true }).click());
        assert.match(await readout(page), /^it → street/);
        assert.match(await page.getByLabel("Sentence").inputValue(), /wide$/);
        await page.getByRole("button", { name: "tired", exact: true }).waitFor();
        await page.finish();
    },
    async "opening: the sentence is read as it is typed, by the same head"(stage) {
        const page = await openLab(stage);
        const { response } = await answerTo(page, () =>
            page.getByLabel("Sentence").fill("The trophy did not fit in the suitcase because it was too big"),
        );
        assert.ok(response.url().includes("/v1/"));
        await page.waitForFunction(() => /^it → trophy/.test(document.querySelector(".readout").textContent));
        await page.keyboard.press("Control+Home");
        await page.getByRole("button", { name: "Undo" }).click();
        await page.waitForFunction(() => /14 × 14/.test(document.querySelector(".stage h2").textContent));
        await page.finish();
    },
    async "opening: every trained example opens on its head, and the bars are those of the row"(stage) {
        const page = await openLab(stage);
        for (const [id, row, column] of [
            ["demo.subject", "are", "keys"],
            ["demo.bracket", ")", "("],
            ["demo.same", "tea", "tea"],
            ["demo.previous", "likes", "Tom"],
        ]) {
            await answerTo(page, () => page.getByRole("combobox", { name: "Example" }).selectOption(id));
            await page.waitForFunction(
                (text) => document.querySelector(".readout").textContent.startsWith(text),
                `${row} → ${column}`,
            );
            const widest = await page.locator(".bars button").evaluateAll((buttons) => {
                const wide = (one) => parseFloat(one.querySelector("i").style.width);
                return buttons.sort((a, b) => wide(b) - wide(a))[0].getAttribute("aria-pressed");
            });
            assert.equal(widest, "true", id);
        }
        await page.finish();
    },
    async "opening: without the model there is a sentence all the same"(stage) {
        const page = await openPage(stage, {}, "/", async (one) => {
            await one.context().route("**/v1/models/**", (route) => route.fulfill({ status: 404, json: { error: "no" } }));
            await one.reload();
            await one.locator(".stage h2", { hasText: "12 × 12" }).waitFor();
        });
        assert.equal(await page.locator(".role").isVisible(), false);
        assert.match(await page.locator(".panel").textContent(), /Seeded random numbers/);
        await page.finish();
    },
    async "opening: every step says in words what it does, and in what order"(stage) {
        const page = await openLab(stage);
        for (const button of await page.locator(".strip button").all()) {
            await button.click();
            const words = await page.locator(".in-words").textContent();
            assert.ok((await button.textContent()).startsWith(words + " "), words);
        }
        assert.match(await page.locator(".strip").textContent(), /X .*·.*W_Q .*,.*W_K .*→.*Q .*→.*QKᵀ .*→.*softmax .*→.*A V .*·.*W_O .*=.*projected .*output /);
        await page.finish();
    },
    async "opening: on a phone the strip shows to which side it goes on"(stage) {
        const page = await openLab(stage, { viewport: { width: 390, height: 844 } }),
            edges = () => page.locator(".strip").evaluate(({ classList }) => ["more-before", "more-after"].map((name) => classList.contains(name)));
        assert.deepEqual(await edges(), [true, true]);
        for (const [left, wanted] of [[0, [false, true]], [1e6, [true, false]]]) {
            await page.locator(".strip").evaluate((strip, to) => (strip.scrollLeft = to), left);
            await page.waitForFunction((name) => !document.querySelector(".strip").classList.contains(name), wanted[0] ? "more-after" : "more-before");
            assert.deepEqual(await edges(), wanted);
        }
        await page.finish();
    },
};
