/* version.h: one version of a model: its mapped files, its description, and the slots of its prepared weights. */
#ifndef SERVICE_REGISTRY_MODEL_VERSION_H
#define SERVICE_REGISTRY_MODEL_VERSION_H

#include <stdatomic.h>

#include "codec/checkpoint/description.h"
#include "codec/tokenizer/encoding.h"
#include "service/registry/model/files.h"
#include "service/registry/prepared.h"
#include "service/registry/store.h"

enum { MODEL_NAME_MAX = 64 };

struct model_version {
    struct version common;
    struct model_files files;
    bool is_runnable; /* false: model is empty, and there are only layers */
    struct checkpoint_model model;
    struct model_pooling pooling;     /* of sentence-transformers */
    struct model_alignment alignment; /* of a model of audio */
    struct checkpoint_layers layers;  /* its attention modules */
    struct prepared_slot *slots;      /* of blocks, by model_block.slot */
    struct prepared_slot head_slot;
    atomic_bool is_told;                        /* the log has what its preparation took */
    const struct tokenizer *tokenizer;          /* in the files' arena; NULL: there is none, or it cannot be used */
    const struct tokenizer *target_tokenizer;   /* of targets; NULL: tokenizer */
    bool lacks_target;                          /* neither cuts targets: the folder has no target.spm */
    char tokenizer_reason[REGISTRY_REASON_MAX]; /* why the tokenizer cannot be used; "": there is no such reason */
    size_t tokenizer_bytes;                     /* of memory */
};

/* That of the texts of a stack. */
static inline const struct tokenizer *model_version_tokenizer(const struct model_version *version, size_t stack)
{
    return stack == 1 && version->target_tokenizer != NULL ? version->target_tokenizer : version->tokenizer;
}

/*
 * Takes over the files and describes the model in them. The caller owns the only reference. On a failure,
 * *version is NULL, or has the layers of a model that cannot run; failures are those of checkpoint_read_model. A
 * tokenizer that cannot be used is no failure, except with ATTN_ERR_NO_MEMORY, after which *version is NULL.
 */
ATTN_MUST_CHECK attn_status model_version_create(const char *name, struct model_files *files,
                                                 struct model_version **version, attn_error *err);
/* The model that the version is of. NULL: the version is of another kind, or NULL. */
static inline struct model_version *model_version_of(struct version *version)
{
    return version != NULL && version->of->kind == KIND_MODEL ? (struct model_version *)version : NULL;
}
/* version may be NULL. */
static inline void model_version_release(struct model_version *version)
{
    version_release((struct version *)version);
}

/*
 * Keeps the attention modules of the version as layers, NAME.PATH, that requests cannot change, also in place
 * of files of the directory that have their names. A layer's tensors are views of the model's files, so it holds a
 * reference to the version. Returns how many modules cannot be layers.
 */
size_t model_modules_keep(struct registry *registry, struct model_version *version);
/* Keeps them no longer, except those whose names another version has taken. */
void model_modules_drop(struct registry *registry, const struct model_version *version);

#endif
