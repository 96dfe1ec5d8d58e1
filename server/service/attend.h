/*
 * attend.h: POST /v1/attention and POST /v1/multi-head-attention: body text in, answer text out.
 */
#ifndef SERVICE_ATTEND_H
#define SERVICE_ATTEND_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "codec/chunks.h"
#include "codec/envelope.h"

/* What a request may take; decided on the plan, before anything runs. */
struct attend_limits {
    size_t result_bytes; /* of the answer's text */
    size_t memory_bytes; /* of the arena, the body included */
    double flops;
};

/* Where the time went, in milliseconds. */
struct attend_times {
    double parse_ms, compute_ms, write_ms;
};

/*
 * Decodes body, plans, checks the limits, computes and appends the answer to out. Runs in a compute thread; all memory
 * comes from out->arena. On failure out holds nothing, and *err says why (see envelope.h, plan.h, multihead.h);
 * ATTN_ERR_TOO_LARGE names the limit and what to ask instead.
 */
ATTN_MUST_CHECK attn_status attend_run(envelope_kind kind, const char *body, size_t body_bytes,
                                       const struct attend_limits *limits, const attn_runtime *runtime,
                                       struct chunks *out, struct attend_times *times, attn_error *err);

#endif
