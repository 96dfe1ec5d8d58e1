/*
 * store.h: the table of layers in memory, by name. One lock guards it, and is held for moments only.
 *
 * A version does not change after it was made. A request that computes with a version holds a reference, so it keeps
 * the version with which it began. Releasing the last reference frees the bytes. A name keeps some replaced versions,
 * which requests find by their digest.
 */
#ifndef SERVICE_REGISTRY_STORE_H
#define SERVICE_REGISTRY_STORE_H

#include "service/registry/layer/version.h"

enum { LAYER_OLDER_MAX = 16, LAYER_REASON_MAX = 240 };

/* Counts and times of the requests to a layer. */
struct layer_statistics {
    uint64_t successes, failures, items; /* items: sequences in all batches */
    double success_ms, failure_ms, queue_ms, parse_ms, compute_ms, write_ms;
    int64_t last_ms; /* milliseconds since 1970 */
};

void layer_statistics_add(struct layer_statistics *to, const struct layer_statistics *more);

/* A layer, or a whole model, that had requests. */
struct layer_use {
    char name[LAYER_NAME_MAX + 1];
    struct layer_statistics statistics;
};

enum layer_state {
    LAYER_ABSENT,
    LAYER_READY,
    LAYER_UNREAD,   /* its file has not been read */
    LAYER_BROKEN,   /* its file cannot run as a layer, and there is no earlier version */
    LAYER_UNLOADED, /* a request has unloaded it */
};

/* A layer as it is now. */
struct layer_row {
    char name[LAYER_NAME_MAX + 1];
    enum layer_state state;
    bool is_fixed;                 /* from the version, also while the layer is unloaded */
    char reason[LAYER_REASON_MAX]; /* why the layer is broken, or why the newest file is not served */
    struct layer_identity seen;    /* the file from which the state was read */
    struct layer_version *version; /* a reference that the caller owns; NULL unless the state is ready */
    struct layer_statistics statistics;
};

struct layer_store;

/* older is the number of replaced versions that a name keeps, at most LAYER_OLDER_MAX. */
struct layer_store *layer_store_create(size_t max_count, size_t max_bytes, size_t older);
void layer_store_destroy(struct layer_store *store);

/* Fills in *row with the layer of that name. A name without a layer gives LAYER_ABSENT. */
void layer_store_look(struct layer_store *store, const char *name, struct layer_row *row);
/* Returns a reference to the replaced version of that digest. NULL: there is none. */
struct layer_version *layer_store_older(struct layer_store *store, const char *name, const char *digest);
/* Fills in the known digests of the versions of a name, newest first. Returns how many. */
size_t layer_store_digests(struct layer_store *store, const char *name, char digests[][DIGEST_TEXT], size_t max);
/*
 * Fills in up to limit layers in the order of their names, starting after the name after; "": from the first. Returns
 * how many.
 */
size_t layer_store_page(struct layer_store *store, const char *after, size_t limit, struct layer_row *rows);
/* The number of layers, and the bytes of the files of their present versions. */
void layer_store_totals(struct layer_store *store, size_t *count, size_t *bytes);

/* Whether there is room for a version of that size under the name. Layers of models take none. */
bool layer_store_has_room(struct layer_store *store, const char *name, size_t bytes);
/*
 * Takes over the reference. The version that it replaces is kept as an older one, unless it is a model's. False without
 * memory.
 */
ATTN_MUST_CHECK bool layer_store_install(struct layer_store *store, struct layer_version *version);
/* Notes a file that was not read yet (reason NULL), or that cannot be read. The present version is still served. */
ATTN_MUST_CHECK bool layer_store_note(struct layer_store *store, const char *name, const struct layer_identity *seen,
                                      const char *reason);
/*
 * Drops the versions that are overwritten, and those that are mapped from that file, if the file changed since they were
 * made. The numbers of a file change when it is written to in place, and a truncated file lacks pages.
 */
void layer_store_forget(struct layer_store *store, const char *name, const struct layer_identity *file);
void layer_store_remove(struct layer_store *store, const char *name);
/* The same if the layer belongs to that model. */
void layer_store_remove_fixed(struct layer_store *store, const char *name, const void *owner);
/* Returns false when there is no such layer. */
bool layer_store_set_loaded(struct layer_store *store, const char *name, bool is_loaded);
/* Adds to the statistics of the layer. name NULL: the built-in model. */
void layer_store_count(struct layer_store *store, const char *name, const struct layer_statistics *more);
/* Fills in up to limit layers that had requests, in the order of their names. Returns how many. */
size_t layer_store_used(struct layer_store *store, size_t limit, struct layer_use *uses);
void layer_store_built_in(struct layer_store *store, struct layer_statistics *statistics);

#endif
