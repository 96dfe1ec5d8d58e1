/*
 * backward.inc.h: one row of a tile of the backward pass: from q·k and dO·v to the weights and the gradient of the
 * scores. Part of a kernel.
 *
 *     s = scale x, c tanh(s / c), + bias     p = exp(s - lse)     dS = p (dP - delta)     dX = dS (1 - tanh^2)
 */
#ifndef ATTN_KERNEL_PRODUCTS_BACKWARD_INC_H
#define ATTN_KERNEL_PRODUCTS_BACKWARD_INC_H

#include "kernel/entries.h"
#include "kernel/pack.inc.h"
#include "kernel/vector/operations.inc.h"

static void backward_row(const struct attn_backward_row *row)
{
    REAL *x = row->x, *g = row->g, *masked = row->masked;
    const REAL *added = row->added;
    const REAL scale = (REAL)row->job->scale, softcap = (REAL)row->job->options->softcap, gain = (REAL)row->gain;
    const REAL lse = (REAL)row->lse, delta = (REAL)row->delta;
    const vec zero = {0};
    for (size_t c = 0; c < row->n; c += LANES) {
        vec s = load(x + c) * scale, slope = splat(1), kept = splat(1);
        if (softcap > 0) {
            vec t = tanh_vec(s / softcap);
            s = softcap * t;
            slope = fma_vec(-t, t, splat(1));
        }
        if (added != NULL)
            s += load(added + c);
        if (row->keep != NULL)
            kept = blend(mask_from_bytes(row->keep + c), splat(gain), zero);
        vec p = exp_vec(s - lse);
        vec ds = p * fma_vec(load(g + c), kept, splat(-delta));
        p *= kept;
        if (row->allow != NULL) {
            const ivec allowed = mask_from_bytes(row->allow + c);
            p = blend(allowed, p, zero);
            ds = blend(allowed, ds, zero);
            slope = blend(allowed, slope, zero);
        }
        if (masked != NULL)
            store(masked + c, ds);
        store(x + c, p);
        store(g + c, ds * slope);
    }
}

/*
 * ---- backward_product ----
 *
 * The products of a tile of the backward pass, by register blocking, and the copies that they
 * read. Part of a kernel.
 */

/* Rows of a register tile, which is two vectors wide: its sums fit the registers, and hide the latency of the FMA. */
enum { PRODUCT_ROWS = VECTOR_BYTES == 64 ? 12 : 6, PRODUCT_VECTORS = 2, PRODUCT_THREES = PRODUCT_ROWS / 3 };
static_assert(BACKWARD_ROW_UNIT % PRODUCT_ROWS == 0 && BACKWARD_COLUMN_UNIT % LANES == 0, "buffers hold whole tiles");

/* ---- copies ---- */

/* Copies a row, and returns whether every number is finite: 0 times infinity or NaN is NaN. */
static bool copy_row(const REAL *from, size_t features, REAL *to)
{
    vec zero = {0};
    size_t f = 0;
    for (; features - f >= LANES; f += LANES) {
        const vec x = load(from + f);
        zero = fma_scalar(0, x, zero);
        store(to + f, x);
    }
    if (f < features) {
        REAL rest[LANES] = {0};
        memcpy(rest, from + f, (features - f) * sizeof(REAL));
        zero = fma_scalar(0, load(rest), zero);
        store(to + f, load(rest));
    }
    return sum_lanes(zero) == 0;
}

static void backward_pack(struct attn_backward_rows *rows)
{
    const REAL *from = (const REAL *)(const void *)rows->original;
    REAL *to = (REAL *)(void *)rows->copy;
    rows->any_non_finite = false;
    for (size_t r = 0; r < rows->count; r++, from += rows->original_stride, to += rows->stride) {
        if (r + PREFETCH_AHEAD < rows->count)
            prefetch_row(from + PREFETCH_AHEAD * rows->original_stride, rows->features * sizeof(REAL));
        rows->is_non_finite[r] = !copy_row(from, rows->features, to);
        if (!rows->is_non_finite[r])
            continue;
        rows->any_non_finite = true;
        memset(to, 0, rows->features * sizeof(REAL));
    }
}

/* The buffers have room for whole blocks of LANES by LANES numbers. */
static void backward_transpose(const struct attn_backward_rows *rows, void *transposed, size_t stride)
{
    const REAL *from = (const REAL *)(const void *)rows->copy;
    for (size_t r = 0; r < rows->count; r += LANES)
        for (size_t f = 0; f < rows->features; f += LANES)
            transpose(from + r * rows->stride + f, (ptrdiff_t)rows->stride, (REAL *)transposed + f * stride + r,
                      stride);
}

/* ---- products ---- */

/* Numbers that are added before their sum is added to y: more than the rows or keys of a tile. */
enum { PRODUCT_INNER = 256 };

/* The part of a product that one register tile computes. */
struct product_part {
    const REAL *a, *b;
    REAL *y;
    size_t rows, inner; /* rows that are stored */
    bool adds;
};

ALWAYS_INLINE void product_tile(const struct product_part *part, size_t a_stride, size_t b_stride, size_t y_stride,
                                const int width, const bool a_is_transposed)
{
    vec sum[PRODUCT_ROWS][PRODUCT_VECTORS] = {0};
    const REAL *b = part->b, *a[PRODUCT_THREES]; /* one pointer per three rows, because registers are scarce */
    UNROLLED_FOR (three, PRODUCT_THREES)
        a[three] = part->a + (size_t)(3 * three) * (a_is_transposed ? 1 : a_stride);
    const size_t a_row = a_is_transposed ? 1 : a_stride, a_step = a_is_transposed ? a_stride : 1;
    for (size_t i = 0; i < part->inner; i++, b += b_stride) {
        vec columns[PRODUCT_VECTORS];
        UNROLLED_FOR (c, width)
            columns[c] = load(b + c * LANES);
        UNROLLED_FOR (r, PRODUCT_ROWS) {
            const REAL number = a[r / 3][i * a_step + (size_t)(r % 3) * a_row];
            UNROLLED_FOR (c, width)
                sum[r][c] = fma_scalar(number, columns[c], sum[r][c]);
        }
    }
    UNROLLED_FOR (r, PRODUCT_ROWS) {
        if ((size_t)r == part->rows)
            break;
        UNROLLED_FOR (c, width) {
            REAL *y = part->y + (size_t)r * y_stride + c * LANES;
            store(y, part->adds ? sum[r][c] + load(y) : sum[r][c]);
        }
    }
}

/* Some columns of a product, at most two vectors: all rows. */
ALWAYS_INLINE void product_panel(const struct attn_backward_product *product, struct product_part part, const int width,
                                 const bool a_is_transposed)
{
    const size_t a_row = a_is_transposed ? 1 : product->a_stride;
    for (size_t row = 0; row < product->rows; row += PRODUCT_ROWS) {
        part.rows = attn_min(product->rows - row, PRODUCT_ROWS);
        product_tile(&part, product->a_stride, product->b_stride, product->y_stride, width, a_is_transposed);
        part.a += PRODUCT_ROWS * a_row;
        part.y += PRODUCT_ROWS * product->y_stride;
    }
}

ALWAYS_INLINE void product_panels(const struct attn_backward_product *product, struct product_part part,
                                  const bool a_is_transposed)
{
    size_t column = 0;
    for (; product->columns - column > LANES && column < product->columns; column += PANEL) {
        product_panel(product, part, 2, a_is_transposed);
        part.b += PANEL;
        part.y += PANEL;
    }
    if (column < product->columns)
        product_panel(product, part, 1, a_is_transposed);
}

static void backward_multiply(const struct attn_backward_product *product)
{
    struct product_part part = {.adds = product->adds};
    for (size_t i = 0; i < product->inner || (i == 0 && !product->adds); i += PRODUCT_INNER) {
        part.a = (const REAL *)product->a + i * (product->a_is_transposed ? product->a_stride : 1);
        part.b = (const REAL *)product->b + i * product->b_stride;
        part.y = product->y;
        part.inner = attn_min(product->inner - i, PRODUCT_INNER);
        if (product->a_is_transposed)
            product_panels(product, part, true);
        else
            product_panels(product, part, false);
        part.adds = true;
    }
}

#endif
