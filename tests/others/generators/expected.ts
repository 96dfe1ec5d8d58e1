/** expected.ts: requests, and what attention is by its equation, computed here; the same for each generated client. */
import assert from "node:assert/strict";

export const server = process.argv[2];

type Matrix = number[][];

export const query: Matrix = [[0.3, 0.8], [1.2, 0.4], [1.2, 1.3]];
export const key: Matrix = [[0.8, 0.3], [0.4, 1.2], [1.3, 1.2]];
export const value: Matrix = [[0.2, 0.7], [0.9, 0.1], [0.4, 0.5]];
/** Of a layer with one head. */
export const weights = { query: [[1, 0], [0.5, 1]], key: [[0.5, 0], [1, 1]], value: [[1, 1], [0, 2]] };

const times = (a: Matrix, b: Matrix) => a.map((row) => b[0].map((_, j) => row.reduce((sum, x, k) => sum + x * b[k][j], 0)));
const transposed = (a: Matrix) => a[0].map((_, j) => a.map((row) => row[j]));

function softmax(row: number[]): number[] {
  const powers = row.map((x) => Math.exp(x - Math.max(...row)));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((x) => x / sum);
}

/** softmax(q kᵀ / √d_k) v, causal. */
function attend(q: Matrix, k: Matrix, v: Matrix) {
  const scores = times(q, transposed(k)).map((row, i) => row.map((x, j) => (j <= i ? x / Math.sqrt(q[0].length) : -Infinity)));
  const attention = scores.map(softmax);
  return { attention, output: times(attention, v) };
}

export const ofAttention = attend(query, key, value);
export const ofLayer = attend(times(query, weights.query), times(query, weights.key), times(query, weights.value));

/** Both are float32 on the server: 24 bits, of numbers near 1. */
function agree(received: unknown, expected: Matrix) {
  const numbers = [received].flat(9) as number[], wanted = expected.flat();
  assert.equal(numbers.length, wanted.length);
  numbers.forEach((number, i) => assert.ok(Math.abs(number - wanted[i]) < 1e-6, `${number} is not ${wanted[i]}`));
}

export function check(outputs: { output?: unknown; attention?: unknown }, expected: typeof ofLayer) {
  agree(outputs.output, expected.output);
  agree(outputs.attention, expected.attention);
}

/** A refusal, whose type the document has. */
export function checkRefusal(refusal: { status: number; pointer?: string | null } | undefined) {
  assert.equal(refusal?.status, 400);
  assert.equal(refusal.pointer, "/inputs/key");
}
