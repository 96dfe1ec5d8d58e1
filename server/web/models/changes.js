/**
 * changes.js: what is changed in a model while it runs: heads that are off, averaged or patched, at all words or at one (a
 * line), and edges that are hidden.
 *
 * @typedef {import("./view_state.js").Head} Head
 * @typedef {import("./view_state.js").Edge} Edge
 * @typedef {import("./view_state.js").Line} Line
 * @typedef {import("./textrun.js").TextRun} TextRun
 * @typedef {{ablate: Head[], averaged: Head[], patched: Head[], edges: Edge[], lines: Line[]}} Changes patched and lines: by the context of another text
 */

/** @type {Changes} */
export const NO_CHANGES = { ablate: [], averaged: [], patched: [], edges: [], lines: [] };

/** Most changes that a sentence names. */
const NAMED = 3;

/** Whether a list has a head or an edge. */
export const isIn = (list, ...place) => list.some((one) => String(one) === String(place));

/** Adds a head or an edge to a list, or removes it. */
export const toggled = (list, ...place) => (isIn(list, ...place) ? list.filter((one) => String(one) !== String(place)) : [...list, place]);

/** @param {Changes} changes @returns {boolean} */
export const isChanged = (changes) => Object.keys(NO_CHANGES).some((name) => changes[name].length > 0);

/** Whether a run has numbers of another text. @param {Changes} changes */
export const isPatched = ({ patched, lines }) => patched.length + lines.length > 0;

/** Whether a text can have numbers of another one: each token of the axis has one there. @param {TextRun | undefined} other */
export const canPatch = (run, other, axis = "queries") => other !== undefined && other[axis].length === run[axis].length;

/** Why it cannot; "": it can, or there is no other. @param {TextRun | undefined} other */
export const whyUnpatched = (t, run, other, axis = "queries") =>
  other === undefined || canPatch(run, other, axis) ? "" : t("models.unpatched", { n: run[axis].length, other: other[axis].length });

/** The changes that a run of this size can have. @param {TextRun} run @param {Changes} changes @param {TextRun} [other] of the other text @returns {Changes} */
export function changesFor(run, { ablate, averaged, patched, edges, lines }, other) {
  const { layers, heads, queries, keys } = run;
  const isThere = ([layer, head, query = 0, key = 0]) => layer < layers && head < heads && query < queries.length && key < keys.length;
  return {
    ablate: ablate.filter(isThere),
    averaged: averaged.filter(isThere),
    patched: canPatch(run, other) ? patched.filter(isThere) : [],
    edges: edges.filter(isThere),
    lines: canPatch(run, other) ? lines.filter(isThere) : [],
  };
}

/** The states of a head, in the order of their buttons. */
export const HEAD_STATES = ["on", "off", "averaged", "patched"];

/** The list that has the heads of a state. @type {Record<string, keyof Changes>} */
const LISTS = { off: "ablate", averaged: "averaged", patched: "patched" };

/** @param {Changes} changes @returns {string} one of HEAD_STATES */
export const stateOfHead = (changes, layer, head) => HEAD_STATES.find((state) => LISTS[state] && isIn(changes[LISTS[state]], layer, head)) ?? "on";

/** The lists of heads, with a head in another state. @param {Changes} changes */
export function withHead(changes, layer, head, state) {
  const inList = (list, isWanted) => (isIn(list, layer, head) === isWanted ? list : toggled(list, layer, head));
  return Object.fromEntries(Object.entries(LISTS).map(([one, name]) => [name, inList(changes[name], one === state)]));
}

/** Options of a request. @param {Changes} changes @param {string} part whose heads they are: "attention", of models of one stack, or "cross_attention" … */
export function optionsOfChanges({ ablate, averaged, patched, edges, lines }, part) {
  const isOneStack = part === "attention",
    place = isOneStack ? {} : { part: part.split("_")[0] },
    context = ([layer, head]) => ({ at: "context", ...place, layers: [layer], heads: [head] });
  const interventions = [
    ...(isOneStack ? [] : ablate.map((head) => ({ ...context(head), do: "zero" }))),
    ...averaged.map((head) => ({ ...context(head), do: "mean" })),
    ...patched.map((head) => ({ ...context(head), items: [0], do: "replace", from: 1 })),
    ...lines.map(([layer, head, query]) => ({ ...context([layer, head]), queries: [query], items: [0], do: "replace", from: 1 })),
    ...edges.map(([layer, head, query, key]) => ({ at: "attention", ...place, layers: [layer], heads: [head], queries: [query], keys: [key], do: "mask" })),
  ];
  return { ...(isOneStack && ablate.length > 0 ? { ablate } : {}), ...(interventions.length > 0 ? { interventions } : {}) };
}

/** Each change in words, and the changes without it. @returns {{short: string, long: string, undo: Partial<Changes>}[]} */
export function listOfChanges(t, { queries, keys }, changes) {
  const { edges, lines } = changes;
  const ofHeads = ([state, name]) =>
    changes[name].map(([layer, head]) => ({
      short: `${layer}·${head} ${t("models.state." + state)}`,
      long: t("models.changed." + state, { layer, head }),
      undo: { [name]: toggled(changes[name], layer, head) },
    }));
  const ofEdge = ([layer, head, query, key]) => {
    const edge = `${queries[query]} → ${keys[key]}`;
    return { short: `${layer}·${head} ${edge}`, long: t("models.changed.edge", { layer, head, edge }), undo: { edges: toggled(edges, layer, head, query, key) } };
  };
  const ofLine = ([layer, head, query]) => ({
    short: `${layer}·${head} ${queries[query]} ↕`,
    long: t("models.changed.line", { layer, head, token: queries[query] }),
    undo: { lines: toggled(lines, layer, head, query) },
  });
  return [...Object.entries(LISTS).flatMap(ofHeads), ...edges.map(ofEdge), ...lines.map(ofLine)];
}

/** All changes of a run as a part of a sentence. @param {TextRun} run */
export function wordsOfChanges(t, run) {
  const list = listOfChanges(t, run, run.changes);
  return list.length > NAMED ? t("models.changed.many", { count: list.length }) : list.map(({ long }) => long).join(", ");
}
