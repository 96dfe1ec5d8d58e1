/*
 * sender.h: sends an answer that is still being written.
 *
 * Two batches (stream.h) take turns: an I/O thread copies one to the socket while a short job, ahead of all that waits,
 * fills the other. When the socket was faster, the connection is suspended until the job is done; when the client is
 * slow, both batches stand full and no thread waits. The job may outlive the connection: then it ends the request.
 *
 * Once the header is on its way a failure can only be told by breaking off: chunks without an end, or fewer bytes than
 * announced. HTTP/1.0 cannot tell such an answer from a whole one, and is given whole ones only.
 */
#ifndef HTTP_SENDER_H
#define HTTP_SENDER_H

#include "codec/bytes/stream.h"

struct request;
struct sender;

/*
 * In the thread that made the answer, in place of compressing it and laying it out: writes the first batch of
 * reply.chunks, compressed when Accept-Encoding asks for it. reply.sender and reply.response are there then. False
 * without memory.
 */
ATTN_MUST_CHECK bool sender_begin(struct request *request, const attn_runtime *runtime);
/* The request is at its end. True: a job is still at work, and frees the request when it is done. */
bool sender_leave(struct sender *sender);
/* Milliseconds that its jobs took so far. */
double sender_write_ms(struct sender *sender);

#endif
