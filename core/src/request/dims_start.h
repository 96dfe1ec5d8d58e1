/*
 * dims_start.h: the dimensions of a request that starts at scores or weights.
 */
#ifndef ATTN_REQUEST_DIMS_START_H
#define ATTN_REQUEST_DIMS_START_H

#include "base/check.h"

/* attn_dims_read (dims.h) of such a request. */
ATTN_MUST_CHECK bool attn_dims_read_start(const attn_request *request, attn_dims *dims, struct attn_check *check);

#endif
