/* parallel.h: loops that end early when a run is cancelled: over tasks, on the threads of a runtime, and in one thread. */
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

struct attn_spread_tasks {
    const attn_runtime *runtime;
    attn_task *task;
    void *argument;
};

static inline void attn_run_unless_cancelled(void *argument, size_t index, size_t worker)
{
    const struct attn_spread_tasks *spread = argument;
    if (!attn_is_cancelled(spread->runtime))
        spread->task(spread->argument, index, worker);
}

/*
 * Runs task(argument, index, worker) for every index below tasks. Each task asks first whether the run is cancelled,
 * and is skipped if so: then the results are incomplete, and the caller asks attn_is_cancelled before it uses them.
 */
static inline void attn_spread(const attn_runtime *runtime, size_t tasks, attn_task *task, void *argument)
{
    struct attn_spread_tasks spread = {.runtime = runtime, .task = task, .argument = argument};
    if (tasks > 0)
        runtime->run(runtime->context, tasks, attn_run_unless_cancelled, &spread);
}

/*
 * Work in one thread asks once per ATTN_PACE numbers that it reads. A number takes some nanoseconds, so two questions
 * are less than a millisecond apart. A row of a mask takes up to a microsecond, when its documents are searched.
 */
enum { ATTN_PACE = 1 << 16, ATTN_PACE_ROW = 64 };

struct attn_pace {
    const attn_runtime *watch; /* NULL: the work never stops */
    size_t numbers;            /* numbers since the last question */
};

static inline struct attn_pace attn_pace_begin(const attn_runtime *watch)
{
    return (struct attn_pace){.watch = watch};
}

/* Counts numbers that are read, or work that takes as long. True: the work must stop. */
static inline bool attn_pace_stops(struct attn_pace *pace, size_t numbers)
{
    pace->numbers += numbers;
    if (pace->numbers < ATTN_PACE)
        return false;
    pace->numbers = 0;
    return attn_is_stopped(pace->watch);
}

static inline attn_status attn_fail_stopped(attn_error *err)
{
    return attn_fail(err, ATTN_ERR_CANCELLED, NULL, "stopped before the end");
}

#endif
