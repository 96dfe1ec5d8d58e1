/**
 * main.js: the page: what it is made of, and what its buttons do.
 *
 * The body is made here whole, so that a copy of the page for the disk is this script, the style, and the state.
 *
 * @typedef {ReturnType<typeof createApp>} App
 */
import { compute, firstPicture, requestToSend } from "./exchange/api.js";
import { checkRun, isQuickToCheck } from "./exchange/checks.js";
import { cssColour, download, field, h } from "./dom.js";
import { csvOf, curlOf, jsonOf, npyOf, pageWith, pictureOf, pythonOf, svgOf, SVG_CELLS } from "./panels/exporting.js";
import { createHeader } from "./panels/header.js";
import { caseOfFile, caseOfText } from "./panels/importing.js";
import { caseOver, fetchLayer, inputsFor, inputsOfText, listLayers, ownRequest } from "./exchange/layers.js";
import { fetchTexts } from "./exchange/files.js";
import { caseOfModel } from "./models/case.js";
import { EXAMPLES, exampleCase, exampleOf } from "./models/examples.js";
import { ENTRANCES, MODES, OPENERS } from "./modes.js";
import { presetCase } from "./request/presets.js";
import { hiddenIn, seenIn, tensorSeen } from "./request/runs.js";
import { hasServer, Refusal, useKey } from "./exchange/server.js";
import { hashOf, stateOf, stateOfHash, textOfState } from "./exchange/share.js";
import { withSentence } from "./request/sentence.js";
import { Store, USUAL_VIEW } from "./store.js";
import { languageFrom, ownLanguage, Problem, textsOf } from "./texts.js";

/** Edits that come faster than this are computed together. */
const DEBOUNCE_MS = 30;
const BUSY_AFTER_MS = 200;
/** How long it is said that something has worked. */
const TOAST_MS = 5000;
/** A large check begins once the picture is there. */
const CHECK_AFTER_MS = 50;

/** A server that does not answer is asked again after this, then twice that, up to the most. */
const RETRY_MS = 2000;
const RETRY_MOST_MS = 30000;

/** How long the address may lag behind; browsers allow about two hundred changes of it in thirty seconds. */
const REMEMBER_MS = 300;
const REMEMBERED = "attnd";
const REMEMBERED_MOST = 1 << 23;

const FIRST = "demo.referent",
  WITHOUT_MODEL = "sentence";

/** What a browser keeps for this page; one that keeps nothing is as good. */
const memory = {
  get(name) {
    try {
      return localStorage.getItem("attnd." + name);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem("attnd." + name, value);
    } catch {
      // Nothing is lost but the choice.
    }
  },
};

function createApp(store, language) {
  const app = {
    store,
    language,
    theme: memory.get("theme") ?? "auto",
    isAsking: false,
    /** @type {import("./exchange/layers.js").Facts[]} */
    layers: [],
  };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const spoken = h("p.spoken", { role: "status", "aria-live": "polite" });
  const notice = h("div.notice", { role: "alert" });
  const toast = h("p.toast", { role: "status", hidden: true });
  const main = h("main#main", { tabindex: "-1" });
  let header = null,
    modes = {};

  app.t = (key, values) => textsOf(app.language)(key, values);
  app.say = (text) => {
    spoken.textContent = text;
  };
  app.look = () => ({ ...store.state.view, isDark: app.theme === "dark" || (app.theme === "auto" && dark.matches) });

  /** @returns {ReturnType<typeof seenIn>} what is looked at, once there is an answer */
  app.seen = () => seenIn(store.state);

  // ---- what buttons do -------------------------------------------------------------------------------------------

  /** Another example is an entry of the browser's history; a page that is turned in a lesson is not. */
  app.openCase = (given, isSameEntry = false) => {
    const { palette, models } = store.state.view;
    if (!isSameEntry) app.beforeEntry?.();
    store.edit(given);
    store.look({ ...USUAL_VIEW, palette, models, ...given.view, compare: "now", paint: false });
  };
  app.openPreset = (id) => (EXAMPLES.includes(id) ? openExample(id) : app.openCase(presetCase(id)));
  app.openMode = (mode) => (ENTRANCES[mode] ? ENTRANCES[mode](app) : store.look({ mode }));
  app.openStep = (step) => store.look({ step });
  app.keep = () => {
    const { shown, answer, check } = store.state;
    store.set({ kept: { given: shown, answer, check } });
  };
  /** A of a link, computed again. */
  app.keepAnew = async ({ keptGiven, view }) => {
    if (!keptGiven) {
      store.set({ kept: null });
      return;
    }
    const answer = await compute(keptGiven, view.head);
    store.set({ kept: { given: keptGiven, answer, check: checkRun({ given: keptGiven, answer }) } });
  };
  app.findLayers = async () => {
    if (hasServer()) app.layers = await listLayers();
    app.update(store.state);
  };
  app.dropKept = () => {
    store.set({ kept: null });
    app.compare("now");
  };
  /** A is only looked at: painting ends with B. */
  app.compare = (mode) => {
    store.look({ compare: mode, paint: mode === "now" && store.state.view.paint });
    app.notify("");
  };

  const opened = (make) => async (source) => {
    try {
      app.openCase(await make(source));
      app.notify("");
    } catch (problem) {
      app.cannotUse(problem);
    }
  };
  const openExample = opened((id) => exampleCase(id, app.language));
  /** Of a real layer's many keys none gets much: colours up to the largest weight show more. */
  app.openLayer = async (name, view = { range: "max" }) => {
    try {
      const layer = await fetchLayer(name);
      app.openCase({ ...caseOver(layer, inputsFor(layer, store.state.given)), view });
      app.notify("");
    } catch (problem) {
      app.cannotUse(problem);
    }
  };
  let typing = 0;
  /** The same with another sentence, as it is typed: what is looked at stays, and what was overtaken is dropped. */
  app.openSentence = async (text, numbers) => {
    const mine = ++typing,
      { given, view } = store.state;
    try {
      const made = await caseOfSentence(given, text, view, numbers);
      if (mine !== typing) return;
      store.edit(made, "sentence");
      if (made.view?.row !== undefined) store.look({ row: made.view.row, col: made.view.col });
      app.notify("");
    } catch (problem) {
      if (mine === typing) app.cannotUse(problem);
    }
  };
  app.openSource = (text) => app.openSentence(text, null);
  app.openText = opened(caseOfText);
  const openRequest = opened(caseOfFile);
  app.openFile = async (file) => {
    try {
      for (const open of OPENERS) if (await open(app, file)) return;
    } catch (problem) {
      app.cannotUse(problem);
      return;
    }
    await openRequest(file);
  };

  app.cannotUse = (problem) =>
    app.notify(app.t("own.wrong", { why: problem instanceof Problem ? app.t(problem.key, problem.values) : problem.message }));

  app.notify = (...content) => {
    const close = h("button.icon.close", { type: "button", "aria-label": app.t("close"), onclick: () => app.notify("") }, "×");
    notice.hidden = content.length === 0 || content[0] === "";
    notice.replaceChildren(...(notice.hidden ? [] : [h("div", {}, ...content), close]));
  };

  let fading = 0;
  /** What has worked is said for a moment, in nobody's way. */
  app.toast = (text) => {
    toast.textContent = text;
    toast.hidden = false;
    clearTimeout(fading);
    fading = setTimeout(() => (toast.hidden = true), TOAST_MS);
  };

  /** A server with keys wants one: asked for here, and what was refused is computed then. */
  app.askForKey = (why) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true });
    const send = async (event) => {
      event.preventDefault();
      useKey(input.value);
      store.set({ given: { ...store.state.given } });
      await app.findLayers();
    };
    const form = h("form.key", { onsubmit: send }, field(app.t("key"), input), h("button", {}, app.t("key.use")));
    app.notify(why, form);
  };

  let stroke = { number: 0, value: false };

  /** Paints a cell of the mask "attend": the first cell of a stroke decides whether it opens or closes. */
  app.paint = (row, col, isFirst) => {
    const { given, shown, answer } = store.state,
      { view, run } = app.seen(),
      [, , qLen, kvLen] = answer.outputs.attention.shape;
    const isOpen = !hiddenIn(run, view, view.head)(row, col);
    if (isFirst) stroke = { number: stroke.number + 1, value: !isOpen };
    const before = given.request.masks?.attend;
    const isPlain = Array.isArray(before?.[0]) && before.length === qLen && typeof before[0][0] !== "object";
    const attend = isPlain
      ? before.slice()
      : Array.from({ length: qLen }, () => Array.from({ length: kvLen }, () => true));
    if (isPlain && Boolean(before[row][col]) === stroke.value) return;
    attend[row] = attend[row].slice();
    attend[row][col] = stroke.value;
    store.edit(
      { ...given, id: "", request: { ...given.request, masks: { ...given.request.masks, attend } } },
      "paint" + stroke.number,
    );
    if (shown.request.tokens) app.say(`${row}, ${col}`);
  };

  /** Keys of the focused cell beyond those that move. @returns {boolean} whether the key means something */
  app.cellKey = (key, row, col) => {
    const { step, mode } = app.seen();
    const paints = (key === "m" || key === " ") && step.cols === "key",
      edits = (key === "Enter" || key === "F2") && step.path !== null;
    if (!paints && !edits) return false;
    if (mode !== "now") app.notify(app.t("kept.fixed"));
    else if (paints) app.paint(row, col, true);
    else app.editCell();
    return true;
  };

  app.copyText = async (text, done = "copied") => {
    try {
      await navigator.clipboard.writeText(text);
      app.toast(app.t(done));
      app.notify("");
    } catch {
      const area = h("textarea", { rows: 4, readonly: true, "aria-label": app.t("copy") });
      area.value = text;
      app.notify(app.t("copy.byHand"), area);
      area.select();
    }
  };
  /** The request to give away: A's where A is looked at, else the one that the panel changes. */
  const toGive = () => (store.state.view.compare === "kept" && store.state.kept?.given) || store.state.given;
  app.copyCurl = () => app.copyText(curlOf(toGive(), store.state.view.head));
  app.copyPython = () => app.copyText(pythonOf(toGive(), store.state.view.head));
  app.copyJson = () => app.copyText(JSON.stringify(requestToSend(toGive(), store.state.view.head)));

  app.share = async () => {
    const { state } = store,
      hash = (await hashOf(textOfState(state))) ?? (await hashOf(textOfState({ ...state, kept: null })));
    if (hash === null) {
      app.notify(app.t("share.long"));
      return;
    }
    history.replaceState(null, "", hash);
    await app.copyText(location.href, "share.done");
  };

  /** A file says which of two runs it holds. */
  const fileName = (ending) => {
    const { name, step } = app.seen();
    return `attention${name && "-" + name.replace(" − ", "-minus-")}-${step.id.replace(/\W/g, "-")}.${ending}`;
  };
  const runFile = (ending) => {
    const { name, mode } = app.seen();
    return `attention${name && (mode === "kept" ? "-A" : "-B")}.${ending}`;
  };
  const colours = () => Object.fromEntries(["panel", "ink", "hidden", "hatch"].map((name) => [name, cssColour(name)]));
  const sheet = () => app.stage.map.sheet;
  app.savePng = () =>
    pictureOf(app.stage.map.cells, sheet(), colours()).toBlob((blob) => download(fileName("png"), blob));
  app.saveSvg = () => {
    const { rows, cols } = sheet().matrix;
    if (rows * cols > SVG_CELLS) app.notify(app.t("export.large"));
    else download(fileName("svg"), svgOf(sheet(), colours()), "image/svg+xml");
  };
  app.saveCsv = () => download(fileName("csv"), csvOf(sheet()), "text/csv");
  app.saveNpy = () => {
    const seen = app.seen();
    download(fileName("npy"), npyOf(tensorSeen(seen), seen.run.answer.effective?.compute === "float64"));
  };
  app.saveJson = () => download(runFile("json"), jsonOf(app.seen().run), "application/json");
  app.saveHtml = () => download(runFile("html"), pageWith({ given: toGive(), view: store.state.view, language: app.language }), "text/html");

  // ---- the page --------------------------------------------------------------------------------------------------

  app.setLanguage = async (language) => {
    if (!(await fetchTexts(language))) app.notify(app.t("gone"));
    else {
      app.language = language;
      memory.set("language", language);
    }
    app.build();
    header.language.focus();
  };
  app.setTheme = (theme) => {
    app.theme = theme;
    memory.set("theme", theme);
    document.documentElement.dataset.theme = theme;
    app.update(store.state);
  };
  dark.addEventListener("change", () => app.update(store.state));

  app.build = () => {
    document.documentElement.lang = app.language;
    document.documentElement.dataset.theme = app.theme;
    document.title = "attnd · " + app.t("title");
    header = createHeader(app);
    modes = Object.fromEntries(Object.entries(MODES).map(([id, create]) => [id, create(app)]));
    for (const old of document.querySelectorAll("header, .skip")) old.remove();
    document.body.prepend(h("a.skip", { href: "#main" }, app.t("skip")), header.element, notice, main, toast, spoken);
    app.setAsking(app.isAsking);
    app.update(store.state);
  };

  /** Said to assistive technology at once; the picture pales only when it takes long. */
  app.setAsking = (isAsking) => {
    app.isAsking = isAsking;
    app.stage?.element.setAttribute("aria-busy", String(isAsking));
  };

  app.update = (state) => {
    if (!header) return;
    const { view } = state,
      open = modes[view.mode];
    header.update(state);
    if (main.firstChild !== open.element) main.replaceChildren(open.element);
    if (view.mode !== "story") delete document.documentElement.dataset.present;
    open.update(state);
  };
  return app;
}

/** Whatever changes the request has it computed; an answer that was overtaken is dropped. */
function computeOn(store, app) {
  const wish = ({ given, view }) => ({ given, head: view.head });
  let asked = null,
    timer = 0,
    running = null,
    isFirst = true,
    isGone = false,
    tries = 0,
    retrying = 0;

  /** Of a large request only one head is here: looking at another one asks for it. */
  const isNew = ({ given, view, answer }) =>
    given !== asked.given || (answer?.onlyHead !== undefined && view.head !== asked.head);

  /** The run may have been kept as A in the meantime. */
  const checkLate = (given, answer) => {
    const { answer: now, kept } = store.state;
    if (now !== answer && kept?.answer !== answer) return;
    const check = checkRun({ given, answer });
    if (now === answer) store.set({ check });
    if (kept?.answer === answer) store.set({ kept: { ...kept, check } });
  };

  /** Said once; then tried again, less and less often, and at once when the browser is online again. */
  function waitForServer() {
    const retry = h("button", { type: "button", onclick: () => run(asked) }, app.t("retry"));
    if (!isGone) app.notify(h("b", {}, app.t("gone")), " ", app.t("gone.again"), " ", retry);
    isGone = true;
    clearTimeout(retrying);
    retrying = setTimeout(() => run(asked), Math.min(RETRY_MOST_MS, RETRY_MS * 2 ** tries++));
  }

  function refused(problem) {
    if (problem.key === "gone") {
      waitForServer();
      return;
    }
    isGone = false;
    if (problem.status === 401) {
      app.askForKey(problem.message);
      return;
    }
    if (!(problem instanceof Refusal)) {
      app.cannotUse(problem);
      return;
    }
    const where =
      problem.pointer && !problem.message.startsWith(problem.pointer) ? [h("code", {}, problem.pointer), " "] : [];
    app.notify(h("b", {}, app.t("refused")), " ", ...where, problem.message);
  }

  async function run({ given, head }) {
    running?.abort();
    clearTimeout(retrying);
    const mine = (running = new AbortController());
    const slow = setTimeout(() => store.set({ isBusy: true }), BUSY_AFTER_MS);
    let isHere = false;
    firstPicture(given, head, mine.signal).then(
      (matrix) => matrix && !isHere && !mine.signal.aborted && app.stage?.showFirst(matrix),
      () => {}, // the answer itself says what is wrong
    );
    try {
      const answer = await compute(given, head, mine.signal);
      if (mine.signal.aborted) return;
      isHere = true;
      const { view } = store.state,
        [batch, heads] = (answer.thumbs ?? answer.outputs.attention)?.shape ?? [1, 1];
      store.set({
        answer,
        shown: given,
        isBusy: false,
        isRefused: false,
        check: isQuickToCheck(given) ? checkRun({ given, answer }) : null,
        view: { ...view, head: Math.min(view.head, heads - 1), batch: Math.min(view.batch, batch - 1) },
      });
      if (!isFirst || isGone) app.notify(""); // what the start has to say stays
      if (isGone) app.findLayers();
      isGone = false;
      tries = 0;
      if (!store.state.check) setTimeout(checkLate, CHECK_AFTER_MS, given, answer);
    } catch (problem) {
      if (problem.name === "AbortError" || mine.signal.aborted) return;
      store.set({ isBusy: false, isRefused: true });
      refused(problem);
    } finally {
      clearTimeout(slow);
      isFirst = false;
      if (mine === running) app.setAsking(false);
    }
  }

  store.listen((state) => {
    app.update(state);
    if (!isNew(state)) return;
    asked = wish(state);
    app.setAsking(true);
    clearTimeout(timer);
    timer = setTimeout(() => run(asked), DEBOUNCE_MS);
  });
  window.addEventListener("online", () => isGone && run(asked));
  asked = wish(store.state);
  app.setAsking(true);
  run(asked);
}

/**
 * The address always holds what is asked for and how it is looked at, so that reloading loses nothing. What is too long
 * for an address is kept beside it, by the browser, for this entry of its history.
 */
function rememberOn(store, app) {
  let timer = 0,
    last = textOfState(store.state),
    left = null;
  const put = async (text, isNew) => {
    const hash = await hashOf(text),
      kept = hash || text.length > REMEMBERED_MOST ? null : { [REMEMBERED]: text };
    history[isNew ? "pushState" : "replaceState"](kept, "", hash || location.pathname + location.search);
  };

  /** One at a time: an entry is not put before the one that it follows. */
  let saving = Promise.resolve();
  const save = () => {
    timer = 0;
    saving = saving.then(saveNow);
  };
  async function saveNow() {
    const before = left,
      text = textOfState(store.state);
    left = null;
    if (before !== null && before !== last) await put(before, false);
    if (text === last) return;
    last = text;
    await put(text, before !== null && before !== text);
  }
  app.beforeEntry = () => {
    left ??= textOfState(store.state);
  };
  app.cameBack = () => {
    left = null;
    last = textOfState(store.state);
  };
  store.listen(() => {
    if (timer === 0) timer = setTimeout(save, REMEMBER_MS);
  });
  window.addEventListener("pagehide", () => {
    const text = textOfState(store.state);
    if (text !== last) lastMoment.set(text);
  });
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

/** A file may be dropped anywhere. */
function takeDrops(app) {
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files,
      text = event.dataTransfer.getData("text/plain");
    if (file) app.openFile(file);
    else if (text) app.openText(text);
  });
}

function takeKeys(store) {
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target instanceof HTMLTextAreaElement) return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    if (key === "y" || event.shiftKey) store.redo();
    else store.undo();
  });
}

function embeddedState() {
  const element = document.querySelector("#state");
  return element ? stateOf(JSON.parse(element.textContent)) : null;
}

function rememberedState() {
  const text = lastMoment.take() ?? history.state?.[REMEMBERED];
  return typeof text === "string" ? stateOf(JSON.parse(text)) : null;
}

/** Options and masks besides those of the layer; masks that are written for a number of tokens hold for no other. */
function ownOf(given) {
  const { masks, options } = ownRequest(given),
    { attend, bias, padding, key_lengths, query_lengths, documents, blocks, ...rules } = masks ?? {};
  return { masks: rules, options };
}

/** A sentence in the place of the one that a case has. @returns {Promise<import("./request/presets.js").Case>} */
async function caseOfSentence(given, text, view, numbers) {
  const { source, layer, request } = given,
    { tokens } = request;
  if (source) {
    const word = tokens.query[view.row] ?? "";
    return exampleOf(await caseOfModel({ ...source, text }, { head: view.head, word, layer, ...ownOf(given) }));
  }
  if (!layer) return withSentence(given, text, view, numbers);
  return { ...caseOver(layer, { ...inputsOfText(layer, text, numbers.seed), ...ownOf(given) }), seed: numbers.seed };
}

/** What the page shows where nothing else is asked for: a head that has learned something, where the server has it. */
async function usualState(language) {
  const plain = presetCase(WITHOUT_MODEL);
  const given = hasServer() ? await exampleCase(FIRST, language).catch(() => plain) : plain;
  return { given, view: { ...USUAL_VIEW, ...given.view } };
}

/** @returns {Promise<{given: object, view: object, keptGiven?: object | null, lesson?: any, problem?: Error}>} */
async function firstState(language) {
  try {
    const before = (await rememberedState()) ?? (await stateOfHash(location.hash));
    return before ?? (await embeddedState()) ?? (await usualState(language));
  } catch (problem) {
    return { ...(await usualState(language)), problem };
  }
}

async function start() {
  const language = languageFrom(memory.get("language") ?? navigator.language);
  const texts = fetchTexts(language);
  const { given, view, keptGiven, lesson, problem } = await firstState(language);
  const store = new Store({
    given,
    shown: given,
    answer: null,
    check: null,
    kept: null,
    lesson: lesson ?? null,
    isBusy: false,
    isRefused: false,
    view,
  });
  const app = createApp(store, language);
  computeOn(store, app); // the server works while the page is built
  if (!(await texts)) app.language = ownLanguage();
  app.build();
  if (problem) app.cannotUse(problem);
  takeDrops(app);
  takeKeys(store);
  window.addEventListener("popstate", async ({ state }) => {
    try {
      const text = state?.[REMEMBERED],
        before = text ? await stateOf(JSON.parse(text)) : await stateOfHash(location.hash);
      const found = before ?? (await usualState(app.language));
      store.edit(found.given);
      store.set({ view: found.view, lesson: before?.lesson ?? store.state.lesson });
      app.cameBack?.();
      await app.keepAnew(found);
    } catch (problem) {
      app.cannotUse(problem);
      history.replaceState(null, "", (await hashOf(textOfState(store.state))) ?? location.pathname + location.search);
    }
  });
  if (keptGiven) await app.keepAnew({ keptGiven, view }).catch(app.cannotUse);
  rememberOn(store, app);
  await app.findLayers();
}

start();
