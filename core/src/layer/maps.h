/*
 * maps.h: the maps of a layer's run: scores to dropped, their mean over heads, the mask, and one number a query.
 */
#ifndef ATTN_LAYER_MAPS_H
#define ATTN_LAYER_MAPS_H

#include "layer/layer_run.h"

/* Memory for what the heads fill, and the selections turned into slots. */
ATTN_MUST_CHECK attn_status attn_layer_take_maps(struct layer_run *run);
/* After the heads: attention_mean and mask. */
ATTN_MUST_CHECK attn_status attn_layer_reduce_maps(struct layer_run *run);

#endif
