/**
 * element.js: makes an element of HTML, for the page and for /docs. Text is always inserted as text and never parsed as HTML.
 */

/**
 * @param {string} what tag, then .class and #id
 * @param {Record<string, any>} [attributes] onX adds a listener; true sets an empty attribute; false and null set none
 * @param {...any} children nodes, texts and lists of them; null, undefined and false are left out
 * @returns {any} the element
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
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
