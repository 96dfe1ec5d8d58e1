/*
 * present.h: the cache of the next request: the rows of the cache and the new rows in one array.
 */
#ifndef ATTN_LAYER_PRESENT_H
#define ATTN_LAYER_PRESENT_H

#include "layer/layer_run.h"

/*
 * Sets run->present_k and run->present_v, if a wanted step shows them: the new rows where there is no cache; else an
 * array where the caller wants it, or one of its own. A cache that lies at the beginning of that array stays there.
 * ATTN_OK or ATTN_ERR_NO_MEMORY.
 */
ATTN_MUST_CHECK attn_status attn_layer_present(struct layer_run *run);

#endif
