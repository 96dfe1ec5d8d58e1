/*
 * gradients.h: POST /v1/attention/gradients, /v1/multi-head-attention/gradients and /v1/layers/{name}/gradients.
 */
#ifndef SERVICE_GRADIENTS_H
#define SERVICE_GRADIENTS_H

#include "service/call.h"

/* envelope.h and gradient.h list the failures. ATTN_ERR_TOO_LARGE names the limit and a smaller request. */
service_function gradients_attention, gradients_layer;
/* The gradients through a kept layer, its weights included, if the request's conditions hold for it. */
service_function gradients_kept;

#endif
