/**
 * dom.js: elements in one line, and nothing that would read a text as HTML.
 */

/**
 * @param {string} what tag, then .class and #id
 * @param {Record<string, any>} [attributes] onX is a listener; true is an empty attribute; false and null leave it out
 * @param {...any} children nodes, texts and lists of them; null, undefined and false are left out
 * @returns {any} the element, of the class that its tag says
 */
export function h(what, attributes = {}, ...children) {
  const [tag, ...marks] = what.split(/(?=[.#])/);
  const element = document.createElement(tag);
  for (const mark of marks) {
    if (mark[0] === ".") element.classList.add(mark.slice(1));
    else element.id = mark.slice(1);
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A token: its direction is its own, whatever stands around it. */
export const bdi = (text) => h("bdi", {}, text === "" ? "∅" : text);

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

/** Canvas of so many CSS pixels, sharp on this screen. */
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

/** An element without content, to ask the browser for colours by. */
const probe = h("i.probe", { "aria-hidden": "true" });

/** The value of a custom property as the page has it now. */
export function cssColour(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
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
