/* distance.c: biases by distance in the backward pass. */
#include "backward/distance.h"

#include <math.h>
#include <string.h>

#include "attention/distance_bias.h"
#include "base/number.h"

/* One head of one item: adds the gradient of its distances to the buckets; returns the gradient of the slope. */
static double collect(const attn_options *options, const attn_mask *mask, const double *grad, size_t b, size_t h,
                      void *table)
{
    const attn_relative_bias *relative = &options->relative_bias;
    const int64_t first = 1 - (int64_t)mask->q_len - attn_mask_offset(mask, b);
    double slope = 0;
    for (size_t n = 0; n < mask->q_len + mask->kv_len; n++) {
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
    const size_t heads = mask->heads, diagonals = mask->q_len + mask->kv_len;
    if (table != NULL)
        memset(table, 0, attn_tensor_count(options->relative_bias.table) * attn_dtype_bytes(options->compute));
    for (size_t h = 0; h < heads; h++) {
        double slope = 0;
        for (size_t b = 0; b < mask->batch; b++)
            slope += collect(options, mask, grad + (b * heads + h) * diagonals, b, h, table);
        if (slopes != NULL)
            attn_number_put(slopes, options->compute, h, slope);
    }
}
