/*
 * tree.h: jansson with its memory in an arena.
 *
 * A tree takes up to a hundred times the bytes of its text. So its memory comes from the arena of the request, which
 * has a limit. When memory is short, jansson reports a syntax error, or nothing at all, or one of its assertions ends
 * the process. So a parse ends at the first allocation that fails, and json_tree_is_starved tells whether one did. The
 * state of a parse is kept per thread, because jansson's allocators take no context.
 */
#ifndef CODEC_JSON_TREE_H
#define CODEC_JSON_TREE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "attn/arena.h"

/* "jansson 2.14": the one this was built with. Static storage. */
const char *json_tree_library(void);
/* Once per process, before the first use of jansson by any thread. */
void json_tree_prepare(void);

/*
 * Parses text, which may be any JSON value: strictly, duplicate names refused. The tree lives in arena. Release it by
 * json_decref all the same, because values that were added later come from malloc. NULL on failure, with *error filled:
 * json_tree_is_starved then tells whether memory was short or the request was cancelled.
 */
json_t *json_tree_load(const char *text, size_t length, attn_arena *arena, json_error_t *error);
/*
 * The characters of a string, to compare with words. "" for a string with U+0000, because no word has it. NULL for other
 * values.
 */
const char *json_tree_word(const json_t *json);
/* Releases a text that jansson made (json_dumps). NULL is allowed. */
void json_tree_give_text(char *text);
/* "an integer above …" or "an integer below …" when the error is such an integer, else NULL. */
const char *json_tree_integer_bound(const json_error_t *error);
/* Whether an allocation of this thread failed since the last json_tree_load began. */
bool json_tree_is_starved(void);

/*
 * The fast parser that json_tree_load tries first. Nearly all envelopes are plain, and it takes a third of jansson's
 * time. Plain JSON has objects, arrays, strings of printable ASCII without escapes, integers of few digits without a
 * sign, true, false and null. jansson parses all other text and all invalid text, because it knows the whole of JSON
 * and words the errors. For plain text both parsers give the same tree. NULL when the text is not plain, when an object
 * has a name twice, or when memory is short.
 */
json_t *json_plain_load(const char *text, size_t length);

#endif
