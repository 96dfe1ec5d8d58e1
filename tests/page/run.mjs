/**
 * run.mjs --attnd PROGRAM [--chromium PROGRAM] [--only WORD] [--times]: the page in a real browser, with a server of its own.
 *
 * Every case gets a fresh context of the browser, and a second try. --times runs the cases that report times, which need an idle machine.
 * Times are not judged: machines differ.
 */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { startBrowser, startServer } from "./support.mjs";

/** Lanes run beside each other: most of a case is waiting. There is one clipboard, so all that copies is in one lane. */
const LANES = [
    [
        "modules/types",
        "network/http",
        "network/languages",
        "shown/values",
        "input/editing",
        "shown/numbers",
        "input/own",
        "expected/readers",
        "expected/diagnosis",
        "expected/faults",
        "expected/shown",
        "expected/debugger",
        "models/changed",
        "models/asked",
        "input/touch",
        "network/offline",
        "input/keyboard",
        "input/focus",
        "shown/pictures",
        "shown/taken",
        "shown/colours",
        "shown/printed",
        "shown/animated",
        "shown/story",
        "network/docs",
        // Programs that change when we change their version.
        ...(process.env.ATTN_LONG ? ["network/frontends"] : []),
    ],
    [
        "models/dumps",
        "shown/opening",
        "shown/presets",
        "input/accessibility",
        "shown/layers",
        "network/sharing",
        "network/copies",
        "shown/compare",
        "network/addresses",
        "network/safety",
        "network/progress",
        "network/examples",
        "network/origins",
        "network/embedding",
        "models/heads",
        "models/scored",
    ],
];

/** What measures times, with nothing beside it. */
const ALONE = ["shown/large", "models/times"];

const { values: options } = parseArgs({
    options: {
        attnd: { type: "string" },
        only: { type: "string", default: "" },
        times: { type: "boolean", default: false },
        chromium: { type: "string", default: "/usr/bin/chromium-headless-shell" },
    },
});
if (!options.attnd || !existsSync(options.chromium)) {
    console.error(options.attnd ? `no browser at ${options.chromium}` : "--attnd PROGRAM is needed");
    process.exit(2);
}

async function casesOf(files) {
    const modules = await Promise.all(files.map((file) => import(`./${file}.mjs`)));
    return modules.flatMap(({ cases }) => Object.entries(cases)).filter(([name]) => name.includes(options.only));
}

async function main() {
    const server = await startServer(options.attnd),
        browser = await startBrowser(options.chromium);
    const stage = { browser, url: server.url, attnd: options.attnd };
    let failed = 0,
        passed = 0,
        again = 0;
    /** Runs a case, once more when it fails: a browser on a busy machine fails by chance. Each failure is printed. */
    const isPassed = async (name, run, isLast) => {
        const begun = performance.now(),
            seconds = () => `${((performance.now() - begun) / 1000).toFixed(1)} s`;
        try {
            const report = await run(stage);
            console.log(`ok      ${name}, ${seconds()}${report ? ": " + report : ""}`);
            return true;
        } catch (problem) {
            const word = isLast ? "FAILED" : "again ";
            console.log(`${word}  ${name}, ${seconds()}\n${String(problem.stack ?? problem).replace(/^/gm, "        ")}`);
        }
        return !isLast && (again++, isPassed(name, run, true));
    };
    const inOrder = async (files) => {
        for (const [name, run] of await casesOf(files)) (await isPassed(name, run, false)) ? passed++ : failed++;
    };
    if (options.times) await inOrder(ALONE);
    else await Promise.all([["modules/texts"], ...LANES].map(inOrder));
    await browser.close();
    await server.stop();
    if (again > 0) console.log(`cases that failed at first: ${again}`);
    console.log(`test-page: ${passed} passed, ${failed} failed, 0 skipped`);
    return failed === 0 ? 0 : 1;
}

process.exit(await main());
