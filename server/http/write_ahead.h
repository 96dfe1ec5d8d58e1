/*
 * write_ahead.h: writes the file of a layer while its body is received.
 *
 * An I/O thread receives the body. Meanwhile a short job passes the bytes that have arrived to the keeper of layers.
 * The keeper writes them to a temporary file, so that the disk works from the first megabytes on. The job does not
 * wait in the queue. It may outlive the connection; then the job frees the request. If the body ends while the job is
 * at work, the job continues with the request. Only one body at a time is written ahead, because a slow disk would
 * otherwise occupy one compute thread per body. Other bodies are written ahead when that one is done, or at their end.
 */
#ifndef HTTP_WRITE_AHEAD_H
#define HTTP_WRITE_AHEAD_H

#include <stdbool.h>

struct layer_draft;
struct request;
struct write_ahead;

/*
 * Call this before the body. NULL: the body is written at its end, because it is not a large layer or memory is short.
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
