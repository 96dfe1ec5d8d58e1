/**
 * viewport.js: pan and zoom of a matrix: which cells are visible, and how large. It draws nothing.
 */

/** Largest side of a cell, in CSS pixels. */
const CELL_MAX = 72;

export class Viewport {
  constructor() {
    this.x = this.y = 0;
    this.width = this.height = this.cols = this.rows = 1;
    this.zoom = 1;
  }

  /** Sets the size of the plot in pixels, and in cells. A new number of cells resets pan and zoom. */
  place(width, height, rows, cols) {
    const isSame = rows === this.rows && cols === this.cols;
    Object.assign(this, { width, height, rows, cols });
    if (!isSame) this.fit();
    this.#keepInside();
  }

  /** Size of a cell if all cells are shown. Cells are square, except in a matrix that is much longer than wide. */
  get fitting() {
    const w = Math.min(this.width / this.cols, CELL_MAX),
      t = Math.min(this.height / this.rows, CELL_MAX);
    if (Math.max(w, t) > 4 * Math.min(w, t)) return { w: Math.min(w, CELL_MAX / 2), t: Math.min(t, CELL_MAX / 2) };
    return { w: Math.min(w, t), t: Math.min(w, t) };
  }

  get cellWidth() {
    return this.fitting.w * this.zoom;
  }

  get cellHeight() {
    return this.fitting.t * this.zoom;
  }

  get plotWidth() {
    return Math.min(this.width, this.cols * this.cellWidth);
  }

  get plotHeight() {
    return Math.min(this.height, this.rows * this.cellHeight);
  }

  fit() {
    this.zoom = 1;
    this.x = this.y = 0;
  }

  /** @param {number} factor @param {number} px position of the pointer in the plot; the cell below it stays there */
  zoomAt(factor, px, py) {
    const [col, row] = [this.x + px / this.cellWidth, this.y + py / this.cellHeight];
    const most = Math.max(1, (CELL_MAX / Math.min(this.cellWidth, this.cellHeight)) * this.zoom);
    this.zoom = Math.min(most, Math.max(1, this.zoom * factor));
    this.x = col - px / this.cellWidth;
    this.y = row - py / this.cellHeight;
    this.#keepInside();
  }

  panBy(dx, dy) {
    this.x -= dx / this.cellWidth;
    this.y -= dy / this.cellHeight;
    this.#keepInside();
  }

  /** Scrolls as little as needed to show the cell. */
  reveal(row, col) {
    const [w, t] = [this.plotWidth / this.cellWidth, this.plotHeight / this.cellHeight];
    this.x = Math.min(col, Math.max(this.x, col + 1 - w));
    this.y = Math.min(row, Math.max(this.y, row + 1 - t));
    this.#keepInside();
  }

  #keepInside() {
    this.x = Math.max(0, Math.min(this.x, this.cols - this.plotWidth / this.cellWidth));
    this.y = Math.max(0, Math.min(this.y, this.rows - this.plotHeight / this.cellHeight));
  }

  /** Visible rows and columns, the last ones excluded. */
  get seen() {
    return {
      fromRow: Math.floor(this.y),
      toRow: Math.min(this.rows, Math.ceil(this.y + this.plotHeight / this.cellHeight - 1e-9)),
      fromCol: Math.floor(this.x),
      toCol: Math.min(this.cols, Math.ceil(this.x + this.plotWidth / this.cellWidth - 1e-9)),
    };
  }

  cellAt(px, py) {
    const col = Math.floor(this.x + px / this.cellWidth),
      row = Math.floor(this.y + py / this.cellHeight);
    const isInside =
      px >= 0 && py >= 0 && px < this.plotWidth && py < this.plotHeight && row < this.rows && col < this.cols;
    return isInside ? { row, col } : null;
  }

  /** Left and top of a cell in the plot. */
  placeOf(row, col) {
    return { left: (col - this.x) * this.cellWidth, top: (row - this.y) * this.cellHeight };
  }
}
