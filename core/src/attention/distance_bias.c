/* distance_bias.c: biases by distance, one vector per head, the sum of all biases of a row, and their gradients. */
#include "attention/attention.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "formulas/formulas.h"

bool attn_has_distance_bias(const attn_options *options)
{
    return attn_has_alibi(options) || options->relative_bias.table != NULL;
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
    return attn_number_at(table->data, table->dtype,
                          (ptrdiff_t)bucket * table->stride[0] + (ptrdiff_t)h * table->stride[1]);
}

/* Decoding with ALiBi computes this vector for each token, so it has a loop of its own that vectorises. */
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
    const double slope = attn_slope_of(options, mask->heads, h);
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
        to[j - from] = distance->data == NULL ? 0 : attn_number_at(distance->data, compute, (ptrdiff_t)(row + j));
        if (mask->bias != NULL)
            to[j - from] += attn_number_at(mask->bias, compute,
                                           (ptrdiff_t)b * stride[0] + (ptrdiff_t)h * stride[1] +
                                               (ptrdiff_t)i * stride[2] + (ptrdiff_t)j * stride[3]);
    }
}

/* ---- backward ---- */

/* One head of one item: adds the gradient of its distances to the buckets; returns the gradient of the slope. */
static double collect(const attn_options *options, const attn_mask *mask, const double *grad, size_t b, size_t h,
                      void *table)
{
    const attn_relative_bias *relative = &options->relative_bias;
    const int64_t first = 1 - (int64_t)mask->q_len - attn_mask_offset(mask, b);
    double slope = 0;
    for (size_t n = 0; n < diagonals(mask); n++) {
        const int64_t distance = first + (int64_t)n;
        slope -= grad[n] * fabs((double)distance);
        if (table == NULL || grad[n] == 0)
            continue;
        const size_t bucket =
            attn_relative_bucket(distance, relative->table->shape[0], relative->bidirectional, relative->max_distance);
        attn_number_add(table, options->compute, bucket * mask->heads + h, grad[n]);
    }
    return slope;
}

void attn_gradient_of_distances(const attn_options *options, const attn_mask *mask, const double *grad, void *slopes,
                                void *table)
{
    const size_t heads = mask->heads, count = diagonals(mask);
    if (table != NULL)
        memset(table, 0, attn_tensor_count(options->relative_bias.table) * attn_dtype_bytes(options->compute));
    for (size_t h = 0; h < heads; h++) {
        double slope = 0;
        for (size_t b = 0; b < mask->batch; b++)
            slope += collect(options, mask, grad + (b * heads + h) * count, b, h, table);
        if (slopes != NULL)
            attn_number_put(slopes, options->compute, h, slope);
    }
}
