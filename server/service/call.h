/*
 * call.h: one request as a service sees it, whatever the protocol that brought it: body in, answer out.
 *
 * A service is a function of this form. It runs in a compute thread (when small, in an I/O thread), takes all memory
 * from out->arena, and either appends the whole answer to out, or returns a failure with *err filled in and out
 * worthless.
 */
#ifndef SERVICE_CALL_H
#define SERVICE_CALL_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "base/text.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/media.h"
#include "codec/picture/fonts/font_set.h"
#include "service/keys.h"

/* What a request may take; decided on the plan, before anything runs. */
struct call_limits {
    size_t result_bytes; /* of the answer as it is sent */
    size_t memory_bytes; /* of the arena, the body included */
    double flops;
};

/* Where the time went, in milliseconds. */
struct call_times {
    double parse_ms, compute_ms, write_ms;
};

/* Why a service refuses when it is not the request's own fault, beyond what attn_status can tell. */
enum call_refusal {
    CALL_FAILED, /* err->status tells */
    CALL_NOT_FOUND,
    CALL_CONFLICT,     /* with the state that things are in */
    CALL_PRECONDITION, /* if_match or if_none_match does not hold */
    CALL_READ_ONLY,
    CALL_GONE,
    CALL_QUOTA,   /* of the API key; retry_after_s is written */
    CALL_FOREIGN, /* a page of another origin asks for what is guarded */
    CALL_STORE_FULL,
    CALL_STORE_FAILED,
};

/* What became of a request that did not fail. */
enum call_outcome { CALL_DONE, CALL_CREATED, CALL_DELETED };

/* A digest and what tells representations and their codings apart, with the quotes. */
enum { CALL_ETAG_TEXT = 104 };

struct cache_store;
struct layer_draft;
struct layer_keeper;
struct layer_version;

/* What a service is given. */
struct call_input {
    const char *body; /* may be NULL when body_bytes is 0 */
    size_t body_bytes;
    size_t received_bytes;               /* of the body as it came, before it was expanded */
    enum media body_media, answer_media; /* Content-Type, and what Accept chose of what the route offers */
    bool has_json_bytes;                 /* Inference-Header-Content-Length was given */
    size_t json_bytes;                   /* and how much of the body it says is JSON */
    const struct text_span *names;       /* the raw text in the path for each "{…}" of the route */
    const struct text_pair *parameters;  /* "?name=value", percent-decoded */
    size_t parameter_count;
    const char *if_match, *if_none_match; /* lists of entity tags as they came; NULL: none */
    const char *key;                      /* the name of the API key, to which caches belong; "" without keys */
    struct keys *keys;                    /* they have the quota that the work is taken from; NULL: no quota */
    bool is_foreign; /* a page of another origin asks: it must not learn anything about what is kept */
    double queue_ms; /* how long the request waited for its thread */
    struct call_limits limits;
    bool is_first_try; /* a request over these limits is computed again with higher ones */
    struct layer_keeper *layers;
    struct layer_draft *draft; /* what was written of the body while it came (keeper.h); NULL: nothing */
    struct cache_store *caches;
    const attn_runtime *runtime;
    const struct font_set *fonts; /* of pictures */
};

/* The input, and what the service makes of it: all below it is output, zero at first. */
struct call {
    const struct call_input in;
    struct chunks *out; /* the caller's; may_defer: the service clears it when the answer is small (work_weigh) */
    attn_error *err;    /* the caller's; filled in with a failure */
    enum call_refusal refusal;     /* with a failure */
    double retry_after_s;          /* with CALL_QUOTA */
    enum call_outcome outcome;     /* with an answer */
    char etag[CALL_ETAG_TEXT];     /* of the answer, with its quotes, before any coding; "": none */
    size_t answer_json_bytes;      /* not 0: the answer is MEDIA_BINARY, JSON of that length with bytes behind it */
    struct layer_version *version; /* a reference that the caller releases when the answer is sent */
    struct call_times times;
    double flops;          /* of the plan */
    struct keys_cost owed; /* by the request to its key: what the caller begins with, and what the service adds */
    double timeout_ms;     /* not 0: the body sets a deadline, from its end to the answer */
    bool is_guarded;       /* the answer is about something that is kept, though its path is open */
    bool is_kept;          /* a cache holds this step already, so its answer is sent, even a late one */
};

typedef attn_status service_function(struct call *call);

/* ATTN_OK when the whole answer is in call->out, else ATTN_ERR_NO_MEMORY. */
ATTN_MUST_CHECK attn_status call_finish(struct call *call);
/* Fills in call->refusal and *call->err: why something is refused that is not the request's own fault. */
attn_status call_refuse(struct call *call, enum call_refusal refusal, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
