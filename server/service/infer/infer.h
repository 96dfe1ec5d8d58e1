/*
 * infer.h: the endpoints of the Open Inference Protocol (version 2): models, their metadata, and inference.
 *
 * The model "attention" always exists: it is POST /v1/attention under this protocol's names (see oip.h). Every kept
 * layer is a model under its own name. The version of a layer is the digest of its file. Replaced versions that are
 * still kept have their own digests. Every whole model (service/models) is a model of version 1.
 */
#ifndef SERVICE_INFER_INFER_H
#define SERVICE_INFER_INFER_H

#include "service/call.h"

/* Each function appends one JSON object to out. Without memory out->is_ok becomes false. */
void infer_write_live(struct chunks *out);
void infer_write_ready(bool is_ready, struct chunks *out);
void infer_write_server(struct chunks *out);

/* GET /v2/models; GET /v2/models/stats */
service_function infer_models, infer_all_statistics;
/* GET /v2/models/{model}[/versions/{version}] and, below it, /ready, /config, /stats */
service_function infer_metadata, infer_model_ready, infer_config, infer_statistics;
/* POST /v2/models/{model}[/versions/{version}]/infer */
service_function infer_run;
/* POST /v2/repository/index; POST /v2/repository/models/{model}/load and unload */
service_function infer_index, infer_load, infer_unload;

#endif
