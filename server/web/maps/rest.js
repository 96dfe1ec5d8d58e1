/**
 * rest.js: says of a head that it rests, and leaves the column of the token on which it rests out of the colours, or not.
 *
 * A head without a task for a word puts the word's weight on the first token: in a map it is one bright column, which says
 * less than any other cell.
 */
import { bdi, h } from "../dom.js";

/** @param {(key: string, values?: object) => string} t @param {(isLeft: boolean) => void} change */
export function createRest(t, change) {
  const said = h("span", {}),
    toggle = h("button.link", { type: "button", onclick: () => change(!isLeft) }),
    element = h("p.resting", { hidden: true }, said, " ", toggle);
  let isLeft = false;

  /** @param {number} share of the token; 0: the head does not rest @param {string} [token] @param {boolean} [isLeftNow] */
  function update(share, token = "", isLeftNow = false) {
    isLeft = isLeftNow;
    element.hidden = share === 0;
    const [before, after] = t("rests", { token: "\n", share: Math.round(100 * share) }).split("\n");
    said.replaceChildren(before, bdi(token), after);
    toggle.textContent = t(isLeft ? "rests.show" : "rests.leave");
  }
  return { element, update };
}
