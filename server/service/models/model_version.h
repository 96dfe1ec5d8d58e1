/*
 * model_version.h: one version of a model: its mapped files, its description, and the slots of its prepared weights.
 *
 * A version does not change after it was made. A request that computes with a version holds a reference, so it keeps
 * the version with which it began. Releasing the last reference unmaps the files.
 */
#ifndef SERVICE_MODELS_MODEL_VERSION_H
#define SERVICE_MODELS_MODEL_VERSION_H

#include <stdatomic.h>

#include "codec/checkpoint/checkpoint_model.h"
#include "service/layers/prepared_weights.h"
#include "service/models/model_files.h"

enum { MODEL_NAME_MAX = 64 };

struct model_version {
    atomic_size_t references;
    char name[MODEL_NAME_MAX + 1];
    struct model_files files;
    struct checkpoint_model model;
    struct prepared_slot *slots; /* of blocks, by model_block.slot */
    struct prepared_slot head_slot;
    int64_t loaded_ms; /* milliseconds since 1970 */
};

/*
 * Takes over the files and describes the model in them. The caller owns the only reference. On a failure the files are
 * closed and *version is NULL; failures are those of checkpoint_read_model.
 */
ATTN_MUST_CHECK attn_status model_version_create(const char *name, struct model_files *files,
                                                 struct model_version **version, attn_error *err);
struct model_version *model_version_keep(struct model_version *version);
void model_version_release(struct model_version *version); /* version may be NULL */

#endif
