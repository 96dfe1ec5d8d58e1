/*
 * architecture.h: which tensors of a checkpoint are attention, as data. Private to checkpoint*.c.
 */
#ifndef CODEC_CHECKPOINT_ARCHITECTURE_H
#define CODEC_CHECKPOINT_ARCHITECTURE_H

#include "attn/arena.h"
#include "codec/bytes/chunks.h"
#include "codec/json/json_tree.h"

/* The list of modules of the entry for that model_type, a new reference that lives in arena; NULL: there is none. */
json_t *architecture_modules(const char *model_type, attn_arena *arena);
/* The model types that there are entries for, as a list in a sentence. */
void architecture_write_types(struct chunks *out);

/*
 * The value of an expression behind "$" in layer number n, a new reference; NULL: nothing of it is there, or without
 * memory, which json_tree_is_starved tells.
 */
json_t *architecture_value(const json_t *config, size_t n, const char *expression);

/*
 * Whether name ends in pattern, which begins at the start of name or behind a dot of it. "{…}" of the pattern fits
 * digits. *start is where the pattern begins, *number the first of the numbers, 0 without one.
 */
bool architecture_fits(const char *name, const char *pattern, size_t *start, size_t *number);

#endif
