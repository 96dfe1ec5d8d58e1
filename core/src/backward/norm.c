/* norm.c: the backward pass of LayerNorm, RMSNorm and L2Norm, by tasks of rows; the kernel computes a row. */
#include "backward/backward.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"

enum { LEAST_ROWS = 64, PARTIALS_MAX = 64 };

/* Rows per task. They depend only on the number of rows, because sums are taken per task. */
static size_t rows_of_a_task(size_t rows)
{
    const size_t share = attn_ceil_div(rows, PARTIALS_MAX);
    return attn_max(share, LEAST_ROWS);
}

size_t attn_gradient_norm_partials(size_t rows)
{
    return attn_ceil_div(rows, rows_of_a_task(rows));
}

struct norm_run {
    const struct backward_run *backward;
    const struct attn_gradient_norm *norm;
};

static void norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct norm_run *run = argument;
    const struct attn_gradient_norm *norm = run->norm;
    const size_t each = rows_of_a_task(norm->rows), first = index * each, d = norm->d;
    const size_t end = attn_min(first + each, norm->rows), all = norm->gains * d;
    const size_t element = run->backward->element;
    double *gain = run->backward->partials + index * 2 * all, *shift = gain + all;
    memset(gain, 0, 2 * all * sizeof *gain);
    for (size_t r = first; r < end; r++) {
        const size_t at = r * d * element, of_gain = r % norm->gains * d;
        const struct attn_row_norm own = {
            .type = norm->type,
            .d = d,
            .eps = norm->eps,
            .gain = norm->gain == NULL ? NULL : (const char *)norm->gain->data + of_gain * element,
        };
        const struct attn_norm_gradient_row row = {.x = (const char *)norm->x + at,
                                                   .grad_y = (const char *)norm->grad_y + at,
                                                   .grad_x = norm->grad_x == NULL ? NULL : (char *)norm->grad_x + at,
                                                   .gain = gain + of_gain,
                                                   .shift = shift + of_gain};
        backward_kernel(run->backward)->norm_back(&own, &row);
    }
}

void attn_gradient_norm_run(const struct backward_run *run, const struct attn_gradient_norm *norm, attn_gradient gain)
{
    struct norm_run own = {run, norm};
    const bool has_gradients = gain != ATTN_GRADIENT_COUNT;
    void *grad_gain = has_gradients ? backward_gradient(run, gain) : NULL,
         *grad_shift = has_gradients ? backward_gradient(run, attn_gradient_bias_beside(gain)) : NULL;
    const size_t tasks = attn_gradient_norm_partials(norm->rows), all = norm->gains * norm->d;
    attn_spread(run->runtime, tasks, norm_task, &own);
    for (size_t f = 0; f < all; f++) {
        double of_gain = 0, of_shift = 0;
        for (size_t t = 0; t < tasks; t++) {
            of_gain += run->partials[t * 2 * all + f];
            of_shift += run->partials[t * 2 * all + all + f];
        }
        if (grad_gain != NULL)
            attn_number_put(grad_gain, run->compute, f, of_gain);
        if (grad_shift != NULL)
            attn_number_put(grad_shift, run->compute, f, of_shift);
    }
}
