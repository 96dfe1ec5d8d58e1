/*
 * residual.h: the two ends of a layer: pre-norm at the start; dropout, residual and post-norm at the end.
 */
#ifndef ATTN_LAYER_RESIDUAL_H
#define ATTN_LAYER_RESIDUAL_H

#include "layer/layer_run.h"

/* run->normed = norm(query). */
ATTN_MUST_CHECK attn_status attn_layer_pre_norm(struct layer_run *run);
/*
 * run->summed = query + dropout(projected), run->output = norm(summed), each only if the request asks for it. A result
 * overwrites its input, unless the input is a wanted step or belongs to the steps of the heads.
 */
ATTN_MUST_CHECK attn_status attn_layer_finish(struct layer_run *run);

#endif
