/*
 * starts.h: attention that starts in the middle: from given scores, or from given weights (attn_inputs in attn/plan.h has
 * the equations). Row by row and in double, because nothing is multiplied before the weights.
 */
#ifndef ATTN_ATTENTION_STARTS_H
#define ATTN_ATTENTION_STARTS_H

#include "attention/heads.h"

/* The arena bytes of attn_starts_run, for each thread and for all threads together; its cost, as attn_plan counts it. */
size_t attn_starts_scratch_bytes(const struct attn_heads_job *job);
size_t attn_starts_shared_bytes(const struct attn_heads_job *job);
double attn_starts_flops(const attn_plan *plan);
double attn_starts_time_flops(const attn_plan *plan);

/*
 * The counterpart of attn_heads_run for such a request: fills the maps, rows and context of the job, and records empty
 * rows and the largest score in *result. A row is computed by itself, so threads and neighbours change no bit. Each
 * score is rounded to the compute type after scale and softcap, and after its biases: the steps show the numbers that
 * the next step reads. Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_starts_run(const attn_request *request, struct attn_heads_job *job,
                                            const attn_runtime *runtime, attn_arena *arena, attn_result *result,
                                            attn_error *err);

#endif
