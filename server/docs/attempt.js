/**
 * attempt.js: the form that sends a request, and what comes back.
 */
import { h } from "../web/element.js";
import { resolve } from "./schema.js";

const WIDTH = 56;

/** JSON on one line, with the spaces that a person would write. */
function oneLine(value) {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "";
  return `{${Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${oneLine(item)}`).join(", ")}}`;
}

/** JSON with short lists and objects on one line each; before is what stands on the line already. */
export function pretty(value, depth = 0, before = 0) {
  if (typeof value !== "object" || value === null) return oneLine(value);
  if (JSON.stringify(value).length < 2 * WIDTH) {
    const flat = oneLine(value);
    if (flat.length + 2 * depth + before <= WIDTH) return flat;
  }
  const pad = "  ".repeat(depth + 1);
  const items = Array.isArray(value) ? value.map((item) => pad + pretty(item, depth + 1))
    : Object.entries(value).map(([name, item]) => `${pad}${JSON.stringify(name)}: ${pretty(item, depth + 1, name.length + 4)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${items.join(",\n")}\n${"  ".repeat(depth)}${close}`;
}

const fromBase64 = (text) => Uint8Array.from(atob(text.replace(/\s/g, "")), (letter) => letter.charCodeAt(0));
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const size = (bytes) => (bytes < 1024 ? `${bytes} bytes` : `${(bytes / 1024).toFixed(1)} KiB`);

/** The name alone, without the options that stand in the label too. */
function labelled(name, control) {
  control.setAttribute("aria-label", name);
  return h("label", {}, h("span", {}, name), control);
}

/** Bodies that can be started from: [{text, media, isBinary, headers}]. */
function startingPoints(operation) {
  const found = [];
  const body = resolve(operation.requestBody || {});
  for (const [media, content] of Object.entries(body.content || {})) {
    for (const [name, example] of Object.entries(content.examples || {})) {
      const isBinary = example["x-coding"] === "base64";
      const headers = requestOf(operation, name);
      found.push({ title: example.summary || name, media, isBinary, headers, text: isBinary ? example.value : pretty(example.value) });
    }
  }
  return found;
}

/** Header fields that the answer's example of that name was asked with. */
function requestOf(operation, name) {
  for (const response of Object.values(operation.responses)) {
    for (const content of Object.values(resolve(response).content || {})) {
      const request = content.examples?.[name]?.["x-request"];
      if (request) return request.headers || {};
    }
  }
  return {};
}

/** Media types that the operation answers with. */
export function answerMedia(operation) {
  return Object.entries(operation.responses).filter(([status]) => status[0] === "2")
    .flatMap(([, response]) => Object.keys(resolve(response).content || {}));
}

function inputOf(parameter) {
  const schema = resolve(parameter.schema);
  const attributes = { name: parameter.name, autocomplete: "off", spellcheck: "false" };
  if (schema.enum) return h("select", attributes, [h("option", { value: "" }, "–"), ...schema.enum.map((item) => h("option", {}, String(item)))]);
  const isPath = parameter.in === "path";
  return h("input.mono", { ...attributes, value: isPath ? parameter.example : null, required: isPath, placeholder: isPath ? null : parameter.example ?? schema.default });
}

export function attemptView(path, method, operation, parameters) {
  const starts = startingPoints(operation);
  const media = answerMedia(operation);
  const given = parameters.map((parameter) => ({ parameter, input: inputOf(parameter) }));
  const accept = media.length > 1 && h("select", {}, media.map((name) => h("option", {}, name)));
  const hasBody = Boolean(operation.requestBody);
  const body = h("textarea", { spellcheck: "false", "aria-label": "Body" });
  const type = h("input.mono", { value: "application/json", spellcheck: "false" });
  const isBinary = h("input", { type: "checkbox" });
  const choice = h("select", {}, starts.map((start, index) => h("option", { value: index }, start.title)));
  const button = h("button.main", { type: "submit" }, "Send");
  const result = h("div.result", { "aria-live": "polite" });
  const of = (place) => given.filter(({ parameter }) => parameter.in === place).map(({ parameter, input }) => [parameter, input]);

  function start() {
    const chosen = starts[choice.value];
    if (!chosen) return;
    body.value = chosen.text;
    type.value = chosen.media;
    isBinary.checked = chosen.isBinary;
    for (const [parameter, input] of of("header")) input.value = chosen.headers[parameter.name] ?? "";
    if (accept) accept.value = media.includes(chosen.headers.Accept) ? chosen.headers.Accept : media[0];
  }

  function request() {
    const place = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(of("path").find(([parameter]) => parameter.name === name)[1].value));
    const query = new URLSearchParams(of("query").filter(([, input]) => input.value).map(([parameter, input]) => [parameter.name, input.value])).toString();
    const headers = Object.fromEntries(of("header").filter(([, input]) => input.value).map(([parameter, input]) => [parameter.name, input.value]));
    if (accept) headers.Accept = accept.value;
    if (hasBody) headers["Content-Type"] = type.value;
    return { url: place + (query && `?${query}`), headers, body: hasBody ? (isBinary.checked ? fromBase64(body.value) : body.value) : undefined };
  }

  async function send(event) {
    event.preventDefault();
    button.disabled = true;
    const before = performance.now();
    try {
      const { url, ...options } = request();
      const reply = await fetch(url, { method, cache: "no-store", ...options });
      const bytes = new Uint8Array(await reply.arrayBuffer());
      result.replaceChildren(...replyView(reply, bytes, performance.now() - before));
    } catch (error) {
      result.replaceChildren(h("p.status.bad", {}, `Not sent: ${error.message}`));
    }
    button.disabled = false;
  }

  async function copy(event) {
    const { url, headers } = request();
    const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${quoted(location.origin + url)}`, ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)];
    if (hasBody) lines.push(isBinary.checked ? "--data-binary @-" : `--data ${quoted(body.value)}`);
    const before = hasBody && isBinary.checked ? `base64 -d <<< ${quoted(body.value)} | ` : "";
    await navigator.clipboard.writeText(before + lines.join(" \\\n  "));
    event.target.textContent = "Copied";
    setTimeout(() => { event.target.textContent = "Copy as curl"; }, 1500);
  }

  choice.addEventListener("change", start);
  body.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.target.form.requestSubmit(); });
  start();
  const controls = (place) => of(place).map(([parameter, input]) => labelled(parameter.name, input));
  const folded = (title, items) => items.length > 0 && h("details", {}, h("summary", {}, title), h("div.fields", {}, items));
  return h("section.try", { "aria-label": "Try it" }, h("h2", {}, "Try it"),
    h("form", { onsubmit: send }, starts.length > 1 && labelled("Example", choice), controls("path"),
      hasBody && body, accept && labelled("Accept", accept),
      folded("Query parameters", controls("query")), folded("Header fields", controls("header")),
      hasBody && folded("Kind of body", [labelled("Content-Type", type), h("label.line", {}, isBinary, "The body is base64: send its bytes")]),
      h("div.row", {}, button, h("button", { type: "button", onclick: copy }, "Copy as curl"), hasBody && h("span.type", {}, "Ctrl + Enter sends"))),
    result);
}

function replyView(reply, bytes, milliseconds) {
  const media = (reply.headers.get("Content-Type") || "").split(";")[0];
  return [
    h("div.row", {}, h(reply.ok ? "span.status" : "span.status.bad", {}, `${reply.status} ${reply.statusText}`), h("span.type", {}, `${milliseconds.toFixed(1)} ms, ${size(bytes.length)}`)),
    h("details", {}, h("summary", {}, "Header fields of the answer"), h("pre", {}, [...reply.headers].map(([name, value]) => `${name}: ${value}`).join("\n"))),
    bytes.length > 0 && contentView(media, bytes),
  ].filter(Boolean);
}

/** The content as a person reads it. */
export function contentView(media, bytes) {
  if (media.startsWith("image/")) {
    const url = URL.createObjectURL(new Blob([bytes], { type: media }));
    return h("img.shown", { src: url, alt: "The picture that came back", onload: () => URL.revokeObjectURL(url) });
  }
  if (media.endsWith("json") || media.startsWith("text/")) {
    const text = new TextDecoder().decode(bytes);
    try {
      return h("pre", { tabindex: "0" }, media.endsWith("json") ? pretty(JSON.parse(text)) : text);
    } catch {
      return h("pre", { tabindex: "0" }, text);
    }
  }
  const url = URL.createObjectURL(new Blob([bytes], { type: media }));
  const dump = Array.from(bytes.slice(0, 512), (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
  return h("div", {}, h("pre", { tabindex: "0" }, dump.replace(/(.{64})/g, "$1\n") + (bytes.length > 512 ? "…" : "")), h("p", {}, h("a", { href: url, download: "answer.bin" }, "Save the bytes")));
}

export const bytesOf = (media, example) => (example["x-coding"] === "base64" ? fromBase64(example.value)
  : new TextEncoder().encode(media.endsWith("json") ? JSON.stringify(example.value) : example.value));
