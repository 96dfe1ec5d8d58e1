/*
 * bf16.inc.h: the two products of a tile, q k^T and p v, with operands rounded to bfloat16. Part of a kernel in float.
 *
 * A number of the packs is a pair of bfloat16, the first in the low half: two features of a query or a key, or the
 * weights or values of two keys. Both products of a pair are exact and are added to a sum in float, as the instruction
 * vdpbf16ps of AVX512_BF16 does:
 *
 *     sum = fma(a_high, b_high, sum)
 *     sum = fma(a_low, b_low, sum)
 *
 * Each step rounds to nearest even, and then flushes a subnormal sum to 0. An operand is never subnormal, because
 * rounding flushes it. Without the instruction, the kernels compute the same bits by float or double arithmetic.
 *
 * A sum has one level, unlike those of matmul.inc.h, because rounding the operands costs more digits than a long sum.
 */
#ifndef ATTN_KERNEL_BF16_INC_H
#define ATTN_KERNEL_BF16_INC_H

#include "base/float_mode.h"
#include "kernel/matmul.inc.h"

typedef uint32_t uvec __attribute__((vector_size(VECTOR_BYTES)));
typedef ivec loose_ivec __attribute__((aligned(2), may_alias));
typedef uint16_t bf16_vec __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef bf16_vec loose_bf16_vec __attribute__((aligned(2), may_alias));

/* ---- rounding and packing ---- */

/* Rounds to nearest even. A subnormal number becomes 0; NaN stays NaN; a number beyond the largest becomes infinite. */
static inline bf16_vec round_to_bf16(vec x)
{
#if defined(__AVX512BF16__)
    return (bf16_vec)_mm512_cvtneps_pbh((__m512)x);
#else
    const vec a = abs_vec(x);
    const uvec bits = (uvec)x, is_nan = ~(uvec)(a <= splat(INFINITY)), is_subnormal = (uvec)(a < splat(FLT_MIN));
    const uvec nearest = bits + 0x7fff + ((bits >> 16) & 1), kept = (is_nan & (bits | 0x400000)) | (~is_nan & nearest);
    return __builtin_convertvector((kept & (~is_subnormal | 0x80000000)) >> 16, bf16_vec);
#endif
}

/* The first n numbers of a row, 0 behind them; n below LANES. */
static __attribute__((noinline)) vec load_last(const REAL *from, size_t n)
{
    REAL padded[LANES] = {0};
    for (size_t d = 0; d < n; d++)
        padded[d] = from[d];
    return load(padded);
}

/* Features d … d + LANES of a row, 0 behind the last. */
static inline vec load_features(const REAL *from, size_t d, size_t features)
{
    return d + LANES <= features ? load(from + d) : load_last(from + d, d < features ? features - d : 0);
}

/* Numbers of a row as pairs. to extends to whole vectors. */
static inline void round_row(const REAL *from, size_t n, uint16_t *to)
{
    size_t d = 0;
    for (; d + LANES <= n; d += LANES)
        *(loose_bf16_vec *)(to + d) = round_to_bf16(load(from + d));
    if (d < n)
        *(loose_bf16_vec *)(to + d) = round_to_bf16(load_last(from + d, n - d));
}

/* Pairs of features of a query or a key. The other half of a last pair is 0. */
static size_t pairs_of_row(const struct task *task)
{
    return attn_ceil_div(task->job->d_k, 2);
}

/* From one row of queries or keys to the next: rows extend to whole vectors. */
static size_t bf16_stride(const struct task *task)
{
    return attn_round_up(task->job->d_k, LANES);
}

/* The queries of the tile, and rows of 0 up to whole register tiles. */
static void pack_bf16_queries(struct task *task, const struct tile *tile)
{
    const size_t row = bf16_stride(task);
    for (size_t r = 0; r < attn_round_up(tile->rows, REGISTER_ROWS); r++)
        if (r < tile->rows)
            round_row(query_row(task, tile, r), task->job->d_k, task->q_bf16 + r * row);
        else
            memset(task->q_bf16 + r * row, 0, row * sizeof *task->q_bf16);
}

/* k_pack[block][panel][pair of features][PANEL] */
static void pack_bf16_keys(struct task *task, REAL *to, size_t key0, size_t keys)
{
    const size_t d_k = task->job->d_k, pairs = pairs_of_row(task), row = bf16_stride(task);
    memset(task->k_bf16, 0, LANES * row * sizeof *task->k_bf16);
    for (size_t j = 0; j < attn_round_up(keys, PANEL); j += LANES) {
        for (size_t n = 0; n < LANES && j + n < keys; n++)
            round_row(wide_row(&task->keys, key0 + j + n, d_k, task->gathered), d_k, task->k_bf16 + n * row);
        pack_lanes((const REAL *)(const void *)task->k_bf16, (ptrdiff_t)row / 2, LANES, pairs,
                   to + j / PANEL * PANEL * pairs + j % PANEL);
    }
}

/* Whether every number stays finite when it is rounded to bfloat16. */
static bool all_bf16_finite(const REAL *x, size_t n)
{
    int32_t largest = 0;
    for (size_t d = 0; d < n; d++) {
        int32_t bits;
        memcpy(&bits, &x[d], sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return largest < 0x7f7f8000;
}

/* Packs the values of two keys, each of which has features numbers, or 0 where it is left out. */
static void pack_value_pair(const REAL *const value[2], const size_t features[2], size_t columns, REAL *to, size_t pair)
{
    for (size_t column = 0; column < columns; column += LANES) {
        const size_t panel = column / PANEL * PANEL, width = columns - panel >= PANEL ? PANEL : LANES;
        const uvec low = __builtin_convertvector(round_to_bf16(load_features(value[0], column, features[0])), uvec);
        const uvec high = __builtin_convertvector(round_to_bf16(load_features(value[1], column, features[1])), uvec);
        store(to + panel * (TILE_KEYS / 2) + pair * width + (column - panel), (vec)(low | high << 16));
    }
}

/* v_pack[block][panel of features][pair of keys][columns of the panel], otherwise as pack_values. */
static void pack_bf16_values(struct task *task, REAL *to, size_t block, size_t key0, size_t keys)
{
    const size_t d_v = task->job->d_v;
    uint8_t *non_finite = task->key_is_non_finite + block * TILE_KEYS;
    task->block_non_finite_keys[block] = 0;
    for (size_t j = 0; j < attn_round_up(keys, PANEL); j += 2) {
        const REAL *value[2];
        size_t features[2];
        for (size_t n = 0; n < 2; n++) {
            const bool is_key = j + n < keys;
            value[n] = wide_row(&task->values, key0 + (is_key ? j + n : 0), d_v, task->gathered + n * d_v);
            features[n] = is_key && all_bf16_finite(value[n], d_v) ? d_v : 0;
            if (is_key) {
                non_finite[j + n] = features[n] < d_v;
                task->block_non_finite_keys[block] += non_finite[j + n];
            }
        }
        pack_value_pair(value, features, task->v_columns, to, j / 2);
    }
}

static REAL *bf16_key_block(const struct task *task, size_t block)
{
    return task->k_pack + block * TILE_KEYS * pairs_of_row(task);
}

static REAL *bf16_value_block(const struct task *task, size_t block)
{
    return task->v_pack + block * (TILE_KEYS / 2) * task->v_columns;
}

static void pack_bf16_block(struct task *task, const struct tile *tile)
{
    const size_t block = block_of(task, tile);
    if (task->block_is_packed[block])
        return;
    pack_bf16_keys(task, bf16_key_block(task, block), tile->key0, tile->keys);
    pack_bf16_values(task, bf16_value_block(task, block), block, tile->key0, tile->keys);
    task->block_is_packed[block] = 1;
}

/* ---- the two products ---- */

#if !defined(__AVX512BF16__)
/* a b + c, rounded once and flushed. a b is exact in double, as in float. */
static inline vec fma_flushed(vec a, vec b, vec c)
{
#if defined(__FMA__)
    return fma_vec(a, b, c); /* callers set the mode that flushes */
#else
    /*
     * The sum in double rounds to the same float as the exact sum: where it is not exact, one term is so small that
     * the other is the result. What rounds to 2^-126 if the exponent has no limit is not flushed.
     */
    typedef double wide_vec __attribute__((vector_size(2 * VECTOR_BYTES)));
    typedef int64_t wide_ivec __attribute__((vector_size(2 * VECTOR_BYTES)));
    const wide_vec sum = __builtin_convertvector(a, wide_vec) * __builtin_convertvector(b, wide_vec) +
                         __builtin_convertvector(c, wide_vec);
    const wide_ivec sign = (wide_ivec)sum & INT64_MIN, is_small = (wide_vec)((wide_ivec)sum ^ sign) < 0x1.ffffffp-127;
    return __builtin_convertvector((wide_vec)(((wide_ivec)sum & ~is_small) | sign), vec);
#endif
}

static inline vec low_halves(ivec pairs)
{
    return (vec)((uvec)pairs << 16);
}

static inline vec high_halves(ivec pairs)
{
    return (vec)((uvec)pairs & 0xffff0000);
}
#endif

/* sum + both products of each pair. */
ALWAYS_INLINE vec add_pair(ivec a, ivec b, vec sum)
{
#if defined(__AVX512BF16__)
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
    sum = fma_flushed(high_halves(a), high_halves(b), sum);
    return fma_flushed(low_halves(a), low_halves(b), sum);
#endif
}

/* sum[r][…] += both products of a pair of row r and of a pair of each column, for vectors vectors of columns. */
ALWAYS_INLINE void add_pair_rows(vec sum[][REGISTER_VECTORS], const uint16_t *const *a, size_t a_stride, const REAL *b,
                                 const int vectors)
{
    ivec x[REGISTER_VECTORS];
    UNROLLED_FOR (w, vectors)
        x[w] = *(const loose_ivec *)(const void *)(b + w * LANES);
    UNROLLED_FOR (r, REGISTER_ROWS) {
        int32_t pair;
        memcpy(&pair, a[r / 4] + (size_t)(r % 4) * a_stride, sizeof pair);
        UNROLLED_FOR (w, vectors)
            sum[r][w] = add_pair((ivec){0} + pair, x[w], sum[r][w]);
    }
}

/* A product of one register tile: REGISTER_ROWS rows of pairs by a panel of pairs. */
struct bf16_product {
    const uint16_t *a;
    const REAL *b;
    size_t a_stride, pairs;
    REAL scale;
    bool is_first; /* to = scale a b, otherwise to += a b */
    REAL *to;
    size_t to_stride;
};

ALWAYS_INLINE void multiply_bf16_registers(const struct bf16_product *product, const int vectors)
{
    enum { FOURS = (REGISTER_ROWS + 3) / 4 };
    const size_t a_stride = product->a_stride, to_stride = product->to_stride;
    const REAL scale = product->scale;
    const bool is_first = product->is_first;
    const uint16_t *a[FOURS];
    const REAL *b = product->b;
    REAL *to = product->to;
    vec sum[REGISTER_ROWS][REGISTER_VECTORS];
    for (size_t four = 0; four < FOURS; four++)
        a[four] = product->a + 4 * four * a_stride;
    UNROLLED_FOR (r, REGISTER_ROWS)
        UNROLLED_FOR (w, vectors)
            sum[r][w] = is_first ? (vec){0} : load(to + (size_t)r * to_stride + w * LANES);
    for (size_t left = product->pairs; left > 0; left--, b += vectors * LANES) {
        add_pair_rows(sum, a, a_stride, b, vectors);
        for (int four = 0; four < FOURS; four++)
            a[four] += 2;
    }
    UNROLLED_FOR (r, REGISTER_ROWS)
        UNROLLED_FOR (w, vectors)
            store(to + (size_t)r * to_stride + w * LANES, scale * sum[r][w]);
}

static __attribute__((noinline)) void multiply_bf16_panel(const struct bf16_product *product)
{
    multiply_bf16_registers(product, REGISTER_VECTORS);
}

static __attribute__((noinline)) void multiply_bf16_vector(const struct bf16_product *product)
{
    multiply_bf16_registers(product, 1);
}

/* Scores of the tile times scale. */
static void score_bf16_tile(struct task *task, const struct tile *tile, REAL scale)
{
    const size_t pairs = pairs_of_row(task);
    const REAL *k = bf16_key_block(task, block_of(task, tile));
    struct bf16_product product = {
        .a_stride = bf16_stride(task), .pairs = pairs, .scale = scale, .is_first = true, .to_stride = task->s_stride};
    const uint64_t mode = attn_float_mode_flush();
    for (size_t column = tile->from; column < tile->to; column += PANEL)
        for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS) {
            if (!task->panel_is_seen[r / REGISTER_ROWS * PANELS + column / PANEL])
                continue;
            product.a = task->q_bf16 + r * product.a_stride;
            product.b = k + column * pairs;
            product.to = task->s + r * task->s_stride + column;
            multiply_bf16_panel(&product);
        }
    attn_float_mode_leave(mode);
}

/* Adds p v for the columns from … to of the tile and all features to task->part, for the row group of row r. */
static void context_bf16_run(struct task *task, const struct tile *tile, size_t r, size_t from, size_t to)
{
    const size_t columns = task->v_columns;
    const REAL *v = bf16_value_block(task, block_of(task, tile));
    struct bf16_product product = {
        .a = task->p_bf16, .a_stride = BF16_RUN, .pairs = (to - from) / 2, .scale = 1, .to_stride = columns};
    for (size_t row = 0; row < REGISTER_ROWS; row++)
        round_row(task->s + (r + row) * task->s_stride + from, to - from, task->p_bf16 + row * BF16_RUN);
    for (size_t column = 0; column < columns; column += PANEL) {
        const size_t width = attn_min(columns - column, PANEL);
        product.b = v + column * (TILE_KEYS / 2) + from / 2 * width;
        product.to = task->part + r * columns + column;
        (width == PANEL ? multiply_bf16_panel : multiply_bf16_vector)(&product);
    }
}

/* o = alpha o + p v for all rows of the tile, which share the values of a run while they are in the L1 cache. */
static void context_bf16_tile(struct task *task, const struct tile *tile)
{
    memset(task->part, 0, TILE_ROWS * task->v_columns * sizeof(REAL));
    const uint64_t mode = attn_float_mode_flush();
    for (size_t from = tile->from / BF16_RUN * BF16_RUN; from < tile->to; from += BF16_RUN)
        for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS) {
            const attn_span seen = seen_by_group(task, r, from, attn_min(from + BF16_RUN, tile->to));
            if (seen.from < seen.to)
                context_bf16_run(task, tile, r, seen.from, seen.to);
        }
    attn_float_mode_leave(mode);
    add_parts(task, tile);
}

#endif
