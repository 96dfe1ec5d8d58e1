/*
 * gate.h: the output gate: every head's context times the sigmoid of a projection of the query tokens.
 */
#ifndef ATTN_LAYER_GATE_H
#define ATTN_LAYER_GATE_H

#include "attn/plan.h"

/*
 * gated = concat * sigmoid(gate) for rows of heads * d_v numbers of the compute type; gate has heads * d_gate a row,
 * d_gate d_v or 1. gated may be concat.
 */
void attn_gate_rows(attn_dtype compute, size_t rows, size_t heads, size_t d_v, size_t d_gate, const void *concat,
                    const void *gate, void *gated);

/*
 * The backward pass, with s = sigmoid(gate): grad_concat = grad_gated s, and grad_gate = grad_gated concat s (1 - s),
 * summed over the features that share a gate. Where grad_gated is 0, both are 0, even if gate or concat is NaN.
 * grad_concat may be grad_gated. Either may be NULL: not wanted.
 */
void attn_gate_rows_back(attn_dtype compute, size_t rows, size_t heads, size_t d_v, size_t d_gate, const void *concat,
                         const void *gate, const void *grad_gated, void *grad_concat, void *grad_gate);

#endif
