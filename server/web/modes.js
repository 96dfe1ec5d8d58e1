/**
 * modes.js: the modes of the page. One of them is open at a time.
 *
 * The text "mode.NAME" is the label of a mode. The member "mode" of the view holds its name, so that the URL and the
 * undo history include it. A mode is made when the page is built. While it is open, every change of the state updates
 * it.
 *
 * @typedef {{element: HTMLElement, update: (state: import("./store.js").State) => void, focus: () => void,
 *            useFile?: (file: File) => void, useText?: (text: string) => void,
 *            pictures?: () => import("./panels/snapshot.js").Picture[], complete?: () => Promise<unknown>}} Mode useFile and
 *          useText: what becomes of a dropped file and text, if it is not a request; complete asks for all that a copy of the
 *          mode needs
 */
import { h } from "./dom.js";
import { withPart } from "./exchange/files.js";
import { createOpening } from "./opening/opening.js";

/** Parts of the page that load when they are first needed. */
const storyPart = () => withPart("player", () => import("./story/player.js"));
const labPart = () => withPart("lab", () => import("./lab.js"));
const debuggerPart = () => withPart("debugger", () => import("./debugger/debugger.js"));
const modelsPart = () => withPart("explorer", () => import("./models/explorer.js"));

/** A mode in a part. It is empty until the part has loaded. @param {() => Promise<(app: import("./main.js").App) => Mode>} load */
const modeOfPart = (load) => (app) => {
  const element = h("div", {});
  let mode = null,
    isAsked = false;
  async function open() {
    isAsked = true;
    try {
      mode = (await load())(app);
      app.retries.done(load);
      element.replaceChildren(mode.element);
      mode.update(app.store.state);
    } catch (problem) {
      isAsked = false;
      app.failed(problem, load, open);
    }
  }
  const update = (state) => {
    if (mode) mode.update(state);
    else if (!isAsked) open();
  };
  return { element, update, focus: () => mode?.focus(), pictures: () => mode?.pictures?.() ?? [],
           useFile: (file) => mode?.useFile?.(file), useText: (text) => mode?.useText?.(text) };
};

/** @type {Record<string, (app: import("./main.js").App) => Mode>} VIEW_CHOICES in store.js orders the tabs */
export const MODES = {
  start: createOpening,
  story: modeOfPart(async () => (await storyPart()).createStory),
  lab: modeOfPart(async () => (await labPart()).createLab),
  models: modeOfPart(async () => (await modelsPart()).createModels),
  bug: modeOfPart(async () => (await debuggerPart()).createDebugger),
};

/** Modes that do more than change the view when they open. @type {Record<string, (app: import("./main.js").App) => void>} */
export const ENTRANCES = {
  lab: (app) => app.openLab(),
  bug: (app) => app.openDebugger(),
  story: async function enter(app) {
    try {
      await (await storyPart()).openStory(app);
      app.retries.done(enter);
    } catch (problem) {
      app.failed(problem, enter, () => enter(app));
    }
  },
};

/** A larger file is not parsed as a lesson. */
const LESSON_MOST = 1 << 22;
const mayBeLesson = ({ name, size }) => /\.json$/i.test(name) && size <= LESSON_MOST;

/**
 * Open dropped or chosen files that are not requests. Each returns whether it has opened the file.
 * @type {((app: import("./main.js").App, file: File) => Promise<boolean>)[]}
 */
export const OPENERS = [
  async (app, file) => mayBeLesson(file) && (await storyPart()).openLessonFile(app, file),
  async (app, file) => (await modelsPart()).openDump(app, file),
];
