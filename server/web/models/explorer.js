/**
 * explorer.js: the Models mode: runs sentences through a whole model, and shows every head.
 */
import { fileButton, h, sayOnce } from "../dom.js";
import { hasAnswers } from "../exchange/kept.js";
import { hasServer } from "../exchange/server.js";
import { createTextPanel } from "./text_panel.js";
import { readDump } from "./reader.js";
import { createForm, createTools, toModel } from "./form.js";
import { caseOfHead } from "./case_of_head.js";
import { changesFor, isChanged, isPatched, listOfChanges, NO_CHANGES } from "./changes.js";
import { listModels, runText } from "./textrun.js";
import { createPair } from "./pair.js";
import { areToolsOpen, viewStateFrom } from "./view_state.js";

/** Most runs of texts that are kept, so that going back sends no request. */
const RUNS_KEPT = 12;

/** Python lines that write a file which the page opens. Their comments say what to use with transformers. */
const PYTHON = [
  "import numpy as np",
  'tokens = ["The", "cat", "sat"]  # tokenizer.convert_ids_to_tokens(x.input_ids[0])',
  "maps = np.tril(np.ones((2, 4, 3, 3)))  # torch.cat(model(**x, output_attentions=True).attentions).detach().numpy()",
  "maps /= maps.sum(axis=-1, keepdims=True)  # (layers, heads, queries, keys)",
  'np.savez("heads.npz", attentions=maps.astype("float32"), tokens=tokens)',
  '# or: import json; json.dump({"attentions": maps.tolist(), "tokens": tokens}, open("heads.json", "w"))',
  '# or: import safetensors.numpy as st; st.save_file({"attentions": maps}, "heads.safetensors", {"tokens": "\\n".join(tokens)})',
].join("\n");

/** @param {import("../main.js").App} app @returns {import("../modes.js").Mode} */
export function createModels(app) {
  const { t, store } = app,
    runs = new Map();
  let facts = null,
    isListed = false,
    asked = "",
    running = null,
    shown = [];

  const viewState = () => viewStateFrom(store.state.view.models, app.language);
  /** Moves between heads, moves between words, and drags of the slider are one undo step each. */
  const MOVES = ["layer,head", "row", "least"];
  const change = (patch) => {
    const names = String(Object.keys(patch));
    const now = viewState();
    store.setView({ models: { ...now, ...(areToolsOpen(now) ? { tools: "open" } : {}), ...patch } }, MOVES.includes(names) && "models " + names);
  };
  const factsOf = (name) => facts?.find((one) => one.name === name) ?? null;

  const open = async (run, head) => {
    try {
      app.openCase(await caseOfHead(run, head));
      app.notify("");
      app.retries.done("case");
    } catch (problem) {
      app.failed(problem, "case", () => open(run, head));
    }
  };

  // ---- what is asked ---------------------------------------------------------------------------------------------

  const toModelOf = (name) => change(toModel(factsOf(name), viewState().texts, app.language));
  const form = createForm(app, { change, viewState, toModelOf }),
    tools = createTools(app, { change }),
    textPanels = [createTextPanel(app, { change, open }), createTextPanel(app, { change, open })],
    pair = createPair(app, change),
    changed = h("p.changed", { hidden: true }),
    said = h("p.note", {}),
    bySmall = h("button", { type: "button", onclick: () => toModelOf("small") }, t("models.bySmall")),
    spelled = h("p.row-of", { role: "status", hidden: true }),
    old = h("p.old", { role: "status", hidden: true }),
    close = h("button", { type: "button", onclick: closeDump }, t("models.close")),
    texts = h("div.columns", {}, textPanels[0].element),
    element = h("div.models", {}, h("div.model-top", {}, form.element, said, spelled, close, old), texts, h("div.model-tools", {}, form.choices, tools.element, form.twice, changed), pair.element, createHow(app));

  /** Each text runs once per set of changes. */
  function runOf(model, { text, target, part, newTokens }, changes, base, other, signal) {
    const key = JSON.stringify([model.name, text, target, part, newTokens, changes, isPatched(changes) && other.text]);
    if (!runs.has(key)) {
      if (runs.size >= RUNS_KEPT) runs.delete(runs.keys().next().value);
      runs.set(key, runText(model, { text, target, part, newTokens, changes }, base, other, signal));
      runs.get(key).catch(() => runs.delete(key));
    }
    return runs.get(key);
  }

  async function ask(now) {
    const model = factsOf(now.model);
    if (!model || model.state === "broken" || ["image", "audio"].includes(model.kind)) return;
    running?.abort();
    const { signal } = (running = new AbortController());
    texts.setAttribute("aria-busy", "true");
    try {
      const bases = await Promise.all(now.texts.map((text) => runOf(model, { ...now, text }, NO_CHANGES, undefined, undefined, signal)));
      shown = await Promise.all(
        bases.map(async (base, at) => {
          const other = bases[1 - at],
            changes = changesFor(base, now, other);
          return { base, other, run: isChanged(changes) ? await runOf(model, { ...now, text: base.text }, changes, base, other, signal) : base };
        }),
      );
      if (signal.aborted) return;
      app.notify("");
      app.retries.done("texts");
      markOld(false);
      update(store.state);
      for (const { run } of shown) app.say(t("models.facts", { layers: run.layers, heads: run.heads, tokens: run.keys.length }), run.text);
    } catch (problem) {
      if (signal.aborted) return;
      // A run that was shared with an older request, and given up with it.
      if (problem.name === "AbortError") return void ask(now);
      markOld(shown.length > 0);
      app.failed(problem, "texts", () => ask(now));
    } finally {
      if (running?.signal === signal) texts.setAttribute("aria-busy", "false");
    }
  }

  /** Marks the shown maps as those of an earlier sentence. */
  function markOld(isOld) {
    texts.classList.toggle("stale", isOld);
    sayOnce(old, isOld ? t("stale") : "");
    old.hidden = !isOld;
  }

  /** A copy may have no answers about models. */
  const withoutServer = (problem) => {
    if (hasServer()) throw problem;
    return [];
  };

  async function findModels() {
    facts = [];
    try {
      if (hasServer() || hasAnswers()) facts = await listModels().catch(withoutServer);
      isListed = true;
      app.retries.done("models");
    } catch (problem) {
      app.failed(problem, "models", findModels);
    }
    const names = facts.map(({ name }) => name);
    if (names.length > 0 && !names.includes(viewState().model)) toModelOf(names[0]);
    else update(store.state);
  }

  // ---- what is shown ---------------------------------------------------------------------------------------------

  function sayOf(now) {
    const model = factsOf(now.model);
    if (!hasServer() && facts.length === 0) return t("models.noServer");
    if (isListed && facts.length === 0) return t("models.none");
    if (model?.state === "broken") return t("models.broken", { why: model.reason });
    if (["image", "audio"].includes(model?.kind)) return t("models." + model.kind, { name: model.name });
    if (model?.kind === "encoder-decoder") return t("models.twoSided");
    return "";
  }

  function closeDump() {
    app.dump = null;
    shown = [];
    change({ row: -1, linked: [] });
  }

  let changesShown = "";

  /** The way back from each change. */
  function showChanges({ base: run, other }, now) {
    const changes = changesFor(run, now, other),
      key = JSON.stringify([run.text, changes]);
    changed.hidden = !isChanged(changes);
    if (changesShown === key) return;
    changesShown = key;
    changed.replaceChildren(
      t("models.changes"),
      ...listOfChanges(t, run, changes).map(({ short, undo }) => h("button.chip", { type: "button", onclick: () => change(undo) }, short, " ×")),
    );
  }

  /** "demo" knows few words. A model for any text is a click away. */
  function showSpelled(now) {
    const isSpelled = now.model === "demo" && shown.some(({ base }) => base.isSpelled);
    if (spelled.hidden === !isSpelled) return;
    spelled.replaceChildren(...(isSpelled ? [t("models.spelled"), factsOf("small") ? bySmall : ""] : []));
    spelled.hidden = !isSpelled;
  }

  function update(state) {
    const now = viewStateFrom(state.view.models, app.language),
      dump = app.dump;
    if (facts === null) {
      facts = [];
      findModels();
    }
    form.update(now, facts, dump);
    said.textContent = dump ? t("models.dump", { name: dump.text }) : sayOf(now);
    said.hidden = said.textContent === "";
    close.hidden = !dump;
    if (dump) showDump(dump);
    else askIfNew(now);
    showSpelled(now);
    element.classList.toggle("plain", !dump && !areToolsOpen(now));
    tools.element.hidden = texts.hidden = changed.hidden = shown.length === 0;
    pair.update(shown, now);
    if (shown.length === 0) return;
    tools.update(now);
    texts.classList.toggle("two", shown.length > 1);
    if (texts.childElementCount !== shown.length) texts.replaceChildren(...shown.map((_, at) => textPanels[at].element));
    const seen = dump ? { ...now, ...NO_CHANGES } : now;
    showChanges(shown[0], seen);
    shown.forEach(({ run, base, other }, at) => textPanels[at].update(run, base, seen, other));
  }

  /** A dump cancels sentences that are being computed. */
  function showDump(dump) {
    shown = [{ base: dump, run: dump, other: undefined }];
    asked = "";
    running?.abort();
    app.retries.cancel("texts");
    markOld(false);
  }

  function askIfNew(now) {
    const key = JSON.stringify([now.model, now.texts, now.target, now.part, now.newTokens, now.ablate, now.averaged, now.patched, now.edges, now.lines]);
    if (!factsOf(now.model) || key === asked) return;
    if (asked === "" || JSON.parse(asked)[0] !== now.model) shown = [];
    asked = key;
    ask(now);
  }
  const pictures = () => textPanels.slice(0, shown.length).flatMap((panel, at) => panel.pictures().map((one) => ({ ...one, id: one.id + (at || ""), name: [one.name, at ? 2 : ""].join(" ").trim() })));
  return { element, update, focus: textPanels[0].focus, pictures };
}

/** How to write maps of other programs to a file. */
function createHow(app) {
  const { t } = app;
  const code = h("pre", { tabindex: "0", "aria-label": "Python" }, h("code", {}, PYTHON));
  return h(
    "details.dump-how",
    {},
    h("summary", {}, t("models.own")),
    h("p.note", {}, t("models.ownHow")),
    code,
    h("div.row-of", {}, ...fileButton(t("own.file"), (file) => app.openFile(file)), h("button", { type: "button", onclick: () => app.copyText(PYTHON) }, t("copy"))),
  );
}

/** A file that takes longer to read gets a notice. */
const READING_SAID_MS = 300;

/** Number of opened files. Only the last one is shown. */
let readings = 0;

/** @param {import("../main.js").App} app @param {File} file @returns {Promise<boolean>} whether it is a file of maps */
export async function openDump(app, file) {
  const mine = ++readings,
    slow = setTimeout(() => app.notify(app.t("models.reading", { name: file.name })), READING_SAID_MS);
  const dump = await readDump(file).finally(() => clearTimeout(slow));
  if (!dump) return false;
  if (mine !== readings) return true;
  app.dump = dump;
  const { models } = app.store.state.view;
  app.store.setView({ mode: "models", models: { ...models, layer: 0, head: 0, row: -1, linked: [], hidesFirst: false } });
  app.notify("");
  return true;
}
