/*
 * json_tree.c: jansson with its memory counted.
 */
#include "codec/json_tree.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local struct {
    bool is_loading; /* only then are bytes counted: what else uses jansson is small and has no end to count to */
    size_t bytes;
    bool is_starved;
} notes;

static void *take(size_t size)
{
    void *block = size <= JSON_TREE_BYTES_MAX - notes.bytes ? malloc(size) : NULL;
    if (!block)
        notes.is_starved = true;
    else if (notes.is_loading)
        notes.bytes += size;
    return block;
}

void json_tree_prepare(void)
{
    json_set_alloc_funcs(take, free);
    json_object_seed(0);
}

json_t *json_tree_load(const char *text, size_t length, json_error_t *error)
{
    notes.is_loading = true;
    notes.is_starved = false;
    json_t *tree = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
    notes.is_loading = false;
    notes.bytes = 0;
    if (tree && notes.is_starved) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

const char *json_tree_integer_bound(const json_error_t *error)
{
    if (json_error_code(error) != json_error_numeric_overflow || !strstr(error->text, "integer"))
        return NULL;
    return strstr(error->text, "negative") ? "an integer below -9223372036854775808"
                                           : "an integer above 9223372036854775807";
}

bool json_tree_is_starved(void)
{
    return notes.is_starved;
}
