/**
 * masks.js: whether a query may attend to a key, and which mask hides the key.
 */
import { tensorFrom } from "./tensor.js";

/** Reads one element of a tensor that broadcasts from the right to (batch, heads, q_len, kv_len). */
function lookUp(tensor, index) {
  const { shape, data } = tensor;
  let at = 0;
  for (let d = 0; d < shape.length; d++) {
    const i = index[4 - shape.length + d];
    at = at * shape[d] + (shape[d] > 1 ? i : 0);
  }
  return data[at];
}

/** The narrower of window and sliding_window on each side; null means no limit. */
function windowOf(masks) {
  let [left, right] = masks.window ?? [null, null];
  if (masks.sliding_window !== undefined && masks.sliding_window !== null) {
    left = Math.min(masks.sliding_window - 1, left ?? Infinity);
    right = 0;
  }
  return { left, right };
}

export class Masks {
  /**
   * @param {object} masks as in a request
   * @param {number} qLen
   * @param {number} kvLen
   */
  constructor(masks, qLen, kvLen) {
    this.masks = masks;
    this.lengths = [qLen, kvLen];
    this.window = windowOf(masks);
    this.tensors = {};
    for (const name of ["attend", "bias", "padding"])
      if (masks[name] !== undefined) this.tensors[name] = tensorFrom(masks[name]);
    const documents = masks.documents;
    if (documents !== undefined) {
      const isOne = Array.isArray(documents) || documents.shape;
      this.documents = [tensorFrom(isOne ? documents : documents.query), tensorFrom(isOne ? documents : documents.key)];
    }
    if (masks.blocks?.attend) this.tensors.blocks = tensorFrom(masks.blocks.attend);
  }

  offset(b) {
    const causal = typeof this.masks.causal === "object" && this.masks.causal ? this.masks.causal : {};
    const added = Array.isArray(causal.offset)
      ? causal.offset[Math.min(b, causal.offset.length - 1)]
      : (causal.offset ?? 0);
    const align = causal.align ?? ("offset" in causal ? "top_left" : "bottom_right");
    return added + (align === "bottom_right" ? this.lengths[1] - this.lengths[0] : 0);
  }

  /** Added to the scaled score. */
  bias(b, h, i, j) {
    return this.tensors.bias ? lookUp(this.tensors.bias, [b, h, i, j]) : 0;
  }

  /** @returns {string | null} the first mask that hides the key */
  hiddenBy(b, h, i, j) {
    const { masks, window } = this;
    const position = i + this.offset(b);
    if (masks.causal && j > position) return "causal";
    if ((window.left !== null && j < position - window.left) || (window.right !== null && j > position + window.right))
      return "window";
    if (masks.key_lengths && j >= masks.key_lengths[b]) return "key_lengths";
    if (masks.query_lengths && i >= masks.query_lengths[b]) return "query_lengths";
    return this.#lookedUp(b, h, i, j);
  }

  #lookedUp(b, h, i, j) {
    const { attend, padding } = this.tensors;
    if (padding && !lookUp(padding, [0, 0, b, j])) return "padding";
    if (attend && !lookUp(attend, [b, h, i, j])) return "attend";
    if (this.bias(b, h, i, j) === -Infinity) return "bias";
    if (this.documents) {
      const [query, key] = this.documents;
      if (lookUp(query, [0, 0, b, i]) !== lookUp(key, [0, 0, b, j])) return "documents";
    }
    return this.masks.blocks && !this.#blocksAllow(b, h, i, j) ? "blocks" : null;
  }

  /** blocks.attend counts queries from 0; patterns count positions. The random pattern bigbird is not computed here. */
  #blocksAllow(b, h, i, j) {
    const rule = this.masks.blocks,
      position = i + this.offset(b);
    if (rule.attend) {
      const [rows, cols] = Array.isArray(rule.size) ? rule.size : [rule.size, rule.size];
      return lookUp(this.tensors.blocks, [b, h, Math.floor(i / rows), Math.floor(j / cols)]);
    }
    const size = rule.size ?? 1,
      apart = Math.floor(position / size) - Math.floor(j / size);
    switch (rule.pattern) {
      case "prefix":
        return (
          j <= position ||
          j < (Array.isArray(rule.length) ? rule.length[Math.min(b, rule.length.length - 1)] : rule.length)
        );
      case "chunked":
        return apart === 0;
      case "strided":
        return Math.abs(apart) <= (rule.window ?? rule.stride - 1) || apart % rule.stride === 0;
      case "longformer": {
        const tokens = rule.global_tokens ?? [];
        return tokens.includes(position) || tokens.includes(j) || Math.abs(apart) <= (rule.window ?? 1);
      }
      default:
        return true;
    }
  }
}
