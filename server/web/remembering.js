/**
 * remembering.js: the state in the address and in the browser's history, so that reloading loses nothing and Back goes back.
 */
import { hashOf, stateOf, stateOfHash, textOfState } from "./exchange/share.js";
import { hasServer } from "./exchange/server.js";
import { exampleCase } from "./models/examples.js";
import { presetCase } from "./request/presets.js";
import { USUAL_VIEW } from "./store.js";

/** How long the address may lag behind; browsers allow about two hundred changes of it in thirty seconds. */
const REMEMBER_MS = 300;
const REMEMBERED = "attnd";
const REMEMBERED_MOST = 1 << 23;

const FIRST = "demo.referent",
  WITHOUT_MODEL = "sentence";

/**
 * The fragment for a state; where that is too long, of the request and the view alone.
 * @typedef {{text: string, hash: string | null, isWhole: boolean}} Address hash: null where even those are too long
 * @returns {Promise<Address>}
 */
async function addressOf(state) {
  const text = textOfState(state),
    whole = await hashOf(text);
  if (whole !== null) return { text, hash: whole, isWhole: true };
  const hash = state.kept || state.expected ? await hashOf(textOfState({ ...state, kept: null, expected: null })) : null;
  return { text, hash, isWhole: false };
}

const isKept = ({ text, isWhole }) => isWhole || text.length <= REMEMBERED_MOST;

/** What an address does not hold is kept beside it by the browser, for this entry of its history. */
function put(address, isNew) {
  const { text, hash, isWhole } = address,
    beside = isWhole || !isKept(address) ? null : { [REMEMBERED]: text };
  history[isNew ? "pushState" : "replaceState"](beside, "", hash || location.pathname + location.search);
}

/** @returns {string} key of what is said of an address that does not hold everything */
const lackOf = (address) => (!isKept(address) ? "share.long" : address.hash ? "share.part" : "share.beside");

/**
 * The address follows every change.
 * @param {import("./store.js").Store} store
 * @param {import("./main.js").App} app
 */
export function rememberOn(store, app) {
  let timer = 0,
    last = textOfState(store.state),
    left = null,
    wasWhole = true;

  /** One at a time: an entry is not put before the one that it follows. */
  let saving = Promise.resolve();
  const save = () => {
    timer = 0;
    saving = saving.then(saveNow);
  };
  async function saveNow() {
    const before = left && (await addressOf(left));
    left = null;
    if (before && before.text !== last) put(before, false);
    if (textOfState(store.state) === last) return;
    const address = await addressOf(store.state);
    last = address.text;
    put(address, before !== null && before.text !== address.text);
    if (wasWhole && !address.isWhole) app.toast(app.t(lackOf(address)));
    wasWhole = address.isWhole;
  }
  app.beforeEntry = () => {
    left ??= store.state;
  };
  store.listen(() => {
    if (timer === 0) timer = setTimeout(save, REMEMBER_MS);
  });
  window.addEventListener("pagehide", () => {
    const text = textOfState(store.state);
    if (text !== last) lastMoment.set(text);
  });
  window.addEventListener("popstate", async ({ state }) => {
    try {
      const text = state?.[REMEMBERED],
        before = text ? await stateOf(JSON.parse(text)) : await stateOfHash(location.hash);
      const { given, view, expected = null, lesson, keptGiven } = before ?? (await usualState(app.language));
      store.edit(given, 0, { view, expected, lesson: lesson ?? store.state.lesson });
      left = null;
      last = textOfState(store.state);
      await app.keepAnew({ keptGiven, view });
    } catch (problem) {
      app.cannotUse(problem);
      put(await addressOf(store.state), false);
    }
  });
}

/** The address goes to the clipboard. @param {import("./main.js").App} app */
export async function shareOf(app) {
  const address = await addressOf(app.store.state);
  put(address, false);
  if (address.hash === null) app.notify(app.t("share.long"));
  else await app.copyText(location.href, address.isWhole ? "share.done" : "share.part");
}

/** What came too late for the address: kept by the tab, until the page is there again. */
const lastMoment = {
  set(text) {
    try {
      sessionStorage.setItem(REMEMBERED, text);
    } catch {
      // The address is as it was a moment ago.
    }
  },
  take() {
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
  const text = lastMoment.take() ?? history.state?.[REMEMBERED];
  return typeof text === "string" ? stateOf(JSON.parse(text)) : null;
}

/**
 * What the page shows where nothing else is asked for: a head that has learned something, where the server has it.
 * @returns {Promise<Awaited<ReturnType<typeof stateOf>>>}
 */
async function usualState(language) {
  const plain = presetCase(WITHOUT_MODEL);
  const given = hasServer() ? await exampleCase(FIRST, language).catch(() => plain) : plain;
  return { given, view: { ...USUAL_VIEW, ...given.view }, keptGiven: null, expected: null, lesson: null };
}

/** @returns {Promise<Awaited<ReturnType<typeof stateOf>> & {problem?: Error}>} */
export async function firstState(language) {
  try {
    const before = (await rememberedState()) ?? (await stateOfHash(location.hash));
    return before ?? (await embeddedState()) ?? (await usualState(language));
  } catch (problem) {
    return { ...(await usualState(language)), problem };
  }
}
