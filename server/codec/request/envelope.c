/* envelope.c: sets the defaults of every request, and answers questions about a decoded one. */
#include "codec/request/envelope.h"

#include <assert.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"

const struct choice envelope_norms[] = {
    {"rms", ATTN_NORM_RMS}, {"layer", ATTN_NORM_LAYER}, {"l2", ATTN_NORM_L2}, {NULL, 0}};
const struct choice envelope_norm_positions[] = {{"post", ATTN_NORM_POST}, {"pre", ATTN_NORM_PRE}, {NULL, 0}};
const struct choice envelope_layouts[] = {{"in_out", ATTN_LAYOUT_IN_OUT}, {"out_in", ATTN_LAYOUT_OUT_IN}, {NULL, 0}};
const struct choice envelope_ropes[] = {{"half", ATTN_ROPE_HALF},
                                        {"interleaved", ATTN_ROPE_INTERLEAVED},
                                        {"interleaved_to_half", ATTN_ROPE_INTERLEAVED_TO_HALF},
                                        {NULL, 0}};
const struct choice envelope_update_rules[] = {{"linear", ATTN_RULE_LINEAR},
                                               {"gated", ATTN_RULE_GATED},
                                               {"delta", ATTN_RULE_DELTA},
                                               {"gated_delta", ATTN_RULE_GATED_DELTA},
                                               {NULL, 0}};
const struct choice envelope_mechanisms[] = {
    {"softmax", ATTN_SOFTMAX}, {"linear", ATTN_LINEAR}, {"performer", ATTN_PERFORMER}, {NULL, 0}};

const char *envelope_word(const struct choice *choices, unsigned value)
{
    for (; choices->value != value; choices++)
        assert(choices->word != NULL);
    return choices->word;
}

void envelope_set_defaults(struct envelope *envelope, envelope_kind kind)
{
    *envelope = (struct envelope){.form = TENSOR_FORM_NESTED, .reduction.dtype = ATTN_DTYPE_COUNT};
    envelope->request.is_layer = envelope_is_layer(kind);
    attn_options *options = &envelope->request.options;
    options->compute = ATTN_F32;
    if (!envelope_is_gradients(kind))
        options->want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | ATTN_STEP_BIT(ATTN_STEP_ATTENTION);
}

double envelope_default_eps(const struct envelope_profile *profile, attn_norm_type type, attn_dtype compute)
{
    static const struct envelope_profile own = {.layer_eps = 1e-5, .rms_eps = 1e-5};
    static const double l2_eps = 1e-12; /* of torch.nn.functional.normalize, whose clamp it is */
    const struct envelope_profile *from = profile != NULL ? profile : &own;
    if (type == ATTN_NORM_L2)
        return l2_eps;
    if (type == ATTN_NORM_LAYER)
        return from->layer_eps;
    return from->rms_eps > 0 ? from->rms_eps : compute == ATTN_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
}

const char *envelope_compute_name(attn_dtype compute, bool bf16_products)
{
    return bf16_products ? "bfloat16" : attn_dtype_name(compute);
}

const char *envelope_form_option(const struct envelope *envelope)
{
    const struct envelope_reduction *reduction = &envelope->reduction;
    return envelope->view != ENVELOPE_VIEW_NONE   ? "/options/view"
           : reduction->has_pool                  ? "/options/pool"
           : reduction->top_k > 0                 ? "/options/top_k"
           : reduction->dtype != ATTN_DTYPE_COUNT ? "/options/dtype"
                                                  : NULL;
}

/* ---- names of members, and plans ---- */

/*
 * Members whose pointer is not their C path with slashes for dots. A row also holds for the members within its member.
 */
static const struct {
    const char *path, *pointer;
} members[] = {
    {"grad_output", "/inputs/grad_output"},
    {"masks.blocks.kv_size", "/masks/blocks/size"},
    {"masks.blocks.prefix", "/masks/blocks/length"},
    {"masks.documents_key", "/masks/documents/key"},
    {"masks.documents_query", "/masks/documents/query"},
    {"masks.offset", "/masks/causal/offset"},
    {"masks.window_left", "/masks/window"},
    {"masks.window_right", "/masks/window"},
    {"of", "/options/return"},
    {"options.alibi_slopes", "/options/alibi"},
    {"options.bf16_products", "/options/compute"},
    {"options.branch_norm_eps", "/options/branch_norm/eps"},
    {"options.dropout", "/options/dropout/p"},
    {"options.dropout_attention", "/options/dropout/where"},
    {"options.dropout_residual", "/options/dropout/where"},
    {"options.feed_forward.norm_eps", "/options/feed_forward/norm/eps"},
    {"options.latent_norm_eps", "/options/latent_norm/eps"},
    {"options.norm_eps", "/options/norm/eps"},
    {"options.norm_position", "/options/norm/position"},
    {"options.qk_norm_eps", "/options/qk_norm/eps"},
    {"options.rope.key", "/options/rope"},
    {"options.rope.query", "/options/rope"},
    {"options.rope.scaling.keeps_fraction", "/options/rope/scaling/truncate"},
    {"options.want", "/options/return"},
    {"output", "/outputs/output"},
    {"weights.qkv_order", "/weights/qkv/order"},
};

/* One list of documents for queries and keys is one member of JSON, and two members of C. */
static bool has_one_list(const attn_request *request)
{
    return request != NULL && request->masks.documents_query != NULL &&
           request->masks.documents_query == request->masks.documents_key;
}

/* An attn_namer. */
static void name_member(const attn_request *request, const char *path, char *name, size_t size)
{
    const char *start = "/", *rest = path;
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
        const size_t length = strlen(members[i].path);
        if (strncmp(path, members[i].path, length) != 0 || (path[length] != '\0' && path[length] != '.'))
            continue;
        start = members[i].pointer;
        rest = path + length;
    }
    if (strcmp(path, "masks.documents_query") == 0 && has_one_list(request))
        start = "/masks/documents";
    snprintf(name, size, "%s%s", start, rest);
    for (char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot, '.'))
        *dot = '/';
}

const char *envelope_pointer(const char *path, char pointer[ENVELOPE_POINTER_MAX])
{
    name_member(NULL, path, pointer, ENVELOPE_POINTER_MAX);
    return pointer;
}

static bool lacks_dropped(const attn_options *options)
{
    return (options->want & ATTN_STEP_BIT(ATTN_STEP_DROPPED)) && !(options->dropout > 0 && options->dropout_attention);
}

/* The core does not know that dropout takes part only in training. */
static attn_status fail_dropped(attn_error *err)
{
    return attn_fail(err, ATTN_ERR_FIELD, "/options/return",
                     "\"dropped\" needs options.dropout on attention with p above 0, and training: true");
}

attn_status envelope_plan(const struct envelope *envelope, attn_plan *plan, attn_error *err)
{
    const attn_request *request = &envelope->request;
    return lacks_dropped(&request->options) ? fail_dropped(err) : attn_plan_make_named(request, name_member, plan, err);
}

attn_status envelope_gradient_plan(const struct envelope *envelope, const attn_gradient_request *request,
                                   attn_gradient_plan *plan, attn_error *err)
{
    return lacks_dropped(&envelope->request.options) ? fail_dropped(err)
                                                     : attn_gradient_plan_make_named(request, name_member, plan, err);
}
