/*
 * contribution.h: the step contribution: the norm of what each key adds to the output projection of a query (plan.h).
 */
#ifndef ATTN_LAYER_CONTRIBUTION_H
#define ATTN_LAYER_CONTRIBUTION_H

#include "attn/plan.h"

struct layer_run;

/* Numbers of the compute type, and further bytes, of memory that the step takes beside its map; 0: not wanted. */
size_t attn_contribution_numbers(const attn_request *request, const attn_dims *dims);
size_t attn_contribution_bytes(const attn_plan *plan);
double attn_contribution_flops(const attn_plan *plan);
/* After the heads: scales the weights of the selected maps by the norms of the transformed values. */
ATTN_MUST_CHECK attn_status attn_layer_contribution(struct layer_run *run);

#endif
