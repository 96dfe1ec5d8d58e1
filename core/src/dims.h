/*
 * dims.h: the dimensions of a computation, read from the shapes of inputs and weights and checked against each other.
 */
#ifndef ATTN_DIMS_H
#define ATTN_DIMS_H

#include "attn/plan.h"

/* Fills *dims from request; errors as attn_plan_make documents them. */
ATTN_MUST_CHECK attn_status attn_dims_read(const attn_request *request, attn_dims *dims, attn_error *err);

static inline bool attn_linear_is_given(const attn_linear *linear)
{
    return linear->weight != NULL || linear->bias != NULL;
}

/* A bias, gain or shift of length numbers in rank 1 or 2; NULL is fine. field is its path in the request. */
ATTN_MUST_CHECK attn_status attn_check_vector(const attn_tensor *vector, const char *field, attn_dtype compute,
                                              size_t length, attn_error *err);

#endif
