/*
 * maps.h: what is read from the whole maps of a layer: rollout and the roles of heads. Private to the job.
 */
#ifndef SERVICE_RUN_MODEL_MAPS_H
#define SERVICE_RUN_MODEL_MAPS_H

#include "attn/multihead.h"
#include "service/run/model/block_run.h"

/* Reads the maps (1, heads, n, n) of a block, and writes rollout and head scores to the outputs. */
ATTN_MUST_CHECK attn_status model_maps_read(struct model_block_run *run, const attn_tensor *maps);
/* Replaces the whole maps of the result by those that the request selects. */
ATTN_MUST_CHECK attn_status model_maps_select(struct model_block_run *run, attn_result *result);

#endif
