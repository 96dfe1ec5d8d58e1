/*
 * budget.h: the bytes that several arenas share, and the blocks that they leave to each other.
 */
#ifndef ATTN_BASE_BUDGET_H
#define ATTN_BASE_BUDGET_H

#include "attn/arena.h"

/* An arena of at most so many bytes is small. A share of the budget is reserved for small arenas. */
enum { BUDGET_SMALL_BYTES = 256 << 10 };

/* Takes bytes from the budget; false when it has too few. A budget that is NULL has no limit. */
bool attn_budget_take(attn_budget *budget, size_t bytes, bool is_small);
void attn_budget_give(attn_budget *budget, size_t bytes);

/*
 * A block that another arena gave up, of at least *bytes and not much more; *bytes becomes its size. NULL: there is
 * none. Its bytes are not taken from the budget yet.
 */
void *attn_budget_take_spare(attn_budget *budget, size_t *bytes);
/* Keeps a block of posix_memalign for the next arena, after its bytes went back. false: the caller frees it. */
bool attn_budget_keep_spare(attn_budget *budget, void *block, size_t bytes);

#endif
