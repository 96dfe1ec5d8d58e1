/*
 * hints.c: the hints of an answer, one function each. A new hint is a new row of the table.
 */
#include "codec/request/hints.h"

#include <stdio.h>

#include "base/array.h"

enum { MESSAGE_MAX = 320 };

/* ---- rope ---- */

static bool has_positions_in_scores(const struct envelope *envelope, const attn_plan *plan)
{
    const attn_options *options = &envelope->request.options;
    return attn_mask_has_positions(&plan->mask) || options->alibi || options->alibi_slopes != NULL ||
           options->relative_bias.table != NULL;
}

/* Without given positions, rope counts from the length of the cache, but masks and biases from the causal offset. */
static bool hint_rope(const struct envelope *envelope, const attn_plan *plan, char message[MESSAGE_MAX])
{
    const attn_rope *rope = &envelope->request.options.rope;
    const long long turned_from = (long long)plan->dims.past_len;
    if (rope->layout == ATTN_ROPE_NONE || rope->query.positions != NULL || rope->query.cos != NULL ||
        !has_positions_in_scores(envelope, plan))
        return false;
    for (size_t b = 0; b < plan->dims.batch; b++) {
        const long long seen_from = (long long)attn_mask_offset(&plan->mask, b);
        if (seen_from == turned_from)
            continue;
        snprintf(message, MESSAGE_MAX,
                 "rope turns the first query as position %lld (past_len), and causal masks, windows, alibi and "
                 "relative_bias count it as position %lld: give rope.positions if both should count alike",
                 turned_from, seen_from);
        return true;
    }
    return false;
}

/* ---- all of them ---- */

static const struct {
    const char *pointer;
    bool (*find)(const struct envelope *envelope, const attn_plan *plan, char message[MESSAGE_MAX]);
} hints[] = {
    {"/options/rope", hint_rope},
};

void hints_write(const struct envelope *envelope, const attn_plan *plan, struct chunks *out)
{
    char message[MESSAGE_MAX];
    bool is_first = true;
    for (size_t i = 0; i < ARRAY_LENGTH(hints); i++) {
        if (!hints[i].find(envelope, plan, message))
            continue;
        chunks_format(out, "%s{\"pointer\":\"%s\",\"message\":", is_first ? ",\"hints\":[" : ",", hints[i].pointer);
        chunks_json_string(out, message);
        chunks_text(out, "}");
        is_first = false;
    }
    chunks_text(out, is_first ? "" : "]");
}
