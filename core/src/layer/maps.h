/*
 * maps.h: the maps of a layer's run: scores to dropped, their mean over heads, the mask, and rows with one number per
 * query.
 */
#ifndef ATTN_LAYER_MAPS_H
#define ATTN_LAYER_MAPS_H

#include "layer/layer_run.h"

/* Takes memory for the maps and rows that the heads fill, and turns the selections into slots. */
ATTN_MUST_CHECK attn_status attn_layer_take_maps(struct layer_run *run);
/* Computes attention_mean and mask, after the heads. */
ATTN_MUST_CHECK attn_status attn_layer_reduce_maps(struct layer_run *run);

#endif
