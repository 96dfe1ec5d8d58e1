/* norm.c: LayerNorm, RMSNorm and L2Norm, row by row. */
#include "layer/norm.h"

#include <math.h>

/* The centre to subtract, and the factor that normalises a row. */
struct row_scale {
    double centre, factor;
};

static struct row_scale measure(attn_norm_type type, double sum, double d)
{
    return (struct row_scale){.centre = type == ATTN_NORM_LAYER ? sum / d : 0, .factor = 0};
}

static double factor_of(attn_norm_type type, double squares, double d, double eps)
{
    if (type != ATTN_NORM_L2)
        return 1 / sqrt(squares / d + eps);
    const double length = sqrt(squares) > eps ? sqrt(squares) : eps;
    return length > 0 ? 1 / length : 0; /* a row of zeros stays zero */
}

static struct row_scale measure_f32(attn_norm_type type, const float *x, size_t d, double eps)
{
    double sum = 0, squares = 0;
    for (size_t f = 0; f < d; f++)
        sum += (double)x[f];
    struct row_scale scale = measure(type, sum, (double)d);
    for (size_t f = 0; f < d; f++)
        squares += ((double)x[f] - scale.centre) * ((double)x[f] - scale.centre);
    scale.factor = factor_of(type, squares, (double)d, eps);
    return scale;
}

static struct row_scale measure_f64(attn_norm_type type, const double *x, size_t d, double eps)
{
    double sum = 0, squares = 0;
    for (size_t f = 0; f < d; f++)
        sum += x[f];
    struct row_scale scale = measure(type, sum, (double)d);
    for (size_t f = 0; f < d; f++)
        squares += (x[f] - scale.centre) * (x[f] - scale.centre);
    scale.factor = factor_of(type, squares, (double)d, eps);
    return scale;
}

static void norm_row_f32(attn_norm_type type, size_t d, const float *x, const float *gain, const float *shift,
                         double eps, float *y)
{
    struct row_scale scale = measure_f32(type, x, d, eps);
    for (size_t f = 0; f < d; f++) {
        double z = ((double)x[f] - scale.centre) * scale.factor;
        z = gain == NULL ? z : z * (double)gain[f];
        y[f] = (float)(shift == NULL ? z : z + (double)shift[f]);
    }
}

static void norm_row_f64(attn_norm_type type, size_t d, const double *x, const double *gain, const double *shift,
                         double eps, double *y)
{
    struct row_scale scale = measure_f64(type, x, d, eps);
    for (size_t f = 0; f < d; f++) {
        double z = (x[f] - scale.centre) * scale.factor;
        z = gain == NULL ? z : z * gain[f];
        y[f] = shift == NULL ? z : z + shift[f];
    }
}

void attn_norm_rows(attn_norm_type type, attn_dtype dtype, size_t rows, size_t d, const void *x, const void *gain,
                    const void *shift, double eps, void *y)
{
    for (size_t row = 0; row < rows; row++)
        if (dtype == ATTN_F32)
            norm_row_f32(type, d, (const float *)x + row * d, gain, shift, eps, (float *)y + row * d);
        else
            norm_row_f64(type, d, (const double *)x + row * d, gain, shift, eps, (double *)y + row * d);
}
