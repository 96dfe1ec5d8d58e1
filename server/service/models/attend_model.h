/*
 * attend_model.h: POST /v1/models/{m}/attention: tokens, plan, weigh, run, write.
 */
#ifndef SERVICE_MODELS_ATTEND_MODEL_H
#define SERVICE_MODELS_ATTEND_MODEL_H

#include "service/call.h"

/* Failures are those of model_request_decode, of the batch and of the job. */
service_function attend_model;

#endif
