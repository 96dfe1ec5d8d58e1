/*
 * seen.h: which keys some query of their head may attend to, and which queries may attend to some key. The steps scores
 * and scaled show these keys and queries alone.
 */
#ifndef ATTN_ATTENTION_SEEN_H
#define ATTN_ATTENTION_SEEN_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "kernel/job.h"

/* Arena bytes that attn_seen_find takes; 0 when the job keeps neither of the two steps. */
size_t attn_seen_bytes(const struct attn_heads_job *job);
/*
 * Fills in job->key_is_seen and job->query_sees, one task per head, if the job keeps scores or scaled. ATTN_OK or
 * ATTN_ERR_NO_MEMORY, without a message. When the runtime is cancelled, the flags are of no use.
 */
ATTN_MUST_CHECK attn_status attn_seen_find(struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena);

#endif
