/*
 * block_decode.c: decodes the parts that the attention and the feed-forward network of a block share: linear maps and
 * norms; and the network, "weights.feed_forward" and "options.feed_forward".
 */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#include "base/array.h"
#include "codec/json/node.h"
#include "codec/request/decoder.h"
#include "codec/tensor/mxfp4.h"

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
    static const struct choice types[] = {{"layer", ATTN_NORM_LAYER}, {"rms", ATTN_NORM_RMS}, {NULL, 0}};
    return decode_choice(reading, node, types, to);
}

attn_status decode_norm_position(struct reading *reading, const struct node *node, void *to)
{
    return decode_choice(reading, node, envelope_norm_positions, to);
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
    return decode_choice(reading, node, envelope_norms, to);
}

#define EPS_BEHIND(norm) (offsetof(attn_options, norm##_eps) - offsetof(attn_options, norm))

attn_status decode_qk_norm(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"type", decode_qk_norm_type, 0, MEMBER_ALWAYS},
        {"eps", node_decode_positive, EPS_BEHIND(qk_norm), MEMBER_ALWAYS},
    };
    static_assert(EPS_BEHIND(latent_norm) == EPS_BEHIND(qk_norm), "both are read by these members");
    *(attn_norm_type *)to = json_is_false(node->json) ? ATTN_NORM_NONE : ATTN_NORM_RMS;
    return decode_norm_members(reading, node, members, ARRAY_LENGTH(members), to);
}

/* ---- a mixture of experts ---- */

attn_status decode_layout(struct reading *reading, const struct node *node, void *to)
{
    return decode_choice(reading, node, envelope_layouts, to);
}

/* The bytes beside the text that the member stands for. NULL: it stands for none. */
static const attn_tensor *attached_bytes(struct reading *reading, const struct node *node, const char *name)
{
    const struct node member = node_member(node, name);
    size_t number;
    if (!member.json || !node_attached(reading, &member, &number))
        return NULL;
    const attn_tensor *tensor = &decoder_of(reading)->attachments[number].tensor;
    return tensor->dtype == ATTN_U8 ? tensor : NULL;
}

/* Widens in stretches, with a check of the deadline between two of them. */
static attn_status widen_packed(struct reading *reading, const struct node *node, const attn_tensor *blocks,
                                const attn_tensor *scales, const attn_tensor *weight)
{
    enum { BLOCKS = 1 << 12 };
    const size_t count = attn_tensor_count(scales);
    for (size_t first = 0; first < count; first += BLOCKS) {
        if (attn_arena_is_cancelled(reading->arena))
            return node_fail(reading, node, ATTN_ERR_CANCELLED, "was not read to its end: cancelled");
        mxfp4_widen((const uint8_t *)blocks->data + first * MXFP4_BYTES, (const uint8_t *)scales->data + first,
                    count - first < BLOCKS ? count - first : BLOCKS, weight->dtype,
                    (char *)weight->data + first * MXFP4_NUMBERS * attn_dtype_bytes(weight->dtype));
    }
    return reading->status;
}

/* const attn_tensor *: the weight of the linear map node, given as "blocks" and "scales" (mxfp4.h). */
static attn_status decode_packed(struct reading *reading, const struct node *node, const attn_tensor **to)
{
    const struct decoder *decoder = decoder_of(reading);
    const attn_tensor *blocks = attached_bytes(reading, node, "blocks"),
                      *scales = attached_bytes(reading, node, "scales");
    if (!blocks || !scales || blocks->rank != 3 || scales->rank != 2 || blocks->shape[2] != MXFP4_BYTES ||
        blocks->shape[0] != scales->shape[0] || blocks->shape[1] != scales->shape[1])
        return node_fail(reading, node, ATTN_ERR_SHAPE,
                         "has no MXFP4 weight: expected uint8 blocks of shape [rows,n,%d] and scales of shape [rows,n]",
                         MXFP4_BYTES);
    const size_t shape[2] = {blocks->shape[0], blocks->shape[1] * MXFP4_NUMBERS};
    attn_tensor *weight = attn_arena_take(reading->arena, 1, sizeof *weight);
    if (!weight)
        return node_fail_memory(reading, node);
    *weight = attn_tensor_view(NULL, *decoder->compute == ATTN_F32 ? ATTN_BF16 : ATTN_F64, 2, shape);
    *to = weight;
    if (decoder->shapes_only)
        return reading->status;
    weight->data = attn_arena_take(reading->arena, attn_tensor_count(weight), attn_dtype_bytes(weight->dtype));
    return weight->data ? widen_packed(reading, node, blocks, scales, weight) : node_fail_memory(reading, node);
}

/* attn_affine, whose weight may be packed. */
static attn_status decode_expert_linear(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {.name = "blocks"}, {.name = "scales"}, {"bias", decode_tensor, offsetof(attn_affine, bias), MEMBER_ALWAYS}};
    attn_affine *linear = to;
    if (!json_is_object(node->json) || !node_find(node->json, "blocks"))
        return decode_linear(reading, node, to);
    node_check_members(reading, node, members, ARRAY_LENGTH(members));
    const struct node bias = node_member(node, "bias");
    if (bias.json)
        decode_tensor(reading, &bias, &linear->bias);
    return node_has_failed(reading) ? reading->status : decode_packed(reading, node, &linear->weight);
}

static attn_status decode_expert(struct reading *reading, const struct node *node, attn_expert *expert)
{
    static const struct member members[] = {
        {"up", decode_expert_linear, offsetof(attn_expert, up), MEMBER_ALWAYS},
        {"gate", decode_expert_linear, offsetof(attn_expert, gate), MEMBER_ALWAYS},
        {"down", decode_expert_linear, offsetof(attn_expert, down), MEMBER_ALWAYS},
    };
    return node_decode_members(reading, node, members, ARRAY_LENGTH(members), expert);
}

/* attn_experts: each and count, from an object with the members "0", "1" … */
static attn_status decode_each(struct reading *reading, const struct node *node, void *to)
{
    attn_experts *experts = to;
    if (!json_is_object(node->json))
        return node_fail_type(reading, node, "an object with a member for each expert: \"0\", \"1\" …");
    const size_t count = json_object_size(node->json);
    attn_expert *each = attn_arena_take_zeroed(reading->arena, count, sizeof *each);
    if (!each)
        return node_fail_memory(reading, node);
    for (size_t e = 0; e < count && !node_has_failed(reading); e++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", e);
        const struct node one = node_member(node, name);
        if (!one.json)
            return node_fail(reading, node, ATTN_ERR_FIELD, "has %zu experts, and none is \"%zu\"", count, e);
        decode_expert(reading, &one, &each[e]);
    }
    experts->each = each;
    experts->count = count;
    return reading->status;
}

/* attn_experts */
static attn_status decode_experts(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"router", decode_linear, offsetof(attn_experts, router), MEMBER_ALWAYS},
        {"shared_gate", decode_linear, offsetof(attn_experts, shared_gate), MEMBER_ALWAYS},
        {"each", decode_each, 0, MEMBER_ALWAYS},
        {"layout", decode_layout, offsetof(attn_experts, layout), MEMBER_ALWAYS},
    };
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
    const attn_experts *experts = to;
    if (experts->count == 0)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"each\", the experts of the router");
    return reading->status;
}

/* size_t */
static attn_status decode_per_token(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 1, INT32_MAX, to);
}

/* double: any finite number */
static attn_status decode_offset(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_number(reading, node, "a number", to);
}

/* attn_expert_options */
static attn_status decode_expert_options(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"per_token", decode_per_token, offsetof(attn_expert_options, per_token), MEMBER_ALWAYS},
        {"normalised", node_decode_bool, offsetof(attn_expert_options, normalised), MEMBER_ALWAYS},
        {"pairs", node_decode_bool, offsetof(attn_expert_options, pairs), MEMBER_ALWAYS},
        {"limit", node_decode_positive, offsetof(attn_expert_options, limit), MEMBER_ALWAYS},
        {"offset", decode_offset, offsetof(attn_expert_options, offset), MEMBER_ALWAYS},
    };
    return node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
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
        {"experts", decode_experts, offsetof(attn_feed_forward_weights, experts), MEMBER_OF_MODELS},
    };
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
    const attn_feed_forward_weights *weights = to;
    if (weights->experts.count == 0 && (!weights->up.weight || !weights->down.weight))
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
        {"experts", decode_expert_options, offsetof(attn_feed_forward_options, experts), MEMBER_OF_MODELS},
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
