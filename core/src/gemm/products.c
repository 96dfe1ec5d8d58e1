/* products.c: the large products of a layer as tasks, each a block of rows and columns. */
#include "gemm/gemm.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"
#include "base/size.h"

enum {
    /* The BLAS rounds a row by the number of other rows, so its blocks depend only on the shape of one item. */
    BLAS_ROWS = 128,
    BLAS_COLUMNS = 256,
    BLAS_INNER = 4096, /* a call takes milliseconds at most; cancellation is checked between calls */
    /*
     * Small, so that every thread gets several tasks and all threads end together. With few rows, blocks are wider, so
     * that longer ranges of a weight's row are read.
     */
    KERNEL_COLUMNS = GEMM_COLUMNS / 2,
    KERNEL_FEW_ROWS = 48,
    /* The columns of a long weight in the layout out_in are read from end to end: only so many at once. */
    KERNEL_LONG = 3 * GEMM_INNER,
    KERNEL_LONG_COLUMNS = 32,
};

struct products_run {
    struct attn_product *products;
    size_t count, element;
    attn_dtype compute;
    attn_layout layout;
    const attn_runtime *runtime;
    attn_multiply *multiply; /* the kernel's; NULL: the BLAS is faster */
    size_t cache_ways;
    char *scratch;
    size_t scratch_bytes; /* of a thread */
};

/* The ways of a set of the L1 cache; 0 if the system does not say. */
static size_t cache_ways(void)
{
#ifdef _SC_LEVEL1_DCACHE_ASSOC
    const long ways = sysconf(_SC_LEVEL1_DCACHE_ASSOC);
    return ways > 0 ? (size_t)ways : 0;
#else
    return 0;
#endif
}

size_t attn_narrow_inner(attn_dtype compute, attn_layout layout, const attn_tensor *weight)
{
    if (weight == NULL || weight->dtype == compute)
        return 0;
    const size_t outer = weight->shape[layout == ATTN_LAYOUT_IN_OUT ? weight->rank - 1 : 0];
    return outer == 0 ? 0 : attn_tensor_count(weight) / outer;
}

/* The BLAS reads a widened block of a weight of 16 bits. */
size_t attn_products_scratch_bytes(const attn_kernel *kernel, attn_dtype compute, size_t narrow_inner)
{
    const bool is_by_blas = kernel == NULL || !attn_kernel_of(kernel, compute)->multiplies_faster;
    const size_t widened = is_by_blas ? BLAS_COLUMNS * attn_min(narrow_inner, BLAS_INNER) : 0;
    return attn_max(GEMM_SCRATCH, widened) * attn_dtype_bytes(compute);
}

/* Element at (row, column) of y, and so on. */
static char *at(const struct products_run *run, const char *base, size_t elements)
{
    return (char *)(uintptr_t)base + elements * run->element;
}

static const char *weight_at(const struct products_run *run, const struct attn_product *p, size_t feature,
                             size_t column)
{
    const bool is_in_out = run->layout == ATTN_LAYOUT_IN_OUT;
    const size_t number = is_in_out ? feature * p->w_stride + column : column * p->w_stride + feature;
    return p->w + number * attn_dtype_bytes(p->dtype);
}

/*
 * Part of a weight in the compute type, for the BLAS: where it is, or widened into scratch. *stride is then its own. The
 * conversion cannot fail, because it is exact.
 */
static const char *wide_weight(const struct products_run *run, const struct attn_product *p, size_t feature,
                               size_t features, size_t column, size_t columns, char *scratch, size_t *stride)
{
    const char *from = weight_at(run, p, feature, column);
    *stride = p->w_stride;
    if (p->dtype == run->compute)
        return from;
    const bool is_in_out = run->layout == ATTN_LAYOUT_IN_OUT;
    const size_t rows = is_in_out ? features : columns;
    *stride = is_in_out ? columns : features;
    for (size_t row = 0; row < rows; row++) {
        const attn_status status =
            attn_convert(scratch + row * *stride * run->element, run->compute,
                         from + row * p->w_stride * attn_dtype_bytes(p->dtype), p->dtype, *stride, NULL);
        assert(status == ATTN_OK);
    }
    return scratch;
}

/* y starts as the bias, or 0. The product is added to it. */
static void blas_block(const struct products_run *run, const struct attn_product *p, size_t row, size_t rows,
                       size_t column, char *scratch)
{
    const size_t columns = attn_min(p->columns - column, p->block_columns);
    char *y = at(run, p->y, row * p->y_stride + column);
    for (size_t r = 0; r < rows; r++)
        if (p->bias != NULL)
            memcpy(at(run, y, r * p->y_stride), at(run, p->bias, column), columns * run->element);
        else
            memset(at(run, y, r * p->y_stride), 0, columns * run->element);
    for (size_t first = 0; first < p->inner && !attn_is_cancelled(run->runtime); first += BLAS_INNER) {
        const size_t inner = attn_min(p->inner - first, BLAS_INNER);
        size_t stride;
        const char *w = wide_weight(run, p, first, inner, column, columns, scratch, &stride);
        attn_blas_multiply_add(run->compute, rows, columns, inner, at(run, p->x, row * p->inner + first), p->inner, w,
                               stride, run->layout, y, p->y_stride);
    }
}

/* The block of columns number index. Blocks after the first begin at a panel, so that no panel is multiplied twice. */
static void kernel_block(const struct products_run *run, const struct attn_product *p, size_t row, size_t rows,
                         size_t index, char *scratch)
{
    const size_t from = index * p->block_columns, to = attn_min(p->skip + p->columns, from + p->block_columns);
    const size_t skip = index == 0 ? p->skip : 0, column = from + skip - p->skip;
    const struct attn_gemm_block block = {
        .x = at(run, p->x, row * p->inner),
        .w = weight_at(run, p, 0, column),
        .dtype = p->dtype,
        .bias = p->bias == NULL ? NULL : at(run, p->bias, column),
        .panels = p->panels == NULL ? NULL : p->panels + from * p->inner * attn_dtype_bytes(p->dtype),
        .y = at(run, p->y, row * p->y_stride + column),
        .rows = rows,
        .columns = to - from - skip,
        .inner = p->inner,
        .skip = skip,
        .x_stride = p->inner,
        .w_stride = p->w_stride,
        .y_stride = p->y_stride,
        .cache_ways = run->cache_ways,
        .layout = run->layout,
    };
    for (size_t first = 0; first < p->inner && !attn_is_cancelled(run->runtime); first += GEMM_INNER)
        run->multiply(&block, first, scratch);
}

/* ---- tasks ---- */

/* The kernel divides the rows of all items into equal parts; a block for the BLAS has rows of one item. */
static void divide(const struct products_run *run, struct attn_product *p)
{
    if (run->multiply != NULL) {
        const size_t rows = p->batch * p->rows, parts = attn_ceil_div(rows, GEMM_ROWS);
        p->block_rows = parts == 0 ? 1 : attn_round_up(attn_ceil_div(rows, parts), GEMM_ROW_UNIT);
        p->row_blocks = attn_ceil_div(rows, p->block_rows);
        p->block_columns = rows >= KERNEL_FEW_ROWS ? KERNEL_COLUMNS
                           : p->panels == NULL && run->layout == ATTN_LAYOUT_OUT_IN && p->inner >= KERNEL_LONG
                               ? KERNEL_LONG_COLUMNS
                               : GEMM_COLUMNS;
        p->column_blocks = attn_ceil_div(p->skip + p->columns, p->block_columns);
    } else {
        p->block_rows = BLAS_ROWS;
        p->row_blocks = p->batch * attn_ceil_div(p->rows, BLAS_ROWS);
        p->block_columns = BLAS_COLUMNS;
        p->column_blocks = attn_ceil_div(p->columns, BLAS_COLUMNS);
    }
}

/* The product that task index belongs to: the last one whose first task is at or before it. */
static const struct attn_product *find_product(const struct products_run *run, size_t index)
{
    size_t low = 0, high = run->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (run->products[middle].first_task <= index)
            low = middle;
        else
            high = middle;
    }
    return &run->products[low];
}

static void product_task(void *argument, size_t index, size_t worker)
{
    const struct products_run *run = argument;
    const struct attn_product *p = find_product(run, index);
    const size_t part = index - p->first_task;
    const size_t column_block = part % p->column_blocks, row_block = part / p->column_blocks;
    char *scratch = run->scratch + worker * run->scratch_bytes;
    if (run->multiply != NULL) {
        const size_t row = row_block * p->block_rows, rows = attn_min(p->batch * p->rows - row, p->block_rows);
        kernel_block(run, p, row, rows, column_block, scratch);
    } else {
        const size_t each = attn_ceil_div(p->rows, BLAS_ROWS), row = row_block % each * BLAS_ROWS;
        blas_block(run, p, row_block / each * p->rows + row, attn_min(p->rows - row, BLAS_ROWS),
                   column_block * BLAS_COLUMNS, scratch);
    }
}

void attn_products_run(struct attn_product *products, size_t count, attn_dtype compute, attn_layout layout,
                       const attn_runtime *runtime, char *scratch)
{
    struct products_run run = {.products = products,
                               .count = count,
                               .element = attn_dtype_bytes(compute),
                               .compute = compute,
                               .layout = layout,
                               .runtime = runtime,
                               .cache_ways = cache_ways(),
                               .scratch = scratch};
    const struct attn_kernel_type *kernel = attn_kernel_of(runtime->kernel, compute);
    run.multiply = kernel->multiplies_faster ? kernel->multiply : NULL;
    size_t tasks = 0, narrow_inner = 0;
    for (size_t p = 0; p < count; p++) {
        divide(&run, &products[p]);
        if (products[p].dtype != compute)
            narrow_inner = attn_max(narrow_inner, products[p].inner);
        products[p].first_task = tasks;
        tasks += products[p].row_blocks * products[p].column_blocks;
    }
    run.scratch_bytes = attn_products_scratch_bytes(runtime->kernel, compute, narrow_inner);
    attn_spread(runtime, tasks, product_task, &run);
}

/* ---- a block alone ---- */

bool attn_multiplies_rows_alike(attn_dtype compute, const attn_runtime *runtime)
{
    return attn_kernel_of(runtime->kernel, compute)->multiplies_faster;
}

void attn_multiply_block(const struct attn_gemm_block *block, attn_dtype compute, const attn_runtime *runtime,
                         void *scratch)
{
    const struct attn_kernel_type *kernel = attn_kernel_of(runtime->kernel, compute);
    const size_t element = attn_dtype_bytes(compute), step = kernel->multiplies_faster ? GEMM_INNER : BLAS_INNER;
    const size_t w_step = (block->layout == ATTN_LAYOUT_IN_OUT ? block->w_stride : 1) * element;
    for (size_t first = 0; first < block->inner && !attn_is_cancelled(runtime); first += step)
        if (kernel->multiplies_faster)
            kernel->multiply(block, first, scratch);
        else
            attn_blas_multiply_add(compute, block->rows, block->columns, attn_min(block->inner - first, step),
                                   (const char *)block->x + first * element, block->x_stride,
                                   (const char *)block->w + first * w_step, block->w_stride, block->layout, block->y,
                                   block->y_stride);
}
