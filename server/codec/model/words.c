/* words.c: decodes options.words. */
#include "codec/model/words.h"

#include <string.h>

#include "codec/json/node.h"

enum { WORDS_MAX = 256 };

static const char wanted_words[] = "a list of texts of one token each or of ids, or \"next\"";

/* Copies a text, because the tree is closed before it is used. */
static attn_status decode_one(struct reading *reading, const struct node *node, struct model_word *word)
{
    const char *at;
    *word = (struct model_word){.id = 0};
    if (json_is_number(node->json))
        return node_decode_integer(reading, node, 0, INT32_MAX, &word->id);
    if (!node_string(reading, node, &at, &word->text.length))
        return node_fail_type(reading, node, "a text of one token, or an id");
    char *copy = attn_arena_take(reading->arena, word->text.length + 1, 1);
    if (copy == NULL)
        return node_fail_memory(reading, node);
    memcpy(copy, at, word->text.length);
    copy[word->text.length] = '\0';
    word->text.at = copy;
    return ATTN_OK;
}

static attn_status decode_list_of_words(struct reading *reading, const struct node *list, struct model_word_list *made)
{
    const size_t count = json_array_size(list->json);
    if (count == 0)
        return node_fail(reading, list, ATTN_ERR_VALUE, "is empty: name at least one word");
    if (count > WORDS_MAX)
        return node_fail(reading, list, ATTN_ERR_TOO_LARGE, "has %zu words; at most %d are possible", count, WORDS_MAX);
    struct model_word *words = attn_arena_take(reading->arena, count, sizeof *words);
    attn_status status = words != NULL ? ATTN_OK : node_fail_memory(reading, list);
    for (size_t i = 0; words != NULL && i < count && status == ATTN_OK; i++) {
        const struct node element = node_element(list, i);
        status = decode_one(reading, &element, &words[i]);
    }
    *made = (struct model_word_list){.items = words, .count = count};
    return status;
}

attn_status decode_given_words(struct reading *reading, const struct node *node, void *to)
{
    struct model_word_list *made = to;
    struct node list;
    const char *text;
    size_t length;
    if (node_string(reading, node, &text, &length)) {
        made->is_next = length == strlen("next") && memcmp(text, "next", length) == 0;
        return made->is_next ? ATTN_OK : node_fail_value(reading, node, wanted_words);
    }
    attn_status status = node_decode_list(reading, node, wanted_words, &list);
    if (status != ATTN_OK)
        return status;
    status = decode_list_of_words(reading, &list, made);
    json_decref(list.json);
    return status;
}
