/*
 * json_tree.h: jansson with its memory counted.
 *
 * Under memory shortage jansson reports most failures as syntax errors, and some not at all; of others an assertion of
 * it ends the process. So a parse ends at the first allocation that fails, and every parse asks afterwards whether one
 * did. The notes are kept per thread, because jansson's allocators take no context.
 */
#ifndef CODEC_JSON_TREE_H
#define CODEC_JSON_TREE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { JSON_TREE_BYTES_MAX = 256 << 20 }; /* that one tree may allocate, freed or not */

/* Once per process, before the first use of jansson by any thread. */
void json_tree_prepare(void);

/*
 * Parses text, which may be any JSON value: strictly, duplicate names refused. NULL with *error filled on failure;
 * then, json_tree_is_starved tells whether memory was the reason.
 */
json_t *json_tree_load(const char *text, size_t length, json_error_t *error);
/* Gives back a text that jansson has made (json_dumps). NULL is fine. */
void json_tree_give_text(char *text);
/* "an integer above …" or "… below …" when that was the failure, else NULL. */
const char *json_tree_integer_bound(const json_error_t *error);
/* Whether an allocation of this thread failed since the last json_tree_load began. */
bool json_tree_is_starved(void);

#endif
