/*
 * model.h: a model of the Open Inference Protocol: call->version, which is a version of a kept layer or of a whole model.
 * NULL: the built-in model "attention".
 */
#ifndef SERVICE_INFER_MODEL_H
#define SERVICE_INFER_MODEL_H

#include "codec/oip/oip.h"
#include "service/registry/model/version.h"
#include "service/registry/store.h"

#define MODEL_BUILT_IN "attention"
/*
 * Clients that always send version 1 mean the present version. Whole models and the built-in model have no other; the
 * versions of a layer are digests.
 */
#define MODEL_PRESENT_VERSION "1"

/*
 * Finds the model that the path names, in the version of the path or in the present one. Fails as layer_keeper_find
 * and models_find do.
 */
ATTN_MUST_CHECK attn_status model_find(struct call *call);
/* Whether the name is that of a whole model, which may be broken. */
bool model_is_whole(const struct call *call, struct text_span name);

const char *model_name(const struct call *call);
/* The version of the model. For a layer, this may read the whole file. NULL: the request was cancelled. */
const char *model_version_name(struct call *call);
/* The name of a version (NULL: of the built-in model), which may be in text. "": a digest that is not computed yet. */
const char *model_known_version(struct version *version, char text[DIGEST_TEXT]);

/*
 * Checks that model_name and model_version of the body, if given, agree with the path, and tells the call what else the
 * request says about its answer. A model_version that differs from the version in the path is compared with the digest,
 * which is then computed. ATTN_ERR_FIELD: the answer is a stream of events, and an output is binary.
 */
ATTN_MUST_CHECK attn_status model_accept(struct call *call, const struct oip_request *request);
/* Writes the outputs of the request, under the version. */
void model_answer(struct call *call, const struct oip_request *request, const char *version,
                  const struct oip_sent *sent);

/* POST /v2/models/{model}/infer of a whole model. */
ATTN_MUST_CHECK attn_status infer_whole_run(struct call *call);

/* Each function appends one JSON object. */
void model_write_metadata(const struct call *call, const char *version);
/* The object has the form of Triton's model configuration. */
void model_write_config(const struct call *call);
/* The object has the form of Triton's statistics extension: counts, and sums of nanoseconds. */
void model_write_statistics(const char *name, const char *version, const struct registry_statistics *statistics,
                            struct chunks *out);

#endif
