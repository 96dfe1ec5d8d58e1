/*
 * heads.h: the backward pass of attention over all batch items and heads.
 *
 * A task owns the keys of one split of one key head. It sums their dk and dv over all queries of the group, and the
 * part of dq that comes from its keys. The parts of dq are added in the order of the splits. Only the shape determines
 * the splits, so the number of threads changes no bit.
 */
#ifndef ATTN_BACKWARD_HEADS_H
#define ATTN_BACKWARD_HEADS_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "backward/job.h"

/*
 * The arena bytes of attn_gradient_heads_run, per thread and in total. They only compare pointers of operands with
 * NULL.
 */
size_t attn_gradient_heads_scratch_bytes(const struct attn_gradient_heads *heads);
size_t attn_gradient_heads_shared_bytes(const struct attn_gradient_heads *heads);

/* ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED. */
ATTN_MUST_CHECK attn_status attn_gradient_heads_run(struct attn_gradient_heads *heads, const attn_runtime *runtime,
                                                    attn_arena *arena, attn_error *err);

#endif
