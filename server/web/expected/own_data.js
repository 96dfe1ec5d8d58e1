/**
 * own_data.js: uses data of one's own as a request, as a part of the present request, or as the expected values of a
 * step.
 *
 * @typedef {import("../request/parsing.js").Found} Found
 */
import { choice, field } from "../dom.js";
import { jsonOfTensor } from "../panels/importing.js";
import { LAYER } from "../request/presets.js";
import { fractionsIn, isNpy, npyFrom, readText, roundedDigits, textOfBytes } from "../request/parsing.js";
import { safetensorsFrom } from "../request/safetensors.js";
import { nestedOf, tensorFrom } from "../request/tensor.js";
import { isZip, unzipped } from "../request/zip.js";
import { getIn, setIn } from "../store.js";
import { Problem } from "../texts.js";
import { DEFAULT_TOLERANCE } from "./differences.js";
import { guessedStep, stepNamed } from "./matching.js";
import { stepsIn } from "../request/steps.js";

/** Members of a request that hold one tensor, with their labels. */
export const PLACES = {
  "in.query": ["X", ["inputs", "query"]],
  "in.key": ["X key", ["inputs", "key"]],
  "in.value": ["X value", ["inputs", "value"]],
  "w.query": ["W_Q", ["weights", "query", "weight"]],
  "w.key": ["W_K", ["weights", "key", "weight"]],
  "w.value": ["W_V", ["weights", "value", "weight"]],
  "w.output": ["W_O", ["weights", "output", "weight"]],
  "b.query": ["b_Q", ["weights", "query", "bias"]],
  "b.key": ["b_K", ["weights", "key", "bias"]],
  "b.value": ["b_V", ["weights", "value", "bias"]],
  "b.output": ["b_O", ["weights", "output", "bias"]],
};

const foundOf = (name, tensor, digits = 0) => ({ name, tensor, digits });

/** Tensors of an answer, or of any object. Other members are ignored. @returns {Found[]} */
function foundInJson(json, digits) {
  if (Array.isArray(json)) return [foundOf("", tensorFrom(json), digits)];
  const isTensor = (value) => (Array.isArray(value) && value.length > 0) || Array.isArray(value?.shape);
  const members = Object.entries(json.outputs ?? json).filter(([, value]) => isTensor(value));
  return members.map(([name, value]) => foundOf(name, tensorFrom(value), digits));
}

/** @param {string} text @returns {Found[]} */
export function foundInText(text) {
  const { json, found } = readText(text),
    all = json === undefined ? found : foundInJson(json, roundedDigits(fractionsIn(text)));
  if (all.length === 0) throw new Problem("own.empty");
  return all;
}

const withNames = (tensors) => Object.entries(tensors).map(([name, tensor]) => foundOf(name, tensor));

/** @param {File} file @returns {Promise<Found[]>} a tensor without a name gets that of the file */
export async function foundInFile(file) {
  const buffer = await file.arrayBuffer(),
    bytes = new Uint8Array(buffer),
    name = file.name.replace(/\.\w+$/, "");
  if (file.name.endsWith(".safetensors")) return withNames(safetensorsFrom(buffer).tensors);
  if (isZip(bytes)) {
    const arrays = Array.from(await unzipped(buffer)).filter(([, content]) => isNpy(new Uint8Array(content)));
    return arrays.map(([entry, content]) => foundOf(entry.replace(/\.npy$/, ""), npyFrom(content)));
  }
  if (isNpy(bytes)) return [foundOf(name, npyFrom(buffer))];
  return foundInText(textOfBytes(bytes, file.name)).map((one) => ({ ...one, name: one.name || name }));
}

/** Adds expected values. They replace earlier ones of the same step. */
export function expectValues(app, found) {
  if (!app.store.state.answer) return;
  const { run, view } = app.seen(),
    steps = stepsIn(run),
    before = app.store.state.expected;
  const values = found.flatMap((one) => {
    const step = guessedStep(one, run, view),
      isNamed = step === stepNamed(one.name, steps);
    return step ? [{ ...one, step: step.id, isNamed, view: { batch: view.batch, head: view.head } }] : [];
  });
  if (values.length === 0)
    throw new Problem("expected.fits", { shape: found.map(({ tensor }) => tensor.shape.join(" × ")).join(", ") });
  const others = (before?.values ?? []).filter((one) => !values.some(({ step }) => step === one.step));
  app.hasNewValues = true;
  app.store.change({ expected: { ...DEFAULT_TOLERANCE, ...before, values: [...others, ...values] } });
}

/** Zeros and ones are the mask "attend". Other numbers are a bias. */
function maskOf({ tensor }) {
  const isAttend = tensor.data.every((value) => value === 0 || value === 1);
  return isAttend ? ["attend", nestedOf(tensor, Boolean)] : ["bias", jsonOfTensor(tensor)];
}

/** A case with a tensor in one of the places. Words that label another number of rows are dropped. */
export function withTensor(given, place, { shape, data }) {
  const [, path] = PLACES[place],
    json = jsonOfTensor(path.at(-1) === "bias" ? { shape: [data.length], data } : { shape, data }),
    before = getIn(given.request, path),
    isOtherLength = path[0] === "inputs" && before && tensorFrom(before).shape.at(-2) !== shape.at(-2),
    request = setIn(given.request, path, json);
  return { ...given, id: "", endpoint: path[0] === "weights" ? LAYER : given.endpoint, request: isOtherLength ? setIn(request, ["tokens"], undefined) : request };
}

function putIn(app, place, [found]) {
  const { given } = app.store.state;
  if (place !== "mask") return app.store.edit(withTensor(given, place, found.tensor));
  const [name, mask] = maskOf(found);
  app.store.edit({ ...given, id: "", request: setIn(given.request, ["masks", name], mask) });
}

/** The choice of what one's data is, and what uses it. @param {import("../main.js").App} app */
export function createUses(app) {
  const { t } = app;
  const uses = [
    ["request", t("expected.request")],
    ["values", t("expected.values")],
    ...Object.entries(PLACES).map(([id, [label]]) => [id, label]),
    ["mask", t("expected.mask")],
  ];
  const select = choice(uses, "request", () => {});
  const used = (asRequest, read) => async (source) => {
    if (select.value === "request") return asRequest(source);
    try {
      const found = await read(source);
      if (select.value === "values") expectValues(app, found);
      else putIn(app, select.value, found);
      app.notify("");
    } catch (problem) {
      app.cannotUse(problem);
    }
  };
  return {
    element: field(t("expected.as"), select),
    useText: used((text) => app.openText(text), foundInText),
    useFile: used((file) => app.openFile(file), foundInFile),
  };
}
