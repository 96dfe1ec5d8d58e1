/* mechanism.c: decodes "options.mechanism" of a request: a name, or an object with the name as its type. */
#include <stddef.h>

#include "base/array.h"
#include "codec/request/decoder.h"

#define MECHANISM(field) offsetof(attn_mechanism, field)

/* attn_mechanism_type */
static attn_status decode_mechanism_type(struct reading *reading, const struct node *node, void *to)
{
    return decode_choice(reading, node, envelope_mechanisms, to);
}

/* bool: whether phi(x) = x */
static attn_status decode_feature_map(struct reading *reading, const struct node *node, void *to)
{
    static const char *const words[] = {"elu", "identity"};
    size_t index = 0;
    node_decode_word(reading, node, words, ARRAY_LENGTH(words), &index);
    *(bool *)to = index == 1;
    return reading->status;
}

/* attn_mechanism: a recurrence has neither a feature map nor a denominator */
static attn_status decode_update_rule(struct reading *reading, const struct node *node, void *to)
{
    attn_mechanism *mechanism = to;
    mechanism->is_identity = mechanism->is_unnormalised = true;
    return decode_choice(reading, node, envelope_update_rules, &mechanism->update_rule);
}

/* size_t */
static attn_status decode_features(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 1, ATTN_PERFORMER_FEATURES_MAX, to);
}

attn_status decode_mechanism(struct reading *reading, const struct node *node, void *to)
{
    static const struct member linear[] = {
        {"type", decode_mechanism_type, MECHANISM(type), MEMBER_ALWAYS},
        {"update_rule", decode_update_rule, 0, MEMBER_ALWAYS}, /* sets what the next two may contradict */
        {"feature_map", decode_feature_map, MECHANISM(is_identity), MEMBER_ALWAYS},
        {"normalize", decode_opposite, MECHANISM(is_unnormalised), MEMBER_ALWAYS},
        {"eps", decode_not_negative, MECHANISM(eps), MEMBER_ALWAYS},
    };
    static const struct member performer[] = {
        {"type", decode_mechanism_type, MECHANISM(type), MEMBER_ALWAYS},
        {"features", decode_features, MECHANISM(features), MEMBER_ALWAYS},
        {"seed", node_decode_seed, MECHANISM(seed), MEMBER_ALWAYS},
        {"projection", decode_tensor, MECHANISM(projection), MEMBER_ALWAYS},
        {"eps", decode_not_negative, MECHANISM(eps), MEMBER_ALWAYS},
    };
    attn_mechanism *mechanism = to;
    const bool is_object = json_is_object(node->json);
    const struct node type = is_object ? node_member(node, "type") : *node;
    if (!type.json)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"type\"");
    decode_mechanism_type(reading, &type, &mechanism->type);
    if (node_has_failed(reading))
        return reading->status;
    mechanism->eps = mechanism->type == ATTN_PERFORMER ? 1e-4 : 0;
    if (!is_object)
        return ATTN_OK;
    node_drop_nulls(node);
    const bool is_performer = mechanism->type == ATTN_PERFORMER;
    const size_t count = mechanism->type == ATTN_SOFTMAX ? 1 /* the type alone */
                         : is_performer                  ? ARRAY_LENGTH(performer)
                                                         : ARRAY_LENGTH(linear);
    return node_decode_members(reading, node, is_performer ? performer : linear, count, mechanism);
}
