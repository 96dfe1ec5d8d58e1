/* formulas.h: what the options say of position biases and feature maps (attn/position_bias.h, attn/mechanism.h). */
#ifndef ATTN_FORMULAS_FORMULAS_H
#define ATTN_FORMULAS_FORMULAS_H

#include "attn/plan.h"

bool attn_has_alibi(const attn_options *options);
/* The slope of head h; 0 without ALiBi. */
double attn_slope_of(const attn_options *options, size_t heads, size_t h);

static inline bool attn_has_feature_maps(const attn_options *options)
{
    return options->mechanism.type != ATTN_SOFTMAX;
}

/*
 * attn_performer_projection in pieces, so that a run can be cancelled between them. First the direction of each row r,
 * in order, because it depends on the rows before it. Then the lengths of all rows. The third function returns the cost
 * of both.
 */
void attn_performer_direction(uint64_t seed, size_t r, size_t d_k, double *projection);
void attn_performer_lengths(uint64_t seed, size_t features, size_t d_k, double *work, double *projection);
double attn_performer_flops(size_t features, size_t d_k);

#endif
