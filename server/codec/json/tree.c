/*
 * tree.c: jansson with its memory in an arena. While it parses, no allocation of jansson returns NULL.
 *
 * When an allocation fails, jansson's parser goes on with an incomplete text: one of its assertions may then end the
 * process, or it may read past the end. So an allocation that fails leaves the parser at once, by longjmp. Nothing
 * leaks, because all memory of the parse is in the arena. A parse that was cancelled is left in the same way.
 */
#include "codec/json/tree.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/bytes/pace.h"
#include "codec/json/plain.h"

/* jansson takes many small blocks, and a block of an arena fills whole cache lines. So blocks are cut from pieces. */
enum { PIECE_BYTES = 4096 };

/* Stands in front of each block. */
struct header {
    alignas(max_align_t) bool is_lent; /* the block is from an arena; else from malloc */
};

static _Thread_local struct {
    attn_arena *arena; /* of the parse that runs in this thread; NULL: none runs */
    char *piece;       /* the unused rest of the last piece */
    size_t piece_left;
    struct pace pace;
    bool is_starved;
    jmp_buf starved;
} notes;

static void *take_of_arena(size_t size)
{
    if (size > PIECE_BYTES / 4)
        return attn_arena_take(notes.arena, 1, size);
    if (size > notes.piece_left) {
        notes.piece = attn_arena_take(notes.arena, 1, PIECE_BYTES);
        notes.piece_left = notes.piece != NULL ? PIECE_BYTES : 0;
    }
    if (notes.piece == NULL)
        return NULL;
    void *block = notes.piece;
    notes.piece += size;
    notes.piece_left -= size;
    return block;
}

static void *take_while_loading(size_t size)
{
    void *block = pace_stops(&notes.pace, size) ? NULL : take_of_arena(size);
    if (block != NULL)
        return block;
    notes.is_starved = true;
    longjmp(notes.starved, 1);
}

/* Outside of a parse, jansson takes few and small blocks; they come from malloc. */
static void *take(size_t size)
{
    const size_t unit = sizeof(struct header);
    const bool is_possible = size <= SIZE_MAX / 2; /* sanitizers report a larger malloc as a mistake */
    const size_t whole = is_possible ? (size + 2 * unit - 1) / unit * unit : SIZE_MAX / 2;
    struct header *header = notes.arena != NULL ? take_while_loading(whole) : is_possible ? malloc(whole) : NULL;
    if (header == NULL) {
        notes.is_starved = true;
        return NULL;
    }
    header->is_lent = notes.arena != NULL;
    return header + 1;
}

static void give(void *block)
{
    struct header *header = block != NULL ? (struct header *)block - 1 : NULL;
    if (header != NULL && !header->is_lent)
        free(header);
}

const char *json_tree_library(void)
{
    return "jansson " JANSSON_VERSION;
}

void json_tree_prepare(void)
{
    json_set_alloc_funcs(take, give);
    json_object_seed(0);
}

const char *json_tree_word(const json_t *json)
{
    const char *text = json_string_value(json);
    return text != NULL && strlen(text) != json_string_length(json) ? "" : text;
}

void json_tree_give_text(char *text)
{
    json_free_t free_text;
    json_get_alloc_funcs(NULL, &free_text);
    free_text(text);
}

static json_t *parse(const char *text, size_t length, json_error_t *error)
{
    json_t *tree = json_plain_load(text, length);
    if (tree != NULL)
        return tree;
    return json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, error);
}

/* No local variable changes between setjmp and longjmp. */
static json_t *load(const char *text, size_t length, json_error_t *error)
{
    if (setjmp(notes.starved) != 0) {
        *error = (json_error_t){.line = -1, .column = -1}; /* the parser may not have set it */
        return NULL;
    }
    return parse(text, length, error);
}

json_t *json_tree_load(const char *text, size_t length, attn_arena *arena, json_error_t *error)
{
    notes.arena = arena;
    notes.piece_left = 0;
    notes.pace = pace_begin(arena);
    notes.is_starved = false;
    json_t *tree = load(text, length, error);
    notes.arena = NULL;
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
