/*
 * decode.inc.h: the two products of a tile, q k^T and p v, for few queries (decoding). Part of a kernel.
 *
 * Memory bandwidth limits these products. So keys and values are read once and are not packed: packing would cost more
 * than the product.
 */
#ifndef ATTN_KERNEL_DECODE_INC_H
#define ATTN_KERNEL_DECODE_INC_H

#include "kernel/matmul.inc.h"

/* One step of a reduction tree: lane i of the result is x[i] + x[i ^ apart], with x = b if i & apart, else a. */
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
    RUN_FEATURES = 16 * LANES,        /* per partial sum of a score: each lane adds 16 products in a row */
    DOT_VECTORS = 4,                  /* vectors of features per unrolled step */
    DOT_KEYS = LANES < 4 ? LANES : 4, /* keys per step of the reduction */
    VALUES_WIDTH = 8,                 /* the most vectors of features that are summed at a time */
};

/* The sum of q[d] k[d] in each lane, over whole vectors of features; k begins at number at. */
ALWAYS_INLINE vec dot_vectors(const REAL *q, const void *k, ptrdiff_t at, size_t features, const attn_dtype dtype)
{
    vec sum = {0};
    size_t d = 0;
    for (; features - d >= DOT_VECTORS * LANES; d += DOT_VECTORS * LANES)
        UNROLLED_FOR (w, DOT_VECTORS)
            sum = fma_vec(load(q + d + w * LANES), load_as(k, at + (ptrdiff_t)d + w * LANES, dtype), sum);
    for (; d < features; d += LANES)
        sum = fma_vec(load(q + d), load_as(k, at + (ptrdiff_t)d, dtype), sum);
    return sum;
}

/* The first steps of the tree: lane j is the sum of DOT_KEYS neighbouring lanes of sum[j % DOT_KEYS]. */
ALWAYS_INLINE vec reduce_keys(const vec *sum)
{
    const vec first = ADD_PARTNERS(sum[0], sum[1], 1);
    if (LANES < 4)
        return first;
    return ADD_PARTNERS(first, ADD_PARTNERS(sum[DOT_KEYS - 2], sum[DOT_KEYS - 1], 1), 2);
}

/* The remaining steps: lane j is the sum of all lanes for key j. */
ALWAYS_INLINE vec reduce_lanes(const vec *partial)
{
    if (LANES <= 4)
        return partial[0];
    const vec first = ADD_PARTNERS(partial[0], partial[1], 4);
    if (LANES == 8)
        return first;
    return ADD_PARTNERS(first, ADD_PARTNERS(partial[LANES / 4 - 2], partial[LANES / 4 - 1], 4), 8);
}

/* q k_j over whole vectors of features, in lane j for LANES keys. */
ALWAYS_INLINE vec dot_lanes(const REAL *q, const void *k, ptrdiff_t at, ptrdiff_t k_stride, size_t features,
                            const attn_dtype dtype)
{
    vec partial[LANES / DOT_KEYS];
    UNROLLED_FOR (n, LANES / DOT_KEYS) {
        vec sum[DOT_KEYS];
        UNROLLED_FOR (j, DOT_KEYS)
            sum[j] = dot_vectors(q, k, at + j * k_stride, features, dtype);
        partial[n] = reduce_keys(sum);
        at += DOT_KEYS * k_stride;
    }
    return reduce_lanes(partial);
}

/*
 * The same with constant loop bounds for the most frequent sizes of heads, where the keys are in the L1 cache already and
 * need no widening. For keys in memory the bounds are variable: then the compiler reads the keys in the order of their
 * addresses, which the hardware prefetcher follows.
 */
ALWAYS_INLINE vec dot_run(const REAL *q, const void *k, ptrdiff_t at, ptrdiff_t k_stride, size_t features,
                          bool is_cached, const attn_dtype dtype)
{
    if (dtype == KERNEL_TYPE && is_cached && features == 4 * LANES)
        return dot_lanes(q, k, at, k_stride, 4 * LANES, dtype);
    if (dtype == KERNEL_TYPE && is_cached && features == 8 * LANES)
        return dot_lanes(q, k, at, k_stride, 8 * LANES, dtype);
    return dot_lanes(q, k, at, k_stride, features, dtype);
}

/* q k_j for LANES keys: runs of RUN_FEATURES, then one by one the features behind the last whole vector. */
ALWAYS_INLINE vec score_keys_as(const REAL *q, const void *k, ptrdiff_t k_stride, size_t d_k, bool is_cached,
                                const attn_dtype dtype)
{
    const size_t whole = d_k / LANES * LANES;
    vec all = {0};
    for (size_t d = 0; d < whole; d += RUN_FEATURES)
        all += dot_run(q + d, k, (ptrdiff_t)d, k_stride, attn_min(whole - d, RUN_FEATURES), is_cached, dtype);
    for (size_t d = whole; d < d_k; d++) {
        vec feature = {0}; /* gcc at -O2 does not see that each lane is set */
        for (int j = 0; j < LANES; j++)
            feature[j] = number_as(k, j * k_stride + (ptrdiff_t)d, dtype);
        all = fma_scalar(q[d], feature, all);
    }
    return all;
}

/* The same for keys of one type. */
static vec score_keys(const REAL *q, const void *k, ptrdiff_t k_stride, size_t d_k, bool is_cached, attn_dtype dtype)
{
#if REAL_BITS == 32
    if (dtype == ATTN_BF16)
        return score_keys_as(q, k, k_stride, d_k, is_cached, ATTN_BF16);
    if (dtype == ATTN_F16)
        return score_keys_as(q, k, k_stride, d_k, is_cached, ATTN_F16);
#endif
    (void)dtype;
    return score_keys_as(q, k, k_stride, d_k, is_cached, KERNEL_TYPE);
}

/*
 * Scores of one row for at most LANES keys from … end of segment, which k begins with. If they are fewer than LANES,
 * they are computed with the keys before them, or one by one. A score has the same bits in every lane. There is one call
 * of score_keys, because the compiler would copy its long loops for a second one with a stride of 0.
 */
static inline void decode_score_row(const REAL *q, const struct rows *k, size_t d_k, attn_span segment, size_t from,
                                    size_t end, bool is_cached, REAL scale, REAL *s)
{
    const bool is_short = end - segment.from < LANES;
    const ptrdiff_t stride = is_short ? 0 : k->stride;
    for (size_t c = is_short ? from : attn_min(from, end - LANES); c < end; c += is_short ? 1 : LANES) {
        const void *key = row_at(k, (ptrdiff_t)(c - segment.from));
        const vec scores = scale * score_keys(q, key, stride, d_k, is_cached, k->dtype);
        if (is_short)
            s[c] = scores[0];
        else
            store(s + c, scores);
    }
}

static const REAL *decode_query(const struct task *task, size_t row)
{
    const struct position position = position_of(task, row);
    return head_of(&task->job->q, task->b, position.h) + (ptrdiff_t)position.i * task->job->q.row_stride;
}

/* The columns of the tile whose keys lie in one segment with the key of column. */
static inline attn_span segment_in_tile(const struct task *task, const struct tile *tile, size_t column)
{
    const attn_span segment = segment_of(&task->keys, tile->key0 + column);
    return (attn_span){segment.from > tile->key0 ? segment.from - tile->key0 : 0,
                       attn_min(segment.to - tile->key0, tile->keys)};
}

/*
 * Scores of the tile times scale: LANES keys for all rows at a time. Keys behind the last have 0. Not inlined, or the
 * compiler would copy the loops of score_keys for the one row of recompute_row.
 */
static __attribute__((noinline)) void decode_scores(struct task *task, const struct tile *tile, REAL scale)
{
    const size_t d_k = task->job->d_k, end = attn_min(tile->to, tile->keys);
    const REAL *q[DECODE_ROWS];
    for (size_t r = 0; r < tile->rows; r++)
        q[r] = decode_query(task, tile->row0 + r);
    for (size_t from = tile->from, to; from < end; from = to) {
        const attn_span segment = segment_in_tile(task, tile, from);
        const struct rows k = rows_from(&task->keys, tile->key0 + segment.from);
        to = attn_min(from + LANES, attn_min(segment.to, end));
        for (size_t r = 0; r < tile->rows; r++)
            decode_score_row(q[r], &k, d_k, segment, from, to, r > 0, scale, task->s + r * TILE_STRIDE);
    }
    for (size_t r = 0; r < tile->rows && end < tile->to; r++)
        memset(task->s + r * TILE_STRIDE + end, 0, (tile->to - end) * sizeof(REAL));
}

/* n numbers, fewer than LANES, padded with 0. */
ALWAYS_INLINE vec load_partial(const void *from, size_t n, const attn_dtype dtype)
{
    if (dtype != KERNEL_TYPE) {
        uint16_t halves[LANES] = {0};
        memcpy(halves, from, n * sizeof *halves);
        return load_as(halves, 0, dtype);
    }
#if defined(__AVX512F__) && REAL_BITS == 32
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), from);
#elif defined(__AVX512F__)
    return (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), from);
#else
    REAL padded[LANES] = {0};
    memcpy(padded, from, n * sizeof *padded);
    return load(padded);
#endif
}

/*
 * part[row][…] = the sum over keys from … end of p[row][key] v[key][…], added to part unless is_first, for width
 * vectors of features. It is a sum of sums of SUM_KEYS keys, which begin at multiples of SUM_KEYS. v is the value of
 * key from; skipped: keys to leave out, NULL: none; features: LANES, or the features of a head that is narrower than a
 * vector.
 */
ALWAYS_INLINE void decode_context_tile(const REAL *p, const void *v, ptrdiff_t v_stride, size_t from, size_t end,
                                       const uint8_t *skipped, bool is_first, REAL *part, size_t columns,
                                       const int rows, const int width, size_t features, const attn_dtype dtype)
{
    const char *value = v;
    vec all[DECODE_TILE_ROWS][VALUES_WIDTH], sum[DECODE_TILE_ROWS][VALUES_WIDTH];
    UNROLLED_FOR (r, rows)
        UNROLLED_FOR (w, width)
            all[r][w] = is_first ? (vec){0} : load(part + (size_t)r * columns + w * LANES);
    for (size_t j = from; j < end;) {
        const size_t sum_end = attn_min(end, j / SUM_KEYS * SUM_KEYS + SUM_KEYS);
        UNROLLED_FOR (r, rows)
            UNROLLED_FOR (w, width)
                sum[r][w] = (vec){0};
        for (; j < sum_end; j++, value += v_stride * (ptrdiff_t)bytes_of(dtype)) {
            if (skipped != NULL && skipped[j])
                continue;
            UNROLLED_FOR (w, width) {
                const vec x =
                    features < LANES ? load_partial(value, features, dtype) : load_as(value, w * LANES, dtype);
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

/* Number at of the value of key from of the run. */
static inline const void *value_at(const struct rows *v, size_t key, size_t at)
{
    return (const char *)row_at(v, (ptrdiff_t)key) + at * bytes_of(v->dtype);
}

/* The same for rows rows of the tile from r on into task->part: the features that are whole vectors. */
ALWAYS_INLINE void decode_context_vectors(const struct task *task, const struct rows *v, size_t first, size_t r,
                                          size_t from, size_t end, const uint8_t *skipped, const int rows,
                                          const attn_dtype dtype)
{
    const size_t d_v = task->job->d_v, columns = task->v_columns;
    const REAL *p = task->s + r * TILE_STRIDE;
    const bool is_first = from == first;
    REAL *part = task->part;
    size_t d = 0;
    for (; rows == 1 && d_v - d >= 8 * LANES; d += 8 * LANES)
        decode_context_tile(p, value_at(v, from - first, d), v->stride, from, end, skipped, is_first, part + d, columns,
                            1, 8, LANES, dtype);
    for (; d_v - d >= 4 * LANES; d += 4 * LANES)
        decode_context_tile(p, value_at(v, from - first, d), v->stride, from, end, skipped, is_first, part + d, columns,
                            rows, 4, LANES, dtype);
    for (; d_v - d >= LANES; d += LANES)
        decode_context_tile(p, value_at(v, from - first, d), v->stride, from, end, skipped, is_first, part + d, columns,
                            rows, 1, LANES, dtype);
}

/*
 * The same for all features. task->part is overwritten. Long values are processed SUM_KEYS keys at a time, so that they
 * stay in the cache. v is the value of key from.
 */
ALWAYS_INLINE void decode_context_run_as(const struct task *task, const struct rows *v, size_t r, size_t from,
                                         size_t end, const uint8_t *skipped, const int rows, const attn_dtype dtype)
{
    const size_t d_v = task->job->d_v, columns = task->v_columns;
    const size_t step = d_v > 8 * LANES ? SUM_KEYS : RUN_KEYS;
    for (size_t at = from, to; d_v >= LANES && at < end; at = to) {
        to = attn_min(end, at / step * step + step);
        decode_context_vectors(task, v, from, r, at, to, skipped, rows, dtype);
    }
    if (d_v % LANES != 0) { /* the last LANES features: some are computed twice, with the same bits */
        const size_t features = attn_min(d_v, LANES), d = d_v - features;
        decode_context_tile(task->s + r * TILE_STRIDE, value_at(v, 0, d), v->stride, from, end, skipped, true,
                            task->part + d, columns, rows, 1, features, dtype);
    }
}

/* The same for one row, or for DECODE_TILE_ROWS of them. */
ALWAYS_INLINE void decode_context_rows(const struct task *task, const struct rows *v, size_t r, size_t from, size_t end,
                                       const uint8_t *skipped, size_t rows, const attn_dtype dtype)
{
    if (rows == 1)
        decode_context_run_as(task, v, r, from, end, skipped, 1, dtype);
    else
        decode_context_run_as(task, v, r, from, end, skipped, DECODE_TILE_ROWS, dtype);
}

/*
 * The same for a run of the tile, whose values are of one type, or gathered from both segments. Not inlined, or the
 * compiler would copy these loops for each of its calls: a kernel in float would take 1.4 times as long to compile, and
 * would not be faster.
 */
static __attribute__((noinline)) void decode_context_run(const struct task *task, const struct tile *tile, size_t r,
                                                         size_t from, size_t end, const uint8_t *skipped, size_t rows)
{
    const struct rows v =
        rows_together(&task->values, tile->key0 + from, tile->key0 + end, task->job->d_v, task->gathered);
#if REAL_BITS == 32
    if (v.dtype == ATTN_BF16) {
        decode_context_rows(task, &v, r, from, end, skipped, rows, ATTN_BF16);
        return;
    }
    if (v.dtype == ATTN_F16) {
        decode_context_rows(task, &v, r, from, end, skipped, rows, ATTN_F16);
        return;
    }
#endif
    decode_context_rows(task, &v, r, from, end, skipped, rows, KERNEL_TYPE);
}

/* Marks the keys from … end of the tile whose values are not finite; returns whether there is one. */
static bool find_non_finite_values(const struct task *task, const struct tile *tile, size_t from, size_t end,
                                   uint8_t *non_finite)
{
    uint8_t any = 0;
    for (size_t j = from; j < end; j++) {
        const REAL *v = wide_row(&task->values, tile->key0 + j, task->job->d_v, task->gathered);
        non_finite[j] = !all_finite(v, task->job->d_v);
        any |= non_finite[j];
    }
    return any != 0;
}

/* A row of task->part without the values that are not finite: add_non_finite_values adds them. */
static void skip_non_finite_values(struct task *task, const struct tile *tile, size_t r, size_t from, size_t end)
{
    task->block_non_finite_keys[0] |= find_non_finite_values(task, tile, from, end, task->key_is_non_finite);
    decode_context_run(task, tile, r, from, end, task->key_is_non_finite, 1);
}

/* Marks the keys from … end that no row of the tile sees. Their weight is 0 in every row, so they can be skipped. */
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

/* Whether the first rows rows of task->part are finite. */
static inline bool part_is_finite(const struct task *task, size_t rows)
{
    bool is_finite = true;
    for (size_t n = 0; n < rows && is_finite; n++)
        is_finite = all_finite(task->part + n * task->v_columns, task->job->d_v);
    return is_finite;
}

/*
 * Adds keys from … end of the tile to o and o_low of rows rows from r on. A value that is not finite makes the sums of
 * every row not finite, even with weight 0. When that happens first, the task skips hidden keys from then on. If a sum
 * is still not finite, every value is checked. hidden: the hidden keys, valid if the task skips them.
 */
static void decode_add_run(struct task *task, const struct tile *tile, size_t r, size_t from, size_t end,
                           uint8_t *hidden, size_t rows)
{
    const size_t columns = task->v_columns;
    decode_context_run(task, tile, r, from, end, task->skips_hidden ? hidden : NULL, rows);
    if (!task->skips_hidden && !part_is_finite(task, rows)) {
        task->skips_hidden = true;
        find_hidden_keys(task, tile, from, end, hidden);
        decode_context_run(task, tile, r, from, end, hidden, rows);
    }
    for (size_t n = 0; n < rows; n++) {
        const size_t at = (tile->row0 + r + n) * columns;
        const REAL *part = task->part + n * columns;
        if (!all_finite(part, task->job->d_v)) {
            skip_non_finite_values(task, tile, r + n, from, end);
            part = task->part; /* the rows before this one are done */
        }
        add_row_compensated(task->o + at, task->o_low + at, 1, part, columns);
    }
}

/* Adds this tile to o of all rows: runs of RUN_KEYS, each for all rows while its values are in the cache. */
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
