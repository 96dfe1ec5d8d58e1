/**
 * store.js: the state of the page, and its undo history.
 *
 * Requests are immutable: an edit makes a new one that shares the unchanged parts. The history therefore holds
 * references, and undo is an assignment.
 *
 * @typedef {object} State
 * @property {import("./request/presets.js").Case} given the case to compute
 * @property {import("./exchange/api.js").Answer | null} answer the answer to shown
 * @property {ReturnType<typeof import("./exchange/checks.js").checkRun> | null} check of the answer
 * @property {import("./request/presets.js").Case} shown the case computed last; given may be newer
 * @property {boolean} isBusy
 * @property {boolean} isRefused the server has refused given, so that shown is an older case
 * @property {{given: object, answer: object} | null} baseline run A of a comparison
 * @property {{values: import("./expected/differences.js").Expected[], rtol: number, atol: number} | null} expected
 * @property {import("./story/lesson.js").Lesson | null} lesson one that was opened from a file
 * @property {object} view
 */

/** The default view. A link contains only the members that differ from it. */
export const DEFAULT_VIEW = {
  mode: "lab",
  /** Sentence of the opening. "": the example of the language. */
  opening: "",
  /** Who reads it: "demo", or the head of a role of "small". "": as the page finds best. */
  reader: "",
  lesson: "hand",
  page: 0,
  /** Which variant of the lesson's request. */
  variant: 0,
  present: "off",
  batch: 0,
  head: 0,
  step: "attention",
  tab: "map",
  /** −1: the page selects a cell (runs.js). */
  row: -1,
  col: -1,
  palette: "viridis",
  range: "full",
  /** Whether the token on which a head of a model rests is left out of the colours. */
  rest: "left",
  sort: "order",
  linkMode: "top",
  linkTop: 3,
  linkThreshold: 0.1,
  compare: "now",
  paint: false,
  /** @type {object | null} view of the Models mode (models/view_state.js); null: the default */
  models: null,
};

/** Members of a view that have a fixed set of values. */
export const VIEW_CHOICES = {
  mode: ["start", "story", "lab", "models", "bug"],
  lesson: ["hand", "masks", "cross", "own"],
  present: ["off", "on"],
  tab: ["map", "links", "table", "layers"],
  palette: ["viridis", "cividis", "grey"],
  range: ["full", "max", "robust", "log"],
  rest: ["left", "shown"],
  sort: ["order", "entropy", "first", "diagonal", "distance"],
  linkMode: ["top", "threshold"],
  compare: ["now", "kept", "difference"],
};

/** Copies value with item at path. undefined removes the member, and any object that becomes empty. */
export function setIn(value, path, item) {
  if (path.length === 0) return item;
  const [name, ...rest] = path;
  if (Array.isArray(value)) return value.map((one, at) => (at === name ? setIn(one, rest, item) : one));
  const inner = setIn(value?.[name] ?? {}, rest, item);
  if (inner !== undefined) return { ...value, [name]: inner };
  const { [name]: _, ...others } = value ?? {};
  return Object.keys(others).length > 0 ? others : undefined;
}

export const getIn = (value, path) => path.reduce((inner, name) => inner?.[name], value);

const HISTORY = 200;

/** State that undo restores, and view members whose change adds no undo step. */
const COVERED = ["given", "view", "baseline", "expected", "lesson"],
  UNCOUNTED = ["row", "col", "paint"];

export class Store {
  /** @param {State} state */
  constructor(state) {
    this.state = state;
    this.past = [];
    this.future = [];
    this.listeners = [];
    this.isWaiting = false;
    this.stroke = 0;
  }

  /** Changes the state without an undo step. Listeners run in a microtask, once for all changes until then. */
  set(patch) {
    this.state = { ...this.state, ...patch };
    if (this.isWaiting) return;
    this.isWaiting = true;
    queueMicrotask(() => {
      this.isWaiting = false;
      for (const listener of this.listeners) listener(this.state);
    });
  }

  /** Changes the view. Undo restores the selected cell and the paint mode, but changing them adds no undo step. */
  setView(patch, stroke = 0) {
    const { view } = this.state,
      changed = Object.keys(patch).filter((name) => patch[name] !== view[name]);
    if (changed.some((name) => !UNCOUNTED.includes(name))) this.#remember(stroke);
    this.set({ view: { ...view, ...patch } });
  }

  /** Changes the state with an undo step. The changes of one stroke (a dragged slider, painted cells) share a step. */
  change(patch, stroke = 0) {
    this.#remember(stroke);
    this.set(patch);
  }

  /**
   * Replaces the request. While run A is shown, an edit switches to run B, so that its effect is visible.
   * @param {import("./request/presets.js").Case} given
   * @param {Partial<State>} [more] other changes of the same undo step
   */
  edit(given, stroke = 0, more = {}) {
    const { view } = this.state;
    this.change({ given, view: view.compare === "kept" ? { ...view, compare: "now" } : view, ...more }, stroke);
  }

  #remember(stroke) {
    if (!stroke || stroke !== this.stroke) this.past = [...this.past, this.#covered].slice(-HISTORY);
    this.stroke = stroke;
    this.future = [];
  }

  get #covered() {
    return Object.fromEntries(COVERED.map((name) => [name, this.state[name]]));
  }

  /** Removing a member restores the kept layer's own value, if it has one. */
  editRequest(path, item, stroke) {
    const { given } = this.state,
      layerValue = getIn(given.layer?.base, path);
    this.edit({ ...given, id: "", request: setIn(given.request, path, item ?? layerValue) }, stroke);
  }

  undo() {
    this.#move(this.past, this.future);
  }

  redo() {
    this.#move(this.future, this.past);
  }

  #move(from, to) {
    if (from.length === 0) return;
    to.push(this.#covered);
    this.stroke = 0;
    this.set(from.pop());
  }

  listen(listener) {
    this.listeners.push(listener);
  }
}
