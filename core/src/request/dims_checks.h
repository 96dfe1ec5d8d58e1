/*
 * dims_checks.h: what dims.c and dims_start.c check of one tensor, and of heads. field is the path in the request.
 */
#ifndef ATTN_REQUEST_DIMS_CHECKS_H
#define ATTN_REQUEST_DIMS_CHECKS_H

#include "base/check.h"

/*
 * The largest element count of a tensor, and of the working memory of a run. Sums of such counts, and their bytes, do
 * not overflow a size_t. No machine has that much memory.
 */
#define ATTN_NUMBERS_MAX ((size_t)1 << 48)

/* Of the compute type, row-major without gaps, and not too large. */
ATTN_MUST_CHECK bool attn_check_tensor(const attn_tensor *tensor, const char *field, attn_dtype compute,
                                       struct attn_check *check);
/* The same, but it may be of 16 bits where the type is float32: a projection's weight. */
ATTN_MUST_CHECK bool attn_check_matrix(const attn_tensor *tensor, const char *field, attn_dtype compute,
                                       struct attn_check *check);
/*
 * The same, but it may lie anywhere with its features side by side, and may be of 16 bits where the type is float32:
 * tokens of attention, and a cache.
 */
ATTN_MUST_CHECK bool attn_check_tokens(const attn_tensor *tensor, const char *field, attn_dtype compute,
                                       struct attn_check *check);
/* Whether tensor has wanted of what on that axis, as the input other ("inputs.key") has. */
ATTN_MUST_CHECK bool attn_check_same(const attn_tensor *tensor, const char *field, int axis, size_t wanted,
                                     const char *other, const char *what, struct attn_check *check);
/* Whether there are heads, and the key heads divide them. */
ATTN_MUST_CHECK bool attn_check_groups(const attn_dims *dims, struct attn_check *check);
/* Whether an option asked (not 0) for as many heads as were found. */
ATTN_MUST_CHECK bool attn_check_heads(size_t asked, size_t found, const char *field, struct attn_check *check);
/* *each = features / heads; option is the name of what gave the heads. */
ATTN_MUST_CHECK bool attn_split_features(size_t features, size_t heads, const char *field, const char *option,
                                         size_t *each, struct attn_check *check);

/* dims_start.c: attn_dims_read (dims.h) of a request that starts at scores or weights. */
ATTN_MUST_CHECK bool attn_dims_read_start(const attn_request *request, attn_dims *dims, struct attn_check *check);

#endif
