/*
 * attend.h: POST /v1/attention and POST /v1/multi-head-attention: decode, cache, plan, weigh, run, write.
 */
#ifndef SERVICE_ATTEND_H
#define SERVICE_ATTEND_H

#include "service/call.h"

/* envelope.h, plan.h and multihead.h list the failures. ATTN_ERR_TOO_LARGE names the limit and a smaller request. */
service_function attend_attention, attend_layer;
/*
 * POST /v1/layers/{name}/attention: computes with the weights of a kept layer, if the request's conditions hold for it.
 */
service_function attend_kept;

#endif
