/**
 * export_actions.js: the actions of the menus "Copy" and "Export", for the shown run.
 */
import { cssColour, download } from "../dom.js";
import { requestToSend } from "../exchange/api.js";
import { fetchParts } from "../exchange/files.js";
import { pathOf } from "../exchange/layers.js";
import { tensorSeen } from "../request/runs.js";
import { csvOf, curlOf, jsonOf, npyOf, pageWith, pictureOf, pythonOf, svgOf, SVG_CELLS } from "./export_formats.js";

/** The request to copy or save: A's if only A is shown, else the one that the panel changes. */
const caseToExport = ({ given, baseline, view }) => (view.compare === "kept" && baseline?.given) || given;

/** @param {import("../main.js").App} app @returns {[string, () => void][]} names and actions */
export function copiesOf(app) {
  const copy = (write) => () => {
    const { state } = app.store;
    const given = caseToExport(state);
    app.copyText(write(pathOf(given), requestToSend(given, state.view.head)));
  };
  return [
    ["curl", copy(curlOf)],
    ["Python", copy(pythonOf)],
    [app.t("copy.json"), copy((path, body) => JSON.stringify(body))],
  ];
}

/** The file name contains the name of the run if there are two. */
function fileName(app, ending) {
  const { name, step } = app.seen();
  return `attention${name && "-" + name.replace(" − ", "-minus-")}-${step.id.replace(/\W/g, "-")}.${ending}`;
}

function runFile(app, ending) {
  const { name, mode } = app.seen();
  return `attention${name && (mode === "kept" ? "-A" : "-B")}.${ending}`;
}

const colours = () => Object.fromEntries(["panel", "ink", "hidden", "hatch", "q", "k", "v"].map((name) => [name, cssColour(name)]));

/** Saves this page with all its parts. @param {import("../main.js").App} app @param {object} [more] state */
export async function savePage(app, more = {}) {
  const { store, language } = app;
  try {
    const parts = await fetchParts();
    download(runFile(app, "html"), pageWith({ given: caseToExport(store.state), view: store.state.view, language, parts, ...more }), "text/html");
  } catch (problem) {
    app.cannotUse(problem);
  }
}

/** @param {import("../main.js").App} app @returns {[string, () => void][]} names and actions */
export function exportsOf(app) {
  const sheet = () => app.mainView.map.sheet;
  const savePng = () =>
    pictureOf(app.mainView.map.cells, sheet(), colours()).toBlob((blob) => download(fileName(app, "png"), blob));
  const saveSvg = () => {
    const { rows, cols } = sheet().matrix;
    if (rows * cols > SVG_CELLS) app.notify(app.t("export.large"));
    else download(fileName(app, "svg"), svgOf(sheet(), colours()), "image/svg+xml");
  };
  const saveNpy = () => {
    const seen = app.seen();
    download(fileName(app, "npy"), npyOf(tensorSeen(seen), seen.run.answer.effective?.compute === "float64"));
  };
  return [
    ["PNG", savePng],
    ["SVG", saveSvg],
    ["CSV", () => download(fileName(app, "csv"), csvOf(sheet()), "text/csv")],
    ["NPY", saveNpy],
    ["JSON", () => download(runFile(app, "json"), jsonOf(app.seen().run), "application/json")],
    [app.t("export.html"), () => savePage(app)],
  ];
}
