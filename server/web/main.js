/**
 * main.js: the page: what it is made of, and what its buttons do.
 *
 * The body is made here whole, so that a copy of the page for the disk is this script, the style, and the state.
 *
 * @typedef {ReturnType<typeof createApp>} App
 */
import { compute, requestToSend } from "./api.js";
import { checkRun, isQuickToCheck } from "./checks.js";
import { cssColour, download, field, h } from "./dom.js";
import { csvOf, curlOf, npyOf, pageWith, pythonOf, svgOf, SVG_CELLS } from "./exporting.js";
import { createHeader } from "./header.js";
import { caseOfFile, caseOfText } from "./importing.js";
import { caseOver, fetchLayer, inputsFor, listLayers } from "./layers.js";
import { Masks } from "./masks.js";
import { createPanel } from "./panel.js";
import { presetCase } from "./presets.js";
import { createCell, createChecks } from "./rail.js";
import { hasServer, useKey } from "./server.js";
import { hashOf, stateOf, stateOfHash } from "./share.js";
import { createStage } from "./stage.js";
import { isEditable, stepsIn, tensorIn } from "./steps.js";
import { Store, USUAL_VIEW } from "./store.js";
import { createHeads, createStrip } from "./strip.js";
import { matrixOf } from "./tensor.js";
import { languageFrom, textsOf } from "./texts.js";

/** Edits that come faster than this are computed together. */
const DEBOUNCE_MS = 30;
const BUSY_AFTER_MS = 200;
/** A large check begins once the picture is there. */
const CHECK_AFTER_MS = 50;

const FIRST = "sentence";

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

function createApp(store) {
  const app = {
    store,
    language: languageFrom(memory.get("language") ?? navigator.language),
    theme: memory.get("theme") ?? "auto",
    isAsking: false,
    /** @type {import("./layers.js").Facts[]} */
    layers: [],
  };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const spoken = h("p.spoken", { role: "status", "aria-live": "polite" });
  const notice = h("div.notice", { role: "alert" });
  let parts = [],
    masks = null;

  app.t = (key, values) => textsOf(app.language)(key, values);
  app.say = (text) => {
    spoken.textContent = text;
  };
  app.look = () => ({ ...store.state.view, isDark: app.theme === "dark" || (app.theme === "auto" && dark.matches) });

  app.currentStep = () => {
    const { answer, shown, view } = store.state;
    const steps = stepsIn({ given: shown, answer });
    return steps.find(({ id }) => id === view.step) ?? steps.find(({ id }) => id === "attention") ?? steps[0];
  };

  /**
   * Whether a mask hides a key from a query: by what the server says of it, else by the request. Cells are asked for by
   * the thousand.
   */
  app.hiddenIn = (head) => {
    const { shown, view, answer } = store.state;
    const { mask, attention, scores } = answer.outputs,
      [, , qLen, kvLen] = (mask ?? attention ?? scores)?.shape ?? [1, 1, 1, 1];
    if (masks?.of !== answer)
      masks = { of: answer, rule: new Masks(shown.request.masks ?? {}, qLen, kvLen), by: new Map() };
    const { rule, by } = masks,
      key = `${view.batch}/${head}`;
    if (!by.has(key)) {
      const said = mask && matrixOf(mask, view.batch, head).data;
      by.set(
        key,
        said ? (i, j) => said[i * kvLen + j] === 0 : (i, j) => rule.hiddenBy(view.batch, head, i, j) !== null,
      );
    }
    return by.get(key);
  };

  // ---- what buttons do -------------------------------------------------------------------------------------------

  app.openCase = (given) => {
    const { palette } = store.state.view;
    store.edit(given);
    store.look({ ...USUAL_VIEW, palette, ...given.view });
  };
  app.openPreset = (id) => app.openCase(presetCase(id));
  app.openStep = (step) => store.look({ step });
  app.keep = () => store.set({ kept: { given: store.state.shown, answer: store.state.answer } });

  const opened = (make) => async (source) => {
    try {
      app.openCase(await make(source));
      app.notify("");
    } catch (problem) {
      app.notify(app.t("own.wrong", { why: problem.message }));
    }
  };
  /** Of a real layer's many keys none gets much: colours up to the largest weight show more. */
  app.openLayer = async (name, view = { range: "max" }) => {
    try {
      const layer = await fetchLayer(name);
      app.openCase({ ...caseOver(layer, inputsFor(layer, store.state.given)), view });
      app.notify("");
    } catch (problem) {
      app.notify(app.t("own.wrong", { why: problem.message }));
    }
  };
  app.openText = opened(caseOfText);
  app.openFile = opened(caseOfFile);

  app.notify = (...content) => {
    notice.replaceChildren(...content);
    notice.hidden = content.length === 0 || content[0] === "";
  };

  /** A server with keys wants one: asked for here, and what was refused is computed then. */
  app.askForKey = (why) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true });
    const send = async (event) => {
      event.preventDefault();
      useKey(input.value);
      store.set({ given: { ...store.state.given } });
      app.layers = await listLayers();
      app.update(store.state);
    };
    const form = h("form.key", { onsubmit: send }, field(app.t("key"), input), h("button", {}, app.t("key.use")));
    app.notify(why, form);
  };

  let stroke = { number: 0, value: false };

  /** Paints a cell of the mask "attend": the first cell of a stroke decides whether it opens or closes. */
  app.paint = (row, col, isFirst) => {
    const { given, shown, view, answer } = store.state,
      [, , qLen, kvLen] = answer.outputs.attention.shape;
    const isOpen = !app.hiddenIn(view.head)(row, col);
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
    const step = app.currentStep();
    if ((key === "m" || key === " ") && step.cols === "key") {
      app.paint(row, col, true);
      return true;
    }
    if ((key === "Enter" || key === "F2") && app.cellInput && isEditable(step, store.state.given.request)) {
      app.cellInput.focus();
      app.cellInput.select();
      return true;
    }
    return false;
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      app.say(app.t("copied"));
      app.notify("");
    } catch {
      const area = h("textarea", { rows: 4, readonly: true, "aria-label": app.t("copy") });
      area.value = text;
      app.notify(app.t("copy.byHand"), area);
      area.select();
    }
  };
  app.copyCurl = () => copy(curlOf(store.state.given, store.state.view.head));
  app.copyPython = () => copy(pythonOf(store.state.given, store.state.view.head));
  app.copyJson = () => copy(JSON.stringify(requestToSend(store.state.given, store.state.view.head)));

  app.share = async () => {
    const hash = await hashOf(store.state);
    if (hash === null) {
      app.notify(app.t("share.long"));
      return;
    }
    history.replaceState(null, "", hash);
    await copy(location.href);
    app.notify(app.t("share.done"));
  };

  const fileName = (ending) => `attention-${store.state.view.step.replace(/\W/g, "-")}.${ending}`;
  const colours = () => Object.fromEntries(["panel", "ink", "hidden", "hatch"].map((name) => [name, cssColour(name)]));
  const sheet = () => app.stage.map.sheet;
  app.savePng = () => {
    const { cells } = app.stage.map,
      canvas = h("canvas", { width: cells.width, height: cells.height });
    const context = canvas.getContext("2d");
    context.fillStyle = colours().panel;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(cells, 0, 0);
    canvas.toBlob((blob) => download(fileName("png"), blob));
  };
  app.saveSvg = () => {
    const { rows, cols } = sheet().matrix;
    if (rows * cols > SVG_CELLS) app.notify(app.t("export.large"));
    else download(fileName("svg"), svgOf(sheet(), colours()), "image/svg+xml");
  };
  app.saveCsv = () => download(fileName("csv"), csvOf(sheet()), "text/csv");
  app.saveNpy = () =>
    download(
      fileName("npy"),
      npyOf(tensorIn(app.currentStep(), { given: store.state.shown, answer: store.state.answer })),
    );
  app.saveJson = () => {
    const { given, answer } = store.state;
    const outputs = Object.fromEntries(
      Object.entries(answer.outputs).map(([name, { shape, data }]) => [
        name,
        {
          shape,
          data: Array.from(data, (value) =>
            Number.isFinite(value) ? value : value > 0 ? "Infinity" : value < 0 ? "-Infinity" : "NaN",
          ),
        },
      ]),
    );
    download(
      fileName("json"),
      JSON.stringify({ endpoint: given.endpoint, request: given.request, outputs }),
      "application/json",
    );
  };
  app.saveHtml = () => download("attention.html", pageWith(store.state), "text/html");

  // ---- the page --------------------------------------------------------------------------------------------------

  app.setLanguage = (language) => {
    app.language = language;
    memory.set("language", language);
    app.build();
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
    app.stage = createStage(app);
    const header = createHeader(app),
      panel = createPanel(app),
      strip = createStrip(app),
      heads = createHeads(app);
    const cell = createCell(app),
      checks = createChecks(app);
    parts = [header, panel, strip, heads, app.stage, cell, checks];
    const main = h(
      "main",
      {},
      strip.element,
      panel.element,
      h("div.work", {}, app.stage.element, h("div.rail", {}, heads.element, cell.element, checks.element)),
    );
    for (const old of document.body.querySelectorAll("header, main, .notice, .spoken")) old.remove();
    document.body.prepend(header.element, notice, main, spoken);
    app.setAsking(app.isAsking);
    app.update(store.state);
  };

  /** Said to assistive technology at once; the picture pales only when it takes long. */
  app.setAsking = (isAsking) => {
    app.isAsking = isAsking;
    app.stage?.element.setAttribute("aria-busy", String(isAsking));
  };

  app.update = (state) => {
    if (!state.answer) {
      parts[0]?.update(state);
      parts[1]?.update(state);
      return;
    }
    for (const part of parts) part.update(state);
  };
  return app;
}

/** Whatever changes the request has it computed; an answer that was overtaken is dropped. */
function computeOn(store, app) {
  const wish = ({ given, view }) => ({ given, head: view.head });
  let asked = null,
    timer = 0,
    running = null,
    isFirst = true;

  /** Of a large request only one head is here: looking at another one asks for it. */
  const isNew = ({ given, view, answer }) =>
    given !== asked.given || (answer?.onlyHead !== undefined && view.head !== asked.head);

  const checkLate = (given, answer) => {
    if (store.state.answer === answer) store.set({ check: checkRun({ given, answer }) });
  };

  async function run({ given, head }) {
    running?.abort();
    const mine = (running = new AbortController());
    const slow = setTimeout(() => store.set({ isBusy: true }), BUSY_AFTER_MS);
    try {
      const answer = await compute(given, head, mine.signal);
      if (mine.signal.aborted) return;
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
      if (!isFirst) app.notify(""); // what the start has to say stays
      if (!store.state.check) setTimeout(() => !mine.signal.aborted && checkLate(given, answer), CHECK_AFTER_MS);
    } catch (problem) {
      if (problem.name === "AbortError" || mine.signal.aborted) return;
      store.set({ isBusy: false, isRefused: true });
      if (problem.status === 401) {
        app.askForKey(problem.message);
        return;
      }
      const where =
        problem.pointer && !problem.message.startsWith(problem.pointer) ? [h("code", {}, problem.pointer), " "] : [];
      app.notify(h("b", {}, app.t("refused")), " ", ...where, problem.message);
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
  asked = wish(store.state);
  app.setAsking(true);
  run(asked);
}

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

/** @returns {Promise<{given: object, view: object, problem?: Error}>} */
async function firstState() {
  const usual = () => ({ given: presetCase(FIRST), view: USUAL_VIEW });
  try {
    return (await stateOfHash(location.hash)) ?? (await embeddedState()) ?? usual();
  } catch (problem) {
    return { ...usual(), problem };
  }
}

async function start() {
  const { given, view, problem } = await firstState();
  const store = new Store({
    given,
    shown: given,
    answer: null,
    check: null,
    kept: null,
    isBusy: false,
    isRefused: false,
    view,
  });
  const app = createApp(store);
  computeOn(store, app); // the server works while the page is built
  app.build();
  if (problem) app.notify(app.t("own.wrong", { why: problem.message }));
  takeDrops(app);
  takeKeys(store);
  window.addEventListener("hashchange", async () => {
    const found = await stateOfHash(location.hash).catch(() => null);
    if (!found) return;
    store.edit(found.given);
    store.look(found.view);
  });
  if (hasServer()) app.layers = await listLayers();
  app.update(store.state);
}

start();
