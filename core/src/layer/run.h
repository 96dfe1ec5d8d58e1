/*
 * run.h: the run of a plan, which the backward pass calls, too.
 */
#ifndef ATTN_LAYER_RUN_H
#define ATTN_LAYER_RUN_H

#include "attn/multihead.h"

/* Intermediate results that the backward pass reads besides the steps. They stay in the arena. */
struct attn_multihead_kept {
    const char *query;     /* the queries, after a pre-norm: (batch, q_len, d_query) */
    const char *gate;      /* before its sigmoid: (batch, q_len, heads * d_gate) */
    const char *ff_input;  /* what enters the feed-forward network */
    char *product_scratch; /* of attn_products_run */
};

/* attn_plan_run on the data of the request, which also fills in *kept. */
ATTN_MUST_CHECK attn_status attn_multihead_run(const attn_plan *plan, const attn_runtime *runtime, attn_arena *arena,
                                               attn_result *result, struct attn_multihead_kept *kept, attn_error *err);

#endif
