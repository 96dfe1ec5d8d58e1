/**
 * changes.js: what is changed in a model while it runs: heads that are off or averaged, and edges that are hidden.
 *
 * @typedef {import("./view_state.js").Head} Head
 * @typedef {import("./view_state.js").Edge} Edge
 * @typedef {{ablate: Head[], averaged: Head[], edges: Edge[]}} Changes
 */

/** @type {Changes} */
export const NO_CHANGES = { ablate: [], averaged: [], edges: [] };

/** Most changes that a sentence names. */
const NAMED = 3;

/** Whether a list has a head or an edge. */
export const isIn = (list, ...place) => list.some((one) => String(one) === String(place));

/** Adds a head or an edge to a list, or removes it. */
export const toggled = (list, ...place) => (isIn(list, ...place) ? list.filter((one) => String(one) !== String(place)) : [...list, place]);

/** @param {Changes} changes @returns {boolean} */
export const isChanged = ({ ablate, averaged, edges }) => ablate.length + averaged.length + edges.length > 0;

/** The changes that a run of this size can have. @param {import("./textrun.js").TextRun} run @param {Changes} changes @returns {Changes} */
export function changesFor({ layers, heads, queries, keys }, { ablate, averaged, edges }) {
  const isThere = ([layer, head, query = 0, key = 0]) => layer < layers && head < heads && query < queries.length && key < keys.length;
  return { ablate: ablate.filter(isThere), averaged: averaged.filter(isThere), edges: edges.filter(isThere) };
}

/** The states of a head, in the order of their buttons. */
export const HEAD_STATES = ["on", "off", "averaged"];

/** @param {Changes} changes @returns {string} one of HEAD_STATES */
export const stateOfHead = ({ ablate, averaged }, layer, head) =>
  isIn(ablate, layer, head) ? "off" : isIn(averaged, layer, head) ? "averaged" : "on";

/** The lists of heads, with a head in another state. @param {Changes} changes */
export function withHead({ ablate, averaged }, layer, head, state) {
  const inList = (list, isWanted) => (isIn(list, layer, head) === isWanted ? list : toggled(list, layer, head));
  return { ablate: inList(ablate, state === "off"), averaged: inList(averaged, state === "averaged") };
}

/** Options of a request. @param {Changes} changes */
export function optionsOfChanges({ ablate, averaged, edges }) {
  const interventions = [
    ...averaged.map(([layer, head]) => ({ at: "context", layers: [layer], heads: [head], do: "mean" })),
    ...edges.map(([layer, head, query, key]) => ({ at: "attention", layers: [layer], heads: [head], queries: [query], keys: [key], do: "mask" })),
  ];
  return { ...(ablate.length > 0 ? { ablate } : {}), ...(interventions.length > 0 ? { interventions } : {}) };
}

/** Each change in words, and the changes without it. @returns {{short: string, long: string, undo: Partial<Changes>}[]} */
export function listOfChanges(t, { queries, keys }, { ablate, averaged, edges }) {
  const ofHead = (name, list, state) =>
    list.map(([layer, head]) => ({
      short: `${layer}·${head} ${t("models.state." + state)}`,
      long: t("models.changed." + state, { layer, head }),
      undo: { [name]: toggled(list, layer, head) },
    }));
  const ofEdge = ([layer, head, query, key]) => {
    const edge = `${queries[query]} → ${keys[key]}`;
    return { short: `${layer}·${head} ${edge}`, long: t("models.changed.edge", { layer, head, edge }), undo: { edges: toggled(edges, layer, head, query, key) } };
  };
  return [...ofHead("ablate", ablate, "off"), ...ofHead("averaged", averaged, "averaged"), ...edges.map(ofEdge)];
}

/** All changes of a run as a part of a sentence. @param {import("./textrun.js").TextRun} run */
export function wordsOfChanges(t, run) {
  const list = listOfChanges(t, run, run.changes);
  return list.length > NAMED ? t("models.changed.many", { count: list.length }) : list.map(({ long }) => long).join(", ");
}
