/*
 * attention.h: scaled dot-product attention on plain arrays, for a caller who has q, k and v.
 *
 *     out = softmax(q k^T / sqrt(d_k)) v        for every batch item and head
 *
 * Vaswani et al., "Attention Is All You Need" (2017), section 3.2.1, equation 1.
 */
#ifndef ATTN_ATTENTION_H
#define ATTN_ATTENTION_H

#include "attn/arena.h"
#include "attn/runtime.h"

typedef struct {
    size_t batch, heads, q_len, kv_len, d_k, d_v;
} attn_shape;

/*
 *   q       (batch, heads, q_len,  d_k)    read
 *   k       (batch, heads, kv_len, d_k)    read
 *   v       (batch, heads, kv_len, d_v)    read
 *   mask    (q_len, kv_len)                read; nonzero = may attend; NULL = no mask
 *   out     (batch, heads, q_len,  d_v)    written; must not overlap an input
 *   weights (batch, heads, q_len, kv_len)  written; NULL = not wanted
 *
 * Arrays are float32, row-major, last index contiguous, and belong to the caller. The function takes working memory
 * from scratch, and releases it on return. A query with every key hidden gives zeros. Safe from several threads, each
 * with its own outputs and scratch.
 *
 * Returns ATTN_OK, or, with the outputs untouched,
 *   ATTN_ERR_SHAPE      a dimension is zero
 *   ATTN_ERR_TOO_LARGE  a product of dimensions does not fit
 *   ATTN_ERR_NO_MEMORY  scratch is too small
 *   ATTN_ERR_CANCELLED  the runtime asked to stop
 */
ATTN_MUST_CHECK attn_status attn_scaled_dot_product(const attn_shape *shape, const float *q, const float *k,
                                                    const float *v, const uint8_t *mask, float *out, float *weights,
                                                    const attn_runtime *runtime, attn_arena *scratch, attn_error *err);

#endif
