/*
 * queries_keys.h: the stage between projection and heads: normalises and rotates queries and keys.
 */
#ifndef ATTN_LAYER_QUERIES_KEYS_H
#define ATTN_LAYER_QUERIES_KEYS_H

#include "attention/heads.h"

/* The arena bytes of attn_qk_run, in total and per thread; its floating-point operations. */
size_t attn_qk_bytes(const attn_plan *plan, const attn_request *request);
size_t attn_qk_scratch_bytes(const attn_plan *plan, const attn_request *request);
double attn_qk_flops(const attn_plan *plan, const attn_request *request);

/*
 * On entry, job->q and job->k.added are the new tokens, projected or given. On return, they are normalised and rotated.
 * Without a norm and a rotation they stay the same views, but queries of 16 bits are widened. Returns ATTN_OK or
 * ATTN_ERR_NO_MEMORY.
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
