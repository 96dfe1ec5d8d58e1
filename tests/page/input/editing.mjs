/**
 * editing.mjs: changing numbers, masks and options; undoing it; comparing two runs.
 */
import assert from "node:assert/strict";
import {
    answerTo,
    assertClose,
    cellPoint,
    choosePreset,
    chooseStep,
    focusGrid,
    numberOf,
    openPage,
    settled,
} from "../support.mjs";

const optionsOf = (page) => page.locator(".panel section", { has: page.getByRole("heading", { name: "Options" }) });

export const cases = {
    async "editing: a number of the input goes to the server, and comes back by undo"(stage) {
        const page = await openPage(stage),
            { request: before } = await choosePreset(page, "three");
        await chooseStep(page, "X");
        await focusGrid(page);
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("Enter");
        const { request } = await answerTo(page, () => page.keyboard.type("5"));
        assert.equal(request.inputs.query[0][1], 5);
        assert.equal(before.inputs.query[0][1], 0.7);
        const undone = await answerTo(page, () => page.getByRole("button", { name: "Undo" }).click());
        assert.deepEqual(undone.request, before);
        const redone = await answerTo(page, () => page.getByRole("button", { name: "Redo" }).click());
        assert.deepEqual(redone.request, request);
        await page.finish();
    },
    async "editing: painting hides keys from queries, row and column not mixed up"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "cross");
        await page.getByRole("button", { name: "Paint mask" }).click();
        const [from, to] = [await cellPoint(page, 1, 3), await cellPoint(page, 1, 5)];
        const { request, answer } = await answerTo(page, async () => {
            await page.mouse.move(from.x, from.y);
            await page.mouse.down();
            await page.mouse.move(to.x, to.y, { steps: 12 });
            await page.mouse.up();
        });
        await settled(page);
        const { attend } = request.masks;
        assert.equal(attend.length, 4);
        assert.equal(attend[0].length, answer.outputs.attention[0][0][0].length);
        assert.equal(attend[1][3], false);
        assert.ok(attend[0].every(Boolean) && attend[2].every(Boolean));
        assert.equal(answer.outputs.attention[0][0][1][3], 0);
        await focusGrid(page);
        const keyed = await answerTo(page, () => page.keyboard.press("m"));
        assert.equal(keyed.request.masks.attend[0][0], false);
        const undo = page.getByRole("button", { name: "Undo" });
        const [first, stroke] = (await answerTo(page, () => undo.click())).request.masks.attend;
        assert.ok(first.every(Boolean));
        assert.deepEqual([3, 4, 5].map((j) => stroke[j]), [false, false, false]);
        const whole = await answerTo(page, () => undo.click());
        assert.equal(whole.request.masks, undefined, "a stroke is one step back");
        await answerTo(page, () => page.getByRole("button", { name: "Redo" }).click());
        const cleared = await answerTo(page, () => page.getByRole("button", { name: "Remove it" }).click());
        assert.equal(cleared.request.masks, undefined);
        await page.finish();
    },
    async "editing: options change the request, and empty ones leave it"(stage) {
        const page = await openPage(stage),
            { request: before } = await choosePreset(page, "cross");
        const scale = page.getByLabel("Scale", { exact: true });
        assert.equal((await answerTo(page, () => scale.fill("0.25"))).request.options.scale, 0.25);
        assert.equal((await answerTo(page, () => page.getByLabel("softcap").fill("3"))).request.options.softcap, 3);
        assert.equal((await answerTo(page, () => page.getByLabel("Causal").check())).request.masks.causal, true);
        assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
        await answerTo(page, () => page.getByLabel("Causal").uncheck());
        await answerTo(page, () => page.getByLabel("softcap").fill(""));
        assert.deepEqual((await answerTo(page, () => scale.fill(""))).request, before);
        await page.finish();
    },
    async "editing: heads, window and a number of a weight are taken over, and checked"(stage) {
        const page = await openPage(stage),
            { request: before } = await choosePreset(page, "causal");
        const heads = await answerTo(page, () => optionsOf(page).getByLabel("Heads", { exact: true }).fill("3"));
        assert.equal(heads.answer.outputs.attention[0].length, 3);
        assert.equal(await page.locator(".heads button").count(), 3);
        const window = await answerTo(page, () => page.getByLabel("Window").fill("2"));
        assert.equal(window.answer.outputs.attention[0][0][5][3], 0);
        assert.ok(window.answer.outputs.attention[0][0][5][4] > 0);
        await chooseStep(page, "W_K");
        await focusGrid(page);
        await page.keyboard.press("ArrowDown");
        await page.keyboard.press("Enter");
        const { request } = await answerTo(page, () => page.keyboard.type("2"));
        assert.equal(request.weights.key.weight[1][0], 2);
        assert.deepEqual(request.weights.query, before.weights.query);
        assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
        await page.finish();
    },
    async "editing: a file that is dropped anywhere is opened"(stage) {
        const page = await openPage(stage);
        const drop = (name, text) =>
            page.evaluate(
                ([name_, text_]) => {
                    const dataTransfer = new DataTransfer();
                    dataTransfer.items.add(new File([text_], name_));
                    document.querySelector(".rail").dispatchEvent(
                        new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer }),
                    );
                },
                [name, text],
            );
        const { request } = await answerTo(page, () => drop("mine.csv", "1,2\n3,4\n5,7\n"));
        assert.deepEqual(request.inputs.query, [
            [1, 2],
            [3, 4],
            [5, 7],
        ]);
        await drop("mine.json", "no JSON");
        await page.locator(".notice", { hasText: "cannot be used" }).waitFor();
        await page.finish();
    },
    async "editing: dropout of a seed is checked too, and another seed is another drop"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "cross");
        await answerTo(page, () => page.getByLabel("Dropout (training)").check());
        const first = await answerTo(page, () => page.getByLabel("p", { exact: true }).fill("0.5"));
        assert.match(await page.locator(".verdict").getAttribute("class"), /good/);
        const second = await answerTo(page, () => optionsOf(page).getByLabel("Seed").fill("9"));
        assert.notDeepEqual(first.answer.outputs.dropped, second.answer.outputs.dropped);
        assert.deepEqual(first.answer.outputs.attention, second.answer.outputs.attention);
        await page.finish();
    },
    async "editing: what the server refuses is said, and the old picture is marked as old"(stage) {
        const page = await openPage(stage);
        const { response } = await answerTo(page, () =>
            optionsOf(page).getByLabel("Heads", { exact: true }).fill("5"),
        );
        assert.equal(response.status(), 400);
        assert.match(await page.locator(".notice[role=alert]").textContent(), /The server refuses/);
        assert.match(await page.locator(".lab").getAttribute("class"), /stale/);
        await answerTo(page, () => page.getByRole("button", { name: "Undo" }).click());
        assert.equal(await page.locator(".notice").isVisible(), false);
        await page.finish();
    },
    async "editing: the difference of two runs is B minus A"(stage) {
        const page = await openPage(stage),
            { answer: a } = await choosePreset(page, "cross");
        await page.getByRole("button", { name: "Keep as A" }).click();
        const { answer: b } = await answerTo(page, () => page.getByLabel("Scale", { exact: true }).fill("2"));
        await page.getByRole("button", { name: "B − A" }).click();
        await page.getByRole("tab", { name: "Table" }).click();
        const cells = await page
            .locator(".table tbody tr")
            .evaluateAll((rows) => rows.map((row) => Array.from(row.querySelectorAll("td"), (td) => td.textContent)));
        const [was, is] = [a, b].map((answer) => answer.outputs.attention[0][0]);
        is.forEach((row, i) =>
            row.forEach((value, j) => assertClose(numberOf(cells[i][j]), value - was[i][j], 3, `[${i}, ${j}]`)),
        );
        await page.finish();
    },
    async "editing: own data: JSON, CSV with names, an answer's map, a file, and nonsense"(stage) {
        const page = await openPage(stage),
            area = page.getByLabel(/A request, an answer/),
            use = page.getByRole("button", { name: "Use it" });
        await area.fill("[[1, 0], [0, 1], [1, 1]]");
        assert.deepEqual((await answerTo(page, () => use.click())).request.inputs.query, [
            [1, 0],
            [0, 1],
            [1, 1],
        ]);
        await area.fill('name,a,b\n"one, two",1,2\nthree,0.5,-1e-2\n');
        const { request } = await answerTo(page, () => use.click());
        assert.deepEqual(request.inputs.query, [
            [1, 2],
            [0.5, -0.01],
        ]);
        assert.deepEqual(request.tokens.query, ["one, two", "three"]);
        const map = [
            [
                [
                    [0.25, 0.75, 0],
                    [0.1, 0.2, 0.7],
                ],
            ],
        ];
        await area.fill(
            JSON.stringify({ outputs: { attention: map }, tokens: { query: ["a", "b"], key: ["x", "y", "z"] } }),
        );
        const shown = (await answerTo(page, () => use.click())).answer.outputs.attention;
        map[0][0].forEach((row, i) =>
            row.forEach((value, j) => assertClose(shown[0][0][i][j], value, 5, `[${i}, ${j}]`)),
        );
        const file = {
            name: "mine.json",
            mimeType: "application/json",
            buffer: Buffer.from(JSON.stringify({ inputs: { query: [[3, 4]] } })),
        };
        assert.deepEqual(
            (await answerTo(page, () => page.locator("input[type=file]").setInputFiles(file))).request.inputs.query,
            [[3, 4]],
        );
        await area.fill("{ nonsense");
        await use.click();
        assert.match(await page.locator(".notice").textContent(), /cannot be used/);
        await page.finish();
    },
    async "editing: a safetensors file with a request in it"(stage) {
        const page = await openPage(stage),
            numbers = new Float32Array([1, 2, 3, 4, 5, 6]);
        const header = JSON.stringify({
            "inputs.query": { dtype: "F32", shape: [3, 2], data_offsets: [0, 24] },
            __metadata__: { request: JSON.stringify({ masks: { causal: true } }) },
        });
        const length = Buffer.alloc(8);
        length.writeBigUInt64LE(BigInt(header.length));
        const buffer = Buffer.concat([length, Buffer.from(header), Buffer.from(numbers.buffer)]);
        const file = { name: "mine.safetensors", mimeType: "application/octet-stream", buffer };
        const { request } = await answerTo(page, () => page.locator("input[type=file]").setInputFiles(file));
        assert.deepEqual(request.inputs.query, [
            [1, 2],
            [3, 4],
            [5, 6],
        ]);
        assert.deepEqual(request.masks, { causal: true });
        await page.finish();
    },
    async "editing: a text becomes tokens, the same word the same numbers"(stage) {
        const page = await openPage(stage);
        await page.getByLabel("Sentence").fill("bir elma bir armut");
        const { request } = await answerTo(page, () => page.getByRole("button", { name: "Make tokens" }).click());
        assert.deepEqual(request.tokens.query, ["bir", "elma", "bir", "armut"]);
        assert.equal(request.inputs.query.length, 4);
        await page.finish();
    },
    async "editing: another sentence keeps the kind of the example"(stage) {
        const page = await openPage(stage);
        for (const [preset, text, kept] of [
            ["cross", "Okula gidiyorum .", ({ inputs, weights, tokens }) => [inputs.key.length, tokens.key[0], weights.query.weight.length]],
            ["grouped", "Two heads", ({ masks, options }) => [masks, options.kv_num_heads, options.rope]],
            ["window", "Only five", ({ masks, options }) => [masks, options.num_heads]],
            ["three", "okula gidiyorum", ({ weights, masks }) => [weights, masks]],
        ]) {
            const { request: before } = await choosePreset(page, preset);
            const { request, response } = await answerTo(page, () => page.getByLabel("Sentence").fill(text));
            assert.equal(response.status(), 200, preset);
            assert.deepEqual(kept(request), kept(before), preset);
            assert.deepEqual(request.tokens.query, text.split(" "), preset);
            if (preset === "three") assert.deepEqual(request.inputs.query, before.inputs.query.slice(1));
        }
        await choosePreset(page, "padding");
        const { request } = await answerTo(page, () => page.getByLabel("Sentence").fill("Kedi çok uyuyor ."));
        assert.deepEqual(request.masks.key_lengths, [5, 4]);
        assert.deepEqual(request.tokens.query[1], ["Kedi", "çok", "uyuyor", ".", "[PAD]"]);
        await page.finish();
    },
    async "editing: undo covers the view, A, and expected values, in their order"(stage) {
        const page = await openPage(stage),
            title = (text) => page.locator(".stage h2", { hasText: text }).waitFor(),
            undo = () => page.getByRole("button", { name: "Undo" }).click();
        await page.locator(".heads button").nth(2).click();
        await title("head 2");
        await page.getByRole("tab", { name: "Links" }).click();
        await page.getByRole("button", { name: "Keep as A" }).click();
        await page.getByRole("button", { name: "A", exact: true }).click();
        await title("A · ");
        await undo();
        await title("B · ");
        await undo();
        await page.getByRole("button", { name: "Keep as A" }).waitFor();
        await undo();
        assert.equal(await page.getByRole("tab", { name: "Map" }).getAttribute("aria-selected"), "true");
        await undo();
        await title("head 0");
        assert.ok(await page.getByRole("button", { name: "Undo" }).isDisabled());
        for (let n = 0; n < 4; n++) await page.getByRole("button", { name: "Redo" }).click();
        await title("A · ");
        const own = page.locator(".panel section", { has: page.locator("textarea[placeholder]") });
        await own.locator("textarea").fill(JSON.stringify(Array.from({ length: 12 }, () => Array(12).fill(1 / 12))));
        await own.getByRole("combobox").selectOption("values");
        await own.getByRole("button").first().click();
        await page.locator(".expected").waitFor();
        await page.locator(".expected").getByRole("button", { name: "Remove" }).click();
        await page.locator(".expected").waitFor({ state: "hidden" });
        await undo();
        await page.locator(".expected").waitFor();
        await undo();
        await page.locator(".expected").waitFor({ state: "hidden" });
        await page.finish();
    },
};
