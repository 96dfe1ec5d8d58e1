/**
 * bars.js: the weights of one row as bars. The elements are reused, so that CSS can animate a change.
 */
import { bdi, h } from "../dom.js";
import { cellText } from "../request/tensor.js";

/** @param {(at: number) => void} choose */
export function createRowBars(choose) {
  const list = h("ol.row-bars", {}),
    bars = [];

  function make(at) {
    const name = h("span", {}),
      fill = h("i", {}),
      value = h("span", {});
    const button = h("button", { type: "button", tabindex: "-1", onclick: () => choose(at) }, name, h("span.track", {}, fill), value);
    list.append(h("li", {}, button));
    return { button, name, fill, value };
  }

  /** @param {{names: string[], values: number[], hidden: boolean[], chosen: number}} row */
  function update({ names, values, hidden, chosen }) {
    while (bars.length < names.length) bars.push(make(bars.length));
    while (bars.length > names.length) {
      bars.pop();
      list.lastChild.remove();
    }
    bars.forEach(({ button, name, fill, value }, at) => {
      button.setAttribute("aria-pressed", String(at === chosen));
      name.replaceChildren(bdi(names[at]));
      fill.style.width = `${Math.max(0, Math.min(100, 100 * values[at])) || 0}%`;
      value.textContent = hidden[at] ? "–" : cellText(values[at]);
    });
  }
  return { element: list, update };
}
