/*
 * write_ahead.h: the file of a layer is written while its body is received.
 *
 * While an I/O thread has the body grow, a short job, ahead of all that waits, hands what is there to the keeper of
 * layers, which writes it into a file that has no name yet: so the disk is at work from the first megabytes on. The job
 * may outlive the connection: then it ends the request. If the body ends while it is at work, it goes on with the
 * request. One body at a time is written so, since a slow disk would take one compute thread for each; the others are
 * written when their turn or their end comes.
 */
#ifndef HTTP_WRITE_AHEAD_H
#define HTTP_WRITE_AHEAD_H

#include <stdbool.h>

struct layer_draft;
struct request;
struct write_ahead;

/* Before the body. NULL: it is none to be written as it comes, or there is no memory; it is written at its end then. */
struct write_ahead *write_ahead_begin(struct request *request);
/* The body has grown. */
void write_ahead_more(struct write_ahead *ahead);
/* The body is there, and its connection suspended. True: the job is still at work, and calls then when it is done. */
bool write_ahead_defers(struct write_ahead *ahead, void (*then)(void *request));
/* What was written. With no job at work. */
struct layer_draft *write_ahead_draft(struct write_ahead *ahead);
/* The request is at its end. True: the job is still at work, and frees the request when it is done. */
bool write_ahead_leave(struct write_ahead *ahead);

#endif
