/*
 * model.h: what the Open Inference Protocol calls a model: the built-in "attention", or a version of a kept layer.
 */
#ifndef SERVICE_INFER_MODEL_H
#define SERVICE_INFER_MODEL_H

#include "service/call.h"
#include "service/layers/store.h"

#define MODEL_BUILT_IN         "attention"
#define MODEL_BUILT_IN_VERSION "1"
/* Clients with a fixed version number mean the present one; a layer's own versions are digests. */
#define MODEL_PRESENT_VERSION "1"

struct model {
    const char *name, *version;  /* version: "" when it is a digest that was not computed yet */
    char digest[DIGEST_TEXT];    /* that version may point to */
    struct layer_version *layer; /* held by the call; NULL: the built-in one */
    struct envelope_source base; /* of the layer */
};

/* The model that the path names, with its version or the present one. Fails as layer_keeper_find does. */
ATTN_MUST_CHECK attn_status model_find(struct call *call, struct model *model);
/* Afterwards version is known: for a layer, all of its file may have to be read. */
ATTN_MUST_CHECK attn_status model_know_version(struct call *call, struct model *model);

/*
 * Whether model_name and model_version, as the body of a request has them (NULL: not at all), agree with the path. A
 * model_version that the path does not have makes the version of the model known.
 */
ATTN_MUST_CHECK attn_status model_check_names(struct call *call, struct model *model, const char *name,
                                              const char *version);

/* Each appends one JSON object. */
void model_write_metadata(const struct model *model, struct layer_store *store, struct chunks *out);
/* As in Triton's model configuration. */
void model_write_config(const struct model *model, struct chunks *out);
/* As in Triton's statistics extension: counts, and nanoseconds in all. */
void model_write_statistics(const char *name, const char *version, const struct layer_statistics *statistics,
                            struct chunks *out);

#endif
