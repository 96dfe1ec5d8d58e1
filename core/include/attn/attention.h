/*
 * attention.h: attention on plain arrays, for a caller who has queries, keys and values.
 *
 *     out = softmax(scale q k^T) v        for every batch item and head
 *
 * Vaswani et al., "Attention Is All You Need" (2017), section 3.2.1, equation 1. For weights, biases, more masks and
 * the steps between, make a plan (plan.h).
 */
#ifndef ATTN_ATTENTION_H
#define ATTN_ATTENTION_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "attn/tensor.h"

ATTN_BEGIN_C

/* How many elements lie between two batch items, heads and rows of an array; all 0: row-major without gaps. */
typedef struct {
    size_t batch, head, row;
} attn_strides;

/*
 * Zero-initialise it and fill it in. The arrays belong to the caller. The features of a row lie side by side.
 *
 *   q        (batch, heads,    q_len,  d_k)   read
 *   k        (batch, kv_heads, kv_len, d_k)   read
 *   v        (batch, kv_heads, kv_len, d_v)   read
 *   mask     (q_len, kv_len)                  read; nonzero = may attend; NULL: no mask
 *   out      (batch, heads, q_len, d_v)       written; must not overlap an input; NULL: not wanted
 *   weights  (batch, heads, q_len, kv_len)    written, without gaps; NULL: not wanted
 *   lse      (batch, heads, q_len)            written, without gaps: the logarithm of the sum of exp(score) of each row,
 *                                             -infinity for a row without keys; NULL: not wanted
 *
 * Query i stands at position i + kv_len - q_len, key j at j. causal hides the keys behind the query. A window hides keys
 * more than window_left before and more than window_right behind the query. A query without keys gives zeros.
 * Query head h attends to key head h / (heads / kv_heads) (grouped heads: Ainslie et al., 2023, arXiv:2305.13245).
 */
typedef struct {
    attn_dtype compute; /* of all arrays but mask: ATTN_F32, which is 0, or ATTN_F64 */
    size_t batch, heads, q_len, kv_len, d_k, d_v;
    size_t kv_heads; /* 0: heads */
    double scale;    /* 0: 1 / sqrt(d_k) */
    bool causal, has_window;
    size_t window_left, window_right;
    const void *q, *k, *v;
    const uint8_t *mask;
    void *out, *weights, *lse;
    attn_strides q_strides, k_strides, v_strides, out_strides;
} attn_attention_args;

/*
 * runtime NULL: in the calling thread, with the best kernel. scratch lends working memory and has it back on return;
 * NULL: the call takes it from the system. err may be NULL. Safe from several threads, each with its own outputs and
 * scratch.
 *
 * Returns ATTN_OK, or, with the outputs undefined,
 *   ATTN_ERR_VALUE      compute is neither float32 nor float64, or scale is not finite as a number of compute
 *   ATTN_ERR_FIELD      a stride does not fit a ptrdiff_t, or q, k or v is NULL
 *   ATTN_ERR_SHAPE      a dimension is zero, or kv_heads does not divide heads
 *   ATTN_ERR_TOO_LARGE  a dimension is above 2^31 - 1, or a product of dimensions does not fit
 *   ATTN_ERR_NO_MEMORY  scratch is too small
 *   ATTN_ERR_CANCELLED  the runtime asked to stop
 */
ATTN_MUST_CHECK attn_status attn_attention(const attn_attention_args *args, const attn_runtime *runtime,
                                           attn_arena *scratch, attn_error *err);

ATTN_END_C

#endif
