/*
 * demo_model.h: the model that is part of the program, so that a first start without any setting has one.
 */
#ifndef SERVICE_MODELS_DEMO_MODEL_H
#define SERVICE_MODELS_DEMO_MODEL_H

#include "service/models/model_files.h"

#define DEMO_MODEL_NAME "demo"

/* Opens its files, which are in the program. As model_files_open. */
ATTN_MUST_CHECK attn_status demo_model_open(struct model_files *files, attn_budget *budget, attn_error *err);

#endif
