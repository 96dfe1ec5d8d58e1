/*
 * json_tree.h: jansson with its memory in an arena.
 *
 * A tree takes up to a hundred times the bytes of its text. So it is taken from the arena of the request, which counts
 * it and bounds it. Under memory shortage jansson reports most failures as syntax errors, and some not at all; of
 * others an assertion of it ends the process. So a parse ends at the first allocation that fails, and every parse asks
 * afterwards whether one did. The notes are kept per thread, because jansson's allocators take no context.
 */
#ifndef CODEC_JSON_JSON_TREE_H
#define CODEC_JSON_JSON_TREE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "attn/arena.h"

/* "jansson 2.14": the one this was built with. Static storage. */
const char *json_tree_library(void);
/* Once per process, before the first use of jansson by any thread. */
void json_tree_prepare(void);

/*
 * Parses text, which may be any JSON value: strictly, duplicate names refused. The tree lives in arena; json_decref it
 * all the same, for what was added to it later. NULL with *error filled on failure; then, json_tree_is_starved tells
 * whether memory was the reason, or the arena's watch.
 */
json_t *json_tree_load(const char *text, size_t length, attn_arena *arena, json_error_t *error);
/* Gives back a text that jansson has made (json_dumps). NULL is fine. */
void json_tree_give_text(char *text);
/* "an integer above …" or "… below …" when that was the failure, else NULL. */
const char *json_tree_integer_bound(const json_error_t *error);
/* Whether an allocation of this thread failed since the last json_tree_load began. */
bool json_tree_is_starved(void);

#endif
