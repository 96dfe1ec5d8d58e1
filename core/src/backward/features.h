/*
 * features.h: the backward pass of linear and performer.
 *
 *     w_ij = phi(q_i) phi(k_j)      S_i = sum_j w_ij (v_j, 1) = (N_i, D_i)      out_i = N_i / D_i
 *     dS_i = (dO_i / D_i, -dO_i N_i / D_i^2), or (dO_i, 0) without a denominator
 *     dphi(q_i) = sum_j phi(k_j) (v_j, 1) dS_i            dphi(k_j) = R_j (v_j, 1)         dv_j = R_j^T phi(k_j)
 *     R_j = sum over the queries that see key j of phi(q_i) dS_i^T
 *
 * As in the forward pass, sums over keys are running sums where the mask allows it; R is summed from the last query
 * back. Performer subtracts the largest P s from its exponents. With eps above 0 that changes the result, so the
 * largest P s is differentiated, too. The projection of performer is a constant.
 */
#ifndef ATTN_BACKWARD_FEATURES_H
#define ATTN_BACKWARD_FEATURES_H

#include "attn/plan.h"
#include "backward/heads.h"

/* The arena bytes of attn_gradient_features_run, per thread and in total; its floating-point operations. */
size_t attn_gradient_features_scratch_bytes(const attn_plan *plan);
size_t attn_gradient_features_shared_bytes(const attn_plan *plan);
double attn_gradient_features_flops(const attn_plan *plan);

/*
 * The counterpart of attn_gradient_heads_run for these mechanisms. Reads job, grad_context and past_len of heads, and
 * writes the gradients of q, k, v, the cache and the scale; these mechanisms have no others. Returns ATTN_OK,
 * ATTN_ERR_NO_MEMORY or ATTN_ERR_CANCELLED.
 */
ATTN_MUST_CHECK attn_status attn_gradient_features_run(const attn_plan *plan, const struct attn_gradient_heads *heads,
                                                       const attn_runtime *runtime, attn_arena *arena, attn_error *err);

#endif
