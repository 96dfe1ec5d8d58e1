/**
 * store.js: the one state of the page, and the history of what undo covers.
 *
 * Requests are never changed in place: an edit makes a new one that shares what it left alone, so that the history
 * holds references and an undo is an assignment.
 *
 * @typedef {object} State
 * @property {import("./request/presets.js").Case} given what is to be computed
 * @property {import("./exchange/api.js").Answer | null} answer of shown, which given has moved on from while computing
 * @property {ReturnType<typeof import("./exchange/checks.js").checkRun> | null} check of the answer
 * @property {import("./request/presets.js").Case} shown
 * @property {boolean} isBusy
 * @property {boolean} isRefused what is shown is not what given asks for
 * @property {{given: object, answer: object} | null} kept run A of a comparison
 * @property {{values: import("./expected/differences.js").Expected[], rtol: number, atol: number} | null} expected
 * @property {import("./story/lesson.js").Lesson | null} lesson one that a teacher has opened
 * @property {object} view
 */

/** What is looked at; only what differs from here is shared in a link. */
export const USUAL_VIEW = {
  mode: "lab",
  lesson: "hand",
  page: 0,
  present: "off",
  batch: 0,
  head: 0,
  step: "attention",
  tab: "map",
  /** −1: a cell that is worth a look (runs.js). */
  row: -1,
  col: -1,
  palette: "viridis",
  range: "full",
  sort: "order",
  linkMode: "top",
  linkTop: 3,
  linkThreshold: 0.1,
  compare: "now",
  paint: false,
  /** @type {object | null} what is asked of a model, in models/wish.js; null: as usual */
  models: null,
};

/** The values of a view that are one of a few. */
export const VIEW_CHOICES = {
  mode: ["story", "lab", "models"],
  lesson: ["hand", "masks", "cross", "own"],
  present: ["off", "on"],
  tab: ["map", "links", "table", "layers"],
  palette: ["viridis", "cividis", "grey"],
  range: ["full", "max", "robust", "log"],
  sort: ["order", "entropy", "first", "diagonal", "distance"],
  linkMode: ["top", "threshold"],
  compare: ["now", "kept", "difference"],
};

/** A copy of value in which the place at path holds item; undefined removes it, and objects that nothing is left in. */
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

/** What undo brings back, and what of a view is no step of its own. */
const COVERED = ["given", "view", "kept", "expected", "lesson"],
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

  /** Changes without history; listeners hear of all changes of one frame at once. */
  set(patch) {
    this.state = { ...this.state, ...patch };
    if (this.isWaiting) return;
    this.isWaiting = true;
    queueMicrotask(() => {
      this.isWaiting = false;
      for (const listener of this.listeners) listener(this.state);
    });
  }

  /** Another view. The chosen cell and the pen come back with a step of the history, and are none themselves. */
  look(patch, stroke = 0) {
    const { view } = this.state,
      changed = Object.keys(patch).filter((name) => patch[name] !== view[name]);
    if (changed.some((name) => !UNCOUNTED.includes(name))) this.#remember(stroke);
    this.set({ view: { ...view, ...patch } });
  }

  /** Changes that undo takes back. Those of one stroke (a slider drawn, cells painted) are one step of the history. */
  change(patch, stroke = 0) {
    this.#remember(stroke);
    this.set(patch);
  }

  /**
   * A new request. Where A alone is looked at, a change shows B: nothing changes unseen.
   * @param {import("./request/presets.js").Case} given
   * @param {Partial<State>} [more] what changes with it
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

  /** What is taken out is a kept layer's own again, where it has any. */
  editRequest(path, item, stroke) {
    const { given } = this.state,
      usual = getIn(given.layer?.base, path);
    this.edit({ ...given, id: "", request: setIn(given.request, path, item ?? usual) }, stroke);
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
