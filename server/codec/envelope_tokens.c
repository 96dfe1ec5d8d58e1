/*
 * envelope_tokens.c: "tokens" of a request: labels of the positions, checked in number and echoed in the answer.
 */
#include <stddef.h>
#include <string.h>

#include "codec/envelope_parts.h"
#include "codec/json_tree.h"

#define COUNT(items) (sizeof(items) / sizeof(items)[0])

/* Labels in a list, every one of them a string. */
static attn_status count_labels(struct decoder *decoder, const struct node *list, size_t *count)
{
    *count = json_array_size(list->json);
    for (size_t i = 0; i < *count; i++) {
        struct node label = node_element(list, i);
        const char *text;
        size_t length;
        if (!node_string(decoder, &label, &text, &length))
            return node_fail_type(decoder, &label, "a string");
    }
    return ATTN_OK;
}

/* A list with every lifted string and list put back, so that it can be written as it came. */
static attn_status restore_labels(struct decoder *decoder, const struct node *list, json_t *to)
{
    for (size_t i = 0; i < json_array_size(list->json); i++) {
        struct node label = node_element(list, i);
        const char *text = "";
        size_t length = 0;
        if (!node_string(decoder, &label, &text, &length) || json_array_append_new(to, json_stringn(text, length)) != 0)
            return node_fail_memory(decoder, &label);
    }
    return ATTN_OK;
}

/* One list of labels: counted and appended to the echo. */
static attn_status take_labels(struct decoder *decoder, const struct node *list, json_t *echo, size_t *count)
{
    attn_status status = count_labels(decoder, list, count);
    return status == ATTN_OK ? restore_labels(decoder, list, echo) : status;
}

static attn_status take_item(struct decoder *decoder, const struct node *node, json_t *echo,
                             struct envelope_tokens *tokens)
{
    struct node list;
    size_t count = 0;
    attn_status status = decode_list(decoder, node, "a list of strings, as the one before", &list);
    if (status != ATTN_OK)
        return status;
    json_t *labels = json_array();
    status = labels ? take_labels(decoder, &list, labels, &count) : node_fail_memory(decoder, node);
    if (status == ATTN_OK && tokens->batch > 0 && count != tokens->count)
        status =
            node_fail(decoder, node, ATTN_ERR_SHAPE, "has %zu labels, the list before has %zu", count, tokens->count);
    if (status == ATTN_OK && json_array_append(echo, labels) != 0)
        status = node_fail_memory(decoder, node);
    json_decref(labels);
    json_decref(list.json);
    tokens->batch++;
    tokens->count = count;
    return status;
}

static attn_status take_batch(struct decoder *decoder, const struct node *list, json_t *echo,
                              struct envelope_tokens *tokens)
{
    attn_status status = ATTN_OK;
    for (size_t i = 0; i < json_array_size(list->json) && status == ATTN_OK; i++) {
        struct node item = node_element(list, i);
        status = take_item(decoder, &item, echo, tokens);
    }
    return status;
}

static attn_status write_echo(struct decoder *decoder, const struct node *node, const json_t *echo,
                              struct envelope_tokens *tokens)
{
    char *text = json_dumps(echo, JSON_COMPACT);
    if (!text)
        return node_fail_memory(decoder, node);
    tokens->json = attn_arena_copy_text(decoder->arena, text, strlen(text));
    json_tree_give_text(text);
    return tokens->json ? ATTN_OK : node_fail_memory(decoder, node);
}

/* struct envelope_tokens: a list of strings, or a list of such lists, one for each batch item */
static attn_status decode_labels(struct decoder *decoder, const struct node *node, void *to)
{
    struct envelope_tokens *tokens = to;
    struct node list;
    attn_status status = decode_list(decoder, node, "a list of strings", &list);
    if (status != ATTN_OK)
        return status;
    struct node first = node_element(&list, 0);
    json_t *echo = json_array();
    if (!echo)
        status = node_fail_memory(decoder, node);
    else if (first.json && node_is_array(decoder, &first))
        status = take_batch(decoder, &list, echo, tokens);
    else
        status = take_labels(decoder, &list, echo, &tokens->count);
    if (status == ATTN_OK)
        status = write_echo(decoder, node, echo, tokens);
    json_decref(echo);
    json_decref(list.json);
    return status;
}

/* Positions and batch items of an input stand in its last dimension but one and, from rank 3 on, in its first. */
static attn_status check_labels(struct decoder *decoder, const struct node *parent, const char *name,
                                const struct envelope_tokens *tokens, const attn_tensor *input, const attn_tensor *past)
{
    if (!tokens->json || input->rank < 2)
        return ATTN_OK;
    struct node node = node_member(parent, name);
    size_t past_len = past && past->rank > 1 ? past->shape[past->rank - 2] : 0;
    size_t length = past_len + input->shape[input->rank - 2], batch = input->rank > 2 ? input->shape[0] : 1;
    if (tokens->count != length)
        return node_fail(decoder, &node, ATTN_ERR_SHAPE, "has %zu labels for %zu positions", tokens->count, length);
    if (tokens->batch > 0 && tokens->batch != batch)
        return node_fail(decoder, &node, ATTN_ERR_SHAPE, "has %zu lists for a batch of %zu", tokens->batch, batch);
    return ATTN_OK;
}

attn_status decode_tokens(struct decoder *decoder, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"query", decode_labels, offsetof(struct envelope, query_tokens), MEMBER_ALWAYS},
        {"key", decode_labels, offsetof(struct envelope, key_tokens), MEMBER_ALWAYS},
    };
    struct envelope *envelope = to;
    const attn_inputs *inputs = &envelope->request.inputs;
    attn_status status = decode_members(decoder, node, members, COUNT(members), envelope);
    if (status == ATTN_OK)
        status = check_labels(decoder, node, "query", &envelope->query_tokens, inputs->query, NULL);
    if (status == ATTN_OK)
        status = check_labels(decoder, node, "key", &envelope->key_tokens, inputs->key ? inputs->key : inputs->query,
                              inputs->past_key);
    if (status == ATTN_OK && !envelope->key_tokens.json && !inputs->key && !inputs->past_key)
        envelope->key_tokens = envelope->query_tokens;
    return status;
}
