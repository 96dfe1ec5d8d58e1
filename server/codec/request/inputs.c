/* inputs.c: decodes "inputs" and "weights" of a request. */
#include <stddef.h>

#include "base/array.h"
#include "codec/request/decoder.h"

#define INPUT(field) offsetof(struct envelope, request.inputs.field)

static const struct member inputs_members[] = {
    {"query", decode_rows, INPUT(query), MEMBER_ALWAYS},
    {"key", decode_rows, INPUT(key), MEMBER_ALWAYS},
    {"value", decode_rows, INPUT(value), MEMBER_ALWAYS},
    {"past_key", decode_past, INPUT(past_key), MEMBER_ALWAYS},
    {"past_value", decode_past, INPUT(past_value), MEMBER_ALWAYS},
    {"scores", decode_scores, INPUT(scores), MEMBER_OF_ATTENTION},
    {"attention", decode_tensor, INPUT(attention), MEMBER_OF_ATTENTION},
    {"decay", decode_tensor, INPUT(decay), MEMBER_ALWAYS},
    {"beta", decode_tensor, INPUT(beta), MEMBER_ALWAYS},
    {"past_state", decode_tensor, INPUT(past_state), MEMBER_ALWAYS},
    {"grad_output", decode_tensor, offsetof(struct envelope, grad_output), MEMBER_OF_GRADIENTS},
};

const struct member_table inputs_table = {"inputs", inputs_members, ARRAY_LENGTH(inputs_members)};

attn_status decode_inputs(struct reading *reading, const struct node *node, void *to)
{
    struct envelope *envelope = to;
    const attn_inputs *inputs = &envelope->request.inputs;
    if (!json_is_object(node->json))
        return node_fail_type_with(
            reading, node, "an object",
            "vectors are inputs.query, and a whole model takes texts: POST /v1/models/{model}/attention");
    node_decode_members(reading, node, inputs_members, ARRAY_LENGTH(inputs_members), to);
    /* Without values there is no output, so the default of options.return is the attention alone. */
    if (!envelope->has_return && inputs->scores && !inputs->value)
        envelope->request.options.want &= ~ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    if (!inputs->query && !attn_start_of(inputs))
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"query\", which every request needs");
    if (envelope_is_gradients(decoder_of(reading)->kind) && !envelope->grad_output)
        return node_fail(reading, node, ATTN_ERR_FIELD,
                         "has no \"grad_output\": the gradient with respect to the output, in its shape");
    return reading->status;
}

/* attn_qkv_order */
static attn_status decode_order(struct reading *reading, const struct node *node, void *to)
{
    static const struct choice orders[] = {
        {"stacked", ATTN_QKV_STACKED}, {"per_head", ATTN_QKV_PER_HEAD}, {"per_group", ATTN_QKV_PER_GROUP}, {NULL, 0}};
    return decode_choice(reading, node, orders, to);
}

/* attn_weights: qkv and its order */
static attn_status decode_qkv(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"weight", decode_weight, offsetof(attn_weights, qkv.weight), MEMBER_ALWAYS},
        {"bias", decode_tensor, offsetof(attn_weights, qkv.bias), MEMBER_ALWAYS},
        {"order", decode_order, offsetof(attn_weights, qkv_order), MEMBER_ALWAYS},
    };
    attn_weights *weights = to;
    struct node spelt = *node;
    short_form_spell(reading, &spelt, &linear_form);
    node_decode_members(reading, &spelt, members, ARRAY_LENGTH(members), weights);
    if (!weights->qkv.weight)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"weight\"");
    return reading->status;
}

static const struct member weights_members[] = {
    {"query", decode_linear, offsetof(attn_weights, query), MEMBER_ALWAYS},
    {"key", decode_linear, offsetof(attn_weights, key), MEMBER_ALWAYS},
    {"value", decode_linear, offsetof(attn_weights, value), MEMBER_ALWAYS},
    {"qkv", decode_qkv, 0, MEMBER_ALWAYS},
    {"output", decode_linear, offsetof(attn_weights, output), MEMBER_ALWAYS},
    {"norm", decode_affine, offsetof(attn_weights, norm), MEMBER_ALWAYS},
    {"layout", decode_layout, offsetof(attn_weights, layout), MEMBER_ALWAYS},
    {"query_norm", decode_affine, offsetof(attn_weights, query_norm), MEMBER_ALWAYS},
    {"key_norm", decode_affine, offsetof(attn_weights, key_norm), MEMBER_ALWAYS},
    {"gate", decode_linear, offsetof(attn_weights, gate), MEMBER_ALWAYS},
    {"relative_key", decode_linear, offsetof(attn_weights, relative_key), MEMBER_ALWAYS},
    {"relative_query", decode_linear, offsetof(attn_weights, relative_query), MEMBER_ALWAYS},
    {"query_latent", decode_linear, offsetof(attn_weights, query_latent), MEMBER_ALWAYS},
    {"key_latent", decode_linear, offsetof(attn_weights, key_latent), MEMBER_ALWAYS},
    {"key_shared", decode_linear, offsetof(attn_weights, key_shared), MEMBER_ALWAYS},
    {"query_latent_norm", decode_affine, offsetof(attn_weights, query_latent_norm), MEMBER_ALWAYS},
    {"key_latent_norm", decode_affine, offsetof(attn_weights, key_latent_norm), MEMBER_ALWAYS},
    {"feed_forward", decode_feed_forward_weights, offsetof(attn_weights, feed_forward), MEMBER_ALWAYS},
    {"branch_norm", decode_affine, offsetof(attn_weights, branch_norm), MEMBER_OF_MODELS},
};

const struct member_table weights_table = {"weights", weights_members, ARRAY_LENGTH(weights_members)};

attn_status decode_weights(struct reading *reading, const struct node *node, void *to)
{
    return node_decode_members(reading, node, weights_members, ARRAY_LENGTH(weights_members), to);
}
