/*
 * heads.h: attention over all batch items and heads: divides the work into tasks, gives them scratch, and merges their
 * diagnostics.
 */
#ifndef ATTN_ATTENTION_HEADS_H
#define ATTN_ATTENTION_HEADS_H

#include "attn/arena.h"
#include "attn/multihead.h"
#include "kernel/job.h"

/*
 * The arena bytes of attn_heads_run: scratch per thread, enough for every kernel, and the memory that all tasks share.
 */
size_t attn_heads_scratch_bytes(const struct attn_heads_job *job);
size_t attn_heads_shared_bytes(const struct attn_heads_job *job);

/*
 * Runs the job. The caller has filled in its operands, maps and mask. Records empty rows and the largest score in
 * *result. Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_heads_run(struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena,
                                           attn_result *result, attn_error *err);

/*
 * Counts job->row_is_empty into *result and lists the first of them there. ATTN_OK or ATTN_ERR_NO_MEMORY. Ends early
 * when runtime is cancelled.
 */
ATTN_MUST_CHECK attn_status attn_heads_list_empty(const struct attn_heads_job *job, const attn_runtime *runtime,
                                                  attn_arena *arena, attn_result *result);
/* The same, and before it the sums over the scores of that many tasks. */
ATTN_MUST_CHECK attn_status attn_heads_gather(const struct attn_heads_job *job, size_t tasks,
                                              const attn_runtime *runtime, attn_arena *arena, attn_result *result);

#endif
