/* hints.c: the hints of an answer, one function each. A new hint is a new row of the table. */
#include "codec/answer/forms.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

enum { MESSAGE_MAX = 320 };

struct answered {
    const struct envelope *envelope;
    const attn_plan *plan;
    const attn_result *result;
};

/* ---- rope ---- */

static bool has_positions_in_scores(const struct envelope *envelope, const attn_plan *plan)
{
    const attn_options *options = &envelope->request.options;
    const attn_relative_position *position = &options->relative_position;
    return plan->mask.has_positions || options->alibi || options->alibi_slopes != NULL ||
           options->relative_bias.table != NULL || position->key != NULL || position->query != NULL ||
           position->embedding != NULL;
}

/* Without given positions, rope counts from the length of the cache, but masks and biases from the causal offset. */
static bool hint_rope(const struct answered *answered, char message[MESSAGE_MAX])
{
    const struct envelope *envelope = answered->envelope;
    const attn_plan *plan = answered->plan;
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
                 "relative positions count it as position %lld: give rope.positions if both should count alike",
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

/* A causal mask of other systems hides where it is true. The first flag rules out most masks, so the check is cheap. */
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

static bool hint_attend(const struct answered *answered, char message[MESSAGE_MAX])
{
    const attn_tensor *attend = answered->envelope->request.masks.attend;
    const attn_plan *plan = answered->plan;
    return hint_inverted(attend, plan, message) || hint_items(attend, plan, message) ||
           hint_queries(attend, plan, message);
}

static double number_at(const attn_tensor *tensor, size_t index)
{
    return tensor->dtype == ATTN_F64 ? ((const double *)tensor->data)[index]
                                     : (double)((const float *)tensor->data)[index];
}

/* Whether all numbers are 0 or 1, and both are there. */
static bool is_of_flags(const attn_tensor *tensor)
{
    const size_t count = attn_tensor_count(tensor);
    bool has[2] = {false, false};
    for (size_t i = 0; i < count; i++) {
        const double number = number_at(tensor, i);
        if (number != 0 && number != 1)
            return false;
        has[number == 1] = true;
    }
    return has[0] && has[1];
}

/* The keys of a row that have one value: all of them lie between from and to, if the row has any. */
struct run {
    size_t from, to;
    bool is_one; /* no other value lies between them */
};

static struct run run_of(const attn_tensor *bias, size_t row, size_t kv_len, double value)
{
    struct run run = {0, 0, true};
    size_t count = 0;
    for (size_t j = 0; j < kv_len; j++) {
        if (number_at(bias, row * kv_len + j) != value)
            continue;
        run.from = count++ == 0 ? j : run.from;
        run.to = j + 1;
    }
    run.is_one = count == run.to - run.from;
    return run;
}

/*
 * Whether, in each row of a map, the keys of that value are one run that begins at the same key and ends no earlier than
 * in the row before, and touches the first or the last key: so are causal masks and padding, and both together.
 */
static bool is_stairs(const attn_tensor *bias, size_t first_row, size_t rows, size_t kv_len, double value)
{
    size_t from = 0, to = 0;
    for (size_t i = 0; i < rows; i++) {
        const struct run run = run_of(bias, first_row + i, kv_len, value);
        if (!run.is_one)
            return false;
        if (run.to == 0) /* a row without that value */
            continue;
        if (to > 0 && (run.from != from || run.to < to))
            return false;
        from = run.from;
        to = run.to;
    }
    return from == 0 || to == kv_len;
}

/* A mask of 0 and 1 that is added to the scores hides nothing. Other patterns of 0 and 1 may be meant as a bias. */
static bool hint_flags(const struct answered *answered, char message[MESSAGE_MAX])
{
    const attn_tensor *bias = answered->envelope->request.masks.bias;
    const size_t kv_len = answered->plan->dims.kv_len;
    if (bias == NULL || bias->rank == 0 || kv_len == 1 || bias->shape[bias->rank - 1] != kv_len ||
        (bias->dtype != ATTN_F32 && bias->dtype != ATTN_F64) || !is_of_flags(bias))
        return false;
    const size_t rows = bias->rank > 1 ? bias->shape[bias->rank - 2] : 1, count = attn_tensor_count(bias) / kv_len;
    for (size_t first = 0; first < count; first += rows)
        if (!is_stairs(bias, first, rows, kv_len, 1) && !is_stairs(bias, first, rows, kv_len, 0))
            return false;
    snprintf(message, MESSAGE_MAX, "0 and 1 are added to the scores; a mask is masks.attend (true may attend)");
    return true;
}

static bool hint_bias(const struct answered *answered, char message[MESSAGE_MAX])
{
    const attn_tensor *bias = answered->envelope->request.masks.bias;
    return hint_items(bias, answered->plan, message) || hint_queries(bias, answered->plan, message);
}

/* In other systems, true in a mask of padding hides: an item without padding is all false there. */
static bool hint_padding(const struct answered *answered, char message[MESSAGE_MAX])
{
    const attn_tensor *padding = answered->envelope->request.masks.padding;
    const size_t kv_len = answered->plan->dims.kv_len;
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

/* ---- inputs ---- */

/*
 * Items of one position each, with one key each. A step of generation has more keys, or begins a cache. So it is most
 * probably one sequence, with its length first.
 */
static bool hint_length_first(const struct answered *answered, char message[MESSAGE_MAX])
{
    const attn_dims *dims = &answered->plan->dims;
    const attn_tensor *query = answered->envelope->request.inputs.query;
    if (query == NULL || query->rank != 3 || dims->batch == 1 || dims->q_len != 1 || dims->kv_len != 1 ||
        answered->envelope->cache.name != NULL)
        return false;
    snprintf(message, MESSAGE_MAX,
             "inputs are (batch, len, d): these are %zu items of one position, so every weight is 1; one sequence of "
             "%zu positions is (%zu, d) or (1, %zu, d)",
             dims->batch, dims->batch, dims->batch, dims->batch);
    return true;
}

/* ---- numbers ---- */

/*
 * Finite numbers whose product is beyond the range of the compute type. The findings name no tensor of the request then.
 * They do not look at the tables of rope.
 */
static bool hint_overflow(const struct answered *answered, char message[MESSAGE_MAX])
{
    const attn_findings *findings = &answered->result->findings;
    const attn_request *request = &answered->envelope->request;
    const bool has_output = findings->not_finite_fields > 0 && strcmp(findings->not_finite[0].field, "output") == 0;
    const bool is_double = answered->plan->compute == ATTN_F64;
    if ((findings->rows_not_finite == 0 && !has_output) || findings->not_finite_fields > has_output ||
        request->options.rope.query.cos != NULL)
        return false;
    snprintf(message, MESSAGE_MAX,
             "the numbers of the request are finite, but a product of %s%s is beyond the range of %s",
             request->is_layer ? "them" : "queries and keys",
             request->masks.bias != NULL ? ", or its sum with the bias," : "",
             is_double ? "float64 (1.8e308): send smaller numbers"
                       : "float32 (3.4e38): compute \"float64\" holds numbers up to 1.8e308");
    return true;
}

/* ---- selections ---- */

static bool hint_heads(const struct answered *answered, char message[MESSAGE_MAX])
{
    return index_list_hint(&answered->envelope->lists.heads, "heads", message);
}

static bool hint_query_rows(const struct answered *answered, char message[MESSAGE_MAX])
{
    return index_list_hint(&answered->envelope->lists.queries, "queries", message);
}

static bool hint_key_columns(const struct answered *answered, char message[MESSAGE_MAX])
{
    return index_list_hint(&answered->envelope->lists.keys, "keys", message);
}

/* ---- all of them ---- */

static const struct {
    const char *pointer;
    bool (*find)(const struct answered *answered, char message[MESSAGE_MAX]);
} hints[] = {
    {"/inputs/query", hint_length_first}, {"/options/rope", hint_rope},   {"/masks/attend", hint_attend},
    {"/masks/bias", hint_bias},           {"/masks/bias", hint_flags},    {"/masks/padding", hint_padding},
    {"/options/compute", hint_overflow},  {"/options/heads", hint_heads}, {"/options/queries", hint_query_rows},
    {"/options/keys", hint_key_columns},
};

void hints_add(const char *pointer, const char *message, size_t *count, struct chunks *out)
{
    chunks_format(out, "%s{\"pointer\":\"%s\",\"message\":", *count == 0 ? "\"hints\":[" : ",", pointer);
    chunks_json_string(out, message);
    chunks_text(out, "}");
    ++*count;
}

void hints_write(const struct envelope *envelope, const attn_plan *plan, const attn_result *result, struct chunks *out)
{
    const struct answered answered = {envelope, plan, result};
    char message[MESSAGE_MAX];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(hints); i++) {
        if (!hints[i].find(&answered, message))
            continue;
        chunks_text(out, count == 0 ? "," : "");
        hints_add(hints[i].pointer, message, &count, out);
    }
    chunks_text(out, count > 0 ? "]" : "");
}
