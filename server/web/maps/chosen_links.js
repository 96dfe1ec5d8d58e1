/**
 * chosen_links.js: which weights of a row have a link.
 */

/** A weight has a link among the strongest of its row if it is at least so much of the largest one. */
const SHARE_LEAST = 1 / 200;

/** The links of one row: the n largest weights, without those that are next to nothing, or all from a threshold on. */
export function chosenLinks(row, mode, top, threshold) {
  const links = [];
  row.forEach((weight, j) => {
    if (weight > 0 && (mode === "top" || weight >= threshold)) links.push({ j, weight });
  });
  if (mode !== "top") return links;
  links.sort((a, b) => b.weight - a.weight || a.j - b.j);
  return links.slice(0, top).filter(({ weight }) => weight >= SHARE_LEAST * links[0].weight);
}
