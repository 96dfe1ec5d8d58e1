/*
 * json_tree.c: jansson with its memory counted, and never told that there is none while it parses.
 *
 * Its parser goes on with a text that lacks what could not be appended, and an assertion of it ends the process then,
 * or it reads past the end. So an allocation that fails leaves the parser at once, and what the parse had taken is
 * given back here.
 */
#include "codec/json_tree.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json_plain.h"

enum { NEAR_BYTES = 16 << 10 };

/* In front of each block: those of one parse are a ring. */
struct link {
    alignas(max_align_t) struct link *before;
    struct link *after;
};

static _Thread_local struct {
    bool is_loading; /* only then are bytes counted: what else uses jansson is small and has no end to count to */
    bool is_near;    /* only then are blocks taken from near */
    size_t bytes;
    bool is_starved;
    struct link taken; /* by the parse: a link of their ring that is no block */
    jmp_buf starved;
} notes;

/*
 * A small envelope takes some thirty blocks, all given back before the thread takes up its next request. So they come
 * from memory of the thread, one behind the other, and that is empty again as soon as the last of them was given back.
 */
static _Thread_local struct {
    alignas(max_align_t) char bytes[NEAR_BYTES];
    size_t used, blocks;
} near;

static void *take_near(size_t size)
{
    if (!notes.is_near || size > NEAR_BYTES - near.used)
        return NULL;
    void *block = near.bytes + near.used;
    near.used += (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    near.blocks++;
    return block;
}

static void *take_block(size_t size)
{
    void *block = take_near(size);
    return block != NULL ? block : malloc(size);
}

static void give_block(void *block)
{
    const uintptr_t at = (uintptr_t)block, first = (uintptr_t)near.bytes;
    if (at < first || at >= first + NEAR_BYTES)
        free(block);
    else if (--near.blocks == 0)
        near.used = 0;
}

static void join(struct link *link, struct link *ring)
{
    *link = (struct link){.before = ring->before, .after = ring};
    ring->before->after = link;
    ring->before = link;
}

static void leave(struct link *link)
{
    link->before->after = link->after;
    link->after->before = link->before;
}

static void *take(size_t size)
{
    struct link *link = size <= JSON_TREE_BYTES_MAX - notes.bytes ? take_block(sizeof *link + size) : NULL;
    if (link == NULL) {
        notes.is_starved = true;
        if (notes.is_loading)
            longjmp(notes.starved, 1);
        return NULL;
    }
    *link = (struct link){link, link};
    if (notes.is_loading) {
        join(link, &notes.taken);
        notes.bytes += size;
    }
    return link + 1;
}

static void give(void *block)
{
    if (block == NULL)
        return;
    struct link *link = (struct link *)block - 1;
    leave(link);
    give_block(link);
}

void json_tree_prepare(void)
{
    json_set_alloc_funcs(take, give);
    json_object_seed(0);
}

void json_tree_give_text(char *text)
{
    json_free_t free_text;
    json_get_alloc_funcs(NULL, &free_text);
    free_text(text);
}

static void give_all(void)
{
    struct link *link = notes.taken.after;
    notes.taken = (struct link){&notes.taken, &notes.taken};
    while (link != &notes.taken) {
        struct link *next = link->after;
        give_block(link);
        link = next;
    }
}

static json_t *parse(const char *text, size_t length, json_error_t *error)
{
    json_t *tree = json_plain_load(text, length);
    if (tree != NULL)
        return tree;
    notes.bytes = 0;
    return json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
}

/* No variable of it changes between setjmp and the jump. */
static json_t *load(const char *text, size_t length, json_error_t *error)
{
    if (setjmp(notes.starved) != 0) {
        give_all();
        *error = (json_error_t){.line = -1, .column = -1}; /* the parser may not have come to it */
        return NULL;
    }
    return parse(text, length, error);
}

json_t *json_tree_load(const char *text, size_t length, json_error_t *error)
{
    notes.is_loading = true;
    notes.is_starved = false;
    notes.taken = (struct link){&notes.taken, &notes.taken};
    json_t *tree = load(text, length, error);
    leave(&notes.taken);
    notes.is_loading = false;
    notes.bytes = 0;
    return tree;
}

json_t *json_tree_load_near(const char *text, size_t length, json_error_t *error)
{
    notes.is_near = true;
    json_t *tree = json_tree_load(text, length, error);
    notes.is_near = false;
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
