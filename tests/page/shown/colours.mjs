/**
 * colours.mjs: what can be computed of the sizes and the colours in the style: the contrast of texts with what they stand on, and
 * how far colours with a meaning are from each other for people who see two kinds of colours only.
 *
 * A colour of the style belongs to a list below when it becomes one of a text, or gets a meaning.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";

const WEB = new URL("../../../server/web/", import.meta.url);

/** Colours of texts, and what each stands on. */
const TEXTS = {
    ink: ["panel", "ground", "field", "accent-soft", "hidden"],
    muted: ["panel", "ground", "field", "hidden"],
    accent: ["panel", "ground", "field", "accent-soft"],
    good: ["panel", "ground"],
    bad: ["panel", "ground", "field"],
    panel: ["accent", "ink"],
    q: ["panel", "ground"],
    k: ["panel", "ground"],
    v: ["panel", "ground"],
};
/** WCAG 2.2, 1.4.3 and 1.4.11. */
const TEXT_LEAST = 4.5,
    LINE_LEAST = 3;

/** Colours that stand beside each other and mean different things. Those that the style does not have are left out. */
const MEANINGS = [
    ["good", "bad"],
    ["q", "k", "v"],
];

/** How people without one kind of cones see linear RGB. Machado, Oliveira, Fernandes (2009), severity 1. */
const SIGHTS = {
    "all cones": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    protanopia: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
    deuteranopia: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
    tritanopia: [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
};
/** In OKLab, where white is 1 from black: five times the least difference that one sees. */
const APART_LEAST = 0.1;
/** Heads are named beside their colours. */
const HEADS_APART_LEAST = 0.07;

/** Colours by name, of the light and of the dark theme. @returns {Record<string, number[]>[]} */
function coloursOfStyle() {
    const found = Array.from(readFileSync(new URL("maps/style.css", WEB), "utf8").matchAll(/--([\w-]+): light-dark\(#(\w{6}), #(\w{6})\)/g));
    return [2, 3].map((theme) => Object.fromEntries(found.map((match) => [match[1], linear(match[theme])])));
}

/** Linear RGB of a colour in hexadecimal digits. */
const linear = (hex) =>
    [0, 2, 4].map((at) => {
        const value = parseInt(hex.slice(at, at + 2), 16) / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });

const product = (matrix, [a, b, c]) => [0, 3, 6].map((at) => matrix[at] * a + matrix[at + 1] * b + matrix[at + 2] * c);
const luminance = (rgb) => 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2];

function contrast(a, b) {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
}

/** Ottosson (2020). */
function okLab(rgb) {
    const cones = product([0.4122214708, 0.5363325363, 0.0514459929, 0.2119034982, 0.6806995451, 0.1073969566, 0.0883024619, 0.2817188376, 0.6299787005], rgb);
    return product([0.2104542553, 0.793617785, -0.0040720468, 1.9779984951, -2.428592205, 0.4505937099, 0.0259040371, 0.7827717662, -0.8086757660], cones.map(Math.cbrt));
}

function apart(a, b, sight) {
    const [x, y] = [a, b].map((rgb) => okLab(product(SIGHTS[sight], rgb).map((value) => Math.min(1, Math.max(0, value)))));
    return Math.hypot(...x.map((value, at) => value - y[at]));
}

const pairsOf = (list) => list.flatMap((a, at) => list.slice(at + 1).map((b) => [a, b]));

/** Pairs of colours that are too near for somebody. */
const tooNear = (colours, names, least = APART_LEAST) =>
    pairsOf(names.filter((name) => colours[name])).flatMap(([a, b]) =>
        Object.keys(SIGHTS)
            .map((sight) => [sight, apart(colours[a], colours[b], sight)])
            .filter(([, distance]) => distance < least)
            .map(([sight, distance]) => `${a} and ${b}, ${sight}: ${distance.toFixed(3)}`),
    );

export const cases = {
    "colours: each text has the contrast that WCAG asks for, in both themes"() {
        for (const [theme, colours] of coloursOfStyle().entries()) {
            const found = Object.entries(TEXTS).flatMap(([text, grounds]) => (colours[text] ? grounds.map((ground) => [text, ground, contrast(colours[text], colours[ground])]) : []));
            assert.ok(found.length > 15);
            assert.deepEqual(found.filter(([, , ratio]) => ratio < TEXT_LEAST).map((one) => one.join(" ")), [], ["light", "dark"][theme]);
        }
    },
    "colours: those that mean different things differ for everybody, in both themes"() {
        for (const [theme, colours] of coloursOfStyle().entries())
            for (const names of MEANINGS) assert.deepEqual(tooNear(colours, names), [], ["light", "dark"][theme]);
    },
    "colours: lines of different heads are seen on both grounds, and the first three differ for everybody"() {
        const digits = /HEAD_COLOURS = \[(.*?)\]/.exec(readFileSync(new URL("models/headgrid.js", WEB), "utf8"))[1].match(/(?<=#)\w{6}/g),
            heads = Object.fromEntries(digits.map((hex, at) => [at, linear(hex)]));
        for (const { panel } of coloursOfStyle())
            for (const [at, colour] of Object.entries(heads)) assert.ok(contrast(colour, panel) >= LINE_LEAST, `head ${at}: ${contrast(colour, panel)}`);
        assert.deepEqual(tooNear(heads, Object.keys(heads).slice(0, 3), HEADS_APART_LEAST), []);
    },
    "sizes: a text has one of the named sizes, or a share of that around it"() {
        const sizes = readFileSync(new URL("style.css", WEB), "utf8").match(/\/\* Sizes of text\. \*\/\n((?: +--.*\n)+)/)[1],
            names = Array.from(sizes.matchAll(/--(\w+):/g), ([, name]) => name);
        assert.ok(names.length <= 6, names.join(" "));
        const sheets = readdirSync(WEB, { recursive: true }).filter((file) => file.endsWith(".css")),
            found = sheets.flatMap((file) => Array.from(readFileSync(new URL(file, WEB), "utf8").matchAll(/font(?:-size)?:\s*([^;]+);/g), ([, value]) => [file, value.replace(/\s+/g, " ")]));
        const isNamed = (value) => names.some((name) => value.includes(`var(--${name})`)) || /^(inherit|0|[\d.]+em|clamp\(100%.*|\d+px system-ui.*)$/.test(value); // pixels: in an SVG
        assert.ok(found.length > 30);
        assert.deepEqual(found.filter(([, value]) => !isNamed(value)), []);
    },
};
