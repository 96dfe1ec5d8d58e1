/* tokens.c: decodes "tokens" of a request: labels of the positions. Their number is checked, and the answer repeats them. */
#include <stddef.h>

#include "base/array.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/pace.h"
#include "codec/request/decoder.h"

/* The limits of one label, and of all labels of a request. server/openapi/ states them. */
enum { LABEL_BYTES_MAX = 1024, LABELS_BYTES_MAX = 1 << 20 };

enum { LABEL_COST_BYTES = 16 }; /* an empty label takes as long as so many bytes of text */

/* Collects the labels of one member as JSON text, for the answer. */
struct echo {
    struct reading *reading;
    struct envelope_tokens *tokens;
    struct chunks out;
    struct pace pace;
};

static int write_piece(const char *text, size_t length, void *context)
{
    struct chunks *out = context;
    chunks_bytes(out, text, length);
    return out->is_ok ? 0 : -1;
}

static attn_status fail_length(struct reading *reading, const struct node *label, size_t length)
{
    return node_fail(reading, label, ATTN_ERR_TOO_LARGE, "has %zu bytes; a label has at most %d", length,
                     LABEL_BYTES_MAX);
}

static attn_status fail_sum(struct reading *reading, const struct node *label)
{
    return node_fail(reading, label, ATTN_ERR_TOO_LARGE,
                     "is one label too many: all labels of a request have at most %d bytes together", LABELS_BYTES_MAX);
}

/* Appends one label, lifted or not. */
static attn_status take_label(struct echo *echo, const struct node *label)
{
    const char *text;
    size_t length;
    if (!node_string(echo->reading, label, &text, &length))
        return node_fail_type(echo->reading, label, "a string");
    if (length > LABEL_BYTES_MAX)
        return fail_length(echo->reading, label, length);
    size_t *label_bytes = &decoder_of(echo->reading)->label_bytes;
    *label_bytes += length;
    if (*label_bytes > LABELS_BYTES_MAX)
        return fail_sum(echo->reading, label);
    if (pace_stops(&echo->pace, LABEL_COST_BYTES + length))
        return node_fail(echo->reading, label, ATTN_ERR_CANCELLED, "was not read: cancelled");
    json_t *string = json_stringn(text, length);
    const bool is_written =
        string != NULL && json_dump_callback(string, write_piece, &echo->out, JSON_COMPACT | JSON_ENCODE_ANY) == 0;
    json_decref(string);
    return is_written ? ATTN_OK : node_fail_memory(echo->reading, label);
}

/* Appends one list of labels. */
static attn_status take_labels(struct echo *echo, const struct node *list, size_t *count)
{
    *count = json_array_size(list->json);
    chunks_text(&echo->out, "[");
    for (size_t i = 0; i < *count && !node_has_failed(echo->reading); i++) {
        struct node label = node_element(list, i);
        chunks_text(&echo->out, i > 0 ? "," : "");
        take_label(echo, &label);
    }
    chunks_text(&echo->out, "]");
    return echo->reading->status;
}

static attn_status take_item(struct echo *echo, const struct node *node)
{
    struct envelope_tokens *tokens = echo->tokens;
    struct node list;
    size_t count = 0;
    node_decode_list(echo->reading, node, "a list of strings, as the one before", &list);
    take_labels(echo, &list, &count);
    if (tokens->batch > 0 && count != tokens->count)
        node_fail(echo->reading, node, ATTN_ERR_SHAPE, "has %zu labels, the list before has %zu", count, tokens->count);
    json_decref(list.json);
    tokens->batch++;
    tokens->count = count;
    return echo->reading->status;
}

static attn_status take_batch(struct echo *echo, const struct node *list)
{
    chunks_text(&echo->out, "[");
    for (size_t i = 0; i < json_array_size(list->json) && !node_has_failed(echo->reading); i++) {
        struct node item = node_element(list, i);
        chunks_text(&echo->out, i > 0 ? "," : "");
        take_item(echo, &item);
    }
    chunks_text(&echo->out, "]");
    return echo->reading->status;
}

/* struct envelope_tokens: a list of strings, or a list of such lists, one for each batch item */
static attn_status decode_labels(struct reading *reading, const struct node *node, void *to)
{
    struct echo echo = {
        .reading = reading, .tokens = to, .out = chunks_begin(reading->arena), .pace = pace_begin(reading->arena)};
    struct node list;
    node_decode_list(reading, node, "a list of strings", &list);
    if (node_has_failed(reading))
        return reading->status;
    struct node first = node_element(&list, 0);
    if (first.json && node_is_array(reading, &first))
        take_batch(&echo, &list);
    else
        take_labels(&echo, &list, &echo.tokens->count);
    if (!node_has_failed(reading))
        echo.tokens->json = chunks_join(&echo.out);
    json_decref(list.json);
    return echo.tokens->json ? reading->status : node_fail_memory(reading, node);
}

/* The last dimension but one of an input counts its positions. From rank 3 on, the first counts batch items. */
static attn_status check_labels(struct reading *reading, const struct node *parent, const char *name,
                                const struct envelope_tokens *tokens, const attn_tensor *input, const attn_tensor *past)
{
    if (!tokens->json || input->rank < 2)
        return ATTN_OK;
    struct node node = node_member(parent, name);
    size_t past_len = past && past->rank > 1 ? past->shape[past->rank - 2] : 0;
    size_t length = past_len + input->shape[input->rank - 2], batch = input->rank > 2 ? input->shape[0] : 1;
    if (tokens->count != length)
        return node_fail(reading, &node, ATTN_ERR_SHAPE, "has %zu labels for %zu positions", tokens->count, length);
    if (tokens->batch > 0 && tokens->batch != batch)
        return node_fail(reading, &node, ATTN_ERR_SHAPE, "has %zu lists for a batch of %zu", tokens->batch, batch);
    return ATTN_OK;
}

/* The labels of the queries of a square map are those of its keys, too. The plan counts both. */
static void share_labels_of_map(const attn_tensor *map, struct envelope *envelope)
{
    if (!envelope->key_tokens.json && map->rank > 1 && map->shape[map->rank - 1] == map->shape[map->rank - 2])
        envelope->key_tokens = envelope->query_tokens;
}

attn_status decode_tokens(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"query", decode_labels, offsetof(struct envelope, query_tokens), MEMBER_ALWAYS},
        {"key", decode_labels, offsetof(struct envelope, key_tokens), MEMBER_ALWAYS},
    };
    static const struct short_form form = {
        .member = "query",
        .types = 1U << JSON_ARRAY,
        .wanted = "a list of labels, or an object with query and key",
    };
    struct envelope *envelope = to;
    const attn_inputs *inputs = &envelope->request.inputs;
    struct node spelt = *node;
    short_form_spell(reading, &spelt, &form);
    node_decode_members(reading, &spelt, members, ARRAY_LENGTH(members), envelope);
    if (attn_start_of(inputs)) {
        share_labels_of_map(attn_start_of(inputs), envelope);
        return reading->status;
    }
    check_labels(reading, &spelt, "query", &envelope->query_tokens, inputs->query, NULL);
    check_labels(reading, &spelt, "key", &envelope->key_tokens, inputs->key ? inputs->key : inputs->query,
                 inputs->past_key);
    if (!envelope->key_tokens.json && !inputs->key && !inputs->past_key)
        envelope->key_tokens = envelope->query_tokens;
    return reading->status;
}
