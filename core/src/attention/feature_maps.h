/*
 * feature_maps.h: attention by feature maps instead of softmax: linear and performer (attn/mechanism.h has the
 * equations).
 */
#ifndef ATTN_ATTENTION_FEATURE_MAPS_H
#define ATTN_ATTENTION_FEATURE_MAPS_H

#include "attention/heads.h"
#include "kernel/features/job.h"

/*
 * The arena bytes of attn_feature_maps_run, for all threads together and for each thread; its floating-point
 * operations.
 */
size_t attn_feature_maps_shared_bytes(const attn_plan *plan, const attn_request *request);
size_t attn_feature_maps_scratch_bytes(const attn_plan *plan, const attn_request *request);
double attn_feature_maps_flops(const attn_plan *plan, const attn_request *request);
/* An upper bound of the elements of any array of a run or a backward pass, as a double, so that it cannot overflow. */
double attn_feature_maps_numbers(const attn_plan *plan, const attn_request *request);

/*
 * What the stages of the forward and of the backward pass read: sizes and counts, then the items, the projection, and
 * which keys are seen at all. finds_seen: also where a mask is looked up for each head, which takes time. It takes at
 * most attn_feature_prepared_bytes. Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED, without a message.
 */
struct attn_feature_job attn_feature_describe(const attn_plan *plan, const attn_request *request);
ATTN_MUST_CHECK attn_status attn_feature_prepare(struct attn_feature_job *job, const attn_plan *plan,
                                                 const struct attn_heads_job *heads, bool finds_seen,
                                                 const attn_runtime *runtime, attn_arena *arena);
size_t attn_feature_prepared_bytes(const attn_plan *plan, const attn_request *request);

/*
 * The counterpart of attn_heads_run for these mechanisms: fills job->context and the attention map, and records empty
 * rows. Results depend only on the request, because keys are summed in blocks that start at fixed keys.
 * Returns ATTN_OK, ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_feature_maps_run(const attn_plan *plan, const attn_request *request,
                                                  struct attn_heads_job *job, const attn_runtime *runtime,
                                                  attn_arena *arena, attn_result *result, attn_error *err);

#endif
