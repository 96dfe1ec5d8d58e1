/*
 * pace.h: how often work in one thread asks whether its request was cancelled: once per ATTN_PACE numbers that it
 * reads.
 */
#ifndef ATTN_BASE_PACE_H
#define ATTN_BASE_PACE_H

#include "attn/status.h"
#include "base/parallel.h"

/*
 * A number takes some nanoseconds, so two questions are less than a millisecond apart. A row of a mask takes up to a
 * microsecond, when its documents are searched.
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
