/* rope_options.c: decodes "options.rope" of a request. */
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "codec/request/decoder.h"

#define SCALING(field) offsetof(attn_rope, scaling.field)

/* attn_rope_layout */
static attn_status decode_rope_layout(struct reading *reading, const struct node *node, void *to)
{
    return decode_choice(reading, node, envelope_ropes, to);
}

/* size_t: even, at least 2 */
static attn_status decode_rope_dim(struct reading *reading, const struct node *node, void *to)
{
    int64_t dim = 0;
    node_decode_integer(reading, node, 2, INT32_MAX, &dim);
    if (dim % 2 != 0)
        return node_fail_value(reading, node, "an even integer");
    *(size_t *)to = (size_t)dim;
    return reading->status;
}

/* ---- scaling ---- */

/* attn_rope_type */
static attn_status decode_rope_type(struct reading *reading, const struct node *node, void *to)
{
    static const char *const words[] = {
#define TYPE_NAME(code, name) name,
        ATTN_ROPE_TYPE_LIST(TYPE_NAME)
#undef TYPE_NAME
    };
    size_t index = 0;
    node_decode_word(reading, node, words, ARRAY_LENGTH(words), &index);
    *(attn_rope_type *)to = (attn_rope_type)index;
    return reading->status;
}

/* attn_rope: scaling, and theta, which model configurations keep among it. A factor of 0 counts as not given. */
static attn_status decode_scaling(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"rope_type", decode_rope_type, SCALING(type), MEMBER_ALWAYS},
        {"type", decode_rope_type, SCALING(type), MEMBER_ALWAYS},
        {"rope_theta", node_decode_positive, offsetof(attn_rope, theta), MEMBER_ALWAYS},
        {"factor", decode_not_negative, SCALING(factor), MEMBER_ALWAYS},
        {"original_max_position_embeddings", decode_not_negative, SCALING(original_max_position_embeddings),
         MEMBER_ALWAYS},
        {"max_position_embeddings", decode_not_negative, SCALING(max_position_embeddings), MEMBER_ALWAYS},
        {"attention_factor", decode_not_negative, SCALING(attention_factor), MEMBER_ALWAYS},
        {"beta_fast", decode_not_negative, SCALING(beta_fast), MEMBER_ALWAYS},
        {"beta_slow", decode_not_negative, SCALING(beta_slow), MEMBER_ALWAYS},
        {"mscale", decode_not_negative, SCALING(mscale), MEMBER_ALWAYS},
        {"mscale_all_dim", decode_not_negative, SCALING(mscale_all_dim), MEMBER_ALWAYS},
        {"truncate", decode_opposite, SCALING(keeps_fraction), MEMBER_ALWAYS},
        {"short_factor", decode_reals, SCALING(short_factor), MEMBER_ALWAYS},
        {"long_factor", decode_reals, SCALING(long_factor), MEMBER_ALWAYS},
        {"low_freq_factor", decode_not_negative, SCALING(low_freq_factor), MEMBER_ALWAYS},
        {"high_freq_factor", decode_not_negative, SCALING(high_freq_factor), MEMBER_ALWAYS},
        {"partial_rotary_factor", decode_not_negative, SCALING(partial_rotary_factor), MEMBER_ALWAYS},
    };
    const bool has_new_name = node_find(node->json, "rope_type"), has_old = node_find(node->json, "type");
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
    if (!has_new_name && !has_old)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"rope_type\"");
    if (has_new_name && has_old)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has both \"rope_type\" and \"type\", which mean the same");
    return reading->status;
}

/* ---- both sides ---- */

/* One tensor for both sides, or {"query", "key"}, each by decode, at those places of the rope. */
static attn_status decode_pair(struct reading *reading, const struct node *node, decode_function *decode, size_t query,
                               size_t key, attn_rope *rope)
{
    const struct member members[] = {
        {"query", decode, query, MEMBER_ALWAYS},
        {"key", decode, key, MEMBER_ALWAYS},
    };
    if (node_find(node->json, "query") || node_find(node->json, "key"))
        return node_decode_members(reading, node, members, ARRAY_LENGTH(members), rope);
    decode(reading, node, (char *)rope + query);
    memcpy((char *)rope + key, (char *)rope + query, sizeof(const attn_tensor *));
    return reading->status;
}
#define PAIR(decode, member)                                                                                           \
    decode_pair(reading, node, decode, offsetof(attn_rope, query.member), offsetof(attn_rope, key.member), to)

/* attn_rope: positions and tables of both sides */
static attn_status decode_positions(struct reading *reading, const struct node *node, void *to)
{
    return PAIR(decode_counts, positions);
}

static attn_status decode_cos(struct reading *reading, const struct node *node, void *to)
{
    return PAIR(decode_tensor, cos);
}

static attn_status decode_sin(struct reading *reading, const struct node *node, void *to)
{
    return PAIR(decode_tensor, sin);
}

/* ---- all of it ---- */

/* Both may be given when they agree, because clients paste whole configurations. */
static attn_status check_theta(struct reading *reading, const struct node *node)
{
    const json_t *theta = node_find(node->json, "theta");
    const json_t *other = node_find(node_find(node->json, "scaling"), "rope_theta");
    if (!theta || !other || json_number_value(theta) == json_number_value(other))
        return reading->status;
    return node_fail(reading, node, ATTN_ERR_FIELD, "has a theta and another rope_theta in its scaling");
}

attn_status decode_rope(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"layout", decode_rope_layout, offsetof(attn_rope, layout), MEMBER_ALWAYS},
        {"scaling", decode_scaling, 0, MEMBER_ALWAYS},
        {"theta", node_decode_positive, offsetof(attn_rope, theta), MEMBER_ALWAYS},
        {"dim", decode_rope_dim, offsetof(attn_rope, dim), MEMBER_ALWAYS},
        {"positions", decode_positions, 0, MEMBER_ALWAYS},
        {"cos", decode_cos, 0, MEMBER_ALWAYS},
        {"sin", decode_sin, 0, MEMBER_ALWAYS},
    };
    static const struct short_form form = {
        .member = "layout",
        .types = 1U << JSON_STRING,
        .has_switch = true,
        .wanted = "true, false, a layout, or an object with layout and theta",
    };
    attn_rope *rope = to;
    struct node spelt = *node;
    short_form_spell(reading, &spelt, &form);
    if (!spelt.json)
        return reading->status;
    rope->layout = ATTN_ROPE_HALF;
    node_decode_members(reading, &spelt, members, ARRAY_LENGTH(members), rope);
    return check_theta(reading, &spelt);
}
