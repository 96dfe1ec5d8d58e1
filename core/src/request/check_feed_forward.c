/* check_feed_forward.c: the feed-forward network of a block, and the norms and the factor of branches. */
#include <math.h>

#include "base/fail_shape.h"
#include "request/checks.h"
#include "request/dims.h"
#include "request/steps.h"

static attn_status check_type(attn_norm_type type, double eps, const char *type_field, const char *eps_field,
                              attn_error *err)
{
    if (type != ATTN_NORM_NONE && type != ATTN_NORM_LAYER && type != ATTN_NORM_RMS)
        return attn_fail(err, ATTN_ERR_VALUE, type_field, "norm is layer or rms");
    if (type != ATTN_NORM_NONE && !(eps >= 0 && isfinite(eps)))
        return attn_fail(err, ATTN_ERR_VALUE, eps_field, "%s must be a finite number, 0 or more",
                         attn_last_name(eps_field));
    return ATTN_OK;
}

/* The gain and shift of a norm of rows of width numbers; option says which normalisation. */
static attn_status check_gains(const attn_request *request, const attn_affine *norm, attn_norm_type type,
                               const char *option, const char *weight, const char *bias, size_t width, attn_error *err)
{
    if (attn_affine_is_given(norm) && type == ATTN_NORM_NONE)
        return attn_fail(err, ATTN_ERR_FIELD, norm->weight != NULL ? weight : bias,
                         "it needs %s to say which normalisation", option);
    attn_status status = attn_check_row(norm->weight, weight, request->options.compute, width, err);
    return status == ATTN_OK ? attn_check_row(norm->bias, bias, request->options.compute, width, err) : status;
}

static attn_status check_branches(const attn_request *request, const attn_dims *dims, attn_error *err)
{
    const attn_options *options = &request->options;
    attn_status status = check_type(options->branch_norm, options->branch_norm_eps, "options.branch_norm",
                                    "options.branch_norm_eps", err);
    if (status == ATTN_OK && !isfinite(options->residual_scale))
        return attn_fail(err, ATTN_ERR_VALUE, "options.residual_scale", "residual_scale must be a finite number");
    if (status == ATTN_OK)
        status = check_gains(request, &request->weights.branch_norm, options->branch_norm, "options.branch_norm",
                             "weights.branch_norm.weight", "weights.branch_norm.bias", dims->d_attended, err);
    if (status == ATTN_OK)
        status = check_gains(request, &request->weights.feed_forward.branch_norm, options->branch_norm,
                             "options.branch_norm", "weights.feed_forward.branch_norm.weight",
                             "weights.feed_forward.branch_norm.bias", dims->d_out, err);
    return status;
}

static attn_status check_parallel(const attn_options *options, attn_error *err)
{
    const attn_feed_forward_options *own = &options->feed_forward;
    if (!own->residual)
        return attn_fail(err, ATTN_ERR_FIELD, "options.feed_forward.residual",
                         "a parallel feed-forward network is added to the attention: residual must be true");
    if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_POST)
        return attn_fail(err, ATTN_ERR_FIELD, "options.feed_forward.position",
                         "a parallel feed-forward network is normalised before it: position must be pre");
    if (attn_is_post_normed(options))
        return attn_fail(err, ATTN_ERR_FIELD, "options.norm_position",
                         "beside a parallel feed-forward network the norm must be before: pre");
    return ATTN_OK;
}

static bool has_options(const attn_feed_forward_options *own)
{
    return own->activation != ATTN_ACTIVATION_NONE || own->norm != ATTN_NORM_NONE || own->parallel || own->residual;
}

attn_status attn_feed_forward_check(const attn_request *request, const attn_dims *dims, attn_error *err)
{
    const attn_feed_forward_options *own = &request->options.feed_forward;
    const attn_feed_forward_weights *weights = &request->weights.feed_forward;
    if (dims->d_ff == 0 && has_options(own))
        return attn_fail(err, ATTN_ERR_FIELD, "options.feed_forward",
                         request->is_layer ? "options.feed_forward needs weights.feed_forward"
                                           : "feed_forward belongs to multi-head attention");
    attn_status status = check_branches(request, dims, err);
    if (status != ATTN_OK || dims->d_ff == 0)
        return status;
    if (own->activation == ATTN_ACTIVATION_NONE)
        return attn_fail(err, ATTN_ERR_FIELD, "options.feed_forward.activation",
                         "options.feed_forward.activation is missing: relu, gelu, gelu_tanh, quick_gelu or silu");
    if (own->activation < ATTN_ACTIVATION_RELU || own->activation > ATTN_ACTIVATION_SILU)
        return attn_fail(err, ATTN_ERR_VALUE, "options.feed_forward.activation",
                         "activation is relu, gelu, gelu_tanh, quick_gelu or silu");
    status = check_type(own->norm, own->norm_eps, "options.feed_forward.norm", "options.feed_forward.norm_eps", err);
    if (status == ATTN_OK && own->parallel)
        status = check_parallel(&request->options, err);
    if (status != ATTN_OK)
        return status;
    const size_t width = own->position == ATTN_NORM_POST ? dims->d_out : attn_feed_forward_d_in(request, dims);
    return check_gains(request, &weights->norm, own->norm, "options.feed_forward.norm",
                       "weights.feed_forward.norm.weight", "weights.feed_forward.norm.bias", width, err);
}
