/**
 * tiles.js: a matrix of any size as tiles of 256 × 256 cells, at every halving of its size, made on demand.
 *
 * A tile is an ImageBitmap, which the browser may keep on the GPU. Hidden cells are transparent, so that the ground
 * below them shows.
 */
import { pictureOfBlock } from "./painter.js";

export const TILE = 256;

/** Most tiles that are kept: 64 MiB. */
const KEPT = 256;

/** Reduced matrices, which map and thumbnails share. */
const halves = new WeakMap();

const isNumber = (value) => value - value === 0;

/** Halves both sides. Of four cells, the one farthest from zero stays, so that a single large weight is visible. */
export function halved(matrix) {
  if (!halves.has(matrix)) halves.set(matrix, halve(matrix));
  return halves.get(matrix);
}

function halve({ rows, cols, data }) {
  const out = { rows: (rows + 1) >> 1, cols: (cols + 1) >> 1, data: null };
  out.data = new Float32Array(out.rows * out.cols);
  for (let i = 0, at = 0; i < out.rows; i++) {
    const low = 2 * i * cols,
      high = 2 * i + 1 < rows ? low + cols : low;
    for (let j = 0; j < out.cols; j++, at++) {
      const left = 2 * j,
        right = left + 1 < cols ? left + 1 : left;
      let most = data[low + left];
      const b = data[low + right],
        c = data[high + left],
        d = data[high + right];
      if (!isNumber(most) || (isNumber(b) && Math.abs(b) > Math.abs(most))) most = b;
      if (!isNumber(most) || (isNumber(c) && Math.abs(c) > Math.abs(most))) most = c;
      if (!isNumber(most) || (isNumber(d) && Math.abs(d) > Math.abs(most))) most = d;
      out.data[at] = most;
    }
  }
  return out;
}

export class Tiles {
  /**
   * @param {import("../request/tensor.js").Matrix} matrix
   * @param {(i: number, j: number) => boolean} isHidden called only for cells that are 0 or not finite
   */
  constructor(matrix, isHidden) {
    this.levels = [matrix];
    this.isHidden = isHidden;
    this.pictures = new Map();
    this.waiting = new Set();
  }

  /** @param {import("./colour.js").Scale} scale */
  recolour(scale) {
    if (
      this.scale &&
      this.scale.table === scale.table &&
      this.scale.low === scale.low &&
      this.scale.high === scale.high &&
      this.scale.isLog === scale.isLog
    )
      return;
    this.scale = scale;
    for (const picture of this.pictures.values()) picture.close();
    this.pictures.clear();
    this.waiting.clear();
    this.generation = (this.generation ?? 0) + 1;
  }

  level(number) {
    while (this.levels.length <= number) this.levels.push(halved(this.levels.at(-1)));
    return this.levels[number];
  }

  /** The level at which the whole matrix is one tile. */
  get topLevel() {
    const [{ rows, cols }] = this.levels;
    return Math.max(0, Math.ceil(Math.log2(Math.max(rows, cols) / TILE)));
  }

  /** The tile, or null. If begin is true, a missing tile is started, and ready is called once it is made. */
  get(level, x, y, begin, ready) {
    const key = level * 1e8 + y * 1e4 + x,
      picture = this.pictures.get(key);
    if (picture) {
      this.pictures.delete(key);
      this.pictures.set(key, picture);
      return picture;
    }
    if (begin && !this.waiting.has(key)) this.#begin(key, level, x, y, ready);
    return null;
  }

  #begin(key, level, x, y, ready) {
    const { generation } = this;
    this.waiting.add(key);
    pictureOfBlock(this.#block(level, x, y)).then((picture) => {
      if (generation !== this.generation) {
        picture.close();
        return;
      }
      this.waiting.delete(key);
      this.pictures.set(key, picture);
      this.#forget();
      ready();
    });
  }

  #forget() {
    for (const [key, picture] of this.pictures) {
      if (this.pictures.size <= KEPT) return;
      picture.close();
      this.pictures.delete(key);
    }
  }

  /** The numbers of a tile; −∞ where nothing is drawn. */
  #block(level, x, y) {
    const { rows, cols, data } = this.level(level),
      { table, low, high, isLog } = this.scale;
    const width = Math.min(TILE, cols - x * TILE),
      height = Math.min(TILE, rows - y * TILE),
      values = new Float32Array(width * height),
      step = 2 ** level;
    for (let i = 0, to = 0; i < height; i++) {
      const from = (y * TILE + i) * cols + x * TILE;
      values.set(data.subarray(from, from + width), to);
      for (let j = 0; j < width; j++, to++) {
        const value = values[to];
        if (value !== 0 && value - value === 0) continue;
        if (value !== -Infinity && this.isHidden((y * TILE + i) * step, (x * TILE + j) * step)) values[to] = -Infinity;
        else if (Number.isNaN(value)) values[to] = 0;
      }
    }
    return { values, width, height, table, low, high, isLog };
  }
}
