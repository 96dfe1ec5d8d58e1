/* distance_bias.c: biases by distance, a vector a head, and the sum of all biases of a row. */
#include "attention/distance_bias.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parallel.h"

static double number_at(const void *data, attn_dtype dtype, ptrdiff_t at)
{
    return dtype == ATTN_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static bool has_alibi(const attn_options *options)
{
    return options->alibi || options->alibi_slopes != NULL;
}

bool attn_has_distance_bias(const attn_options *options)
{
    return has_alibi(options) || options->relative_bias.table != NULL;
}

static double slope_of(const attn_options *options, size_t heads, size_t h)
{
    if (!has_alibi(options))
        return 0;
    const attn_tensor *slopes = options->alibi_slopes;
    return slopes == NULL ? attn_alibi_slope(heads, h)
                          : number_at(slopes->data, slopes->dtype, (ptrdiff_t)h * slopes->stride[0]);
}

/* ---- the vectors ---- */

static size_t diagonals(const attn_mask *mask)
{
    return mask->q_len + mask->kv_len;
}

static size_t items(const attn_mask *mask)
{
    return mask->offset == NULL || mask->offset_stride == 0 ? 1 : mask->batch;
}

static size_t vector_count(const attn_options *options, const attn_mask *mask)
{
    return attn_has_distance_bias(options) ? items(mask) * mask->heads : 0;
}

size_t attn_distance_bias_count(const attn_options *options, const attn_mask *mask)
{
    const size_t vectors = vector_count(options, mask);
    return vectors == 0 ? 0 : vectors * diagonals(mask) + DISTANCE_BIAS_SLACK;
}

static double relative_at(const attn_relative_bias *relative, size_t h, int64_t distance)
{
    const attn_tensor *table = relative->table;
    if (table == NULL)
        return 0;
    const size_t bucket =
        attn_relative_bucket(distance, table->shape[0], relative->bidirectional, relative->max_distance);
    return number_at(table->data, table->dtype, (ptrdiff_t)bucket * table->stride[0] + (ptrdiff_t)h * table->stride[1]);
}

/* ALiBi alone is what a step of decoding has, and its vector should cost next to nothing beside the keys. */
static void fill_alibi(attn_dtype compute, double slope, double first, size_t count, void *to)
{
    float *restrict single = to;
    double *restrict number = to;
    if (compute == ATTN_F32)
        for (size_t n = 0; n < count; n++)
            single[n] = (float)(-slope * fabs(first + (double)(int64_t)n));
    else
        for (size_t n = 0; n < count; n++)
            number[n] = -slope * fabs(first + (double)(int64_t)n);
}

static void fill_relative(const attn_options *options, double slope, size_t h, int64_t first, size_t count, void *to)
{
    for (size_t n = 0; n < count; n++) {
        const int64_t distance = first + (int64_t)n;
        const double bias = relative_at(&options->relative_bias, h, distance) - slope * fabs((double)distance);
        if (options->compute == ATTN_F32)
            ((float *)to)[n] = (float)bias;
        else
            ((double *)to)[n] = bias;
    }
}

struct vectors {
    const attn_options *options;
    const attn_mask *mask;
    void *data;
};

/* Task: the vector of one head. */
static void vector_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct vectors *vectors = argument;
    const attn_options *options = vectors->options;
    const attn_mask *mask = vectors->mask;
    const size_t h = index % mask->heads, count = diagonals(mask), element = attn_dtype_bytes(options->compute);
    const int64_t first = 1 - (int64_t)mask->q_len - attn_mask_offset(mask, index / mask->heads);
    const double slope = slope_of(options, mask->heads, h);
    char *to = (char *)vectors->data + index * count * element;
    if (options->relative_bias.table == NULL)
        fill_alibi(options->compute, slope, (double)first, count, to);
    else
        fill_relative(options, slope, h, first, count, to);
    if (index + 1 == vector_count(options, mask))
        memset(to + count * element, 0, DISTANCE_BIAS_SLACK * element);
}

struct attn_distance_bias attn_distance_bias_make(const attn_options *options, const attn_mask *mask, void *data,
                                                  const attn_runtime *runtime)
{
    struct vectors vectors = {options, mask, data};
    if (!attn_has_distance_bias(options))
        return (struct attn_distance_bias){0};
    attn_spread(runtime, vector_count(options, mask), vector_task, &vectors);
    return (struct attn_distance_bias){.data = data,
                                       .item_stride = items(mask) == 1 ? 0 : mask->heads * diagonals(mask),
                                       .head_stride = diagonals(mask),
                                       .q_len = mask->q_len};
}

void attn_bias_row(const struct attn_distance_bias *distance, const attn_mask *mask, attn_dtype compute, size_t b,
                   size_t h, size_t i, size_t from, size_t to_key, double *to)
{
    const size_t row = distance->data == NULL ? 0 : attn_distance_bias_row(distance, b, h, i);
    const ptrdiff_t *stride = mask->bias_stride;
    for (size_t j = from; j < to_key; j++) {
        to[j - from] = distance->data == NULL ? 0 : number_at(distance->data, compute, (ptrdiff_t)(row + j));
        if (mask->bias != NULL)
            to[j - from] += number_at(mask->bias, compute,
                                      (ptrdiff_t)b * stride[0] + (ptrdiff_t)h * stride[1] + (ptrdiff_t)i * stride[2] +
                                          (ptrdiff_t)j * stride[3]);
    }
}

/* ---- checks ---- */

static attn_status check_finite(const attn_tensor *tensor, const char *field, attn_dtype compute, attn_error *err)
{
    const size_t columns = tensor->rank == 2 ? tensor->shape[1] : 1;
    if (tensor->dtype != compute)
        return attn_fail(err, ATTN_ERR_FIELD, field, "%s must be %s, got %s", field, attn_dtype_name(compute),
                         attn_dtype_name(tensor->dtype));
    for (size_t row = 0; row < tensor->shape[0]; row++)
        for (size_t column = 0; column < columns; column++) {
            const ptrdiff_t at =
                (ptrdiff_t)row * tensor->stride[0] + (tensor->rank == 2 ? (ptrdiff_t)column * tensor->stride[1] : 0);
            if (!isfinite(number_at(tensor->data, tensor->dtype, at)))
                return attn_fail(err, ATTN_ERR_VALUE, field, "%s holds a number that is not finite", field);
        }
    return ATTN_OK;
}

static attn_status fail_shape(const attn_tensor *tensor, const char *field, const char *wanted, const char *expected,
                              attn_error *err)
{
    char received[64];
    attn_shape_text(received, sizeof received, tensor->rank, tensor->shape);
    attn_status status = attn_fail(err, ATTN_ERR_SHAPE, field, "%s has shape %s, expected %s", field, received, wanted);
    if (err != NULL)
        attn_expect(err, expected, received);
    return status;
}

static attn_status check_per_head(const attn_tensor *tensor, const char *field, size_t heads, attn_dtype compute,
                                  attn_error *err)
{
    if (tensor == NULL)
        return ATTN_OK;
    char expected[32], wanted[64];
    attn_shape_text(expected, sizeof expected, 1, &heads);
    snprintf(wanted, sizeof wanted, "%s: one number for each head", expected);
    if (tensor->rank != 1 || tensor->shape[0] != heads)
        return fail_shape(tensor, field, wanted, expected, err);
    return check_finite(tensor, field, compute, err);
}

static double largest_of(attn_dtype compute)
{
    return compute == ATTN_F32 ? (double)FLT_MAX : DBL_MAX;
}

/* An offset may be far beyond the keys, and a slope large: their product has to stay a number. */
static attn_status check_slopes(const attn_options *options, size_t heads, const attn_mask *mask, attn_error *err)
{
    attn_status status = check_per_head(options->alibi_slopes, "/options/alibi", heads, options->compute, err);
    double farthest = 0, steepest = 0;
    for (size_t b = 0; status == ATTN_OK && b < mask->batch; b++) {
        const double offset = (double)attn_mask_offset(mask, b);
        farthest = fmax(farthest, fabs(offset) + (double)mask->q_len + (double)mask->kv_len);
    }
    for (size_t h = 0; status == ATTN_OK && h < heads; h++)
        steepest = fmax(steepest, fabs(slope_of(options, heads, h)));
    /* Half of what there is leaves room for a relative bias beside it. */
    if (status == ATTN_OK && !(steepest * farthest <= largest_of(options->compute) / 2))
        return attn_fail(err, ATTN_ERR_VALUE, "/options/alibi",
                         "a slope of %g over a distance of %g leaves the range of compute %s", steepest, farthest,
                         attn_dtype_name(options->compute));
    return status;
}

static attn_status check_relative(const attn_options *options, size_t heads, attn_error *err)
{
    const attn_relative_bias *relative = &options->relative_bias;
    const char *field = "/options/relative_bias/table";
    if (relative->table == NULL)
        return ATTN_OK;
    char expected[48], wanted[80];
    snprintf(expected, sizeof expected, "[\"any\", %zu]", heads);
    snprintf(wanted, sizeof wanted, "[buckets, %zu]: a column for each head", heads);
    if (relative->table->rank != 2 || relative->table->shape[1] != heads)
        return fail_shape(relative->table, field, wanted, expected, err);
    const size_t buckets = relative->table->shape[0], least = relative->bidirectional ? 4 : 2;
    if (buckets < least)
        return attn_fail(err, ATTN_ERR_SHAPE, field, "table has %zu buckets; %s needs at least %zu", buckets,
                         relative->bidirectional ? "both directions" : "one direction", least);
    const size_t exact = (relative->bidirectional ? buckets / 2 : buckets) / 2;
    if (relative->max_distance <= (int64_t)exact)
        return attn_fail(err, ATTN_ERR_VALUE, "/options/relative_bias/max_distance",
                         "max_distance is %lld, it must be above the %zu distances that have a bucket of their own",
                         (long long)relative->max_distance, exact);
    return check_finite(relative->table, field, options->compute, err);
}

attn_status attn_score_bias_check(const attn_options *options, size_t heads, const attn_mask *mask, attn_error *err)
{
    attn_status status = check_slopes(options, heads, mask, err);
    if (status == ATTN_OK)
        status = check_relative(options, heads, err);
    return status == ATTN_OK ? check_per_head(options->sinks, "/options/sinks", heads, options->compute, err) : status;
}
