/* problems.c: the reasons for which a request is refused. */
#include "http/wire/problems.h"

#include <assert.h>

#include "service/metrics.h"

static const struct problem_row rows[] = {
#define PROBLEM_ROW(code, status, type, title) [code] = {status, type, title},
    PROBLEM_LIST(PROBLEM_ROW)
#undef PROBLEM_ROW
};

static const char *const types[] = {
#define PROBLEM_TYPE(code, status, type, title) [code] = type,
    PROBLEM_LIST(PROBLEM_TYPE)
#undef PROBLEM_TYPE
};

const struct problem_row *problems_row(enum problem problem)
{
    return &rows[problem];
}

const char *const *problems_types(size_t *count)
{
    static_assert((int)PROBLEM_COUNT <= (int)METRICS_REASONS_MAX, "every reason has its counter");
    *count = PROBLEM_COUNT;
    return types;
}

static enum problem problem_of_status(attn_status status)
{
    switch (status) {
    case ATTN_OK:
        break;
    case ATTN_ERR_SYNTAX:
        return PROBLEM_SYNTAX;
    case ATTN_ERR_FIELD:
        return PROBLEM_FIELD;
    case ATTN_ERR_SHAPE:
        return PROBLEM_SHAPE;
    case ATTN_ERR_VALUE:
        return PROBLEM_VALUE;
    case ATTN_ERR_TOO_LARGE:
        return PROBLEM_TOO_LARGE;
    case ATTN_ERR_NO_MEMORY:
        return PROBLEM_NO_MEMORY;
    case ATTN_ERR_CANCELLED:
        return PROBLEM_CANCELLED;
    }
    assert(status != ATTN_OK);
    return PROBLEM_CANCELLED;
}

enum problem problems_of_failure(attn_status status, enum call_refusal refusal)
{
    switch (refusal) {
    case CALL_FAILED:
        break;
    case CALL_NOT_FOUND:
        return PROBLEM_NOT_FOUND;
    case CALL_CONFLICT:
        return PROBLEM_CONFLICT;
    case CALL_PRECONDITION:
        return PROBLEM_PRECONDITION;
    case CALL_READ_ONLY:
        return PROBLEM_READ_ONLY;
    case CALL_GONE:
        return PROBLEM_GONE;
    case CALL_QUOTA:
        return PROBLEM_QUOTA;
    case CALL_FOREIGN:
        return PROBLEM_ORIGIN;
    case CALL_STORE_FULL:
        return PROBLEM_STORE_FULL;
    case CALL_STORE_FAILED:
        return PROBLEM_STORE_FAILED;
    }
    return problem_of_status(status);
}

enum problem problems_of_library(unsigned status)
{
    return status == 413                    ? PROBLEM_BODY
           : status == 414 || status == 431 ? PROBLEM_HEADER
           : status >= 500 && status != 505 ? PROBLEM_NO_MEMORY
                                            : PROBLEM_BAD_REQUEST;
}
