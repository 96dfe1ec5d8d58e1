/*
 * request.h: one request from its first line to its last byte sent: what it owns.
 *
 * request_create makes an arena; the request itself, its body and its reply live in it; request_free destroys it. While
 * a job computes, the connection is suspended: the library calls neither the handler nor the completion callback, so
 * the job has the request to itself. exchange.h tells which step comes next.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "codec/bytes/coding.h"
#include "http/connections/connection.h"
#include "http/route.h"
#include "http/wire/guard.h"
#include "http/wire/target.h"
#include "http/wire/trace.h"

enum { REQUEST_ID_MAX = 128 };

/*
 * A body up to AT_ONCE may mean so little that it waits for no compute thread. Of a refused request, the body is
 * dropped up to DISCARD and the connection kept; a larger one is answered at once and the connection closed.
 */
enum { REQUEST_AT_ONCE_MAX = 4 << 10, REQUEST_DISCARD_MAX = 64 << 10 };

enum { REPLY_ALLOW_MAX = 64 };

struct reply_field {
    const char *name, *value;
};

/* Status 0: not decided yet. */
struct reply {
    unsigned status;
    const char *content_type;  /* NULL: no body */
    struct text_span constant; /* a body that lives as long as the program; at NULL: chunks */
    struct chunks chunks;
    struct MHD_IoVec *pieces; /* chunks as the library wants them */
    unsigned piece_count;
    struct sender *sender;            /* of chunks that are still being written; else NULL */
    struct MHD_Response *response;    /* of the sender, until it is queued */
    char allow[REPLY_ALLOW_MAX];      /* "" : none */
    const struct reply_field *fields; /* further ones, up to a name of NULL; NULL: none */
    char etag[CALL_ETAG_TEXT];        /* "" : none */
    bool is_preflight;
    unsigned retry_after_s; /* 0: none */
    const char *challenge;  /* WWW-Authenticate; NULL: none */
    enum coding coding;     /* of the body, which varies with Accept-Encoding when is_negotiated */
    bool is_negotiated;
    size_t json_bytes;      /* not 0: the body is JSON of that length and bytes behind it */
    uint64_t sent_bytes;    /* of the body that the library has, and was told to send */
    uint64_t header_bytes;  /* of the answer; those that the library adds are an estimate */
    uint64_t written_bytes; /* to the socket, before this answer */
};

/* Moments, in milliseconds of the monotonic clock. */
struct request_clock {
    double begun, received, ended;
    double queue_ms;
    bool is_computed;
    struct call_times times;
};

struct request {
    struct http_server *server;
    struct connection *connection;
    attn_arena *arena;
    attn_arena_mark before_body;
    bool is_counted;    /* in server->requests */
    bool closes;        /* the connection is closed after the reply */
    bool is_open;       /* to pages of every origin (routes.h) */
    bool is_foreign;    /* asked by a page that what is guarded is refused to (cors.h) */
    const char *target; /* raw; "" until it is known */
    char method[24];    /* for the log: cut when longer */
    char id[REQUEST_ID_MAX + 1];
    struct target parts;
    struct guard_fields fields; /* values belong to the connection, which outlives us */
    struct trace trace;
    char key_name[KEYS_NAME_MAX + 1]; /* of the API key; "": none */
    executor_priority priority;
    double deadline_ms;    /* from the end of the body to the answer */
    double flops;          /* of the plan */
    struct keys_cost owed; /* to the quota of the key, before the request is at its end */
    const struct route *route;
    struct text_span names[ROUTE_NAMES_MAX]; /* within the target: what stands for "{…}" of the route */
    enum coding body_coding;
    enum media answer_media, body_media; /* as Accept and Content-Type have it, within what the route has */
    bool has_json_bytes;                 /* Inference-Header-Content-Length */
    size_t json_bytes;
    struct text_pair *parameters; /* of the query, in the arena */
    size_t parameter_count;
    char *body;                /* with a Content-Length; else the pieces are joined here by the job */
    struct write_ahead *ahead; /* NULL: none of the body is written before its end */
    struct chunks pieces;
    uint64_t body_bytes;
    bool may_stream; /* HTTP/1.1: an answer that is broken off can be told from a whole one */
    struct reply reply;
    struct layer_version *held; /* what the answer refers to; NULL: nothing */
    struct request_clock clock;
};

/* NULL without memory. target is copied. */
struct request *request_create(struct connection *connection, const char *target);
/* Gives everything back, when neither the library nor a job has it any more. */
void request_free(struct request *request);

#endif
