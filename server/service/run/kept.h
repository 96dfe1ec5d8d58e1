/* kept.h: a request that computes with a kept layer: the layer of the path, its conditions, its prepared weights. */
#ifndef SERVICE_RUN_KEPT_H
#define SERVICE_RUN_KEPT_H

#include "codec/request/kept_layer.h"
#include "service/call.h"

/*
 * Computes with the layer (NULL: the request has its own weights), and confirms the outcome (registry/layer/keeper.h).
 * *batch becomes the number of batch items, for the statistics.
 */
typedef attn_status kept_function(struct call *call, const struct kept_layer *layer, void *context, size_t *batch);

/* Finds the layer, checks the request's conditions, computes, and counts the request. call->version holds the layer. */
ATTN_MUST_CHECK attn_status kept_call(struct call *call, kept_function *compute);
/* The same with a version that was found; NULL: the built-in model. */
ATTN_MUST_CHECK attn_status kept_compute(struct call *call, struct layer_version *version, kept_function *compute,
                                         void *context);

#endif
