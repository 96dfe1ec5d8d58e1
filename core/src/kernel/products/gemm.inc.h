/*
 * gemm.inc.h: y = x W + b for a block of rows and columns. Part of a kernel.
 *
 * The columns of W are packed panel by panel, once for all rows of the block. Every number of y is a sum over its own
 * row and column, in the order of the features and in runs of GEMM_INNER. So no bit depends on which rows are computed
 * together, or on where blocks end.
 */
#ifndef ATTN_KERNEL_PRODUCTS_GEMM_INC_H
#define ATTN_KERNEL_PRODUCTS_GEMM_INC_H

#include "kernel/entries.h"
#include "kernel/matmul.inc.h"
#if REAL_BITS == 32
#include "kernel/products/halves.inc.h"
#endif

enum {
    ROWS_AHEAD = 16, /* rows of W, prefetched into L2: each is read once from memory */
    FEATURES_AHEAD =
        16, /* features of a panel, prefetched into L1, which is too small for the panel and the rows of x */
    X_STRIDE = GEMM_INNER + LANES,
};
static_assert(GEMM_COLUMNS % PANEL == 0 && GEMM_ROW_UNIT % REGISTER_ROWS == 0 && GEMM_ROWS % GEMM_ROW_UNIT == 0,
              "blocks are whole register tiles");
static_assert(PANEL * GEMM_INNER + GEMM_ROWS * X_STRIDE <= GEMM_SCRATCH, "a panel and rows find room");

/* At most GEMM_INNER features of a block, from one row and column on. */
struct gemm_slice {
    const REAL *x, *bias; /* bias NULL: none, or not in this slice */
    const void *w;
    attn_dtype dtype; /* of w: the kernel's, or 16 bits, which are widened as they are loaded */
    REAL *y;
    size_t x_stride, w_stride, y_stride, features;
    const char *ahead; /* the next panel, prefetched into L2: ahead_step bytes per feature */
    size_t ahead_step;
    bool is_first; /* y is overwritten, not added to */
};

/* The address of number n of W. */
ALWAYS_INLINE const void *weight_at(const void *w, size_t n, const attn_dtype dtype)
{
    return (const char *)w + n * bytes_of(dtype);
}

static void skip_weights(struct gemm_slice *slice, size_t numbers)
{
    slice->w = weight_at(slice->w, numbers, slice->dtype);
}

/*
 * Computes rows by width vectors of y in registers. If pack is not NULL, the columns of W are packed on the way. dtype is
 * that of W, as a constant; packed columns have the kernel's type.
 */
ALWAYS_INLINE void gemm_tile(const struct gemm_slice *slice, const int rows, const int width, const bool is_unpacked,
                             const attn_dtype dtype, REAL *restrict pack)
{
    vec sum[REGISTER_ROWS][8];
    UNROLLED_FOR (r, rows)
        UNROLLED_FOR (c, width)
            sum[r][c] = (vec){0};
    const size_t x_stride = slice->x_stride, w_stride = is_unpacked ? slice->w_stride : PANEL;
    const bool fetches = !is_unpacked && rows > 1; /* for one row the hardware prefetcher is enough */
    const size_t ahead_step = slice->ahead_step;
    const void *w = slice->w;
    const char *ahead = slice->ahead;
    const REAL *x[(REGISTER_ROWS + 2) / 3]; /* one pointer per three rows, because registers are scarce */
    UNROLLED_FOR (three, (rows + 2) / 3)
        x[three] = slice->x + (size_t)(3 * three) * x_stride;
    UNROLLED_FOR (r, rows) /* the hardware prefetcher does not follow rows that are far apart */
        UNROLLED_FOR (c, width)
            if (fetches && c * (int)sizeof(vec) % 64 == 0)
                __builtin_prefetch(slice->y + (size_t)r * slice->y_stride + c * LANES, 1, 2);
    for (size_t d = 0; d < slice->features; d++, w = weight_at(w, w_stride, dtype), ahead += ahead_step) {
        vec columns[8];
        if (fetches || dtype != KERNEL_TYPE)
            __builtin_prefetch(ahead, 0, 2);
        UNROLLED_FOR (c, width) {
            const size_t column = (size_t)c * LANES;
            const bool begins_line = column * bytes_of(dtype) % 64 == 0;
            columns[c] = load_as(w, c * LANES, dtype);
            if (fetches && begins_line)
                __builtin_prefetch(weight_at(w, FEATURES_AHEAD * PANEL + column, dtype), 0, 3);
            if (is_unpacked && begins_line)
                __builtin_prefetch(weight_at(w, ROWS_AHEAD * w_stride + column, dtype), 0, 2);
            if (is_unpacked && c == width - 1) /* the last cache line, if W is not aligned */
                __builtin_prefetch(weight_at(w, ROWS_AHEAD * w_stride + column + LANES - 1, dtype), 0, 2);
            if (pack != NULL)
                store(pack + d * PANEL + column, columns[c]);
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

/* A panel times up to REGISTER_ROWS rows: a whole register tile, or smaller ones. */
ALWAYS_INLINE void gemm_rows(const struct gemm_slice *slice, size_t rows, const bool is_unpacked,
                             const attn_dtype dtype)
{
    struct gemm_slice part = *slice;
    if (rows == REGISTER_ROWS) {
        gemm_tile(slice, REGISTER_ROWS, 2, is_unpacked, dtype, NULL);
        return;
    }
    for (; REGISTER_ROWS > 8 && rows >= 8; rows -= 8, part = rows_after(&part, 8))
        gemm_tile(&part, REGISTER_ROWS > 8 ? 8 : 1, 2, is_unpacked, dtype, NULL);
    for (; rows >= 4; rows -= 4, part = rows_after(&part, 4))
        gemm_tile(&part, 4, 2, is_unpacked, dtype, NULL);
    for (; rows >= 2; rows -= 2, part = rows_after(&part, 2))
        gemm_tile(&part, 2, 2, is_unpacked, dtype, NULL);
    if (rows == 1)
        gemm_tile(&part, 1, 2, is_unpacked, dtype, NULL);
}

/* The same for a panel of which y has columns columns, from column skip on: computed beside y, then copied. */
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
    gemm_rows(&beside, rows, false, KERNEL_TYPE);
    for (size_t r = 0; r < rows; r++)
        memcpy(slice->y + r * slice->y_stride, part + r * PANEL, columns * sizeof(REAL));
}

/* Packs at most LANES columns of W in the layout out_in. */
static void pack_columns(const struct gemm_slice *slice, const void *from, size_t columns, REAL *pack)
{
    const ptrdiff_t stride = (ptrdiff_t)slice->w_stride;
    if (REAL_BITS == 64 || slice->dtype == KERNEL_TYPE)
        pack_lanes(from, stride, columns, slice->features, pack);
    else if (slice->dtype == ATTN_BF16)
        pack_lanes_as(from, stride, columns, slice->features, pack, ATTN_BF16);
    else
        pack_lanes_as(from, stride, columns, slice->features, pack, ATTN_F16);
}

/* Packs columns columns of W into pack[feature][PANEL], padded with 0, and widened. */
static void pack_weight(const struct gemm_slice *slice, attn_layout layout, size_t columns, REAL *pack)
{
    const attn_dtype dtype = slice->dtype;
    const size_t stride = slice->w_stride;
    for (size_t j = 0; layout == ATTN_LAYOUT_OUT_IN && j < PANEL; j += LANES) {
        const size_t left = j < columns ? columns - j : 0;
        pack_columns(slice, weight_at(slice->w, left > 0 ? j * stride : 0, dtype), left, pack + j);
    }
    for (size_t d = 0; layout == ATTN_LAYOUT_IN_OUT && d < slice->features; d++) {
        __builtin_prefetch(weight_at(slice->w, (d + ROWS_AHEAD) * stride, dtype), 0, 2);
        memset(pack + d * PANEL, 0, PANEL * sizeof(REAL));
        widen_row(weight_at(slice->w, d * stride, dtype), dtype, columns, pack + d * PANEL);
    }
}

/* A packed panel times rows rows. y has columns columns of the panel, from column skip on. */
static void gemm_packed_panel(struct gemm_slice slice, size_t rows, size_t skip, size_t columns)
{
    for (size_t row = 0; row < rows; row += REGISTER_ROWS) {
        const size_t tile_rows = attn_min(rows - row, REGISTER_ROWS);
        if (columns == PANEL)
            gemm_rows(&slice, tile_rows, false, KERNEL_TYPE);
        else
            gemm_edge(&slice, tile_rows, skip, columns);
        slice.ahead += slice.features * slice.ahead_step;
        slice = rows_after(&slice, REGISTER_ROWS);
    }
}

/* The product of the first rows, which packs a panel of W on the way, widened. */
static void gemm_packing_tile(const struct gemm_slice *slice, REAL *pack)
{
    if (REAL_BITS == 64 || slice->dtype == KERNEL_TYPE)
        gemm_tile(slice, REGISTER_ROWS, 2, true, KERNEL_TYPE, pack);
    else if (slice->dtype == ATTN_BF16)
        gemm_tile(slice, REGISTER_ROWS, 2, true, ATTN_BF16, pack);
    else
        gemm_tile(slice, REGISTER_ROWS, 2, true, ATTN_F16, pack);
}

/* A panel of W that is not packed, or of 16 bits. y has columns columns of it, from column skip on. */
static void gemm_unpacked_panel(struct gemm_slice slice, attn_layout layout, size_t rows, size_t skip, size_t columns,
                                REAL *pack)
{
    if (layout == ATTN_LAYOUT_IN_OUT && columns == PANEL && rows >= REGISTER_ROWS) {
        gemm_packing_tile(&slice, pack);
        rows -= REGISTER_ROWS;
        slice.ahead += slice.features * slice.ahead_step;
        slice = rows_after(&slice, REGISTER_ROWS);
    } else {
        pack_weight(&slice, layout, skip + columns, pack);
    }
    slice.w = pack;
    slice.dtype = KERNEL_TYPE;
    gemm_packed_panel(slice, rows, skip, columns);
}

/*
 * Copies rows whose stride is a multiple of 4096 bytes, because all rows of a register tile would share a set of the L1
 * cache. A set with room for them needs no copy.
 */
static void avoid_aliasing(struct gemm_slice *slice, size_t rows, size_t ways, REAL *to)
{
    if (slice->x_stride * sizeof(REAL) % 4096 != 0 || ways >= REGISTER_ROWS)
        return;
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * X_STRIDE, slice->x + r * slice->x_stride, slice->features * sizeof(REAL));
    slice->x = to;
    slice->x_stride = X_STRIDE;
}

ALWAYS_INLINE size_t gemv_rows_as(struct gemm_slice slice, size_t rows, size_t columns, const attn_dtype dtype)
{
    size_t done = 0;
    for (size_t step; columns - done >= PANEL; done += step) {
        step = rows == 1 && columns - done >= 8 * LANES ? 8 * LANES : PANEL;
        if (step == PANEL)
            gemm_rows(&slice, rows, true, dtype);
        else
            gemm_tile(&slice, 1, 8, true, dtype, NULL);
        slice.w = weight_at(slice.w, step, dtype);
        slice.y += step;
        slice.bias = slice.bias == NULL ? NULL : slice.bias + step;
    }
    return done;
}

/* GEMV: few rows do not repay packing, so W is read once. One row takes wide steps. Returns the columns done. */
static size_t gemv_rows(const struct gemm_slice *slice, size_t rows, size_t columns)
{
    if (REAL_BITS == 64 || slice->dtype == KERNEL_TYPE)
        return gemv_rows_as(*slice, rows, columns, KERNEL_TYPE);
    return slice->dtype == ATTN_BF16 ? gemv_rows_as(*slice, rows, columns, ATTN_BF16)
                                     : gemv_rows_as(*slice, rows, columns, ATTN_F16);
}

/*
 * The packed panel that is read after the panel at column: the next one of the same features, or the first one of the
 * next features. Columns count from the first panel to end.
 */
static const void *next_panel(const struct attn_gemm_block *block, size_t first, size_t features, size_t column,
                              size_t end)
{
    size_t next = first + features < block->inner ? (first + features) * PANEL : end / PANEL * PANEL * block->inner;
    if (column + PANEL < end)
        next = (column + PANEL) * block->inner + first * PANEL;
    return weight_at(block->panels, next, block->dtype);
}

/* A panel of 16 bits is a weight in the layout in_out: few rows read it, and more rows pack it once more. */
static void gemm_narrow_panel(const struct gemm_slice *slice, size_t rows, size_t skip, size_t columns, REAL *pack)
{
    if (columns == PANEL && rows < REGISTER_ROWS)
        gemv_rows(slice, rows, columns);
    else
        gemm_unpacked_panel(*slice, ATTN_LAYOUT_IN_OUT, rows, skip, columns, pack);
}

#if REAL_BITS == 32
/* The product by a panel of a weight of 16 bits in the layout out_in. */
static void gemm_half_columns(struct gemm_slice slice, size_t rows, REAL *pack)
{
    uint16_t panel[PANEL * GEMM_INNER] __attribute__((aligned(64)));
    pack_halves(slice.w, slice.w_stride, slice.features, panel);
    slice.w = panel;
    slice.w_stride = PANEL;
    gemm_narrow_panel(&slice, rows, 0, PANEL, pack);
}
#endif

/* A panel of W, of which y has columns columns. */
static void gemm_columns(const struct gemm_slice *slice, attn_layout layout, size_t rows, size_t columns, REAL *pack)
{
#if REAL_BITS == 32
    if (layout == ATTN_LAYOUT_OUT_IN && columns == PANEL && slice->dtype != KERNEL_TYPE) {
        gemm_half_columns(*slice, rows, pack);
        return;
    }
#endif
    gemm_unpacked_panel(*slice, layout, rows, 0, columns, pack);
}

/* The product by the packed panels of the block, from feature first on. */
static void gemm_packed_panels(struct gemm_slice slice, const struct attn_gemm_block *block, size_t first, REAL *pack)
{
    const size_t end = block->skip + block->columns;
    const bool is_narrow = block->dtype != KERNEL_TYPE;
    slice.w = weight_at(block->panels, first * PANEL, block->dtype);
    slice.w_stride = PANEL;
    slice.ahead_step = attn_ceil_div(PANEL * REGISTER_ROWS, block->rows) * bytes_of(block->dtype);
    if (is_narrow)
        slice.ahead_step = attn_min(slice.ahead_step, PANEL * sizeof(uint16_t));
    for (size_t column = 0, skip = block->skip; column < end; column += PANEL, skip = 0) {
        const size_t columns = attn_min(end - column, PANEL) - skip;
        slice.ahead = next_panel(block, first, slice.features, column, end);
        if (is_narrow)
            gemm_narrow_panel(&slice, block->rows, skip, columns, pack);
        else
            gemm_packed_panel(slice, block->rows, skip, columns);
        skip_weights(&slice, PANEL * block->inner);
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
        .w = weight_at(block->w, first * (is_in_out ? block->w_stride : 1), block->dtype),
        .dtype = block->dtype,
        .y = block->y,
        .ahead = scratch,
        .x_stride = block->x_stride,
        .w_stride = block->w_stride,
        .y_stride = block->y_stride,
        .features = attn_min(block->inner - first, GEMM_INNER),
        .is_first = first == 0 && !block->adds,
    };
    if (first + slice.features == block->inner)
        slice.bias = block->bias;
    avoid_aliasing(&slice, block->rows, block->cache_ways, pack + PANEL * GEMM_INNER);
    if (block->panels != NULL) {
        gemm_packed_panels(slice, block, first, pack);
        return;
    }
    size_t column = 0;
    if (is_in_out && block->rows < REGISTER_ROWS) {
        column = gemv_rows(&slice, block->rows, block->columns);
        skip_weights(&slice, column);
        slice.y += column;
        slice.bias = slice.bias == NULL ? NULL : slice.bias + column;
    }
    for (; column < block->columns; column += PANEL) {
        gemm_columns(&slice, block->layout, block->rows, attn_min(block->columns - column, PANEL), pack);
        skip_weights(&slice, is_in_out ? PANEL : PANEL * slice.w_stride);
        slice.y += PANEL;
        slice.bias = slice.bias == NULL ? NULL : slice.bias + PANEL;
    }
}

#if REAL_BITS == 32
/* Columns of 16 bits, which stay as they are. */
static void pack_narrow_panel(const struct attn_gemm_block *block, uint16_t *data)
{
    const bool is_in_out = block->layout == ATTN_LAYOUT_IN_OUT;
    const size_t feature_step = is_in_out ? block->w_stride : 1, column_step = is_in_out ? 1 : block->w_stride;
    const uint16_t *w = block->w;
    if (!is_in_out && block->columns == PANEL) {
        pack_halves(w, column_step, block->inner, data);
        return;
    }
    for (size_t d = 0; d < block->inner; d++)
        for (size_t j = 0; j < PANEL; j++)
            data[d * PANEL + j] = j < block->columns ? w[d * feature_step + j * column_step] : 0;
}

static void pack_panel(const struct attn_gemm_block *block, void *data)
{
    if (block->dtype != KERNEL_TYPE) {
        pack_narrow_panel(block, data);
        return;
    }
    const struct gemm_slice slice = {
        .w = block->w, .dtype = block->dtype, .w_stride = block->w_stride, .features = block->inner};
    pack_weight(&slice, block->layout, block->columns, data);
}
#endif

#endif
