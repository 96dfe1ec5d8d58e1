/*
 * block_decode.c: decodes the parts that the attention and the feed-forward network of a block share: linear maps and
 * norms; and the network, "weights.feed_forward" and "options.feed_forward".
 */
#include <stddef.h>

#include "base/array.h"
#include "codec/json/node.h"
#include "codec/request/decoder.h"

/* ---- linear maps ---- */

const struct short_form linear_form = {
    .member = "weight",
    .types = 1U << JSON_ARRAY,
    .takes_tensor = true,
    .wanted = "an object with weight and bias, or the weight alone",
};

attn_status decode_linear(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"weight", decode_weight, offsetof(attn_affine, weight), MEMBER_ALWAYS},
        {"bias", decode_tensor, offsetof(attn_affine, bias), MEMBER_ALWAYS},
    };
    attn_affine *linear = to;
    struct node spelt = *node;
    short_form_spell(reading, &spelt, &linear_form);
    node_decode_members(reading, &spelt, members, ARRAY_LENGTH(members), linear);
    if (!linear->weight)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"weight\"");
    return reading->status;
}

attn_status decode_affine(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"weight", decode_tensor, offsetof(attn_affine, weight), MEMBER_ALWAYS},
        {"bias", decode_tensor, offsetof(attn_affine, bias), MEMBER_ALWAYS},
    };
    struct node spelt = *node;
    short_form_spell(reading, &spelt, &linear_form);
    return node_decode_members(reading, &spelt, members, ARRAY_LENGTH(members), to);
}

/* ---- norms ---- */

/* Decodes the object of a norm, or its type alone. */
static attn_status decode_norm_members(struct reading *reading, const struct node *node, const struct member *members,
                                       size_t count, void *to)
{
    static const struct short_form form = {
        .member = "type",
        .types = 1U << JSON_STRING,
        .has_switch = true,
        .wanted = "an object with type and eps, the type alone, true or false",
    };
    struct node spelt = *node;
    short_form_spell(reading, &spelt, &form);
    return spelt.json ? node_decode_members(reading, &spelt, members, count, to) : reading->status;
}

attn_status decode_norm_type(struct reading *reading, const struct node *node, void *to)
{
    static const struct choice types[] = {{"layer", ATTN_NORM_LAYER}, {"rms", ATTN_NORM_RMS}};
    return decode_choice(reading, node, types, ARRAY_LENGTH(types), to);
}

attn_status decode_norm_position(struct reading *reading, const struct node *node, void *to)
{
    static const struct choice positions[] = {{"post", ATTN_NORM_POST}, {"pre", ATTN_NORM_PRE}};
    return decode_choice(reading, node, positions, ARRAY_LENGTH(positions), to);
}

attn_status decode_norm(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"type", decode_norm_type, offsetof(attn_options, norm), MEMBER_ALWAYS},
        {"position", decode_norm_position, offsetof(attn_options, norm_position), MEMBER_ALWAYS},
        {"eps", node_decode_positive, offsetof(attn_options, norm_eps), MEMBER_ALWAYS},
    };
    attn_options *options = to;
    options->norm = json_is_false(node->json) ? ATTN_NORM_NONE : ATTN_NORM_LAYER;
    options->norm_position = ATTN_NORM_POST;
    return decode_norm_members(reading, node, members, ARRAY_LENGTH(members), options);
}

attn_status decode_branch_norm(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"type", decode_norm_type, offsetof(attn_options, branch_norm), MEMBER_ALWAYS},
        {"eps", node_decode_positive, offsetof(attn_options, branch_norm_eps), MEMBER_ALWAYS},
    };
    return decode_norm_members(reading, node, members, ARRAY_LENGTH(members), to);
}

/* attn_norm_type */
static attn_status decode_qk_norm_type(struct reading *reading, const struct node *node, void *to)
{
    static const struct choice types[] = {{"rms", ATTN_NORM_RMS}, {"layer", ATTN_NORM_LAYER}, {"l2", ATTN_NORM_L2}};
    return decode_choice(reading, node, types, ARRAY_LENGTH(types), to);
}

attn_status decode_qk_norm(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"type", decode_qk_norm_type, offsetof(attn_options, qk_norm), MEMBER_ALWAYS},
        {"eps", node_decode_positive, offsetof(attn_options, qk_norm_eps), MEMBER_ALWAYS},
    };
    attn_options *options = to;
    options->qk_norm = json_is_false(node->json) ? ATTN_NORM_NONE : ATTN_NORM_RMS;
    return decode_norm_members(reading, node, members, ARRAY_LENGTH(members), options);
}

/* ---- the network ---- */

attn_status decode_feed_forward_weights(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"up", decode_linear, offsetof(attn_feed_forward_weights, up), MEMBER_ALWAYS},
        {"gate", decode_linear, offsetof(attn_feed_forward_weights, gate), MEMBER_ALWAYS},
        {"down", decode_linear, offsetof(attn_feed_forward_weights, down), MEMBER_ALWAYS},
        {"norm", decode_affine, offsetof(attn_feed_forward_weights, norm), MEMBER_ALWAYS},
        {"branch_norm", decode_affine, offsetof(attn_feed_forward_weights, branch_norm), MEMBER_OF_MODELS},
    };
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
    const attn_feed_forward_weights *weights = to;
    if ((!weights->up.weight || !weights->down.weight))
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"%s\", which every feed-forward network needs",
                         weights->up.weight ? "down" : "up");
    return reading->status;
}

/* attn_activation */
static attn_status decode_activation(struct reading *reading, const struct node *node, void *to)
{
#define ACTIVATION_WORD(code, name) [code] = name,
    static const char *const words[] = {ATTN_ACTIVATION_LIST(ACTIVATION_WORD)};
#undef ACTIVATION_WORD
    const size_t first = ATTN_ACTIVATION_RELU; /* "none" is no word of a request */
    size_t index;
    node_decode_word(reading, node, words + first, ARRAY_LENGTH(words) - first, &index);
    if (!node_has_failed(reading))
        *(attn_activation *)to = (attn_activation)(first + index);
    return reading->status;
}

/* attn_feed_forward_options: norm, norm_eps. The type may be missing: envelope_settle chooses it. */
static attn_status decode_network_norm(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"type", decode_norm_type, offsetof(attn_feed_forward_options, norm), MEMBER_ALWAYS},
        {"eps", node_decode_positive, offsetof(attn_feed_forward_options, norm_eps), MEMBER_ALWAYS},
    };
    return decode_norm_members(reading, node, members, ARRAY_LENGTH(members), to);
}

/* struct envelope: request.options.feed_forward, and what was given of it */
attn_status decode_feed_forward_options(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"activation", decode_activation, offsetof(attn_feed_forward_options, activation), MEMBER_ALWAYS},
        {"position", decode_norm_position, offsetof(attn_feed_forward_options, position), MEMBER_ALWAYS},
        {"parallel", node_decode_bool, offsetof(attn_feed_forward_options, parallel), MEMBER_ALWAYS},
        {"residual", node_decode_bool, offsetof(attn_feed_forward_options, residual), MEMBER_ALWAYS},
        {"norm", decode_network_norm, 0, MEMBER_ALWAYS},
    };
    struct envelope *envelope = to;
    attn_feed_forward_options *own = &envelope->request.options.feed_forward;
    *own = (attn_feed_forward_options){.residual = true};
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), own);
    if (!node_find(node->json, "activation"))
        return node_fail(reading, node, ATTN_ERR_FIELD,
                         "has no \"activation\": relu, gelu, gelu_tanh, quick_gelu or silu");
    envelope->has_feed_forward_norm = node_find(node->json, "norm") != NULL;
    envelope->has_feed_forward_position = node_find(node->json, "position") != NULL;
    return reading->status;
}

void settle_feed_forward(struct envelope *envelope)
{
    attn_options *options = &envelope->request.options;
    attn_feed_forward_options *own = &options->feed_forward;
    const attn_affine *norm = &envelope->request.weights.feed_forward.norm;
    if (!envelope->has_feed_forward_position)
        own->position = own->parallel ? ATTN_NORM_PRE : options->norm_position;
    if (!envelope->has_feed_forward_norm && norm->weight == NULL && norm->bias == NULL)
        return;
    if (own->norm == ATTN_NORM_NONE)
        own->norm = options->norm != ATTN_NORM_NONE ? options->norm : ATTN_NORM_LAYER;
    if (own->norm_eps == 0)
        own->norm_eps = own->norm == options->norm
                            ? options->norm_eps
                            : envelope_default_eps(envelope->profile, own->norm, options->compute);
}
