/**
 * thumb.js: draws a matrix as a thumbnail.
 */
import { indexOf } from "./colour.js";
import { pooled } from "./stats.js";

/**
 * One cell is one pixel; CSS scales it.
 * @param {HTMLCanvasElement} canvas
 * @param {import("../request/tensor.js").Matrix} matrix
 * @param {import("./colour.js").Scale} scale
 * @param {number} most pixels of a side
 * @param {(i: number, j: number) => boolean} [isHidden]
 */
export function drawThumb(canvas, matrix, scale, most, isHidden) {
  const { rows, cols, data } = pooled(matrix, most);
  canvas.width = cols;
  canvas.height = rows;
  const image = new ImageData(cols, rows),
    words = new Uint32Array(image.data.buffer);
  const step = 2 ** Math.round(Math.log2(matrix.rows / rows) || 0);
  for (let at = 0; at < data.length; at++) {
    const isGap =
      data[at] === -Infinity || (data[at] === 0 && isHidden?.(Math.floor(at / cols) * step, (at % cols) * step));
    if (!isGap) words[at] = scale.table[indexOf(scale, data[at])];
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Size of the thumbnail in CSS pixels: the shape of the matrix, within limits. */
export function thumbSize({ rows, cols }, height, widest) {
  const width = Math.round((height * cols) / rows);
  if (width <= widest) return { width: Math.max(12, width), height };
  return { width: widest, height: Math.max(8, Math.round((widest * rows) / cols)) };
}
