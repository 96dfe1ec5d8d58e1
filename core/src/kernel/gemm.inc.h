/*
 * gemm.inc.h: y = x W + b, for a block of rows and columns. Part of attend.inc.h.
 *
 * The columns of W go into a pack, panel by panel, once for all rows of the block. Every number of y is a sum over its
 * own row and column alone, in the order of the features and in runs of GEMM_INNER: which rows are computed together,
 * and where blocks end, changes no bit.
 */
#ifndef ATTN_KERNEL_GEMM_INC_H
#define ATTN_KERNEL_GEMM_INC_H

#include "kernel/kernel.h"
#include "kernel/matmul.inc.h"

enum {
    ROWS_AHEAD = 16,     /* of W, fetched into the second cache: they come from far away, once */
    FEATURES_AHEAD = 16, /* of a panel, fetched into the first cache, where all of it and the rows do not fit */
    X_STRIDE = GEMM_INNER + LANES,
};
static_assert(GEMM_COLUMNS % PANEL == 0 && GEMM_ROW_UNIT % REGISTER_ROWS == 0 && GEMM_ROWS % GEMM_ROW_UNIT == 0,
              "blocks are whole register tiles");
static_assert(PANEL * GEMM_INNER + GEMM_ROWS * X_STRIDE <= GEMM_SCRATCH, "a panel and rows find room");

/* A run of features of a block, from one row and column on. */
struct gemm_slice {
    const REAL *x, *w, *bias; /* bias NULL: none, or not yet */
    REAL *y;
    size_t x_stride, w_stride, y_stride, features;
    const REAL *ahead; /* what the next panel will be, fetched into the second cache by ahead_step numbers a feature */
    size_t ahead_step;
    bool is_first; /* nothing in y yet */
};

/* Adds the product to rows by width vectors of y. A pack that is not NULL gets the columns of W as they pass. */
ALWAYS_INLINE void gemm_tile(const struct gemm_slice *slice, const int rows, const int width, const bool is_unpacked,
                             REAL *restrict pack)
{
    vec sum[REGISTER_ROWS][8];
    UNROLLED_FOR (r, rows)
        UNROLLED_FOR (c, width)
            sum[r][c] = (vec){0};
    const size_t x_stride = slice->x_stride, w_stride = is_unpacked ? slice->w_stride : PANEL;
    const bool fetches = !is_unpacked && rows > 1; /* what one row reads as it comes needs no help */
    const size_t ahead_step = slice->ahead_step;
    const REAL *w = slice->w, *ahead = slice->ahead;
    const REAL *x[(REGISTER_ROWS + 2) / 3]; /* of three rows each: one pointer a row is more than there are registers */
    UNROLLED_FOR (three, (rows + 2) / 3)
        x[three] = slice->x + (size_t)(3 * three) * x_stride;
    for (size_t d = 0; d < slice->features; d++, w += w_stride, ahead += ahead_step) {
        vec columns[8];
        if (fetches)
            __builtin_prefetch(ahead, 0, 2);
        UNROLLED_FOR (c, width) {
            columns[c] = load(w + c * LANES);
            if (fetches && c * VECTOR_BYTES % 64 == 0)
                __builtin_prefetch(w + FEATURES_AHEAD * PANEL + c * LANES, 0, 3);
            if (is_unpacked && c * VECTOR_BYTES % 64 == 0)
                __builtin_prefetch(w + ROWS_AHEAD * w_stride + c * LANES, 0, 2);
            if (is_unpacked && c == width - 1) /* W need not be aligned */
                __builtin_prefetch(w + ROWS_AHEAD * w_stride + width * LANES - 1, 0, 2);
            if (pack != NULL)
                store(pack + d * PANEL + (size_t)c * LANES, columns[c]);
        }
        UNROLLED_FOR (r, rows) {
            REAL feature = x[r / 3][d + (size_t)(r % 3) * x_stride];
            UNROLLED_FOR (c, width)
                sum[r][c] = fma_scalar(feature, columns[c], sum[r][c]);
        }
    }
    UNROLLED_FOR (r, rows)
        UNROLLED_FOR (c, width) {
            REAL *y = slice->y + (size_t)r * slice->y_stride + c * LANES;
            vec total = slice->is_first ? sum[r][c] : sum[r][c] + load(y);
            store(y, slice->bias == NULL ? total : total + load(slice->bias + c * LANES));
        }
}

static struct gemm_slice rows_after(const struct gemm_slice *slice, size_t rows)
{
    struct gemm_slice later = *slice;
    later.x += rows * slice->x_stride;
    later.y += rows * slice->y_stride;
    return later;
}

/* A panel and up to REGISTER_ROWS rows: a whole register tile, or smaller ones. */
ALWAYS_INLINE void gemm_rows(const struct gemm_slice *slice, size_t rows, const bool is_unpacked)
{
    struct gemm_slice part = *slice;
    if (rows == REGISTER_ROWS) {
        gemm_tile(slice, REGISTER_ROWS, 2, is_unpacked, NULL);
        return;
    }
    for (; REGISTER_ROWS > 8 && rows >= 8; rows -= 8, part = rows_after(&part, 8))
        gemm_tile(&part, REGISTER_ROWS > 8 ? 8 : 1, 2, is_unpacked, NULL);
    for (; rows >= 4; rows -= 4, part = rows_after(&part, 4))
        gemm_tile(&part, 4, 2, is_unpacked, NULL);
    for (; rows >= 2; rows -= 2, part = rows_after(&part, 2))
        gemm_tile(&part, 2, 2, is_unpacked, NULL);
    if (rows == 1)
        gemm_tile(&part, 1, 2, is_unpacked, NULL);
}

/* The same for a panel of which y has columns columns, after skip others: computed beside y. */
static void gemm_edge(const struct gemm_slice *slice, size_t rows, size_t skip, size_t columns)
{
    REAL tile[REGISTER_ROWS * PANEL] = {0}, bias[PANEL] = {0};
    REAL *const part = tile + skip;
    struct gemm_slice beside = *slice;
    beside.y = tile;
    beside.y_stride = PANEL;
    if (slice->bias != NULL) {
        memcpy(bias + skip, slice->bias, columns * sizeof(REAL));
        beside.bias = bias;
    }
    for (size_t r = 0; r < rows && !slice->is_first; r++)
        memcpy(part + r * PANEL, slice->y + r * slice->y_stride, columns * sizeof(REAL));
    gemm_rows(&beside, rows, false);
    for (size_t r = 0; r < rows; r++)
        memcpy(slice->y + r * slice->y_stride, part + r * PANEL, columns * sizeof(REAL));
}

/* pack[feature][PANEL] from columns columns of W as they lie; the rest of the panel is 0. */
static void pack_weight(const struct gemm_slice *slice, attn_layout layout, size_t columns, REAL *pack)
{
    if (layout == ATTN_LAYOUT_OUT_IN) {
        for (size_t j = 0; j < PANEL; j += LANES)
            pack_lanes(slice->w + (j < columns ? j * slice->w_stride : 0), (ptrdiff_t)slice->w_stride,
                       j < columns ? columns - j : 0, slice->features, pack + j);
        return;
    }
    for (size_t d = 0; d < slice->features; d++) {
        __builtin_prefetch(slice->w + (d + ROWS_AHEAD) * slice->w_stride, 0, 2);
        memset(pack + d * PANEL, 0, PANEL * sizeof(REAL));
        memcpy(pack + d * PANEL, slice->w + d * slice->w_stride, columns * sizeof(REAL));
    }
}

/* A packed panel, for all rows from run on: columns columns, after skip others. */
static void gemm_packed_panel(struct gemm_slice slice, size_t rows, size_t skip, size_t columns)
{
    for (size_t row = 0; row < rows; row += REGISTER_ROWS) {
        const size_t some = attn_min(rows - row, REGISTER_ROWS);
        if (columns == PANEL)
            gemm_rows(&slice, some, false);
        else
            gemm_edge(&slice, some, skip, columns);
        slice.ahead += slice.features * slice.ahead_step;
        slice = rows_after(&slice, REGISTER_ROWS);
    }
}

/* A panel as it lies in W: the first rows pack it in passing, where they can. */
static void gemm_unpacked_panel(struct gemm_slice slice, attn_layout layout, size_t rows, size_t columns, REAL *pack)
{
    if (layout == ATTN_LAYOUT_IN_OUT && columns == PANEL && rows >= REGISTER_ROWS) {
        gemm_tile(&slice, REGISTER_ROWS, 2, true, pack);
        rows -= REGISTER_ROWS;
        slice = rows_after(&slice, REGISTER_ROWS);
    } else {
        pack_weight(&slice, layout, columns, pack);
    }
    slice.w = slice.ahead = pack;
    gemm_packed_panel(slice, rows, 0, columns);
}

/* Rows that lie a power of two apart would fall into the same few sets of the cache: they are copied. */
static void avoid_aliasing(struct gemm_slice *slice, size_t rows, REAL *to)
{
    if (slice->x_stride * sizeof(REAL) % 4096 != 0)
        return;
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * X_STRIDE, slice->x + r * slice->x_stride, slice->features * sizeof(REAL));
    slice->x = to;
    slice->x_stride = X_STRIDE;
}

/* Few rows do not repay packing: W is read once, as it lies; for one row in wide steps. Returns the columns done. */
static size_t gemv_rows(struct gemm_slice slice, size_t rows, size_t columns)
{
    size_t done = 0;
    for (size_t step; columns - done >= PANEL; done += step) {
        step = rows == 1 && columns - done >= 8 * LANES ? 8 * LANES : PANEL;
        if (step == PANEL)
            gemm_rows(&slice, rows, true);
        else
            gemm_tile(&slice, 1, 8, true, NULL);
        slice.w += step;
        slice.y += step;
        slice.bias = slice.bias == NULL ? NULL : slice.bias + step;
    }
    return done;
}

/*
 * What is multiplied with after the panel at column, counted from the first panel to end, of a run that begins with
 * feature first.
 */
static const REAL *next_panel(const struct attn_gemm_block *block, size_t first, size_t features, size_t column,
                              size_t end)
{
    const REAL *panels = block->panels;
    if (column + PANEL < end)
        return panels + (column + PANEL) * block->inner + first * PANEL;
    return panels + (first + features < block->inner ? (first + features) * PANEL : end / PANEL * PANEL * block->inner);
}

/* The same from panels that are there already, from feature first on. */
static void gemm_packed_panels(struct gemm_slice slice, const struct attn_gemm_block *block, size_t first)
{
    const size_t end = block->skip + block->columns;
    slice.w = (const REAL *)block->panels + first * PANEL;
    slice.ahead_step = (PANEL * REGISTER_ROWS + block->rows - 1) / block->rows;
    for (size_t column = 0, skip = block->skip; column < end; column += PANEL, skip = 0) {
        const size_t columns = attn_min(end - column, PANEL) - skip;
        slice.ahead = next_panel(block, first, slice.features, column, end);
        gemm_packed_panel(slice, block->rows, skip, columns);
        slice.w += PANEL * block->inner;
        slice.y += columns;
        slice.bias = slice.bias == NULL ? NULL : slice.bias + columns;
    }
}

static void multiply(const struct attn_gemm_block *block, size_t first, void *scratch)
{
    const bool is_in_out = block->layout == ATTN_LAYOUT_IN_OUT;
    REAL *pack = scratch;
    struct gemm_slice slice = {
        .x = (const REAL *)block->x + first,
        .w = (const REAL *)block->w + first * (is_in_out ? block->w_stride : 1),
        .y = block->y,
        .x_stride = block->x_stride,
        .w_stride = block->w_stride,
        .y_stride = block->y_stride,
        .features = attn_min(block->inner - first, GEMM_INNER),
        .is_first = first == 0,
    };
    if (first + slice.features == block->inner)
        slice.bias = block->bias;
    avoid_aliasing(&slice, block->rows, pack + PANEL * GEMM_INNER);
    if (block->panels != NULL) {
        gemm_packed_panels(slice, block, first);
        return;
    }
    size_t column = 0;
    if (is_in_out && block->rows < REGISTER_ROWS) {
        column = gemv_rows(slice, block->rows, block->columns);
        slice.w += column;
        slice.y += column;
        slice.bias = slice.bias == NULL ? NULL : slice.bias + column;
    }
    for (; column < block->columns; column += PANEL) {
        gemm_unpacked_panel(slice, block->layout, block->rows, attn_min(block->columns - column, PANEL), pack);
        slice.w += is_in_out ? PANEL : PANEL * slice.w_stride;
        slice.y += PANEL;
        slice.bias = slice.bias == NULL ? NULL : slice.bias + PANEL;
    }
}

#if REAL_BITS == 32
static void pack_panel(const struct attn_gemm_block *block, float *data)
{
    const struct gemm_slice slice = {.w = block->w, .w_stride = block->w_stride, .features = block->inner};
    pack_weight(&slice, block->layout, block->columns, data);
}
#endif

#endif
