/* expression.h: expressions of architectures.json over the members of a config.json. */
#ifndef CODEC_CHECKPOINT_LANGUAGE_EXPRESSION_H
#define CODEC_CHECKPOINT_LANGUAGE_EXPRESSION_H

#include "codec/json/tree.h"

/*
 * The value of the expression behind "$" in layer number n, as a new reference (find.h has the language). NULL
 * when the configuration has no member of the expression, and when memory is short; json_tree_is_starved tells the two
 * apart.
 */
json_t *expression_value(const json_t *config, size_t n, const char *expression);
/* The same of a template: its own value, if it is no text that begins with "$". */
json_t *expression_fill(const json_t *config, size_t n, const json_t *template);
/*
 * For messages: the member of the configuration that gives the value, borrowed, and its name. NULL with the first name of
 * the expression when the configuration has none of them.
 */
const json_t *expression_member(const json_t *config, const char *expression, char *name, size_t size);

/* The member of that name, borrowed. "a.b" is the member b of the member a. NULL: there is none. */
json_t *expression_member_at(const json_t *config, const char *name);

#endif
