/*
 * sender.h: sends an answer that is still being written.
 *
 * Two batches (stream.h) take turns: an I/O thread copies one to the socket while a short job fills the other. Such a
 * job does not wait in the queue. When the socket is faster than the job, the connection is suspended until the job is
 * done. When the client is slow, both batches are full and no thread waits. The job may outlive the connection; then
 * the job frees the request.
 *
 * After the header was sent, the only way to report a failure is to break off: chunks without an end, or fewer bytes
 * than announced. A client of HTTP/1.0 cannot tell such an answer from a whole one, so its answers are not streamed.
 */
#ifndef HTTP_SENDER_H
#define HTTP_SENDER_H

#include "codec/bytes/stream.h"

struct request;
struct sender;

/*
 * Writes the first batch of reply.chunks, compressed if Accept-Encoding asks for it, and sets reply.sender and
 * reply.response. The thread that made the answer calls it instead of reply_compress and reply_lay_out. False without
 * memory.
 */
ATTN_MUST_CHECK bool sender_begin(struct request *request, const attn_runtime *runtime);
/* The request has ended. True: a job is still at work and frees the request when it is done. */
bool sender_leave(struct sender *sender);
/* The milliseconds that the sender's jobs have taken so far. */
double sender_write_ms(struct sender *sender);

#endif
