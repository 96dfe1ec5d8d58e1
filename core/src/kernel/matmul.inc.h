/*
 * matmul.inc.h: the two products of a tile, q k^T and p v, for many queries, by register blocking. Part of a kernel.
 *
 * Keys and values are packed in the order in which the register tiles read them.
 */
#ifndef ATTN_KERNEL_MATMUL_INC_H
#define ATTN_KERNEL_MATMUL_INC_H

#include "kernel/scratch.inc.h"

/* ---- packing ---- */

/* Interleaves the lanes of the first halves, or the second halves, of a and b. */
static inline vec zip_low(vec a, vec b)
{
#if LANES == 16
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif LANES == 8
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#elif LANES == 4
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#else
    return __builtin_shufflevector(a, b, 0, 2);
#endif
}

static inline vec zip_high(vec a, vec b)
{
#if LANES == 16
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif LANES == 8
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#elif LANES == 4
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#else
    return __builtin_shufflevector(a, b, 1, 3);
#endif
}

/* to[d][j] = from[j][d], LANES by LANES: log2 LANES rounds that interleave rows j and j + LANES / 2. */
static inline void transpose(const REAL *from, ptrdiff_t from_stride, REAL *to, size_t to_stride)
{
    vec row[LANES], zipped[LANES];
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++)
        row[j] = load(from + j * from_stride);
    for (int round = 1; round < LANES; round *= 2) {
#pragma GCC unroll 8
        for (int j = 0; j < LANES / 2; j++) {
            zipped[2 * j] = zip_low(row[j], row[j + LANES / 2]);
            zipped[2 * j + 1] = zip_high(row[j], row[j + LANES / 2]);
        }
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++)
            row[j] = zipped[j];
    }
#pragma GCC unroll 16
    for (int d = 0; d < LANES; d++)
        store(to + (size_t)d * to_stride, row[d]);
}

/* Packs LANES keys of a panel, padded with 0. */
static void pack_lanes(const REAL *from, ptrdiff_t stride, size_t keys, size_t d_k, REAL *to)
{
    size_t d = 0;
    for (; keys >= LANES && d_k - d >= LANES; d += LANES)
        transpose(from + d, stride, to + d * PANEL, PANEL);
    for (; d < d_k; d++)
        for (size_t j = 0; j < LANES; j++)
            to[d * PANEL + j] = j < keys ? from[(ptrdiff_t)j * stride + (ptrdiff_t)d] : 0;
}

/*
 * Prefetches rows that are packed soon: they may be far apart, and the hardware prefetcher does not learn the order of
 * packing.
 */
enum { PREFETCH_AHEAD = 2 * LANES };
static inline void prefetch_rows(const REAL *from, ptrdiff_t stride, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++, from += stride)
        for (size_t d = 0; d < columns; d += ATTN_ALIGNMENT / sizeof(REAL))
            __builtin_prefetch(from + d);
}

/* k_pack[block][panel][d][PANEL] */
static void pack_keys(struct task *task, REAL *to, size_t key0, size_t keys)
{
    const size_t d_k = task->job->d_k;
    const ptrdiff_t stride = task->job->k.row_stride;
    for (size_t j = 0; j < attn_round_up(keys, PANEL); j += LANES) {
        const REAL *from = task->k_head + (j < keys ? (ptrdiff_t)(key0 + j) * stride : 0);
        if (j + PREFETCH_AHEAD < keys)
            prefetch_rows(from + PREFETCH_AHEAD * stride, stride, attn_min(keys - j - PREFETCH_AHEAD, LANES), d_k);
        pack_lanes(from, stride, j < keys ? keys - j : 0, d_k, to + j / PANEL * PANEL * d_k + j % PANEL);
    }
}

static const REAL *query_row(const struct task *task, const struct tile *tile, size_t r)
{
    return task->q_head + (ptrdiff_t)(task->first_row + tile->row0 + r) * task->job->q.row_stride;
}

/* Queries are not packed, except a last group of fewer than REGISTER_ROWS rows, which is padded with 0. */
static void pack_last_queries(struct task *task, const struct tile *tile)
{
    const size_t d_k = task->job->d_k, first = tile->rows / REGISTER_ROWS * REGISTER_ROWS;
    for (size_t r = 0; r < REGISTER_ROWS && first < tile->rows; r++)
        if (first + r < tile->rows)
            memcpy(task->q_pack + r * d_k, query_row(task, tile, first + r), d_k * sizeof(REAL));
        else
            memset(task->q_pack + r * d_k, 0, d_k * sizeof(REAL));
}

static bool all_finite(const REAL *x, size_t n)
{
    INTEGER largest = 0;
    const INTEGER exponent = (INTEGER)(((INTEGER)2 * EXPONENT_BIAS + 1) << MANTISSA_BITS);
    for (size_t d = 0; d < n; d++) {
        INTEGER bits;
        memcpy(&bits, &x[d], sizeof bits);
        bits &= exponent;
        largest = bits > largest ? bits : largest;
    }
    return largest < exponent;
}

/* Packs one value, padded with 0 behind features. */
static void pack_value(const REAL *from, size_t features, size_t columns, REAL *to, size_t key)
{
    size_t column = 0;
    for (; features - column >= PANEL; column += PANEL) {
        REAL *row = to + column * TILE_KEYS + key * PANEL;
        store(row, load(from + column));
        store(row + LANES, load(from + column + LANES));
    }
    while (column < columns) {
        const size_t width = columns - column >= PANEL ? PANEL : LANES;
        REAL *row = to + column * TILE_KEYS + key * width;
        for (size_t d = 0; d < width; d++)
            row[d] = column + d < features ? from[column + d] : 0;
        column += width;
    }
}

/*
 * v_pack[block][panel of features][key][columns of the panel], padded with 0. A value that is not finite is packed as
 * 0, because 0 times it would be NaN in rows that may not see it. add_non_finite_values adds it.
 */
static void pack_values(struct task *task, REAL *to, size_t block, size_t key0, size_t keys)
{
    const size_t d_v = task->job->d_v;
    uint8_t *non_finite = task->key_is_non_finite + block * TILE_KEYS;
    task->block_non_finite_keys[block] = 0;
    for (size_t j = 0; j < keys; j++) {
        const REAL *from = task->v_head + (ptrdiff_t)(key0 + j) * task->job->v.row_stride;
        if (j + PREFETCH_AHEAD < keys)
            prefetch_rows(from + PREFETCH_AHEAD * task->job->v.row_stride, 0, 1, d_v);
        non_finite[j] = !all_finite(from, d_v);
        task->block_non_finite_keys[block] += non_finite[j];
        pack_value(from, non_finite[j] ? 0 : d_v, task->v_columns, to, j);
    }
    const size_t padding = attn_round_up(keys, PANEL) - keys; /* further panels are never read */
    for (size_t column = 0; column < task->v_columns;) {
        size_t width = task->v_columns - column >= PANEL ? PANEL : LANES;
        memset(to + column * TILE_KEYS + keys * width, 0, padding * width * sizeof(REAL));
        column += width;
    }
}

static size_t block_of(const struct task *task, const struct tile *tile)
{
    return (tile->key0 - task->pack_first) / TILE_KEYS;
}

static void pack_block(struct task *task, const struct tile *tile)
{
    size_t block = block_of(task, tile);
    if (task->block_is_packed[block])
        return;
    pack_keys(task, task->k_pack + block * TILE_KEYS * task->job->d_k, tile->key0, tile->keys);
    pack_values(task, task->v_pack + block * TILE_KEYS * task->v_columns, block, tile->key0, tile->keys);
    task->block_is_packed[block] = 1;
}

/* ---- the two products ---- */

/*
 * A score is a sum of partial sums, which round less: each has SUM_FEATURES products, in heads of more than LONG_HEAD
 * features half as many. After LONGEST_SUM features the sum of the partial sums is scaled and added to the score.
 */
enum { SUM_FEATURES = 32, LONG_HEAD = 64, LONGEST_SUM = 256 };

/*
 * A register tile: REGISTER_ROWS rows of scalars a times REGISTER_VECTORS vectors of b. The sums are added to sums of
 * sums. AVX-512 has registers for both if a tile is one vector wide, and reaches 0.96 of the peak. Two wide, the sums
 * of sums spill to memory, and it is 0.88. With 16 registers there are too few sums to hide the latency, so the sums
 * of sums spill.
 */
enum { FOURS = (REGISTER_ROWS + 3) / 4 };

/* A pointer for each four rows: x86 addresses all four by one pointer, the stride and three times the stride. */
struct row_pointers {
    const REAL *four[FOURS];
    ptrdiff_t stride;
};

static inline struct row_pointers row_pointers_of(const REAL *a, ptrdiff_t stride)
{
    struct row_pointers rows = {.stride = stride};
    for (int four = 0; four < FOURS; four++)
        rows.four[four] = a + 4 * four * stride;
    return rows;
}

/* sum[r][…] += a[r][i] b[…] */
ALWAYS_INLINE void add_products(vec sum[][REGISTER_VECTORS], const struct row_pointers *a, size_t i,
                                const REAL *restrict b, const int width)
{
    vec x[REGISTER_VECTORS];
#pragma GCC unroll 2
    for (int w = 0; w < width; w++)
        x[w] = load(b + w * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++) {
        const REAL number = a->four[r / 4][r % 4 * a->stride + (ptrdiff_t)i];
#pragma GCC unroll 2
        for (int w = 0; w < width; w++)
            sum[r][w] = fma_scalar(number, x[w], sum[r][w]);
    }
}

ALWAYS_INLINE void add_sums(vec part[][REGISTER_VECTORS], vec sum[][REGISTER_VECTORS], const int width)
{
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
#pragma GCC unroll 2
        for (int w = 0; w < width; w++)
            part[r][w] += sum[r][w];
}

/*
 * s[r][…] = scale times the sum over features of q[r][d] k[d][…], added to s unless is_first, for REGISTER_ROWS rows
 * and REGISTER_VECTORS vectors of keys: a sum of sums of run products.
 */
static __attribute__((noinline)) void score_register_tile(const struct row_pointers *q, const REAL *restrict k,
                                                          size_t features, size_t run, bool is_first, REAL *restrict s,
                                                          REAL scale)
{
    vec part[REGISTER_ROWS][REGISTER_VECTORS] = {0};
    for (size_t d = 0; d < features;) {
        const size_t end = attn_min(features, d + run);
        vec sum[REGISTER_ROWS][REGISTER_VECTORS] = {0};
        for (; d < end; d++, k += PANEL)
            add_products(sum, q, d, k, REGISTER_VECTORS);
        add_sums(part, sum, REGISTER_VECTORS);
    }
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
#pragma GCC unroll 2
        for (int w = 0; w < REGISTER_VECTORS; w++) {
            REAL *at = s + r * TILE_STRIDE + w * LANES;
            store(at, is_first ? scale * part[r][w] : load(at) + scale * part[r][w]);
        }
}

/* The scores of a panel of keys against all rows. */
static void score_panel(const struct task *task, const struct tile *tile, const REAL *k, size_t column, REAL scale)
{
    const size_t d_k = task->job->d_k, run = d_k > LONG_HEAD ? SUM_FEATURES / 2 : SUM_FEATURES;
    for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS) {
        if (!task->panel_is_seen[r / REGISTER_ROWS * PANELS + column / PANEL])
            continue;
        const bool is_full = tile->rows - r >= REGISTER_ROWS;
        const REAL *first_row = is_full ? query_row(task, tile, r) : task->q_pack;
        const ptrdiff_t stride = is_full ? task->job->q.row_stride : (ptrdiff_t)d_k;
        REAL *s = task->s + r * TILE_STRIDE + column;
        for (size_t d = 0; d < d_k; d += LONGEST_SUM) {
            const struct row_pointers q = row_pointers_of(first_row + d, stride);
            const size_t features = attn_min(d_k - d, LONGEST_SUM);
            for (size_t c = 0; c < PANEL; c += REGISTER_VECTORS * LANES)
                score_register_tile(&q, k + d * PANEL + c, features, run, d == 0, s + c, scale);
        }
    }
}

/* Scores of the tile times scale. */
static void score_tile(struct task *task, const struct tile *tile, REAL scale)
{
    const size_t d_k = task->job->d_k;
    const REAL *k = task->k_pack + (block_of(task, tile) * TILE_KEYS + tile->from) * d_k;
    for (size_t column = tile->from; column < tile->to; column += PANEL, k += PANEL * d_k)
        score_panel(task, tile, k, column, scale);
}

/*
 * total[r][…] = the sum over keys from … to of p[r][key] v[key][…], added to total unless is_first, for REGISTER_ROWS
 * rows and width vectors of features: a sum of sums of SUM_KEYS keys, which begin at multiples of SUM_KEYS.
 */
ALWAYS_INLINE void context_register_tile(const REAL *restrict p, const REAL *restrict v, size_t v_stride, size_t from,
                                         size_t to, bool is_first, REAL *restrict total, size_t stride, const int width)
{
    const struct row_pointers rows = row_pointers_of(p, TILE_STRIDE);
    vec part[REGISTER_ROWS][REGISTER_VECTORS] = {0};
    for (size_t j = from; j < to;) {
        const size_t end = attn_min(to, j / SUM_KEYS * SUM_KEYS + SUM_KEYS);
        vec sum[REGISTER_ROWS][REGISTER_VECTORS] = {0};
        for (; j < end; j++, v += v_stride)
            add_products(sum, &rows, j, v, width);
        add_sums(part, sum, width);
    }
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
#pragma GCC unroll 2
        for (int w = 0; w < width; w++) {
            REAL *at = total + (size_t)r * stride + (size_t)w * LANES;
            store(at, is_first ? part[r][w] : part[r][w] + load(at));
        }
}

/* p v of a row group for columns from … to, into task->part; added to it unless is_first. */
static void context_run(struct task *task, const struct tile *tile, size_t r, size_t from, size_t to, bool is_first)
{
    const size_t columns = task->v_columns;
    const REAL *v = task->v_pack + block_of(task, tile) * TILE_KEYS * columns;
    const REAL *p = task->s + r * TILE_STRIDE;
    for (size_t panel = 0; panel < columns; panel += PANEL) {
        const size_t panel_width = attn_min(columns - panel, PANEL);
        const REAL *at = v + panel * TILE_KEYS + from * panel_width;
        REAL *total = task->part + panel;
        size_t c = 0;
        for (; panel_width - c >= REGISTER_VECTORS * LANES; c += REGISTER_VECTORS * LANES)
            context_register_tile(p, at + c, panel_width, from, to, is_first, total + c, columns, REGISTER_VECTORS);
        for (; c < panel_width; c += LANES)
            context_register_tile(p, at + c, panel_width, from, to, is_first, total + c, columns, 1);
    }
}

/* o = alpha o + part for a row group, with the rounding errors in o_low. */
static void add_part(struct task *task, const struct tile *tile, size_t r)
{
    const size_t columns = task->v_columns;
    for (size_t row = 0; row < REGISTER_ROWS; row++) {
        const size_t at = (tile->row0 + r + row) * columns;
        add_row_compensated(task->o + at, task->o_low + at, task->alpha[r + row], task->part + row * columns, columns);
    }
}

/*
 * Adds this tile to o of a row group. Runs of RUN_KEYS keys begin at multiples of RUN_KEYS, so positions alone fix the
 * order of a sum. Each run is cut to the panels from the first to the last that some row of the group sees; unseen
 * panels between them have weight 0.
 */
static void context_group(struct task *task, const struct tile *tile, size_t r)
{
    enum { RUN = RUN_KEYS / PANEL };
    const uint8_t *seen = task->panel_is_seen + r / REGISTER_ROWS * PANELS;
    bool is_first = true;
    for (size_t run = tile->from / RUN_KEYS * RUN; run < tile->to / PANEL; run += RUN) {
        size_t from = run > tile->from / PANEL ? run : tile->from / PANEL;
        size_t to = attn_min(run + RUN, tile->to / PANEL);
        while (from < to && !seen[from])
            from++;
        while (from < to && !seen[to - 1])
            to--;
        if (from == to)
            continue;
        context_run(task, tile, r, from * PANEL, to * PANEL, is_first);
        is_first = false;
    }
    if (!is_first)
        add_part(task, tile, r);
}

/* The columns of the tile that row r may see: those of the span whose *allow is set; *allow NULL: all of them. */
static attn_span seen_columns(const struct task *task, const struct tile *tile, size_t r, const uint8_t **allow)
{
    const attn_span span = task->span[r];
    const size_t from = span.from > tile->key0 ? span.from - tile->key0 : 0;
    const size_t to = span.to > tile->key0 ? span.to - tile->key0 : 0;
    *allow = attn_mask_has_lookup(task->job->mask) ? task->allow + r * TILE_KEYS : NULL;
    return (attn_span){from > tile->from ? from : tile->from, attn_min(to, attn_min(tile->to, tile->keys))};
}

/* The first column from … to that is set in non_finite, and in allow unless that is NULL; eight at a time. */
static size_t next_non_finite(const uint8_t *non_finite, const uint8_t *allow, size_t from, size_t to)
{
    for (; from + 8 <= to; from += 8) {
        uint64_t flags, allowed = UINT64_MAX;
        memcpy(&flags, non_finite + from, sizeof flags);
        if (allow != NULL)
            memcpy(&allowed, allow + from, sizeof allowed);
        if ((flags & allowed) != 0)
            break;
    }
    while (from < to && !(non_finite[from] != 0 && (allow == NULL || allow[from] != 0)))
        from++;
    return from;
}

/* o += weight v, for a value that is not finite. */
static void add_non_finite_value(REAL weight, const REAL *v, size_t d_v, REAL *o)
{
    size_t d = 0;
    for (; d_v - d >= LANES; d += LANES)
        store(o + d, fma_scalar(weight, load(v + d), load(o + d)));
    for (; d < d_v; d++)
        o[d] += weight * v[d];
}

/* Adds p v for the values that were left out, to the rows that may see them. */
static void add_non_finite_values(struct task *task, const struct tile *tile)
{
    const struct attn_heads_job *job = task->job;
    const size_t block = job->is_decode ? 0 : block_of(task, tile);
    const uint8_t *non_finite = task->key_is_non_finite + block * TILE_KEYS, *allow;
    if (task->block_non_finite_keys[block] == 0)
        return;
    for (size_t r = 0; r < tile->rows; r++) {
        const attn_span seen = seen_columns(task, tile, r, &allow);
        REAL *o = task->o + (tile->row0 + r) * task->v_columns;
        for (size_t j = seen.from; (j = next_non_finite(non_finite, allow, j, seen.to)) < seen.to; j++) {
            const REAL *v = task->v_head + (ptrdiff_t)(tile->key0 + j) * job->v.row_stride;
            add_non_finite_value(task->s[r * TILE_STRIDE + j], v, job->d_v, o);
            task->row_sees_key[tile->row0 + r] |= SEES_NON_FINITE;
        }
    }
}

#endif
