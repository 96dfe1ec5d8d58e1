/*
 * gradients.h: POST /v1/attention/gradients and POST /v1/multi-head-attention/gradients.
 */
#ifndef SERVICE_GRADIENTS_H
#define SERVICE_GRADIENTS_H

#include "service/call.h"

/* envelope.h and gradient.h list the failures. ATTN_ERR_TOO_LARGE names the limit and a smaller request. */
service_function gradients_attention, gradients_layer;

#endif
