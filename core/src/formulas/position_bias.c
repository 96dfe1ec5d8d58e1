/* position_bias.c: slopes of ALiBi, buckets of T5, and rows of DeBERTa. */
#include "formulas/formulas.h"

#include <math.h>

#include "base/number.h"

double attn_alibi_slope(size_t heads, size_t h)
{
    size_t power = 1;
    while (power <= heads / 2)
        power *= 2;
    if (h < power)
        return exp2(-8.0 * (double)(h + 1) / (double)power);
    return exp2(-4.0 * (double)(2 * (h - power) + 1) / (double)power);
}

size_t attn_relative_bucket(int64_t distance, size_t buckets, bool bidirectional, int64_t max_distance)
{
    size_t first = 0;
    int64_t away = distance < 0 ? -distance : 0;
    if (bidirectional) {
        buckets /= 2;
        first = distance > 0 ? buckets : 0;
        away = distance < 0 ? -distance : distance;
    }
    const int64_t exact = (int64_t)(buckets / 2);
    if (away < exact)
        return first + (size_t)away;
    if (away >= max_distance)
        return first + buckets - 1;
    const float range = (float)log((double)max_distance / (double)exact);
    const float grown = logf((float)away / (float)exact) / range * (float)((int64_t)buckets - exact);
    const size_t bucket = (size_t)exact + (size_t)grown;
    return first + (bucket < buckets ? bucket : buckets - 1);
}

size_t attn_relative_row(int64_t distance, size_t rows, int64_t buckets, int64_t max_distance)
{
    const int64_t half = (int64_t)(rows / 2), exact = buckets / 2;
    int64_t away = distance < 0 ? -distance : distance;
    if (buckets > 0 && away > exact) {
        const float range = logf((float)((double)(max_distance - 1) / (double)exact));
        const float grown = ceilf(logf((float)away / (float)exact) / range * (float)(exact - 1)) + (float)exact;
        away = grown < (float)half ? (int64_t)grown : half;
    }
    if (distance <= 0)
        return (size_t)(half + (away < half ? away : half - 1));
    return (size_t)(half - (away < half ? away : half));
}

bool attn_has_alibi(const attn_options *options)
{
    return options->alibi || options->alibi_slopes != NULL;
}

double attn_slope_of(const attn_options *options, size_t heads, size_t h)
{
    if (!attn_has_alibi(options))
        return 0;
    const attn_tensor *slopes = options->alibi_slopes;
    return slopes == NULL ? attn_alibi_slope(heads, h)
                          : attn_number_at(slopes->data, slopes->dtype, (ptrdiff_t)h * slopes->stride[0]);
}
