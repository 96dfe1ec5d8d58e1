/*
 * infer.h: the Open Inference Protocol (version 2): models, their metadata, and inference.
 *
 * The one model that is always there is "attention": POST /v1/attention under this protocol's names (see oip.h).
 */
#ifndef SERVICE_INFER_H
#define SERVICE_INFER_H

#include "service/call.h"

/* POST /v2/models/{model}/infer and /v2/models/{model}/versions/{version}/infer */
service_function infer_run;

/* Each appends one JSON object (models: too) to out; without memory out->is_ok becomes false. */
void infer_write_live(struct chunks *out);
void infer_write_ready(bool is_ready, struct chunks *out);
void infer_write_server(struct chunks *out);
void infer_write_models(struct chunks *out);

/* Whether there is such a model, and version (a span at NULL: any). */
bool infer_has_model(struct text_span model, struct text_span version);
void infer_write_metadata(struct text_span model, struct chunks *out);
void infer_write_model_ready(struct text_span model, struct chunks *out);
void infer_write_config(struct text_span model, struct chunks *out);

/* POST /v2/repository/index */
service_function infer_index;

#endif
