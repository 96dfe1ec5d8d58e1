/**
 * colour.js: numbers to colours.
 *
 * A table has 256 colours as little-endian RGBA words, the format of ImageData. Viridis (Smith and van der Walt, 2015)
 * and Cividis (Nuñez and others, 2018) are given at 17 and 9 points, with linear interpolation between them.
 */
const POINTS = {
  viridis: [
    "440154",
    "481668",
    "482878",
    "433e85",
    "3b528b",
    "33638d",
    "2c738e",
    "26828e",
    "21918c",
    "1f9f88",
    "28ae80",
    "3fbc73",
    "5ec962",
    "83d34c",
    "addc30",
    "d5e21a",
    "fde725",
  ],
  cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8779", "a59c74", "c3b369", "fee838"],
  grey: ["ffffff", "111418"],
  greyDark: ["181b20", "f2f4f7"],
  signed: ["2b5c8a", "5b8db8", "a3c2da", "f4f4f2", "e6b98f", "cc8442", "9a5414"],
  signedDark: ["7fb4e6", "4c7faf", "32506e", "1d2024", "6b4a2b", "b1773c", "f0a95c"],
};

function rgbAt(points, t) {
  const place = t * (points.length - 1),
    low = Math.min(Math.floor(place), points.length - 2),
    part = place - low;
  return [0, 2, 4].map((at) => {
    const [a, b] = [points[low], points[low + 1]].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * part);
  });
}

const tables = new Map();

/** @param {string} name @returns {Uint32Array} */
export function tableOf(name) {
  if (!tables.has(name)) {
    const table = new Uint32Array(256);
    for (let i = 0; i < 256; i++) {
      const [r, g, b] = rgbAt(POINTS[name], i / 255);
      table[i] = ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
    }
    tables.set(name, table);
  }
  return tables.get(name);
}

/** @typedef {{table: Uint32Array, low: number, high: number, isLog: boolean, name: string}} Scale */

/** Decades that a logarithmic scale shows. */
const DECADES = 5;

/** The smallest and the largest finite number. */
export function extentOf(data) {
  let low = Infinity,
    high = -Infinity;
  for (let i = 0; i < data.length; i++) {
    const value = data[i];
    if (value < low && value !== -Infinity) low = value;
    if (value > high && value !== Infinity) high = value;
  }
  return low <= high ? { low, high, data } : { low: 0, high: 0, data };
}

/** The common extent of several tensors. @param {import("../request/tensor.js").Tensor[]} tensors */
export function extentOfAll(tensors) {
  const data = new Float32Array(tensors.reduce((sum, one) => sum + one.data.length, 0));
  let at = 0;
  for (const one of tensors) {
    data.set(one.data, at);
    at += one.data.length;
  }
  return extentOf(data);
}

const SAMPLED = 1 << 14;

/** Cache of robustMaximum. */
const robustMaxima = new WeakMap();

/**
 * The 99th percentile of positive weights, from a sample. A few large weights would otherwise make all others one
 * colour.
 * @param {{high: number, data?: Float32Array | Float64Array}} extent
 */
function robustMaximum({ data, high }) {
  if (!data?.length) return high;
  if (!robustMaxima.has(data)) {
    const step = Math.ceil(data.length / SAMPLED),
      sample = new Float32Array(Math.floor((data.length - 1) / step) + 1).map((_, n) => data[n * step]).filter((value) => value > 0).sort();
    robustMaxima.set(data, sample[Math.floor(0.99 * (sample.length - 1))] ?? high);
  }
  return robustMaxima.get(data);
}

/**
 * @param {{palette: string, range: string, isDark: boolean}} appearance
 * @param {{low: number, high: number, data?: Float32Array | Float64Array}} extent of what is shown
 * @param {boolean} isWeight in 0…1; else of either sign
 * @returns {Scale}
 */
export function scaleOf(appearance, extent, isWeight) {
  if (!isWeight) {
    const most = Math.max(Math.abs(extent.low), Math.abs(extent.high)) || 1;
    const name = appearance.isDark ? "signedDark" : "signed";
    return { table: tableOf(name), low: -most, high: most, isLog: false, name };
  }
  const name = appearance.palette === "grey" && appearance.isDark ? "greyDark" : appearance.palette;
  const high = appearance.range === "full" ? 1 : (appearance.range === "robust" ? robustMaximum(extent) : extent.high) || 1;
  if (appearance.range === "log")
    return { table: tableOf(name), low: Math.log10(high) - DECADES, high: Math.log10(high), isLog: true, name };
  return { table: tableOf(name), low: 0, high, isLog: false, name };
}

/** @param {Scale} scale */
export function indexOf(scale, value) {
  const place = ((scale.isLog ? Math.log10(value) : value) - scale.low) / (scale.high - scale.low);
  return place <= 0 ? 0 : place >= 1 ? 255 : (place * 255 + 0.5) | 0;
}

export function wordAt(scale, value) {
  return scale.table[indexOf(scale, value)];
}

/** CSS colour of a value, and whether it is light, so that text on it must be dark. */
export function cssAt(scale, value) {
  const word = wordAt(scale, value);
  const [r, g, b] = [word & 255, (word >> 8) & 255, (word >> 16) & 255];
  const linear = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return { colour: `rgb(${r} ${g} ${b})`, isLight: light > 0.179 };
}
