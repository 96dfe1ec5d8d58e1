/* experts.c: checks a mixture of experts: the shapes of its weights, and its options. */
#include <math.h>
#include <stdio.h>

#include "request/request.h"

enum { EXPERTS_MAX = 1 << 16 };

/* No table has the tensors of each expert, so their ranks are checked here, before any code reads a shape. */
static bool check_ranks(const attn_expert *expert, const char *name, struct attn_check *check)
{
    const attn_affine *const all[] = {&expert->up, &expert->gate, &expert->down};
    char field[96];
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        if ((all[n]->weight != NULL && all[n]->weight->rank != 2) ||
            (all[n]->bias != NULL && all[n]->bias->rank != 1)) {
            snprintf(field, sizeof field, "weights.feed_forward.%s", name);
            return attn_refuse(check, ATTN_ERR_SHAPE, field, "a weight of an expert has rank 2, and its bias rank 1");
        }
    return true;
}

/* The shapes of expert e: its features between up and down, and those of its result. */
static bool read_one(const attn_request *request, size_t e, size_t in, const char *giver, size_t *inner, size_t *out,
                     struct attn_check *check)
{
    const attn_experts *experts = &request->weights.feed_forward.experts;
    const attn_expert *expert = &experts->each[e];
    const bool has_pairs = request->options.feed_forward.experts.pairs;
    char name[64], field[96];
    size_t up = 0, gate = 0;
    snprintf(name, sizeof name, "experts.each.%zu.up", e);
    snprintf(field, sizeof field, "weights.feed_forward.%s.weight", name);
    if (!check_ranks(expert, name, check) ||
        !attn_matrix_read(&expert->up, name, request, experts->layout, in, giver, &up, check))
        return false;
    if (has_pairs && (up % 2 != 0 || attn_affine_is_given(&expert->gate)))
        return attn_refuse_shape(check, field, expert->up.weight, NULL,
                                 "up of pairs gives an even number of features, and stands without a gate");
    *inner = has_pairs ? up / 2 : up;
    snprintf(name, sizeof name, "experts.each.%zu.gate", e);
    if (attn_affine_is_given(&expert->gate) &&
        !attn_matrix_read(&expert->gate, name, request, experts->layout, in, giver, &gate, check))
        return false;
    if (gate != 0 && gate != up)
        return attn_refuse_shape(check, field, expert->up.weight, NULL,
                                 "gate gives %zu features, up gives %zu: they must be equal", gate, up);
    snprintf(name, sizeof name, "experts.each.%zu.down", e);
    return attn_matrix_read(&expert->down, name, request, experts->layout, *inner, "up gives", out, check);
}

static bool read_router(const attn_request *request, size_t in, const char *giver, struct attn_check *check)
{
    const attn_feed_forward_weights *w = &request->weights.feed_forward;
    const attn_experts *experts = &w->experts;
    const attn_layout layout = request->weights.layout;
    size_t count = 0, gates = 1;
    if (!attn_matrix_read(&experts->router, "experts.router", request, layout, in, giver, &count, check))
        return false;
    if (count != experts->count)
        return attn_refuse_shape(check, "weights.feed_forward.experts.router.weight", experts->router.weight, NULL,
                                 "the router has %zu experts, and there are %zu", count, experts->count);
    if (!attn_affine_is_given(&experts->shared_gate))
        return true;
    if (!attn_affine_is_given(&w->up))
        return attn_refuse(check, ATTN_ERR_FIELD, "weights.feed_forward.experts.shared_gate",
                           "~ needs weights.feed_forward.up, the network that all tokens share");
    if (!attn_matrix_read(&experts->shared_gate, "experts.shared_gate", request, layout, in, giver, &gates, check))
        return false;
    return gates == 1 ||
           attn_refuse_shape(check, "weights.feed_forward.experts.shared_gate.weight", experts->shared_gate.weight,
                             NULL, "the gate of the shared network gives %zu features, expected 1", gates);
}

bool attn_experts_read(const attn_request *request, attn_dims *dims, struct attn_check *check)
{
    const char *giver = attn_feed_forward_giver(request);
    const attn_experts *experts = &request->weights.feed_forward.experts;
    const size_t in = attn_feed_forward_d_in(request, dims);
    if (experts->count == 0)
        return true;
    if (experts->count > EXPERTS_MAX)
        return attn_refuse(check, ATTN_ERR_TOO_LARGE, "weights.feed_forward.experts",
                           "there are %zu experts; at most %d", experts->count, EXPERTS_MAX);
    if (experts->each == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "weights.feed_forward.experts.each", "~ is missing");
    if (!read_router(request, in, giver, check))
        return false;
    size_t wanted = dims->d_ff > 0 || request->options.feed_forward.residual ? dims->d_out : 0;
    for (size_t e = 0; e < experts->count; e++) {
        size_t inner = 0, out = 0;
        if (!read_one(request, e, in, giver, &inner, &out, check))
            return false;
        const bool is_gated = experts->each[e].gate.weight != NULL;
        wanted = wanted == 0 ? out : wanted;
        if ((e > 0 && (inner != dims->d_expert || is_gated != (experts->each[0].gate.weight != NULL))) || out != wanted)
            return attn_refuse(check, ATTN_ERR_SHAPE, "weights.feed_forward.experts",
                               "expert %zu gives %zu features by %zu, expected %zu by %zu%s", e, out, inner, wanted,
                               e > 0 ? dims->d_expert : inner,
                               is_gated != (experts->each[0].gate.weight != NULL) ? ", and a gate as expert 0" : "");
        dims->d_expert = inner;
    }
    dims->experts = experts->count;
    dims->d_out = wanted;
    return true;
}

bool attn_experts_check(const attn_request *request, const attn_dims *dims, struct attn_check *check)
{
    const attn_expert_options *own = &request->options.feed_forward.experts;
    const bool has_options =
        own->per_token != 0 || own->normalised || own->pairs || own->limit != 0 || own->offset != 0;
    if (dims->experts == 0)
        return !has_options || attn_refuse(check, ATTN_ERR_FIELD, "options.feed_forward.experts",
                                           "~ needs weights.feed_forward.experts");
    if (own->per_token == 0 || own->per_token > dims->experts)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.feed_forward.experts.per_token",
                           "~ is %zu, expected 1 to %zu, the number of experts", own->per_token, dims->experts);
    if (!(own->limit >= 0) || !isfinite(own->limit))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.feed_forward.experts.limit",
                           "~ must be a finite number above 0");
    if (!isfinite(own->offset))
        return attn_refuse(check, ATTN_ERR_VALUE, "options.feed_forward.experts.offset", "~ must be a finite number");
    const bool is_gated = own->pairs || request->weights.feed_forward.experts.each[0].gate.weight != NULL;
    if ((own->limit != 0 || own->offset != 0) && !is_gated)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.feed_forward.experts", "limit and offset need a gate");
    return true;
}
