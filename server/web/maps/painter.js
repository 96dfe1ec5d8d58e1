/**
 * painter.js: turns numbers into pictures, in a worker; in the page if the browser allows no worker.
 *
 * The security policy allows only workers that the page's own script makes, so the worker is made of the text of
 * painted().
 */

/**
 * Uses nothing from outside, because the worker is made of its text. −∞ is left transparent.
 * @param {{values: Float32Array | Float64Array, width: number, height: number, table: Uint32Array, low: number,
 *          high: number, isLog: boolean}} block
 */
export function painted({ values, width, height, table, low, high, isLog }) {
  const image = new ImageData(width, height),
    words = new Uint32Array(image.data.buffer),
    factor = 255 / (high - low);
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (value === -Infinity) continue;
    const place = ((isLog ? Math.log10(value) : value) - low) * factor;
    words[at] = table[place >= 255 ? 255 : place > 0 ? (place + 0.5) | 0 : 0];
  }
  return image;
}

const WORKER = `${painted};
onmessage = async ({ data }) => {
  const picture = await createImageBitmap(painted(data));
  postMessage({ id: data.id, picture }, [picture]);
};`;

/** @type {Worker | null | undefined} null: not allowed by the browser */
let painter;
let paintings = 0;
/** Blocks that are being painted, in case the worker fails, and the functions that resolve their promises. */
const inHand = new Map();

/** The worker has failed: the page paints its blocks. */
function giveUp() {
  painter = null;
  for (const { block, resolve } of inHand.values()) resolve(createImageBitmap(painted(block)));
  inHand.clear();
}

function startPainter() {
  try {
    const address = URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    painter = new Worker(address);
    painter.onerror = giveUp;
    painter.onmessage = ({ data: { id, picture } }) => {
      inHand.get(id).resolve(picture);
      inHand.delete(id);
    };
  } catch {
    painter = null;
  }
}

/** @returns {Promise<ImageBitmap>} */
export function pictureOfBlock(block) {
  if (painter === undefined) startPainter();
  if (painter === null) return createImageBitmap(painted(block));
  return new Promise((resolve) => {
    const id = paintings++;
    inHand.set(id, { block, resolve });
    painter.postMessage({ id, ...block });
  });
}
