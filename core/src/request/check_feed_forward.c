/* check_feed_forward.c: the feed-forward network of a block, and the norms and the factor of branches. */
#include <math.h>

#include "request/checks.h"
#include "request/dims.h"
#include "request/steps.h"

static bool check_type(attn_norm_type type, double eps, const char *type_field, const char *eps_field,
                       struct attn_check *check)
{
    if (type != ATTN_NORM_NONE && type != ATTN_NORM_LAYER && type != ATTN_NORM_RMS)
        return attn_refuse(check, ATTN_ERR_VALUE, type_field, "norm is layer or rms");
    if (type != ATTN_NORM_NONE && !(eps >= 0 && isfinite(eps)))
        return attn_refuse(check, ATTN_ERR_VALUE, eps_field, "~ must be a finite number, 0 or more");
    return true;
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
    if (dims->d_ff == 0 && has_options(own))
        return attn_refuse(check, ATTN_ERR_FIELD, "options.feed_forward",
                           request->is_layer ? "@ needs weights.feed_forward"
                                             : "feed_forward belongs to multi-head attention");
    if (!check_branches(request, dims, check))
        return false;
    if (dims->d_ff == 0)
        return true;
    if (own->activation == ATTN_ACTIVATION_NONE)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.feed_forward.activation",
                           "options.feed_forward.activation is missing: relu, gelu, gelu_tanh, quick_gelu or silu");
    if (own->activation < ATTN_ACTIVATION_RELU || own->activation > ATTN_ACTIVATION_SILU)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.feed_forward.activation",
                           "~ is relu, gelu, gelu_tanh, quick_gelu or silu");
    const size_t width = own->position == ATTN_NORM_POST ? dims->d_out : attn_feed_forward_d_in(request, dims);
    return check_type(own->norm, own->norm_eps, "options.feed_forward.norm", "options.feed_forward.norm_eps", check) &&
           (!own->parallel || check_parallel(&request->options, check)) &&
           check_gains(request, &weights->norm, own->norm, "options.feed_forward.norm",
                       "weights.feed_forward.norm.weight", "weights.feed_forward.norm.bias", width, check);
}
