/**
 * export_actions.js: the actions of the menus "Copy" and "Export", for the shown run.
 */
import { cssColour, download, h } from "../dom.js";
import { requestToSend } from "../exchange/api.js";
import { fetchParts, withPart } from "../exchange/files.js";
import { answersToTake } from "../exchange/kept.js";
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
  const { mode: open } = app.store.state.view;
  if (open === "start" || open === "models") return `attention-${open}.${ending}`;
  const { name, mode } = app.seen();
  return `attention${name && (mode === "kept" ? "-A" : "-B")}.${ending}`;
}

const colours = () => Object.fromEntries(["panel", "ink", "hidden", "hatch", "q", "k", "v"].map((name) => [name, cssColour(name)]));

/** Saves this page with all its parts. @param {import("../main.js").App} app @param {object} [more] state */
export async function savePage(app, more = {}) {
  const { store, language } = app;
  try {
    await app.complete();
    const isOfModel = ["start", "models"].includes(store.state.view.mode),
      [parts, answers] = await Promise.all([fetchParts(), isOfModel ? answersToTake() : {}]);
    download(runFile(app, "html"), pageWith({ given: caseToExport(store.state), view: store.state.view, language, parts, answers, ...more }), "text/html");
  } catch (problem) {
    app.cannotUse(problem);
  }
}

/** The page as a file, and the line that shows this file in another page. @returns {[string, () => void][]} names and actions */
const pagesOf = (app) => [
  [app.t("export.html"), () => savePage(app)],
  ["<iframe>", () => app.copyText(h("iframe", { src: runFile(app, "html"), title: "attnd", width: "100%", height: 720 }).outerHTML)],
];

const snapshotPart = () => withPart("snapshot", () => import("./snapshot.js"));

/** @param {import("../main.js").App} app @param {import("./snapshot.js").Picture} picture @param {"png" | "svg"} ending */
async function savePicture(app, picture, ending) {
  const { isDark } = app.appearance();
  try {
    const { pngOfView, svgOfView } = await snapshotPart();
    const content = ending === "png" ? await pngOfView(picture, isDark) : svgOfView(picture, isDark).svg;
    download(`attention-${picture.id}.${ending}`, content, "image/svg+xml");
  } catch (problem) {
    app.cannotUse(problem);
  }
}

/** The open views as pictures. @param {import("../main.js").App} app @returns {[string, () => void][]} names and actions */
const picturesOf = (app) =>
  app.pictures().flatMap((picture) => {
    const item = (format, ending) => [[picture.name, format].filter(Boolean).join(" · "), () => savePicture(app, picture, ending)];
    return [item("PNG", "png"), item("SVG", "svg")];
  });

/** @param {import("../main.js").App} app @returns {[string, () => void][]} names and actions */
export function exportsOf(app) {
  const pictures = picturesOf(app);
  const { mode } = app.store.state.view,
    isSaved = mode === "start" || (mode === "models" && !app.dump);
  if (mode === "lab") return exportsOfLab(app, pictures);
  return isSaved ? [...pictures, ...pagesOf(app)] : pictures;
}

/** The map is saved with all of its cells, and any other view as it is shown. */
function exportsOfLab(app, pictures) {
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
    ...(pictures.length > 0 ? pictures : [["PNG", savePng], ["SVG", saveSvg]]),
    ["CSV", () => download(fileName(app, "csv"), csvOf(sheet()), "text/csv")],
    ["NPY", saveNpy],
    ["JSON", () => download(runFile(app, "json"), jsonOf(app.seen().run), "application/json")],
    ...pagesOf(app),
  ];
}
