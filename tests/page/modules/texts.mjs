/**
 * texts.mjs: the tables of texts are whole, and hold what the modules ask for.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { LANGUAGES } from "../../../server/web/texts.js";
import { PRESETS } from "../../../server/web/request/presets.js";

const WEB = new URL("../../../server/web/", import.meta.url);

/** By language. */
const TABLES = LANGUAGES.map(([id]) => JSON.parse(readFileSync(new URL(`texts/${id}.json`, WEB), "utf8")));
const [TEXTS] = TABLES;

const SOURCES = readdirSync(WEB, { recursive: true })
    .filter((name) => name.endsWith(".js") && name !== "texts.js")
    .map((name) => readFileSync(new URL(name, WEB), "utf8"))
    .join("\n");

/** Keys that are asked for by name, and beginnings of keys that are put together. */
function keysAskedFor() {
    const whole = new Set(),
        begun = new Set();
    for (const [, key, plus] of SOURCES.matchAll(/\bt\("([\w.]+)"\s*(\+)?/g)) (plus ? begun : whole).add(key);
    return { whole, begun };
}

const holesOf = (text) =>
    Array.from(text.matchAll(/\{(\w+)\}/g), ([, name]) => name)
        .sort()
        .join();

export const cases = {
    "texts: every language has every text, with the same values in it"() {
        for (const table of TABLES) {
            assert.deepEqual(Object.keys(table), Object.keys(TEXTS));
            for (const [key, text] of Object.entries(table)) {
                assert.ok(text.trim() !== "", key);
                assert.equal(holesOf(text), holesOf(TEXTS[key]), key);
            }
        }
    },
    "texts: no key is missing and none is left over"() {
        const { whole, begun } = keysAskedFor();
        for (const key of whole) assert.ok(TEXTS[key], `"${key}" is asked for`);
        for (const beginning of begun)
            assert.ok(
                Object.keys(TEXTS).some((key) => key.startsWith(beginning)),
                `"${beginning}…" is asked for`,
            );
        for (const key of Object.keys(TEXTS))
            assert.ok(
                SOURCES.includes(`"${key}"`) || [...begun].some((beginning) => key.startsWith(beginning)),
                `"${key}" is asked for nowhere`,
            );
    },
    "texts: every preset has a name"() {
        for (const id of PRESETS) assert.ok(TEXTS["preset." + id], id);
    },
};
