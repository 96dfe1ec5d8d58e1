/*
 * parallel.h: a loop over tasks on the threads of a runtime. The loop ends early when the run is cancelled.
 */
#ifndef ATTN_BASE_PARALLEL_H
#define ATTN_BASE_PARALLEL_H

#include "attn/runtime.h"

static inline bool attn_is_cancelled(const attn_runtime *runtime)
{
    return runtime->is_cancelled != NULL && runtime->is_cancelled(runtime->cancel_context);
}

/* For work in one thread that may have no runtime: NULL is never cancelled. */
static inline bool attn_is_stopped(const attn_runtime *watch)
{
    return watch != NULL && attn_is_cancelled(watch);
}

/*
 * Runs task(argument, index, worker) for every index below tasks. Each task asks first whether the run is cancelled,
 * and is skipped if so: then the results are incomplete, and the caller asks attn_is_cancelled before it uses them.
 */
void attn_spread(const attn_runtime *runtime, size_t tasks, attn_task *task, void *argument);

#endif
