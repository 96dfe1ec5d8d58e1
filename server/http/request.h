/*
 * request.h: the data that one request owns, from its first line to the last byte of its answer.
 *
 * request_create makes an arena. The request itself, its body and its reply live in the arena, and request_free
 * destroys it. While a job computes, the connection is suspended: the library calls neither the handler nor the
 * completion callback, so only the job uses the request. fsm.c shows the order of the steps.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include "codec/bytes/coding.h"
#include "http/connections/events.h"
#include "http/connections/server.h"
#include "http/route.h"
#include "http/wire/guard.h"
#include "http/wire/problems.h"
#include "http/wire/wire.h"

enum { REQUEST_ID_MAX = 128 };

/*
 * A request with a body of up to REQUEST_AT_ONCE_MAX may be computed by the I/O thread. When a request is refused, a
 * body of up to REQUEST_DISCARD_MAX is read and dropped, and the connection is kept. With a larger body, the answer is
 * sent at once and the connection is closed.
 */
enum { REQUEST_AT_ONCE_MAX = 4 << 10, REQUEST_DISCARD_MAX = 64 << 10 };

enum { REPLY_ALLOW_MAX = 64 };

/*
 * Why a request is refused. PROBLEM_NONE: it is not. A refusal is a value: fsm.c writes the reply from it, in one place.
 */
struct refusal {
    enum problem problem;
    attn_error error;            /* the message, and what else the answer says */
    char allow[REPLY_ALLOW_MAX]; /* "": none */
    const char *challenge;       /* WWW-Authenticate; NULL: none */
    double retry_after_s;        /* of PROBLEM_QUOTA */
};

struct reply_field {
    const char *name, *value;
};

/* Status 0: not decided yet. */
struct reply {
    unsigned status;
    const char *content_type;  /* NULL: the reply has no body */
    struct text_span constant; /* a body that lives as long as the program; at is NULL when chunks has the body */
    struct chunks chunks;
    struct MHD_IoVec *pieces; /* chunks in the library's form */
    unsigned piece_count;
    struct sender *sender;            /* of a streamed answer; else NULL */
    struct MHD_Response *response;    /* of a streamed answer, until it is queued; else NULL */
    char allow[REPLY_ALLOW_MAX];      /* "" : none */
    const struct reply_field *fields; /* further header fields, ended by a name of NULL; NULL: none */
    char etag[CALL_ETAG_TEXT];        /* "" : none */
    bool is_preflight;
    bool is_file; /* the body is the file of request.held, which other programs may write to while it is sent */
    unsigned retry_after_s; /* 0: none */
    const char *challenge;  /* WWW-Authenticate; NULL: none */
    enum coding coding;     /* the coding of the body; is_negotiated: the body depends on Accept and Accept-Encoding */
    bool is_negotiated;
    size_t json_bytes;      /* not 0: so many bytes of the body are JSON, and binary data follows */
    uint64_t sent_bytes;    /* the bytes of the body that the library was told to send */
    uint64_t header_bytes;  /* the bytes of the header; fields that the library adds are estimated */
    uint64_t written_bytes; /* what the socket took before this answer; INT64_MAX: it is small, and nobody asked */
};

/* Points in time, in milliseconds of the monotonic clock. */
struct request_clock {
    double begun, received, ended;
    double queue_ms;
    bool is_computed;
    struct call_times times;
};

/* What the library hands over with one call. */
struct arrival {
    const char *method, *version, *data;
    size_t length; /* of the data */
};

struct request {
    atomic_uint step; /* only fsm.c uses it, and what stands with it */
    struct arrival arrival;
    bool is_receiving; /* the header was admitted, and the body is kept */
    struct http_server *server;
    struct connection *connection;
    attn_arena *arena;
    attn_arena_mark before_body;
    bool is_counted;         /* counted in server->requests */
    bool is_refused_unasked; /* the library has answered, before or instead of our steps */
    bool closes;             /* the connection is closed after the reply */
    bool is_open;            /* pages of every origin may read the answer (route.h) */
    bool is_foreign;         /* the page that asks must not reach guarded paths (cors.h) */
    const char *target;      /* the raw target; "" until it is known */
    char method[24];         /* for the log; a longer method is cut */
    char id[REQUEST_ID_MAX + 1];
    struct target parts;
    struct guard_fields fields; /* the library owns the values until the connection ends */
    struct trace trace;
    char key_name[KEYS_NAME_MAX + 1]; /* the name of the API key; "": none */
    executor_priority priority;
    double deadline_ms;    /* from the end of the body to the answer */
    double flops;          /* the operations of the plan */
    struct keys_cost owed; /* what the request was charged so far */
    const struct route *route;
    struct text_span names[ROUTE_NAMES_MAX]; /* parts of target: the segments that stand for "{…}" of the route */
    enum coding body_coding;
    enum media answer_media, body_media; /* chosen by Accept and by Content-Type from the types of the route */
    bool has_json_bytes;                 /* the request has Inference-Header-Content-Length */
    size_t json_bytes;
    struct text_pair *parameters; /* the parameters of the query, in the arena */
    size_t parameter_count;
    char *body;                /* NULL: the body is chunked, and pieces has it */
    struct write_ahead *ahead; /* NULL: the body is not written ahead */
    struct chunks pieces;
    uint64_t body_bytes;
    const struct call *call;  /* while the service runs; else NULL */
    bool wants_events;        /* the answer is a stream of events */
    struct events *events;    /* then, once the header was admitted; else NULL */
    char client[CLIENT_TEXT]; /* for the log, of a stream alone: its connection may be closed before the request ends */
    enum MHD_RequestTerminationCode termination;
    bool may_stream; /* HTTP/1.1: a client can tell a broken answer from a whole one */
    struct refusal refusal;
    struct reply reply;
    struct version *held; /* the version of a layer, which the answer needs; NULL: none */
    struct request_clock clock;
};

/* Returns NULL without memory. target is copied. */
struct request *request_create(struct connection *connection, const char *target);
/* Frees everything. Neither the library nor a job may use the request any more. */
void request_free(struct request *request);

/*
 * Refuses a request: fills in request->refusal. Each function returns the problem, so that a check refuses by its last
 * line: return refuse(request, PROBLEM_BODY, …). The message follows the format.
 */
enum problem refuse(struct request *request, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses the method. allow is for the field Allow; below: paths that take the method, or "". */
enum problem refuse_method(struct request *request, const char *allow, const char *below);
/* The queue is full. */
enum problem refuse_busy(struct request *request);
/* The server is about to end. */
enum problem refuse_draining(struct request *request);
/* Memory is lacking, for what the message names. */
enum problem refuse_memory(struct request *request, const char *message);
/*
 * Refuses a page of another origin, or a Host that does not name this server. The log says which setting would allow
 * it.
 */
enum problem refuse_page(struct request *request);
enum problem refuse_host(struct request *request);
/* A service failed, and has filled in request->refusal.error. */
enum problem refuse_call(struct request *request, const struct call *call);

#endif
