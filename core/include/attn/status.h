/* status.h: the outcomes of a call, and the error record, which carries the first failure to the answer. */
#ifndef ATTN_STATUS_H
#define ATTN_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "attn/version.h"

ATTN_BEGIN_C

#define ATTN_MUST_CHECK __attribute__((warn_unused_result))

/* Every outcome with its name in answers and in logs. Switches and tables are made from this list. */
#define ATTN_STATUS_LIST(X)                                                                                            \
    X(ATTN_OK, "ok")                                                                                                   \
    X(ATTN_ERR_SYNTAX, "syntax")       /* text that violates its declared format */                                    \
    X(ATTN_ERR_FIELD, "field")         /* a member unknown, missing, of the wrong type, or not supported yet */        \
    X(ATTN_ERR_SHAPE, "shape")         /* dimensions that disagree */                                                  \
    X(ATTN_ERR_VALUE, "value")         /* a number or word outside what the member allows */                           \
    X(ATTN_ERR_TOO_LARGE, "too-large") /* the request or its result is over a limit */                                 \
    X(ATTN_ERR_NO_MEMORY, "no-memory") /* the arena or the machine has no memory left */                               \
    X(ATTN_ERR_CANCELLED, "cancelled") /* the runtime asked to stop */

typedef enum {
#define ATTN_STATUS_ENUM(code, name) code,
    ATTN_STATUS_LIST(ATTN_STATUS_ENUM)
#undef ATTN_STATUS_ENUM
} attn_status;

/*
 * The first failure, recorded where it happened. Plain data: copy it freely, nothing to release.
 * All texts are UTF-8 and NUL-terminated; an empty one means "does not apply".
 */
typedef struct {
    attn_status status;
    char message[640];  /* a sentence for a person: what was expected and received */
    char field[160];    /* path of the member in attn_request: "inputs.key", "options.norm_eps" */
    char expected[128]; /* JSON fragment: "[3,3]", "\"float32\"" */
    char received[128]; /* JSON fragment */
    size_t line;        /* of text input, from 1; 0 when the failure is not in text */
    size_t column;      /* in bytes, from 1 */
} attn_error;

/* "shape" for ATTN_ERR_SHAPE. Static storage. */
const char *attn_status_name(attn_status status);

/*
 * Records the failure in *err (which may be NULL) and returns status, so that failing is one line:
 *     return attn_fail(err, ATTN_ERR_SHAPE, "inputs.key", "key has %zu features, query has %zu", a, b);
 * field may be NULL. expected and received become empty; attn_expect fills them.
 */
attn_status attn_fail(attn_error *err, attn_status status, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Records ATTN_ERR_NO_MEMORY with the one message that it has, and returns it. err may be NULL. */
attn_status attn_fail_no_memory(attn_error *err);

/*
 * Adds what was expected and what was received, as JSON fragments; either may be NULL. err is not NULL; returns its
 * status.
 */
attn_status attn_expect(attn_error *err, const char *expected, const char *received);

ATTN_END_C

#endif
