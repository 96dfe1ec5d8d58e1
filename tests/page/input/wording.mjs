/**
 * wording.mjs: which words of the page, seen or read out, are of no text in its language.
 */
import { readdirSync, readFileSync } from "node:fs";
import { PRESETS, presetCase } from "../../../server/web/request/presets.js";
import { SENTENCES } from "../../../server/web/models/view_state.js";

const WEB = new URL("../../../server/web/", import.meta.url);
const json = (path) => JSON.parse(readFileSync(new URL(path, WEB), "utf8"));
const LESSONS = readdirSync(new URL("lessons/", WEB)).map((name) => json("lessons/" + name));

const WORD = /\p{L}{2,}/gu;

/** What stands in quotes is somebody's, and a token that is cut ends in "…". */
const wordsOf = (text) =>
    text
        .replace(/“[^”]*”|«[^»]*»|\p{L}+…/gu, " ")
        .toLowerCase()
        .match(WORD) ?? [];

/** Names that are the same in every language: of the API's members, of functions, of programs and of formats. */
const NAMES = `attnd demo small model self attn endoftext bert encoder layer attention softmax concat norm rms pre post rope
    qkᵀ kᵀ exp max log cls sep float json csv npy npz png svg html iframe curl python numpy torch bertviz safetensors attentions tokens rtol atol
    ctrl enter shift api models layers heads queries keys`;

/** Words of sentences: of what is computed on, in whatever language that is. */
const TOKENS = [
    ...PRESETS.flatMap((id) => Object.values(presetCase(id).request.tokens ?? {}).flat(2)),
    ...Object.values(SENTENCES).flat(),
    "English Türkçe Русский",
];

/** Every text in a lesson; of what it has in several languages, the one. */
function textsIn(value, language) {
    if (typeof value === "string") return [value];
    if (value === null || typeof value !== "object") return [];
    return value.en && value[language] ? textsIn(value[language], language) : Object.values(value).flatMap((one) => textsIn(one, language));
}

/** Of the page in this language all words that may be seen. */
export function vocabularyOf(language) {
    const lessons = LESSONS.flatMap((lesson) => textsIn(lesson, language));
    return new Set([NAMES, ...TOKENS, ...Object.values(json(`texts/${language}.json`)), ...lessons].flatMap((text) => text.toLowerCase().match(WORD) ?? []));
}

/** What is seen, and what is read out in its place: texts, and the attributes that are texts. */
const SEEN = (skipped) => {
    const texts = [document.title],
        tokens = Array.from(document.querySelectorAll("bdi"), (token) => token.textContent);
    for (const element of document.body.querySelectorAll("*")) {
        if (!element.checkVisibility() && !(element.tagName === "OPTION" && element.closest("select").checkVisibility())) continue;
        if (element.closest(`bdi, code, pre, script, textarea, noscript, ${skipped}`)) continue;
        for (const name of ["aria-label", "title", "placeholder", "label"]) texts.push(element.getAttribute(name) ?? "");
        for (const { nodeType, data } of element.childNodes) if (nodeType === Node.TEXT_NODE) texts.push(data);
    }
    return { texts, tokens };
};

/**
 * @param {Set<string>} vocabulary of the page's language
 * @param {string} skipped selects what others have written
 * @returns {Promise<string[]>} texts with a word that is not of this language
 */
export async function foreignTexts(page, vocabulary, skipped = ".nothing") {
    const { texts, tokens } = await page.evaluate(SEEN, skipped),
        shown = new Set(tokens.flatMap((token) => token.toLowerCase().match(WORD) ?? []));
    return [...new Set(texts)].filter((text) => wordsOf(text).some((word) => !vocabulary.has(word) && !shown.has(word)));
}
