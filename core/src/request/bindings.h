/*
 * bindings.h: a plan on other data.
 */
#ifndef ATTN_REQUEST_BINDINGS_H
#define ATTN_REQUEST_BINDINGS_H

#include "attn/plan.h"

/* A plan for one run. Its inputs point to tensors, so it stays where it is. */
struct attn_bound {
    attn_plan plan;
    attn_tensor tensors[7];
};

/*
 * *bound = plan with the data of bindings (NULL: none). ATTN_ERR_FIELD names an input that the request does not have, or
 * that has no data. grad_output is not read.
 */
ATTN_MUST_CHECK attn_status attn_bind(const attn_plan *plan, const attn_bindings *bindings, struct attn_bound *bound,
                                      attn_error *err);

#endif
