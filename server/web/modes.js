/**
 * modes.js: what the page can be: one of these is open at a time.
 *
 * A mode is named by "mode.NAME" in the texts, and by "mode" in the view, so that the address and the history have it. It
 * is made when the page is built, and told of every change of the state while it is open.
 *
 * @typedef {{element: HTMLElement, update: (state: import("./store.js").State) => void}} Mode
 */
import { createLab } from "./lab.js";
import { createModels, openDump } from "./models/models.js";
import { createStory, openLessonFile, openStory } from "./story/story.js";

/** @type {Record<string, (app: import("./main.js").App) => Mode>} in the order of the bar; the names are also in store.js */
export const MODES = { story: createStory, lab: createLab, models: createModels };

/** What opens a mode that needs more than to be looked at. @type {Record<string, (app: import("./main.js").App) => void>} */
export const ENTRANCES = { story: openStory };

/**
 * What takes a dropped or opened file that is no request: true where it did.
 * @type {((app: import("./main.js").App, file: File) => Promise<boolean>)[]}
 */
export const OPENERS = [openLessonFile, openDump];
