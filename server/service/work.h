/*
 * work.h: a decoded request and what becomes of it: the middle of every service that computes attention.
 */
#ifndef SERVICE_WORK_H
#define SERVICE_WORK_H

#include "attn/multihead.h"
#include "codec/request/envelope.h"
#include "service/call.h"

/* envelope.request.options.want has the steps that are computed; a cache needs some that the answer does not show. */
struct work {
    struct envelope envelope;
    uint32_t shown_steps; /* of the computed steps, those that the answer shows: a bit 1 << attn_step for each */
    attn_plan plan;       /* of what is computed */
    attn_plan shown;      /* of what the answer shows (reduce.h) */
    attn_result result;   /* as the answer shows it */
};

/*
 * In this order, after the envelope is decoded and shown_steps is set. Plans both; checks the limits, once it is known
 * how large the answer may become; runs. See plan.h, limits.h and multihead.h for failures.
 */
ATTN_MUST_CHECK attn_status work_plan(struct call *call, struct work *work);
ATTN_MUST_CHECK attn_status work_weigh(struct call *call, const struct work *work, size_t answer_bytes);
ATTN_MUST_CHECK attn_status work_run(struct call *call, struct work *work);

/* Whether there are as many labels as positions. */
ATTN_MUST_CHECK attn_status work_check_labels(struct call *call, const struct envelope *envelope,
                                              const attn_dims *dims);

#endif
