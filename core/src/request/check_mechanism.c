/* check_mechanism.c: checks options.mechanism against the dimensions and the rest of the request. */
#include <math.h>

#include "formulas/features.h"
#include "request/checks.h"
#include "request/steps.h"

static bool check_performer(const attn_mechanism *m, const attn_request *request, const attn_dims *dims,
                            struct attn_check *check)
{
    static const char *const field = "options.mechanism.projection";
    const attn_tensor *p = m->projection;
    char shape[64];
    if (m->features > ATTN_PERFORMER_FEATURES_MAX)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.mechanism.features", "~ must be at most %d",
                           ATTN_PERFORMER_FEATURES_MAX);
    if (p == NULL)
        return true;
    if (p->dtype != request->options.compute || !attn_tensor_is_contiguous(p))
        return attn_refuse(check, ATTN_ERR_FIELD, field, "the projection must be %s without gaps",
                           attn_dtype_name(request->options.compute));
    attn_shape_text(shape, sizeof shape, p->rank, p->shape);
    if (p->rank != 2 || p->shape[1] != dims->d_k || p->shape[0] == 0 || p->shape[0] > ATTN_PERFORMER_FEATURES_MAX ||
        (m->features != 0 && m->features != p->shape[0]))
        return attn_refuse(check, ATTN_ERR_SHAPE, field, "the projection has shape %s, expected [features,%zu]", shape,
                           dims->d_k);
    return true;
}

static bool check_companions(const attn_request *request, struct attn_check *check)
{
    static const attn_step softmax_alone[] = {ATTN_STEP_SCORES,   ATTN_STEP_SCALED,  ATTN_STEP_MASKED, ATTN_STEP_LSE,
                                              ATTN_STEP_LSE_KEYS, ATTN_STEP_ENTROPY, ATTN_STEP_SINK};
    const attn_options *options = &request->options;
    for (size_t s = 0; s < sizeof softmax_alone / sizeof *softmax_alone; s++)
        if (attn_wants(options, softmax_alone[s]))
            return attn_refuse(check, ATTN_ERR_FIELD, "options.want", "\"%s\" belongs to mechanism softmax",
                               attn_step_name(softmax_alone[s]));
    if (options->softcap > 0)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.softcap", "~ belongs to mechanism softmax");
    if (options->dropout > 0 && options->dropout_attention)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.dropout_attention",
                           "dropout of weights belongs to mechanism softmax; dropout on the residual is possible");
    if (options->sinks != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.sinks", "~ belong to mechanism softmax");
    if (options->alibi || options->alibi_slopes != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, options->alibi ? "options.alibi" : "options.alibi_slopes",
                           "alibi belongs to mechanism softmax");
    if (options->relative_bias.table != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.relative_bias", "~ belongs to mechanism softmax");
    if (request->masks.bias != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "masks.bias", "a bias belongs to mechanism softmax; use attend");
    return true;
}

bool attn_mechanism_check(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_mechanism *m = &request->options.mechanism;
    if (!attn_has_feature_maps(&request->options))
        return true;
    if (!(m->eps >= 0 && isfinite(m->eps)))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.mechanism.eps", "~ must be a finite number, 0 or more");
    if (m->type == ATTN_LINEAR && !m->is_unnormalised && request->options.has_scale)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.scale",
                           "~ has no meaning for mechanism linear, unless it is not normalised");
    return check_companions(request, check) && (m->type != ATTN_PERFORMER || check_performer(m, request, dims, check));
}
