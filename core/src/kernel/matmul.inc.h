/*
 * matmul.inc.h: the two products of a tile, q k^T and p v, for many queries, by register blocking. Part of a kernel.
 */
#ifndef ATTN_KERNEL_MATMUL_INC_H
#define ATTN_KERNEL_MATMUL_INC_H

#include "kernel/pack.inc.h"
#include "kernel/softmax.inc.h"

/* The numbers of a product that are added one after the other. Longer products are sums of such sums, which round less. */
enum { RUN_PRODUCTS = 64 };
static_assert((int)RUN_KEYS <= (int)RUN_PRODUCTS, "a run of keys is one sum");

/*
 * A product of register tiles that lie below each other: groups of REGISTER_ROWS rows of n scalars a times n rows of a
 * whole panel of b, or of one vector; n <= RUN_PRODUCTS.
 */
struct register_product {
    const REAL *a, *b;
    ptrdiff_t a_stride;
    size_t b_stride, groups, n;
    REAL scale;
    const REAL *add; /* to = add + scale a b; NULL: nothing is added; rows are to_stride apart, as those of to */
    REAL *to;
    size_t to_stride;
    /* prefetched meanwhile: rows that are read next, and where a map will be written; 0 and NULL: nothing */
    struct rows_ahead *ahead;
    size_t lists_ahead;
    const REAL *map;
    size_t map_stride;
};

/* sum[r][…] += a[r][i] b[…] */
ALWAYS_INLINE void add_products(vec sum[][REGISTER_VECTORS], const REAL *const *a, ptrdiff_t stride,
                                const REAL *restrict b, const int width)
{
    vec x[REGISTER_VECTORS];
#pragma GCC unroll 2
    for (int w = 0; w < width; w++)
        x[w] = load(b + w * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++) {
        const REAL number = a[r / 4][r % 4 * stride];
#pragma GCC unroll 2
        for (int w = 0; w < width; w++)
            sum[r][w] = fma_scalar(number, x[w], sum[r][w]);
    }
}

/* at: the first number of the register tile in to. */
ALWAYS_INLINE void store_sums(const struct register_product *product, size_t at, vec sum[][REGISTER_VECTORS],
                              const int width)
{
    const REAL scale = product->scale, *add = product->add;
    REAL *to = product->to;
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++, at += product->to_stride)
#pragma GCC unroll 2
        for (int w = 0; w < width; w++) {
            const size_t here = at + (size_t)w * LANES;
            store(to + here, add == NULL ? scale * sum[r][w] : load(add + here) + scale * sum[r][w]);
        }
}

/* A register tile of the map: its lines may come from memory, and are needed when the softmax is done. */
static inline void prefetch_map(const REAL *map, size_t stride)
{
    for (size_t r = 0; r < REGISTER_ROWS; r++, map += stride)
        for (size_t byte = 0; byte < PANEL * sizeof(REAL); byte += ATTN_ALIGNMENT)
            __builtin_prefetch((const char *)map + byte, 1);
}

/* 6 rows of 2 vectors take 8 loads for 12 multiply-adds, and 15 registers. */
ALWAYS_INLINE void multiply_registers(const struct register_product *product, const int width)
{
    enum { FOURS = (REGISTER_ROWS + 3) / 4 };
    const ptrdiff_t stride = product->a_stride;
    const size_t b_stride = product->b_stride, n = product->n;
    const REAL *rows = product->a, *map = product->map;
    for (size_t group = 0; group < product->groups; group++, rows += REGISTER_ROWS * stride) {
        prefetch_ahead(product->ahead, product->lists_ahead);
        if (map != NULL) {
            prefetch_map(map, product->map_stride);
            map += REGISTER_ROWS * product->map_stride;
        }
        const REAL *b = product->b;
        const REAL *a[FOURS]; /* x86 addresses four rows by one pointer, the stride and three times the stride */
        for (int four = 0; four < FOURS; four++)
            a[four] = rows + 4 * four * stride;
        vec sum[REGISTER_ROWS][REGISTER_VECTORS] = {0};
#pragma GCC unroll 4
        for (size_t i = 0; i < n; i++, b += b_stride) {
            add_products(sum, a, stride, b, width);
            for (int four = 0; four < FOURS; four++)
                a[four]++;
        }
        store_sums(product, group * REGISTER_ROWS * product->to_stride, sum, width);
    }
}

static __attribute__((noinline)) void multiply_by_panel(const struct register_product *product)
{
    multiply_registers(product, REGISTER_VECTORS);
}

static __attribute__((noinline)) void multiply_by_vector(const struct register_product *product)
{
    multiply_registers(product, 1);
}

/* Where the weights of row r will be kept from a column on; NULL if nowhere, or not side by side. */
static const REAL *place_of_weights(const struct task *task, const struct tile *tile, size_t r, size_t column)
{
    const struct attn_heads_job *job = task->job;
    const int which = job->map[MAP_ATTENTION].data != NULL ? MAP_ATTENTION : MAP_MEAN_SOURCE;
    if (task->streams_maps || !wants_weights(job) || job->key_slot != NULL || job->query_slot != NULL)
        return NULL;
    const REAL *row = map_row(task, which, position_of(task, tile->row0 + r));
    return row == NULL ? NULL : row + tile->key0 + column;
}

/* The scores of a panel of keys against some groups of rows: whole ones, or the last one, which is packed. */
static void score_groups(struct task *task, const struct tile *tile, const REAL *k, size_t column, size_t r,
                         size_t groups, REAL scale)
{
    const size_t d_k = task->job->d_k;
    const bool is_full = tile->rows - r >= REGISTER_ROWS;
    const REAL *first_row = is_full ? query_row(task, tile, r) : task->q_pack;
    struct register_product product = {.a_stride = is_full ? task->job->q.row_stride : (ptrdiff_t)d_k,
                                       .b_stride = PANEL,
                                       .groups = groups,
                                       .scale = scale,
                                       .to = task->s + r * task->s_stride + column,
                                       .to_stride = task->s_stride,
                                       .ahead = task->ahead,
                                       .lists_ahead = AHEAD,
                                       .map = place_of_weights(task, tile, r, column),
                                       .map_stride = task->job->kept_keys};
    for (size_t d = 0; d < d_k; d += RUN_PRODUCTS) {
        product.a = first_row + d;
        product.b = k + d * PANEL;
        product.n = attn_min(d_k - d, RUN_PRODUCTS);
        product.add = d == 0 ? NULL : product.to;
        multiply_by_panel(&product);
    }
}

/* The scores of a panel of keys against all rows: whole groups side by side that see it are one product. */
static void score_panel(struct task *task, const struct tile *tile, const REAL *k, size_t column, REAL scale)
{
    const size_t whole = tile->rows / REGISTER_ROWS, all = attn_ceil_div(tile->rows, REGISTER_ROWS);
    const uint8_t *seen = task->panel_is_seen + column / PANEL;
    for (size_t group = 0, end; group < all; group = end) {
        for (end = group; end < whole && seen[end * PANELS]; end++) {
        }
        if (end > group) {
            score_groups(task, tile, k, column, group * REGISTER_ROWS, end - group, scale);
            continue;
        }
        end = group + 1;
        if (group == whole && seen[group * PANELS])
            score_groups(task, tile, k, column, group * REGISTER_ROWS, 1, scale);
    }
}

/* Scores of the tile times scale. */
static void score_tile(struct task *task, const struct tile *tile, REAL scale)
{
    look_ahead(task, tile);
    const size_t d_k = task->job->d_k;
    const REAL *k = task->k_pack + (block_of(task, tile) * TILE_KEYS + tile->from) * d_k;
    for (size_t column = tile->from; column < tile->to; column += PANEL, k += PANEL * d_k)
        score_panel(task, tile, k, column, scale);
}

/* The columns from … to, cut to the panels from the first to the last that some row of the group of row r sees. */
static attn_span seen_by_group(const struct task *task, size_t r, size_t from, size_t to)
{
    const attn_span reach = task->reach[r / REGISTER_ROWS];
    const uint8_t *seen = task->panel_is_seen + r / REGISTER_ROWS * PANELS;
    from = attn_max(from, reach.from);
    to = attn_min(to, reach.to);
    while (from < to && !seen[from / PANEL])
        from += PANEL;
    while (from < to && !seen[to / PANEL - 1])
        to -= PANEL;
    return (attn_span){from, from < to ? to : from};
}

/* How many groups from that of row r on see the same columns. */
static size_t groups_that_share(const struct task *task, const struct tile *tile, size_t r, size_t from, size_t to)
{
    const attn_span seen = seen_by_group(task, r, from, to);
    size_t groups = 1;
    for (r += REGISTER_ROWS; r < tile->rows; r += REGISTER_ROWS, groups++) {
        const attn_span next = seen_by_group(task, r, from, to);
        if (next.from != seen.from || next.to != seen.to)
            break;
    }
    return groups;
}

/* Adds p v for the columns from … to of the tile, at most a run, and a panel of features to task->part. */
static void context_panel(struct task *task, const struct tile *tile, size_t panel, size_t from, size_t to)
{
    const size_t columns = task->v_columns, width = attn_min(columns - panel, PANEL);
    const REAL *v = task->v_pack + block_of(task, tile) * TILE_KEYS * columns + panel * TILE_KEYS;
    struct register_product product = {
        .a_stride = (ptrdiff_t)task->s_stride, .b_stride = width, .scale = 1, .to_stride = columns};
    for (size_t r = 0; r < tile->rows; r += product.groups * REGISTER_ROWS) {
        const attn_span seen = seen_by_group(task, r, from, to);
        product.groups = groups_that_share(task, tile, r, from, to);
        if (seen.from == seen.to)
            continue;
        product.a = task->s + r * task->s_stride + seen.from;
        product.b = v + seen.from * width;
        product.n = seen.to - seen.from;
        product.add = product.to = task->part + r * columns + panel;
        (width == PANEL ? multiply_by_panel : multiply_by_vector)(&product);
    }
}

/* o = alpha o + part for the rows of the tile that see a key of it. */
static void add_parts(struct task *task, const struct tile *tile)
{
    const size_t columns = task->v_columns;
    for (size_t r = 0; r < tile->rows; r++) {
        const attn_span reach = task->reach[r / REGISTER_ROWS];
        const size_t at = (tile->row0 + r) * columns;
        if (reach.from < reach.to)
            add_row_compensated(task->o + at, task->o_low + at, task->alpha[r], task->part + r * columns, columns);
    }
}

/*
 * o = alpha o + p v for all rows of the tile. Runs of RUN_KEYS keys begin at multiples of RUN_KEYS, so positions alone
 * fix the order of a sum. All rows share the values of a run while they are in the L1 cache. Unseen panels between the
 * seen ones of a run have weight 0.
 */
static void context_tile(struct task *task, const struct tile *tile)
{
    const size_t columns = task->v_columns;
    memset(task->part, 0, TILE_ROWS * columns * sizeof(REAL));
    for (size_t from = tile->from / RUN_KEYS * RUN_KEYS; from < tile->to; from += RUN_KEYS)
        for (size_t panel = 0; panel < columns; panel += PANEL)
            context_panel(task, tile, panel, from, attn_min(from + RUN_KEYS, tile->to));
    add_parts(task, tile);
}

/* The columns of the tile that row r may see: those of the span whose *allow is set; *allow NULL: all of them. */
static attn_span seen_columns(const struct task *task, const struct tile *tile, size_t r, const uint8_t **allow)
{
    *allow = attn_mask_has_lookup(task->job->mask) ? task->allow + r * TILE_KEYS : NULL;
    return columns_of_span(tile, task->span[tile->row0 + r]);
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
    const size_t block = is_decode(job) ? 0 : block_of(task, tile);
    const uint8_t *non_finite = task->key_is_non_finite + block * TILE_KEYS, *allow;
    if (task->block_non_finite_keys[block] == 0)
        return;
    for (size_t r = 0; r < tile->rows; r++) {
        const attn_span seen = seen_columns(task, tile, r, &allow);
        REAL *o = task->o + (tile->row0 + r) * task->v_columns;
        for (size_t j = seen.from; (j = next_non_finite(non_finite, allow, j, seen.to)) < seen.to; j++) {
            const REAL *v = wide_row(&task->values, tile->key0 + j, job->d_v, task->gathered);
            add_non_finite_value(task->s[r * task->s_stride + j], v, job->d_v, o);
            task->row_sees_key[tile->row0 + r] |= SEES_NON_FINITE;
        }
    }
}

#endif
