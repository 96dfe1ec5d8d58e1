/*
 * profile.c: decodes "options.profile" of a request: the defaults of another system. The request's own options win.
 *
 * docs/semantics.md gives the sources, and says how the systems differ.
 */
#include <float.h>
#include <stddef.h>

#include "base/array.h"
#include "codec/request/decoder.h"

static const struct envelope_profile PROFILES[] = {
    {"torch_sdpa", ATTN_ALIGN_TOP_LEFT, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-5, .rms_eps = 0},
    {"torch_mha", ATTN_ALIGN_TOP_LEFT, ATTN_LAYOUT_OUT_IN, .layer_eps = 1e-5, .rms_eps = 0},
    {"onnx", ATTN_ALIGN_PAST, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-5, .rms_eps = 1e-5},
    {"jax", ATTN_ALIGN_TOP_LEFT, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-6, .rms_eps = 1e-6},
    {"keras", ATTN_ALIGN_TOP_LEFT, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-3, .rms_eps = 1e-6},
    {"flash", ATTN_ALIGN_BOTTOM_RIGHT, ATTN_LAYOUT_IN_OUT, .layer_eps = 1e-5, .rms_eps = 1e-5},
    {"hf", ATTN_ALIGN_BOTTOM_RIGHT, ATTN_LAYOUT_OUT_IN, .layer_eps = 1e-12, .rms_eps = 1e-6},
};

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

/* struct envelope: sets the profile, and its defaults for the sections that are decoded after the options */
attn_status decode_profile(struct reading *reading, const struct node *node, void *to)
{
    const char *words[ARRAY_LENGTH(PROFILES)];
    struct envelope *envelope = to;
    size_t index;
    for (size_t i = 0; i < ARRAY_LENGTH(PROFILES); i++)
        words[i] = PROFILES[i].name;
    node_decode_word(reading, node, words, ARRAY_LENGTH(PROFILES), &index);
    if (node_has_failed(reading))
        return reading->status;
    envelope->profile = &PROFILES[index];
    envelope->request.masks.align = PROFILES[index].align;
    /* Without weights in the request, the kept layer's weights keep their layout. */
    const struct node *root = node->parent != NULL ? node->parent->parent : NULL;
    if (root != NULL && node_find(root->json, "weights"))
        envelope->request.weights.layout = PROFILES[index].layout;
    return ATTN_OK;
}
