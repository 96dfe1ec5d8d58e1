/*
 * model_list.h: the endpoints that describe models: GET /v1/models, GET /v1/models/{name}.
 */
#ifndef SERVICE_MODELS_MODEL_LIST_H
#define SERVICE_MODELS_MODEL_LIST_H

#include "service/call.h"

service_function model_list_all, model_list_one;

#endif
