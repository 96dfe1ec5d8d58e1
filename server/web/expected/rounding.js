/**
 * rounding.js: rounds numbers to types of two bytes.
 */

/** Rounds halves to the even neighbour. */
function nearestEven(value) {
  const near = Math.round(value);
  return Math.abs(value % 1) === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

/** @param {number} bits of the mantissa @param {number} least normal exponent @param {number} most largest number */
const rounderTo = (bits, least, most) => (value) => {
  if (value === 0 || value - value !== 0) return value;
  const exponent = Math.max(least, Math.floor(Math.log2(Math.abs(value)))),
    unit = 2 ** (exponent - bits),
    rounded = nearestEven(value / unit) * unit;
  return Math.abs(rounded) > most ? Math.sign(value) * Infinity : rounded;
};

/** @returns {{id: string, round: (value: number) => number}[]} */
export const roundersOf = () => [
  { id: "float16", round: rounderTo(10, -14, 65504) },
  { id: "bfloat16", round: rounderTo(7, -126, 3.3895e38) },
];
