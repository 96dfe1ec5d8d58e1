/**
 * run.mjs --attnd PROGRAM [--chromium PROGRAM] [--only WORD]: the page in a real browser, with a server of its own.
 *
 * Every case gets a fresh context of the browser. Times are reported and not judged: machines differ.
 */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { startBrowser, startServer } from "./support.mjs";
import * as texts from "./texts.mjs";

const FILES = [
    "types",
    "http",
    "values",
    "presets",
    "editing",
    "keyboard",
    "accessibility",
    "layers",
    "sharing",
    "safety",
    "large",
    "pictures",
    "frontends",
    "docs",
];

const { values: options } = parseArgs({
    options: {
        attnd: { type: "string" },
        only: { type: "string", default: "" },
        chromium: { type: "string", default: "/usr/bin/chromium" },
        update: { type: "boolean", default: false },
    },
});
if (!options.attnd || !existsSync(options.chromium)) {
    console.error(options.attnd ? `no browser at ${options.chromium}` : "--attnd PROGRAM is needed");
    process.exit(2);
}

async function main() {
    const cases = [...Object.entries(texts.cases)];
    for (const file of FILES) cases.push(...Object.entries((await import(`./${file}.mjs`)).cases));
    const server = await startServer(options.attnd),
        browser = await startBrowser(options.chromium);
    const stage = { browser, url: server.url, update: options.update, attnd: options.attnd };
    let failed = 0,
        passed = 0;
    for (const [name, run] of cases) {
        if (!name.includes(options.only)) continue;
        try {
            const report = await run(stage);
            passed++;
            console.log(`ok      ${name}${report ? ": " + report : ""}`);
        } catch (problem) {
            failed++;
            console.log(`FAILED  ${name}\n${String(problem.stack ?? problem).replace(/^/gm, "        ")}`);
        }
    }
    await browser.close();
    await server.stop();
    console.log(`page: ${passed} passed, ${failed} failed`);
    return failed === 0 ? 0 : 1;
}

process.exit(await main());
