/**
 * axe.mjs: axe-core as texts to be run in a page: its rules for WCAG 2.2 A and AA, and best practice.
 */
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

export const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Gives what is wrong, a text each. */
export const RUN_AXE =
    "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map(" +
    "(one) => one.id + ': ' + one.nodes.map((node) => node.target + ' ' + node.failureSummary).join(' | ')))";
