/*
 * architecture.h: data that says which tensors of a checkpoint belong to attention. Private to checkpoint*.c.
 */
#ifndef CODEC_CHECKPOINT_ARCHITECTURE_H
#define CODEC_CHECKPOINT_ARCHITECTURE_H

#include "attn/arena.h"
#include "codec/bytes/chunks.h"
#include "codec/json/json_tree.h"

/*
 * The list of modules for that model_type: a new reference whose memory is in arena. NULL when the table has no entry.
 */
json_t *architecture_modules(const char *model_type, attn_arena *arena);
/* Writes the model types of the table as a list in a sentence. */
void architecture_write_types(struct chunks *out);

/*
 * The value of the expression behind "$" in layer number n, as a new reference. NULL when the configuration has no
 * member of the expression, and when memory is short; json_tree_is_starved tells the two apart.
 */
json_t *architecture_value(const json_t *config, size_t n, const char *expression);

/*
 * Whether name ends in pattern. The pattern must begin at the start of name or behind a dot. "{…}" in the pattern fits
 * digits. *start is the offset of the pattern in name; *number is the first number that fitted, or 0.
 */
bool architecture_fits(const char *name, const char *pattern, size_t *start, size_t *number);

#endif
