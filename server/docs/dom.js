/**
 * dom.js: the few marks of text that the document uses; no text is ever read as HTML.
 */
import { h } from "../web/element.js";

/** `code` and **bold** in a line. */
export function inline(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) => {
    if (part[0] === "`" && part.length > 2) return h("code", {}, part.slice(1, -1));
    return part.startsWith("**") && part.length > 4 ? h("strong", {}, part.slice(2, -2)) : part;
  });
}

const cells = (line) => line.split("|").slice(1, -1).map((cell) => cell.trim());

function table(lines) {
  const [head, , ...rows] = lines.map(cells);
  return h("table", {}, h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, inline(cell))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, inline(cell)))))));
}

/** Paragraphs, headings, lists, tables and indented code. */
export function prose(text) {
  return text.split(/\n{2,}/).map((block) => {
    const lines = block.split("\n");
    if (block.startsWith("## ")) return h("h2", {}, inline(block.slice(3)));
    if (block.startsWith("|")) return table(lines);
    if (block.startsWith("    ")) return h("pre", {}, lines.map((line) => line.slice(4)).join("\n"));
    if (block.startsWith("- ")) return h("ul", {}, block.slice(2).split("\n- ").map((item) => h("li", {}, inline(item))));
    return h("p", {}, inline(block));
  });
}
