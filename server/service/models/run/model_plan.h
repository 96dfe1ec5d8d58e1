/*
 * model_plan.h: lays out the outputs of a model, and weighs its run.
 */
#ifndef SERVICE_MODELS_RUN_MODEL_PLAN_H
#define SERVICE_MODELS_RUN_MODEL_PLAN_H

#include "service/models/run/model_job.h"

/*
 * Chooses the layers, checks the request against the model, lays out the outputs, and computes bytes and operations. No
 * weight is read. Errors name the member of the request.
 */
ATTN_MUST_CHECK attn_status model_job_plan(struct model_job *job);

#endif
