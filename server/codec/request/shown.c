/* shown.c: decodes the options for the form of maps: pool, top_k, dtype, view. */
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "codec/request/decoder.h"

/* size_t */
attn_status decode_extent(struct reading *reading, const struct node *node, void *to)
{
    return decode_count(reading, node, 1, 1 << 20, to);
}

/* bool: whether it is the mean */
static attn_status decode_pool_op(struct reading *reading, const struct node *node, void *to)
{
    static const char *const words[] = {"max", "mean"};
    size_t index = 0;
    node_decode_word(reading, node, words, ARRAY_LENGTH(words), &index);
    *(bool *)to = index == 1;
    return reading->status;
}

attn_status decode_pool(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"rows", decode_extent, offsetof(struct envelope_reduction, pool_rows), MEMBER_ALWAYS},
        {"cols", decode_extent, offsetof(struct envelope_reduction, pool_cols), MEMBER_ALWAYS},
        {"op", decode_pool_op, offsetof(struct envelope_reduction, pool_mean), MEMBER_ALWAYS},
    };
    struct envelope_reduction *reduction = to;
    reduction->has_pool = true;
    node_decode_members(reading, node, members, ARRAY_LENGTH(members), reduction);
    if (reduction->pool_rows == 0 && reduction->pool_cols == 0)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has neither \"rows\" nor \"cols\"");
    return reading->status;
}

attn_status decode_map_dtype(struct reading *reading, const struct node *node, void *to)
{
    static const struct choice types[] = {{"float32", ATTN_F32},   {"float64", ATTN_F64}, {"float16", ATTN_F16},
                                          {"bfloat16", ATTN_BF16}, {"uint8", ATTN_U8},    {NULL, 0}};
    struct envelope_reduction *reduction = to;
    return decode_choice(reading, node, types, &reduction->dtype);
}

attn_status decode_view(struct reading *reading, const struct node *node, void *to)
{
    static const struct choice views[] = {{"bertviz", ENVELOPE_VIEW_BERTVIZ},
                                          {"circuitsvis", ENVELOPE_VIEW_CIRCUITSVIS},
                                          {"inspectus", ENVELOPE_VIEW_INSPECTUS},
                                          {"rows", ENVELOPE_VIEW_ROWS},
                                          {NULL, 0}};
    struct envelope *envelope = to;
    return decode_choice(reading, node, views, &envelope->view);
}

/* A view has one content and one form. Options that ask for another are refused, not ignored. */
static attn_status check_view(struct reading *reading, const struct node *options, struct envelope *envelope)
{
    static const char *const foreign[] = {"format", "pool", "top_k", "dtype"};
    if (envelope->view == ENVELOPE_VIEW_NONE)
        return ATTN_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(foreign); i++) {
        struct node node = node_member(options, foreign[i]);
        if (node.json)
            return node_fail(reading, &node, ATTN_ERR_FIELD, "does not go with options.view, which has its own form");
    }
    struct node wanted = node_member(options, "return");
    if (wanted.json && envelope->request.options.want != ATTN_STEP_BIT(ATTN_STEP_ATTENTION))
        return node_fail(reading, &wanted, ATTN_ERR_FIELD, "does not go with options.view, which shows the attention");
    envelope->request.options.want = ATTN_STEP_BIT(ATTN_STEP_ATTENTION);
    return ATTN_OK;
}

/* uint8 holds only numbers from 0 to 1, such as weights. */
static attn_status check_weights(struct reading *reading, const struct node *node, attn_steps want)
{
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        bool is_weights = step == ATTN_STEP_ATTENTION || step == ATTN_STEP_MASK || step == ATTN_STEP_ATTENTION_MEAN;
        if (want >> step & 1 && attn_step_has_keys((attn_step)step) && !is_weights)
            return node_fail(reading, node, ATTN_ERR_VALUE,
                             "is uint8, which holds what lies from 0 to 1, and \"%s\" need not: leave it out of "
                             "options.return, or ask for float16 or bfloat16",
                             attn_step_name((attn_step)step));
    }
    return ATTN_OK;
}

attn_status check_shown(struct reading *reading, const struct node *options, struct envelope *envelope)
{
    const struct envelope_reduction *reduction = &envelope->reduction;
    const struct node top_k = node_member(options, "top_k"), dtype = node_member(options, "dtype");
    attn_steps want = envelope->request.options.want;
    if (check_view(reading, options, envelope) != ATTN_OK)
        return reading->status;
    if (reduction->top_k > 0 && reduction->has_pool)
        return node_fail(reading, &top_k, ATTN_ERR_FIELD, "does not go with options.pool: choose one of them");
    if (reduction->top_k > 0 && !(want & ATTN_STEP_BIT(ATTN_STEP_ATTENTION)))
        return node_fail(reading, &top_k, ATTN_ERR_FIELD,
                         "selects weights, but \"attention\" is not in options.return");
    return reduction->dtype == ATTN_U8 ? check_weights(reading, &dtype, want) : ATTN_OK;
}
