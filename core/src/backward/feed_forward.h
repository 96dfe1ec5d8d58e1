/*
 * feed_forward.h: the backward pass of the feed-forward network of a block, with its norm and residual.
 *
 *     h = act(up)            dup = dh act'(up)
 *     h = act(gate) * up     dup = dh act(gate)      dgate = dh up act'(gate)
 *
 * up and gate are computed again from the input of the network.
 */
#ifndef ATTN_BACKWARD_FEED_FORWARD_H
#define ATTN_BACKWARD_FEED_FORWARD_H

#include "attn/arena.h"
#include "attn/gradient.h"

struct attn_gradient_feed_forward {
    const attn_gradient_plan *plan;
    const attn_request *request;
    const attn_runtime *runtime;
    attn_arena *arena;
    const attn_gradient_result *result; /* the steps of the forward pass, and memory for the wanted gradients */
    const char *input;                  /* what the network reads */
    char *product_scratch;              /* of attn_products_run */
    char *affine_scratch;               /* of attn_gradient_of_input and attn_gradient_of_weight */
    uint8_t *is_live;
    double *partials;
    const char *grad_output; /* of the block */
    /* written: */
    const char *grad_attended; /* of attention_output */
    char *grad_query; /* of a parallel network: of the query if it has a norm, else of the input of the projections */
};

/* Numbers that a run takes from the arena. */
size_t attn_gradient_feed_forward_numbers(const attn_request *request, const attn_dims *dims);
/* ATTN_ERR_NO_MEMORY when the arena is full. */
ATTN_MUST_CHECK attn_status attn_gradient_feed_forward_run(struct attn_gradient_feed_forward *run, attn_error *err);

#endif
