/*
 * gradients.h: POST /v1/attention/gradients and POST /v1/multi-head-attention/gradients.
 */
#ifndef SERVICE_GRADIENTS_H
#define SERVICE_GRADIENTS_H

#include "service/call.h"

/* See envelope.h, gradient.h for failures; ATTN_ERR_TOO_LARGE names the limit and what to ask instead. */
service_function gradients_attention, gradients_layer;

#endif
