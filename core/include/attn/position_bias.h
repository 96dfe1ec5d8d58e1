/*
 * position_bias.h: what the distance of key and query adds to a score: ALiBi, the relative biases of T5, and the
 * relative positions of DeBERTa.
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

/*
 * Relative positions as terms of the score, before scale (He et al., "DeBERTa", 2021, arXiv:2006.03654, equation 4):
 *
 *     q k^T + q Kr[row(j - p)]^T + k Qr[row(j - p)]^T
 *
 * for query q at position p, and key k at position j. Each table has 2 s rows, of distances from later keys (row 0) to
 * earlier ones; row s is the distance 0. Both terms read the same row, as the code of the authors does. With buckets,
 * far distances share rows; without, each distance has a row, and those from s on share the last. Both tables are
 *
 *     given       key and query
 *     of a layer  given, or embedding W + b by weights.relative_key and weights.relative_query
 *
 * One of the two may be absent. The scale is 1 / sqrt(d_k (1 + terms)) by default, as theirs.
 */
typedef struct {
    const attn_tensor *key;       /* Kr (2 s, kv_heads * d_k), row-major, of the compute type; NULL: no such term */
    const attn_tensor *query;     /* Qr (2 s, heads * d_k), likewise */
    const attn_tensor *embedding; /* (2 s, any), likewise */
    int64_t buckets;              /* s, if distances share rows; at least 2. 0: they do not */
    int64_t max_distance;         /* with buckets, this distance is in the last one; above buckets / 2 + 1 */
} attn_relative_position;

/*
 * The row of distance = j - p of a table of 2 s rows. With buckets, distances up to buckets / 2 have a row each; the others
 * grow logarithmically. The arithmetic is in float and follows the authors' code step by step.
 */
size_t attn_relative_row(int64_t distance, size_t rows, int64_t buckets, int64_t max_distance);

ATTN_END_C

#endif
