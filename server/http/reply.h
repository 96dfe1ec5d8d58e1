/*
 * reply.h: the answer to a request: its status, its header fields and its body as it is sent. problems.h has the
 * statuses of refusals.
 */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include "http/request.h"
#include "http/wire/problems.h"

/*
 * Begins a reply of that media type. The caller writes the body into the chunks that are returned,
 * request->reply.chunks.
 */
struct chunks *reply_begin(struct request *request, unsigned status, enum media media);
/* The reply is text, which lives as long as the program. */
void reply_constant(struct request *request, enum media media, struct text_span text);
/* 204 with Allow; is_preflight adds the answers to a CORS preflight. */
void reply_options(struct request *request, const char *allow, bool is_preflight);
/* The reply refuses the request. The message follows the format. */
void reply_refuse(struct request *request, enum problem problem, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The reply refuses the method of the request, with Allow. below: paths that take the method, or "". */
void reply_refuse_method(struct request *request, const char *allow, const char *below);
/* The reply says that the queue is full. */
void reply_busy(struct request *request);
/*
 * The reply refuses a page of another origin, or a Host that does not name this server. The log says which setting
 * would allow it.
 */
void reply_refuse_page(struct request *request);
void reply_refuse_host(struct request *request);
/* The reply says why a service failed. The caller has released the memory of the service to the arena. */
void reply_failure(struct request *request, const attn_error *error, enum call_refusal refusal);
/* The reply says that memory is lacking. The memory that was taken since the header is released. */
void reply_no_memory(struct request *request, const char *message);
/* Sets Retry-After: wait_s in whole seconds, at least one and at most an hour. */
void reply_retry_after(struct request *request, double wait_s);
/* Takes status and entity tag from what the service returned. */
void reply_conclude(struct request *request, const struct call *call);
/*
 * Compresses reply.chunks if Accept-Encoding asks for it and they shrink. The reply becomes 304 when If-None-Match
 * names the tag of what would be sent. False without memory.
 */
ATTN_MUST_CHECK bool reply_compress(struct request *request);
/* Lays reply.chunks out for sending. The thread that wrote them calls it. False without memory. */
ATTN_MUST_CHECK bool reply_lay_out(struct request *request);
/* Hands the reply to the library. */
enum MHD_Result reply_queue(struct request *request);
/* The answer was not sent whole: sets sent_bytes to what the socket took of its body. */
void reply_was_broken(struct request *request);
/* Answers a request for which there was no memory at all. */
enum MHD_Result reply_without_memory(struct MHD_Connection *connection, struct metrics *metrics);

#endif
