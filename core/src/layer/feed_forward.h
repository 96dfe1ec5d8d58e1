/*
 * feed_forward.h: the feed-forward network of a block, with its norm and residual (attn_feed_forward_options).
 */
#ifndef ATTN_LAYER_FEED_FORWARD_H
#define ATTN_LAYER_FEED_FORWARD_H

#include "layer/projection.h"
#include "layer/stages.h"

/*
 * The network without norm and residual: from x, (tokens, d_in), to y, (tokens, d_out). up, gate and hidden are (tokens,
 * d_ff); gate is NULL for a network without a gate. hidden may be up or gate. scratch is that of attn_products_run.
 */
struct attn_feed_forward {
    const attn_request *request;
    const attn_dims *dims;
    const attn_runtime *runtime;
    char *scratch;
    const char *x;
    char *up, *gate, *hidden, *y;
};

enum attn_feed_forward_role { FEED_FORWARD_UP, FEED_FORWARD_GATE, FEED_FORWARD_DOWN };

/* The weight of a role as one slice. */
attn_projection attn_feed_forward_slice(const attn_request *request, const attn_dims *dims,
                                        enum attn_feed_forward_role role);
/* up and gate from x; then hidden = act(up), or act(gate) * up. */
void attn_feed_forward_expand(const struct attn_feed_forward *network);
/* y from hidden. */
void attn_feed_forward_contract(const struct attn_feed_forward *network);

/* Numbers that attn_layer_feed_forward takes from the arena, beyond the steps that request wants. */
size_t attn_feed_forward_numbers(const attn_request *request, const attn_dims *dims);
/* Without a network it does nothing. With one, run->output becomes run->attended, and then the output of the block. */
ATTN_MUST_CHECK attn_status attn_layer_feed_forward(struct layer_run *run);

#endif
