/**
 * taken.mjs: views as pictures: each opens without the page, and has the colours of the view at the same place.
 */
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { exported, inFolder, inLaboratory, opened, openPage, tabOf } from "../support.mjs";

const DIFFERENT_MOST = 0.1;

const inMode = (mode, shown) => async (page) => {
    await opened(page);
    await tabOf(page, mode).click();
    await page.locator(shown).waitFor();
};
const tab = (name) => (page) => page.getByRole("tab", { name }).click();
const SENTENCE = /The animal did not/;

/**
 * For each mode, how to come there, and its views: how to get there, the element that the picture shows, the name in the
 * menu, and the words of its title and of its origin.
 */
const MODES = {
    "the opening": [opened, { of: ".picture", title: /^“it” looks at “animal”/, origin: /Layer 3, head 0 of the small model “demo”/ }],
    "the story": [inMode("story", ".scene svg"), { of: ".story-body", title: /\w/, origin: /^attnd · \w/ }],
    "links, table and layers": [
        inLaboratory,
        { go: tab("Links"), of: ".stage .links", title: /^demo, layer 3 · softmax · head 0/, origin: SENTENCE },
        { go: tab("Table"), of: ".stage .table table", title: /^demo, layer 3 · softmax · head 0/, origin: SENTENCE },
        { go: tab("Layers"), of: ".layers .headgrid", title: /^demo · Layers/, origin: SENTENCE },
    ],
    "heads, one head, and a sweep": [
        inMode("models", ".headview .readout b"),
        { of: ".grid-box .headgrid", name: "Heads · ", title: /^Heads · /, origin: /demo · / },
        { of: ".headview .map", name: "layer 3, head 0 · ", title: /layer 3, head 0/, origin: /demo · / },
        {
            go: async (page) => {
                await page.getByRole("button", { name: "All tools" }).click();
                await page.getByRole("button", { name: "Sweep" }).click();
                await page.locator(".sweep .map canvas").first().waitFor();
            },
            of: ".sweep .map",
            name: "Sweep · ",
            title: /\w/,
            origin: /demo · /,
        },
    ],
};

/** Share of the dots that differ in two pictures, each made smaller: elements begin between dots, so that edges differ. */
const difference = (page, pictures) =>
    page.evaluate(
        async (addresses) => {
            const [a, b] = await Promise.all(
                addresses.map(async (src) => {
                    const image = Object.assign(new Image(), { src });
                    await image.decode();
                    const context = Object.assign(document.createElement("canvas"), { width: 32, height: 32 }).getContext("2d");
                    context.imageSmoothingQuality = "high";
                    context.drawImage(image, 0, 0, 32, 32);
                    return context.getImageData(0, 0, 32, 32).data;
                }),
            );
            return a.reduce((count, value, at) => count + Number(Math.abs(value - b[at]) > 40), 0) / a.length;
        },
        pictures.map((bytes) => `data:image/png;base64,${bytes.toString("base64")}`),
    );

const textOf = (page, selector) => page.locator(selector).first().evaluate((element) => element.innerText.replace(/\s+/g, " "));

/** A file of a picture in a page of its own. */
async function onPage(stage, path, work) {
    const page = await stage.browser.newPage({ viewport: { width: 2000, height: 2000 } });
    try {
        await page.goto(pathToFileURL(path).href);
        return await work(page);
    } finally {
        await page.close();
    }
}

async function takes(stage, page, { of, name = "", title, origin }) {
    await inFolder(async (folder) => {
        const [svg, png] = [await exported(page, name + "SVG", folder), await exported(page, name + "PNG", folder)],
            shown = await page.locator(of).first().screenshot(),
            text = await textOf(page, of);
        const place = await onPage(stage, svg, async (picture) => {
            assert.match(await textOf(picture, ".sheet h2"), title);
            assert.match(await textOf(picture, ".sheet > .note"), origin);
            assert.equal(await textOf(picture, of), text);
            const element = picture.locator(of).first(),
                found = await difference(page, [shown, await element.screenshot()]);
            assert.ok(found < DIFFERENT_MOST, `${of}: ${found} of the SVG differs`);
            return element.boundingBox();
        });
        await onPage(stage, png, async (picture) => {
            await picture.locator("img").evaluate((image) => {
                Object.assign(image.style, { position: "absolute", left: 0, top: 0, margin: 0, width: `${image.naturalWidth / 2}px`, height: "auto" });
            });
            const found = await difference(page, [shown, await picture.screenshot({ clip: place })]);
            assert.ok(found < DIFFERENT_MOST, `${of}: ${found} of the PNG differs`);
        });
    });
}

/** On a telephone, the list opens within the window. */
async function opensInWindow(stage) {
    for (const come of [opened, inMode("models", ".headview .readout b"), inLaboratory]) {
        const page = await openPage(stage, { viewport: { width: 390, height: 844 } }, "/", come);
        await page.locator(".more").click();
        await page.locator(".menu", { hasText: "Export" }).locator("summary").click();
        const { x, width } = await page.locator(".menu[open] > div").boundingBox();
        assert.ok(x >= 0 && x + width <= 390, `from ${x} to ${x + width}`);
        await page.finish();
    }
}

export const cases = Object.fromEntries(
    Object.entries(MODES).map(([name, [come, ...views]]) => [
        `taken: as a picture with its title and its origin: ${name}`,
        async (stage) => {
            const page = await openPage(stage, { viewport: { width: 1920, height: 1080 } }, "/", come);
            for (const { go, ...view } of views) {
                await go?.(page);
                await takes(stage, page, view);
            }
            await page.finish();
        },
    ]),
);
cases["taken: on a telephone the list of formats opens within the window"] = opensInWindow;
