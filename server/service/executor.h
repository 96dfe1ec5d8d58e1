/*
 * executor.h: the bounded queue between the I/O threads and the compute threads.
 *
 * An I/O thread submits a job and goes on; a compute thread runs it. At most queue_limit jobs wait: one more is refused
 * at once, so that a client learns within milliseconds that the server is full instead of waiting for a time-out.
 */
#ifndef SERVICE_EXECUTOR_H
#define SERVICE_EXECUTOR_H

#include "attn/runtime.h"

struct executor;

/*
 * Jobs of a higher priority are taken first, and jobs of one priority in the order in which they came. No priority
 * starves: while all three wait, five of eight jobs taken are high, two normal and one low. Low jobs may fill half of
 * the queue only.
 */
typedef enum { EXECUTOR_HIGH, EXECUTOR_NORMAL, EXECUTOR_LOW, EXECUTOR_PRIORITIES } executor_priority;

/* Returns NULL without memory or threads. kernel NULL: the best kernel. */
struct executor *executor_create(size_t threads, size_t queue_limit, const attn_kernel *kernel);
/* Finishes every accepted job, then ends the threads. executor may be NULL. */
void executor_destroy(struct executor *executor);
/* Returns false when the queue is full, and without memory; job will not run then. */
ATTN_MUST_CHECK bool executor_submit(struct executor *executor, executor_priority priority, void (*job)(void *argument),
                                     void *argument);
/*
 * Submits a continuation: a short job that goes on with the work of an accepted one. It is never refused because the
 * queue is full, and counts as running but not as waiting. Continuations are taken in order, before jobs, with one job
 * between two of them. False without memory: job will not run.
 */
ATTN_MUST_CHECK bool executor_continue(struct executor *executor, void (*job)(void *argument), void *argument);
/* Seconds after which a refused client may try again: accepted jobs, times the time per job, divided by the threads. */
unsigned executor_retry_after_s(struct executor *executor);
/* Whether one more job of that priority would be refused now. */
bool executor_is_full(struct executor *executor, executor_priority priority);
size_t executor_queue_limit(const struct executor *executor);
size_t executor_threads(const struct executor *executor);
size_t executor_waiting(struct executor *executor);
size_t executor_running(struct executor *executor);
/* The runtime that a job computes with. */
attn_runtime executor_runtime(const struct executor *executor);

#endif
