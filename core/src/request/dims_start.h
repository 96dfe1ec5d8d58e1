/*
 * dims_start.h: the dimensions of a request that starts at scores or weights.
 */
#ifndef ATTN_REQUEST_DIMS_START_H
#define ATTN_REQUEST_DIMS_START_H

#include "attn/plan.h"

/* attn_dims_read (dims.h) of such a request. */
ATTN_MUST_CHECK attn_status attn_dims_read_start(const attn_request *request, attn_dims *dims, attn_error *err);

#endif
