/*
 * gate.h: the output gate: every head's context times the sigmoid of a projection of the query tokens.
 */
#ifndef ATTN_GATE_H
#define ATTN_GATE_H

#include "attn/plan.h"

/*
 * gated = concat * sigmoid(gate) for rows of heads * d_v numbers of the compute type; gate has heads * d_gate a row,
 * d_gate d_v or 1. gated may be concat.
 */
void attn_gate_rows(attn_dtype compute, size_t rows, size_t heads, size_t d_v, size_t d_gate, const void *concat,
                    const void *gate, void *gated);

#endif
