/*
 * compute.h: a request that computes with a kept layer: the layer of the path, its conditions, its prepared weights.
 */
#ifndef SERVICE_REGISTRY_LAYER_COMPUTE_H
#define SERVICE_REGISTRY_LAYER_COMPUTE_H

#include "codec/request/kept_layer.h"
#include "service/call.h"

/*
 * Computes with the layer, and confirms the outcome (keeper.h). *batch becomes the number of batch items, for the
 * statistics.
 */
typedef attn_status layer_function(struct call *call, const struct kept_layer *layer, size_t *batch);

/* Finds the layer, checks the request's conditions, computes, and counts the request. call->version holds the layer. */
ATTN_MUST_CHECK attn_status layer_call(struct call *call, layer_function *compute);

#endif
