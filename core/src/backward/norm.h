/*
 * norm.h: the backward pass of the normalisation of token vectors (attn_norm_row_back in kernel/entries.h).
 */
#ifndef ATTN_BACKWARD_NORM_H
#define ATTN_BACKWARD_NORM_H

#include "attn/runtime.h"
#include "kernel/entries.h"

struct attn_gradient_norm {
    attn_norm_type type;
    attn_dtype compute;
    double eps;
    size_t rows, d;
    size_t gains;         /* rows use that many gains and shifts in turn: 1, or the heads of a token */
    const void *x, *gain; /* gain NULL: 1 */
    const void *grad_y;
    void *grad_x;                 /* may be grad_y; NULL: not wanted */
    void *grad_gain, *grad_shift; /* gains * d numbers each; NULL: not wanted */
    double *partial;              /* attn_gradient_norm_partials(rows) times 2 gains d numbers */
};

size_t attn_gradient_norm_partials(size_t rows);
/* A row of grad_y that is all 0 gives 0 and adds nothing, even if its x is NaN. */
void attn_gradient_norm_run(const struct attn_gradient_norm *norm, const attn_runtime *runtime);

#endif
