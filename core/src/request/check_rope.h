/*
 * check_rope.h: options.rope against the dimensions: what a client can get wrong about it.
 */
#ifndef ATTN_REQUEST_CHECK_ROPE_H
#define ATTN_REQUEST_CHECK_ROPE_H

#include "attn/plan.h"

/* After plan->dims is known: fills in plan->rope_dim and plan->rope_length. */
ATTN_MUST_CHECK attn_status attn_rope_check(const attn_request *request, attn_plan *plan, attn_error *err);

#endif
