/*
 * position_bias.h: biases that the distance of key and query decides: ALiBi and the relative biases of T5.
 *
 *     ALiBi      -slope[h] |j - p|           Press, Smith, Lewis, "Train Short, Test Long" (2022)
 *     T5         table[bucket(j - p)][h]     Raffel et al., "Exploring the Limits of Transfer Learning" (2020)
 *
 * for key j and a query at position p = i + offset (attn_plan_offset). Under a causal mask, this ALiBi differs from
 * Press's slope * j by one constant per row, which softmax cancels.
 */
#ifndef ATTN_POSITION_BIAS_H
#define ATTN_POSITION_BIAS_H

#include "attn/tensor.h"

ATTN_BEGIN_C

/*
 * The slope of head h of heads >= 1. For a power of two it is 2^(-8 (h + 1) / heads). Otherwise the first heads have
 * the slopes of the next lower power of two; the remaining heads have every other slope, from the first on, of the next
 * higher power of two (as in Press and BLOOM; MPT orders them differently).
 */
double attn_alibi_slope(size_t heads, size_t h);

typedef struct {
    const attn_tensor *table; /* (buckets, heads), finite, of the compute type; NULL: no relative bias */
    bool bidirectional;       /* half of the buckets are for later keys; else these have distance 0 */
    int64_t max_distance;     /* distances from here on share the last bucket; above the exact buckets */
} attn_relative_bias;

/*
 * The bucket of distance = j - p. In each direction, the first half of the buckets hold one distance each; the others
 * grow logarithmically. The arithmetic is in float and follows T5's own code step by step, so that ties fall the same
 * way.
 */
size_t attn_relative_bucket(int64_t distance, size_t buckets, bool bidirectional, int64_t max_distance);

ATTN_END_C

#endif
