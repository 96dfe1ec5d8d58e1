/*
 * head_scale.h: a factor for each head, between the heads and the gate.
 *
 *     concat = head_scale[h] * context of head h
 *
 * Michel, Levy, Neubig, "Are Sixteen Heads Really Better than One?" (2019), section 2.1, where the factors are 0 or 1.
 */
#ifndef ATTN_LAYER_HEAD_SCALE_H
#define ATTN_LAYER_HEAD_SCALE_H

#include "kernel/job.h"

/*
 * Writes the scaled context to data with the strides of context; data may be that of context. A factor 0 gives 0, even
 * for NaN. request has options.head_scale.
 */
void attn_head_scale_run(const attn_plan *plan, const attn_request *request, const struct attn_operand *context,
                         void *data, const attn_runtime *runtime);

/*
 * The backward pass: grad_factors[h] = sum of grad * context over the head h, and grad_context = head_scale[h] * grad.
 * Where grad is 0 nothing is added, even if context is NaN. grad_context has the strides of grad and may be its memory.
 * Either may be NULL: not wanted.
 */
void attn_head_scale_back(const attn_plan *plan, const attn_request *request, const struct attn_operand *context,
                          const struct attn_operand *grad, void *grad_context, void *grad_factors,
                          const attn_runtime *runtime);

#endif
