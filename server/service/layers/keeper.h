/*
 * keeper.h: kept layers, in memory and, with a directory, on the disk: looked up, put, removed, noticed.
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
    bool verifies_at_start; /* each file is looked into before serving, rather than when it is first asked for */
    unsigned look_ms;       /* how often the directory is looked at besides; 0: when layers are asked for alone */
    size_t max_count, max_bytes;
    size_t older;          /* replaced versions that a name keeps */
    size_t prepared_bytes; /* of weights that stay widened (prepared_weights.h) */
};

struct layer_keeper;

/* NULL: message says what is wrong. Files that are no layers are logged and passed over. settings are copied. */
struct layer_keeper *layer_keeper_open(const struct layer_settings *settings, const struct log *log, char *message,
                                       size_t size);
/* With no request on its way. NULL is fine. */
void layer_keeper_close(struct layer_keeper *keeper);

bool layer_keeper_is_durable(const struct layer_keeper *keeper);
struct layer_store *layer_keeper_store(struct layer_keeper *keeper);
struct prepared_store *layer_keeper_prepared(struct layer_keeper *keeper);

/*
 * What follows fails as services do: ATTN_ERR_… with call->refusal and *call->err filled in.
 */

/* The layer, read if it was not yet. *version is a reference. */
ATTN_MUST_CHECK attn_status layer_keeper_find(struct layer_keeper *keeper, struct text_span name, struct call *call,
                                              struct layer_version **version);
/*
 * Keeps content under the name if call's conditions (If-Match, If-None-Match) hold for what is there at that moment;
 * *created tells whether nothing was. Acknowledged means synchronised, where there is a directory.
 */
ATTN_MUST_CHECK attn_status layer_keeper_put(struct layer_keeper *keeper, struct text_span name,
                                             const struct chunks *content, struct call *call,
                                             struct layer_version **version, bool *created);
/* What comes as the body of a put. */
struct layer_upload {
    struct text_span name;
    size_t total_bytes;
    const char *if_match, *if_none_match; /* as in struct call */
};

/*
 * The next bytes of what may be put, to a draft that begins with fd -1: so that the
 * disk is at work while they still come. False: not this one, and the draft is as it was at first; a put tells why.
 * Then call->in.draft is put's to go on with, or the draft is given up.
 */
ATTN_MUST_CHECK bool layer_keeper_write_ahead(struct layer_keeper *keeper, const struct layer_upload *upload,
                                              struct layer_draft *draft, const char *data, size_t length);
void layer_keeper_give_up(struct layer_keeper *keeper, struct layer_draft *draft);
ATTN_MUST_CHECK attn_status layer_keeper_remove(struct layer_keeper *keeper, struct text_span name, struct call *call);
/* Whether a put of so many bytes (0: not known) could succeed at all, as far as can be told before they are read. */
ATTN_MUST_CHECK attn_status layer_keeper_allows_put(struct layer_keeper *keeper, struct text_span name, size_t bytes,
                                                    struct call *call);
/*
 * Whether call's conditions fail for what is known to be under the name: nothing is read for it, and nobody waited for.
 * False may mean that it is not known; then a put decides.
 */
bool layer_keeper_fails_early(struct layer_keeper *keeper, struct text_span name, struct call *call);
/*
 * Keeps content, in memory, under a name whose layer no request can change; before any request, and whatever the
 * directory has under it.
 */
ATTN_MUST_CHECK attn_status layer_keeper_adopt(struct layer_keeper *keeper, const char *name,
                                               const struct chunks *content, struct call *call);

/*
 * Adds a request to the statistics of the layer of that name, NULL: of the built-in model. It comes after call->times
 * is filled in. batch: how many sequences the request had.
 */
void layer_keeper_count(const struct call *call, const char *name, attn_status status, size_t batch);
/* What the directory refused, by its errno. */
attn_status layer_refuse_errno(struct call *call, int error);

/* Takes in what others did to the directory. */
void layer_keeper_rescan(struct layer_keeper *keeper);
/* Reads the file of one layer again, whatever its identity, and serves it. */
ATTN_MUST_CHECK attn_status layer_keeper_load(struct layer_keeper *keeper, struct text_span name, struct call *call);
/* Serves it no longer, until it is loaded; the file stays. */
ATTN_MUST_CHECK attn_status layer_keeper_unload(struct layer_keeper *keeper, struct text_span name, struct call *call);

#endif
