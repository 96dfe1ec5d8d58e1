/* norms.c: checks the norms of a request, and the feed-forward network of a block. */
#include <math.h>

#include "request/request.h"

bool attn_check_eps(double eps, const char *field, struct attn_check *check)
{
    return (eps >= 0 && isfinite(eps)) ||
           attn_refuse(check, ATTN_ERR_VALUE, field, "~ must be a finite number, 0 or more");
}

static bool check_type(attn_norm_type type, double eps, const char *type_field, const char *eps_field,
                       struct attn_check *check)
{
    if (type != ATTN_NORM_NONE && type != ATTN_NORM_LAYER && type != ATTN_NORM_RMS)
        return attn_refuse(check, ATTN_ERR_VALUE, type_field, "norm is layer or rms");
    return type == ATTN_NORM_NONE || attn_check_eps(eps, eps_field, check);
}

/* The gain and shift of a norm of rows of width numbers; option says which normalisation. */
static bool check_gains(const attn_request *request, const attn_affine *norm, attn_norm_type type, const char *option,
                        const char *weight, const char *bias, size_t width, struct attn_check *check)
{
    if (attn_affine_is_given(norm) && type == ATTN_NORM_NONE)
        return attn_refuse(check, ATTN_ERR_FIELD, norm->weight != NULL ? weight : bias,
                           "it needs %s to say which normalisation", option);
    return attn_check_row(norm->weight, weight, request->options.compute, width, check) &&
           attn_check_row(norm->bias, bias, request->options.compute, width, check);
}

static bool check_branches(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_options *options = &request->options;
    static const char *const type = "options.branch_norm";
    if (!check_type(options->branch_norm, options->branch_norm_eps, type, "options.branch_norm_eps", check))
        return false;
    if (!isfinite(options->residual_scale))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.residual_scale", "~ must be a finite number");
    return check_gains(request, &request->weights.branch_norm, options->branch_norm, type, "weights.branch_norm.weight",
                       "weights.branch_norm.bias", dims->d_attended, check) &&
           check_gains(request, &request->weights.feed_forward.branch_norm, options->branch_norm, type,
                       "weights.feed_forward.branch_norm.weight", "weights.feed_forward.branch_norm.bias", dims->d_out,
                       check);
}

static bool check_parallel(const attn_options *options, struct attn_check *check)
{
    const attn_feed_forward_options *own = &options->feed_forward;
    if (!own->residual)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.feed_forward.residual",
                           "a parallel feed-forward network is added to the attention: residual must be true");
    if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_POST)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.feed_forward.position",
                           "a parallel feed-forward network is normalised before it: position must be pre");
    if (attn_is_post_normed(options))
        return attn_refuse(check, ATTN_ERR_FIELD, "options.norm_position",
                           "beside a parallel feed-forward network the norm must be before: pre");
    return true;
}

static bool has_options(const attn_feed_forward_options *own)
{
    return own->activation != ATTN_ACTIVATION_NONE || own->norm != ATTN_NORM_NONE || own->parallel || own->residual;
}

bool attn_feed_forward_check(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_feed_forward_options *own = &request->options.feed_forward;
    const attn_feed_forward_weights *weights = &request->weights.feed_forward;
    if (!attn_has_feed_forward(dims) && has_options(own))
        return attn_refuse(check, ATTN_ERR_FIELD, "options.feed_forward",
                           request->is_layer ? "@ needs weights.feed_forward"
                                             : "feed_forward belongs to multi-head attention");
    if (!check_branches(request, dims, check))
        return false;
    if (!attn_has_feed_forward(dims))
        return true;
    if (own->activation == ATTN_ACTIVATION_NONE)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.feed_forward.activation",
                           "options.feed_forward.activation is missing: relu, gelu, gelu_tanh, quick_gelu or silu");
    if (own->activation < ATTN_ACTIVATION_RELU || own->activation > ATTN_ACTIVATION_SILU)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.feed_forward.activation",
                           "~ is relu, gelu, gelu_tanh, quick_gelu or silu");
    const size_t width = own->position == ATTN_NORM_POST ? dims->d_out : attn_feed_forward_d_in(request, dims);
    return attn_experts_check(request, dims, check) &&
           check_type(own->norm, own->norm_eps, "options.feed_forward.norm", "options.feed_forward.norm_eps", check) &&
           (!own->parallel || check_parallel(&request->options, check)) &&
           check_gains(request, &weights->norm, own->norm, "options.feed_forward.norm",
                       "weights.feed_forward.norm.weight", "weights.feed_forward.norm.bias", width, check);
}

/* ---- queries, keys and their latents ---- */

#define LATENT_NORM "options.latent_norm"

/* Gain or shift of a norm: (d_k), (heads, d_k) or (heads * d_k). */
static bool check_head_gain(const attn_request *request, const attn_tensor *vector, const char *field, size_t heads,
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

static bool check_head_gains(const attn_request *request, const attn_affine *norm, const char *weight, const char *bias,
                             size_t heads, size_t d_k, struct attn_check *check)
{
    if (!check_head_gain(request, norm->weight, weight, heads, d_k, check) ||
        !check_head_gain(request, norm->bias, bias, heads, d_k, check))
        return false;
    if (norm->weight != NULL && norm->bias != NULL &&
        (norm->weight->rank != norm->bias->rank || norm->weight->shape[0] != norm->bias->shape[0]))
        return attn_refuse(check, ATTN_ERR_SHAPE, bias, "weight and bias of a norm must have the same shape");
    return true;
}

/* Gains of a latent of so many features; of 0: there is none. */
static bool check_latent_gains(const attn_request *request, const attn_affine *norm, const char *const names[3],
                               size_t d_latent, struct attn_check *check)
{
    const attn_norm_type type = request->options.latent_norm;
    if (attn_affine_is_given(norm) && type != ATTN_NORM_NONE && d_latent == 0)
        return attn_refuse(check, ATTN_ERR_FIELD, names[norm->weight == NULL], "it needs weights.%s", names[2]);
    return check_gains(request, norm, type, LATENT_NORM, names[0], names[1], d_latent, check);
}

bool attn_qk_check(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_options *options = &request->options;
    if (options->qk_norm != ATTN_NORM_NONE && !attn_check_eps(options->qk_norm_eps, "options.qk_norm_eps", check))
        return false;
    if (options->latent_norm != ATTN_NORM_NONE &&
        !attn_check_eps(options->latent_norm_eps, "options.latent_norm_eps", check))
        return false;
    if (options->latent_norm != ATTN_NORM_NONE && dims->d_query_latent + dims->d_key_latent == 0)
        return attn_refuse(check, ATTN_ERR_FIELD, LATENT_NORM, "~ needs weights.query_latent or weights.key_latent");
    static const char *const of_query[] = {"weights.query_latent_norm.weight", "weights.query_latent_norm.bias",
                                           "query_latent"},
                             *const of_key[] = {"weights.key_latent_norm.weight", "weights.key_latent_norm.bias",
                                                "key_latent"};
    const attn_weights *weights = &request->weights;
    if (!check_latent_gains(request, &weights->query_latent_norm, of_query, dims->d_query_latent, check) ||
        !check_latent_gains(request, &weights->key_latent_norm, of_key, dims->d_key_latent, check))
        return false;
    return check_head_gains(request, &request->weights.query_norm, "weights.query_norm.weight",
                            "weights.query_norm.bias", dims->heads, dims->d_k, check) &&
           check_head_gains(request, &request->weights.key_norm, "weights.key_norm.weight", "weights.key_norm.bias",
                            dims->kv_heads, dims->d_k, check);
}
