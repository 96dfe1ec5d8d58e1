/*
 * projection.h: the backward pass of y = x W + b, for separate, per-head and fused weights.
 *
 *     dx = dy W^T        dW = x^T dy        db = the sum of dy over all tokens
 */
#ifndef ATTN_BACKWARD_PROJECTION_H
#define ATTN_BACKWARD_PROJECTION_H

#include "attn/runtime.h"
#include "layer/projection.h"

/* One projection, with its input and the gradient of its output. */
struct attn_gradient_projection {
    attn_projection slices;
    attn_layout layout;
    size_t batch, len;
    const char *x;          /* (batch, len, slices.inner) */
    const char *grad_y;     /* (batch, len, slices.slices * slices.columns) */
    const uint8_t *is_live; /* (batch, len): 0 where all of grad_y is 0: then x adds nothing, even if it is NaN */
};

/* The bytes per thread of the scratch below. */
size_t attn_gradient_projection_scratch_bytes(attn_dtype compute);

/* Marks the rows of width numbers that have any nonzero number. */
void attn_gradient_find_live(attn_dtype compute, size_t rows, size_t width, const char *grad_y, uint8_t *is_live);
/* grad_x (batch, len, inner) = the sum over count projections of the same tokens. May be called with count 0. */
void attn_gradient_of_input(const struct attn_gradient_projection *projections, size_t count, attn_dtype compute,
                            size_t batch, size_t len, size_t inner, char *grad_x, char *scratch,
                            const attn_runtime *runtime);
/* The part of the gradient of the weight (with its whole shape) that belongs to the slices. */
void attn_gradient_of_weight(const struct attn_gradient_projection *projection, attn_dtype compute, char *grad_w,
                             char *scratch, const attn_runtime *runtime);
void attn_gradient_of_bias(const struct attn_gradient_projection *projection, attn_dtype compute, char *grad_b,
                           const attn_runtime *runtime);
/* to = a + b for count numbers, b NULL: 0; to may be a or b. */
void attn_gradient_add(attn_dtype compute, size_t count, const void *a, const void *b, void *to,
                       const attn_runtime *runtime);

#endif
