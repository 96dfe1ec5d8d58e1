/**
 * picture.js: a sentence whose chosen word is linked to the words that it looks at. A bar under each word is its weight.
 *
 * The words are one listbox: a single Tab stop, with arrow keys between the words. The links are curves behind them.
 * Elements are reused, so that CSS can animate a change: the strongest link is always the first path.
 */
import { bdi, h, svg } from "../dom.js";
import { chosenLinks } from "../maps/chosen_links.js";
import { cellText } from "../request/tensor.js";

/** Most links of a word, the smallest weight that gets one, and that whose number is not 0.00. */
const LINKS = 4,
  LINKED_FROM = 0.02,
  WRITTEN_FROM = 0.005;
/** Of A4 and of Letter, without margins, in CSS pixels. */
const PAPER_WIDTH = 680;

/** @param {{label: string, unknown: string, choose: (at: number) => void}} hooks */
export function createPicture({ label, unknown, choose }) {
  const paths = Array.from({ length: LINKS }, () => svg("path", { pathLength: 1 })),
    arcs = svg("svg", { class: "arcs", "aria-hidden": "true" }, ...paths),
    list = h("div.sentence", { role: "listbox", tabindex: "0", "aria-label": label, "aria-orientation": "horizontal", onkeydown: move }),
    element = h("div.picture", {}, arcs, list),
    made = [];
  let reading = null,
    chosen = 0,
    hinted = null;

  function make(at) {
    const text = h("span.text", {}),
      fill = h("i", {}),
      value = h("span.value", {});
    const hint = ({ pointerType }, to) => {
      if (pointerType !== "mouse") return;
      hinted = to;
      draw();
    };
    const word = h(
      `span.word#word-${at}`,
      { role: "option", onclick: () => choose(at), onpointerenter: (event) => hint(event, at), onpointerleave: (event) => hint(event, null) },
      text,
      h("span.stem", {}, fill),
      value,
    );
    list.append(word);
    return { word, text, fill, value };
  }

  function move(event) {
    const last = made.length - 1,
      to = { ArrowRight: Math.min(last, chosen + 1), ArrowLeft: Math.max(0, chosen - 1), Home: 0, End: last }[event.key];
    if (to === undefined || !reading || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(to);
  }

  function draw() {
    if (!reading || list.clientWidth === 0 || element.style.zoom) return; // zoom: on paper
    const row = reading.weights[hinted ?? chosen];
    made.forEach(({ word, fill, value }, at) => {
      word.style.setProperty("--weight", String(row[at]));
      word.classList.toggle("none", row[at] < WRITTEN_FROM);
      word.classList.toggle("asking", at === (hinted ?? chosen));
      fill.style.height = 100 * row[at] + "%";
      value.textContent = cellText(row[at]);
    });
    const links = chosenLinks(row, "top", LINKS, 0).filter(({ weight }) => weight >= LINKED_FROM),
      height = list.offsetTop;
    paths.forEach((path, at) => {
      const link = links[at];
      path.style.strokeOpacity = String(link ? 0.3 + 0.7 * link.weight : 0);
      if (!link) return;
      const line = curve(made[hinted ?? chosen], made[link.j], height);
      path.setAttribute("d", line);
      path.style.setProperty("d", `path("${line}")`);
      path.style.strokeWidth = `${1 + 7 * link.weight}px`;
    });
  }

  /**
   * A curve above the words, from the top of one to the top of the other. A link of a word to itself is a loop. Between two
   * lines, it goes from the top of the lower word to what stands below the upper one, so that it crosses no word of these lines.
   */
  function curve(from, to, height) {
    const { left, top } = element.getBoundingClientRect();
    const [a, b] = [from, to].map(({ word, text }) => {
      const box = text.getBoundingClientRect();
      return { x: box.left + box.width / 2 - left, y: box.top - top - 1, below: word.getBoundingClientRect().bottom - top + 1 };
    });
    if (from.word.offsetTop !== to.word.offsetTop) {
      const isDown = a.y < b.y,
        [begin, end] = [isDown ? a.below : a.y, isDown ? b.y : b.below],
        middle = (begin + end) / 2;
      return written([a.x, begin, a.x, middle, b.x, middle, b.x, end]);
    }
    const aside = from === to ? 10 : 0,
      lift = Math.min(1.25 * height - 12, 28 + 0.3 * Math.abs(a.x - b.x)),
      rise = a.y - lift;
    return written([a.x - aside, a.y, a.x - 3 * aside, rise, b.x + 3 * aside, rise, b.x + aside, b.y]);
  }

  function written(points) {
    const [x, y, ...rest] = points.map((value) => value.toFixed(1));
    return `M${x} ${y}C${rest.join(" ")}`;
  }

  /** @param {import("./reading.js").Reading} sentence @param {number} at the chosen word */
  function show(sentence, at) {
    const isFirst = reading === null;
    reading = sentence;
    chosen = at;
    hinted = null;
    while (made.length < sentence.words.length) made.push(make(made.length));
    while (made.length > sentence.words.length) made.pop().word.remove();
    sentence.words.forEach(({ text, isSpecial, isJoined, isKnown }, i) => {
      const { word, text: name } = made[i];
      if (name.dataset.text !== text + isKnown) name.replaceChildren(bdi(text), ...(isKnown ? [] : [h("span.spoken", {}, ` (${unknown})`)]));
      name.dataset.text = text + isKnown;
      word.className = ["word", isSpecial && "special", isJoined && "joined", !isKnown && "unknown"].filter(Boolean).join(" ");
      word.setAttribute("aria-selected", String(i === at));
    });
    list.style.setProperty("--length", String(1.5 * sentence.words.length + Array.from(sentence.text).length));
    list.setAttribute("aria-activedescendant", `word-${at}`);
    draw();
    if (isFirst) arcs.classList.add("drawing");
  }
  arcs.addEventListener("animationend", () => arcs.classList.remove("drawing"));
  new ResizeObserver(draw).observe(list);

  /** Curves are not drawn anew for paper, so words stay there where they are, at a smaller size. */
  function keepForPaper() {
    const kept = [element, list, ...made.map(({ fill }) => fill.parentElement)].map((one) => [one, getComputedStyle(one)]),
      sizes = kept.map(([one, { width, height, padding, margin, gap, fontSize }]) => [one, { width, height, padding, margin, gap, fontSize }]);
    for (const [one, its] of sizes) Object.assign(one.style, its);
    element.style.zoom = String(Math.min(1, PAPER_WIDTH / element.offsetWidth));
  }
  function leavePaper() {
    for (const one of [element, list, ...made.map(({ fill }) => fill.parentElement)]) one.removeAttribute("style");
    if (reading) show(reading, chosen);
  }
  window.addEventListener("beforeprint", () => element.isConnected && keepForPaper());
  window.addEventListener("afterprint", () => element.isConnected && leavePaper());
  return { element, show, focus: () => list.focus() };
}
