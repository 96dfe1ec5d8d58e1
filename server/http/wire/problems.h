/*
 * problems.h: the reasons for which a request is refused: code, HTTP status, type in the answer, title. Metrics number
 * the reasons in this order.
 */
#ifndef HTTP_PROBLEMS_H
#define HTTP_PROBLEMS_H

#include "attn/status.h"
#include "service/call.h"

/* The last seven are the failures of attn_status. */
#define PROBLEM_LIST(X)                                                                                                \
    X(PROBLEM_BAD_REQUEST, 400, "bad-request", "not valid HTTP/1.1")                                                   \
    X(PROBLEM_PARAMETER, 400, "parameter", "query parameter not known")                                                \
    X(PROBLEM_UNAUTHORIZED, 401, "unauthorized", "an API key is needed")                                               \
    X(PROBLEM_FORBIDDEN, 403, "forbidden", "the API key lacks the right")                                              \
    X(PROBLEM_ORIGIN, 403, "foreign-origin", "not for pages of other origins")                                         \
    X(PROBLEM_NOT_FOUND, 404, "not-found", "not found")                                                                \
    X(PROBLEM_READ_ONLY, 403, "read-only", "layers cannot be changed here")                                            \
    X(PROBLEM_METHOD, 405, "method-not-allowed", "method not allowed here")                                            \
    X(PROBLEM_NOT_ACCEPTABLE, 406, "not-acceptable", "no representation that Accept allows")                           \
    X(PROBLEM_CONFLICT, 409, "conflict", "not possible in the current state")                                          \
    X(PROBLEM_GONE, 410, "gone", "no longer here")                                                                     \
    X(PROBLEM_PRECONDITION, 412, "precondition-failed", "a condition of the request does not hold")                    \
    X(PROBLEM_BODY, 413, "body-too-large", "body is over the limit")                                                   \
    X(PROBLEM_MEDIA_TYPE, 415, "unsupported-media-type", "the type of the body is not supported")                      \
    X(PROBLEM_ENCODING, 415, "unsupported-encoding", "body is encoded")                                                \
    X(PROBLEM_EXPECTATION, 417, "expectation-failed", "expectation not understood")                                    \
    X(PROBLEM_HOST, 421, "foreign-host", "Host does not name this server")                                             \
    X(PROBLEM_QUOTA, 429, "quota", "the quota of the API key is used up")                                              \
    X(PROBLEM_HEADER, 431, "header-too-large", "header is over the limit")                                             \
    X(PROBLEM_DEADLINE, 504, "deadline", "the deadline passed")                                                        \
    X(PROBLEM_BUSY, 503, "busy", "all compute threads are busy and the queue is full")                                 \
    X(PROBLEM_DRAINING, 503, "draining", "server is about to end")                                                     \
    X(PROBLEM_STORE_FAILED, 503, "store-failed", "the store of layers failed")                                         \
    X(PROBLEM_STORE_FULL, 507, "store-full", "no room to keep the layer or cache")                                     \
    X(PROBLEM_SYNTAX, 400, "syntax", "body is not valid JSON")                                                         \
    X(PROBLEM_FIELD, 400, "field", "member unknown, missing, of the wrong type or not supported")                      \
    X(PROBLEM_SHAPE, 400, "shape", "shapes disagree")                                                                  \
    X(PROBLEM_VALUE, 400, "value", "value not allowed")                                                                \
    X(PROBLEM_TOO_LARGE, 413, "too-large", "request or result is over a limit")                                        \
    X(PROBLEM_NO_MEMORY, 503, "no-memory", "out of memory")                                                            \
    X(PROBLEM_CANCELLED, 503, "cancelled", "server ended the computation")

enum problem {
    PROBLEM_NONE = -1,
#define PROBLEM_ENUM(code, status, type, title) code,
    PROBLEM_LIST(PROBLEM_ENUM)
#undef PROBLEM_ENUM
        PROBLEM_COUNT
};

struct problem_row {
    unsigned status;
    const char *type, *title;
};

const struct problem_row *problems_row(enum problem problem);
/* The problem of a failed service. With CALL_FAILED, status decides; it must not be ATTN_OK. */
enum problem problems_of_failure(attn_status status, enum call_refusal refusal);
/* The problem of a request that libmicrohttpd refuses itself, with that status. */
enum problem problems_of_library(unsigned status);
/* The types of all problems, in the order of metrics. */
const char *const *problems_types(size_t *count);

#endif
