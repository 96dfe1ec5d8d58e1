/*
 * attend.h: POST /v1/attention and POST /v1/multi-head-attention: decode, cache, plan, weigh, run, write.
 */
#ifndef SERVICE_ATTEND_H
#define SERVICE_ATTEND_H

#include "codec/request/kept_layer.h"
#include "service/call.h"

/* See envelope.h, plan.h and multihead.h for failures; ATTN_ERR_TOO_LARGE names the limit and what to ask instead. */
service_function attend_attention, attend_layer;

/* The same over a kept layer, which outlives the answer; *batch is how many sequences it was. */
ATTN_MUST_CHECK attn_status attend_kept(struct call *call, const struct kept_layer *layer, size_t *batch);

#endif
