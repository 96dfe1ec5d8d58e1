/**
 * modes.js: what the page can be: one of these is open at a time.
 *
 * A mode is named by "mode.NAME" in the texts, and by "mode" in the view, so that the address and the history have it. It
 * is made when the page is built, and told of every change of the state while it is open.
 *
 * @typedef {{element: HTMLElement, update: (state: import("./store.js").State) => void, focus: () => void}} Mode focus: to the map
 */
import { h } from "./dom.js";
import { withPart } from "./exchange/files.js";
import { createLab } from "./lab.js";

/** Parts of the page that a first visitor does not wait for. */
const storyPart = () => withPart("story", () => import("./story/story.js"));
const modelsPart = () => withPart("models", () => import("./models/models.js"));

/** A mode of a part: empty until the part is here. @param {() => Promise<(app: import("./main.js").App) => Mode>} load */
const modeOfPart = (load) => (app) => {
  const element = h("div", {});
  let mode = null,
    isAsked = false;
  async function open() {
    isAsked = true;
    try {
      mode = (await load())(app);
      app.waiting.stop(load);
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
  return { element, update, focus: () => mode?.focus() };
};

/** @type {Record<string, (app: import("./main.js").App) => Mode>} in the order of the bar; the names are also in store.js */
export const MODES = {
  story: modeOfPart(async () => (await storyPart()).createStory),
  lab: createLab,
  models: modeOfPart(async () => (await modelsPart()).createModels),
};

/** What opens a mode that needs more than to be looked at. @type {Record<string, (app: import("./main.js").App) => void>} */
export const ENTRANCES = {
  story: async function enter(app) {
    try {
      await (await storyPart()).openStory(app);
      app.waiting.stop(enter);
    } catch (problem) {
      app.failed(problem, enter, () => enter(app));
    }
  },
};

/** A larger file is no lesson: it is not parsed here. */
const LESSON_MOST = 1 << 22;
const mayBeLesson = ({ name, size }) => /\.json$/i.test(name) && size <= LESSON_MOST;

/**
 * What takes a dropped or opened file that is no request: true where it did.
 * @type {((app: import("./main.js").App, file: File) => Promise<boolean>)[]}
 */
export const OPENERS = [
  async (app, file) => mayBeLesson(file) && (await storyPart()).openLessonFile(app, file),
  async (app, file) => (await modelsPart()).openDump(app, file),
];
