/*
 * queries_keys.h: the stage between projection and heads: normalises and rotates queries and keys, and appends keys and
 * values to their cache.
 */
#ifndef ATTN_LAYER_QUERIES_KEYS_H
#define ATTN_LAYER_QUERIES_KEYS_H

#include "attention/heads.h"

/* The arena bytes of attn_qk_run, in total and per thread; its floating-point operations. */
size_t attn_qk_bytes(const attn_plan *plan, const attn_request *request);
size_t attn_qk_scratch_bytes(const attn_plan *plan, const attn_request *request);
double attn_qk_flops(const attn_plan *plan, const attn_request *request);

/*
 * On entry, job->q, k and v are the new tokens, projected or given. On return, q and k are normalised and rotated, and
 * k and v begin with past_key and past_value. An operand that needs no change stays the same view. The past is copied
 * once, so that the keys of a head are contiguous. Returns ATTN_OK or ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status attn_qk_run(const attn_plan *plan, const attn_request *request, const attn_runtime *runtime,
                                        attn_arena *arena, struct attn_heads_job *job, attn_error *err);

/*
 * The backward pass of the rotation: rotates the rows of grad_q and grad_k, of the new tokens, back in place. data
 * NULL: not wanted. Takes up to attn_qk_bytes in total, and its own scratch per thread.
 */
ATTN_MUST_CHECK attn_status attn_qk_turn_back(const attn_plan *plan, const attn_request *request,
                                              const attn_runtime *runtime, attn_arena *arena,
                                              const struct attn_operand *grad_q, const struct attn_operand *grad_k,
                                              attn_error *err);
size_t attn_qk_turn_back_scratch_bytes(const attn_plan *plan);

#endif
