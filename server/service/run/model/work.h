/*
 * work.h: plans, weighs and runs a decoded request to a whole model. Every service that runs models shares these
 * steps.
 */
#ifndef SERVICE_RUN_MODEL_WORK_H
#define SERVICE_RUN_MODEL_WORK_H

#include "service/call.h"
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
 * Call these in this order. model_work_plan makes the batch and adds the outputs to work->answer; is_binary: the answer
 * has tensors as bytes. model_work_weigh compares the run and the answer with the limits. batch.h, job.h and
 * limits.h list the failures.
 */
ATTN_MUST_CHECK attn_status model_work_plan(struct model_work *work, bool is_binary);
ATTN_MUST_CHECK attn_status model_work_weigh(struct model_work *work, size_t answer_bytes);
ATTN_MUST_CHECK attn_status model_work_run(struct model_work *work);

#endif
