/* backward_projection.c: the backward pass of y = x W + b. */
#include "backward/backward_projection.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"
#include "gemm/blas.h"
#include "kernel/kernel.h"

enum {
    /* Blocks of a product. They depend only on the shape; blocks of dx do not cross batch items. */
    BLOCK = 128,
    WIDE = 256,
    TOKENS = 512,    /* rows of x and dy per product for a weight */
    INNER = 4096,    /* small enough to notice cancellation soon */
    NUMBERS = 16384, /* per task of a sum */
};

struct projection_gradient {
    const struct attn_gradient_projection *projections;
    size_t count;
    attn_dtype compute;
    size_t element;
    size_t batch, len, inner;
    char *to, *scratch;
    const attn_runtime *runtime;
};

static size_t width_of(const struct attn_gradient_projection *p)
{
    return p->slices.slices * p->slices.columns;
}

size_t attn_gradient_projection_scratch_bytes(attn_dtype compute)
{
    return (size_t)TOKENS * BLOCK * attn_dtype_bytes(compute);
}

void attn_gradient_find_live(attn_dtype compute, size_t rows, size_t width, const char *grad_y, uint8_t *is_live)
{
    for (size_t r = 0; r < rows; r++) {
        bool live = false;
        for (size_t f = 0; f < width && !live; f++)
            live = attn_number_get(grad_y, compute, r * width + f) != 0;
        is_live[r] = live;
    }
}

/* ---- sums ---- */

struct gradient_sum {
    const struct attn_kernel_type *kernel;
    size_t element, count;
    const char *a, *b;
    char *to;
};

static void sum_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct gradient_sum *sum = argument;
    const size_t first = index * NUMBERS, at = first * sum->element;
    const struct attn_branch_sum part = {
        .x = sum->a + at, .residual = sum->b == NULL ? NULL : sum->b + at, .scale = 1, .y = sum->to + at};
    sum->kernel->add_branch(&part, attn_min(sum->count - first, NUMBERS));
}

void attn_gradient_add(attn_dtype compute, size_t count, const void *a, const void *b, void *to,
                       const attn_runtime *runtime)
{
    struct gradient_sum sum = {attn_kernel_of(runtime->kernel, compute), attn_dtype_bytes(compute), count, a, b, to};
    attn_spread(runtime, attn_ceil_div(count, NUMBERS), sum_task, &sum);
}

/* ---- dx ---- */

/* Adds the part of slice s to rows row … of batch item b and features feature … of dx. */
static void add_slice(const struct projection_gradient *run, const struct attn_gradient_projection *p, size_t s,
                      size_t row, size_t rows, size_t feature, size_t features)
{
    const attn_projection *w = &p->slices;
    const bool in_out = p->layout == ATTN_LAYOUT_IN_OUT;
    const size_t width = width_of(p), element = run->element;
    for (size_t c = 0; c < w->columns && !attn_is_cancelled(run->runtime); c += INNER) {
        const size_t at = w->first + s * w->step + (in_out ? feature * w->w_stride + c : c * w->w_stride + feature);
        attn_blas_multiply_add(run->compute, rows, features, attn_min(w->columns - c, INNER),
                               p->grad_y + (row * width + s * w->columns + c) * element, width,
                               (const char *)w->affine->weight->data + at * element, w->w_stride,
                               in_out ? ATTN_LAYOUT_OUT_IN : ATTN_LAYOUT_IN_OUT,
                               run->to + (row * run->inner + feature) * element, run->inner);
    }
}

static void input_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct projection_gradient *run = argument;
    const size_t across = attn_ceil_div(run->inner, WIDE), down = attn_ceil_div(run->len, BLOCK);
    const size_t feature = index % across * WIDE, features = attn_min(run->inner - feature, WIDE);
    const size_t of_item = index / across % down * BLOCK, rows = attn_min(run->len - of_item, BLOCK);
    const size_t row = index / across / down * run->len + of_item;
    for (size_t r = row; r < row + rows; r++)
        memset(run->to + (r * run->inner + feature) * run->element, 0, features * run->element);
    for (size_t p = 0; p < run->count; p++)
        for (size_t s = 0; s < run->projections[p].slices.slices; s++)
            add_slice(run, &run->projections[p], s, row, rows, feature, features);
}

void attn_gradient_of_input(const struct attn_gradient_projection *projections, size_t count, attn_dtype compute,
                            size_t batch, size_t len, size_t inner, char *grad_x, const attn_runtime *runtime)
{
    struct projection_gradient run = {.projections = projections,
                                      .count = count,
                                      .compute = compute,
                                      .element = attn_dtype_bytes(compute),
                                      .batch = batch,
                                      .len = len,
                                      .inner = inner,
                                      .to = grad_x,
                                      .runtime = runtime};
    attn_spread(run.runtime, batch * attn_ceil_div(len, BLOCK) * attn_ceil_div(inner, WIDE), input_task, &run);
}

/* ---- dW ---- */

/* Tokens first …, features feature …: in place, or copied with zeros for tokens that add nothing. */
static const char *live_tokens(const struct projection_gradient *run, size_t first, size_t count, size_t feature,
                               size_t features, char *copy, size_t *stride)
{
    const struct attn_gradient_projection *p = run->projections;
    const size_t inner = p->slices.inner, element = run->element;
    const char *x = p->x + (first * inner + feature) * element;
    *stride = inner;
    if (memchr(p->is_live + first, 0, count) == NULL)
        return x;
    for (size_t r = 0; r < count; r++)
        if (p->is_live[first + r])
            memcpy(copy + r * features * element, x + r * inner * element, features * element);
        else
            memset(copy + r * features * element, 0, features * element);
    *stride = features;
    return copy;
}

static void weight_task(void *argument, size_t index, size_t worker)
{
    const struct projection_gradient *run = argument;
    const struct attn_gradient_projection *p = run->projections;
    const attn_projection *w = &p->slices;
    const bool in_out = p->layout == ATTN_LAYOUT_IN_OUT;
    const size_t across = attn_ceil_div(w->columns, WIDE), down = attn_ceil_div(w->inner, BLOCK),
                 element = run->element;
    const size_t column = index % across * WIDE, columns = attn_min(w->columns - column, WIDE);
    const size_t feature = index / across % down * BLOCK, features = attn_min(w->inner - feature, BLOCK);
    const size_t s = index / across / down, width = width_of(p), tokens = p->batch * p->len;
    const size_t at =
        w->first + s * w->step + (in_out ? feature * w->w_stride + column : column * w->w_stride + feature);
    char *to = run->to + at * element;
    for (size_t r = 0; r < (in_out ? features : columns); r++)
        memset(to + r * w->w_stride * element, 0, (in_out ? columns : features) * element);
    char *copy = run->scratch + worker * attn_gradient_projection_scratch_bytes(run->compute);
    for (size_t first = 0; first < tokens && !attn_is_cancelled(run->runtime); first += TOKENS) {
        const size_t count = attn_min(tokens - first, TOKENS);
        const char *y = p->grad_y + (first * width + s * w->columns + column) * element;
        size_t stride;
        const char *x = live_tokens(run, first, count, feature, features, copy, &stride);
        if (in_out)
            attn_blas_multiply_add_transposed(run->compute, features, columns, count, x, stride, y, width, to,
                                              w->w_stride);
        else
            attn_blas_multiply_add_transposed(run->compute, columns, features, count, y, width, x, stride, to,
                                              w->w_stride);
    }
}

void attn_gradient_of_weight(const struct attn_gradient_projection *projection, attn_dtype compute, char *grad_w,
                             char *scratch, const attn_runtime *runtime)
{
    const attn_projection *w = &projection->slices;
    struct projection_gradient run = {.projections = projection,
                                      .count = 1,
                                      .compute = compute,
                                      .element = attn_dtype_bytes(compute),
                                      .to = grad_w,
                                      .scratch = scratch,
                                      .runtime = runtime};
    attn_spread(run.runtime, w->slices * attn_ceil_div(w->inner, BLOCK) * attn_ceil_div(w->columns, WIDE), weight_task,
                &run);
}

/* ---- db ---- */

static void bias_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct projection_gradient *run = argument;
    const struct attn_gradient_projection *p = run->projections;
    const attn_projection *w = &p->slices;
    const size_t across = attn_ceil_div(w->columns, WIDE), s = index / across, first = index % across * WIDE;
    const size_t columns = attn_min(w->columns - first, WIDE), width = width_of(p), tokens = p->batch * p->len;
    double sum[WIDE] = {0};
    for (size_t r = 0; r < tokens; r++)
        for (size_t c = 0; c < columns; c++)
            sum[c] += attn_number_get(p->grad_y, run->compute, r * width + s * w->columns + first + c);
    for (size_t c = 0; c < columns; c++)
        attn_number_put(run->to, run->compute, w->bias_first + s * w->bias_step + first + c, sum[c]);
}

void attn_gradient_of_bias(const struct attn_gradient_projection *projection, attn_dtype compute, char *grad_b,
                           const attn_runtime *runtime)
{
    const attn_projection *w = &projection->slices;
    struct projection_gradient run = {.projections = projection,
                                      .count = 1,
                                      .compute = compute,
                                      .element = attn_dtype_bytes(compute),
                                      .to = grad_b,
                                      .runtime = runtime};
    attn_spread(run.runtime, w->slices * attn_ceil_div(w->columns, WIDE), bias_task, &run);
}
