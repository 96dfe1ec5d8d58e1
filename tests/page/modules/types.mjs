/**
 * types.mjs: what the modules say about their types in comments holds, by TypeScript's reading of them.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";

const PAGE = new URL("..", import.meta.url).pathname;

export const cases = {
    "types: the modules agree with their comments"() {
        const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
        const { stdout, status } = spawnSync(process.execPath, [compiler, "--project", PAGE + "jsconfig.json"], {
            encoding: "utf8",
        });
        assert.equal(stdout, "");
        assert.equal(status, 0);
    },
};
