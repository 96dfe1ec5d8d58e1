/* dense.h: what stands outside of the layers: a weight, y = x W + b for the rows of a sequence, and a norm. */
#ifndef ATTN_MODEL_DENSE_H
#define ATTN_MODEL_DENSE_H

#include "attn/arena.h"
#include "attn/model.h"
#include "attn/runtime.h"

/* The columns of the result; 0: the weight is absent. A weight of a rank above 2 has its rows first (out_in). */
size_t attn_dense_width(const attn_affine *affine, attn_layout layout);
/* Arena bytes of attn_dense, without its result. */
size_t attn_dense_bytes(const attn_affine *affine, attn_layout layout, attn_dtype compute, size_t threads);
/*
 * With float32, the weight may be of 16 bits. x is (rows, inner), contiguous. *y becomes (rows, width) in arena. Of an x of
 * rank 3, (batch, rows, inner), each batch item is a product of its own, and *y is (batch * rows, width).
 * ATTN_ERR_NO_MEMORY, ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_dense(const attn_affine *affine, attn_layout layout, const attn_tensor *x,
                                       const attn_runtime *runtime, attn_arena *arena, attn_tensor *y, attn_error *err);

/* attn_norm_tokens (model.h), for a caller who has set the floating-point mode. */
ATTN_MUST_CHECK attn_status attn_token_norm_run(const attn_token_norm *norm, const attn_tensor *input,
                                                const attn_runtime *runtime, attn_arena *arena, attn_tensor *output,
                                                attn_error *err);
/* attn_norm_tokens_back, likewise. */
ATTN_MUST_CHECK attn_status attn_token_norm_back(const attn_token_norm *norm, const attn_tensor *input,
                                                 const attn_tensor *behind, const attn_runtime *runtime,
                                                 attn_arena *arena, attn_tensor *before, attn_error *err);

/* What stands between the input of a head and W_o (attribute.c); each row is a product of its own. */
struct attn_head_inner {
    attn_tensor dense, active, normed;
};

ATTN_MUST_CHECK attn_status attn_head_inner_run(const attn_prediction_head *head, const attn_tensor *input,
                                                const attn_runtime *runtime, attn_arena *arena,
                                                struct attn_head_inner *inner, attn_error *err);
/* tanh of all numbers, in place (predict.c). */
void attn_tanh_numbers(const attn_tensor *numbers, const attn_runtime *runtime);

#endif
