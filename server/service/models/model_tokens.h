/*
 * model_tokens.h: the endpoint that tokenizes: POST /v1/models/{name}/tokens, texts to tokens, or ids to texts.
 */
#ifndef SERVICE_MODELS_MODEL_TOKENS_H
#define SERVICE_MODELS_MODEL_TOKENS_H

#include "service/call.h"

service_function model_tokens_read;

#endif
