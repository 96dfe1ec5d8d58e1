/*
 * steps.h: the steps of a request. The library calls fsm.c, and fsm.c calls what the other files do; it says in which
 * thread.
 */
#ifndef HTTP_STEPS_H
#define HTTP_STEPS_H

#include "http/request.h"

/*
 * fsm.c. The functions that the library calls for each request, in the order of their first call. cls is the
 * http_server. fsm_begin returns the request, which the library passes on in *con_cls. fsm_end frees the request, or
 * leaves it to a job that is still at work.
 */
void *fsm_begin(void *cls, const char *target, struct MHD_Connection *mhd);
enum MHD_Result fsm_handle(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                           const char *version, const char *upload_data, size_t *upload_data_size, void **con_cls);
void fsm_end(void *cls, struct MHD_Connection *mhd, void **con_cls, enum MHD_RequestTerminationCode termination);

/*
 * admission.c. Decides on the header alone, before the body is read. Fills in what the header says: fields, id, parts,
 * route, and whether the connection must be closed. With PROBLEM_NONE the route answers; only OPTIONS has its reply
 * already, and no route.
 */
enum problem admission_check(struct request *request, const char *method, const char *version);

/* at_once.c. Whether the I/O thread computes the request whose body has arrived. */
bool at_once_suffices(const struct request *request);

/*
 * compute.c. Computes the answer to a request whose body has arrived, in this thread or with the threads of the
 * runtime, and makes the reply. compute_check refuses a request that has waited too long for its thread.
 */
enum problem compute_check(struct request *request);
enum problem compute_answer(struct request *request, attn_runtime runtime);

/* ---- reply.c: the answer to a request: its status, its header fields and its body as it is sent ---- */

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
/* reply.chunks, which is JSON, becomes an event of that name. False without memory. */
ATTN_MUST_CHECK bool reply_become_event(struct request *request, const char *name);
/* The last event of a stream: the result, or what refused it. */
const struct chunk *reply_last_event(struct request *request);
/* Makes request->events->response, with the head of a stream. The computation has begun. False without memory. */
ATTN_MUST_CHECK bool reply_make_stream(struct request *request);
/* Hands that answer to the library. */
enum MHD_Result reply_queue_stream(struct request *request);
/* Hands the reply to the library. */
enum MHD_Result reply_queue(struct request *request);
/* The answer was not sent whole: sets sent_bytes to what the socket took of its body, and of a small one to 0. */
void reply_was_broken(struct request *request);
/* Answers a request for which there was no memory at all. */
enum MHD_Result reply_without_memory(struct MHD_Connection *connection, struct metrics *metrics);

/* ---- sender.c: an answer that is still being written ---- */

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

/* ---- account.c, write_ahead.c ---- */

/*
 * account.c. Charges for a chunked body at its end; counts computations that were stopped; logs, counts and charges a
 * request that has ended. account_client keeps what the log says about the client. account_refused: the library has
 * answered the request itself, with that status.
 */
void account_client(struct request *request);
void account_body(struct request *request);
void account_refused(struct request *request, unsigned status);
void account_stopped(const struct request *request, enum problem problem);
void account_end(struct request *request, enum MHD_RequestTerminationCode termination);

/*
 * write_ahead.c. write_ahead_begin is called before the body. NULL: the body is written at its end, because it is not a
 * large layer or memory is short.
 */
struct write_ahead *write_ahead_begin(struct request *request);
/* More of the body has arrived. */
void write_ahead_more(struct write_ahead *ahead);
/*
 * Call this when the whole body has arrived and the connection is suspended. True: the job is still at work, and calls
 * then when it is done.
 */
bool write_ahead_defers(struct write_ahead *ahead, void (*then)(void *request));
/* Returns the written draft. No job may be at work. */
struct layer_draft *write_ahead_draft(struct write_ahead *ahead);
/* The request has ended. True: the job is still at work and frees the request when it is done. */
bool write_ahead_leave(struct write_ahead *ahead);

#endif
