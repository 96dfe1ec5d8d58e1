/*
 * work.h: plans, weighs and runs a decoded request to a whole model. Every service that runs models shares these
 * steps.
 */
#ifndef SERVICE_RUN_MODEL_WORK_H
#define SERVICE_RUN_MODEL_WORK_H

#include "service/limits.h"
#include "service/run/model/job.h"

/* The caller sets call, version and request. */
struct model_work {
    struct call *call;
    struct model_version *version;
    struct model_request request;
    struct model_batch batch;
    struct model_answer answer;
    struct model_job job;
};

/*
 * model_work_plan makes the batch and adds the outputs to work->answer; is_binary: the answer has tensors as bytes. Then
 * model_work_weigh gives the cost, and model_job_run runs. batch.h and job.h list the failures.
 */
ATTN_MUST_CHECK attn_status model_work_plan(struct model_work *work, bool is_binary);
struct weight model_work_weigh(const struct model_work *work, size_t answer_bytes);
/* Call this with the outcome: confirms it (registry/version.h), counts the request, and explains a failure. */
ATTN_MUST_CHECK attn_status model_work_end(struct model_work *work, attn_status status);

#endif
