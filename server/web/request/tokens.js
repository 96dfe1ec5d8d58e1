/**
 * tokens.js: splits a text into tokens, and makes the seeded random numbers that stand in for a trained model.
 */

/** Random numbers in [0, 1) that are the same in every browser (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Normally distributed numbers, by the Box-Muller transform. */
export function normalFrom(random) {
  return () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function seedOf(text, seed) {
  let hash = 2166136261 ^ seed;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}

/** Words and punctuation, split by the rules of the text's script. */
export function splitText(text) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
  return Array.from(segmenter.segment(text), ({ segment }) => segment.trim()).filter((word) => word !== "");
}

const round = (value) => Math.round(value * 1000) / 1000;

/** A word has the same vector everywhere, plus a small sinusoidal position encoding (Vaswani et al., 2017). */
export function embed(tokens, width, seed) {
  return tokens.map((token, position) => {
    const normal = normalFrom(randomFrom(seedOf(token.toLowerCase(), seed)));
    return Array.from({ length: width }, (_, c) => {
      const angle = position / 10000 ** ((2 * Math.floor(c / 2)) / width);
      return round(normal() + 0.4 * (c % 2 ? Math.cos(angle) : Math.sin(angle)));
    });
  });
}

export function randomMatrix(rows, cols, seed, spread = 1 / Math.sqrt(rows)) {
  const normal = normalFrom(randomFrom(seed));
  return Array.from({ length: rows }, () => Array.from({ length: cols }, () => round(normal() * spread)));
}

/**
 * Random weights of a layer. The weights of keys are a blend with those of queries, so that a word tends to attend to
 * words like it. Independent weights would show nothing but noise.
 */
export function randomWeights({ width, keyWidth = width, heads, kvHeads = heads, d, seed }) {
  const query = randomMatrix(width, heads * d, seed, 1.5 / Math.sqrt(width));
  const key = randomMatrix(keyWidth, kvHeads * d, seed + 1, 1.1 / Math.sqrt(keyWidth));
  if (keyWidth === width)
    key.forEach((row, i) =>
      row.forEach((value, o) => {
        row[o] = round(value + 0.6 * query[i][o]);
      }),
    );
  return {
    query: { weight: query },
    key: { weight: key },
    value: { weight: randomMatrix(keyWidth, kvHeads * d, seed + 2) },
    output: { weight: randomMatrix(heads * d, width, seed + 3) },
  };
}
