/*
 * keeper.h: finds, puts, removes, loads and unloads kept layers for requests, in memory or in a directory (directory.h).
 */
#ifndef SERVICE_REGISTRY_LAYER_KEEPER_H
#define SERVICE_REGISTRY_LAYER_KEEPER_H

#include "base/log.h"
#include "service/call.h"
#include "service/registry/layer/version.h"
#include "service/registry/store.h"

struct layer_settings {
    const char *directory; /* NULL: layers are only in memory */
    bool is_read_only;
    bool verifies_at_start; /* each file is read before serving, not at the first request */
    unsigned look_ms;       /* a thread scans the directory that often; 0: no thread does */
    size_t max_count, max_bytes;
    size_t older;          /* how many replaced versions a name keeps */
    size_t prepared_bytes; /* the memory for prepared weights (registry/prepared.h) */
};

struct layer_keeper;

/*
 * Opens the directory. NULL: message says what is wrong. Files that are not layers are logged and ignored. settings are
 * copied.
 */
struct layer_keeper *layer_keeper_open(const struct layer_settings *settings, const struct log *log, char *message,
                                       size_t size);
/* Call this when no request is being served. keeper may be NULL. */
void layer_keeper_close(struct layer_keeper *keeper);

bool layer_keeper_is_durable(const struct layer_keeper *keeper);
struct registry *layer_keeper_registry(struct layer_keeper *keeper);
/* Whether all models, and all layers that clients cannot replace, are broken: see registry_is_useless. */
bool layer_keeper_is_useless(struct layer_keeper *keeper);
struct prepared_store *layer_keeper_prepared(struct layer_keeper *keeper);

/* The functions below fail as services do: they return ATTN_ERR_… and fill in call->refusal and *call->err. */

/* Finds the layer and reads it if it was not read yet: call->version. */
ATTN_MUST_CHECK attn_status layer_keeper_find(struct layer_keeper *keeper, struct text_span name, struct call *call);
/*
 * Keeps content under the name if call's conditions (If-Match, If-None-Match) hold for the present version at that
 * moment: call->version, and call->outcome, which tells whether there was a layer of that name. With a directory, ATTN_OK
 * means that the file is synchronised.
 */
ATTN_MUST_CHECK attn_status layer_keeper_put(struct layer_keeper *keeper, struct text_span name,
                                             const struct chunks *content, struct call *call);
/* A put whose body is still being received. */
struct layer_upload {
    struct text_span name;
    size_t total_bytes;
    const char *if_match, *if_none_match; /* as in struct call */
};

/*
 * Writes the next bytes of the body to a draft, so that the disk works while more bytes arrive. The fd of a new draft
 * is -1. False: writing failed, the draft is as new, and the put will report the reason. In the end the put takes the
 * draft (call->in.draft), or layer_keeper_give_up discards it.
 */
ATTN_MUST_CHECK bool layer_keeper_write_ahead(struct layer_keeper *keeper, const struct layer_upload *upload,
                                              struct layer_draft *draft, const char *data, size_t length);
void layer_keeper_give_up(struct layer_keeper *keeper, struct layer_draft *draft);
ATTN_MUST_CHECK attn_status layer_keeper_remove(struct layer_keeper *keeper, struct text_span name, struct call *call);
/* Whether a put of that many bytes (0: unknown) could succeed, as far as is known before the body is read. */
ATTN_MUST_CHECK attn_status layer_keeper_allows_put(struct layer_keeper *keeper, struct text_span name, size_t bytes,
                                                    struct call *call);
/*
 * Whether call's conditions are known to fail. This reads no file and waits for no other request. False may mean that
 * the answer is unknown; then the put decides.
 */
bool layer_keeper_fails_early(struct layer_keeper *keeper, struct text_span name, struct call *call);
/*
 * Adds a request to the statistics of call->version, a layer or a model, or of the built-in model (NULL). call->times and
 * call->batch must be filled in.
 */
void layer_keeper_count(const struct call *call, attn_status status);
/* Refuses for an errno of a call on the directory. */
attn_status layer_refuse_errno(struct call *call, int error);

/* Scans all files of the directory for changes by other programs. */
void layer_keeper_rescan(struct layer_keeper *keeper);
/* Reads the file of a layer again, whatever its identity, and serves it. */
ATTN_MUST_CHECK attn_status layer_keeper_load(struct layer_keeper *keeper, struct text_span name, struct call *call);
/* Stops serving the layer until it is loaded again. The file stays. */
ATTN_MUST_CHECK attn_status layer_keeper_unload(struct layer_keeper *keeper, struct text_span name, struct call *call);

#endif
