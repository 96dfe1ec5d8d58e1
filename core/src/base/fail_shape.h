/*
 * fail_shape.h: the error about a tensor whose shape does not fit.
 */
#ifndef ATTN_BASE_FAIL_SHAPE_H
#define ATTN_BASE_FAIL_SHAPE_H

#include "attn/status.h"
#include "attn/tensor.h"

/*
 * Records ATTN_ERR_SHAPE with the shape of received; expected is the expected shape as JSON, or NULL. err may be NULL.
 */
__attribute__((format(printf, 5, 6))) attn_status attn_fail_shape(attn_error *err, const char *field,
                                                                  const attn_tensor *received, const char *expected,
                                                                  const char *format, ...);

/* The last name of a member's path: "key" of "inputs.key". A sentence about the member uses it. */
const char *attn_last_name(const char *field);

#endif
