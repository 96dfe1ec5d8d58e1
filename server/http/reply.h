/*
 * reply.h: what is answered: attn_status and our own refusals to HTTP status, headers, and the body as it is sent.
 *
 * The only place that knows HTTP numbers.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include "http/problems.h"
#include "http/request.h"

/* The reply is of that media type, in request->reply.chunks, to be written by the caller. */
struct chunks *reply_begin(struct request *request, unsigned status, enum media media);
/* The reply is a text that lives as long as the program. */
void reply_constant(struct request *request, enum media media, struct text_span text);
/* 204 with Allow; is_preflight adds the answers to a CORS preflight. */
void reply_options(struct request *request, const char *allow, bool is_preflight);
/* The reply is a refusal of our own. */
void reply_refuse(struct request *request, enum problem problem, const char *format, ...)
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
/* What was taken since the header is given back, and the reply is a failure for want of memory. */
void reply_no_memory(struct request *request, const char *message);
/* The reply asks for so much patience: whole seconds, at least one and at most an hour. */
void reply_retry_after(struct request *request, double wait_s);
/* What the service made of it, beside its answer: another status, an entity tag. */
void reply_conclude(struct request *request, const struct call *call);
/*
 * Compresses reply.chunks if Accept-Encoding asks for it and it is worth the while; 304 instead when If-None-Match
 * names the tag of what would be sent. False without memory.
 */
ATTN_MUST_CHECK bool reply_compress(struct request *request);
/* Lays reply.chunks out for sending: done by the thread that wrote them. False without memory. */
ATTN_MUST_CHECK bool reply_lay_out(struct request *request);
/* Hands the reply to the library. */
enum MHD_Result reply_queue(struct request *request);
/* The answer was not sent whole: sent_bytes becomes what the socket took of its body. */
void reply_was_broken(struct request *request);
/* For a request that could not even be begun. */
enum MHD_Result reply_without_memory(struct MHD_Connection *connection, struct metrics *metrics);

#endif
