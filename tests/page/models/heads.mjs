/**
 * heads.mjs: a sentence through a model: every head, what is made of several, and what the model predicts.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf, assertClose, eventually, numberOf, openPage, settled, someOf, startServer, tabOf } from "../support.mjs";
import { findings } from "../input/accessibility.mjs";
import { answerOf, cellOf, colourAt, computed, EXTRA, guessesOf, headCell, HIDDEN, openHead, openModels, openTrial, say, SENTENCE, sentence } from "./opened.mjs";
import { writeMixture, writeModel } from "./random_model.mjs";

const numberIn = (label) => numberOf(label.slice(label.lastIndexOf(", ") + 2));
const labelOf = (page) => headCell(page).getAttribute("aria-label");
const measure = (page) => page.locator(".model-tools .row-of select");
const spoken = (page) => page.locator(".headview .links .note").textContent();
const button = (page, name) => page.locator(".headview").getByRole("button", { name, exact: true });
const percentOf = (text) => (text.startsWith("<") ? 0 : Number.parseFloat(text) / 100);

/** Each head once, in the order of the grid, with what its label says. */
async function labelsInOrder(page) {
    const found = [];
    await headCell(page).focus();
    await page.keyboard.press("Control+Home");
    for (;;) {
        const label = await labelOf(page);
        if (label === found.at(-1)) return found;
        found.push(label);
        await page.keyboard.press("ArrowRight");
    }
}

export const cases = {
    async "models: it opens on the head that finds what “it” means, and heads say what they have learned"(stage) {
        const page = await openModels(stage);
        assert.equal(await labelOf(page), "layer 3, head 0, pronoun");
        assert.match(await page.locator(".headview .readout").textContent(), /^it → animal0\.99999/);
        await say(page, "The animal did not cross the street because it was too wide");
        assert.match(await cellOf(page, 9, 7), /^it → street, 0\.9/);
        const roles = { "0 0": "previous", "0 1": "next", "1 0": "copy", "2 0": "subject", "3 1": "bracket" };
        for (const [layer, head] of [[0, 0], [0, 1], [1, 0], [2, 0], [3, 1], [1, 1]]) {
            await openHead(page, layer, head);
            const role = roles[`${layer} ${head}`];
            assert.equal(await labelOf(page), [`layer ${layer}, head ${head}`, role].filter(Boolean).join(", "));
            assert.equal(await page.locator(".role-of").isVisible(), Boolean(role));
        }
        await page.finish();
    },
    async "models: another model opens a head with a role at its strongest key, and no hidden word that it cannot fill in"(stage) {
        const page = await openTrial(stage);
        await page.locator(".model-choices select").first().selectOption("small");
        await computed(page);
        assert.equal(await sentence(page).inputValue(), SENTENCE);
        assert.equal(await labelOf(page), "layer 2, head 0, pronoun");
        await page.locator(".trial", { hasText: "Layer" }).waitFor();
        await eventually(async () => assert.match(await page.locator(".headview .readout").textContent(), /^\s*tired →\s*animal0\.9/));
        await page.finish();
    },
    async "models: a sentence in any of the three languages finds its noun"(stage) {
        for (const [locale, pair] of [["tr-TR", /^\[MASK\] → Hayvan0,9/], ["ru-RU", /^\[MASK\] → Животное0,9/]]) {
            const page = await openTrial(stage, { locale });
            assert.match(await page.locator(".headview .readout").textContent(), pair);
            await page.finish();
        }
    },
    async "models: every head shows the server's numbers, and what was fetched is not asked for again"(stage) {
        const page = await openModels(stage),
            { outputs } = await answerOf(stage, SENTENCE);
        const asked = [];
        page.on("request", (one) => one.url().endsWith("/attention") && asked.push(one.postDataJSON().options.return));
        for (const [layer, head, row, col] of [[0, 1, 4, 5], [1, 3, 2, 9], [3, 2, 13, 0]]) {
            await openHead(page, layer, head);
            assert.ok((await labelOf(page)).startsWith(`layer ${layer}, head ${head}`));
            assertClose(numberIn(await cellOf(page, row, col)), outputs.attention[layer][0][head][row][col], 5, "weight");
        }
        await openHead(page, 0, 1);
        assert.ok(asked.every(([first]) => ["predictions", "sweep"].includes(first)), JSON.stringify(asked));
        await page.finish();
    },
    async "models: the token of the row has its experts beside the weight"(stage) {
        const folder = mkdtempSync(join(tmpdir(), "attnd-models-"));
        writeMixture(join(folder, "mixture"));
        const server = await startServer(stage.attnd, { ATTND_MODELS: folder });
        const page = await openPage({ ...stage, url: server.url });
        await tabOf(page, "models").click();
        await computed(page);
        await page.locator(".model-choices select").first().selectOption("mixture");
        await page.getByRole("button", { name: "All tools" }).click();
        await computed(page);
        await say(page, "Anna likes tea");
        const body = { inputs: { text: "Anna likes tea" }, options: { return: ["experts"] } };
        const { outputs } = await (await fetch(`${server.url}/v1/models/mixture/attention`, {
            method: "POST",
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify(body),
        })).json();
        for (const [layer, row] of [[0, 1], [1, 3]]) {
            await openHead(page, layer, 0);
            await cellOf(page, row, 0);
            const text = await page.locator(".headview .readout .experts").textContent();
            const found = [...text.matchAll(/(\d+) \(([\d.]+)\)/g)].map(([, expert, weight]) => [Number(expert), Number(weight)]);
            assert.deepEqual(found.map(([expert]) => expert), outputs.experts.indices[layer][0][row]);
            found.forEach(([, weight], at) => assertClose(weight, outputs.experts.weights[layer][0][row][at], 2, "weight of an expert"));
        }
        await page.locator(".questions").getByRole("button", { name: "Experts" }).click();
        await page.locator(".said", { hasText: "The experts of “tea”" }).waitFor();
        const lines = await page.locator(".questions tbody tr td").allTextContents();
        assert.deepEqual(lines.map((line) => Number.parseInt(line, 10)), outputs.experts.indices.map(([rows]) => rows[3][0]));
        await page.finish();
        await server.stop();
        rmSync(folder, { recursive: true });
    },
    async "models: heads are sorted and left out by what the server measures"(stage) {
        const page = await openModels(stage),
            { outputs } = await answerOf(stage, SENTENCE, { return: ["head_scores"] });
        for (const [name, sign] of [["entropy", 1], ["previous_token", -1], ["first_token", -1]]) {
            await measure(page).selectOption(name);
            const wanted = outputs.head_scores[name]
                .flatMap(([heads], layer) => heads.map((value, head) => ({ layer, head, value })))
                .sort((a, b) => sign * (a.value - b.value));
            const labels = await labelsInOrder(page);
            assert.deepEqual(
                labels.map((label) => label.split(", ").slice(0, 2).join(", ")),
                wanted.map(({ layer, head }) => `layer ${layer}, head ${head}`),
                name,
            );
            assertClose(numberOf(labels[0].split(" ").at(-1)), wanted[0].value, 3, name);
        }
        await page.locator(".model-tools input[type=range]").fill("0.75");
        assert.equal((await labelsInOrder(page)).length, 4);
        await page.getByLabel("Sorted").uncheck();
        assert.equal(await page.locator(".headgrid [role=grid]").getAttribute("aria-colcount"), "7");
        await page.finish();
    },
    async "models: distance is the mean way from query to key"(stage) {
        const page = await openModels(stage);
        await measure(page).selectOption("distance");
        await page.getByLabel("Sorted").uncheck();
        await openHead(page, 0, 0);
        const { outputs } = await answerOf(stage, SENTENCE, { layers: [0], heads: [0] }),
            map = outputs.attention[0][0][0];
        const rows = map.map((row, i) => row.reduce((sum, weight, j) => sum + weight * Math.abs(i - j), 0));
        const mean = rows.reduce((a, b) => a + b) / rows.length;
        assertClose(numberOf((await labelOf(page)).split(" ").at(-1)), mean, 3, "distance");
        await page.finish();
    },
    async "models: before a click it has about a dozen controls, and the keyboard meets sentence, head and map first"(stage) {
        const page = await openTrial(stage);
        const names = () =>
            page.locator(".models :is(button, select, input, textarea, summary, [role=gridcell]):visible").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? one.textContent));
        const before = await names();
        assert.ok(before.length <= 13, before.join(" | "));
        await sentence(page).focus();
        const stops = [];
        while (!stops.at(-1)?.startsWith("[MASK] →") && stops.length < 12) {
            await page.keyboard.press("Tab");
            stops.push(await page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent));
        }
        assert.deepEqual(stops.slice(0, -1), ["Run", "Switch it off", "layer 3, head 0, pronoun", "Map", "Colour that column"]);
        const tools = page.getByRole("button", { name: "All tools" });
        await tools.click();
        assert.equal(await tools.getAttribute("aria-expanded"), "true");
        const all = await names();
        for (const name of ["In the links", "Hide this edge", "off", "mean", "Sweep", "Attribution", "Copy as curl", "Compare two sentences", "Range", "[CLS]"]) assert.ok(all.includes(name), name);
        await tools.click();
        assert.deepEqual(await names(), before);
        await page.finish();
    },
    async "models: a link shows the rare control that is in use"(stage) {
        const page = await openPage(stage, {}, addressOf({ preset: "sentence", view: { mode: "models", models: { texts: [HIDDEN], question: "attribution" } } }), computed);
        const named = (name) => page.locator(".models").getByRole("button", { name });
        assert.equal(await named("All tools").getAttribute("aria-expanded"), "true");
        await named("Attribution").click();
        assert.ok(await named("Sweep").isVisible());
        await page.finish();
    },
    async "models: the token on which heads rest is left out of the colours, keeps its numbers, and can have its colours back"(stage) {
        const page = await openModels(stage);
        const firstColumn = () =>
            page.evaluate(() => {
                const cell = document.querySelector(".headgrid [role=gridcell]").getBoundingClientRect(),
                    canvas = document.querySelector(".headgrid canvas"),
                    box = canvas.getBoundingClientRect(),
                    ratio = canvas.width / box.width;
                const [x, y] = [cell.left - box.left + 4, cell.top - box.top + cell.height / 4].map((at) => at * ratio);
                return Array.from(canvas.getContext("2d").getImageData(Math.round(x), Math.round(y), 1, 1).data);
            });
        const { outputs } = await answerOf(stage, SENTENCE, { layers: [3], heads: [0] }),
            map = outputs.attention[0][0][0],
            share = map.reduce((sum, row) => sum + row[0], 0) / map.length;
        await openHead(page, 3, 0);
        await eventually(async () => assert.ok((await firstColumn())[2] > 200, "the ground of hidden cells"));
        assert.equal(await page.locator(".headview .resting span").textContent(), `This head mostly rests: ${Math.round(100 * share)} % of its weight goes to [CLS] (“nowhere to look”).`);
        for (const [row, col] of [[3, 0], [9, 0], [9, 2]]) assertClose(numberIn(await cellOf(page, row, col)), map[row][col], 6, `${row}, ${col}`);
        await button(page, "Colour that column").click();
        await eventually(async () => {
            const after = await firstColumn();
            assert.ok(after[0] > 200 && after[1] > 200, `yellow: ${after}`);
        });
        await openHead(page, 0, 0);
        await page.locator(".headview .resting").waitFor({ state: "hidden" });
        await page.finish();
    },
    async "models: thumbnails and the open map have the range of the legend, with and without the first token"(stage) {
        const page = await openModels(stage),
            legend = page.locator(".grid-box .legend");
        /** Of a cell: in the thumbnail of the open head, and in its map. */
        const coloursOf = async (row, col) => {
            const { width, height } = await headCell(page).boundingBox();
            return {
                thumb: await colourAt(page, ".headgrid", ((col + 0.5) * width) / 14, ((row + 0.5) * height) / 14),
                map: await colourAt(page, ".headview", 8, 8),
            };
        };
        /** Goes to a cell, whose colour both have, and have from a check on. */
        const checkColours = async (row, col, name, isRight) => {
            await cellOf(page, row, col);
            await eventually(async () => {
                const { thumb, map } = await coloursOf(row, col);
                assert.ok(thumb.every((part, n) => Math.abs(part - map[n]) <= 2), `${name}: ${thumb} / ${map}`);
                assert.ok(isRight(map), `${name}: ${map}`);
            });
        };
        const ranges = [["full", "1"], ["max", null], ["robust", null], ["log", null]];
        for (const [range, high] of someOf(ranges, 3))
            for (const isCut of [false, true]) {
                await page.getByLabel("Without the first token").setChecked(isCut);
                await legend.getByRole("combobox", { name: "Range" }).selectOption(range);
                await openHead(page, 3, 0);
                // too → tired, about 1e-7, and it → animal, 0.999998
                await checkColours(11, 12, `${range} ${isCut}: dark`, ([red, green]) => red < 80 && green < 30);
                await checkColours(9, 2, `${range} ${isCut}: yellow`, ([red, , blue]) => red > 200 && blue < 60);
                const ends = await legend.locator("span").allTextContents();
                if (high) assert.equal(ends[1], high);
                assert.ok(numberOf(ends[1]) > 0.5, String(ends));
            }
        await page.reload();
        await computed(page);
        assert.equal(await legend.getByRole("combobox", { name: "Range" }).inputValue(), "log");
        await page.finish();
    },
    async "models: mean, maximum and rollout are those of the server and of its maps"(stage) {
        const page = await openModels(stage),
            { outputs } = await answerOf(stage, SENTENCE, { return: ["attention", "attention_mean", "rollout"] });
        const [row, col] = [9, 2];
        const wanted = {
            mean: outputs.attention_mean[2][0][row][col],
            max: Math.max(...outputs.attention[2][0].map((map) => map[row][col])),
            rollout: outputs.rollout[2][0][row][col],
        };
        for (const [name, head] of Object.entries(EXTRA)) {
            await openHead(page, 2, head);
            assert.equal(await labelOf(page), `layer 2, ${name}`);
            assertClose(numberIn(await cellOf(page, row, col)), wanted[name], 4, name);
            assert.equal(await button(page, "off").isDisabled(), true);
        }
        await page.finish();
    },
    async "models: links of several heads at once, each in its colour"(stage) {
        const page = await openModels(stage),
            { outputs } = await answerOf(stage, SENTENCE);
        await openHead(page, 3, 0);
        await page.keyboard.press("l");
        await openHead(page, 0, 0);
        await button(page, "In the links").click();
        await button(page, "Links").click();
        await computed(page);
        assert.deepEqual(await page.locator(".head-legend .chip").allTextContents(), ["3·0 ×", "0·0 ×"]);
        const colours = await page
            .locator(".head-legend .dot")
            .evaluateAll((dots) => dots.map((dot) => getComputedStyle(dot).backgroundColor));
        assert.notEqual(colours[0], colours[1]);
        const drawn = () =>
            page.locator(".headview .links canvas").evaluate((canvas, wanted) => {
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const isNear = ([r, g, b], at) => Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b) < 12;
                const rgb = wanted.map((colour) => colour.match(/\d+/g).map(Number));
                return rgb.map((one) => {
                    let count = 0;
                    for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200 && isNear(one, at)) count++;
                    return count;
                });
            }, colours);
        await eventually(async () => {
            const counts = await drawn();
            assert.ok(counts.every((count) => count > 50), String(counts));
        });
        await page.locator(".headview .links .tokens button").nth(9).click();
        const said = await spoken(page);
        assert.match(said, /^it → animal 1 \(3·0\), /);
        assertClose(numberOf(/because ([\d.]+) \(0·0\)/.exec(said)[1]), outputs.attention[0][0][0][9][8], 3, "link");
        await page.locator(".head-legend .chip").first().click();
        assert.deepEqual(await page.locator(".head-legend .chip").allTextContents(), ["0·0 ×"]);
        await page.finish();
    },
    async "models: predictions at the end and through the lens, with all heads and without one"(stage) {
        const page = await openModels(stage);
        await say(page, HIDDEN);
        const options = { return: ["predictions", "logit_lens"], queries: [10] };
        const { outputs: whole } = await answerOf(stage, HIDDEN, options),
            { outputs: without } = await answerOf(stage, HIDDEN, { ...options, ablate: [[3, 0]] });
        assert.equal(await page.locator(".words [aria-pressed=true]").textContent(), "[MASK]");
        const [best] = await guessesOf(page, 0);
        assert.equal(best[0], "animal");
        assert.ok(Math.abs(percentOf(best[1]) - whole.predictions.probabilities[0][0][0]) < 0.006);
        assert.deepEqual(
            (await guessesOf(page, 1)).map(([, guess]) => guess.split(" ")[0]),
            whole.logit_lens.tokens.map(([[[word]]]) => word),
        );
        await openHead(page, 3, 0);
        await button(page, "off").click();
        await page.waitForFunction(() => document.querySelector(".guess-table thead").children[0].childElementCount === 4);
        const [ablated] = await guessesOf(page, 0);
        assert.deepEqual([ablated[0], ablated[2]], ["animal", without.predictions.tokens[0][0][0]]);
        assert.ok(Math.abs(percentOf(ablated[3]) - without.predictions.probabilities[0][0][0]) < 0.006);
        assert.ok(percentOf(ablated[3]) < percentOf(ablated[1]) - 0.3);
        assert.match(await labelOf(page), /off$/);
        await page.locator(".trial .main").click();
        await computed(page);
        assert.equal((await guessesOf(page, 0))[0].length, 2);
        await page.finish();
    },
    async "models: two sentences beside each other, one head in both"(stage) {
        const page = await openModels(stage);
        await page.getByRole("button", { name: "Compare two sentences" }).click();
        await page.waitForFunction(() => document.querySelectorAll(".models .readout b").length === 2);
        await computed(page);
        const readouts = await page.locator(".headview .readout").allTextContents();
        assert.match(readouts[0], /^it → animal/);
        assert.match(readouts[1], /^it → street/);
        const patched = page.locator(".headview").getByRole("button", { name: "from the other sentence" });
        assert.equal(await patched.first().isEnabled(), true, "the second sentence has as many tokens");
        const boxes = await page.locator(".column").evaluateAll((columns) => columns.map((one) => one.getBoundingClientRect().top));
        assert.equal(boxes[0], boxes[1]);
        await page.locator(".model-form input").nth(1).fill("The animal did not cross the street because it was too small");
        await page.keyboard.press("Enter");
        await computed(page);
        assert.match(await page.locator(".column > h2").nth(1).textContent(), /small$/);
        await page.getByRole("button", { name: "One sentence" }).click();
        assert.equal(await page.locator(".column").count(), 1);
        await page.finish();
    },
    async "models: a head opens in the laboratory with every step, and the page's own numbers agree"(stage) {
        const page = await openModels(stage);
        await openHead(page, 3, 0);
        await page.keyboard.press("Enter");
        await page.locator(".stage h2", { hasText: "softmax · head 0 · 14 × 14" }).waitFor();
        await page.waitForFunction(() => document.querySelector(".verdict.good"));
        await settled(page);
        assert.match(await page.locator(".lab .readout").textContent(), /^it → animal0\.99999/);
        await tabOf(page, "models").click();
        await computed(page);
        assert.equal(await sentence(page).inputValue(), SENTENCE);
        await page.finish();
    },
    async "models: a reload brings back the sentence, the head and what is switched off"(stage) {
        const page = await openModels(stage);
        await say(page, HIDDEN);
        await openHead(page, 2, 1);
        await page.keyboard.press("a");
        await page.waitForTimeout(700);
        const url = new URL(page.url());
        assert.equal(url.search, "");
        await page.reload();
        await computed(page);
        assert.equal(await sentence(page).inputValue(), HIDDEN);
        assert.equal(await labelOf(page), "layer 2, head 1, off");
        assert.equal(await page.locator(".changed .chip").textContent(), "2·1 off ×");
        await page.finish();
    },
    async "models: the page says that “demo” spells words, and “small” reads them with one click"(stage) {
        const page = await openModels(stage),
            note = page.getByRole("status").filter({ hasText: "letter by letter" });
        assert.equal(await note.isVisible(), false);
        await say(page, "The hippopotamus swam");
        await note.waitFor();
        const before = await page.locator(".model-choices").getByLabel("Sentences to try").locator("option").count();
        await note.getByRole("button", { name: "Read it by “small”" }).click();
        await page.locator(".columns .note", { hasText: "4 layers × 4 heads" }).waitFor();
        await computed(page);
        assert.equal(await note.isVisible(), false);
        const samples = await page.locator(".model-choices").getByLabel("Sentences to try").locator("option").allTextContents();
        assert.ok(samples.length > 1 && samples.length < before && !samples.some((text) => text.includes("[MASK]")));
        await sentence(page).fill(" ");
        await page.keyboard.press("Enter");
        await page.waitForTimeout(300);
        assert.equal(await page.locator(".notice").isVisible(), false);
        await page.finish();
    },
    async "models: a refusal is said, and the next sentence is answered"(stage) {
        const page = await openModels(stage);
        await sentence(page).fill("animal ".repeat(100));
        await page.keyboard.press("Enter");
        await page.locator(".notice", { hasText: "64" }).waitFor();
        await say(page, "Anna likes tea");
        assert.equal(await page.locator(".notice").isVisible(), false);
        assert.match(await page.locator(".grid-box .note").first().textContent(), /5 tokens/);
        await page.finish();
    },
    async "models: a tap chooses a head on a phone, and nothing is cut off"(stage) {
        const page = await openModels(stage, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
        await headCell(page).scrollIntoViewIfNeeded();
        const box = await headCell(page).boundingBox();
        await page.touchscreen.tap(box.x + box.width * 1.5 + 6, box.y + box.height / 2);
        await computed(page);
        assert.equal(await labelOf(page), "layer 3, head 1, bracket");
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(overflow, 0);
        await page.finish();
    },
    async "models: axe finds nothing, light, dark, on a phone, in forced colours, and in each language"(stage) {
        const looks = [
            {},
            { colorScheme: "dark", locale: "tr-TR" },
            { forcedColors: "active", locale: "ru-RU" },
            { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
        ];
        for (const look of someOf(looks, 2)) {
            const page = await openModels(stage, look);
            assert.deepEqual(await findings(page), [], "map");
            await headCell(page).focus();
            for (const key of ["l", "a"]) await page.keyboard.press(key);
            await page.locator(".headview .segments button").nth(1).click();
            await page.locator(".model-tools .row-of select").selectOption("entropy");
            assert.equal(await page.locator(".dump-how summary").evaluate((one) => getComputedStyle(one).display), "list-item", "with its marker");
            await page.locator(".dump-how summary").click();
            await computed(page);
            assert.deepEqual(await findings(page), [], "links");
            await page.finish();
        }
    },
    async "models: bars of the labels of a classifier, and the heads that move the best one"(stage) {
        const folder = mkdtempSync(join(tmpdir(), "attnd-models-")),
            labels = ["bad", "so so", "good"];
        writeModel(join(folder, "moods"), { layers: 2, heads: 4, width: 64, longest: 64, labels });
        const server = await startServer(stage.attnd, { ATTND_MODELS: folder });
        const own = { ...stage, url: server.url },
            page = await openModels(own, { permissions: ["clipboard-read", "clipboard-write"] });
        await page.locator(".model-choices select").first().selectOption("moods");
        await computed(page);
        const classesOf = async (ablate) => (await answerOf(own, SENTENCE, { return: ["classes"], ablate }, "moods")).outputs.classes;
        const { probabilities } = await classesOf([]),
            shown = await guessesOf(page, 0);
        assert.deepEqual(shown.map(([label]) => label), labels);
        shown.forEach(([, text], at) => assert.ok(Math.abs(percentOf(text) - probabilities[0][at]) < 0.006));
        const best = probabilities[0].indexOf(Math.max(...probabilities[0]));
        await page.getByRole("button", { name: `Which heads move “${labels[best]}”?` }).click();
        await page.waitForFunction(() => document.querySelectorAll(".guess-table").length === 2);
        const [first, ...others] = await guessesOf(page, 1),
            [layer, head] = first[0].match(/\d+/g).map(Number);
        const moved = (await classesOf([[layer, head]])).probabilities[0][best] - probabilities[0][best];
        assertClose(Number(first[1].replace("−", "-")), moved, 3, "change");
        const sentence = await page.locator(".moves .said").textContent(),
            [now, was] = Array.from(sentence.matchAll(/([\d.]+) %/g), ([, number]) => Number(number) / 100);
        assert.ok(sentence.includes(`layer ${layer}, head ${head}`) && Math.abs(now - was - moved) < 0.011, sentence);
        await page.locator(".moves").getByRole("button", { name: "Copy as curl" }).click();
        const line = await (await page.waitForFunction(() => navigator.clipboard.readText())).jsonValue(),
            copied = JSON.parse(execFileSync("sh", ["-c", line], { encoding: "utf8" })).outputs.classes;
        assertClose(copied.probabilities[0][best], probabilities[0][best] + moved, 4, "curl");
        assert.ok(others.every(([, change]) => Math.abs(Number(change.replace("−", "-"))) <= Math.abs(moved) + 1e-4));
        assert.deepEqual(await findings(page), []);
        await page.finish();
        await server.stop();
        rmSync(folder, { recursive: true });
    },
    async "models: labels of the token that is chosen, and the answer to a question"(stage) {
        const folder = mkdtempSync(join(tmpdir(), "attnd-models-")),
            sizes = { layers: 1, heads: 2, width: 32, longest: 64 },
            labels = ["person", "place", "other"];
        writeModel(join(folder, "names"), { ...sizes, labels, architecture: "BertForTokenClassification" });
        writeModel(join(folder, "answers"), { ...sizes, labels: ["start", "end"], architecture: "BertForQuestionAnswering" });
        const server = await startServer(stage.attnd, { ATTND_MODELS: folder });
        const own = { ...stage, url: server.url },
            page = await openModels(own);
        const classesOf = async (model) => (await answerOf(own, SENTENCE, { return: ["classes"] }, model)).outputs.classes;
        await page.locator(".model-choices select").first().selectOption("names");
        await computed(page);
        const { probabilities } = await classesOf("names");
        for (const row of [9, 3]) {
            await cellOf(page, row, 0);
            await page.keyboard.press("Enter");
            await computed(page);
            const shown = await guessesOf(page, 0);
            assert.deepEqual(shown.map(([label]) => label), labels);
            shown.forEach(([, text], at) => assert.ok(Math.abs(percentOf(text) - probabilities[0][row][at]) < 0.006, `${row}: ${text}`));
        }
        await page.locator(".model-choices select").first().selectOption("answers");
        await computed(page);
        const [{ text, probability }] = (await classesOf("answers")).answer;
        const [[words, size]] = await guessesOf(page, 0);
        assert.equal(words, text);
        assert.ok(Math.abs(percentOf(size) - probability) < 0.006, `${size} for ${probability}`);
        assert.deepEqual(await findings(page), []);
        await page.finish();
        await server.stop();
        rmSync(folder, { recursive: true });
    },
    async "models: a regression has a number, and of many long labels the likeliest stand in the page"(stage) {
        const folder = mkdtempSync(join(tmpdir(), "attnd-models-")),
            sizes = { layers: 1, heads: 2, width: 32, longest: 64 },
            many = Array.from({ length: 40 }, (_, at) => `label ${at} ${"of-many-letters".repeat(8)}`);
        writeModel(join(folder, "stars"), { ...sizes, labels: ["stars"], problem: "regression" });
        writeModel(join(folder, "many"), { ...sizes, labels: many });
        const server = await startServer(stage.attnd, { ATTND_MODELS: folder });
        const own = { ...stage, url: server.url },
            page = await openModels(own);
        const heads = () => page.locator(".guess-table thead th").allTextContents();
        const classesOf = async (model) => (await answerOf(own, SENTENCE, { return: ["classes"] }, model)).outputs.classes;
        await page.locator(".model-choices select").first().selectOption("stars");
        await computed(page);
        assert.deepEqual(await heads(), ["label", "number"]);
        const [[label, number]] = await guessesOf(page, 0);
        assert.equal(label, "stars");
        assertClose(Number(number.replace("−", "-")), (await classesOf("stars")).logits[0][0], 3, "number");
        await page.locator(".model-choices select").first().selectOption("many");
        await computed(page);
        assert.deepEqual(await heads(), ["label", "probability"]);
        const { probabilities } = await classesOf("many");
        const likeliest = many.toSorted((one, other) => probabilities[0][many.indexOf(other)] - probabilities[0][many.indexOf(one)]);
        assert.deepEqual((await guessesOf(page, 0)).map(([name]) => name), likeliest.slice(0, 12));
        const width = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        assert.ok(width[0] <= width[1], `the page is ${width[0]} wide, and its window ${width[1]}`);
        assert.deepEqual(await findings(page), []);
        await page.finish();
        await server.stop();
        rmSync(folder, { recursive: true });
    },
    async "models: encoder-decoders choose their maps, and a broken model says why"(stage) {
        const folder = mkdtempSync(join(tmpdir(), "attnd-models-"));
        writeModel(join(folder, "broken"), { layers: 2, heads: 5, width: 64, longest: 64 });
        const t5 = new URL("../../others/models/t5", import.meta.url).pathname;
        const server = await startServer(stage.attnd, { ATTND_MODELS: folder, ATTND_MODEL: `t5=${t5}` });
        const page = await openModels({ ...stage, url: server.url });
        await page.locator(".model-choices select").first().selectOption("t5");
        await computed(page);
        await page.getByLabel("Text of the decoder").fill("das ist gut");
        await page.keyboard.press("Enter");
        await computed(page);
        for (const part of ["decoder_attention", "cross_attention", "encoder_attention"]) {
            await page.locator(".model-form select").first().selectOption(part);
            await computed(page);
            const { outputs } = await (
                await fetch(`${server.url}/v1/models/t5/attention`, {
                    method: "POST",
                    headers: { "Content-Type": "application/json" },
                    body: JSON.stringify({ inputs: { text: SENTENCE, target: "das ist gut" }, options: {} }),
                })
            ).json();
            await openHead(page, 1, 2);
            assertClose(numberIn(await cellOf(page, 3, 2)), outputs[part][1][0][2][3][2], 4, part);
        }
        await page.locator(".model-choices select").first().selectOption("broken");
        await page.getByText("This model cannot be used", { exact: false }).waitFor();
        await page.finish();
        await server.stop();
        rmSync(folder, { recursive: true });
    },
};
