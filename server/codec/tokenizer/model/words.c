/* words.c: reads the vocabulary of a model, twice: to measure it, and to copy it. */
#include "codec/tokenizer/model/kinds.h"

#include <string.h>

enum { GAPS_MAX = 1 << 16 /* ids without a token, beside one for each token */ };

struct words {
    struct loading *loading;
    struct vocabulary *vocabulary;
    const struct node *node;
    size_t bytes, size; /* of all texts with their NULs; one more than the highest id */
    size_t ids_max;     /* one more than the highest id that is possible */
    char *to, *end;     /* the next text is copied to it; behind the last one */
};

/* ---- measuring ---- */

static bool measure(struct words *words, size_t length, size_t id)
{
    if (id >= words->ids_max)
        return false;
    words->bytes += length + 1;
    words->size = id >= words->size ? id + 1 : words->size;
    return true;
}

static bool is_id(const struct words *words, const struct json_item *item)
{
    return item->has_number && item->number >= 0 && item->number < (double)words->ids_max &&
           item->number == (double)(size_t)item->number;
}

static bool measure_member(void *context, const struct json_item *item, size_t index)
{
    struct words *words = context;
    (void)index;
    return is_id(words, item) && measure(words, item->text.length, (size_t)item->number);
}

static bool measure_item(void *context, const struct json_item *item, size_t index)
{
    return item->has_number && measure(context, item->text.length, index);
}

static attn_status fail_id(const struct words *words, const struct node *node, int64_t id)
{
    struct reading *reading = &words->loading->reading;
    if (node_decode_integer(reading, node, 0, (int64_t)words->ids_max - 1, &id) != ATTN_OK && id > 0)
        node_explain(reading, "memory is taken for each id, so none is far above the number of tokens");
    return reading->status;
}

static attn_status measure_object(void *context, const json_t *piece, size_t index)
{
    struct words *words = context;
    const char *name;
    json_t *value;
    (void)index;
    json_object_foreach((json_t *)(uintptr_t)piece, name, value)
    {
        const struct node entry = {.parent = words->node, .name = name, .json = value, .is_plain = true};
        int64_t id = -1;
        if (!node_integer_of(value, &id) || id < 0 || !measure(words, strlen(name), (size_t)id))
            return fail_id(words, &entry, id);
    }
    return ATTN_OK;
}

static attn_status measure_list(void *context, const json_t *piece, size_t index)
{
    struct words *words = context;
    struct reading *reading = &words->loading->reading;
    const size_t count = json_array_size(piece);
    for (size_t i = 0; i < count; i++) {
        const struct node entry = step_item(words->node, piece, index, i);
        const json_t *text = json_array_get(entry.json, 0);
        if (json_array_size(entry.json) != 2 || !json_is_string(text) || !json_is_number(json_array_get(entry.json, 1)))
            return node_fail_value(reading, &entry, "a token and its score, as [\"the\", -3.5]");
        if (strlen(json_string_value(text)) != json_string_length(text))
            return node_fail(reading, &entry, ATTN_ERR_VALUE, "holds U+0000, which is not supported");
        (void)measure(words, json_string_length(text), index + i);
    }
    return ATTN_OK;
}

/* ---- copying ---- */

static attn_status add_text(struct words *words, struct text_span text, size_t id)
{
    struct reading *reading = &words->loading->reading;
    const struct text_span copy = {words->to, text.length};
    if (copy.length >= (size_t)(words->end - words->to) || id >= words->size)
        return node_fail(reading, words->node, ATTN_ERR_VALUE, "changed while it was read");
    memcpy(words->to, text.at, copy.length + 1);
    words->to += copy.length + 1;
    return node_note(reading, vocabulary_add(words->vocabulary, copy, (uint32_t)id, reading->err));
}

static bool has_id(const struct words *words, size_t id)
{
    return vocabulary_text(words->vocabulary, (uint32_t)id).at != NULL;
}

static bool has_text(const struct words *words, struct text_span text)
{
    return vocabulary_find(words->vocabulary, text.at, text.length) != VOCABULARY_NONE;
}

static bool add_member(void *context, const struct json_item *item, size_t index)
{
    struct words *words = context;
    (void)index;
    return is_id(words, item) && !has_id(words, (size_t)item->number) && !has_text(words, item->text) &&
           add_text(words, item->text, (size_t)item->number) == ATTN_OK;
}

static bool add_item(void *context, const struct json_item *item, size_t index)
{
    return !has_id(context, index) && add_text(context, item->text, index) == ATTN_OK;
}

/* jansson finds a name that comes twice in a piece, and this one that was there before. */
static attn_status add_object(void *context, const json_t *piece, size_t index)
{
    struct words *words = context;
    struct reading *reading = &words->loading->reading;
    const char *name;
    json_t *value;
    (void)index;
    json_object_foreach((json_t *)(uintptr_t)piece, name, value)
    {
        const struct text_span text = text_span_of(name);
        if (has_text(words, text))
            node_fail(reading, words->node, ATTN_ERR_SYNTAX, "has the token \"%.80s\" twice", name);
        if (node_has_failed(reading) || add_text(words, text, (size_t)json_number_value(value)) != ATTN_OK)
            return reading->status;
    }
    return ATTN_OK;
}

static attn_status add_list(void *context, const json_t *piece, size_t index)
{
    struct words *words = context;
    const struct reading *reading = &words->loading->reading;
    for (size_t i = 0; i < json_array_size(piece) && !node_has_failed(reading); i++)
        add_text(words, text_span_of(json_string_value(json_array_get(json_array_get(piece, i), 0))), index + i);
    return reading->status;
}

/* ---- both ---- */

static attn_status read_all(struct words *words, bool is_list, bool is_measuring)
{
    static const struct json_taker takers[2][2] = {{{add_member, add_object}, {measure_member, measure_object}},
                                                   {{add_item, add_list}, {measure_item, measure_list}}};
    struct loading *loading = words->loading;
    return loading_each(loading, &loading->vocab, &takers[is_list][is_measuring], words);
}

/*
 * Takes the memory of all tables in one block, and gives it back. So a budget that is too small refuses it before any
 * table is filled, and knows what they take together.
 */
static attn_status check_memory(const struct words *words)
{
    attn_arena *arena = words->loading->reading.arena;
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    const size_t tables = vocabulary_bytes(words->loading->vocab.items, words->size) + merges_bytes(words->loading);
    const void *all = attn_arena_take(arena, words->bytes + tables, 1);
    attn_arena_release(arena, mark);
    return all != NULL ? ATTN_OK : node_fail_memory(&words->loading->reading, words->node);
}

attn_status words_load(struct loading *loading, const struct node *node, size_t size, struct vocabulary *vocabulary)
{
    struct reading *reading = &loading->reading;
    const size_t count = loading->vocab.items;
    const bool is_list = loading->vocab.text.at[0] == '[';
    struct words words = {
        .loading = loading, .vocabulary = vocabulary, .node = node, .size = size, .ids_max = VOCABULARY_IDS_MAX};
    if (count > VOCABULARY_IDS_MAX)
        return node_fail(reading, node, ATTN_ERR_TOO_LARGE, "has more than %d tokens", VOCABULARY_IDS_MAX);
    if (2 * count + GAPS_MAX < words.ids_max)
        words.ids_max = 2 * count + GAPS_MAX;
    if (read_all(&words, is_list, true) != ATTN_OK || check_memory(&words) != ATTN_OK)
        return reading->status;
    if (node_note(reading, vocabulary_create(vocabulary, count, words.size, reading->arena, reading->err)) != ATTN_OK)
        return reading->status;
    words.to = attn_arena_take(reading->arena, words.bytes, 1);
    if (words.to == NULL)
        return node_fail_memory(reading, node);
    words.end = words.to + words.bytes;
    return read_all(&words, is_list, false);
}
