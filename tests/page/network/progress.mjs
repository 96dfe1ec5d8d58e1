/**
 * progress.mjs: the bar of a slow request: with the server's events, without any, and stopped.
 */
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { findings } from "../input/accessibility.mjs";
import { assertClose, eventually, inLaboratory, numberOf, openPage, opened, settled, tabOf } from "../support.mjs";
import { answerOf, cellOf, computed, say } from "../models/opened.mjs";

const TEXT = "Anna likes tea",
    WAIT_MS = 1500;
const bar = (page) => page.locator(".waiting");

/**
 * A server before the real one: requests about TEXT to models, and pooled maps, wait WAIT_MS after one progress.
 * @param {boolean} hasEvents else it is a server that knows no events
 */
async function startSlow(stage, hasEvents) {
    const state = { isSlow: true, left: 0 };
    const server = createServer(async (asked, response) => {
        const parts = [];
        for await (const part of asked) parts.push(part);
        const body = Buffer.concat(parts),
            isSlow = state.isSlow && asked.method === "POST" && (asked.url.includes("/models/") ? body.includes(TEXT) : body.includes("causal"));
        const headers = { ...asked.headers, host: new URL(stage.url).host };
        delete headers.origin;
        if (!hasEvents) headers.accept = headers.accept?.replace("text/event-stream, ", "");
        const forward = () =>
            request(stage.url + asked.url, { method: asked.method, headers }, (answer) => {
                if (!response.headersSent) response.writeHead(answer.statusCode, answer.headers);
                answer.pipe(response);
            }).end(body);
        if (!isSlow) return forward();
        if (hasEvents && asked.headers.accept.startsWith("text/event-stream")) {
            response.writeHead(200, { "Content-Type": "text/event-stream" });
            // An event arrives in pieces.
            response.write('event: progress\nda');
            setTimeout(() => response.write('ta: {"done":3,"of":12,"what":"layer"}\n\n'), 100);
        }
        const timer = setTimeout(forward, WAIT_MS);
        response.on("close", () => {
            if (response.writableFinished) return;
            clearTimeout(timer);
            state.left++;
        });
    });
    await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
    return { stage: { ...stage, url: `http://127.0.0.1:${server.address().port}` }, state, stop: () => server.close() };
}

async function openSlow(stage, hasEvents, options = {}) {
    const slow = await startSlow(stage, hasEvents),
        page = await openPage(slow.stage, options, "/", opened);
    await tabOf(page, "models").click();
    await computed(page);
    await page.getByRole("button", { name: "All tools" }).click();
    await page.locator(".model-form input").first().fill(TEXT);
    await page.keyboard.press("Enter");
    await bar(page).waitFor();
    return { ...slow, page };
}

export const cases = {
    async "progress: a slow request of a model has a bar with the server's numbers, and its answer is shown"(stage) {
        const { page, stop } = await openSlow(stage, true, { reducedMotion: "reduce" });
        assert.equal(await bar(page).locator("label").textContent(), "Computing: part 3 of 12");
        const { value, max } = await page.getByRole("progressbar", { name: "Computing: part 3 of 12" }).evaluate(({ value, max }) => ({ value, max }));
        assert.deepEqual([value, max], [3, 12]);
        await page.locator(".spoken", { hasText: "part 3 of 12" }).waitFor();
        assert.deepEqual(await findings(page), []);
        await bar(page).waitFor({ state: "hidden" });
        await computed(page);
        const label = await cellOf(page, 3, 1),
            { outputs } = await answerOf(stage, TEXT, { layers: [3], heads: [0] });
        assertClose(numberOf(label.split(", ").at(-1)), outputs.attention[0][0][0][3][1], 4, label);
        await page.finish();
        stop();
    },
    async "progress: a server without events has a bar without a value, and its answer is shown"(stage) {
        const { page, stop } = await openSlow(stage, false);
        assert.equal(await page.getByRole("progressbar", { name: "The server is computing" }).evaluate((element) => element.position), -1);
        await computed(page);
        assert.equal(await page.locator(".column .note").first().textContent(), "4 layers × 4 heads, 5 tokens");
        await page.finish();
        stop();
    },
    async "progress: a change while a text is computed waits for the text"(stage) {
        const { page, state, stop } = await openSlow(stage, true);
        await page.locator(".headview").getByRole("button", { name: "off", exact: true }).evaluate((button) => button.click());
        await page.locator(".trial-said", { hasText: "head 0 off" }).waitFor();
        assert.equal(await page.locator(".column .note").first().textContent(), "4 layers × 4 heads, 5 tokens");
        await page.finish();
        stop();
    },
    async "progress: a stopped request is left, and computed when it is asked for again"(stage) {
        const { page, state, stop } = await openSlow(stage, true, { viewport: { width: 390, height: 800 }, hasTouch: true });
        await bar(page).getByRole("button", { name: "Stop" }).tap();
        await page.locator(".notice", { hasText: "Stopped." }).waitFor();
        await bar(page).waitFor({ state: "hidden" });
        await eventually(async () => assert.ok(state.left > 0, "the request goes on"));
        state.isSlow = false;
        await page.getByRole("button", { name: "Compute it again" }).tap();
        await page.locator(".column .note", { hasText: "5 tokens" }).first().waitFor();
        await page.locator(".notice").waitFor({ state: "hidden" });
        await say(page, "Tom likes milk");
        await page.finish();
        stop();
    },
    async "progress: a stopped question has no answer, and the focus is where it is asked again"(stage) {
        const { page, state, stop } = await openSlow(stage, true);
        await computed(page);
        await page.locator(".questions").getByRole("button", { name: "Attribution" }).click();
        await bar(page).getByRole("button", { name: "Stop" }).click();
        await page.locator(".question .note", { hasText: "Stopped. There is no answer." }).waitFor();
        await page.waitForTimeout(100);
        assert.equal(await page.evaluate(() => document.activeElement.textContent), "Compute it again");
        state.isSlow = false;
        await page.keyboard.press("Enter");
        await page.locator(".question .said", { hasText: "The largest part is" }).waitFor();
        await page.finish();
        stop();
    },
    async "progress: the laboratory has the bar, and a newer request takes the place of the older one"(stage) {
        const { stage: before, state, stop } = await startSlow(stage, false);
        const page = await openPage(before, {}, "/", inLaboratory);
        await page.getByLabel("Causal").check();
        await bar(page).waitFor();
        state.isSlow = false;
        await page.getByLabel("Causal").uncheck();
        await settled(page);
        await bar(page).waitFor({ state: "hidden" });
        assert.ok(state.left > 0);
        await page.finish();
        stop();
    },
};
