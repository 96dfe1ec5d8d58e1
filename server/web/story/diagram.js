/**
 * diagram.js: draws one step of a computation as a picture: operands, result, lines between them, and terms that fly.
 *
 * A product stands in one line, or as on a blackboard: the left matrix, the upper matrix, and the result where they meet.
 * Lines run between cells and never over a number. All sizes grow with the page's type and with the room.
 */
import { classOfRole, ROLE, svg } from "../dom.js";
import { fixed, short } from "../request/tensor.js";

/**
 * @typedef {{rows: number, cols: number, at: (i: number, j: number) => number}} Grid
 * @typedef {{grid: Grid, name: string, rowNames?: string[], colNames?: string[], tone?: string, isWeight?: boolean,
 *            isHidden?: (i: number, j: number) => boolean}} Plate tone: "q", "k" or "v", if it has a colour of its own
 * @typedef {{row: number, col: number}} Place
 * @typedef {{width: number, height: number, unit: number}} Room unit: pixels of 1/16 rem
 * @typedef {{choose?: (row: number, col: number, at?: number) => void, isAsking?: boolean, isFresh?: boolean}} More
 *          isAsking: the marked row is not told yet; isFresh: terms fly
 * @typedef {{x: number, y: number, cell: number, text: number, isTilted: boolean}} Spot where a plate is drawn
 */

const CELL_MOST = 150,
  TEXT = 13,
  GAP = 14,
  ARROW = 34,
  NUMBER_MOST = 30,
  NUMBER_LEAST = 8.5,
  /** Width of a letter, in sizes of its type. */
  LETTER = 0.58,
  NAME_MOST = 14,
  /** Type of names that do not fit otherwise. */
  SMALLER = 0.88,
  /** In smaller cells there is no room for numbers: only the marked row is drawn. */
  CELL_LEAST = 24,
  TERMS_MOST = 12;

const upTo = (length) => Array.from({ length }, (_, at) => at);

export const gridOf = ({ rows, cols, data }) => ({ rows, cols, at: (i, j) => data[i * cols + j] });
export const transposedGrid = ({ rows, cols, at }) => ({ rows: cols, cols: rows, at: (i, j) => at(j, i) });

const clipped = (text) => (text.length > NAME_MOST ? text.slice(0, NAME_MOST - 1) + "…" : text);
const pen = document.createElement("canvas").getContext("2d");
/** Width of the longest name. */
function widthOf(names, text) {
  pen.font = `600 ${text}px system-ui, sans-serif`;
  return Math.max(0, ...(names ?? []).map((name) => pen.measureText(clipped(name)).width));
}

/** "W_Q" with Q as a subscript, in the colour of Q. */
function named(text, x, y, size) {
  const parts = text.split(ROLE).flatMap((part, at) =>
    part.split(/(_\w+)/).map((one) => svg("tspan", { class: at % 2 ? classOfRole(part) : "", ...(one[0] === "_" ? { "font-size": "70%", dy: size / 4 } : {}) }, one.replace(/^_/, ""))),
  );
  const element = svg("text", { x, y, class: "plate-name" }, ...parts);
  element.style.fontSize = size + "px";
  return element;
}

const textAt = (x, y, kind, size, words) => {
  const element = svg("text", { x, y, class: kind }, words);
  element.style.fontSize = size + "px";
  return element;
};

/** Room above a plate: its name, and the names of its columns, which are tilted where they are wider than a cell. @param {Partial<Plate>} plate */
const above = ({ colNames }, text, isTilted) => 1.9 * text + (colNames ? (isTilted ? 0.72 * widthOf(colNames, text) + 0.9 * text : 1.5 * text) : 0);
/** Room at the right of a plate whose last name is tilted. @param {Partial<Plate>} plate */
const overhang = ({ colNames }, text, isTilted) => (isTilted && colNames ? Math.max(0, 0.72 * widthOf(colNames.slice(-2), text) - text) : 0);
/** @param {Partial<Plate>} plate */
const beside = ({ rowNames }, text) => (rowNames ? widthOf(rowNames, text) + 12 : 0);

/** The largest cells that a layout allows, with level names of columns if these fit. */
function fitted(plates, unit, layout) {
  const text = TEXT * unit;
  /** @type {[number, boolean][]} */
  const ways = [[text, false], [SMALLER * text, false], [text, true]];
  for (const [size, isTilted] of ways) {
    const cell = Math.min(CELL_MOST * unit, layout(size, isTilted));
    if (isTilted || plates.every(({ colNames }) => widthOf(colNames, size) <= cell - 2)) return { cell, text: size, isTilted };
  }
}

/** One row of a plate. @param {Plate} plate @returns {Plate} */
const rowOf = ({ grid, rowNames, isHidden, ...plate }, row) => ({
  ...plate,
  grid: { rows: 1, cols: grid.cols, at: (_, j) => grid.at(row, j) },
  rowNames: rowNames && [rowNames[row]],
  isHidden: isHidden && ((_, j) => isHidden(row, j)),
});

/** A colour of a cell, which becomes stronger with the number. Text stays readable on the strongest. */
const fillOf = (tone, share) => `color-mix(in srgb, var(--${tone}) ${(5 + 33 * share).toFixed(1)}%, var(--panel))`;

/** A number in a cell: whole, or with two decimals. */
const cellNumber = (value) => (Number.isInteger(value) || Math.abs(value) >= 100 ? short(value, 3) : fixed(value, 2));

/** Draws one matrix with its labels and highlights. @param {Plate} plate @param {Spot} spot @param {More & {lit?: Partial<Place>}} more */
function drawPlate({ grid, name, rowNames, colNames, tone, isWeight, isHidden }, { x, y, cell, text, isTilted }, { lit = {}, choose, isAsking }) {
  const group = svg("g", { class: choose ? "plate result" : "plate" }),
    cells = upTo(grid.rows * grid.cols).map((n) => ({ i: Math.floor(n / grid.cols), j: n % grid.cols })),
    isOutOf = (value, i, j) => value === -Infinity || Boolean(isHidden?.(i, j)),
    wordsOf = (value, i, j) => (isAsking && i === lit.row ? "?" : isOutOf(value, i, j) ? (isWeight ? "–" : "−∞") : isWeight ? fixed(value, 2) : cellNumber(value)),
    longest = Math.max(...cells.map(({ i, j }) => wordsOf(grid.at(i, j), i, j).length)),
    size = Math.min(Math.max(0.36 * cell, 9), (0.82 * cell) / (LETTER * longest), NUMBER_MOST * (text / TEXT)),
    most = isWeight ? 1 : Math.max(...cells.map(({ i, j }) => Math.abs(grid.at(i, j))).filter(Number.isFinite), 1e-30);
  for (const { i, j } of cells) {
    const value = grid.at(i, j),
      isOut = isOutOf(value, i, j),
      isUntold = isAsking && i === lit.row,
      rect = svg("rect", { x: x + j * cell, y: y + i * cell, width: cell - 1, height: cell - 1, rx: 3 });
    rect.style.fill = isOut || isUntold ? "var(--hidden)" : fillOf(tone ?? (isWeight ? "accent" : "muted"), Math.abs(value) / most);
    if (value < 0 && !isOut && !isUntold) rect.classList.add("negative");
    if (choose) rect.addEventListener("click", () => choose(i, j));
    group.append(rect);
    if (size >= NUMBER_LEAST) group.append(textAt(x + (j + 0.5) * cell, y + (i + 0.5) * cell + 0.35 * size, isOut ? "plate-number out" : "plate-number", size, wordsOf(value, i, j)));
  }
  group.append(named(name, x + (grid.cols * cell) / 2, y - above({ colNames }, text, isTilted) + 1.2 * text, 1.25 * text));
  const isLit = (is) => (is ? " lit" : "");
  rowNames?.forEach((words, i) => cell >= text && group.append(textAt(x - 8, y + (i + 0.5) * cell + 0.35 * text, "plate-row" + isLit(i === lit.row), text, clipped(words))));
  colNames?.forEach((words, j) => {
    const [atX, atY] = [x + (j + 0.5) * cell, y - 0.5 * text],
      label = textAt(atX, atY, "plate-col" + isLit(j === lit.col), text, clipped(words));
    if (isTilted) {
      label.setAttribute("transform", `rotate(-45 ${atX} ${atY})`);
      label.classList.add("tilted");
    }
    group.append(label);
  });
  return group;
}

const frame = (x, y, width, height, kind = "") => svg("rect", { x: x - 2, y: y - 2, width: width + 3, height: height + 3, rx: 4, class: "frame " + kind });

const line = (kind, d) => svg("path", { class: "beam " + kind, d });

/**
 * Numbers that fly from their cells to where they are added up.
 * @param {{value: number, from: Spot & Place, tone?: string}[]} terms @param {Spot & Place} target @param {More} more
 */
function flying(terms, target, { isFresh }) {
  if (!isFresh) return [];
  const middle = ({ x, y, cell, row, col }) => [x + (col + 0.5) * cell, y + (row + 0.5) * cell];
  const [toX, toY] = middle(target);
  return terms.slice(0, 2 * TERMS_MOST).map(({ value, from, tone }) => {
    const [x, y] = middle(from),
      size = Math.min(0.4 * from.cell, NUMBER_MOST),
      term = textAt(toX, toY + 0.35 * size, `term ${tone ? "of-" + tone : ""}`, size, short(value, 3));
    term.style.setProperty("--from", `translate(${x - toX}px, ${y - toY}px)`);
    term.addEventListener("animationend", () => term.remove());
    return term;
  });
}

/** left · upper = result in one line. */
function inOneLine({ left, upper, result }, { width, height, unit }) {
  const rows = Math.max(left.grid.rows, upper.grid.rows),
    cols = left.grid.cols + upper.grid.cols + result.grid.cols;
  const across = (text) => beside(left, text) + beside(upper, text) + 2 * ARROW * unit + 6;
  const high = (text, isTilted) => Math.max(...[left, upper, result].map((plate) => above(plate, text, isTilted)));
  const { cell, text, isTilted } = fitted([left, upper, result], unit, (size, isTilted) => Math.min((width - across(size) - overhang(result, size, isTilted)) / cols, (height - high(size, isTilted) - 6) / rows));
  const y = high(text, isTilted),
    spot = (x) => ({ x, y, cell, text, isTilted });
  const atLeft = spot(beside(left, text) + 2),
    atUpper = spot(atLeft.x + left.grid.cols * cell + ARROW * unit + beside(upper, text)),
    atResult = spot(atUpper.x + upper.grid.cols * cell + ARROW * unit);
  const sign = (at, words) => textAt(at.x - (ARROW * unit) / 2 - (at === atUpper ? beside(upper, text) : 0), y + 0.5 * rows * cell, "plate-sign", 1.6 * text, words);
  const lines = ({ row, col }) => {
    const [top, bottom] = [y + row * cell - 0.5, y + (row + 1) * cell - 0.5],
      right = atUpper.x + (col + 1) * cell;
    const start = row < upper.grid.rows ? `M${right + 2} ${top}` : `M${right - 0.5} ${y + upper.grid.rows * cell + 2}V${top}`;
    return [
      line("of-row", `M${atLeft.x + left.grid.cols * cell + 2} ${bottom}H${atResult.x + col * cell - 3}`),
      line("of-col", `${start}H${atResult.x + col * cell - 3}`),
    ];
  };
  return { cell, atLeft, atUpper, atResult, result: { ...result, rowNames: undefined }, parts: [sign(atUpper, "·"), sign(atResult, "=")], lines, width: atResult.x + result.grid.cols * cell + 4 + overhang(result, text, isTilted), height: y + rows * cell + 4 };
}

/** The upper matrix above the result, which has its rows and columns from the two others. */
function onBlackboard({ left, upper, result }, { width, height, unit }) {
  const inner = left.grid.cols,
    bare = { ...result, rowNames: undefined, colNames: undefined };
  const across = (text) => Math.max(beside(left, text) + GAP, beside(upper, text) - 6) + 4;
  const high = (text, isTilted) => above(upper, text, isTilted) + above(left, text, isTilted) + 2 * text + 8;
  const { cell, text, isTilted } = fitted([left, upper], unit, (size, isTilted) =>
    Math.min((width - across(size) - overhang(upper, size, isTilted)) / (inner + result.grid.cols), (height - high(size, isTilted)) / (inner + result.grid.rows)),
  );
  const y = above(upper, text, isTilted),
    lowerY = y + inner * cell + above(left, text, isTilted) + 4,
    x = beside(left, text) + 2,
    rightX = Math.max(x + inner * cell + GAP, beside(upper, text) + 2);
  const spot = (atX, atY) => ({ x: atX, y: atY, cell, text, isTilted });
  const lines = ({ row, col }) => [
    line("of-row", `M${x + inner * cell + 2} ${lowerY + (row + 1) * cell - 0.5}H${rightX + col * cell - 3}`),
    line("of-col", `M${rightX + (col + 1) * cell - 0.5} ${y + inner * cell + 2}V${lowerY + row * cell - 3}`),
  ];
  const bottom = lowerY + result.grid.rows * cell,
    name = named(result.name, rightX + (result.grid.cols * cell) / 2, bottom + 1.5 * text, 1.25 * text);
  return {
    cell, atLeft: spot(x, lowerY), atUpper: spot(rightX, y), atResult: spot(rightX, lowerY), result: { ...bare, name: "" }, parts: [name], lines,
    width: rightX + result.grid.cols * cell + 4 + overhang(upper, text, isTilted), height: bottom + 2 * text,
  };
}

/**
 * Draws left · upper = result, with frames around the row and the column of the chosen cell, and lines from both to it.
 * @param {{left: Plate, upper: Plate, result: Plate}} plates
 * @param {Place} place of the chosen cell
 * @param {Room} room
 * @param {More} more
 */
export function drawProduct(plates, place, room, more) {
  const { left, upper } = plates,
    { row, col } = place,
    inner = left.grid.cols;
  const [wide, high] = [inOneLine(plates, room), onBlackboard(plates, room)],
    { cell, atLeft, atUpper, atResult, result, parts, lines, width, height } = wide.cell >= high.cell ? wide : high;
  if (cell < CELL_LEAST && plates.result.grid.rows > 1)
    return drawProduct({ left: rowOf(left, row), upper, result: rowOf(plates.result, row) }, { row: 0, col }, room, { ...more, choose: (_, j) => more.choose(row, j) });
  const terms = upTo(inner).flatMap((n) => [
    { value: left.grid.at(row, n), from: { ...atLeft, row, col: n }, tone: left.tone },
    { value: upper.grid.at(n, col), from: { ...atUpper, row: n, col }, tone: upper.tone },
  ]);
  const isTold = !more.isAsking;
  return picture(
    [
      drawPlate(left, atLeft, { lit: { row } }),
      drawPlate(upper, atUpper, { lit: { col } }),
      drawPlate(result, atResult, { ...more, lit: place }),
      ...parts,
      frame(atLeft.x, atLeft.y + row * cell, inner * cell, cell, "of-row"),
      frame(atUpper.x + col * cell, atUpper.y, cell, inner * cell, "of-col"),
      frame(atResult.x + col * cell, atResult.y + row * cell, cell, cell, "of-cell"),
      ...lines(place),
      ...(isTold ? flying(terms, { ...atResult, row, col }, more) : []),
    ],
    width,
    height,
  );
}

/**
 * Draws plates of one size beside each other or below each other, whichever has the larger cells.
 * @param {Plate[]} plates
 * @param {Place & {at?: number}} place the chosen cell, and its plate
 * @param {Room} room
 * @param {More & {isFlow?: boolean}} more isFlow: each comes from the one before
 */
function drawTiles(plates, { row, col, at = plates.length - 1 }, { width, height, unit }, more) {
  const [{ grid }] = plates,
    gap = (more.isFlow ? ARROW : 2 * GAP) * unit;
  const layouts = upTo(plates.length).map((n) => {
    const across = n + 1,
      down = Math.ceil(plates.length / across);
    const spot = fitted(plates, unit, (text, isTilted) =>
      Math.min((width - beside(plates[0], text) - (across - 1) * gap - overhang(plates[0], text, isTilted) - 6) / (across * grid.cols), (height / down - above(plates[0], text, isTilted) - 6) / grid.rows),
    );
    return { across, down, ...spot };
  });
  const { across, down, ...spot } = layouts.reduce((best, one) => (one.cell > best.cell ? one : best)),
    { cell, text, isTilted } = spot;
  if (cell < CELL_LEAST && grid.rows > 1)
    return drawTiles(plates.map((plate) => rowOf(plate, row)), { row: 0, col, at }, { width, height, unit }, { ...more, choose: (_, j, n) => more.choose(row, j, n) });
  const labels = beside(plates[0], text) + 2,
    top = above(plates[0], text, isTilted);
  const placeOf = (n) => ({ ...spot, x: labels + (n % across) * (grid.cols * cell + gap), y: top + Math.floor(n / across) * (top + grid.rows * cell + 6) });
  const parts = plates.flatMap((plate, n) => {
    const own = placeOf(n),
      { x, y } = own,
      isResult = !more.isFlow || n === plates.length - 1;
    return [
      drawPlate({ ...plate, rowNames: n % across === 0 ? plate.rowNames : undefined }, own, {
        ...more, lit: { row, col }, choose: isResult && more.choose ? (i, j) => more.choose(i, j, n) : undefined, isAsking: isResult && more.isAsking,
      }),
      frame(x, y + row * cell, grid.cols * cell, cell, n === at || more.isFlow ? "of-row" : ""),
      ...(n === at ? [frame(x + col * cell, y + row * cell, cell, cell, "of-cell")] : []),
      ...(more.isFlow && n % across > 0 ? [textAt(x - gap / 2, y + (row + 0.5) * cell + 0.4 * text, "plate-sign", 1.4 * text, "→")] : []),
    ];
  });
  return picture(parts, labels + across * grid.cols * cell + (across - 1) * gap + 4 + overhang(plates[0], text, isTilted), down * (top + grid.rows * cell + 6));
}

/** Draws before → after, with the same row highlighted in both. */
export const drawChange = (plates, place, room, more) => drawTiles(plates, place, room, { ...more, isFlow: true });

/** Draws one matrix, with one row highlighted. */
export const drawAlone = (plate, place, room, more) => drawTiles([plate], place, room, more);

/** Draws the maps of all heads. @param {Plate[]} plates @param {Place & {head: number}} place */
export const drawHeads = (plates, { head, ...place }, room, more) => drawTiles(plates, { ...place, at: head }, room, more);

/** Draws rows below each other of which the last is the sum of the others. */
export function drawSum(plate, { col }, room, more) {
  const last = plate.grid.rows - 1,
    element = drawTiles([plate], { row: last, col }, room, more);
  const { x, y, width: cell } = Object.fromEntries(["x", "y", "width"].map((name) => [name, Number(element.querySelector("rect").getAttribute(name))])),
    spot = { x, y, cell: cell + 1, text: TEXT, isTilted: false };
  const terms = upTo(last).map((row) => ({ value: plate.grid.at(row, col), from: { ...spot, row, col } }));
  element.append(...flying(terms, { ...spot, row: last, col }, more));
  return element;
}

const picture = (parts, width, height) =>
  svg("svg", { width: Math.ceil(width), height: Math.ceil(height), viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`, "aria-hidden": "true" }, ...parts);
