/*
 * norm.inc.h: LayerNorm, RMSNorm and L2Norm, row by row, in double for both types. Part of a kernel.
 */
#ifndef ATTN_KERNEL_ROWS_NORM_INC_H
#define ATTN_KERNEL_ROWS_NORM_INC_H

#include "kernel/entries.h"
#include "kernel/rows/wide.inc.h"

/* The number by which a row is multiplied; squares is the sum over its d numbers. */
static double norm_factor(const struct attn_row_norm *norm, double squares)
{
    if (norm->type != ATTN_NORM_L2)
        return 1 / sqrt(squares / (double)norm->d + norm->eps);
    const double length = sqrt(squares) > norm->eps ? sqrt(squares) : norm->eps;
    return length > 0 ? 1 / length : 0; /* a row of zeros stays zero */
}

/* y = (x - centre) * factor * gain + shift. */
ALWAYS_INLINE void put_row(size_t n, const REAL *x, double centre, double factor, const REAL *gain, const REAL *shift,
                           REAL *y)
{
    size_t i = 0;
    for (; i + WIDE_LANES <= n; i += WIDE_LANES) {
        wide z = (load_wide(x + i) - centre) * factor;
        z = gain == NULL ? z : z * load_wide(gain + i);
        store_wide(y + i, shift == NULL ? z : z + load_wide(shift + i));
    }
    for (; i < n; i++) {
        double z = ((double)x[i] - centre) * factor;
        z = gain == NULL ? z : z * (double)gain[i];
        y[i] = (REAL)(shift == NULL ? z : z + (double)shift[i]);
    }
}

static void norm_row(const struct attn_row_norm *norm, const REAL *x, REAL *y)
{
    const REAL *gain = norm->gain, *shift = norm->shift;
    const double centre = norm->type == ATTN_NORM_LAYER ? sum_numbers(norm->d, x) / (double)norm->d : 0;
    const double factor = norm_factor(norm, sum_squares(norm->d, x, centre));
    if (gain != NULL && shift != NULL)
        put_row(norm->d, x, centre, factor, gain, shift, y);
    else if (gain != NULL)
        put_row(norm->d, x, centre, factor, gain, NULL, y);
    else
        put_row(norm->d, x, centre, factor, NULL, shift, y);
}

static void norm_rows(const struct attn_row_norm *norm, size_t rows, const void *x, void *y)
{
    for (size_t row = 0; row < rows; row++)
        norm_row(norm, (const REAL *)x + row * norm->d, (REAL *)y + row * norm->d);
}

/* ---- the backward pass ---- */

/* What the gradient of each number of a row needs. along_z: the part of dz along z, which changes only the length. */
struct norm_slope {
    double centre, factor, mean_dz, along_z;
};

static bool is_zero_row(size_t n, const REAL *x)
{
    bool is_zero = true;
    for (size_t f = 0; f < n; f++)
        is_zero &= x[f] == 0;
    return is_zero;
}

static inline double sum_one(wide x)
{
    const wide sum[WIDE_SUMS] = {x};
    return sum_wide(sum);
}

/* squares and dz_x are the sums of (x - centre)^2 and of dz (x - centre), and dz is that of dz. */
static struct norm_slope norm_slope(const struct attn_row_norm *norm, double centre, double squares, double dz,
                                    double dz_x)
{
    const double d = (double)norm->d, length = sqrt(squares), factor = norm_factor(norm, squares);
    struct norm_slope slope = {.centre = centre, .factor = factor, .along_z = dz_x * factor / d};
    if (norm->type == ATTN_NORM_LAYER)
        slope.mean_dz = dz / d;
    if (norm->type == ATTN_NORM_L2) /* where the divisor is eps, the length has no influence */
        slope.along_z = length > norm->eps ? dz_x * factor : 0;
    return slope;
}

static struct norm_slope measure_row(const struct attn_row_norm *norm, const REAL *x, const REAL *dy)
{
    const REAL *gain = norm->gain;
    const double centre = norm->type == ATTN_NORM_LAYER ? sum_numbers(norm->d, x) / (double)norm->d : 0;
    wide squares = {0}, dz = {0}, dz_x = {0};
    size_t f = 0;
    for (; f + WIDE_LANES <= norm->d; f += WIDE_LANES) {
        const wide from = load_wide(x + f) - centre;
        const wide z = gain == NULL ? load_wide(dy + f) : load_wide(dy + f) * load_wide(gain + f);
        squares += from * from;
        dz += z;
        dz_x += z * from;
    }
    double sums[] = {sum_one(squares), sum_one(dz), sum_one(dz_x)};
    for (; f < norm->d; f++) {
        const double from = (double)x[f] - centre, z = (double)dy[f] * (gain == NULL ? 1 : (double)gain[f]);
        sums[0] += from * from;
        sums[1] += z;
        sums[2] += z * from;
    }
    return norm_slope(norm, centre, sums[0], sums[1], sums[2]);
}

static inline void add_wide(double *sum, wide x)
{
    wide before;
    memcpy(&before, sum, sizeof before);
    before += x;
    memcpy(sum, &before, sizeof before);
}

static void norm_row_back(const struct attn_row_norm *norm, const struct attn_norm_gradient_row *row)
{
    const REAL *x = row->x, *dy = row->grad_y, *gain = norm->gain;
    REAL *dx = row->grad_x;
    if (is_zero_row(norm->d, dy)) {
        if (dx != NULL)
            memset(dx, 0, norm->d * sizeof *dx);
        return;
    }
    const struct norm_slope slope = measure_row(norm, x, dy);
    size_t f = 0;
    for (; f + WIDE_LANES <= norm->d; f += WIDE_LANES) {
        const wide z = (load_wide(x + f) - slope.centre) * slope.factor, grad = load_wide(dy + f);
        const wide dz = gain == NULL ? grad : grad * load_wide(gain + f);
        add_wide(row->gain + f, grad * z);
        add_wide(row->shift + f, grad);
        if (dx != NULL)
            store_wide(dx + f, slope.factor * (dz - slope.mean_dz - z * slope.along_z));
    }
    for (; f < norm->d; f++) {
        const double z = ((double)x[f] - slope.centre) * slope.factor, grad = (double)dy[f];
        const double dz = grad * (gain == NULL ? 1 : (double)gain[f]);
        row->gain[f] += grad * z;
        row->shift[f] += grad;
        if (dx != NULL)
            dx[f] = (REAL)(slope.factor * (dz - slope.mean_dz - z * slope.along_z));
    }
}

static double square_row(size_t n, const void *x)
{
    return sum_squares(n, x, 0);
}

#endif
