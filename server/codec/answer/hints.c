/*
 * hints.c: the hints of an answer, one function each. A new hint is a new row of the table.
 */
#include "codec/answer/hints.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

enum { MESSAGE_MAX = 320 };

/* ---- rope ---- */

static bool has_positions_in_scores(const struct envelope *envelope, const attn_plan *plan)
{
    const attn_options *options = &envelope->request.options;
    return plan->mask.has_positions || options->alibi || options->alibi_slopes != NULL ||
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
        const long long seen_from = (long long)attn_plan_offset(plan, b);
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

/* ---- masks ---- */

/* A mask whose first dimension counts heads, though the batch has as many items. */
static bool hint_items(const attn_tensor *mask, const attn_plan *plan, char message[MESSAGE_MAX])
{
    const attn_dims *dims = &plan->dims;
    if (mask == NULL || mask->rank != 3 || mask->shape[0] != dims->heads || dims->batch != dims->heads ||
        dims->heads == 1)
        return false;
    snprintf(message, MESSAGE_MAX,
             "three dimensions are (heads, q_len, kv_len), and there are as many batch items as heads: a mask of each "
             "item has the shape (batch, 1, q_len, kv_len)");
    return true;
}

/* A mask whose first dimension counts queries, though the batch has as many items. */
static bool hint_queries(const attn_tensor *mask, const attn_plan *plan, char message[MESSAGE_MAX])
{
    const attn_dims *dims = &plan->dims;
    if (mask == NULL || mask->rank != 2 || mask->shape[0] != dims->q_len || dims->batch != dims->q_len ||
        dims->q_len == 1)
        return false;
    snprintf(message, MESSAGE_MAX,
             "two dimensions are (q_len, kv_len), and there are as many batch items as queries: masks.padding takes "
             "(batch, kv_len)");
    return true;
}

/* Whether, of one map, no query may attend to itself or to a key before it, and some may attend to a later key. */
static bool is_strict_upper(const uint8_t *flags, size_t q_len, size_t kv_len)
{
    for (size_t i = 0; i < q_len; i++)
        if (memchr(flags + i * kv_len, 1, kv_len - q_len + i + 1) != NULL)
            return false;
    return memchr(flags, 1, q_len * kv_len) != NULL;
}

/* A causal mask of other systems hides where it is true: the first flag of a map tells nearly always that it is none. */
static bool hint_inverted(const attn_tensor *attend, const attn_plan *plan, char message[MESSAGE_MAX])
{
    const size_t q_len = plan->dims.q_len, kv_len = plan->dims.kv_len;
    if (attend == NULL || attend->rank < 2 || attend->shape[attend->rank - 2] != q_len || q_len == 1 ||
        attend->shape[attend->rank - 1] != kv_len || kv_len < q_len || !is_strict_upper(attend->data, q_len, kv_len))
        return false;
    snprintf(message, MESSAGE_MAX,
             "no query may attend to itself or to a key before it: is the mask inverted? Here true may attend; in "
             "nn.MultiheadAttention true hides");
    return true;
}

static bool hint_attend(const struct envelope *envelope, const attn_plan *plan, char message[MESSAGE_MAX])
{
    const attn_tensor *attend = envelope->request.masks.attend;
    return hint_inverted(attend, plan, message) || hint_items(attend, plan, message) ||
           hint_queries(attend, plan, message);
}

static bool hint_bias(const struct envelope *envelope, const attn_plan *plan, char message[MESSAGE_MAX])
{
    const attn_tensor *bias = envelope->request.masks.bias;
    return hint_items(bias, plan, message) || hint_queries(bias, plan, message);
}

/* In other systems, true in a mask of padding hides: an item without padding is all false there. */
static bool hint_padding(const struct envelope *envelope, const attn_plan *plan, char message[MESSAGE_MAX])
{
    const attn_tensor *padding = envelope->request.masks.padding;
    const size_t kv_len = plan->dims.kv_len;
    for (size_t b = 0; padding != NULL && b * kv_len < attn_tensor_count(padding); b++) {
        if (memchr((const uint8_t *)padding->data + b * kv_len, 1, kv_len) != NULL)
            continue;
        snprintf(message, MESSAGE_MAX,
                 "item %zu has no token: is the mask inverted? Here true is a token; in a key_padding_mask of "
                 "nn.MultiheadAttention true hides",
                 b);
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
    {"/masks/attend", hint_attend},
    {"/masks/bias", hint_bias},
    {"/masks/padding", hint_padding},
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
