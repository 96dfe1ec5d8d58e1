/*
 * model_run.h: runs a model on a batch, item by item.
 */
#ifndef SERVICE_MODELS_RUN_MODEL_RUN_H
#define SERVICE_MODELS_RUN_MODEL_RUN_H

#include "service/models/run/model_job.h"

/* Runs the model. Failures are those of attn_plan_run. */
ATTN_MUST_CHECK attn_status model_job_run(struct model_job *job);

#endif
