/**
 * importing.js: what people paste or drop, made a request of the interface.
 */
import { BARE, LAYER } from "./presets.js";
import { checkedRequest } from "./request.js";
import { requestFrom, safetensorsFrom } from "./safetensors.js";
import { nestedOf, tensorFrom } from "./tensor.js";

const caseOf = (endpoint, request) => ({ id: "", endpoint, request });

/** A map alone has no queries and keys: logarithms as scores and an identity give it back through the softmax. */
function caseOfMap(attention, tokens) {
  const { shape } = attention,
    lead = shape.slice(0, -2),
    [rows, cols] = shape.slice(-2);
  const heads = lead.at(-1) ?? 1,
    batch = lead.length > 1 ? lead[0] : 1;
  const full = { shape: [batch, heads, rows, cols], data: attention.data };
  const allowed = { shape: full.shape, data: full.data.map((value) => Number(value > 0)) };
  const eye = (n, m) =>
    Array.from({ length: batch }, () =>
      Array.from({ length: heads }, () =>
        Array.from({ length: n }, (_, i) => Array.from({ length: m }, (_, j) => Number(i === j))),
      ),
    );
  const logs = nestedOf({ shape: full.shape, data: full.data.map((value) => (value > 0 ? Math.log(value) : 0)) });
  return caseOf(BARE, {
    inputs: { query: logs, key: eye(cols, cols) },
    options: { scale: 1 },
    masks: { attend: nestedOf(allowed, (value) => value > 0) },
    ...(tokens ? { tokens } : {}),
  });
}

function caseOfJson(json) {
  if (json?.endpoint && json.request) return caseOf(json.endpoint === BARE ? BARE : LAYER, checkedRequest(json.request));
  if (json?.inputs) return caseOf(json.weights ? LAYER : BARE, checkedRequest(json));
  if (json?.outputs?.attention) return caseOfMap(tensorFrom(json.outputs.attention), json.tokens);
  if (json?.attention) return caseOfMap(tensorFrom(json.attention), json.tokens);
  return caseOf(BARE, { inputs: { query: nestedOf(tensorFrom(json)) } });
}

/** Fields of one line; a quoted one may hold the separator. */
function fieldsOf(line, separator) {
  const fields = [],
    pattern = /"((?:[^"]|"")*)"|([^"]*)/y;
  for (let at = 0; at <= line.length; at = pattern.lastIndex + 1) {
    pattern.lastIndex = at;
    const end = line.indexOf(separator, at);
    if (line[at] === '"') {
      const [, quoted = ""] = pattern.exec(line) ?? [];
      fields.push(quoted.replace(/""/g, '"'));
    } else {
      fields.push(line.slice(at, end < 0 ? line.length : end).trim());
      pattern.lastIndex = end < 0 ? line.length : end;
    }
  }
  return fields;
}

/** Rows of numbers; a first line and a first column without numbers are names. */
function caseOfCsv(text) {
  const separator = text.includes("\t") ? "\t" : text.includes(";") ? ";" : ",";
  let lines = text
    .split(/\r?\n/)
    .filter((line) => line.trim() !== "")
    .map((line) => fieldsOf(line, separator));
  const isNumber = (field) => field !== "" && Number.isFinite(Number(field));
  if (lines.length > 1 && !lines[0].slice(1).every(isNumber)) lines = lines.slice(1);
  const hasNames = lines.every(([first]) => !isNumber(first));
  const query = lines.map((line) =>
    line.slice(hasNames ? 1 : 0).map((field) => {
      if (!isNumber(field)) throw new Error("not a number: " + field);
      return Number(field);
    }),
  );
  if (!query[0]?.length) throw new Error("no numbers");
  return caseOf(BARE, { inputs: { query }, ...(hasNames ? { tokens: { query: lines.map(([first]) => first) } } : {}) });
}

/** A file of one tensor is a query, whatever its name. */
function caseOfSafetensors(buffer) {
  const file = safetensorsFrom(buffer),
    names = Object.keys(file.tensors);
  if (!file.tensors["inputs.query"] && names.length === 1)
    return caseOf(BARE, { inputs: { query: nestedOf(file.tensors[names[0]]) } });
  const request = requestFrom(file, nestedOf);
  if (!request.inputs?.query) throw new Error("no tensor inputs.query");
  return caseOf(request.weights ? LAYER : BARE, request);
}

/** @returns {import("./presets.js").Case} or throws what is wrong with it */
export function caseOfText(text) {
  const start = text.trimStart()[0];
  return start === "{" || start === "[" ? caseOfJson(JSON.parse(text)) : caseOfCsv(text);
}

/** @param {File} file */
export async function caseOfFile(file) {
  if (file.name.endsWith(".safetensors")) return caseOfSafetensors(await file.arrayBuffer());
  return caseOfText(await file.text());
}
