/* endpoints.h: the services that the table of routes (http/routes.c) names, and what the server says about itself. */
#ifndef SERVICE_ENDPOINTS_H
#define SERVICE_ENDPOINTS_H

#include "service/call.h"

/*
 * POST /v1/attention, /v1/multi-head-attention, and /v1/layers/{name}/attention, which computes with the weights of a
 * kept layer, if the request's conditions hold for it. envelope.h, plan.h and multihead.h list the failures.
 */
service_function attend_attention, attend_layer, attend_kept;
/* POST …/gradients of the same three, with the weights of the layer included. gradient.h lists the failures. */
service_function gradients_attention, gradients_layer, gradients_kept;
/* POST /v1/models/{name}/attention. Failures are those of model_request_decode, of the batch and of the job. */
service_function attend_model;
/* POST /v1/models/{name}/gradients: of a metric. Failures are those, and those of gradient.h. */
service_function gradients_model;
/* POST /v1/models/{name}/tokens: texts to tokens, or ids to texts. */
service_function model_tokens_read;

/*
 * PUT, GET and DELETE /v1/layers/{name}; GET /v1/layers?after=&limit=. The entity tag of a layer's file is its SHA-256;
 * the tag of its facts begins with that digest. If-Match holds for all methods. If-None-Match is checked here for PUT
 * and DELETE; for GET, the sender of the answer checks it.
 */
service_function layers_put, layers_get, layers_remove, layers_list;
/* GET /v1/models, GET /v1/models/{name} */
service_function model_list_all, model_list_one;
/* GET /v1/caches; GET and DELETE /v1/caches/{name} */
service_function caches_list, caches_get, caches_remove;

/*
 * The Open Inference Protocol (version 2). The model "attention" always exists: it is POST /v1/attention under this
 * protocol's names (oip.h). Every kept layer is a model under its own name. The version of a layer is the digest of its
 * file. Replaced versions that are still kept have their own digests. Every whole model is a model of version 1.
 *
 * GET /v2/models; GET /v2/models/stats
 */
service_function infer_models, infer_all_statistics;
/* GET /v2/models/{model}[/versions/{version}] and, below it, /ready, /config, /stats */
service_function infer_metadata, infer_model_ready, infer_config, infer_statistics;
/* POST /v2/models/{model}[/versions/{version}]/infer */
service_function infer_run;
/* POST /v2/repository/index; POST /v2/repository/models/{model}/load and unload */
service_function infer_index, infer_load, infer_unload;
/* ---- answers about the server: each function appends one JSON object to out. Without memory out->is_ok becomes false ---- */

/* GET /v2/health/ready, GET /v2 */
void infer_write_ready(bool is_ready, struct chunks *out);
void infer_write_server(struct chunks *out);

/* ---- health.c: /livez, /readyz, /version and / ---- */

/* The libraries and threads of this process. The texts are borrowed and must outlive the server. */
struct health_facts {
    const char *http_library; /* "libmicrohttpd 0.9.75" */
    const char *kernel;
    size_t io_threads, compute_threads;
};

void health_write_live(struct chunks *out);
/* Reasons why the server is not ready for new requests, as a set of bits. 0: it is ready. */
enum {
    HEALTH_STARTING = 1,   /* the self-test has not passed yet */
    HEALTH_DRAINING = 2,   /* the process was asked to end */
    HEALTH_QUEUE_FULL = 4, /* one more request would be refused */
    HEALTH_MEMORY = 8,     /* nearly all memory for requests is taken */
    HEALTH_USELESS = 16    /* models or layers were deployed, and none can be used */
};
void health_write_ready(unsigned reasons, struct chunks *out);
void health_write_version(const struct health_facts *facts, struct chunks *out);
/* Writes name, version, and links to the endpoints. */
void health_write_index(struct chunks *out);

#endif
