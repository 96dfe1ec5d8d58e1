/*
 * residual.h: the tokens at both ends of a layer.
 */
#ifndef ATTN_LAYER_RESIDUAL_H
#define ATTN_LAYER_RESIDUAL_H

#include "layer/layer_run.h"

/* run->normed = norm(query). */
ATTN_MUST_CHECK attn_status attn_layer_pre_norm(struct layer_run *run);
/*
 * run->summed = query + dropout(projected), run->output = norm(summed), each where it is asked for. Each writes over
 * its input unless that is a step that was asked for, or belongs to the steps of the heads.
 */
ATTN_MUST_CHECK attn_status attn_layer_finish(struct layer_run *run);

#endif
