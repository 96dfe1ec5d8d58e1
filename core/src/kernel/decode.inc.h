/*
 * decode.inc.h: the two products of a tile, q k^T and p v, for few queries (decoding). Part of attend.inc.h.
 *
 * Keys and values are read once, where they lie: packing would cost more than the product, and memory is what limits it.
 */
#ifndef ATTN_KERNEL_DECODE_INC_H
#define ATTN_KERNEL_DECODE_INC_H

#include "kernel/matmul.inc.h"

/*
 * a and b as one vector of sums: lane i becomes lanes i and i ^ apart together, of a where i has not that bit, else of b.
 */
#define ADD_PARTNERS(a, b, apart)                                                                                      \
    (__builtin_shufflevector(a, b, ALL_LANES(OWN_LANE, apart)) +                                                       \
     __builtin_shufflevector(a, b, ALL_LANES(PARTNER_LANE, apart)))
#define OWN_LANE(i, apart)          ((i) + LANE_OF_B(i, apart))
#define PARTNER_LANE(i, apart)      (((i) ^ (apart)) % LANES + LANE_OF_B(i, apart))
#define LANE_OF_B(i, apart)         ((i) & (apart) ? LANES : 0)
#define TWO_LANES(lane, i, apart)   lane(i, apart), lane(i + 1, apart)
#define FOUR_LANES(lane, i, apart)  TWO_LANES(lane, i, apart), TWO_LANES(lane, i + 2, apart)
#define EIGHT_LANES(lane, i, apart) FOUR_LANES(lane, i, apart), FOUR_LANES(lane, i + 4, apart)
#if LANES == 16
#define ALL_LANES(lane, apart) EIGHT_LANES(lane, 0, apart), EIGHT_LANES(lane, 8, apart)
#elif LANES == 8
#define ALL_LANES(lane, apart) EIGHT_LANES(lane, 0, apart)
#elif LANES == 4
#define ALL_LANES(lane, apart) FOUR_LANES(lane, 0, apart)
#else
#define ALL_LANES(lane, apart) TWO_LANES(lane, 0, apart)
#endif

enum {
    RUN_FEATURES = 16 * LANES,        /* of which a lane sums 16 products in a row; longer sums are sums of those */
    DOT_VECTORS = 4,                  /* vectors of features that are read together */
    DOT_KEYS = LANES < 4 ? LANES : 4, /* so many keys */
    VALUES_WIDTH = 8,                 /* vectors of features that one row sums at a time */
};

/* Lane by lane the sum of q[d] k[d] over whole vectors of features. */
ALWAYS_INLINE vec dot_vectors(const REAL *q, const REAL *k, size_t features)
{
    vec sum = {0};
    size_t d = 0;
    for (; features - d >= DOT_VECTORS * LANES; d += DOT_VECTORS * LANES)
        UNROLLED_FOR (w, DOT_VECTORS)
            sum = fma_vec(load(q + d + w * LANES), load(k + d + w * LANES), sum);
    for (; d < features; d += LANES)
        sum = fma_vec(load(q + d), load(k + d), sum);
    return sum;
}

/* Lane j: the sum of the lanes of sum[j], for LANES of them; of few, lane j % DOT_KEYS, but for lanes DOT_KEYS apart. */
ALWAYS_INLINE vec reduce_keys(const vec *sum)
{
    const vec first = ADD_PARTNERS(sum[0], sum[1], 1);
    if (LANES < 4)
        return first;
    return ADD_PARTNERS(first, ADD_PARTNERS(sum[DOT_KEYS - 2], sum[DOT_KEYS - 1], 1), 2);
}

ALWAYS_INLINE vec reduce_lanes(const vec *few)
{
    if (LANES <= 4)
        return few[0];
    const vec first = ADD_PARTNERS(few[0], few[1], 4);
    if (LANES == 8)
        return first;
    return ADD_PARTNERS(first, ADD_PARTNERS(few[LANES / 4 - 2], few[LANES / 4 - 1], 4), 8);
}

/* q k_j over whole vectors of features, for LANES keys: DOT_KEYS at a time, and a tree that turns sums into lanes. */
ALWAYS_INLINE vec dot_lanes(const REAL *q, const REAL *k, ptrdiff_t k_stride, size_t features)
{
    vec few[LANES / DOT_KEYS];
    UNROLLED_FOR (n, LANES / DOT_KEYS) {
        vec sum[DOT_KEYS];
        UNROLLED_FOR (j, DOT_KEYS)
            sum[j] = dot_vectors(q, k + j * k_stride, features);
        few[n] = reduce_keys(sum);
        k += DOT_KEYS * k_stride;
    }
    return reduce_lanes(few);
}

/*
 * The same for keys that are in the first cache already, with loops of a fixed end for the heads that there are most of.
 * Without such an end the compiler leaves the keys in the order in which they lie, which is how they are fetched ahead.
 */
static inline vec dot_cached_lanes(const REAL *q, const REAL *k, ptrdiff_t k_stride, size_t features)
{
    if (features == 4 * LANES)
        return dot_lanes(q, k, k_stride, 4 * LANES);
    if (features == 8 * LANES)
        return dot_lanes(q, k, k_stride, 8 * LANES);
    return dot_lanes(q, k, k_stride, features);
}

/* q k_j for LANES keys at once: runs of RUN_FEATURES, what is beyond whole vectors feature by feature. */
static vec score_keys(const REAL *q, const REAL *k, ptrdiff_t k_stride, size_t d_k, bool is_cached)
{
    const size_t whole = d_k / LANES * LANES;
    vec all = {0};
    for (size_t d = 0; d < whole; d += RUN_FEATURES) {
        const size_t features = attn_min(whole - d, RUN_FEATURES);
        all += is_cached ? dot_cached_lanes(q + d, k + d, k_stride, features)
                         : dot_lanes(q + d, k + d, k_stride, features);
    }
    for (size_t d = whole; d < d_k; d++) {
        vec feature;
        for (int j = 0; j < LANES; j++)
            feature[j] = k[j * k_stride + (ptrdiff_t)d];
        all = fma_scalar(q[d], feature, all);
    }
    return all;
}

/*
 * Scores of one row, for keys from … end of those that begin at k, at most LANES. Where they are fewer, they are computed
 * together with ones before them, or one by one: in whichever lane it is computed, a score is the same bits.
 */
static inline void decode_score_row(const REAL *q, const REAL *k, ptrdiff_t k_stride, size_t d_k, size_t from,
                                    size_t end, bool is_cached, REAL scale, REAL *s)
{
    if (end >= LANES) {
        const size_t first = attn_min(from, end - LANES);
        store(s + first, scale * score_keys(q, k + (ptrdiff_t)first * k_stride, k_stride, d_k, is_cached));
        return;
    }
    for (size_t c = from; c < end; c++)
        s[c] = (scale * score_keys(q, k + (ptrdiff_t)c * k_stride, 0, d_k, is_cached))[0];
}

static const REAL *decode_query(const struct task *task, size_t row)
{
    const struct position position = position_of(task, row);
    return head_of(&task->job->q, task->b, position.h) + (ptrdiff_t)position.i * task->job->q.row_stride;
}

/* Scores of the tile times scale, a few keys for all rows at a time. Keys that do not exist have 0. */
static void decode_scores(struct task *task, const struct tile *tile, REAL scale)
{
    const size_t d_k = task->job->d_k, end = attn_min(tile->to, tile->keys);
    const ptrdiff_t k_stride = task->job->k.row_stride;
    const REAL *k = task->k_head + (ptrdiff_t)tile->key0 * k_stride, *q[DECODE_ROWS];
    for (size_t r = 0; r < tile->rows; r++)
        q[r] = decode_query(task, tile->row0 + r);
    for (size_t from = tile->from; from < end; from += LANES)
        for (size_t r = 0; r < tile->rows; r++)
            decode_score_row(q[r], k, k_stride, d_k, from, attn_min(from + LANES, end), r > 0, scale,
                             task->s + r * TILE_STRIDE);
    for (size_t r = 0; r < tile->rows && end < tile->to; r++)
        memset(task->s + r * TILE_STRIDE + end, 0, (tile->to - end) * sizeof(REAL));
}

/* n numbers, fewer than LANES, and 0 beyond them. */
static inline vec load_partial(const REAL *from, size_t n)
{
#if defined(__AVX512F__) && REAL_BITS == 32
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
#elif defined(__AVX512F__)
    return (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), from);
#else
    REAL some[LANES] = {0};
    memcpy(some, from, n * sizeof *some);
    return load(some);
#endif
}

/*
 * part[row][…] = or += the sum over keys from … end of p[row][key] v[key][…], for width vectors of features: sums of
 * SUM_KEYS keys, which begin at multiples of it, one after the other. v: the value of key from; odd: keys to be left out,
 * NULL: none. Of a head that is no vector wide there are some features alone.
 */
ALWAYS_INLINE void decode_context_tile(const REAL *p, const REAL *v, ptrdiff_t v_stride, size_t from, size_t end,
                                       const uint8_t *non_finite, bool is_first, REAL *part, size_t columns,
                                       const int rows, const int width, size_t some)
{
    vec all[DECODE_TILE_ROWS][VALUES_WIDTH], sum[DECODE_TILE_ROWS][VALUES_WIDTH];
    UNROLLED_FOR (r, rows)
        UNROLLED_FOR (w, width)
            all[r][w] = is_first ? (vec){0} : load(part + (size_t)r * columns + w * LANES);
    for (size_t j = from; j < end;) {
        const size_t sum_end = attn_min(end, j / SUM_KEYS * SUM_KEYS + SUM_KEYS);
        UNROLLED_FOR (r, rows)
            UNROLLED_FOR (w, width)
                sum[r][w] = (vec){0};
        for (; j < sum_end; j++, v += v_stride) {
            if (non_finite != NULL && non_finite[j])
                continue;
            UNROLLED_FOR (w, width) {
                const vec x = some < LANES ? load_partial(v, some) : load(v + w * LANES);
                UNROLLED_FOR (r, rows)
                    sum[r][w] = fma_scalar(p[(size_t)r * TILE_STRIDE + j], x, sum[r][w]);
            }
        }
        UNROLLED_FOR (r, rows)
            UNROLLED_FOR (w, width)
                all[r][w] += sum[r][w];
    }
    UNROLLED_FOR (r, rows)
        UNROLLED_FOR (w, width)
            store(part + (size_t)r * columns + w * LANES, all[r][w]);
}

/* task->part = or += the sum over keys from … end of the tile, for rows rows from r on: features in whole vectors. */
ALWAYS_INLINE void decode_context_vectors(const struct task *task, const struct tile *tile, size_t r, size_t from,
                                          size_t end, const uint8_t *non_finite, bool is_first, const int rows)
{
    const size_t d_v = task->job->d_v, columns = task->v_columns;
    const ptrdiff_t v_stride = task->job->v.row_stride;
    const REAL *v = task->v_head + (ptrdiff_t)(tile->key0 + from) * v_stride, *p = task->s + r * TILE_STRIDE;
    REAL *part = task->part;
    size_t d = 0;
    for (; rows == 1 && d_v - d >= 8 * LANES; d += 8 * LANES)
        decode_context_tile(p, v + d, v_stride, from, end, non_finite, is_first, part + d, columns, 1, 8, LANES);
    for (; d_v - d >= 4 * LANES; d += 4 * LANES)
        decode_context_tile(p, v + d, v_stride, from, end, non_finite, is_first, part + d, columns, rows, 4, LANES);
    for (; d_v - d >= LANES; d += LANES)
        decode_context_tile(p, v + d, v_stride, from, end, non_finite, is_first, part + d, columns, rows, 1, LANES);
}

/*
 * task->part = the sum over keys from … end of the tile, for rows rows from r on: all features. Where a value is long, a
 * few of them at a time stay in the cache.
 */
ALWAYS_INLINE void decode_context_run(const struct task *task, const struct tile *tile, size_t r, size_t from,
                                      size_t end, const uint8_t *non_finite, const int rows)
{
    const size_t d_v = task->job->d_v, columns = task->v_columns;
    const ptrdiff_t v_stride = task->job->v.row_stride;
    const REAL *v = task->v_head + (ptrdiff_t)(tile->key0 + from) * v_stride, *p = task->s + r * TILE_STRIDE;
    if (d_v < LANES) {
        decode_context_tile(p, v, v_stride, from, end, non_finite, true, task->part, columns, rows, 1, d_v);
        return;
    }
    const size_t step = d_v > 8 * LANES ? SUM_KEYS : RUN_KEYS;
    for (size_t at = from, to; at < end; at = to) {
        to = attn_min(end, at / step * step + step);
        decode_context_vectors(task, tile, r, at, to, non_finite, at == from, rows);
    }
    if (d_v % LANES != 0) /* the last ones together with some that are there already, and are the same again */
        decode_context_tile(p, v + d_v - LANES, v_stride, from, end, non_finite, true, task->part + d_v - LANES,
                            columns, rows, 1, LANES);
}

/* Which values of keys from … end of the tile are not finite; returns whether any is. */
static bool find_non_finite_values(const struct task *task, const struct tile *tile, size_t from, size_t end,
                                   uint8_t *non_finite)
{
    uint8_t any = 0;
    for (size_t j = from; j < end; j++) {
        const REAL *v = task->v_head + (ptrdiff_t)(tile->key0 + j) * task->job->v.row_stride;
        non_finite[j] = !all_finite(v, task->job->d_v);
        any |= non_finite[j];
    }
    return any != 0;
}

/* A row of task->part without the values that are not finite: they are left to add_non_finite_values. */
static void skip_non_finite_values(struct task *task, const struct tile *tile, size_t r, size_t from, size_t end)
{
    task->block_non_finite_keys[0] |= find_non_finite_values(task, tile, from, end, task->key_is_non_finite);
    decode_context_run(task, tile, r, from, end, task->key_is_non_finite, 1);
}

/* Which keys from … end no row of the tile sees: their weight is 0 in every row, so that no sum misses them. */
static void find_hidden_keys(const struct task *task, const struct tile *tile, size_t from, size_t end, uint8_t *hidden)
{
    memset(hidden + from, 1, end - from);
    for (size_t r = 0; r < tile->rows; r++) {
        const uint8_t *allow;
        const attn_span seen = seen_columns(task, tile, r, &allow);
        for (size_t j = from > seen.from ? from : seen.from; j < attn_min(end, seen.to); j++)
            hidden[j] &= allow != NULL && !allow[j];
    }
}

/* Whether task->part is finite in all of rows rows. */
static inline bool part_is_finite(const struct task *task, size_t rows)
{
    bool is_finite = true;
    for (size_t n = 0; n < rows && is_finite; n++)
        is_finite = all_finite(task->part + n * task->v_columns, task->job->d_v);
    return is_finite;
}

/*
 * Keys from … end of the tile onto o and o_low of rows rows from r on. A value that is not finite makes the sums of every
 * row so, be its weight 0 or not: the first time, hidden keys are left out from then on, and where that does not help
 * the values are looked at. hidden: of these keys, where the task skips them.
 */
ALWAYS_INLINE void decode_add_run(struct task *task, const struct tile *tile, size_t r, size_t from, size_t end,
                                  uint8_t *hidden, const int rows)
{
    const size_t columns = task->v_columns;
    decode_context_run(task, tile, r, from, end, task->skips_hidden ? hidden : NULL, rows);
    if (!task->skips_hidden && !part_is_finite(task, (size_t)rows)) {
        task->skips_hidden = true;
        find_hidden_keys(task, tile, from, end, hidden);
        decode_context_run(task, tile, r, from, end, hidden, rows);
    }
    for (size_t n = 0; n < (size_t)rows; n++) {
        const size_t at = (tile->row0 + r + n) * columns;
        const REAL *part = task->part + n * columns;
        if (!all_finite(part, task->job->d_v)) {
            skip_non_finite_values(task, tile, r + n, from, end);
            part = task->part; /* rows before this one are done */
        }
        add_row_compensated(task->o + at, task->o_low + at, 1, part, columns);
    }
}

/* All rows, with this tile: runs of RUN_KEYS, each for all rows while its values are in the cache. */
static void decode_context(struct task *task, const struct tile *tile)
{
    const size_t tile_end = attn_min(tile->to, tile->keys), columns = task->v_columns;
    for (size_t r = 0; r < tile->rows; r++)
        for (size_t d = (tile->row0 + r) * columns; d < (tile->row0 + r + 1) * columns; d += LANES) {
            store(task->o + d, task->alpha[r] * load(task->o + d));
            store(task->o_low + d, task->alpha[r] * load(task->o_low + d));
        }
    memset(task->part, 0, DECODE_TILE_ROWS * columns * sizeof(REAL));
    memset(task->key_is_non_finite, 0, TILE_KEYS);
    task->block_non_finite_keys[0] = 0;
    for (size_t from = tile->from, end; from < tile_end; from = end) {
        end = attn_min(tile_end, from / RUN_KEYS * RUN_KEYS + RUN_KEYS);
        uint8_t hidden[TILE_KEYS];
        size_t r = 0;
        if (task->skips_hidden)
            find_hidden_keys(task, tile, from, end, hidden);
        for (; tile->rows - r >= DECODE_TILE_ROWS; r += DECODE_TILE_ROWS)
            decode_add_run(task, tile, r, from, end, hidden, DECODE_TILE_ROWS);
        for (; r < tile->rows; r++)
            decode_add_run(task, tile, r, from, end, hidden, 1);
    }
}

#endif
