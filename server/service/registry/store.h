/*
 * store.h: the registry: all named things in memory, kept layers and whole models, by kind and name. One lock guards it,
 * and is held for moments only. A name has a present version, a state, and statistics. A layer keeps some replaced
 * versions, which requests find by their digest.
 */
#ifndef SERVICE_REGISTRY_STORE_H
#define SERVICE_REGISTRY_STORE_H

#include "service/registry/version.h"

enum { REGISTRY_OLDER_MAX = 16, REGISTRY_REASON_MAX = 640 };

/* Counts and times of the requests to a name. */
struct registry_statistics {
    uint64_t successes, failures, items; /* items: sequences in all batches */
    double success_ms, failure_ms, queue_ms, parse_ms, compute_ms, write_ms;
    int64_t last_ms; /* milliseconds since 1970 */
};

/* A layer, or a whole model, that had requests. */
struct registry_use {
    char name[LAYER_NAME_MAX + 1];
    struct registry_statistics statistics;
};

enum registry_state {
    REGISTRY_ABSENT,
    REGISTRY_READY,
    REGISTRY_UNREAD,   /* its files have not been read; those of a model are being read */
    REGISTRY_BROKEN,   /* its files cannot be used, and there is no earlier version */
    REGISTRY_UNLOADED, /* a request has unloaded it */
};
enum { REGISTRY_STATES = REGISTRY_UNLOADED + 1 };

struct layer_version;
struct model_version;

/* A name as it is now. */
struct registry_row {
    thing_kind kind;
    char name[LAYER_NAME_MAX + 1];
    enum registry_state state;
    bool is_fixed;                    /* from the version, also while the layer is unloaded */
    char reason[REGISTRY_REASON_MAX]; /* why it is broken, or why the newest files are not served; "": all is well */
    struct file_identity seen;        /* the file from which the state was read */
    union {                           /* a reference that the caller owns; NULL unless the state is ready */
        struct version *version;
        struct layer_version *layer;
        struct model_version *model;
    };
    struct registry_statistics statistics;
};

struct registry;

/* older is the number of replaced versions that a name keeps, at most REGISTRY_OLDER_MAX. */
struct registry *registry_create(size_t max_count, size_t max_bytes, size_t older);
void registry_destroy(struct registry *store);

/*
 * Layers change one at a time, on the disk and in the registry together: whoever installs or removes one calls these
 * around it. Requests that only look never wait for a change. Models are changed by the thread that reads them alone.
 */
void registry_begin_change(struct registry *store);
void registry_end_change(struct registry *store);

/* Fills in *row with the thing of that name. A name without any gives REGISTRY_ABSENT. */
void registry_look(struct registry *store, thing_kind kind, const char *name, struct registry_row *row);
/* Returns a reference to the replaced version of that digest. NULL: there is none. */
struct version *registry_older(struct registry *store, const char *name, const char *digest);
/* Fills in the known digests of the versions of a name, newest first. Returns how many. */
size_t registry_digests(struct registry *store, const char *name, char digests[][DIGEST_TEXT], size_t max);
/*
 * Fills in up to limit rows in the order of their names, starting after the name after; "": from the first. Returns
 * how many.
 */
size_t registry_page(struct registry *store, thing_kind kind, const char *after, size_t limit,
                     struct registry_row *rows);
/* How many names of the kind there are, and the bytes of the files of all present versions; those of models are not counted. */
void registry_totals(struct registry *store, thing_kind kind, size_t *count, size_t *bytes);

/* What layers take of their limits, and the limits. Layers of models take nothing: they stand on both sides of the count. */
struct registry_room {
    size_t count, count_limit, bytes, bytes_limit;
};
struct registry_room registry_room(struct registry *store);

/* How many things of the kind are in each state. */
void registry_states(struct registry *store, thing_kind kind, size_t counts[REGISTRY_STATES]);

/*
 * Whether something was deployed and none of it can be used: models, and with_layers kept layers too. The program's own
 * model, and the layers of models, do not count. A layer whose file was not read yet counts as one that can be used.
 */
bool registry_is_useless(struct registry *store, bool with_layers);

/* Whether there is room for a version of that size under the name. Layers of models take none. */
bool registry_has_room(struct registry *store, const char *name, size_t bytes);
/*
 * Takes over the reference. The version that it replaces is kept as an older one, unless it is a model's. False without
 * memory.
 */
ATTN_MUST_CHECK bool registry_install(struct registry *store, struct version *version);
/* Notes a file that was not read yet (reason NULL), or that cannot be read. The present version is still served. */
ATTN_MUST_CHECK bool registry_note(struct registry *store, thing_kind kind, const char *name,
                                   const struct file_identity *seen, const char *reason);
/*
 * Drops the versions that are overwritten, and those that are mapped from that file, if the file changed since they were
 * made. The numbers of a file change when it is written to in place, and a truncated file lacks pages.
 */
void registry_forget(struct registry *store, thing_kind kind, const char *name, const struct file_identity *file);
void registry_remove(struct registry *store, thing_kind kind, const char *name);
/* The same if the layer belongs to that model. */
void registry_remove_fixed(struct registry *store, const char *name, const struct version *owner);
/* Returns false when there is no such layer. */
bool registry_set_loaded(struct registry *store, const char *name, bool is_loaded);
/* Adds to the statistics of the name. NULL: the built-in model. */
void registry_count(struct registry *store, thing_kind kind, const char *name, const struct registry_statistics *more);
/* Fills in up to limit layers, then models, that had requests, in the order of their names. Returns how many. */
size_t registry_used(struct registry *store, size_t limit, struct registry_use *uses);
void registry_built_in(struct registry *store, struct registry_statistics *statistics);

#endif
