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
#include <stdlib.h>
#include <string.h>

/* In front of each block: those of one parse are a ring. */
struct link {
    alignas(max_align_t) struct link *before;
    struct link *after;
};

static _Thread_local struct {
    bool is_loading; /* only then are bytes counted: what else uses jansson is small and has no end to count to */
    size_t bytes;
    bool is_starved;
    struct link taken; /* by the parse: a link of their ring that is no block */
    jmp_buf starved;
} notes;

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
    struct link *link = size <= JSON_TREE_BYTES_MAX - notes.bytes ? malloc(sizeof *link + size) : NULL;
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
    free(link);
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
        free(link);
        link = next;
    }
}

/* No variable of it changes between setjmp and the jump. */
static json_t *load(const char *text, size_t length, json_error_t *error)
{
    if (setjmp(notes.starved) != 0) {
        give_all();
        return NULL;
    }
    return json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
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
