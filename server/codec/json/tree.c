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
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codec/bytes/pace.h"

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

/* ---- plain JSON, by recursive descent ---- */

enum { DEPTH_MAX = 16, DIGITS_MAX = 15 };

struct reader {
    const char *at, *end;
    int depth;
};

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

/* Whether the next character is c; if so, moves past it. */
static bool take_char(struct reader *r, char c)
{
    const bool is_here = r->at < r->end && *r->at == c;
    r->at += is_here;
    return is_here;
}

static bool take_between(struct reader *r, char c)
{
    skip_space(r);
    return take_char(r, c);
}

/* Reads the next string, without its quotes. False when it is not plain. */
static bool take_string(struct reader *r, const char **text, size_t *length)
{
    if (!take_char(r, '"'))
        return false;
    *text = r->at;
    while (r->at < r->end && *r->at >= ' ' && *r->at <= '~' && *r->at != '"' && *r->at != '\\')
        r->at++;
    *length = (size_t)(r->at - *text);
    return take_char(r, '"');
}

static json_t *read_value(struct reader *r);

static bool read_member(struct reader *r, json_t *object)
{
    const char *name;
    size_t length;
    skip_space(r);
    if (!take_string(r, &name, &length) || !take_between(r, ':') || json_object_getn(object, name, length))
        return false;
    return json_object_setn_new_nocheck(object, name, length, read_value(r)) == 0;
}

static bool read_element(struct reader *r, json_t *array)
{
    return json_array_append_new(array, read_value(r)) == 0;
}

/* Reads the items of collection up to close. NULL, with collection released, when one of them is not plain. */
static json_t *read_items(struct reader *r, json_t *collection, bool (*read_item)(struct reader *r, json_t *to),
                          char close)
{
    bool is_plain = ++r->depth <= DEPTH_MAX && collection != NULL;
    if (is_plain && !take_between(r, close)) {
        do
            is_plain = read_item(r, collection);
        while (is_plain && take_between(r, ','));
        is_plain = is_plain && take_char(r, close);
    }
    r->depth--;
    if (is_plain)
        return collection;
    json_decref(collection);
    return NULL;
}

static json_t *read_string(struct reader *r)
{
    const char *text;
    size_t length;
    return take_string(r, &text, &length) ? json_stringn_nocheck(text, length) : NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Stops at a point or an exponent. The caller then finds neither a comma nor a bracket, so the text is not plain. */
static json_t *read_integer(struct reader *r)
{
    const char *first = r->at;
    json_int_t value = 0;
    for (; r->at < r->end && is_digit(*r->at) && r->at - first < DIGITS_MAX; r->at++)
        value = value * 10 + (*r->at - '0');
    return *first == '0' && r->at - first > 1 ? NULL : json_integer(value);
}

static bool take_word(struct reader *r, const char *word)
{
    const size_t length = strlen(word);
    const bool is_here = (size_t)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0;
    r->at += is_here ? length : 0;
    return is_here;
}

static json_t *read_value(struct reader *r)
{
    skip_space(r);
    if (r->at == r->end)
        return NULL;
    if (*r->at == '"')
        return read_string(r);
    if (take_char(r, '{'))
        return read_items(r, json_object(), read_member, '}');
    if (take_char(r, '['))
        return read_items(r, json_array(), read_element, ']');
    if (is_digit(*r->at))
        return read_integer(r);
    return take_word(r, "true")    ? json_true()
           : take_word(r, "false") ? json_false()
           : take_word(r, "null")  ? json_null()
                                   : NULL;
}

json_t *json_plain_load(const char *text, size_t length)
{
    struct reader r = {.at = text, .end = text + length};
    json_t *tree = read_value(&r);
    skip_space(&r);
    if (r.at == r.end)
        return tree;
    json_decref(tree);
    return NULL;
}
