/*
 * store.h: which layers there are, by name, in memory: one lock, and nothing slow under it.
 *
 * A version is read only once it is made. Whoever computes with one holds a reference, so that a request keeps the
 * version that it began with; the last one to let go of it gives its bytes back. A name keeps some versions that were
 * replaced, to be asked for by their digest.
 */
#ifndef SERVICE_LAYERS_STORE_H
#define SERVICE_LAYERS_STORE_H

#include "service/layers/version.h"

enum { LAYER_OLDER_MAX = 16, LAYER_REASON_MAX = 240 };

/* What became of the requests to a layer. */
struct layer_statistics {
    uint64_t successes, failures, items; /* items: of the batches */
    double success_ms, failure_ms, queue_ms, parse_ms, compute_ms, write_ms;
    int64_t last_ms; /* since 1970 */
};

/* A layer that was asked for something. */
struct layer_use {
    char name[LAYER_NAME_MAX + 1];
    struct layer_statistics statistics;
};

enum layer_state {
    LAYER_ABSENT,
    LAYER_READY,
    LAYER_UNREAD,   /* its file has not been looked into */
    LAYER_BROKEN,   /* its file is none that could run, and no earlier version is there */
    LAYER_UNLOADED, /* somebody asked for it not to be served */
};

/* A layer as it is now. */
struct layer_row {
    char name[LAYER_NAME_MAX + 1];
    enum layer_state state;
    bool is_fixed;                 /* as that of the version, also while it is unloaded */
    char reason[LAYER_REASON_MAX]; /* why it is broken, or why the newest file is not the one that is served */
    struct layer_identity seen;    /* the file that state is about */
    struct layer_version *version; /* a reference that is the caller's; NULL unless ready */
    struct layer_statistics statistics;
};

struct layer_store;

/* older: how many replaced versions a name keeps, at most LAYER_OLDER_MAX. */
struct layer_store *layer_store_create(size_t max_count, size_t max_bytes, size_t older);
void layer_store_destroy(struct layer_store *store);

/* What there is under the name; also when it is absent, *row is filled in. */
void layer_store_look(struct layer_store *store, const char *name, struct layer_row *row);
/* The replaced version of that digest, with a reference; NULL: there is none. */
struct layer_version *layer_store_older(struct layer_store *store, const char *name, const char *digest);
/* Digests of the versions of a name, newest first, as far as they are known. */
size_t layer_store_digests(struct layer_store *store, const char *name, char digests[][DIGEST_TEXT], size_t max);
/* Up to limit layers in the order of their names, behind after ("" : from the first); how many. */
size_t layer_store_page(struct layer_store *store, const char *after, size_t limit, struct layer_row *rows);
/* Layers, and the bytes of the files of their present versions. */
void layer_store_totals(struct layer_store *store, size_t *count, size_t *bytes);

/* Whether a version of so many bytes has room under the name. */
bool layer_store_has_room(struct layer_store *store, const char *name, size_t bytes);
/* Takes the reference over; the version that it replaces is kept as an older one. False without memory. */
ATTN_MUST_CHECK bool layer_store_install(struct layer_store *store, struct layer_version *version);
/* Notes a file that is not read yet (reason NULL) or cannot be; the version that is there goes on being served. */
ATTN_MUST_CHECK bool layer_store_note(struct layer_store *store, const char *name, const struct layer_identity *seen,
                                      const char *reason);
/*
 * Lets go of versions that are mapped from that very file, when it is not as it was: it was written to in its place,
 * and what they show is not what they were made of; of one that was cut short, pages are missing.
 */
void layer_store_forget(struct layer_store *store, const char *name, const struct layer_identity *file);
void layer_store_remove(struct layer_store *store, const char *name);
/* False: there is no such layer. */
bool layer_store_set_loaded(struct layer_store *store, const char *name, bool is_loaded);
/* Adds what a request came to; name NULL: to the model that is built in. */
void layer_store_count(struct layer_store *store, const char *name, const struct layer_statistics *more);
/* Up to limit layers that were asked for something, in the order of their names; how many. */
size_t layer_store_used(struct layer_store *store, size_t limit, struct layer_use *uses);
void layer_store_built_in(struct layer_store *store, struct layer_statistics *statistics);

#endif
