/**
 * focus.js: keyboard navigation: toolbars that are one Tab stop, and a focus that survives changes of the page.
 */

const FOCUSABLE = "button, summary, select, input, textarea, a[href], [tabindex]";

/** @param {any} element */
const isUsable = (element) => element.isConnected && !element.disabled && element.checkVisibility({ visibilityProperty: true });

/**
 * Makes the buttons of a bar one Tab stop: the focused button, else the pressed or selected one, else the first. Arrow
 * keys, Home and End move between them.
 * @param {HTMLElement} bar
 * @returns {() => void} call it after the buttons have changed
 */
export function oneTabStop(bar) {
  /** @returns {any[]} */
  const buttons = () => Array.from(bar.querySelectorAll("button:enabled, summary")).filter((one) => !one.closest("[hidden], .menu > div"));
  const updateTabStop = () => {
    const all = buttons(),
      isChosen = (one) => one.matches("[aria-pressed=true], [aria-selected=true]");
    const stop = all.find((one) => one === document.activeElement) ?? all.find(isChosen) ?? all[0];
    for (const one of all) one.tabIndex = one === stop ? 0 : -1;
  };
  bar.addEventListener("focusin", updateTabStop);
  bar.addEventListener("keydown", (event) => {
    const all = buttons(),
      at = all.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    all[(to + all.length) % all.length].focus();
  });
  return updateTabStop;
}

/** Nearest element to one that is gone: in the nearest ancestor, a button of the same name, else the first one. */
function nearestTo({ name, above }, mode) {
  for (const element of above) {
    if (element.contains(mode)) break;
    const found = isUsable(element) ? Array.from(element.querySelectorAll(FOCUSABLE)).filter(isUsable) : [];
    if (found.length > 0) return found.find((one) => one.textContent === name) ?? found[0];
  }
  return null;
}

/**
 * When the focused element is hidden, disabled or replaced, the focus moves to the nearest element, else to the map.
 * @param {HTMLElement} mode the container of the open mode
 * @param {() => void} toMap
 */
export function keepFocus(mode, toMap) {
  let held = null,
    frame = 0;
  document.addEventListener("focusin", ({ target: element }) => {
    if (!(element instanceof Element)) return;
    const above = [];
    for (let one = element.parentElement; one; one = one.parentElement) above.push(one);
    held = { element, name: element.textContent, above };
  });
  // An element that is being removed loses the focus while it is still connected, so the check waits for a microtask.
  document.addEventListener("focusout", ({ target }) =>
    queueMicrotask(() => {
      if (held?.element === target && isUsable(target)) held = null;
    }),
  );
  const check = () => {
    frame = 0;
    if (!held || isUsable(held.element)) return;
    const near = nearestTo(held, mode);
    held = null;
    if (near) near.focus({ preventScroll: true });
    else toMap();
  };
  const changed = () => {
    if (held && !frame) frame = requestAnimationFrame(check);
  };
  new MutationObserver(changed).observe(document.documentElement, { subtree: true, childList: true, attributeFilter: ["hidden", "disabled", "data-present"] });
}
