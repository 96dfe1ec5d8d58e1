/*
 * limits.h: what a request may take, decided on its plan before anything runs.
 */
#ifndef SERVICE_LIMITS_H
#define SERVICE_LIMITS_H

#include "service/call.h"

/* What the limits look at, of any computation. */
struct weight {
    size_t answer_bytes;
    double run_bytes, time_flops;
    const char *largest; /* the largest part of the answer, by its name in options.return */
    bool largest_is_map; /* so options.heads, queries and keys can select some of it */
};

/*
 * Compares the weight with call->in.limits, and with the quota of the API key, from which it is then taken.
 * ATTN_ERR_TOO_LARGE names the limit and what to ask instead; CALL_QUOTA.
 */
ATTN_MUST_CHECK attn_status limits_check(struct call *call, const struct weight *weight);
/*
 * The request owes its key so much more from now on; other requests that run at once see it. ATTN_ERR_VALUE with
 * CALL_QUOTA: they have used the quota up.
 */
ATTN_MUST_CHECK attn_status limits_spend(struct call *call, const struct keys_cost *more);
/*
 * The status to return after a failure: ATTN_ERR_TOO_LARGE in place of ATTN_ERR_NO_MEMORY when the arena's own limit
 * refused the memory. Such a request fails again however much memory the server has.
 */
attn_status limits_explain(struct call *call, attn_status status);

#endif
