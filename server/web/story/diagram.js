/**
 * diagram.js: draws one step of a computation as a picture: operands, result, and lines between them.
 *
 * A product is laid out as on a blackboard: the left matrix, the upper matrix, and the result where they meet. A cell
 * of the result lies at the end of its row and of its column.
 */
import { cssAt, extentOf, scaleOf } from "../maps/colour.js";
import { cellText } from "../maps/heatmap.js";
import { svg } from "../dom.js";
import { short } from "../request/tensor.js";

/**
 * @typedef {{rows: number, cols: number, at: (i: number, j: number) => number}} Grid
 * @typedef {{grid: Grid, name: string, rowNames?: string[], colNames?: string[], isWeight?: boolean}} Plate
 * @typedef {{row: number, col: number}} Place
 */

const LABEL = 96,
  ABOVE = 30,
  APART = 14,
  NAME_BELOW = 22,
  CELL_MOST = 160,
  NUMBERS_FROM = 26,
  NUMBER_MOST = 24,
  ARROW = 56;

const upTo = (length) => Array.from({ length }, (_, at) => at);

export const gridOf = ({ rows, cols, data }) => ({ rows, cols, at: (i, j) => data[i * cols + j] });
export const transposedGrid = ({ rows, cols, at }) => ({ rows: cols, cols: rows, at: (i, j) => at(j, i) });

const numbersOf = ({ rows, cols, at }) => upTo(rows * cols).map((n) => at(Math.floor(n / cols), n % cols));

/** "W_Q" with Q as a subscript. */
function named(text, x, y, attributes = {}) {
  const parts = text.split(/(_\w+)/).map((part) =>
    part[0] === "_" ? svg("tspan", { "font-size": "70%", dy: 3 }, part.slice(1)) : svg("tspan", {}, part),
  );
  return svg("text", { x, y, class: "plate-name", ...attributes }, ...parts);
}

const clipped = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

/**
 * Draws one matrix with its labels and highlights.
 * @param {Plate} plate
 * @param {{x: number, y: number, cell: number}} place of its first cell
 * @param {{appearance: object, lit?: Partial<Place>, choose?: (row: number, col: number) => void}} more
 */
function drawPlate({ grid, name, rowNames, colNames, isWeight }, { x, y, cell }, { appearance, lit = {}, choose }) {
  const scale = scaleOf(appearance, extentOf(numbersOf(grid)), Boolean(isWeight)),
    group = svg("g", { class: choose ? "plate result" : "plate" });
  for (const i of upTo(grid.rows))
    for (const j of upTo(grid.cols)) {
      const value = grid.at(i, j),
        isHidden = value === -Infinity,
        { colour, isLight } = cssAt(scale, value);
      const rect = svg("rect", { x: x + j * cell, y: y + i * cell, width: cell - 1, height: cell - 1, rx: 2, fill: isHidden ? "var(--hidden)" : colour });
      if (choose) rect.addEventListener("click", () => choose(i, j));
      group.append(rect);
      if (cell < NUMBERS_FROM) continue;
      const size = Math.max(12, Math.min(NUMBER_MOST, cell / 5)),
        number = svg(
          "text",
          { x: x + (j + 0.5) * cell, y: y + (i + 0.5) * cell + size / 3, class: "plate-number", fill: isHidden ? "var(--muted)" : isLight ? "#101418" : "#ffffff" },
          isHidden ? "−∞" : isWeight ? cellText(value) : short(value, 3),
        );
      number.style.fontSize = size + "px";
      group.append(number);
    }
  group.append(named(name, x + (grid.cols * cell) / 2, y + grid.rows * cell + 16));
  if (rowNames && cell >= 11)
    rowNames.forEach((text, i) =>
      group.append(
        svg("text", { x: x - 8, y: y + (i + 0.5) * cell + 4, class: "plate-row" + (i === lit.row ? " lit" : "") }, clipped(text, 12)),
      ),
    );
  if (colNames && cell >= 18)
    colNames.forEach((text, j) =>
      group.append(
        svg("text", { x: x + (j + 0.5) * cell, y: y - 8, class: "plate-col" + (j === lit.col ? " lit" : "") }, clipped(text, Math.max(3, cell / 7))),
      ),
    );
  return group;
}

const frame = (x, y, width, height, kind = "") => svg("rect", { x: x - 2, y: y - 2, width: width + 3, height: height + 3, rx: 4, class: "frame " + kind });

/**
 * Draws left · upper = result, with frames around the row and the column of the chosen cell, and lines from both to it.
 * @param {{left: Plate, upper: Plate, result: Plate}} plates
 * @param {Place} place of the chosen cell
 * @param {{width: number, height: number}} room
 */
export function drawProduct({ left, upper, result }, { row, col }, room, more) {
  const inner = left.grid.cols,
    across = inner + result.grid.cols,
    down = inner + result.grid.rows;
  const cell = Math.min(CELL_MOST, (room.width - LABEL - APART - 12) / across, (room.height - ABOVE - APART - 2 * NAME_BELOW) / down);
  const x = LABEL,
    y = ABOVE,
    rightX = x + inner * cell + APART + 12,
    lowerY = y + inner * cell + APART + NAME_BELOW;
  const { choose, ...plain } = more;
  const parts = [
    drawPlate(left, { x, y: lowerY, cell }, { ...plain, lit: { row } }),
    drawPlate(upper, { x: rightX, y, cell }, { ...plain, lit: { col } }),
    drawPlate({ ...result, rowNames: undefined, colNames: undefined }, { x: rightX, y: lowerY, cell }, more),
    frame(x, lowerY + row * cell, inner * cell, cell, "of-row"),
    frame(rightX + col * cell, y, cell, inner * cell, "of-col"),
    frame(rightX + col * cell, lowerY + row * cell, cell, cell, "of-cell"),
    svg("path", { class: "beam of-row", d: `M${x + inner * cell + 3} ${lowerY + (row + 0.5) * cell}H${rightX + col * cell - 3}` }),
    svg("path", { class: "beam of-col", d: `M${rightX + (col + 0.5) * cell} ${y + inner * cell + 3}V${lowerY + row * cell - 3}` }),
  ];
  return picture(parts, rightX + result.grid.cols * cell + 4, lowerY + result.grid.rows * cell + NAME_BELOW);
}

/** Draws before → after, with the same row highlighted in both. */
export function drawChange({ before, after, sign }, { row, col }, room, more) {
  const { rows, cols } = after.grid;
  const cell = Math.min(CELL_MOST, (room.width - LABEL - ARROW) / (2 * cols), (room.height - ABOVE - NAME_BELOW) / rows);
  const x = LABEL,
    y = ABOVE,
    rightX = x + cols * cell + ARROW;
  const { choose, ...plain } = more;
  const parts = [
    drawPlate(before, { x, y, cell }, { ...plain, lit: { row, col } }),
    drawPlate({ ...after, rowNames: undefined }, { x: rightX, y, cell }, { ...more, lit: { row, col } }),
    frame(x, y + row * cell, cols * cell, cell, "of-row"),
    frame(rightX, y + row * cell, cols * cell, cell, "of-row"),
    frame(rightX + col * cell, y + row * cell, cell, cell, "of-cell"),
    svg("path", { class: "beam of-row", d: `M${x + cols * cell + 3} ${y + (row + 0.5) * cell}H${rightX - 4}` }),
    named(sign, x + cols * cell + ARROW / 2, y + (row + 0.5) * cell - 7, { class: "plate-sign" }),
  ];
  return picture(parts, rightX + cols * cell + 4, y + rows * cell + NAME_BELOW);
}

/** Draws one matrix, with one row highlighted. */
export function drawAlone(plate, { row, col }, room, more) {
  const { rows, cols } = plate.grid;
  const cell = Math.min(CELL_MOST, (room.width - LABEL - 8) / cols, (room.height - ABOVE - NAME_BELOW) / rows);
  const parts = [
    drawPlate(plate, { x: LABEL, y: ABOVE, cell }, { ...more, lit: { row } }),
    frame(LABEL, ABOVE + row * cell, cols * cell, cell, "of-row"),
    frame(LABEL + col * cell, ABOVE + row * cell, cell, cell, "of-cell"),
  ];
  return picture(parts, LABEL + cols * cell + 4, ABOVE + rows * cell + NAME_BELOW);
}

/** Draws the maps of all heads side by side. */
export function drawHeads(plates, { row, col, head }, room, more) {
  const { rows, cols } = plates[0].grid,
    count = plates.length;
  const cell = Math.min(CELL_MOST, ((room.width - LABEL) / count - APART) / cols, (room.height - ABOVE - NAME_BELOW) / rows);
  const parts = plates.flatMap((plate, at) => {
    const x = LABEL + at * (cols * cell + APART);
    const choose = (i, j) => more.choose(i, j, at);
    const drawn = drawPlate({ ...plate, rowNames: at === 0 ? plate.rowNames : undefined }, { x, y: ABOVE, cell }, { ...more, choose, lit: { row, col } });
    return [drawn, frame(x, ABOVE + row * cell, cols * cell, cell, at === head ? "of-row" : "of-col")];
  });
  return picture(parts, LABEL + count * (cols * cell + APART), ABOVE + rows * cell + NAME_BELOW);
}

const picture = (parts, width, height) =>
  svg("svg", { width: Math.ceil(width), height: Math.ceil(height), viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`, "aria-hidden": "true" }, ...parts);
