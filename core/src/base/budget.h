/*
 * budget.h: the bytes that several arenas share, and the blocks that they leave to each other.
 */
#ifndef ATTN_BASE_BUDGET_H
#define ATTN_BASE_BUDGET_H

#include "attn/arena.h"

/* An arena of at most so many bytes is small: the share of the budget that large ones leave alone is for it. */
enum { BUDGET_SMALL_BYTES = 256 << 10 };

/* False when the budget has no room for them; budget may be NULL, which has room for all. */
bool attn_budget_take(attn_budget *budget, size_t bytes, bool is_small);
void attn_budget_give(attn_budget *budget, size_t bytes);

/*
 * A block that another arena gave up, of at least *bytes and not much more; *bytes becomes its size. NULL: there is
 * none. Its bytes are not taken from the budget yet.
 */
void *attn_budget_take_spare(attn_budget *budget, size_t *bytes);
/* Keeps a block of posix_memalign, which is on the budget no more, for the next arena; false: it is to be freed. */
bool attn_budget_keep_spare(attn_budget *budget, void *block, size_t bytes);

#endif
