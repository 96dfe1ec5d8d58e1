/**
 * examples.mjs: what of examples/ is for browsers, in a browser: from disk, with the server on another origin.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { openPage } from "../support.mjs";

const FOLDER = new URL("../../../examples/", import.meta.url);
const WEIGHTS = ["1.0000 0.0000 0.0000", "0.5212 0.4788 0.0000", "0.1633 0.2660 0.5708"];

const openExample = (stage) =>
    openPage(stage, {}, new URL("page.html", FOLDER).href, (page) => page.getByLabel("Server").waitFor());

const compute = (page, server) =>
    page
        .getByLabel("Server")
        .fill(server)
        .then(() => page.getByRole("button", { name: "Compute" }).click());

export const cases = {
    async "examples: page.html draws the weights"(stage) {
        const page = await openExample(stage);
        await compute(page, stage.url);
        await page.getByRole("cell", { name: "gidiyorum" }).first().waitFor();
        const rows = await page.locator("tr").evaluateAll((lines) => lines.map((line) => [...line.cells].slice(1)
            .map((cell) => cell.textContent).join(" ")));
        assert.deepEqual(rows, ["Ben okula gidiyorum", ...WEIGHTS]);
        await page.finish();
    },
    async "examples: page.html says when there is no server"(stage) {
        const page = await openExample(stage);
        const closed = createServer().listen(0, "127.0.0.1");
        await once(closed, "listening");
        const { port } = closed.address();
        await new Promise((resolve) => closed.close(resolve));
        await compute(page, `http://127.0.0.1:${port}`);
        await page.getByText("Failed to fetch", { exact: true }).waitFor();
        assert.equal(await page.locator("tr").count(), 0);
        await page.context().close();
    },
    async "examples: tensors.js in a browser, without a copy of the answer"(stage) {
        const page = await openExample(stage);
        await page.addScriptTag({ url: new URL("tensors.js", FOLDER).href });
        const { weights, isOneBuffer } = await page.evaluate(async (server) => {
            const tensor = (values) => ({ data: new Float32Array(values), shape: [3, 2] });
            const { attention, output } = await attendTensors(
                server,
                {
                    "inputs.query": tensor([0.3, 0.8, 1.2, 0.4, 1.2, 1.3]),
                    "inputs.key": tensor([0.8, 0.3, 0.4, 1.2, 1.3, 1.2]),
                    "inputs.value": tensor([0.2, 0.7, 0.9, 0.1, 0.4, 0.5]),
                },
                { masks: { causal: true } },
            );
            return { weights: [...attention.data], isOneBuffer: attention.data.buffer === output.data.buffer };
        }, stage.url);
        assert.equal(weights.map((weight) => weight.toFixed(4)).join(" "), WEIGHTS.join(" "));
        assert.ok(isOneBuffer);
        await page.finish();
    },
};
