/**
 * positions.js: what the distance of key and query adds to a score: ALiBi, and the relative bias of T5.
 */
import { tensorFrom } from "./tensor.js";

/** Press, Smith and Lewis (2022): a geometric series for 2ⁿ heads; every other term of the next one for the rest. */
function slopesFor(heads) {
  const power = 2 ** Math.floor(Math.log2(heads));
  const series = Array.from({ length: power }, (_, h) => 2 ** ((-8 * (h + 1)) / power));
  return [...series, ...Array.from({ length: heads - power }, (_, h) => 2 ** ((-4 * (2 * h + 1)) / power))];
}

export class PositionBias {
  constructor({ alibi, relative_bias: relative }, heads) {
    this.slopes = alibi === true ? slopesFor(heads) : alibi ? tensorFrom(alibi).data : null;
    this.relative = relative;
    this.table = relative ? tensorFrom(relative.table) : null;
  }

  /** @param {number} distance position of the key minus that of the query */
  bias(h, distance) {
    const slope = this.slopes ? -this.slopes[h] * Math.abs(distance) : 0;
    return slope + (this.table ? this.table.data[this.#bucket(distance) * this.table.shape[1] + h] : 0);
  }

  /** Near distances have a bucket each. Far ones share buckets, whose widths grow in powers. */
  #bucket(distance) {
    let [count] = this.table.shape,
      first = 0,
      away = Math.max(-distance, 0);
    if (this.relative.bidirectional ?? true) {
      count = Math.floor(count / 2);
      away = Math.abs(distance);
      first = distance > 0 ? count : 0;
    }
    const exact = Math.floor(count / 2),
      longest = this.relative.max_distance ?? 128;
    if (away < exact) return first + away;
    const grown = (Math.log(away / exact) / Math.log(longest / exact)) * (count - exact);
    return first + Math.min(exact + Math.floor(grown + 1e-6), count - 1);
  }
}
