/**
 * own.mjs: what the page exports comes back into it by dropping, with the same numbers and the same mask; what cannot be
 * read is refused in a sentence.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import {
    answerTo,
    assertClose,
    choosePreset,
    chooseStep,
    dropFile,
    exported,
    inFolder,
    inLaboratory,
    numberOf,
    openPage,
    readNpy,
    settled,
    someOf,
    tableOf,
    tabOf,
} from "../support.mjs";

const HIDDEN = "–";

/** A file of the page is dropped back under its own name. */
async function dropBack(page, path) {
    const { response } = await answerTo(page, () => dropFile(page, path.split("/").at(-1), readFileSync(path)));
    assert.equal(response.status(), 200, await response.text());
    assert.equal(await page.locator(".notice").isVisible(), false);
    await settled(page);
}

function assertSame(found, wanted, what) {
    assert.equal(found.length, wanted.length, what);
    wanted.forEach((row, i) =>
        row.forEach((text, j) => {
            if (text === HIDDEN) assert.equal(found[i][j], HIDDEN, `${what} [${i}, ${j}]`);
            else if (found[i][j] === HIDDEN) assert.ok(numberOf(text) < 1e-30, `${what} [${i}, ${j}]: ${text} is masked`);
            else assertClose(numberOf(found[i][j]), numberOf(text), 2.5, `${what} [${i}, ${j}]`);
        }),
    );
}

/** An NPY file of so many bytes of data. */
function npy(header, data) {
    const text = header.padEnd(117) + "\n";
    const head = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, text.length & 255, text.length >> 8]);
    return Buffer.concat([head, Buffer.from(text), Buffer.from(data)]);
}

const PNG = Buffer.from("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de", "hex");

export const cases = {
    async "own: a large paste opens at once and holds nobody up, a small one stays in the field"(stage) {
        const page = await openPage(stage),
            area = page.getByLabel(/A request, an answer/);
        const paste = (text) =>
            area.evaluate((element, pasted) => {
                const clipboardData = new DataTransfer();
                clipboardData.setData("text/plain", pasted);
                const begun = performance.now();
                element.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData }));
                return performance.now() - begun;
            }, text);
        await paste("[[1, 0], [0, 1]]");
        await page.waitForTimeout(100);
        assert.match(await page.locator(".stage h2").textContent(), /12 × 12/);
        const size = 600,
            rows = Array.from({ length: size }, (_, i) => Array.from({ length: size }, (__, j) => Math.sin(i * 3 + j) / 7));
        const held = await paste(JSON.stringify(rows));
        await page.locator(".stage h2", { hasText: "600 × 600" }).waitFor();
        assert.equal(await area.inputValue(), "");
        await page.finish();
        return `600 × 600 numbers held the page for ${held.toFixed(0)} ms`;
    },
    async "own: CSV of weights and of masked scores comes back, with tokens and mask"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage);
            for (const preset of someOf(["causal", "window", "cross", "sentence"], 2))
                for (const [step, back] of [
                    ["softmax", "softmax"],
                    ["+ mask", "+ mask"],
                ]) {
                    await choosePreset(page, preset);
                    await page.locator(".heads button").nth(1).click();
                    await chooseStep(page, step);
                    await settled(page);
                    const wanted = await tableOf(page),
                        labels = await page.locator(".table thead bdi").allTextContents();
                    const path = await exported(page, "CSV", folder);
                    await choosePreset(page, "three");
                    await dropBack(page, path);
                    await chooseStep(page, back);
                    await settled(page);
                    assertSame(await tableOf(page), wanted, `${preset} ${step}`);
                    assert.deepEqual(await page.locator(".table thead bdi").allTextContents(), labels);
                    assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
                }
            await page.finish();
        });
    },
    async "own: CSV of features, without tokens and of a difference comes back as rows of numbers"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage);
            await choosePreset(page, "sentence");
            await chooseStep(page, "X");
            await settled(page);
            const wanted = await tableOf(page);
            await dropBack(page, await exported(page, "CSV", folder));
            await chooseStep(page, "X");
            await settled(page);
            assertSame(await tableOf(page), wanted, "X");
            await choosePreset(page, "bare");
            const bare = await tableOf(page);
            await dropBack(page, await exported(page, "CSV", folder));
            assertSame(await tableOf(page), bare, "5 × 7 without tokens");
            await choosePreset(page, "causal");
            await page.getByRole("button", { name: "Keep as A" }).click();
            await answerTo(page, () => page.getByLabel("Scale", { exact: true }).fill("2"));
            await page.getByRole("button", { name: "B − A" }).click();
            await settled(page);
            const difference = await tableOf(page);
            await dropBack(page, await exported(page, "CSV", folder));
            await chooseStep(page, "X");
            await settled(page);
            const plain = difference.map((row) => row.map((text) => (text === HIDDEN ? "0" : text)));
            assertSame(await tableOf(page), plain, "B − A");
            await page.finish();
        });
    },
    async "own: NPY of weights, masked scores and features comes back, whole"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage);
            for (const preset of someOf(["causal", "padding", "cross"], 2))
                for (const [step, back] of [
                    ["softmax", "softmax"],
                    ["+ mask", "+ mask"],
                    ["X", "X"],
                ]) {
                    if (preset === "cross" && step === "+ mask") continue; // no mask tells it from other numbers
                    await choosePreset(page, preset);
                    await chooseStep(page, step);
                    await settled(page);
                    const wanted = await tableOf(page);
                    const path = await exported(page, "NPY", folder);
                    await choosePreset(page, "three");
                    await dropBack(page, path);
                    if (preset === "padding") await page.getByRole("combobox", { name: "batch" }).selectOption("1");
                    await chooseStep(page, back);
                    await settled(page);
                    assertSame(await tableOf(page), wanted, `${preset} ${step}`);
                }
            await page.finish();
        });
    },
    async "own: NPY is float32 below and above the size from which answers travel as binary, float64 where asked for"(stage) {
        await inFolder(async (folder) => {
            const page = await openPage(stage),
                typeOf = async () => readNpy(readFileSync(await exported(page, "NPY", folder))).isDouble;
            for (const preset of ["three", "twelve"]) {
                await choosePreset(page, preset);
                assert.equal(await typeOf(), false, preset);
            }
            const double = JSON.stringify({ inputs: { query: [[1, 0.1], [0, 1]] }, options: { compute: "float64" } });
            await answerTo(page, () => dropFile(page, "double.json", double));
            assert.equal(await typeOf(), true);
            await chooseStep(page, "X");
            const { data } = readNpy(readFileSync(await exported(page, "NPY", folder)));
            assert.equal(data[1], 0.1);
            await page.finish();
        });
    },
    async "own: types of NumPy that the page reads, and those that it refuses"(stage) {
        const page = await openPage(stage),
            header = (descr, shape, order = "False") =>
                `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': (${shape}), }`;
        for (const [descr, array] of [
            ["<f8", new Float64Array([1, 2, 3, 4])],
            ["<f4", new Float32Array([1, 2, 3, 4])],
            ["<i8", new BigInt64Array([1n, 2n, 3n, 4n])],
            ["|u1", new Uint8Array([1, 2, 3, 4])],
        ]) {
            const file = npy(header(descr, "2, 2"), array.buffer);
            const { request } = await answerTo(page, () => dropFile(page, "mine.npy", file));
            assert.deepEqual(request.inputs.query, [[1, 2], [3, 4]], descr);
        }
        for (const file of [
            npy(header(">f4", "2, 2"), new Float32Array(4).buffer),
            npy(header("<c8", "2, 2"), new Float64Array(4).buffer),
            npy(header("<f4", "2, 2", "True"), new Float32Array(4).buffer),
            npy(header("<f4", "4,"), new Float32Array(4).buffer),
            npy(header("<f4", "2, 3"), new Float32Array(4).buffer),
            npy("nonsense", new Float32Array(4).buffer),
        ]) {
            await dropFile(page, "mine.npy", file);
            await page.locator(".notice", { hasText: "an NPY file must hold" }).waitFor();
            await answerTo(page, () => dropFile(page, "mine.json", "[[1, 2], [3, 4]]"));
        }
        await page.finish();
    },
    async "own: pictures and other binary files are refused in a sentence, without their bytes"(stage) {
        for (const [locale, said] of [
            ["en-GB", "is neither text"],
            ["tr-TR", "ne UTF-8 metin"],
            ["ru-RU", "не текст в UTF-8"],
        ]) {
            const page = await openPage(stage, { locale });
            for (const [name, bytes] of [
                ["picture.png", PNG],
                ["picture.csv", PNG],
                ["picture.json", PNG],
                ["zeros.txt", Buffer.from("1,2\0\0")],
                ["sixteen.csv", Buffer.from("\ufeff1;2", "utf16le")],
            ]) {
                await dropFile(page, name, bytes);
                const notice = page.locator(".notice", { hasText: said });
                await notice.filter({ hasText: name }).waitFor();
                assert.doesNotMatch(await notice.textContent(), /\ufffd|PNG|IHDR|\0/);
            }
            await page.finish();
        }
    },
    async "own: CSV as spreadsheets write it: semicolons, decimal commas, quotes, ends of lines"(stage) {
        const page = await openPage(stage);
        for (const [text, wanted, tokens] of [
            ["1,5;2\r\n3;−4,25\r\n", [[1.5, 2], [3, -4.25]]],
            ['"a""b",1,2\r"c\nd",3,4', [[1, 2], [3, 4]], ['a"b', "c\nd"]],
            [",x,y\n'=1+1,1,2\n'-b,3,4\n", [[1, 2], [3, 4]], ["=1+1", "-b"]],
            ["1\t2\n3\t4", [[1, 2], [3, 4]]],
        ]) {
            const { request } = await answerTo(page, () => dropFile(page, "mine.csv", text));
            assert.deepEqual(request.inputs.query, wanted, text);
            assert.deepEqual(request.tokens?.query, tokens, text);
        }
        const raw = /undefined|iterable|Symbol|Unexpected|position|TypeError|\/inputs/;
        for (const [text, said] of [
            ["1,2\n3,x", "“x” in row 2 is not a number"],
            ["1,2\n3", "row 2 has another length"],
            ["a\nb\n", "no numbers"],
            [",x\nb,y\n", "“y” in row 2"],
            ["1,2\n3,", "a field is empty"],
            ["NaN inf", "NaN cannot be computed with"],
            ['{"a": 1}', 'no form that this page knows, such as [[1, 0], [0, 1]] or {"inputs": {"query": [[1, 0], [0, 1]]}}.'],
            ['{"inputs": {"query": [[1, 2], [3]]}}', "inputs.query"],
            ['{"attention": [[1, 2], [3]]}', "lists have different lengths"],
            ['{"a": [1, 2', "stops being JSON"],
            ["", "no numbers"],
        ]) {
            await dropFile(page, "mine.csv", text);
            await page.locator(".notice", { hasText: said }).waitFor();
            assert.doesNotMatch(await page.locator(".notice").textContent(), raw, text);
        }
        for (const [name, content] of [
            ["cut.safetensors", Buffer.from([255, 0, 0, 0, 0, 0, 0, 0, 123])],
            ["short.safetensors", Buffer.from([1])],
            ["cut.npy", Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1])],
            ["cut.npz", Buffer.from("PK")],
        ]) {
            await dropFile(page, name, content);
            await page.locator(".notice", { hasText: /safetensors file|NPY file|zip file/ }).waitFor();
            assert.doesNotMatch(await page.locator(".notice").textContent(), raw, name);
            await page.locator(".notice .close").click();
        }
        await page.finish();
    },
    async "own: a sentence that is too long, or none, is said in words for people"(stage) {
        const languages = [
            ["en-GB", /too long for the model. It has 322 tokens, and the model takes at most 64/, /Write a sentence/],
            ["tr-TR", /çok uzun.*322.*64/, /Bir cümle yazın/],
            ["ru-RU", /слишком длинное.*322.*64/, /Напишите предложение/],
        ];
        for (const [locale, long, empty] of someOf(languages, 3)) {
            const page = await openPage(stage, { locale }, "/", inLaboratory),
                box = page.locator(".panel textarea").first();
            await box.fill("word ".repeat(80));
            await page.locator(".notice", { hasText: long }).waitFor();
            assert.doesNotMatch(await page.locator(".notice").textContent(), /inputs|options|truncate/);
            await page.locator(".lab.stale").waitFor();
            await box.fill("");
            await page.locator(".panel .note", { hasText: empty }).waitFor();
            await answerTo(page, () => box.fill("Anna likes tea"));
            await page.locator(".stage h2", { hasText: "5 × 5" }).waitFor();
            assert.doesNotMatch(await page.locator(".panel .note").first().textContent(), empty);
            await tabOf(page, "models").click();
            await page.locator(".model-form input").first().fill("word ".repeat(80));
            await page.keyboard.press("Enter");
            await page.locator(".notice", { hasText: long }).waitFor();
            await page.finish();
        }
    },
};
