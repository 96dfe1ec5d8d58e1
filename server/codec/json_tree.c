/*
 * json_tree.c: jansson with its memory counted.
 */
#include "codec/json_tree.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json_plain.h"

enum { NEAR_BYTES = 16 << 10, NEAR_ALIGNMENT = 16 };

static _Thread_local struct {
    bool is_loading; /* only then are bytes counted: what else uses jansson is small and has no end to count to */
    bool is_near;    /* only then are blocks taken from near */
    size_t bytes;
    bool is_starved;
} notes;

/*
 * A small envelope takes some thirty blocks, all given back before the thread takes up its next request. So they come
 * from memory of the thread, one behind the other, and that is empty again as soon as the last of them was given back.
 */
static _Thread_local struct {
    _Alignas(NEAR_ALIGNMENT) char bytes[NEAR_BYTES];
    size_t used, blocks;
} near;

static void *take_near(size_t size)
{
    if (!notes.is_near || size > NEAR_BYTES - near.used)
        return NULL;
    void *block = near.bytes + near.used;
    near.used += (size + NEAR_ALIGNMENT - 1) / NEAR_ALIGNMENT * NEAR_ALIGNMENT;
    near.blocks++;
    return block;
}

static void *take(size_t size)
{
    void *block = NULL;
    if (size <= JSON_TREE_BYTES_MAX - notes.bytes) {
        block = take_near(size);
        if (!block)
            block = malloc(size);
    }
    if (!block)
        notes.is_starved = true;
    else if (notes.is_loading)
        notes.bytes += size;
    return block;
}

static void give_back(void *block)
{
    const uintptr_t at = (uintptr_t)block, first = (uintptr_t)near.bytes;
    if (at < first || at >= first + NEAR_BYTES)
        free(block);
    else if (--near.blocks == 0)
        near.used = 0;
}

void json_tree_prepare(void)
{
    json_set_alloc_funcs(take, give_back);
    json_object_seed(0);
}

json_t *json_tree_load_near(const char *text, size_t length, json_error_t *error)
{
    notes.is_near = true;
    json_t *tree = json_tree_load(text, length, error);
    notes.is_near = false;
    return tree;
}

json_t *json_tree_load(const char *text, size_t length, json_error_t *error)
{
    notes.is_loading = true;
    notes.is_starved = false;
    json_t *tree = json_plain_load(text, length);
    if (!tree) {
        notes.bytes = 0;
        notes.is_starved = false;
        tree = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
    }
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
