/*
 * residual.h: the two ends of a layer: pre-norm at the start; dropout, residual and post-norm at the end.
 */
#ifndef ATTN_LAYER_RESIDUAL_H
#define ATTN_LAYER_RESIDUAL_H

#include "layer/stages.h"

/* run->normed = norm(query). */
ATTN_MUST_CHECK attn_status attn_layer_pre_norm(struct layer_run *run);
/*
 * sum = residual + scale * dropout(norm(x)), for rows of d numbers. residual NULL: 0; norm and scale are those of
 * branches in the options. sum may be x.
 */
struct attn_branch {
    const attn_affine *norm;
    const char *x, *residual;
    char *sum;
    size_t d;
    bool drops;
};

void attn_layer_add_branch(const struct layer_run *run, const struct attn_branch *branch, size_t row, size_t rows);
/*
 * run->summed = query + dropout(projected), run->output = norm(summed), each only if the request asks for it. A result
 * overwrites its input, unless the input is a wanted step or belongs to the steps of the heads.
 */
ATTN_MUST_CHECK attn_status attn_layer_finish(struct layer_run *run);

#endif
