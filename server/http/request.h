/*
 * request.h: one request from its first line to its last byte sent: what it owns and which step comes next.
 *
 *     HEADERS ──► BODY ──► COMPUTING (suspended) ──► REPLY       a POST that is welcome
 *        ├──────► DISCARD ─────────────────────────► REPLY       refused; its small body is read and dropped
 *        └─────────────────────────────────────────► REPLY       answered at once
 *
 * The arena is made at the library's first call (request_begin) and destroyed in the completion callback (request_end),
 * nowhere else; the request itself, its body and its reply live in it. While a job computes, the connection is
 * suspended: the library calls neither the handler nor the completion callback, so the job has the request to itself.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "http/reply.h"
#include "http/route.h"
#include "http/server.h"
#include "http/wire/guard.h"
#include "http/wire/target.h"
#include "http/wire/trace.h"

enum request_phase { REQUEST_HEADERS, REQUEST_BODY, REQUEST_DISCARD, REQUEST_COMPUTING, REQUEST_REPLY };

enum { REQUEST_ID_MAX = 128 };

/*
 * A body up to AT_ONCE may mean so little that it waits for no compute thread. Of a refused request, the body is
 * dropped up to DISCARD and the connection kept; a larger one is answered at once and the connection closed.
 */
enum { REQUEST_AT_ONCE_MAX = 4 << 10, REQUEST_DISCARD_MAX = 64 << 10 };

/* Moments, in milliseconds of the monotonic clock. */
struct request_clock {
    double begun, received, ended;
    double queue_ms;
    bool is_computed;
    struct call_times times;
};

struct request {
    struct http_server *server;
    struct MHD_Connection *connection;
    attn_arena *arena;
    attn_arena_mark before_body;
    _Atomic(enum request_phase) phase; /* watch.c looks at it */
    int fd;                            /* of the connection; to look at */
    atomic_bool is_abandoned;          /* the client left, the job may stop */
    struct watched *watched;           /* its connection (watch.c); NULL: not watched */
    bool is_counted;                   /* in server->requests */
    bool closes;                       /* the connection is closed after the reply */
    bool is_open;                      /* to pages of every origin (routes.h) */
    bool is_foreign;                   /* asked by a page that what is guarded is refused to (cors.h) */
    const char *target;                /* raw; "" until it is known */
    char method[24];                   /* for the log: cut when longer */
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

/* 64 bits that differ from all others of this process, and most likely from those of others. */
uint64_t request_random(struct http_server *server);

/* One more job of this server, with its lock held; false when it takes no more. */
bool request_count_job_in(struct http_server *server);
/* A job is back; the server may end from here on. */
void request_count_job_out(struct http_server *server);
/* What was taken since the header is given back, and the reply is this failure. */
void request_fail(struct request *request, attn_status status, const char *message);
/* Gives everything back: after request_end, when that left it to a job. */
void request_free(struct request *request);

/* The three callbacks of the library, in the order of their first call. cls is the http_server. */
void *request_begin(void *cls, const char *target, struct MHD_Connection *connection);
enum MHD_Result request_handle(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                               const char *version, const char *upload_data, size_t *upload_data_size, void **con_cls);
void request_end(void *cls, struct MHD_Connection *connection, void **con_cls,
                 enum MHD_RequestTerminationCode termination);

#endif
