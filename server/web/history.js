/**
 * history.js: keeps the state in the URL and in the browser's history, so that Reload and Back restore it.
 */
import { hashOf, stateOf, stateOfHash, textOfState } from "./exchange/share.js";
import { hasServer } from "./exchange/server.js";
import { presetCase } from "./request/presets.js";
import { DEFAULT_VIEW } from "./store.js";

/** Delay of an update of the URL. Browsers allow about 200 updates in 30 seconds. */
const REMEMBER_MS = 300;
const REMEMBERED = "attnd";
const REMEMBERED_MOST = 1 << 23;

/** Some mail programs cut longer addresses. */
const LENGTHY = 8000;

/** The Lab's request where nothing else was asked for. */
const PLAIN = "sentence";

/**
 * The URL fragment of a state. If the state is too long, the fragment leaves out run A and the expected values.
 * @typedef {{text: string, hash: string | null, isComplete: boolean}} Address hash: null if it is still too long
 * @returns {Promise<Address>}
 */
async function addressOf(state) {
  const text = textOfState(state),
    completeHash = await hashOf(text);
  if (completeHash !== null) return { text, hash: completeHash, isComplete: true };
  const hash = state.baseline || state.expected ? await hashOf(textOfState({ ...state, baseline: null, expected: null })) : null;
  return { text, hash, isComplete: false };
}

const isStored = ({ text, isComplete }) => isComplete || text.length <= REMEMBERED_MOST;

/** Writes the URL. The state of the history entry holds what the URL leaves out. */
function put(address, isNew) {
  const { text, hash, isComplete } = address,
    entryState = isComplete || !isStored(address) ? null : { [REMEMBERED]: text };
  history[isNew ? "pushState" : "replaceState"](entryState, "", hash || location.pathname + location.search);
}

/** @returns {string} key of the text that says what the URL leaves out */
const omissionOf = (address) => (!isStored(address) ? "share.long" : address.hash ? "share.part" : "share.beside");

/**
 * Updates the URL after every change.
 * @param {import("./store.js").Store} store
 * @param {import("./main.js").App} app
 */
export function keepHistory(store, app) {
  let timer = 0,
    last = textOfState(store.state),
    left = null,
    isUnaddressed = false,
    moves = 0,
    wasComplete = true;

  /** Updates run one after another, so that history entries keep their order. */
  let saving = Promise.resolve();
  const save = () => {
    clearTimeout(timer);
    timer = 0;
    saving = saving.then(saveNow);
  };
  async function saveNow() {
    const before = left && (await addressOf(left));
    left = null;
    if (before && before.text !== last) put(before, false);
    if (!isUnaddressed && textOfState(store.state) === last) return;
    const moved = moves,
      address = await addressOf(store.state);
    if (moved !== moves) return; // the entry of this address is not the present one any more
    isUnaddressed = false;
    last = address.text;
    put(address, before !== null && before.text !== address.text);
    if (wasComplete && !address.isComplete) app.toast(app.t(omissionOf(address)));
    wasComplete = address.isComplete;
  }
  app.beforeEntry = () => {
    left ??= store.state;
  };
  /** Makes a new entry at once, because a Back may come before its address is known. The entry before must have its own. */
  function enter() {
    const text = textOfState(store.state);
    if (textOfState(left) === last && text !== last && text.length <= REMEMBERED_MOST) {
      history.pushState({ [REMEMBERED]: text }, "", location.href);
      left = null;
      isUnaddressed = true;
    }
    save();
  }
  store.listen(() => {
    if (left) enter();
    else if (timer === 0) timer = setTimeout(save, REMEMBER_MS);
  });
  window.addEventListener("pagehide", () => {
    const text = textOfState(store.state);
    if (text !== last) unsavedState.set(text);
  });
  window.addEventListener("popstate", async ({ state }) => {
    moves++;
    isUnaddressed = false;
    try {
      const text = state?.[REMEMBERED],
        before = text ? await stateOf(JSON.parse(text)) : await stateOfHash(location.hash);
      const { given, view, expected = null, lesson, baselineCase } = before ?? defaultState();
      store.edit(given, 0, { view, expected, lesson: lesson ?? store.state.lesson });
      left = null;
      last = textOfState(store.state);
      await app.computeBaseline({ baselineCase, view });
    } catch (problem) {
      app.cannotUse(problem);
      put(await addressOf(store.state), false);
    }
  });
}

/** Copies the URL to the clipboard. @param {import("./main.js").App} app */
export async function shareState(app) {
  const address = await addressOf(app.store.state);
  put(address, false);
  if (address.hash === null) app.notify(app.t("share.long"));
  else await app.copyText(location.href, !address.isComplete ? "share.part" : address.hash.length > LENGTHY ? "share.lengthy" : "share.done");
}

/** sessionStorage keeps changes that the URL did not receive before the page was left. */
const unsavedState = {
  set(text) {
    try {
      sessionStorage.setItem(REMEMBERED, text);
    } catch {
      // Only the changes of the last REMEMBER_MS are lost.
    }
  },
  restore() {
    try {
      const text = sessionStorage.getItem(REMEMBERED);
      sessionStorage.removeItem(REMEMBERED);
      return performance.getEntriesByType("navigation")[0].toJSON().type === "reload" ? text : null;
    } catch {
      return null;
    }
  },
};

function embeddedState() {
  const element = document.querySelector("#state");
  return element ? stateOf(JSON.parse(element.textContent)) : null;
}

function rememberedState() {
  const text = unsavedState.restore() ?? history.state?.[REMEMBERED];
  return typeof text === "string" ? stateOf(JSON.parse(text)) : null;
}

/** The first visit. A copy on disk has no model, so it begins in the Lab. @returns {Awaited<ReturnType<typeof stateOf>>} */
function defaultState() {
  const view = { ...DEFAULT_VIEW, mode: hasServer() ? "start" : "lab" };
  return { given: { ...presetCase(PLAIN), isUnused: hasServer() }, view, baselineCase: null, expected: null, lesson: null };
}

/** @returns {Promise<Awaited<ReturnType<typeof stateOf>> & {problem?: Error}>} */
export async function initialState() {
  try {
    const before = (await rememberedState()) ?? (await stateOfHash(location.hash));
    return before ?? (await embeddedState()) ?? defaultState();
  } catch (problem) {
    return { ...defaultState(), problem };
  }
}
