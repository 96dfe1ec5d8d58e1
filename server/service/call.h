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
#include "codec/picture/font_set.h"
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

struct call {
    const char *body; /* may be NULL when body_bytes is 0 */
    size_t body_bytes;
    size_t received_bytes;               /* of the body as it came, before it was expanded */
    enum media body_media, answer_media; /* Content-Type, and what Accept chose of what the route offers; written too */
    bool has_json_bytes;                 /* Inference-Header-Content-Length was given */
    size_t json_bytes;                   /* and how much of the body it says is JSON */
    const struct text_span *names;       /* raw, what stands in the path for each "{…}" of the route */
    const struct text_pair *parameters;  /* "?name=value", percent-decoded */
    size_t parameter_count;
    struct call_limits limits;
    bool is_first_try;                    /* what is over these limits is asked again with higher ones */
    const char *if_match, *if_none_match; /* lists of entity tags as they came; NULL: none */
    struct layer_keeper *layers;
    struct layer_draft *draft; /* what was written of the body while it came (keeper.h); NULL: nothing */
    struct cache_store *caches;
    const char *key;   /* the name of the API key, to which caches belong; "" without keys */
    struct keys *keys; /* whose quota the work is taken from; NULL: there are none */
    bool is_foreign;   /* a page of another origin asks: nothing that is kept may be looked at for it */
    bool is_guarded;   /* written: the answer is about something that is kept, though its path is open */
    bool is_kept;      /* written: a cache holds this step already, so its answer is sent, even a late one */
    const attn_runtime *runtime;
    const struct font_set *fonts; /* of pictures */
    struct chunks *out;           /* may_defer: the service clears it when the answer is small (attend_run) */
    double queue_ms;              /* that it has waited for its thread */
    struct call_times times;      /* written */
    enum call_refusal refusal;    /* written, with a failure */
    double timeout_ms;            /* written: not 0 when the body sets a deadline, from its end to the answer */
    double flops;                 /* written: what the plan takes */
    struct keys_cost owed;        /* what the request owes its key already; added to */
    double retry_after_s;         /* written, with CALL_QUOTA */
    size_t answer_json_bytes;     /* written: not 0 when the answer is JSON of that length with bytes behind it */
    enum call_outcome outcome;    /* written */
    char etag[CALL_ETAG_TEXT];    /* written: with its quotes, before any coding; "": none */
    struct layer_version *held;   /* written: a reference to be released when the answer has been sent */
    attn_error *err;
};

typedef attn_status service_function(struct call *call);

/* ATTN_OK when the whole answer is in call->out, else ATTN_ERR_NO_MEMORY. */
ATTN_MUST_CHECK attn_status call_finish(struct call *call);
/* Fills in call->refusal and *call->err: why something is refused that is not the request's own fault. */
attn_status call_refuse(struct call *call, enum call_refusal refusal, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
