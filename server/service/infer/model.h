/*
 * model.h: a model of the Open Inference Protocol: the built-in "attention", a version of a kept layer, or a whole model
 * of a folder.
 */
#ifndef SERVICE_INFER_MODEL_H
#define SERVICE_INFER_MODEL_H

#include "service/call.h"
#include "service/registry/model/version.h"
#include "service/registry/store.h"

#define MODEL_BUILT_IN         "attention"
#define MODEL_BUILT_IN_VERSION "1"
/* Clients that always send version 1 mean the present version; the versions of a layer are digests. */
#define MODEL_PRESENT_VERSION "1"

struct model {
    const char *name, *version;  /* version: "" when it is a digest that is not computed yet */
    char digest[DIGEST_TEXT];    /* version may point to this */
    struct layer_version *layer; /* the call holds the reference; NULL: the built-in model, or a whole one */
    struct model_version *whole; /* a reference that model_release releases; NULL: not a whole model */
};

/*
 * Finds the model that the path names, in the version of the path or in the present one. Fails as layer_keeper_find
 * and models_find do. Whole models have version 1 alone. Release the model on success.
 */
ATTN_MUST_CHECK attn_status model_find(struct call *call, struct model *model);
void model_release(struct model *model);
/* Whether the name is that of a whole model, which may be broken. */
bool model_is_whole(const struct call *call, struct text_span name);
/* Sets model->version. For a layer, this may read the whole file. */
ATTN_MUST_CHECK attn_status model_know_version(struct call *call, struct model *model);

/*
 * Whether model_name and model_version of the body (NULL: absent) agree with the path. A model_version that differs
 * from the version in the path is compared with the digest, which is then computed.
 */
ATTN_MUST_CHECK attn_status model_check_names(struct call *call, struct model *model, const char *name,
                                              const char *version);

/* POST /v2/models/{model}/infer, where model->whole is not NULL. */
ATTN_MUST_CHECK attn_status infer_whole_run(struct call *call, struct model *model);

/* Each function appends one JSON object. */
void model_write_metadata(const struct model *model, struct registry *store, struct chunks *out);
/* The object has the form of Triton's model configuration. */
void model_write_config(const struct model *model, struct chunks *out);
/* The object has the form of Triton's statistics extension: counts, and sums of nanoseconds. */
void model_write_statistics(const char *name, const char *version, const struct registry_statistics *statistics,
                            struct chunks *out);

#endif
