/*
 * position_bias.h: biases that the distance of key and query decides: ALiBi and the relative biases of T5.
 *
 *     ALiBi      -slope[h] |j - p|           Press, Smith, Lewis, "Train Short, Test Long" (2022)
 *     T5         table[bucket(j - p)][h]     Raffel et al., "Exploring the Limits of Transfer Learning" (2020)
 *
 * for key j and a query at position p = i + offset (attn_mask_offset). Behind a causal mask ALiBi is Press's slope * j
 * but for a number that is the same for the whole row, which softmax does not see.
 */
#ifndef ATTN_POSITION_BIAS_H
#define ATTN_POSITION_BIAS_H

#include "attn/tensor.h"

/*
 * The slope of head h of heads >= 1: 2^(-8 (h + 1) / heads) for a power of two; else those of the power of two below,
 * and for the heads that are left every other one, from the first, of the power of two above (as Press and BLOOM do;
 * MPT orders them otherwise).
 */
double attn_alibi_slope(size_t heads, size_t h);

typedef struct {
    const attn_tensor *table; /* (buckets, heads), finite, of the compute type; NULL: no relative bias */
    bool bidirectional;       /* half of the buckets for keys behind the query; else those count as distance 0 */
    int64_t max_distance;     /* from which on all distances share the last bucket; above the exact buckets */
} attn_relative_bias;

/*
 * The bucket of distance = j - p among buckets: the first half of a direction's buckets are one distance each, the
 * others grow with its logarithm. In float, step by step as T5's own code, so that ties fall alike.
 */
size_t attn_relative_bucket(int64_t distance, size_t buckets, bool bidirectional, int64_t max_distance);

#endif
