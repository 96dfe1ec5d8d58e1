/* merges.c: the merges of BPE, in a hash table. */
#include "codec/tokenizer/model/merges.h"

#include <string.h>

#include "codec/tokenizer/model/slots.h"

struct merges_loader {
    struct loading *loading;
    const struct node *list;
    size_t prefix_bytes;
    struct merges *merges;
};

enum { MERGE_BYTES_MAX = 4096 /* of a token that a merge makes */, SHOWN_BYTES = 60 /* in messages */ };

/* The slot of that pair, or the empty one where it belongs. */
static struct merge *find(const struct merges *merges, uint64_t pair)
{
    uint32_t slot = slots_first(slots_hash(pair), merges->count);
    while (merges->slots[slot].id != VOCABULARY_NONE && merges->slots[slot].pair != pair)
        slot = slots_next(slot, merges->count);
    return &merges->slots[slot];
}

const struct merge *merges_find(const struct merges *merges, uint32_t left, uint32_t right)
{
    const struct merge *merge = find(merges, (uint64_t)left << 32 | right);
    return merge->id != VOCABULARY_NONE ? merge : NULL;
}

/* Reads one of the list. False when it has neither form. */
static bool read_pair(const json_t *json, struct text_span *left, struct text_span *right)
{
    if (json_is_array(json) && json_array_size(json) == 2) {
        const json_t *first = json_array_get(json, 0), *second = json_array_get(json, 1);
        *left = (struct text_span){json_string_value(first), json_string_length(first)};
        *right = (struct text_span){json_string_value(second), json_string_length(second)};
        return left->at != NULL && right->at != NULL;
    }
    const char *text = json_string_value(json), *space = text != NULL ? strchr(text, ' ') : NULL;
    if (space == NULL || strchr(space + 1, ' ') != NULL)
        return false;
    *left = (struct text_span){text, (size_t)(space - text)};
    *right = (struct text_span){space + 1, json_string_length(json) - left->length - 1};
    return true;
}

static attn_status add(const struct merges_loader *loader, const struct node *node)
{
    struct loading *loading = loader->loading;
    const size_t prefix_bytes = loader->prefix_bytes;
    char joined[MERGE_BYTES_MAX];
    struct text_span left, right;
    if (!read_pair(node->json, &left, &right))
        return node_fail_value(&loading->reading, node, "a pair of tokens, as [\"t\", \"h\"] or \"t h\"");
    if (right.length < prefix_bytes || left.length + right.length - prefix_bytes > sizeof joined)
        return node_fail(&loading->reading, node, ATTN_ERR_VALUE, "makes a token that is too short or too long");
    memcpy(joined, left.at, left.length);
    memcpy(joined + left.length, right.at + prefix_bytes, right.length - prefix_bytes);
    const uint32_t first = vocabulary_find(loading->vocabulary, left.at, left.length);
    const uint32_t second = vocabulary_find(loading->vocabulary, right.at, right.length);
    const uint32_t id = vocabulary_find(loading->vocabulary, joined, left.length + right.length - prefix_bytes);
    if (first == VOCABULARY_NONE || second == VOCABULARY_NONE || id == VOCABULARY_NONE)
        return node_fail(&loading->reading, node, ATTN_ERR_VALUE,
                         "merges \"%.*s\" and \"%.*s\", but the vocabulary lacks one of them or the result",
                         (int)(left.length < SHOWN_BYTES ? left.length : SHOWN_BYTES), left.at,
                         (int)(right.length < SHOWN_BYTES ? right.length : SHOWN_BYTES), right.at);
    const uint64_t pair = (uint64_t)first << 32 | second;
    *find(loader->merges, pair) = (struct merge){pair, (uint32_t)node->index, id};
    return ATTN_OK;
}

static attn_status add_piece(void *context, const json_t *piece, size_t index)
{
    const struct merges_loader *loader = context;
    const struct reading *reading = &loader->loading->reading;
    for (size_t i = 0; i < json_array_size(piece) && !node_has_failed(reading); i++) {
        const struct node item = step_item(loader->list, piece, index, i);
        add(loader, &item);
    }
    return reading->status;
}

size_t merges_bytes(const struct loading *loading)
{
    return slots_for(loading->merges_count) * sizeof(struct merge);
}

attn_status merges_load(struct loading *loading, const struct node *list, size_t prefix_bytes, struct merges *merges)
{
    struct merges_loader loader = {loading, list, prefix_bytes, merges};
    if (!json_is_array(list->json) || loading->merges.at == NULL)
        return node_fail(&loading->reading, list, ATTN_ERR_FIELD, "must be the list of merges");
    const size_t bytes = merges_bytes(loading);
    merges->count = (uint32_t)(bytes / sizeof *merges->slots);
    merges->slots = attn_arena_take(loading->reading.arena, bytes, 1);
    if (merges->slots == NULL)
        return node_fail_memory(&loading->reading, list);
    memset(merges->slots, 0xFF, bytes);
    return loading_each(loading, loading->merges, loading->merges_count, add_piece, &loader);
}
