/* projection.c: the backward pass of y = x W + b. */
#include "backward/backward.h"

#include <assert.h>
#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"

enum {
    WIDE = 256,      /* columns of a task of a bias */
    NUMBERS = 16384, /* per task of a sum */
    /* A task of dW transposes WEIGHT_ROWS columns of some tokens, once for WEIGHT_COLUMNS columns of the other factor. */
    TOKENS = GEMM_INNER,
    WEIGHT_ROWS = GEMM_ROWS / BACKWARD_COLUMN_UNIT * BACKWARD_COLUMN_UNIT,
    WEIGHT_COLUMNS = 4 * GEMM_COLUMNS,
    TRANSPOSED_STRIDE = TOKENS + BACKWARD_COLUMN_UNIT, /* rows of 4096 bytes would share a set of the L1 cache */
    COPY = TOKENS * WEIGHT_ROWS,                       /* numbers */
    TRANSPOSED = WEIGHT_ROWS * TRANSPOSED_STRIDE,
};
static_assert((int)WEIGHT_ROWS >= (int)GEMM_COLUMNS, "a copy has room for columns of either factor");

struct projection_gradient {
    const struct backward_run *backward;
    const struct attn_gradient_projection *projections;
    size_t count, batch, len, inner;
    char *to;
};

static size_t element_of(const struct projection_gradient *run)
{
    return run->backward->element;
}

static bool is_in_out(const struct projection_gradient *run)
{
    return run->backward->request->weights.layout == ATTN_LAYOUT_IN_OUT;
}

static size_t width_of(const struct attn_gradient_projection *p)
{
    return p->slices.slices * p->slices.columns;
}

size_t attn_gradient_projection_scratch_bytes(attn_dtype compute)
{
    return (size_t)(GEMM_SCRATCH + COPY + TRANSPOSED) * attn_dtype_bytes(compute);
}

static char *scratch_of(const struct projection_gradient *run, size_t worker)
{
    return run->backward->affine_scratch + worker * attn_gradient_projection_scratch_bytes(run->backward->compute);
}

/* ---- sums ---- */

struct gradient_sum {
    const struct backward_run *backward;
    size_t count;
    double scale; /* of a */
    const char *a, *b;
    char *to;
};

static void sum_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct gradient_sum *sum = argument;
    const size_t first = index * NUMBERS, at = first * sum->backward->element;
    const struct attn_branch_sum part = {
        .x = sum->a + at, .residual = sum->b == NULL ? NULL : sum->b + at, .scale = sum->scale, .y = sum->to + at};
    backward_kernel(sum->backward)->add_branch(&part, attn_min(sum->count - first, NUMBERS));
}

void attn_gradient_add(const struct backward_run *run, size_t count, const void *a, const void *b, void *to)
{
    struct gradient_sum sum = {run, count, 1, a, b, to};
    attn_spread(run->runtime, attn_ceil_div(count, NUMBERS), sum_task, &sum);
}

void attn_gradient_of_branch(const struct backward_run *run, const attn_affine *norm, size_t d, const void *x,
                             const void *grad_sum, void *to)
{
    const attn_options *options = &run->request->options;
    const size_t count = backward_query_tokens(run) * d;
    struct gradient_sum sum = {run,      count, options->residual_scale != 0 ? options->residual_scale : 1,
                               grad_sum, NULL,  to};
    const struct attn_gradient_norm of_norm = {.type = options->branch_norm,
                                               .eps = options->branch_norm_eps,
                                               .rows = backward_query_tokens(run),
                                               .d = d,
                                               .gains = 1,
                                               .gain = norm->weight,
                                               .x = x,
                                               .grad_y = to,
                                               .grad_x = to};
    attn_spread(run->runtime, attn_ceil_div(count, NUMBERS), sum_task, &sum);
    if (options->branch_norm != ATTN_NORM_NONE)
        attn_gradient_norm_run(run, &of_norm, ATTN_GRADIENT_COUNT);
}

/* ---- dx ---- */

/* Adds the part of slice s to rows row … and features feature … of dx. */
static void add_slice(const struct projection_gradient *run, const struct attn_gradient_projection *p, size_t s,
                      size_t row, size_t rows, size_t feature, size_t features, char *scratch)
{
    const attn_projection *w = &p->slices;
    const bool in_out = is_in_out(run);
    const size_t width = width_of(p), element = element_of(run);
    const size_t at = w->first + s * w->step + feature * (in_out ? w->w_stride : 1);
    const struct attn_gemm_block block = {
        .x = p->grad_y + (row * width + s * w->columns) * element,
        .w = (const char *)w->affine->weight->data + at * element,
        .dtype = run->backward->compute,
        .y = run->to + (row * run->inner + feature) * element,
        .rows = rows,
        .columns = features,
        .inner = w->columns,
        .x_stride = width,
        .w_stride = w->w_stride,
        .y_stride = run->inner,
        .layout = in_out ? ATTN_LAYOUT_OUT_IN : ATTN_LAYOUT_IN_OUT,
        .adds = true,
    };
    attn_multiply_block(&block, run->backward->compute, run->backward->runtime, scratch);
}

static void input_task(void *argument, size_t index, size_t worker)
{
    const struct projection_gradient *run = argument;
    const size_t across = attn_ceil_div(run->inner, GEMM_COLUMNS), down = attn_ceil_div(run->len, GEMM_ROWS);
    const size_t feature = index % across * GEMM_COLUMNS, features = attn_min(run->inner - feature, GEMM_COLUMNS);
    const size_t of_item = index / across % down * GEMM_ROWS, rows = attn_min(run->len - of_item, GEMM_ROWS);
    const size_t row = index / across / down * run->len + of_item;
    for (size_t r = row; r < row + rows; r++)
        memset(run->to + (r * run->inner + feature) * element_of(run), 0, features * element_of(run));
    for (size_t p = 0; p < run->count; p++)
        for (size_t s = 0; s < run->projections[p].slices.slices; s++)
            add_slice(run, &run->projections[p], s, row, rows, feature, features, scratch_of(run, worker));
}

void attn_gradient_of_input(const struct backward_run *run, const struct attn_gradient_projection *projections,
                            size_t count, size_t len, size_t inner, char *grad_x)
{
    const bool joins_items = attn_multiplies_rows_alike(run->compute, run->runtime);
    const size_t batch = run->plan->forward.dims.batch;
    struct projection_gradient own = {.backward = run,
                                      .projections = projections,
                                      .count = count,
                                      .batch = joins_items ? 1 : batch,
                                      .len = joins_items ? batch * len : len,
                                      .inner = inner,
                                      .to = grad_x};
    const size_t tasks = own.batch * attn_ceil_div(own.len, GEMM_ROWS) * attn_ceil_div(inner, GEMM_COLUMNS);
    attn_spread(run->runtime, tasks, input_task, &own);
}

/* ---- dW ---- */

/* One of the two factors of dW: some columns of x or of dy, with a row for each token. */
struct factor {
    const char *data; /* at the first token and column */
    size_t stride, columns;
    bool is_x; /* tokens that add nothing count as zeros */
};

static struct factor columns_of(const struct projection_gradient *run, const struct factor *factor, size_t column,
                                size_t columns)
{
    return (struct factor){factor->data + column * element_of(run), factor->stride, columns, factor->is_x};
}

/* Tokens first …: in place, or a copy with zeros for tokens that add nothing. */
static const char *live_tokens(const struct projection_gradient *run, const struct factor *factor, size_t first,
                               size_t count, bool is_copied, char *copy, size_t *stride)
{
    const uint8_t *is_live = run->backward->is_live + first;
    const size_t element = element_of(run), row_bytes = factor->stride * element, bytes = factor->columns * element;
    const char *from = factor->data + first * row_bytes;
    *stride = factor->stride;
    if (!is_copied && (!factor->is_x || memchr(is_live, 0, count) == NULL))
        return from;
    *stride = WEIGHT_ROWS;
    for (size_t t = 0; t < count; t++, copy += WEIGHT_ROWS * element, from += row_bytes)
        if (!factor->is_x || is_live[t])
            memcpy(copy, from, bytes);
        else
            memset(copy, 0, bytes);
    return copy - count * WEIGHT_ROWS * element;
}

/* Tokens first … as columns. The transposition reads whole units of tokens and columns, which a copy has. */
static const char *transposed_tokens(const struct projection_gradient *run, const struct factor *factor, size_t first,
                                     size_t count, char *scratch)
{
    const bool has_whole_units = factor->columns % BACKWARD_COLUMN_UNIT == 0 && count % BACKWARD_COLUMN_UNIT == 0;
    char *transposed = scratch + COPY * element_of(run);
    struct attn_backward_rows rows = {.count = count, .features = factor->columns};
    rows.copy = (char *)(uintptr_t)live_tokens(run, factor, first, count, !has_whole_units, scratch, &rows.stride);
    backward_kernel(run->backward)->backward.transpose(&rows, transposed, TRANSPOSED_STRIDE);
    return transposed;
}

/* dW = x^T dy, or in the layout out_in its transpose, dy^T x. */
static void weight_task(void *argument, size_t index, size_t worker)
{
    const struct projection_gradient *run = argument;
    const struct attn_gradient_projection *p = run->projections;
    const attn_projection *w = &p->slices;
    const bool in_out = is_in_out(run);
    const size_t across = attn_ceil_div(in_out ? w->columns : w->inner, WEIGHT_COLUMNS),
                 down = attn_ceil_div(in_out ? w->inner : w->columns, WEIGHT_ROWS);
    const size_t s = index / across / down, tokens = run->batch * run->len, element = element_of(run);
    const struct factor x = {p->x, w->inner, w->inner, true},
                        dy = {p->grad_y + s * w->columns * element, width_of(p), w->columns, false};
    const struct factor *left = in_out ? &x : &dy, *right = in_out ? &dy : &x;
    const size_t row = index / across % down * WEIGHT_ROWS, rows = attn_min(left->columns - row, WEIGHT_ROWS);
    const size_t column = index % across * WEIGHT_COLUMNS, columns = attn_min(right->columns - column, WEIGHT_COLUMNS);
    const struct factor some_left = columns_of(run, left, row, rows);
    char *to = run->to + (w->first + s * w->step + row * w->w_stride + column) * element;
    char *multiply_scratch = scratch_of(run, worker), *copy = multiply_scratch + GEMM_SCRATCH * element;
    for (size_t r = 0; r < rows; r++)
        memset(to + r * w->w_stride * element, 0, columns * element);
    for (size_t first = 0; first < tokens && !attn_is_cancelled(run->backward->runtime); first += TOKENS) {
        struct attn_gemm_block block = {
            .dtype = run->backward->compute,
            .rows = rows,
            .inner = attn_min(tokens - first, TOKENS),
            .x_stride = TRANSPOSED_STRIDE,
            .y_stride = w->w_stride,
            .layout = ATTN_LAYOUT_IN_OUT,
            .adds = true,
        };
        block.x = transposed_tokens(run, &some_left, first, block.inner, copy);
        for (size_t c = 0; c < columns; c += GEMM_COLUMNS) {
            block.columns = attn_min(columns - c, GEMM_COLUMNS);
            const struct factor some_right = columns_of(run, right, column + c, block.columns);
            block.w = live_tokens(run, &some_right, first, block.inner, false, copy, &block.w_stride);
            block.y = to + c * element;
            attn_multiply_block(&block, run->backward->compute, run->backward->runtime, multiply_scratch);
        }
    }
}

/* Marks the tokens that have any nonzero number of grad_y. */
static void find_live(const struct projection_gradient *run)
{
    const struct attn_gradient_projection *p = run->projections;
    const size_t width = width_of(p);
    for (size_t r = 0; r < run->batch * run->len; r++) {
        bool live = false;
        for (size_t f = 0; f < width && !live; f++)
            live = attn_number_get(p->grad_y, run->backward->compute, r * width + f) != 0;
        run->backward->is_live[r] = live;
    }
}

static void differentiate_weight(struct projection_gradient *run)
{
    const attn_projection *w = &run->projections->slices;
    const size_t rows = is_in_out(run) ? w->inner : w->columns, columns = is_in_out(run) ? w->columns : w->inner;
    const size_t tasks = w->slices * attn_ceil_div(rows, WEIGHT_ROWS) * attn_ceil_div(columns, WEIGHT_COLUMNS);
    attn_spread(run->backward->runtime, tasks, weight_task, run);
}

/* ---- db ---- */

static void bias_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct projection_gradient *run = argument;
    const struct attn_gradient_projection *p = run->projections;
    const attn_projection *w = &p->slices;
    const size_t across = attn_ceil_div(w->columns, WIDE), s = index / across, first = index % across * WIDE;
    const size_t columns = attn_min(w->columns - first, WIDE), width = width_of(p), tokens = run->batch * run->len;
    double sum[WIDE] = {0};
    for (size_t r = 0; r < tokens; r++)
        for (size_t c = 0; c < columns; c++)
            sum[c] += attn_number_get(p->grad_y, run->backward->compute, r * width + s * w->columns + first + c);
    for (size_t c = 0; c < columns; c++)
        attn_number_put(run->to, run->backward->compute, w->bias_first + s * w->bias_step + first + c, sum[c]);
}

void attn_gradient_of_affine(const struct backward_run *run, const struct attn_gradient_projection *projection,
                             attn_gradient weight)
{
    const attn_projection *w = &projection->slices;
    struct projection_gradient own = {.backward = run,
                                      .projections = projection,
                                      .count = 1,
                                      .batch = run->plan->forward.dims.batch,
                                      .len = projection->len,
                                      .to = backward_gradient(run, weight)};
    if (own.to != NULL) {
        find_live(&own);
        differentiate_weight(&own);
    }
    own.to = backward_gradient(run, attn_gradient_bias_beside(weight));
    if (own.to != NULL)
        attn_spread(run->runtime, w->slices * attn_ceil_div(w->columns, WIDE), bias_task, &own);
}
