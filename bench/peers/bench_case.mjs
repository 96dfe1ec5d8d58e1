// bench_case.mjs: bench_case.c in JavaScript: the same cases, the same numbers, the same samples.

const SAMPLES = 32, GROUP = 4, WIDENING = 4;
export const STREAM = { q: 0, k: 1, v: 2, wq: 3, wk: 4, wv: 5, wo: 6, gate: 8, up: 9, down: 10 };
const WORDS = ['grouped', 'past', 'mean', 'layernorm', 'rmsnorm', 'prenorm', 'gate', 'bare'];

export function readCase(text) {
  const [kind, dtype, ...rest] = text.trim().split(/\s+/);
  const [threads, batch, heads, qLen, kvLen, dim, causal, window, maps] = rest.slice(0, 9).map(Number);
  const words = rest.slice(9), features = heads * dim;
  const unknown = [kind, ...words].find((word) => ![...WORDS, 'attention', 'layer', 'block'].includes(word));
  if (unknown !== undefined) throw new Error('unsupported: ' + unknown);
  if (kind === 'attention' && words.includes('past')) throw new Error('unsupported: the keys are two arrays');
  const has = Object.fromEntries(WORDS.map((word) => [word, words.includes(word)]));
  return { kind, isLayer: kind !== 'attention', isBlock: kind === 'block', dtype, threads, batch, heads, qLen, kvLen, dim,
           features, has, isCausal: causal !== 0, window, withMaps: maps !== 0,
           kvHeads: has.grouped ? heads / GROUP : heads, pastLen: has.past ? kvLen - qLen : 0,
           wide: WIDENING * features + (has.bare && has.gate ? features / 2 : 0) };
}

export function arrayOf(c, count) {
  return c.dtype === 'float32' ? new Float32Array(count) : new Float64Array(count);
}

function valueAt(stream, n) {
  let h = (n + Math.imul(stream, 0x9e3779b9)) | 0;
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  h ^= h >>> 16;
  return (h >>> 9) / 4194304 - 1;
}

// place(n) is where element n goes; without it, they stay in order.
export function makeStream(c, stream, count, place) {
  const gain = stream >= STREAM.wq ? 1 / 16 : 2;
  const values = arrayOf(c, count);
  for (let n = 0; n < count; n++) {
    values[place === undefined ? n : place(n)] = gain * valueAt(stream, n);
  }
  return values;
}

// Where element n of (batch, heads, len, dim) is in (batch, len, heads * dim).
export function joinHeads(c, len) {
  return (n) => {
    const d = n % c.dim, i = Math.floor(n / c.dim) % len, bh = Math.floor(n / c.dim / len);
    return ((Math.floor(bh / c.heads) * len + i) * c.heads + bh % c.heads) * c.dim + d;
  };
}

// 1 where query i attends to key j, for masks that have no name of their own.
export function attendMask(c) {
  const mask = new Uint8Array(c.qLen * c.kvLen);
  for (let i = 0; i < c.qLen; i++) {
    const end = i + 1 + c.kvLen - c.qLen;
    mask.fill(1, i * c.kvLen + (c.window > 0 ? Math.max(0, end - c.window) : 0),
              i * c.kvLen + (c.isCausal ? end : c.kvLen));
  }
  return mask;
}

export function samples(values, place) {
  let sum = 0;
  for (const x of values) {
    sum += Math.abs(x);
  }
  const words = [sum / values.length];
  for (let k = 0; k < SAMPLES; k++) {
    const n = (k * 2654435761) % values.length;
    words.push(values[place === undefined ? n : place(n)]);
  }
  return words.join(' ');
}
