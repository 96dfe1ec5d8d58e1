/**
 * debugger.js: the mode for attention that gives other numbers: what goes in, what another program computes, and beside it
 * what this page computes.
 *
 * Inputs and settings are a draft, a store of their own, with the fields of the Lab. Nothing is asked for until the button
 * is pressed.
 */
import { choice, field, fileButton, h, sayOnce } from "../dom.js";
import { foundInFile, foundInText, expectValues, PLACES, withTensor } from "../expected/own_data.js";
import { linesFor } from "../expected/differences.js";
import { stepNamed } from "../expected/matching.js";
import { createExpected, diagnosisPart } from "../expected/results.js";
import { caseOfFile } from "../panels/importing.js";
import { savePage } from "../panels/export_actions.js";
import { settingFields } from "../panels/request.js";
import { BARE, LAYER, PRESETS, presetCase } from "../request/presets.js";
import { nestedOf, short, tensorFrom, withDecimalMark } from "../request/tensor.js";
import { getIn, setIn, Store } from "../store.js";
import { createBeside } from "./beside.js";

/** What goes in, by endpoint: places and their names. Those after the gap are seldom needed. */
const FIELDS = {
  [BARE]: [["in.query", "Q"], ["in.key", "K"], ["in.value", "V"]],
  [LAYER]: [
    ...["in.query", "w.query", "w.key", "w.value", "w.output"].map((id) => [id, PLACES[id][0]]),
    null,
    ...["in.key", "b.query", "b.key", "b.value", "b.output"].map((id) => [id, PLACES[id][0]]),
  ],
};

const START = { [BARE]: "bare", [LAYER]: "causal" };

/** Examples whose maps are too large to look for causes. */
const LARGE = ["large", "twelve"];

/** A larger paste is kept without entering the field, because megabytes of text make a field slow. */
const PASTED_MAX = 1 << 16;

const TYPED_MS = 300;

const sizeOf = ({ shape }) => shape.join(" × ");

/**
 * What else goes into the computation, by the names of its fields: an example sets it, and single numbers of one's own do not change it.
 * @returns {string[]}
 */
function settingsOf(t, { options = {}, masks = {} }) {
  const names = { num_heads: t("heads"), kv_num_heads: t("kvHeads"), scale: t("scale"), softcap: t("softcap"), sliding_window: t("window"), causal: t("causal"), residual: t("residual"), norm: t("norm"), training: t("dropout"), rope: "RoPE" };
  const given = Object.entries({ ...options, ...masks }).filter(([name, value]) => value !== undefined && value !== false && name !== "dropout");
  return given.map(([name, value]) => [names[name] ?? name, /number|string/.test(typeof value) && withDecimalMark(String(value))].filter(Boolean).join(" "));
}

/** The inputs as NumPy reads them. */
function numpyOf({ request, endpoint }) {
  const given = FIELDS[endpoint].filter((one) => one && getIn(request, PLACES[one[0]][1]));
  const lines = given.map(([id, label]) => `${label.replace(" ", "_")} = np.array(${JSON.stringify(nestedOf(tensorFrom(getIn(request, PLACES[id][1]))))})`);
  return ["import numpy as np", ...lines, ""].join("\n");
}

/** What a computation cannot be without. A file with all of it replaces an example as a whole, with its settings. */
const NEEDED = { [BARE]: ["in.query", "in.key", "in.value"], [LAYER]: ["in.query", "w.query", "w.key", "w.value"] };
const replaces = ({ id, endpoint }, targets) => id !== "" && NEEDED[endpoint].every((place) => targets.some((target) => target?.id === place));
const bareOf = (given) => ({ ...given, request: { inputs: {}, ...(given.endpoint === LAYER && { weights: {} }), options: { num_heads: given.request.options?.num_heads } } });

/** A field for numbers of a program: typed, pasted or from a file. @param {string} label @param {number} rows @param {(source: string) => void} use */
function numbersField(label, rows, use) {
  let timer = 0;
  /** Reads at once what was typed last. */
  const settle = () => {
    if (timer === 0) return;
    clearTimeout(timer);
    timer = 0;
    use(text.value);
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(settle, TYPED_MS);
  };
  const paste = (event) => {
    const pasted = event.clipboardData.getData("text/plain");
    if (pasted.length < PASTED_MAX || text.value !== "") return;
    event.preventDefault();
    use(pasted);
  };
  const text = h("textarea", { rows, spellcheck: "false", autocomplete: "off", dir: "ltr", oninput: later, onpaste: paste });
  const note = h("small", { role: "status" });
  return { text, note, element: h("label.field", {}, h("span", {}, label), text, note), settle };
}

/** @param {import("../main.js").App} app */
export function createDebugger(app) {
  const { t, store } = app,
    draft = new Store(store.state);
  let synced = null,
    isEdited = false;
  const asked = (given) => {
    isEdited = true;
    draft.edit(given);
  };
  const inputs = createInputs(app, draft, asked),
    theirs = createTheirs(app),
    beside = createBeside(app);
  const title = h("h2", { tabindex: "-1" }, t("opening.own")),
    settings = h("p.note", {}),
    stale = h("p.note", { role: "status" }),
    compare = h("button.main", { type: "submit" }, t("bug.compare")),
    share = h("button", { type: "button", onclick: () => app.share() }, t("bug.share")),
    keep = h("button", { type: "button", onclick: () => savePage(app, { expected: store.state.expected }) }, t("bug.save")),
    place = h("div.messages", {}),
    expected = createExpected(app, [h("div.tasks", {}, share, keep), beside.element], "bug.cell");
  const element = h(
    "form.debugger",
    { "aria-label": t("mode.bug"), onsubmit: submit },
    h("div.lead", {}, title, h("p", {}, t("bug.lead"))),
    inputs.element,
    h("section.theirs", {}, h("h2", {}, t("bug.theirs")), theirs.element, settings, h("div.tasks", {}, compare, ...theirs.sources), place, stale, expected.element),
  );

  draft.listen(() => {
    isEdited = isEdited || draft.state.given !== synced;
    inputs.update(draft.state);
    saySettings();
    sayStale();
  });

  const saySettings = () => {
    const list = settingsOf(t, draft.state.given.request);
    sayOnce(settings, list.length > 0 ? t("bug.settings", { list: list.join(", ") }) : "");
  };

  const sayStale = () => sayOnce(stale, isEdited && store.state.expected ? t("bug.stale") : "");

  let waiting = null;

  async function submit(event) {
    event.preventDefault();
    try {
      inputs.settle();
      const found = theirs.read(),
        { given } = draft.state;
      waiting = { given, found };
      app.notify("");
      if (given !== store.state.given) store.edit(given, 0, { expected: null, isRefused: false });
      else finish(store.state);
    } catch (problem) {
      app.cannotUse(problem);
    }
  }

  /** Compares when the answer is there. */
  function finish({ shown, answer, isRefused, given }) {
    if (!waiting || waiting.given !== given) return;
    const { found } = waiting;
    if (isRefused) waiting = null;
    if (isRefused || !answer || shown !== given) return;
    waiting = null;
    try {
      store.set({ expected: null });
      expectValues(app, found);
    } catch (problem) {
      app.cannotUse(problem);
    }
  }

  function update(state) {
    app.takeNotice(place);
    if (state.given !== synced) {
      synced = state.given;
      isEdited = false;
      draft.set({ given: state.given });
    }
    inputs.update(draft.state);
    saySettings();
    theirs.update(state);
    finish(state);
    sayStale();
    expected.update(state);
    const isShown = Boolean(state.expected && state.answer);
    beside.update(isShown ? linesFor(state.expected.values, app.seen().run, state.expected) : [], isShown ? app.seen().run : null);
  }
  return { element, update, focus: () => title.focus(), useFile: theirs.useFile, useText: theirs.useText };
}

/** What another program has computed. @param {import("../main.js").App} app */
function createTheirs(app) {
  const { t } = app;
  let kept = null;
  const { text, note, element } = numbersField(t("bug.theirs.label"), 7, (source) => {
    if (source.length < PASTED_MAX) return;
    try {
      keep(foundInText(source), "");
    } catch (problem) {
      app.cannotUse(problem);
    }
  });
  text.placeholder = "tensor([[ 0.0213, -0.1142, …],\n        [ 0.0879,  0.0401, …]])";
  const sayKept = () => sayOnce(note, kept ? kept.map(({ name, tensor }) => [name, sizeOf(tensor)].filter(Boolean).join(": ")).join(", ") : t("bug.theirs.note"));
  function keep(found, written) {
    kept = found;
    text.value = written;
    sayKept();
  }
  async function useFile(file) {
    try {
      keep(await foundInFile(file), "");
      app.notify("");
    } catch (problem) {
      app.cannotUse(problem);
    }
  }
  text.addEventListener("input", () => {
    kept = null;
    sayKept();
  });
  sayKept();
  /** Fills in what the request at hand gives with a common mistake. */
  async function tryOut() {
    try {
      const { outputWithMistake } = await diagnosisPart(),
        rows = nestedOf(outputWithMistake(app.seen().run), (value) => value.toFixed(4));
      useText(`tensor(${JSON.stringify(rows).replace(/"/g, "").replace(/\],\[/g, "],\n        [").replace(/,(?=\S)/g, ", ")})`);
    } catch (problem) {
      app.cannotUse(problem);
    }
  }
  const useText = (pasted) => {
    text.value = pasted;
    text.dispatchEvent(new Event("input"));
  };
  const trial = h("button", { type: "button", onclick: tryOut }, t("bug.try"));
  return {
    element,
    sources: [...fileButton(t("own.file"), useFile), trial],
    read: () => kept ?? foundInText(text.value),
    update: ({ answer }) => (trial.disabled = !answer),
    useFile,
    useText,
  };
}

/** What goes in, and how it is computed. @param {import("../main.js").App} app @param {Store} draft */
function createInputs(app, draft, change) {
  const { t, store } = app;
  const open = (id) => app.openCase({ ...presetCase(id), view: { mode: "bug" } });
  const example = choice([["", t("bug.example.none")], ...PRESETS.filter((id) => !LARGE.includes(id)).map((id) => [id, t("preset." + id)])], "", (id) => id && open(id));
  const kinds = [BARE, LAYER].map((kind) => h("button", { type: "button", onclick: () => draft.state.given.endpoint !== kind && open(START[kind]) }, t("bug.kind." + kind)));
  const groups = Object.fromEntries(Object.entries(FIELDS).map(([kind, list]) => [kind, list.map((one) => one && tensorField(one))]));
  const place = h("div.tensors", {}),
    seldom = h("div.tensors", {}),
    more = h("details", {}, h("summary", {}, t("bug.more")), seldom);
  const layout = choice([["in_out", t("bug.layout.in_out")], ["out_in", t("bug.layout.out_in")]], "in_out", (value) => draft.editRequest(["weights", "layout"], value === "in_out" ? undefined : value)),
    layoutField = field(t("bug.layout"), layout);
  const rope = choice([["", t("none")], ["half", t("bug.rope.half")], ["interleaved", t("bug.rope.interleaved")]], "", (value) => draft.editRequest(["options", "rope"], value ? { layout: value } : undefined));
  /** The fields of the Lab, over the draft. @type {any} */
  const drafting = { ...app, store: draft };
  const settings = settingFields(drafting);
  const copy = h("button", { type: "button", onclick: () => app.copyText(numpyOf(draft.state.given)) }, t("bug.numpy"));
  const element = h(
    "section.panel.inputs",
    {},
    h(
      "section",
      {},
      h("h2", {}, t("bug.inputs")),
      h("div.row", {}, h("span.segments", { role: "group", "aria-label": t("bug.inputs") }, kinds), field(t("bug.example"), example)),
      h("p.note", {}, t("bug.inputs.note")),
      place,
      more,
      layoutField,
      h("div.row", {}, ...fileButton(t("own.file"), useFile), copy),
    ),
    h("section", {}, h("h2", {}, t("options")), settings.element, field("RoPE", rope)),
  );
  let drawn = null,
    isExample = false;

  /** Numbers with names go where their names belong, from any field. */
  function put(found, id) {
    const fields = groups[draft.state.given.endpoint].filter(Boolean),
      byName = (name) => fields.find(({ label }) => label.replace(/\W|_/g, "").toLowerCase() === name.replace(/\W|_/g, "").toLowerCase()) ?? fields.find((one) => stepNamed(name, [{ id: one.id }]));
    const targets = found.map((one) => (one.name && byName(one.name)) || (found.length === 1 && fields.find((some) => some.id === id)));
    let given = replaces(draft.state.given, targets) ? bareOf(draft.state.given) : draft.state.given,
      count = 0;
    for (const [at, one] of found.entries()) {
      const target = targets[at];
      if (!target) continue;
      given = { ...withTensor(given, target.id, one.tensor), random: undefined, seed: undefined, source: undefined };
      if (target.id.startsWith("in.")) given.request = setIn(given.request, ["tokens"], undefined);
      target.mark();
      count++;
    }
    if (count > 0) change(given);
    return count;
  }

  async function useFile(file) {
    try {
      const isRequest = async () => change(await caseOfFile(file));
      if (!(await foundInFile(file).then((found) => put(found, ""), () => 0))) await isRequest();
      app.notify("");
    } catch (problem) {
      app.cannotUse(problem);
    }
  }

  function tensorField([id, label]) {
    const [, path] = PLACES[id];
    let isOwn = false,
      wrong = null;
    const use = (source) => {
      wrong = null;
      try {
        if (source.trim() !== "") put(foundInText(source), id);
      } catch (problem) {
        wrong = problem;
      }
      update(draft.state);
    };
    const { text, note, element: labelled, settle } = numbersField(label, 2, use);
    const without = h("button.link", { type: "button", onclick: leaveOut }, t("bug.without"));
    const isOptional = path.at(-1) === "bias" || id === "w.output" || id === "in.key";
    function leaveOut() {
      text.value = "";
      isOwn = false;
      change({ ...draft.state.given, id: "", request: setIn(draft.state.given.request, id === "w.output" ? path.slice(0, -1) : path, undefined) });
    }
    function update({ given }) {
      const json = getIn(given.request, path),
        tensor = json && tensorFrom(json);
      sayOnce(note, wrong ? app.wordsOf(wrong) : tensor ? `${sizeOf(tensor)}${isOwn || !isExample ? "" : `, ${t("bug.given")}`}` : t("none"));
      note.classList.toggle("wrong", wrong !== null);
      text.setAttribute("aria-invalid", String(wrong !== null));
      text.placeholder = tensor ? Array.from(tensor.data.slice(0, 4), (value) => short(value, 3)).join("  ") + " …" : "";
      without.hidden = !tensor || !isOptional;
    }
    const reset = () => {
      text.value = "";
      isOwn = false;
      wrong = null;
    };
    return {
      id,
      label,
      update,
      reset,
      settle: () => {
        settle();
        if (!wrong) return;
        text.focus();
        throw wrong;
      },
      mark: () => (isOwn = true),
      element: h("div", {}, labelled, without),
    };
  }

  function update({ given }) {
    const { endpoint, request } = given,
      list = groups[endpoint],
      gap = list.indexOf(null);
    kinds.forEach((button, at) => button.setAttribute("aria-pressed", String([BARE, LAYER][at] === endpoint)));
    example.value = given.id && !LARGE.includes(given.id) ? given.id : "";
    if (store.state.given === given && given.id && given !== drawn) for (const one of list) one?.reset();
    drawn = given;
    isExample = isExample || Boolean(given.id);
    if (place.firstChild !== list[0].element) {
      place.replaceChildren(...list.slice(0, gap < 0 ? list.length : gap).map((one) => one.element));
      seldom.replaceChildren(...(gap < 0 ? [] : list.slice(gap + 1).map((one) => one.element)));
      more.hidden = gap < 0;
    }
    layoutField.hidden = endpoint !== LAYER;
    layout.value = request.weights?.layout ?? "in_out";
    rope.value = request.options?.rope?.layout ?? (request.options?.rope ? "half" : "");
    for (const one of list) one?.update({ given });
    settings.update({ given });
  }
  const settle = () => groups[draft.state.given.endpoint].forEach((one) => one?.settle());
  return { element, update, settle };
}
