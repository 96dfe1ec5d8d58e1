/**
 * table.js: small tables of words and numbers, beside each other for a model as it is and for the changed one.
 */
import { bdi, h } from "../dom.js";

/** More than three columns compare two runs. @param {string} name @param {string[]} head @param {any[]} lines rows */
export function tableOf(name, head, lines) {
  return h(
    head.length > 3 ? "table.guess-table.twofold" : "table.guess-table",
    {},
    h("caption", {}, name),
    h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, lines),
  );
}

export const wordCell = (word) => h("th", { scope: "row" }, bdi(word));
