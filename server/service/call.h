/*
 * call.h: one request as a service sees it, independent of the protocol: body in, answer out.
 *
 * A service is a function of this form. It runs in a compute thread, or in an I/O thread when the request is small. It
 * takes all memory from out->arena. It appends the whole answer to out, or returns a failure with *err filled in; out
 * must not be used then.
 */
#ifndef SERVICE_CALL_H
#define SERVICE_CALL_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "base/text.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/media.h"
#include "codec/picture/fonts/fonts.h"
#include "service/keys.h"

/* The limits of a request. They are compared with the plan, before anything runs. */
struct call_limits {
    size_t result_bytes; /* of the answer in the form that is sent */
    size_t memory_bytes; /* of the arena, with the body */
    double flops;
};

/* The time of each part of the work, in milliseconds. */
struct call_times {
    double parse_ms, compute_ms, write_ms;
};

/* Reasons to refuse that are not the request's own fault and that attn_status does not have. */
enum call_refusal {
    CALL_FAILED, /* the status in err says why */
    CALL_NOT_FOUND,
    CALL_CONFLICT,     /* the present state does not allow the request */
    CALL_PRECONDITION, /* if_match or if_none_match does not hold */
    CALL_READ_ONLY,
    CALL_GONE,
    CALL_QUOTA,   /* the quota of the API key is used up; retry_after_s is set */
    CALL_FOREIGN, /* a page of another origin asks for guarded data */
    CALL_STORE_FULL,
    CALL_STORE_FAILED,
};

/* The outcome of a request that did not fail. */
enum call_outcome { CALL_DONE, CALL_CREATED, CALL_DELETED };

/* Room for a digest, a suffix per representation and coding, and the quotes. */
enum { CALL_ETAG_TEXT = 104 };

struct cache_store;
struct layer_draft;
struct layer_keeper;
struct models;
struct progress;
struct version;

/* The input of a service. */
struct call_input {
    const char *body; /* may be NULL when body_bytes is 0 */
    size_t body_bytes;
    size_t received_bytes;               /* the bytes of the body as received, before it was expanded */
    enum media body_media, answer_media; /* by Content-Type; by Accept, from what the route offers */
    bool has_json_bytes;                 /* the request has Inference-Header-Content-Length */
    size_t json_bytes;                   /* how many bytes of the body are JSON, by that field */
    const struct text_span *names;       /* the raw text in the path for each "{…}" of the route */
    const struct text_pair *parameters;  /* "?name=value", percent-decoded */
    size_t parameter_count;
    const char *if_match, *if_none_match; /* lists of entity tags as received; NULL: no such field */
    const char *key;                      /* the name of the API key; caches belong to it; "" without API keys */
    struct keys *keys;                    /* the quota of key is charged here; NULL: no quota */
    bool is_foreign;                      /* a page of another origin asks; it must not learn what is kept */
    double queue_ms;                      /* how long the request waited for its thread */
    struct call_limits limits;
    struct layer_keeper *layers;
    struct models *models;
    struct layer_draft *draft; /* the part of the body that is already written to a file (keeper.h); NULL: none */
    struct cache_store *caches;
    const attn_runtime *runtime;
    struct progress *progress;    /* NULL: nobody follows it */
    const struct font_set *fonts; /* the fonts of pictures */
};

/* The input of a service and its output. All members after the input are output and begin as zero. */
struct call {
    const struct call_input in;
    struct chunks *out;        /* the caller's; the service clears may_defer when the answer is small (work_weigh) */
    attn_error *err;           /* the caller's; filled in on a failure */
    enum call_refusal refusal; /* set on a failure */
    double retry_after_s;      /* set with CALL_QUOTA */
    enum call_outcome outcome; /* set with an answer */
    char etag[CALL_ETAG_TEXT]; /* the tag of the answer before any coding, with its quotes; "": no tag */
    size_t answer_json_bytes;  /* not 0: the answer is MEDIA_BINARY, and so many bytes of it are JSON */
    struct version *version;   /* a reference that the caller releases after the answer was sent */
    bool sends_file; /* the answer is the version's file, which other programs may write to until it is sent */
    struct call_times times;
    size_t batch;          /* the number of sequences in the request, for the statistics of its model */
    double flops;          /* the operations of the plan */
    struct keys_cost owed; /* what the request owes its key: the caller's charges, and those that the service adds */
    double timeout_ms;     /* not 0: the body sets this deadline, counted from its end to the answer */
    bool is_guarded;       /* the answer tells about kept data, although its path is open */
    bool is_kept;          /* a cache holds this step already, so the answer is sent even if it is late */
};

typedef attn_status service_function(struct call *call);

/* Returns ATTN_OK when the whole answer is in call->out, else ATTN_ERR_NO_MEMORY. */
ATTN_MUST_CHECK attn_status call_finish(struct call *call);
/* Refuses for a reason that is not the request's own fault: fills in call->refusal and *call->err. */
attn_status call_refuse(struct call *call, enum call_refusal refusal, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
