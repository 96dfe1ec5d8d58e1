/*
 * keeper.h: what requests do with kept layers: find, put, remove, load and unload them, in memory or in a directory.
 *
 * With a directory the files are the truth: what others add, replace and remove is noticed when a layer is next asked
 * for, when layers are listed, and once per look_ms (directory.h).
 */
#ifndef SERVICE_LAYERS_KEEPER_H
#define SERVICE_LAYERS_KEEPER_H

#include "base/log.h"
#include "service/call.h"
#include "service/layers/store.h"

struct layer_settings {
    const char *directory; /* NULL: in memory alone */
    bool is_read_only;
    bool verifies_at_start; /* each file is read before serving, and not when its layer is first asked for */
    unsigned look_ms;       /* how often a thread looks at the directory; 0: there is none */
    size_t max_count, max_bytes;
    size_t older;          /* replaced versions that a name keeps */
    size_t prepared_bytes; /* of weights that stay widened (prepared_weights.h) */
};

struct layer_keeper;

/* NULL: message says what is wrong. Files that are no layers are logged and ignored. settings are copied. */
struct layer_keeper *layer_keeper_open(const struct layer_settings *settings, const struct log *log, char *message,
                                       size_t size);
/* When no request is being served. NULL is fine. */
void layer_keeper_close(struct layer_keeper *keeper);

bool layer_keeper_is_durable(const struct layer_keeper *keeper);
struct layer_store *layer_keeper_store(struct layer_keeper *keeper);
struct prepared_store *layer_keeper_prepared(struct layer_keeper *keeper);

/*
 * The functions below fail as services do: they return ATTN_ERR_… and fill in call->refusal and *call->err.
 */

/* The layer, read if it was not yet. *version is a reference. */
ATTN_MUST_CHECK attn_status layer_keeper_find(struct layer_keeper *keeper, struct text_span name, struct call *call,
                                              struct layer_version **version);
/*
 * Keeps content under the name if call's conditions (If-Match, If-None-Match) hold for the present version at that
 * moment. *created: there was no layer of that name. With a directory, ATTN_OK means that the file is synchronised.
 */
ATTN_MUST_CHECK attn_status layer_keeper_put(struct layer_keeper *keeper, struct text_span name,
                                             const struct chunks *content, struct call *call,
                                             struct layer_version **version, bool *created);
/* A put whose body is still coming. */
struct layer_upload {
    struct text_span name;
    size_t total_bytes;
    const char *if_match, *if_none_match; /* as in struct call */
};

/*
 * Writes the next bytes of the body to a draft, whose fd is -1 at first, so that the disk works while more bytes come.
 * False: it cannot, the draft is as it was at first, and the put will tell why. In the end either the put takes the
 * draft (call->in.draft), or layer_keeper_give_up does.
 */
ATTN_MUST_CHECK bool layer_keeper_write_ahead(struct layer_keeper *keeper, const struct layer_upload *upload,
                                              struct layer_draft *draft, const char *data, size_t length);
void layer_keeper_give_up(struct layer_keeper *keeper, struct layer_draft *draft);
ATTN_MUST_CHECK attn_status layer_keeper_remove(struct layer_keeper *keeper, struct text_span name, struct call *call);
/* Whether a put of that many bytes (0: unknown) could succeed, as far as is known before they are read. */
ATTN_MUST_CHECK attn_status layer_keeper_allows_put(struct layer_keeper *keeper, struct text_span name, size_t bytes,
                                                    struct call *call);
/*
 * Whether call's conditions are known to fail. It reads no file and waits for no other request. False may mean that the
 * answer is unknown; then the put decides.
 */
bool layer_keeper_fails_early(struct layer_keeper *keeper, struct text_span name, struct call *call);
/*
 * Keeps content in memory, as a layer that no request can change, even if the directory has a file of that name. Call
 * it before any request is served.
 */
ATTN_MUST_CHECK attn_status layer_keeper_adopt(struct layer_keeper *keeper, const char *name,
                                               const struct chunks *content, struct call *call);

/*
 * Adds a request to the statistics of the layer of that name, NULL: of the built-in model. It comes after call->times
 * is filled in. batch: how many sequences the request had.
 */
void layer_keeper_count(const struct call *call, const char *name, attn_status status, size_t batch);
/* The refusal for an errno that a call on the directory gave. */
attn_status layer_refuse_errno(struct call *call, int error);

/* Looks at all files of the directory for changes by others. */
void layer_keeper_rescan(struct layer_keeper *keeper);
/* Reads the file of one layer again, whatever its identity, and serves it. */
ATTN_MUST_CHECK attn_status layer_keeper_load(struct layer_keeper *keeper, struct text_span name, struct call *call);
/* Stops serving it until it is loaded; the file stays. */
ATTN_MUST_CHECK attn_status layer_keeper_unload(struct layer_keeper *keeper, struct text_span name, struct call *call);

#endif
