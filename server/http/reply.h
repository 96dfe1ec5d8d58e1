/* reply.h: the answer to a request: its status, its header fields and its body as it is sent. */
#ifndef HTTP_REPLY_H
#define HTTP_REPLY_H

#include "http/request.h"

/*
 * Begins a reply of that media type. The caller writes the body into the chunks that are returned,
 * request->reply.chunks.
 */
struct chunks *reply_begin(struct request *request, unsigned status, enum media media);
/* The reply is text, which lives as long as the program. */
void reply_constant(struct request *request, enum media media, struct text_span text);
/* 204 with Allow; is_preflight adds the answers to a CORS preflight. */
void reply_options(struct request *request, const char *allow, bool is_preflight);
/*
 * The reply says why the request is refused: request->refusal. All memory of the body and of the service is released.
 */
void reply_refusal(struct request *request);
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
