/*
 * position_bias.h: the slopes of ALiBi: from the options, or by the formula of attn/position_bias.h.
 */
#ifndef ATTN_FORMULAS_POSITION_BIAS_H
#define ATTN_FORMULAS_POSITION_BIAS_H

#include "attn/plan.h"

bool attn_has_alibi(const attn_options *options);
/* The slope of head h; 0 without ALiBi. */
double attn_slope_of(const attn_options *options, size_t heads, size_t h);

#endif
