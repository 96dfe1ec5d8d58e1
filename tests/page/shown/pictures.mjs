/**
 * pictures.mjs: the parts of the page that do not depend on fonts, dot by dot.
 *
 * A map's cells are colours of numbers: they have to be the same on every machine. Texts are not compared.
 */
import assert from "node:assert/strict";
import { tableOf as coloursOf } from "../../../server/web/maps/colour.js";
import { choosePreset, eventually, inLaboratory, numberOf, opened, openPage, settled, tableOf } from "../support.mjs";

/** Colour of each cell, a little off its middle where a number may stand. */
const colours = (page, rows, cols) =>
    page.evaluate(
        ([rows_, cols_]) => {
            const canvas = document.querySelector(".map .cells"),
                cell = document.querySelector("[role=gridcell]");
            const [from, box] = [canvas.getBoundingClientRect(), cell.getBoundingClientRect()],
                ratio = canvas.width / from.width;
            const context = canvas.getContext("2d"),
                found = [];
            for (let i = 0; i < rows_; i++)
                for (let j = 0; j < cols_; j++) {
                    const x = (box.left - from.left + (j + 0.15) * box.width) * ratio,
                        y = (box.top - from.top + (i + 0.15) * box.height) * ratio;
                    found.push(Array.from(context.getImageData(Math.round(x), Math.round(y), 1, 1).data.slice(0, 3)));
                }
            return found;
        },
        [rows, cols],
    );

const expected = (value, table) => {
    const word = table[Math.round(Math.min(1, Math.max(0, value)) * 255)];
    return [word & 255, (word >> 8) & 255, (word >> 16) & 255];
};

export const cases = {
    async "pictures: every cell has the colour of the server's number, at its place"(stage) {
        const page = await openPage(stage, { deviceScaleFactor: 2 });
        for (const palette of ["viridis", "cividis", "grey"]) {
            const { answer } = await choosePreset(page, "cross"),
                map = answer.outputs.attention[0][0];
            await page.getByRole("combobox", { name: "Colours" }).selectOption(palette);
            await settled(page);
            await page.locator("[role=gridcell]").focus();
            await page.keyboard.press("Control+Home");
            await settled(page);
            const table = coloursOf(palette);
            await eventually(async () => {
                const found = await colours(page, 4, 8);
                map.flat().forEach((value, at) =>
                    expected(value, table).forEach((wanted, c) =>
                        assert.ok(
                            Math.abs(found[at][c] - wanted) <= 3,
                            `${palette} [${Math.floor(at / 8)}, ${at % 8}]: ${found[at]} for ${value}`,
                        ),
                    ),
                );
            });
            await choosePreset(page, "three");
        }
        await page.finish();
    },
    async "pictures: a head that rests says so, and its column keeps its numbers without colours, until it is coloured"(stage) {
        const page = await openPage(stage, { deviceScaleFactor: 2 }, "/", inLaboratory),
            numbers = (await tableOf(page)).map((row) => row.map(numberOf)),
            size = numbers.length,
            share = numbers.reduce((sum, row) => sum + row[0], 0) / size;
        assert.equal(await page.locator(".resting span").textContent(), `This head mostly rests: ${Math.round(100 * share)} % of its weight goes to [CLS] (“nowhere to look”).`);
        assert.ok(numbers.filter(([first]) => first > 0.99).length > 10);
        const isColoured = (found, row, col) => expected(numbers[row][col], coloursOf("viridis")).every((wanted, c) => Math.abs(found[row * size + col][c] - wanted) <= 3);
        for (const isLeft of [true, false]) {
            await page.locator("[role=gridcell]").focus();
            await page.keyboard.press("Control+Home");
            await settled(page);
            await eventually(async () => {
                const found = await colours(page, size, size);
                for (let row = 1; row < size; row++)
                    for (let col = 0; col < size; col++) assert.equal(isColoured(found, row, col), col > 0 || !isLeft, `${row}, ${col}`);
            });
            if (isLeft) await page.getByRole("button", { name: "Colour that column" }).click();
        }
        await page.locator(".heads button").nth(2).click();
        await page.locator(".resting").waitFor({ state: "hidden" });
        await page.finish();
    },
    async "pictures: ranges change colours, not numbers"(stage) {
        const page = await openPage(stage);
        await choosePreset(page, "cross");
        const said = new Set(),
            seen = new Set();
        for (const range of ["full", "max", "log"]) {
            await page.getByRole("combobox", { name: "Range" }).selectOption(range);
            await settled(page);
            said.add(await page.locator(".readout b").textContent());
            let now = "";
            for (let n = 0; n < 50 && (now === "" || seen.has(now)); n++) {
                await settled(page); // tiles are made in the background
                now = JSON.stringify(await colours(page, 4, 8));
            }
            seen.add(now);
        }
        assert.equal(said.size, 1);
        assert.equal(seen.size, 3);
        await page.finish();
    },
    async "pictures: a link is as wide as its number, in the opening and in the laboratory"(stage) {
        const opening = await openPage(stage, {}, "/", opened);
        await opening.getByRole("button", { name: "Your sentence" }).click();
        await opening.getByRole("textbox", { name: "Sentence" }).fill("Barack Obama visited Ankara because he was invited");
        await opening.getByText("Barack", { exact: true }).waitFor();
        await eventually(async () => {
            const [numbers, widths] = await opening.evaluate(() => [
                Array.from(document.querySelectorAll(".word .value"), ({ textContent }) => Number(textContent)),
                Array.from(document.querySelectorAll(".arcs path"), ({ style }) => (Number(style.strokeOpacity) > 0 ? parseFloat(style.strokeWidth) : 0)).filter(Boolean),
            ]);
            const largest = numbers.sort((a, b) => b - a).slice(0, widths.length);
            assert.ok(widths.length > 1 && largest.every((number, at) => Math.abs(1 + 7 * number - widths[at]) <= 0.04), `${largest} and ${widths}`);
        });
        await opening.finish();
        const page = await openPage(stage),
            { answer } = await choosePreset(page, "cross");
        await page.getByRole("tab", { name: "Links" }).click();
        await page.getByRole("textbox", { name: "Strongest of each token" }).fill("1");
        const wanted = answer.outputs.attention[0][0].map((row) => Math.max(...row)),
            chosen = 0;
        await eventually(async () => {
            /** Of each row, the sum of the opacities across its link, where all links are level. */
            const found = await page.evaluate((rows) => {
                const canvas = document.querySelector(".stage .sides canvas"),
                    ratio = canvas.width / canvas.clientWidth,
                    { data } = canvas.getContext("2d").getImageData(Math.round(4 * ratio), 0, 1, Math.round(26 * rows * ratio));
                return Array.from({ length: rows }, (_, row) => {
                    let sum = 0;
                    for (let y = Math.round(26 * row * ratio); y < Math.round(26 * (row + 1) * ratio); y++) sum += data[4 * y + 3] / 255;
                    return sum / ratio;
                });
            }, wanted.length);
            wanted.forEach((weight, row) => {
                const share = row === chosen ? 1 : 0.12, // links of the other rows are pale
                    across = share * (0.12 + 0.88 * weight) * (0.75 + 5 * weight);
                assert.ok(Math.abs(found[row] - across) <= 0.15, `row ${row}: ${found[row]} for ${across}`);
            });
        });
        await page.finish();
    },
};
