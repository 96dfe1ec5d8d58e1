/*
 * pack.inc.h: keys and values of a tile, packed in the order in which the register tiles of matmul.inc.h read them. Part
 * of a kernel.
 */
#ifndef ATTN_KERNEL_PACK_INC_H
#define ATTN_KERNEL_PACK_INC_H

#include "kernel/scratch.inc.h"

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
ALWAYS_INLINE void transpose_as(const void *from, ptrdiff_t from_stride, REAL *to, size_t to_stride,
                                const attn_dtype dtype)
{
    vec row[LANES], zipped[LANES];
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++)
        row[j] = load_as(from, j * from_stride, dtype);
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

static inline void transpose(const REAL *from, ptrdiff_t from_stride, REAL *to, size_t to_stride)
{
    transpose_as(from, from_stride, to, to_stride, KERNEL_TYPE);
}

/* Packs LANES keys of a panel, padded with 0, and widened. */
ALWAYS_INLINE void pack_lanes_as(const void *from, ptrdiff_t stride, size_t keys, size_t d_k, REAL *to,
                                 const attn_dtype dtype)
{
    size_t d = 0;
    for (; keys >= LANES && d_k - d >= LANES; d += LANES)
        transpose_as((const char *)from + d * bytes_of(dtype), stride, to + d * PANEL, PANEL, dtype);
    for (; d < d_k; d++)
        for (size_t j = 0; j < LANES; j++)
            to[d * PANEL + j] = j < keys ? number_as(from, (ptrdiff_t)j * stride + (ptrdiff_t)d, dtype) : 0;
}

static void pack_lanes(const REAL *from, ptrdiff_t stride, size_t keys, size_t d_k, REAL *to)
{
    pack_lanes_as(from, stride, keys, d_k, to, KERNEL_TYPE);
}

/*
 * Prefetches rows that are packed soon: they may be far apart, and the hardware prefetcher does not learn the order of
 * packing.
 */
enum { PREFETCH_AHEAD = 2 * LANES };
static inline void prefetch_row(const void *row, size_t bytes)
{
    for (size_t byte = 0; byte < bytes; byte += ATTN_ALIGNMENT)
        __builtin_prefetch((const char *)row + byte);
}

static inline void prefetch_rows(const struct head_rows *head, size_t from, size_t count, size_t columns)
{
    for (size_t r = 0; r < count; r++) {
        const struct rows row = rows_from(head, from + r);
        prefetch_row(row.data, columns * bytes_of(row.dtype));
    }
}

/* k_pack[block][panel][d][PANEL] */
static void pack_keys(struct task *task, REAL *to, size_t key0, size_t keys)
{
    const size_t d_k = task->job->d_k;
    for (size_t j = 0; j < attn_round_up(keys, PANEL); j += LANES) {
        const size_t from = attn_min(j, keys), count = attn_min(keys - from, LANES), ahead = j + PREFETCH_AHEAD;
        const struct rows rows = wide_rows(&task->keys, key0 + from, key0 + from + count, d_k, task->gathered);
        if (ahead < keys)
            prefetch_rows(&task->keys, key0 + ahead, attn_min(keys - ahead, LANES), d_k);
        pack_lanes(rows.data, rows.stride, count, d_k, to + j / PANEL * PANEL * d_k + j % PANEL);
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
        const REAL *from = wide_row(&task->values, key0 + j, d_v, task->gathered);
        if (j + PREFETCH_AHEAD < keys)
            prefetch_rows(&task->values, key0 + j + PREFETCH_AHEAD, 1, d_v);
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

/* ---- rows that are packed next ---- */

/* The first rows of a block of keys that lie in one segment, as many as should wait in the second cache. */
static struct rows_ahead first_rows(const struct head_rows *head, size_t from, size_t to, size_t features)
{
    const struct rows rows = rows_from(head, from);
    const size_t together = attn_min(segment_of(head, from).to, to) - from;
    return (struct rows_ahead){rows, attn_min(together, PACK_BYTES / 2 / (features * bytes_of(rows.dtype))), features};
}

static void look_ahead_at(struct task *task, const struct head_rows *keys, const struct head_rows *values, size_t key0)
{
    const struct attn_heads_job *job = task->job;
    const size_t end = attn_min(key0 + TILE_KEYS, job->kv_len);
    task->ahead[0] = first_rows(keys, key0, end, job->d_k);
    task->ahead[1] = first_rows(values, key0, end, job->d_v);
}

/* The next task of this thread probably takes another head: with its first keys its queries are prefetched. */
static void look_ahead_at_head(struct task *task)
{
    const struct attn_heads_job *job = task->job;
    const size_t next = task->b * job->heads + task->h + job->threads;
    struct task other = {.job = job};
    if (job->chunks > 1 || next >= job->batch * job->heads)
        return;
    find_head(job, &other, next);
    look_ahead_at(task, &other.keys, &other.values, 0);
    if (job->kv_len <= TILE_KEYS)
        task->ahead[2] = (struct rows_ahead){{other.q_head, job->q.row_stride, KERNEL_TYPE}, job->q_len, job->d_k};
}

/* Whether some row of the task may see a key of the block. */
static bool reaches_block(const struct task *task, size_t key0)
{
    return task->span[0].from < key0 + TILE_KEYS && task->span[task->rows - 1].to > key0;
}

/*
 * Rows of a small head come from memory in little less time than they are computed in. So the rows of a block are
 * prefetched while the tile before is computed: the tile that ends where the block begins, or, after all rows of the
 * pack or of the task, the last whole tile of rows.
 */
static void look_ahead(struct task *task, const struct tile *tile)
{
    const struct attn_heads_job *job = task->job;
    const size_t next = tile->key0 + TILE_KEYS, pack_end = task->pack_first + job->pack_keys;
    const bool is_last = tile->row0 == (attn_max(task->rows / TILE_ROWS, 1) - 1) * TILE_ROWS;
    if (next >= job->kv_len) {
        if (is_last)
            look_ahead_at_head(task);
    } else if (next < pack_end ? !task->block_is_packed[block_of(task, tile) + 1] : is_last) {
        if (reaches_block(task, next))
            look_ahead_at(task, &task->keys, &task->values, next);
    }
}

/* A few rows for each register tile of scores, into the second cache: at once they would wait for the memory. */
static inline void prefetch_ahead(struct rows_ahead *all, size_t lists)
{
    enum { ROWS_AT_A_TIME = 4 };
    for (size_t list = 0; list < lists; list++) {
        struct rows_ahead *ahead = &all[list];
        for (size_t n = 0; n < ROWS_AT_A_TIME && ahead->count > 0; n++, ahead->count--) {
            for (size_t byte = 0; byte < ahead->features * bytes_of(ahead->rows.dtype); byte += ATTN_ALIGNMENT)
                __builtin_prefetch((const char *)ahead->rows.data + byte, 0, 2);
            ahead->rows.data = row_at(&ahead->rows, 1);
        }
    }
}

static void pack_block(struct task *task, const struct tile *tile)
{
    size_t block = block_of(task, tile);
    if (task->block_is_packed[block])
        return;
    prefetch_rows(&task->values, tile->key0, attn_min(tile->keys, PREFETCH_AHEAD), task->job->d_v);
    pack_keys(task, task->k_pack + block * TILE_KEYS * task->job->d_k, tile->key0, tile->keys);
    pack_values(task, task->v_pack + block * TILE_KEYS * task->v_columns, block, tile->key0, tile->keys);
    task->block_is_packed[block] = 1;
}

#endif
