/* token_labels.c: reads the labels of tokens back as texts. */
#include "codec/answer/forms.h"

#include <string.h>

#include "codec/json/tree.h"

static const char REPLACEMENT[] = "\xEF\xBF\xBD";

/* Copies a label. Each NUL within it is replaced. */
static char *copy_label(attn_arena *arena, const json_t *label)
{
    const char *text = json_string_value(label);
    size_t length = json_string_length(label), nuls = 0;
    for (size_t i = 0; i < length; i++)
        nuls += text[i] == '\0';
    char *copy = attn_arena_take(arena, length + nuls * (sizeof REPLACEMENT - 2) + 1, 1), *to = copy;
    for (size_t i = 0; copy != NULL && i < length; i++) {
        if (text[i] != '\0')
            *to++ = text[i];
        else
            to = (char *)memcpy(to, REPLACEMENT, sizeof REPLACEMENT - 1) + sizeof REPLACEMENT - 1;
    }
    if (copy != NULL)
        *to = '\0';
    return copy;
}

static bool copy_list(attn_arena *arena, const json_t *list, const char **texts)
{
    size_t i;
    json_t *label;
    json_array_foreach(list, i, label)
    {
        texts[i] = copy_label(arena, label);
        if (texts[i] == NULL)
            return false;
    }
    return true;
}

static bool copy_all(attn_arena *arena, const json_t *tree, const struct envelope_tokens *tokens, const char **texts)
{
    if (tokens->batch == 0)
        return copy_list(arena, tree, texts);
    size_t b;
    json_t *list;
    json_array_foreach(tree, b, list)
    {
        if (!copy_list(arena, list, texts + b * tokens->count))
            return false;
    }
    return true;
}

attn_status labels_read(const struct envelope_tokens *tokens, attn_arena *arena, struct labels *labels, attn_error *err)
{
    json_error_t error;
    *labels = (struct labels){.count = tokens->count, .is_per_item = tokens->batch > 0};
    if (tokens->json == NULL)
        return ATTN_OK;
    size_t lists = tokens->batch > 0 ? tokens->batch : 1;
    const char **texts = attn_arena_take(arena, lists * tokens->count, sizeof *texts);
    json_t *tree = texts != NULL ? json_tree_load(tokens->json, strlen(tokens->json), arena, &error) : NULL;
    bool is_done = tree != NULL && copy_all(arena, tree, tokens, texts);
    json_decref(tree);
    if (!is_done)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, "/tokens", "not enough memory for the labels");
    labels->texts = texts;
    return ATTN_OK;
}

const char *labels_at(const struct labels *labels, size_t b, size_t i)
{
    if (labels->texts == NULL)
        return NULL;
    return labels->texts[(labels->is_per_item ? b * labels->count : 0) + i];
}

size_t labels_longest(const struct envelope_tokens *tokens)
{
    size_t longest = 0, length = 0;
    bool is_inside = false;
    for (const char *at = tokens->json != NULL ? tokens->json : ""; *at != '\0'; at++) {
        bool is_escape = *at == '\\';
        is_inside = is_inside != (*at == '"');
        length = is_inside ? length + 1 + is_escape : 0;
        longest = length > longest ? length : longest;
        at += is_escape;
    }
    return longest;
}
