/*
 * reply.h: what is answered: attn_status and our own refusals to HTTP status, headers, and the body as it is sent.
 *
 * The only place that knows HTTP numbers.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include <microhttpd.h>

#include "attn/runtime.h"
#include "base/text.h"
#include "codec/bytes/chunks.h"
#include "codec/bytes/coding.h"
#include "codec/bytes/media.h"
#include "service/call.h"
#include "service/metrics.h"

struct request;

/* What the HTTP side refuses by itself: code, status, type in the answer, title. */
#define REPLY_PROBLEM_LIST(X)                                                                                          \
    X(PROBLEM_BAD_REQUEST, 400, "bad-request", "not valid HTTP/1.1")                                                   \
    X(PROBLEM_PARAMETER, 400, "parameter", "query parameter not known")                                                \
    X(PROBLEM_UNAUTHORIZED, 401, "unauthorized", "an API key is needed")                                               \
    X(PROBLEM_FORBIDDEN, 403, "forbidden", "the API key is not good for this")                                         \
    X(PROBLEM_ORIGIN, 403, "foreign-origin", "not for pages of other origins")                                         \
    X(PROBLEM_NOT_FOUND, 404, "not-found", "not found")                                                                \
    X(PROBLEM_READ_ONLY, 403, "read-only", "layers cannot be changed here")                                            \
    X(PROBLEM_METHOD, 405, "method-not-allowed", "method not allowed here")                                            \
    X(PROBLEM_NOT_ACCEPTABLE, 406, "not-acceptable", "no representation that Accept allows")                           \
    X(PROBLEM_CONFLICT, 409, "conflict", "not possible in the state that things are in")                               \
    X(PROBLEM_GONE, 410, "gone", "no longer here")                                                                     \
    X(PROBLEM_LENGTH, 411, "length-required", "length of the body is missing")                                         \
    X(PROBLEM_PRECONDITION, 412, "precondition-failed", "a condition of the request does not hold")                    \
    X(PROBLEM_BODY, 413, "body-too-large", "body is over the limit")                                                   \
    X(PROBLEM_MEDIA_TYPE, 415, "unsupported-media-type", "body is not of a type that is read here")                    \
    X(PROBLEM_ENCODING, 415, "unsupported-encoding", "body is encoded")                                                \
    X(PROBLEM_EXPECTATION, 417, "expectation-failed", "expectation not understood")                                    \
    X(PROBLEM_HOST, 421, "foreign-host", "Host does not name this server")                                             \
    X(PROBLEM_QUOTA, 429, "quota", "the quota of the API key is used up")                                              \
    X(PROBLEM_HEADER, 431, "header-too-large", "header is over the limit")                                             \
    X(PROBLEM_DEADLINE, 504, "deadline", "the deadline passed")                                                        \
    X(PROBLEM_BUSY, 503, "busy", "all compute threads are busy and the queue is full")                                 \
    X(PROBLEM_DRAINING, 503, "draining", "server is about to end")                                                     \
    X(PROBLEM_STORE_FAILED, 503, "store-failed", "what keeps layers failed")                                           \
    X(PROBLEM_STORE_FULL, 507, "store-full", "no room to keep it")

enum reply_problem {
#define REPLY_PROBLEM_ENUM(code, status, type, title) code,
    REPLY_PROBLEM_LIST(REPLY_PROBLEM_ENUM)
#undef REPLY_PROBLEM_ENUM
};

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

/* The reply is of that media type, in request->reply.chunks, to be written by the caller. */
struct chunks *reply_begin(struct request *request, unsigned status, enum media media);
/* The reply is a text that lives as long as the program. */
void reply_constant(struct request *request, enum media media, struct text_span text);
/* 204 with Allow; is_preflight adds the answers to a CORS preflight. */
void reply_options(struct request *request, const char *allow, bool is_preflight);
/* The reply is a refusal of our own. */
void reply_refuse(struct request *request, enum reply_problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The reply refuses the method of the request, with Allow. */
void reply_refuse_method(struct request *request, const char *allow);
/* The reply is the refusal of a request that finds the queue full. */
void reply_busy(struct request *request);
/* The reply is the refusal of a page of another origin, or of a Host that is not ours; the log says what would allow
 * it.
 */
void reply_refuse_page(struct request *request);
void reply_refuse_host(struct request *request);
/* The reply tells of a failed computation. Only with the memory of the computation given back to the arena. */
void reply_failure(struct request *request, const attn_error *error, enum call_refusal refusal);
/* The reply asks for so much patience: whole seconds, at least one and at most an hour. */
void reply_retry_after(struct request *request, double wait_s);
/* What the service made of it, beside its answer: another status, an entity tag. */
void reply_conclude(struct request *request, const struct call *call);
/*
 * Compresses reply.chunks if Accept-Encoding asks for it and it is worth the while; 304 instead when If-None-Match
 * names the tag of what would be sent. False without memory.
 */
ATTN_MUST_CHECK bool reply_compress(struct request *request);
/* Whether an answer of at least so many bytes shrinks, sample being a part of it. */
bool reply_is_worth_compressing(struct request *request, const struct chunk *sample, size_t bytes);
/* Begins to write what reply.chunks has deferred, in place of compressing and laying it out. False without memory. */
ATTN_MUST_CHECK bool reply_stream(struct request *request, const attn_runtime *runtime);
/* Lays reply.chunks out for sending: done by the thread that wrote them. False without memory. */
ATTN_MUST_CHECK bool reply_lay_out(struct request *request);
/* Hands the reply to the library. */
enum MHD_Result reply_queue(struct request *request);
/* The answer was not sent whole: sent_bytes becomes what the socket took of its body. */
void reply_was_broken(struct request *request);
/* For a request that could not even be begun. */
enum MHD_Result reply_without_memory(struct MHD_Connection *connection, struct metrics *metrics);
/* The types of all refusals there are, as metrics number them. */
const char *const *reply_reasons(size_t *count);

#endif
