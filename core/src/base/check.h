/*
 * check.h: the checks of one request: its first failure, and how its caller calls the members that errors name.
 *
 * A check returns false when it has refused the request, so that checks follow each other by &&. In a message,
 *
 *     @options.norm_eps   is the whole name of a member
 *     ~options.norm_eps   is the last part of that name: "eps" where the caller says "/options/norm/eps"
 *     @ and ~             without a path mean the member that is refused
 */
#ifndef ATTN_BASE_CHECK_H
#define ATTN_BASE_CHECK_H

#include "attn/gradient.h"
#include "attn/plan.h"

struct attn_check {
    const attn_request *request;
    attn_namer *names;  /* NULL: members have their C names */
    attn_error *err;    /* of the first failure; may be NULL */
    attn_status status; /* of the first failure */
};

/* Records the first failure, and returns false. field is the C path of a member, or NULL. */
__attribute__((format(printf, 4, 5))) bool attn_refuse(struct attn_check *check, attn_status status, const char *field,
                                                       const char *format, ...);
/* The same for ATTN_ERR_SHAPE, with the shape of received; expected is the expected shape as JSON, or NULL. */
__attribute__((format(printf, 5, 6))) bool attn_refuse_shape(struct attn_check *check, const char *field,
                                                             const attn_tensor *received, const char *expected,
                                                             const char *format, ...);
/* The same for work that its request's watch has stopped, and for want of memory. */
bool attn_refuse_stopped(struct attn_check *check);
bool attn_refuse_no_memory(struct attn_check *check);

/* ---- vocabulary.c: the table of all tensors of a request ---- */

struct attn_tensor_row {
    size_t at;              /* offset of the member in attn_request */
    const char *path;       /* "inputs.query" */
    attn_gradient gradient; /* ATTN_GRADIENT_COUNT: it has none */
};

/* The row at index in the order of ATTN_TENSOR_LIST; NULL after the last one. */
const struct attn_tensor_row *attn_tensor_row_at(size_t index);
/* The tensor of that row; NULL: not given. */
const attn_tensor *attn_tensor_of(const attn_request *request, const struct attn_tensor_row *row);
/* The tensor of a gradient; NULL when it was not given, or is not a tensor. */
const attn_tensor *attn_gradient_subject(const attn_request *request, attn_gradient gradient);

#endif
