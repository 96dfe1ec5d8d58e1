/**
 * opened.mjs: the mode of models as people drive it, and the server's own answers to compare with.
 */
import { addressOf, opened, openPage, settled, tabOf } from "../support.mjs";

export const SENTENCE = "The animal did not cross the street because it was too tired";
export const HIDDEN = "The animal did not cross the street because the [MASK] was too tired";
/** Columns of "demo" behind its four heads. */
export const EXTRA = { mean: 4, max: 5, rollout: 6 };

/** Until every text is answered and drawn. */
export async function computed(page) {
    await page.waitForFunction(
        () =>
            document.querySelector(".models .readout b, .models .links .tokens button") &&
            !document.querySelector(".models [aria-busy=true]"),
        null,
        { timeout: 30000 },
    );
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** With the row of "it", of a sentence that hides no word. */
const SHOWN = addressOf({ preset: "sentence", view: { mode: "models", models: { texts: [SENTENCE], row: 9, tools: "open" } } });

export async function openModels(stage, options = {}, path = SHOWN) {
    const page = await openPage(stage, options, path, path === "/" ? opened : path === SHOWN ? computed : settled);
    if (path !== SHOWN) await tabOf(page, "models").click();
    await computed(page);
    return page;
}

/** The mode as it opens, with its hidden word. Until the switch stands. */
export async function openTrial(stage, options = {}) {
    const page = await openModels(stage, options, "/");
    await page.locator(".trial .main").waitFor();
    return page;
}

export const sentence = (page) => page.locator(".model-form input").first();

export async function say(page, text) {
    await sentence(page).fill(text);
    await page.keyboard.press("Enter");
    await computed(page);
}

/** The focused head. */
export const headCell = (page) => page.locator(".headgrid [role=gridcell]").first();

/** Goes to a head from wherever the focus is. */
export async function openHead(page, layer, head) {
    await headCell(page).focus();
    await page.keyboard.press("Control+Home");
    for (let n = 0; n < layer; n++) await page.keyboard.press("ArrowDown");
    for (let n = 0; n < head; n++) await page.keyboard.press("ArrowRight");
    await computed(page);
}

/** Goes to a cell of the map of the open head. @returns {Promise<string>} what the label says */
export async function cellOf(page, row, col) {
    const cell = page.locator(".headview [role=gridcell]").first();
    await cell.focus();
    await page.keyboard.press("Control+Home");
    for (let n = 0; n < row; n++) await page.keyboard.press("ArrowDown");
    for (let n = 0; n < col; n++) await page.keyboard.press("ArrowRight");
    return cell.getAttribute("aria-label");
}

/** Red, green and blue of a drawn canvas, so many CSS pixels from the corner of the focused cell of its grid. @returns {Promise<number[]>} */
export const colourAt = (page, part, right, down) =>
    page.evaluate(
        ([selector, x, y]) => {
            const canvas = document.querySelector(`${selector} canvas`),
                cell = document.querySelector(`${selector} [role=gridcell]`).getBoundingClientRect(),
                from = canvas.getBoundingClientRect(),
                ratio = canvas.width / from.width,
                point = [cell.left - from.left + x, cell.top - from.top + y].map((place) => Math.floor(place * ratio));
            return Array.from(canvas.getContext("2d").getImageData(...point, 1, 1).data.slice(0, 3));
        },
        [part, right, down],
    );

/** The server's answer about a text, or about other inputs. */
export async function answerOf(stage, text, options = {}, model = "demo", inputs = {}) {
    const response = await fetch(`${stage.url}/v1/models/${model}/attention`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ inputs: { text, ...inputs }, options }),
    });
    return response.json();
}

/** The rows of a table of predictions: the texts of their cells. */
export const guessesOf = (page, at) =>
    page
        .locator(".guess-table")
        .nth(at)
        .locator("tbody tr")
        .evaluateAll((rows) => rows.map((row) => Array.from(row.children, (cell) => cell.textContent)));
