/*
 * queries_keys.h: queries and keys between their projection and the heads: normalised, turned, and put behind their
 * cache.
 */
#ifndef ATTN_LAYER_QUERIES_KEYS_H
#define ATTN_LAYER_QUERIES_KEYS_H

#include "attention/heads.h"

/* Arena bytes that attn_qk_run takes, in all and for each thread; its floating-point operations. */
size_t attn_qk_bytes(const attn_plan *plan, const attn_request *request);
size_t attn_qk_scratch_bytes(const attn_plan *plan, const attn_request *request);
double attn_qk_flops(const attn_plan *plan, const attn_request *request);

/*
 * job->q, k and v are the new tokens, as projected or given; they become what the heads attend with: q and k
 * normalised and rotated, k and v after past_key and past_value. An operand that needs no change stays the same view. A
 * past is copied once, so that the keys of a head are contiguous. ATTN_OK, ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status attn_qk_run(const attn_plan *plan, const attn_request *request, const attn_runtime *runtime,
                                        attn_arena *arena, struct attn_heads_job *job, attn_error *err);

/*
 * The backward pass of the rotation: turns the rows of grad_q and grad_k, of the new tokens, back in place. data NULL:
 * not wanted. Takes up to attn_qk_bytes in all, and its own scratch for each thread.
 */
ATTN_MUST_CHECK attn_status attn_qk_turn_back(const attn_plan *plan, const attn_request *request,
                                              const attn_runtime *runtime, attn_arena *arena,
                                              const struct attn_operand *grad_q, const struct attn_operand *grad_k,
                                              attn_error *err);
size_t attn_qk_turn_back_scratch_bytes(const attn_plan *plan);

#endif
