/*
 * cache_options.c: decodes "options.cache" of a request: the name of a cache on the server, and how much of it to use.
 */
#include <string.h>

#include "base/array.h"
#include "codec/request/decoder.h"

/* const char *: a text in the arena */
static attn_status decode_name(struct reading *reading, const struct node *node, void *to)
{
    const char *text;
    size_t length;
    if (!node_string(reading, node, &text, &length))
        return node_fail_type(reading, node, "the name of a cache");
    if (memchr(text, '\0', length) != NULL)
        return node_fail_value(reading, node, "a name of letters, digits, dots, underscores and hyphens");
    const char *copy = attn_arena_copy_text(reading->arena, text, length);
    *(const char **)to = copy;
    return copy != NULL ? ATTN_OK : node_fail_memory(reading, node);
}

/* struct envelope_cache */
static attn_status decode_length(struct reading *reading, const struct node *node, void *to)
{
    struct envelope_cache *cache = to;
    int64_t length = 0;
    attn_status status = node_decode_integer(reading, node, 0, INT64_MAX, &length);
    cache->has_length = true;
    cache->length = (size_t)length;
    return status;
}

/* struct envelope_cache: a name, or {"name", "length"} */
attn_status decode_cache(struct reading *reading, const struct node *node, void *to)
{
    static const struct member members[] = {
        {"name", decode_name, offsetof(struct envelope_cache, name), MEMBER_ALWAYS},
        {"length", decode_length, 0, MEMBER_ALWAYS},
    };
    struct envelope_cache *cache = to;
    if (!json_is_object(node->json))
        return decode_name(reading, node, &cache->name);
    attn_status status = node_decode_members(reading, node, members, ARRAY_LENGTH(members), to);
    if (status == ATTN_OK && cache->name == NULL)
        return node_fail(reading, node, ATTN_ERR_FIELD, "has no \"name\"");
    return status;
}
