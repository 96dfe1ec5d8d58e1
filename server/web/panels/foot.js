/**
 * foot.js: the foot of the page: help, source and licence.
 */
import { h } from "../dom.js";
import { hasServer } from "../exchange/server.js";

const LICENCE = "https://www.apache.org/licenses/LICENSE-2.0";

/** @param {import("../main.js").App} app */
export function createFoot({ t }) {
  const link = (href, text) => h("a", { href, rel: "noopener" }, text);
  const help = h("details", {}, h("summary", {}, t("foot.help")), h("p", {}, t("foot.helpText")));
  return [help, hasServer() && link("docs", t("foot.docs")), h("span", {}, t("foot.source"), " ", h("code", {}, "server/web/")), link(LICENCE, t("foot.licence"))].filter(Boolean);
}
