/*
 * version.h: what the versions of all kinds of things have in common. It is the first member of each.
 *
 * A version does not change after it was made. A request that computes with a version holds a reference, so it keeps
 * the version with which it began. Releasing the last reference ends it.
 */
#ifndef SERVICE_REGISTRY_VERSION_H
#define SERVICE_REGISTRY_VERSION_H

#include <stdatomic.h>

#include "service/registry/files.h"

typedef enum { KIND_LAYER, KIND_MODEL, KIND_COUNT } thing_kind;

struct version {
    atomic_size_t references;
    atomic_bool is_overwritten; /* a file was written to in place; seen once, it stays so when another takes the name */
    thing_kind kind;
    char name[LAYER_NAME_MAX + 1];
    bool is_fixed;                         /* it belongs to a model, so requests cannot change it */
    size_t file_bytes, kept_bytes;         /* of its file; those that count against --layers-bytes */
    struct file_identity identity;         /* of its file; all zero: it has none, or several */
    void (*destroy)(struct version *self); /* called once, when nobody refers to it */
};

/* Fills in a version with one reference. All that is not given here is zero. */
void version_init(struct version *version, thing_kind kind, const char *name, void (*destroy)(struct version *self));
/* From now on it is fixed, and counts against no limit. */
void version_fix(struct version *version);
/* version may be NULL. */
struct version *version_keep(struct version *version);
void version_release(struct version *version);

#endif
