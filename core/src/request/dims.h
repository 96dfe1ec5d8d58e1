/*
 * dims.h: the dimensions of a computation, read from the shapes of inputs and weights and checked against each other.
 */
#ifndef ATTN_REQUEST_DIMS_H
#define ATTN_REQUEST_DIMS_H

#include "base/check.h"

/* Fills *dims from request; errors as attn_plan_make documents them. */
ATTN_MUST_CHECK bool attn_dims_read(const attn_request *request, attn_dims *dims, struct attn_check *check);

/* The features of a token that enters the feed-forward network. */
size_t attn_feed_forward_d_in(const attn_request *request, const attn_dims *dims);

static inline bool attn_affine_is_given(const attn_affine *affine)
{
    return affine->weight != NULL || affine->bias != NULL;
}

static inline bool attn_feed_forward_is_given(const attn_feed_forward_weights *w)
{
    return attn_affine_is_given(&w->up) || attn_affine_is_given(&w->gate) || attn_affine_is_given(&w->down) ||
           attn_affine_is_given(&w->norm) || attn_affine_is_given(&w->branch_norm);
}

/* A gain or shift of rows of length numbers, of rank 1; NULL is fine. field is its path in the request. */
ATTN_MUST_CHECK bool attn_check_row(const attn_tensor *vector, const char *field, attn_dtype compute, size_t length,
                                    struct attn_check *check);

#endif
