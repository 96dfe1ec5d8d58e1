/* backward_norm.c: the backward pass of LayerNorm, RMSNorm and L2Norm, in double, row by row. */
#include "backward/backward_norm.h"

#include <math.h>
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

/* Statistics of a row that the gradient of each of its numbers needs. */
struct row {
    double centre, factor, mean_dz, along_z; /* along_z: the part of dz along z, which changes only the length */
};

static double x_of(const struct attn_gradient_norm *norm, size_t at)
{
    return attn_number_get(norm->x, norm->compute, at);
}

/* The index at which the gain of a row begins. */
static size_t gain_of(const struct attn_gradient_norm *norm, size_t at)
{
    return at / norm->d % norm->gains * norm->d;
}

static double dz_of(const struct attn_gradient_norm *norm, size_t at, size_t f)
{
    const double gain = norm->gain == NULL ? 1 : attn_number_get(norm->gain, norm->compute, gain_of(norm, at) + f);
    return attn_number_get(norm->grad_y, norm->compute, at + f) * gain;
}

/* Where the divisor is eps, the length has no influence. */
static void measure_length(double length, double eps, double dz_x, struct row *row)
{
    const double divisor = length > eps ? length : eps;
    row->factor = divisor > 0 ? 1 / divisor : 0;
    row->along_z = length > eps ? dz_x * row->factor : 0;
}

static struct row measure(const struct attn_gradient_norm *norm, size_t at)
{
    const double d = (double)norm->d;
    struct row row = {0};
    double sum = 0, squares = 0, dz = 0, dz_x = 0;
    for (size_t f = 0; f < norm->d; f++)
        sum += x_of(norm, at + f);
    row.centre = norm->type == ATTN_NORM_LAYER ? sum / d : 0;
    for (size_t f = 0; f < norm->d; f++) {
        const double x = x_of(norm, at + f) - row.centre;
        squares += x * x;
        dz += dz_of(norm, at, f);
        dz_x += dz_of(norm, at, f) * x;
    }
    if (norm->type == ATTN_NORM_L2) {
        measure_length(sqrt(squares), norm->eps, dz_x, &row);
        return row;
    }
    row.factor = 1 / sqrt(squares / d + norm->eps);
    row.mean_dz = norm->type == ATTN_NORM_LAYER ? dz / d : 0;
    row.along_z = dz_x * row.factor / d;
    return row;
}

static bool is_zero(const struct attn_gradient_norm *norm, size_t at)
{
    for (size_t f = 0; f < norm->d; f++)
        if (attn_number_get(norm->grad_y, norm->compute, at + f) != 0)
            return false;
    return true;
}

static void differentiate_row(const struct attn_gradient_norm *norm, size_t at, double *gain, double *shift)
{
    const struct row row = measure(norm, at);
    for (size_t f = 0; f < norm->d; f++) {
        const double z = (x_of(norm, at + f) - row.centre) * row.factor, dz = dz_of(norm, at, f);
        const double dy = attn_number_get(norm->grad_y, norm->compute, at + f);
        gain[f] += dy * z;
        shift[f] += dy;
        if (norm->grad_x != NULL)
            attn_number_put(norm->grad_x, norm->compute, at + f, row.factor * (dz - row.mean_dz - z * row.along_z));
    }
}

static void norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct attn_gradient_norm *norm = argument;
    const size_t each = rows_of_a_task(norm->rows), first = index * each, d = norm->d;
    const size_t end = attn_min(first + each, norm->rows);
    const size_t all = norm->gains * d;
    double *gain = norm->partial + index * 2 * all, *shift = gain + all;
    memset(gain, 0, 2 * all * sizeof *gain);
    for (size_t r = first; r < end; r++)
        if (!is_zero(norm, r * d))
            differentiate_row(norm, r * d, gain + gain_of(norm, r * d), shift + gain_of(norm, r * d));
        else if (norm->grad_x != NULL)
            memset((char *)norm->grad_x + r * d * attn_dtype_bytes(norm->compute), 0,
                   d * attn_dtype_bytes(norm->compute));
}

void attn_gradient_norm_run(const struct attn_gradient_norm *norm, const attn_runtime *runtime)
{
    struct attn_gradient_norm shared = *norm;
    const size_t tasks = attn_gradient_norm_partials(norm->rows), all = norm->gains * norm->d;
    attn_spread(runtime, tasks, norm_task, &shared);
    for (size_t f = 0; f < all; f++) {
        double gain = 0, shift = 0;
        for (size_t t = 0; t < tasks; t++) {
            gain += norm->partial[t * 2 * all + f];
            shift += norm->partial[t * 2 * all + all + f];
        }
        if (norm->grad_gain != NULL)
            attn_number_put(norm->grad_gain, norm->compute, f, gain);
        if (norm->grad_shift != NULL)
            attn_number_put(norm->grad_shift, norm->compute, f, shift);
    }
}
