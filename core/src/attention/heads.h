/*
 * heads.h: attention over all batch items and heads: cuts the work into tasks, lends them scratch, and gathers their
 * diagnostics.
 */
#ifndef ATTN_ATTENTION_HEADS_H
#define ATTN_ATTENTION_HEADS_H

#include "attn/arena.h"
#include "attn/multihead.h"
#include "kernel/job.h"

/* Arena bytes that attn_heads_run takes: scratch for each thread, whatever the kernel, and what all tasks share. */
size_t attn_heads_scratch_bytes(const struct attn_heads_job *job);
size_t attn_heads_shared_bytes(const struct attn_heads_job *job);

/*
 * Runs the job, whose operands, maps and mask the caller has filled in, and notes empty rows and the largest score in
 * *result. ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_heads_run(struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena,
                                           attn_result *result, attn_error *err);

/* Counts job->row_is_empty into *result and lists the first of them there. ATTN_OK or ATTN_ERR_NO_MEMORY. */
ATTN_MUST_CHECK attn_status attn_heads_list_empty(const struct attn_heads_job *job, attn_arena *arena,
                                                  attn_result *result);

#endif
