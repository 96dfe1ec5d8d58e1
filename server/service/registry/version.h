/*
 * version.h: what the versions of all kinds of things have in common. It is the first member of each.
 *
 * A version does not change after it was made. A request that computes with a version holds a reference, so it keeps
 * the version with which it began. Releasing the last reference ends it.
 *
 * Files are mapped, and another program may write to one in place. Then numbers change, and what was read meanwhile may
 * be of two files. So a request asks version_confirm after it has read the version for the last time.
 */
#ifndef SERVICE_REGISTRY_VERSION_H
#define SERVICE_REGISTRY_VERSION_H

#include <stdatomic.h>

#include "service/call.h"
#include "service/registry/files.h"

/* The models that the program holds, of examples/train_NAME/model. The first one is served with --no-models, too. */
#define OWN_MODELS(X) X(demo) X(small)
/* Their names, counted from 0. NULL: there are no more. */
const char *own_model_name(size_t number);
bool is_own_model(struct text_span name);

typedef enum { KIND_LAYER, KIND_MODEL, KIND_COUNT } thing_kind;

/* What versions of one kind do. */
struct version_kind {
    thing_kind kind;
    void (*destroy)(struct version *self); /* called once, when nobody refers to it */
    bool (*look)(struct version *self);    /* whether a file was written to in place, or could not be read */
    /* Writes the name that clients of the Open Inference Protocol know it by; "": that is not known yet. Returns text. */
    const char *(*known_name)(struct version *self, char text[DIGEST_TEXT]);
};

struct version {
    const struct version_kind *of;
    atomic_size_t references;
    atomic_bool is_overwritten; /* a file was written to in place; seen once, it stays so when another takes the name */
    char name[LAYER_NAME_MAX + 1];
    bool is_fixed;         /* it belongs to a model, so requests cannot change it */
    struct version *owner; /* a reference to that model, in whose files it lies; NULL: it has files of its own */
    size_t file_bytes, kept_bytes; /* of its file; those that count against --layers-bytes */
    struct file_identity identity; /* of its file; all zero: it has none, or several */
};

/* Fills in a version with one reference. All that is not given here is zero. */
void version_init(struct version *version, const struct version_kind *of, const char *name);
/* From now on it is fixed, and counts against no limit. */
void version_fix(struct version *version);
/* version may be NULL. */
struct version *version_keep(struct version *version);
void version_release(struct version *version);

/* Whether what was read from the version may be of two files. One fstatat for each file. */
bool version_is_overwritten(struct version *version);
/*
 * Returns the outcome of a request that read call->version (NULL: it read none), or refuses, because a file was written
 * to meanwhile. Call it before the outcome has an effect.
 */
ATTN_MUST_CHECK attn_status version_confirm(struct call *call, attn_status status);
/* Refuses for that reason. */
attn_status version_refuse_overwritten(struct call *call, thing_kind kind, const char *name);

#endif
