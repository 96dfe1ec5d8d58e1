/* limits.h: the limits of a request, checked on its plan before anything runs. */
#ifndef SERVICE_LIMITS_H
#define SERVICE_LIMITS_H

#include "service/call.h"

/* The cost of a computation, for the limits. */
struct weight {
    size_t answer_bytes;
    double run_bytes, time_flops;
    const char *largest; /* the largest part of the answer, by its name in options.return */
    bool largest_is_map; /* so options.heads, queries and keys can select a part of it */
};

/*
 * Compares the weight with call->in.limits, and charges it to the quota of the API key. Sets call->flops, and clears
 * may_defer of the answer when it is small. ATTN_ERR_TOO_LARGE names the limit and a smaller request. CALL_QUOTA: the
 * quota is used up.
 */
ATTN_MUST_CHECK attn_status limits_check(struct call *call, const struct weight *weight);
/*
 * Charges the request's key for more work. Other requests see the charge at once. ATTN_ERR_VALUE with CALL_QUOTA: other
 * requests have used up the quota.
 */
ATTN_MUST_CHECK attn_status limits_spend(struct call *call, const struct keys_cost *more);
/*
 * The status to return after a failure. ATTN_ERR_NO_MEMORY becomes ATTN_ERR_TOO_LARGE when the arena's own limit
 * refused the memory, because such a request fails again however much memory the server has.
 */
attn_status limits_explain(struct call *call, attn_status status);

#endif
