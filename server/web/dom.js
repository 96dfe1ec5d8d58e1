/**
 * dom.js: makes elements, and finds them. Text is always inserted as text and never parsed as HTML.
 */
import { h } from "./element.js";
import { withDecimalMark } from "./request/tensor.js";

export { h };

/** Makes an element of SVG. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** A token in <bdi>, so that right-to-left tokens do not reorder their neighbours. */
export const bdi = (text) => h("bdi", {}, text === "" ? "∅" : text);

const subscripts = (text) => text.split(/(_\w+)/).map((part) => (part[0] === "_" ? h("sub", {}, h("span.under", {}, "_"), part.slice(1)) : part));

/** Q, K, V and the weights that make them; not those of "W_QKV". */
export const ROLE = /(W_[QKV]\b|(?<![A-Za-z_])[QKV](?=K?ᵀ|[^\w]|$)|(?<=Q)K(?=ᵀ))/;

/** The class that colours Q and W_Q: "of-q". */
export const classOfRole = (name) => "of-" + name.at(-1).toLowerCase();

/** "W_Q" with Q as a subscript, and Q, K and V in their colours. Its text content is still "W_Q". */
export function symbol(text) {
  return text.split(ROLE).flatMap((part, at) => (at % 2 === 1 ? h(`span.${classOfRole(part)}`, {}, subscripts(part)) : subscripts(part)));
}

/** Sets the text of a live region only if it differs, so that screen readers do not repeat it. */
export function sayOnce(region, text) {
  if (region.textContent !== text) region.textContent = text;
}

/** A labelled control; label is a text or an element. */
export function field(label, control, note) {
  return h("label.field", {}, h("span", {}, label), control, note && h("small", {}, note));
}

/** @param {string[][]} options value and text */
export function choice(options, value, change, attributes = {}) {
  const select = h("select", { ...attributes, onchange: () => change(select.value) });
  for (const [id, text] of options) select.append(h("option", { value: id }, text));
  select.value = value;
  return select;
}

/** A button that opens a file. @param {string} label @param {(file: File) => void} use @returns {any[]} it, and the input behind it */
export function fileButton(label, use) {
  const input = h("input", { type: "file", accept: ".json,.csv,.tsv,.txt,.npy,.npz,.safetensors", tabindex: "-1", "aria-hidden": "true", hidden: true, onchange: () => input.files[0] && use(input.files[0]) });
  return [h("button", { type: "button", onclick: () => input.click() }, label), input];
}

/** Parses a number. A comma is a decimal point and "−" a minus. @returns {number} NaN for other text */
export function numberOf(text) {
  const plain = text.trim().replace("−", "-").replace(",", ".");
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain) : NaN;
  return Number.isFinite(value) ? value : NaN;
}

/**
 * A field for one number. It is a text field, because a field of the type "number" reads "1,5" as 15. While it has the
 * focus, its text changes only if the value changes elsewhere. Text that is not a number is marked as invalid, and is
 * replaced by the last value when the focus leaves.
 *
 * @param {(value: number | undefined) => void} commit receives the typed number; undefined: the field was emptied
 * @param {{step?: number, min?: number, isNeeded?: boolean, [name: string]: any}} [options] isNeeded: empty is invalid
 */
export function numberField(commit, { step = 1, min = -Infinity, isNeeded = false, ...attributes } = {}) {
  let known;
  const read = () => (input.value.trim() === "" && !isNeeded ? undefined : numberOf(input.value));
  const mark = () => input.setAttribute("aria-invalid", String(Number.isNaN(read())));
  const show = (value) => {
    known = value;
    input.value = value === undefined ? "" : withDecimalMark(String(value));
    mark();
  };
  const accept = () => {
    const value = read();
    mark();
    if (Number.isNaN(value) || value === known) return;
    known = value;
    commit(value);
  };
  const move = (way) => {
    input.value = withDecimalMark(String(Math.max(min, Number(((numberOf(input.value) || 0) + way * step).toPrecision(12)))));
    accept();
  };
  const key = (event) => {
    const way = { ArrowUp: 1, ArrowDown: -1 }[event.key],
      isUndo = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
    if (way) move(way);
    else if (isUndo && read() !== known) show(known);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const input = h("input", {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    ...attributes,
    oninput: accept,
    onblur: () => show(known),
    onkeydown: key,
  });
  const update = (value) => {
    if (value !== known || document.activeElement !== input) show(value);
  };
  return { element: input, update };
}

/** Sizes a canvas in CSS pixels, at the resolution of the screen, and clears it. */
export function sizeCanvas(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const [w, t] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== t) {
    canvas.width = w;
    canvas.height = t;
  }
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Invisible element that resolves custom properties to colours. */
let probe = null;

/** Current value of a colour property, in the document or in the shadow tree of near. */
export function cssColour(name, near = document.body) {
  const root = near.getRootNode(),
    place = root instanceof ShadowRoot ? root : document.body;
  probe ??= h("i.probe", { "aria-hidden": "true" });
  if (probe.parentNode !== place) place.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

/** Fades the edges towards which an element scrolls. @returns {() => void} call it after the content has changed */
export function fadeEdges(element) {
  const mark = () => {
    const { scrollLeft, clientWidth, scrollWidth } = element;
    element.classList.toggle("more-before", scrollLeft > 1);
    element.classList.toggle("more-after", scrollLeft + clientWidth < scrollWidth - 1);
  };
  element.classList.add("fading");
  element.addEventListener("scroll", mark);
  new ResizeObserver(mark).observe(element);
  return mark;
}

/** Saves bytes or text as a file. */
export function download(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
