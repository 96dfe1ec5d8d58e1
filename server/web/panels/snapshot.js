/**
 * snapshot.js: a view of the page as a picture: its elements as they are, below their title and above their origin.
 *
 * The picture is an SVG that holds the elements in <foreignObject> with the page's style, so browsers draw it as they
 * draw the page. The PNG is that SVG on a canvas.
 *
 * @typedef {{id: string, name?: string, title: string, origin?: string, elements: HTMLElement[]}} Picture
 *          name: of the picture among others of its mode; origin: of what is shown
 */
import { h } from "../dom.js";

const PNG_RATIO = 2;

const escapeXml = (text) => text.replace(/[&<]/g, (c) => (c === "&" ? "&amp;" : "&lt;"));

/** A length of the window in pixels: in a picture, the window is the picture. */
const inPixels = (_, length, unit) => `${(length * (unit === "vw" ? window.innerWidth : window.innerHeight)) / 100}px`;

/** The rules that hold in this window. */
const rulesNow = (rules) =>
  Array.from(rules).flatMap((rule) => {
    if (!(rule instanceof CSSMediaRule)) return rule.cssText.replace(/([\d.]+)(vw|vh)\b/g, inPixels);
    return window.matchMedia(rule.conditionText).matches ? rulesNow(rule.cssRules) : [];
  });

/** A copy that shows what the element shows: canvases as pictures, and no choices. */
function copyOf(element) {
  const copy = element.cloneNode(true);
  const pairsOf = (tag) => Array.from(element.querySelectorAll(tag), (one, at) => [one, copy.querySelectorAll(tag)[at]]);
  const canvases = element.matches("canvas") ? [[element, copy]] : pairsOf("canvas");
  for (const [canvas, its] of canvases)
    if (canvas.width > 0 && canvas.height > 0) its.style.background = `url(${canvas.toDataURL()}) 0 0 / 100% 100% no-repeat`;
  for (const [input, its] of pairsOf("input")) its.setAttribute("value", input.value);
  for (const its of copy.querySelectorAll("select, .spoken, .probe, [hidden]")) its.remove();
  const { width, height } = element.getBoundingClientRect();
  Object.assign(copy.style, {
    width: Math.max(width, element.scrollWidth) + "px",
    height: Math.ceil(Math.max(height, element.scrollHeight)) + "px", // so that the next one begins at a dot
    maxWidth: "none",
    maxHeight: "none",
    overflow: "visible",
    mask: "none",
    opacity: "1",
  });
  return copy;
}

/** The copy within copies of the element's ancestors, which have no box: selectors of the style still find it. */
function inPlace(element) {
  let copy = copyOf(element);
  for (let around = element.parentElement; around && around !== document.body; around = around.parentElement) {
    const outer = around.cloneNode(false);
    outer.style.cssText = "display: contents !important";
    outer.append(copy);
    copy = outer;
  }
  return copy;
}

/** @param {Picture} picture @param {boolean} isDark @returns {{svg: string, width: number, height: number}} */
export function svgOfView({ title, origin, elements }, isDark) {
  const sheet = h("div.sheet", {}, h("h2", {}, title), elements.map(inPlace), h("p.note", {}, ["attnd", origin].filter(Boolean).join(" · "))),
    aside = h("div.unseen", {}, sheet);
  document.body.append(aside);
  const { width, height } = sheet.getBoundingClientRect(),
    [w, t] = [Math.ceil(width), Math.ceil(height)],
    { fontSize } = getComputedStyle(document.documentElement),
    style = rulesNow(document.styleSheets[0].cssRules).join("\n");
  const body = /** @type {HTMLElement} */ (document.body.cloneNode(false));
  body.append(sheet);
  aside.remove();
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${t}" viewBox="0 0 ${w} ${t}" data-theme="${isDark ? "dark" : "light"}" style="font-size: ${fontSize}">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>${escapeXml(style)}\n*, *::before { animation: none !important; transition: none !important }</style>`,
    `<foreignObject width="${w}" height="${t}">${new XMLSerializer().serializeToString(body)}</foreignObject>`,
    "</svg>\n",
  ].join("\n");
  return { svg, width: w, height: t };
}

/** @param {Picture} picture @param {boolean} isDark @returns {Promise<Blob>} */
export async function pngOfView(picture, isDark) {
  const { svg, width, height } = svgOfView(picture, isDark),
    image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  await image.decode();
  const canvas = h("canvas", { width: PNG_RATIO * width, height: PNG_RATIO * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}
