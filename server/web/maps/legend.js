/**
 * legend.js: the colour legend, and the choice of the colour range, which all maps of a mode share.
 */
import { choice, h } from "../dom.js";
import { short } from "../request/tensor.js";
import { VIEW_CHOICES } from "../store.js";

/**
 * @param {(key: string) => string} t
 * @param {(range: string) => void} change
 * @returns {{element: any, update: (shown: {scale: import("./colour.js").Scale, range: string, isWeight: boolean, isMasked: boolean}) => void}}
 */
export function createLegend(t, change) {
  const canvas = h("canvas", { "aria-hidden": "true", width: 256, height: 1 });
  const low = h("span", {}),
    high = h("span", {});
  const range = choice(
    VIEW_CHOICES.range.map((id) => [id, t("range." + id)]),
    "full",
    change,
    { "aria-label": t("range") },
  );
  const element = h(
    "span.legend",
    {},
    low,
    canvas,
    high,
    range,
    h("span.swatch", {}, h("i", {}), t("masked")),
  );
  const update = ({ scale, range: chosen, isWeight, isMasked }) => {
    const image = new ImageData(256, 1);
    new Uint32Array(image.data.buffer).set(scale.table);
    canvas.getContext("2d").putImageData(image, 0, 0);
    low.textContent = short(scale.isLog ? 10 ** scale.low : scale.low, 3);
    high.textContent = short(scale.isLog ? 10 ** scale.high : scale.high, 3);
    range.value = chosen;
    range.hidden = !isWeight;
    element.lastChild.classList.toggle("absent", !isMasked);
  };
  return { element, update };
}
