/*
 * gemm.inc.h: y = x W + b, for a block of rows and columns. Part of attend.inc.h.
 *
 * The columns of W go into a pack, panel by panel, once for all rows of the block. Every number of y is a sum over its
 * own row and column alone, in the order of the features and in runs of LINEAR_INNER: which rows are computed together,
 * and where blocks end, changes no bit.
 */
enum {
    FN(ROWS_AHEAD) = 16, /* of W, fetched into the second cache: they come from far away, once */
    FN(FEATURES_AHEAD) = 16, /* of a panel, fetched into the first cache, where all of it and the rows do not fit */
    FN(X_STRIDE) = LINEAR_INNER + LANES,
};
#define X_STRIDE FN(X_STRIDE)
static_assert(LINEAR_COLUMNS % PANEL == 0 && LINEAR_GROUP % REGISTER_ROWS == 0 && LINEAR_ROWS % LINEAR_GROUP == 0,
              "blocks are whole register tiles");
static_assert(PANEL * LINEAR_INNER + LINEAR_ROWS * X_STRIDE <= LINEAR_SCRATCH, "a panel and rows find room");

/* A run of features of a block, from one row and column on. */
typedef struct {
    const REAL *x, *w, *bias; /* bias NULL: none, or not yet */
    REAL *y;
    size_t x_stride, w_stride, y_stride, features;
    const REAL *ahead; /* what the next panel will be, fetched into the second cache by ahead_step numbers a feature */
    size_t ahead_step;
    bool is_first; /* nothing in y yet */
} FN(linear);
#define linear_t FN(linear)

/* Adds the product to rows by width vectors of y. A pack that is not NULL gets the columns of W as they pass. */
static inline __attribute__((always_inline)) void FN(linear_tile)(const linear_t *run, const int rows, const int width,
                                                                  const bool is_far, REAL *restrict pack)
{
    vec sum[REGISTER_ROWS][8];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int c = 0; c < width; c++)
            sum[r][c] = (vec){0};
    const size_t x_stride = run->x_stride, w_stride = is_far ? run->w_stride : PANEL;
    const bool fetches = !is_far && rows > 1; /* what one row reads as it comes needs no help */
    const size_t ahead_step = run->ahead_step;
    const REAL *w = run->w, *ahead = run->ahead;
    const REAL *x[(REGISTER_ROWS + 2) / 3]; /* of three rows each: one pointer a row is more than there are registers */
    UNROLL
    for (int r = 0; r < rows; r += 3)
        x[r / 3] = run->x + (size_t)r * x_stride;
    for (size_t d = 0; d < run->features; d++, w += w_stride, ahead += ahead_step) {
        vec columns[8];
        if (fetches)
            __builtin_prefetch(ahead, 0, 2);
        UNROLL
        for (int c = 0; c < width; c++) {
            columns[c] = FN(load)(w + c * LANES);
            if (fetches && c * VECTOR_BYTES % 64 == 0)
                __builtin_prefetch(w + FN(FEATURES_AHEAD) * PANEL + c * LANES, 0, 3);
            if (is_far && c * VECTOR_BYTES % 64 == 0)
                __builtin_prefetch(w + FN(ROWS_AHEAD) * w_stride + c * LANES, 0, 2);
            if (is_far && c == width - 1) /* W need not be aligned */
                __builtin_prefetch(w + FN(ROWS_AHEAD) * w_stride + width * LANES - 1, 0, 2);
            if (pack != NULL)
                FN(store)(pack + d * PANEL + (size_t)c * LANES, columns[c]);
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            REAL feature = x[r / 3][d + (size_t)(r % 3) * x_stride];
            UNROLL
            for (int c = 0; c < width; c++)
                sum[r][c] = FN(fma_number)(feature, columns[c], sum[r][c]);
        }
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
        for (int c = 0; c < width; c++) {
            REAL *y = run->y + (size_t)r * run->y_stride + c * LANES;
            vec total = run->is_first ? sum[r][c] : sum[r][c] + FN(load)(y);
            FN(store)(y, run->bias == NULL ? total : total + FN(load)(run->bias + c * LANES));
        }
}

static linear_t FN(rows_later)(const linear_t *run, size_t rows)
{
    linear_t later = *run;
    later.x += rows * run->x_stride;
    later.y += rows * run->y_stride;
    return later;
}

/* A panel and up to REGISTER_ROWS rows: a whole register tile, or smaller ones. */
static inline __attribute__((always_inline)) void FN(linear_rows)(const linear_t *run, size_t rows, const bool is_far)
{
    linear_t part = *run;
    if (rows == REGISTER_ROWS) {
        FN(linear_tile)(run, REGISTER_ROWS, 2, is_far, NULL);
        return;
    }
    for (; REGISTER_ROWS > 8 && rows >= 8; rows -= 8, part = FN(rows_later)(&part, 8))
        FN(linear_tile)(&part, REGISTER_ROWS > 8 ? 8 : 1, 2, is_far, NULL);
    for (; rows >= 4; rows -= 4, part = FN(rows_later)(&part, 4))
        FN(linear_tile)(&part, 4, 2, is_far, NULL);
    for (; rows >= 2; rows -= 2, part = FN(rows_later)(&part, 2))
        FN(linear_tile)(&part, 2, 2, is_far, NULL);
    if (rows == 1)
        FN(linear_tile)(&part, 1, 2, is_far, NULL);
}

/* The same for a panel of which y has columns columns, after skip others: computed beside y. */
static void FN(linear_edge)(const linear_t *run, size_t rows, size_t skip, size_t columns)
{
    REAL tile[REGISTER_ROWS * PANEL] = {0}, bias[PANEL] = {0};
    REAL *const part = tile + skip;
    linear_t beside = *run;
    beside.y = tile;
    beside.y_stride = PANEL;
    if (run->bias != NULL) {
        memcpy(bias + skip, run->bias, columns * sizeof(REAL));
        beside.bias = bias;
    }
    for (size_t r = 0; r < rows && !run->is_first; r++)
        memcpy(part + r * PANEL, run->y + r * run->y_stride, columns * sizeof(REAL));
    FN(linear_rows)(&beside, rows, false);
    for (size_t r = 0; r < rows; r++)
        memcpy(run->y + r * run->y_stride, part + r * PANEL, columns * sizeof(REAL));
}

/* pack[feature][PANEL] from columns columns of W as they lie; the rest of the panel is 0. */
static void FN(pack_weight)(const linear_t *run, attn_layout layout, size_t columns, REAL *pack)
{
    if (layout == ATTN_LAYOUT_OUT_IN) {
        for (size_t j = 0; j < PANEL; j += LANES)
            FN(pack_some_keys)(run->w + (j < columns ? j * run->w_stride : 0), (ptrdiff_t)run->w_stride,
                               j < columns ? columns - j : 0, run->features, pack + j);
        return;
    }
    for (size_t d = 0; d < run->features; d++) {
        __builtin_prefetch(run->w + (d + FN(ROWS_AHEAD)) * run->w_stride, 0, 2);
        memset(pack + d * PANEL, 0, PANEL * sizeof(REAL));
        memcpy(pack + d * PANEL, run->w + d * run->w_stride, columns * sizeof(REAL));
    }
}

/* A packed panel, for all rows from run on: columns columns, after skip others. */
static void FN(linear_packed)(linear_t run, size_t rows, size_t skip, size_t columns)
{
    for (size_t row = 0; row < rows; row += REGISTER_ROWS) {
        const size_t some = FN(least)(rows - row, REGISTER_ROWS);
        if (columns == PANEL)
            FN(linear_rows)(&run, some, false);
        else
            FN(linear_edge)(&run, some, skip, columns);
        run.ahead += run.features * run.ahead_step;
        run = FN(rows_later)(&run, REGISTER_ROWS);
    }
}

/* A panel as it lies in W: the first rows pack it in passing, where they can. */
static void FN(linear_panel)(linear_t run, attn_layout layout, size_t rows, size_t columns, REAL *pack)
{
    if (layout == ATTN_LAYOUT_IN_OUT && columns == PANEL && rows >= REGISTER_ROWS) {
        FN(linear_tile)(&run, REGISTER_ROWS, 2, true, pack);
        rows -= REGISTER_ROWS;
        run = FN(rows_later)(&run, REGISTER_ROWS);
    } else {
        FN(pack_weight)(&run, layout, columns, pack);
    }
    run.w = run.ahead = pack;
    FN(linear_packed)(run, rows, 0, columns);
}

/* Rows that lie a power of two apart would fall into the same few sets of the cache: they are copied. */
static void FN(spread_rows)(linear_t *run, size_t rows, REAL *to)
{
    if (run->x_stride * sizeof(REAL) % 4096 != 0)
        return;
    for (size_t r = 0; r < rows; r++)
        memcpy(to + r * X_STRIDE, run->x + r * run->x_stride, run->features * sizeof(REAL));
    run->x = to;
    run->x_stride = X_STRIDE;
}

/* Few rows do not repay packing: W is read once, as it lies; for one row in wide steps. Returns the columns done. */
static size_t FN(linear_few_rows)(linear_t run, size_t rows, size_t columns)
{
    size_t done = 0;
    for (size_t step; columns - done >= PANEL; done += step) {
        step = rows == 1 && columns - done >= 8 * LANES ? 8 * LANES : PANEL;
        if (step == PANEL)
            FN(linear_rows)(&run, rows, true);
        else
            FN(linear_tile)(&run, 1, 8, true, NULL);
        run.w += step;
        run.y += step;
        run.bias = run.bias == NULL ? NULL : run.bias + step;
    }
    return done;
}

/*
 * What is multiplied with after the panel at column, counted from the first panel to end, of a run that begins with
 * feature first.
 */
static const REAL *FN(panel_after)(const struct attn_linear_block *block, size_t first, size_t features, size_t column,
                                   size_t end)
{
    const REAL *panels = block->panels;
    if (column + PANEL < end)
        return panels + (column + PANEL) * block->inner + first * PANEL;
    return panels + (first + features < block->inner ? (first + features) * PANEL : end / PANEL * PANEL * block->inner);
}

/* The same from panels that are there already, from feature first on. */
static void FN(linear_panels)(linear_t run, const struct attn_linear_block *block, size_t first)
{
    const size_t end = block->skip + block->columns;
    run.w = (const REAL *)block->panels + first * PANEL;
    run.ahead_step = (PANEL * REGISTER_ROWS + block->rows - 1) / block->rows;
    for (size_t column = 0, skip = block->skip; column < end; column += PANEL, skip = 0) {
        const size_t columns = FN(least)(end - column, PANEL) - skip;
        run.ahead = FN(panel_after)(block, first, run.features, column, end);
        FN(linear_packed)(run, block->rows, skip, columns);
        run.w += PANEL * block->inner;
        run.y += columns;
        run.bias = run.bias == NULL ? NULL : run.bias + columns;
    }
}

static void FN(multiply)(const struct attn_linear_block *block, size_t first, void *scratch)
{
    const bool is_in_out = block->layout == ATTN_LAYOUT_IN_OUT;
    REAL *pack = scratch;
    linear_t run = {
        .x = (const REAL *)block->x + first,
        .w = (const REAL *)block->w + first * (is_in_out ? block->w_stride : 1),
        .y = block->y,
        .x_stride = block->x_stride,
        .w_stride = block->w_stride,
        .y_stride = block->y_stride,
        .features = FN(least)(block->inner - first, LINEAR_INNER),
        .is_first = first == 0,
    };
    if (first + run.features == block->inner)
        run.bias = block->bias;
    FN(spread_rows)(&run, block->rows, pack + PANEL * LINEAR_INNER);
    if (block->panels != NULL) {
        FN(linear_panels)(run, block, first);
        return;
    }
    size_t column = 0;
    if (is_in_out && block->rows < REGISTER_ROWS) {
        column = FN(linear_few_rows)(run, block->rows, block->columns);
        run.w += column;
        run.y += column;
        run.bias = run.bias == NULL ? NULL : run.bias + column;
    }
    for (; column < block->columns; column += PANEL) {
        FN(linear_panel)(run, block->layout, block->rows, FN(least)(block->columns - column, PANEL), pack);
        run.w += is_in_out ? PANEL : PANEL * run.w_stride;
        run.y += PANEL;
        run.bias = run.bias == NULL ? NULL : run.bias + PANEL;
    }
}

#if REAL_BITS == 32
static void FN(pack_panel)(const struct attn_linear_block *block, float *data)
{
    const linear_t run = {.w = block->w, .w_stride = block->w_stride, .features = block->inner};
    FN(pack_weight)(&run, block->layout, block->columns, data);
}
#endif

#undef X_STRIDE
#undef linear_t
