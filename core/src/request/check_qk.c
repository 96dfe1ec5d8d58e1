/* check_qk.c: options.qk_norm and its weights. */
#include <math.h>

#include "request/checks.h"

/* Gain or shift of a norm: (d_k), (heads, d_k) or (heads * d_k). */
static bool check_gain(const attn_request *request, const attn_tensor *vector, const char *field, size_t heads,
                       size_t d_k, struct attn_check *check)
{
    char shape[64];
    if (vector == NULL)
        return true;
    if (request->options.qk_norm == ATTN_NORM_NONE)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "it needs options.qk_norm to say which normalisation");
    if (vector->dtype != request->options.compute || !attn_tensor_is_contiguous(vector))
        return attn_refuse(check, ATTN_ERR_FIELD, field, "it must be %s without gaps",
                           attn_dtype_name(request->options.compute));
    const bool is_flat = vector->rank == 1 && (vector->shape[0] == d_k || vector->shape[0] == heads * d_k);
    if (is_flat || (vector->rank == 2 && vector->shape[0] == heads && vector->shape[1] == d_k))
        return true;
    attn_shape_text(shape, sizeof shape, vector->rank, vector->shape);
    return attn_refuse(check, ATTN_ERR_SHAPE, field,
                       "it has shape %s, expected [%zu] for every head, [%zu,%zu], or [%zu]", shape, d_k, heads, d_k,
                       heads * d_k);
}

static bool check_gains(const attn_request *request, const attn_affine *norm, const char *weight, const char *bias,
                        size_t heads, size_t d_k, struct attn_check *check)
{
    if (!check_gain(request, norm->weight, weight, heads, d_k, check) ||
        !check_gain(request, norm->bias, bias, heads, d_k, check))
        return false;
    if (norm->weight != NULL && norm->bias != NULL &&
        (norm->weight->rank != norm->bias->rank || norm->weight->shape[0] != norm->bias->shape[0]))
        return attn_refuse(check, ATTN_ERR_SHAPE, bias, "weight and bias of a norm must have the same shape");
    return true;
}

bool attn_qk_check(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_options *options = &request->options;
    if (options->qk_norm != ATTN_NORM_NONE && !(options->qk_norm_eps >= 0 && isfinite(options->qk_norm_eps)))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.qk_norm_eps", "~ must be a finite number, 0 or more");
    return check_gains(request, &request->weights.query_norm, "weights.query_norm.weight", "weights.query_norm.bias",
                       dims->heads, dims->d_k, check) &&
           check_gains(request, &request->weights.key_norm, "weights.key_norm.weight", "weights.key_norm.bias",
                       dims->kv_heads, dims->d_k, check);
}
