/*
 * attend.h: POST /v1/attention and POST /v1/multi-head-attention: decode, plan, weigh, compute, write.
 */
#ifndef SERVICE_ATTEND_H
#define SERVICE_ATTEND_H

#include "attn/multihead.h"
#include "codec/request/envelope.h"
#include "codec/request/kept_layer.h"
#include "service/call.h"

/* See envelope.h, plan.h and multihead.h for failures; ATTN_ERR_TOO_LARGE names the limit and what to ask instead. */
service_function attend_attention, attend_layer;

/* The same over a kept layer, which outlives the answer; *batch is how many sequences it was. */
ATTN_MUST_CHECK attn_status attend_kept(struct call *call, const struct kept_layer *layer, size_t *batch);

/* A decoded request and what became of it. */
struct attend_work {
    struct envelope envelope;
    attn_plan plan, shown; /* what is computed; what is shown of it (reduce.h) */
    attn_result result;    /* reduced as shown */
};

/* The middle of every service that computes, in two halves. First: plans work->envelope. */
ATTN_MUST_CHECK attn_status attend_plan(struct call *call, struct attend_work *work);
/* Then: checks the limits, knowing how large the answer may become, and runs. since_ms: when decoding began. */
ATTN_MUST_CHECK attn_status attend_run(struct call *call, struct attend_work *work, size_t answer_bytes,
                                       double since_ms);

/* What limits look at, of any computation. */
struct attend_weight {
    size_t answer_bytes;
    double run_bytes, time_flops;
    const char *largest; /* what takes the most of the answer, by its name in options.return */
    bool largest_is_map; /* so that some of it can be selected */
};
/*
 * The request owes its key so much more from now on; other requests that run at once see it. ATTN_ERR_VALUE with
 * CALL_QUOTA: they have used the quota up.
 */
ATTN_MUST_CHECK attn_status attend_spend(struct call *call, const struct keys_cost *more);
/* Also whether the key's quota has room, from which it is then taken. */
ATTN_MUST_CHECK attn_status attend_check_limits(struct call *call, const struct attend_weight *weight);
/* As many labels as positions. */
ATTN_MUST_CHECK attn_status attend_check_tokens(struct call *call, const struct envelope *envelope,
                                                const attn_dims *dims);
/* After a failure: one for which the request's own ceiling is to blame says so. Returns the status to give on. */
attn_status attend_explain(struct call *call, attn_status status);

#endif
