/* feature_keys.c: what the mask means for linear and performer, and the projection of performer. */
#include "attention/feature_keys.h"

#include "base/number.h"
#include "base/parallel.h"
#include "formulas/formulas.h"

void attn_find_running_sums(const attn_mask *mask, const attn_runtime *watch, bool *is_running, bool *is_prefix)
{
    struct attn_pace pace = attn_pace_begin(watch);
    attn_mask without = *mask;
    without.padding = NULL;
    *is_running = *is_prefix = false;
    if (attn_mask_has_lookup(&without))
        return;
    bool differs = false;
    for (size_t b = 0; b < mask->batch; b++) {
        size_t end = 0;
        for (size_t i = 0; i < mask->q_len; i++) {
            const attn_span span = attn_mask_span(mask, b, i);
            if (attn_pace_stops(&pace, ATTN_PACE_ROW) || (span.from != 0 && span.from < span.to))
                return;
            differs |= end != 0 && span.from < span.to && span.to != end;
            end = span.from < span.to ? span.to : end;
        }
    }
    *is_running = true;
    *is_prefix = differs;
}

bool attn_feature_is_real(const attn_mask *mask, size_t b, size_t j)
{
    return mask->padding == NULL ||
           mask->padding[(ptrdiff_t)b * mask->padding_stride[0] + (ptrdiff_t)j * mask->padding_stride[1]] != 0;
}

bool attn_feature_projection(const attn_mechanism *mechanism, attn_dtype compute, size_t d_k,
                             const attn_runtime *runtime, double *projection)
{
    const size_t m = attn_mechanism_features(mechanism, d_k);
    if (mechanism->projection != NULL) {
        for (size_t n = 0; n < m * d_k; n++)
            projection[n] = attn_number_get(mechanism->projection->data, compute, n);
        return true;
    }
    for (size_t r = 0; r < m; r++) {
        if (attn_is_cancelled(runtime))
            return false;
        attn_performer_direction(mechanism->seed, r, d_k, projection);
    }
    attn_performer_lengths(mechanism->seed, m, d_k, projection + m * d_k, projection);
    return true;
}
