/* budget.h: a limit in bytes that several arenas share, and a cache of blocks that finished arenas leave. */
#ifndef ATTN_BASE_BUDGET_H
#define ATTN_BASE_BUDGET_H

#include "attn/arena.h"

/* An arena of at most this many bytes is small. A share of the budget is reserved for small arenas. */
enum { BUDGET_SMALL_BYTES = 256 << 10 };

/*
 * Takes bytes from the budget, and frees the cached blocks if they are needed; false when it has too few. A budget that
 * is NULL has no limit.
 */
bool attn_budget_take(attn_budget *budget, size_t bytes, bool is_small);
void attn_budget_give(attn_budget *budget, size_t bytes);

/*
 * A cached block of at least *bytes, and not much more; *bytes becomes its size, which stays taken from the budget. NULL:
 * there is none.
 */
void *attn_budget_take_spare(attn_budget *budget, size_t *bytes);
/*
 * Caches a block of posix_memalign for the next arena. Its bytes stay taken until the cache frees it. false: the caller
 * frees the block, and gives its bytes back.
 */
bool attn_budget_keep_spare(attn_budget *budget, void *block, size_t bytes);

#endif
