/*
 * pace.h: how often work on a text checks the request's deadline: once per PACE_BYTES that it reads or writes.
 *
 * The slowest work here takes 20 MB/s, so at most 4 ms pass between two checks. A check reads a clock, which takes some
 * ten nanoseconds.
 */
#ifndef CODEC_BYTES_PACE_H
#define CODEC_BYTES_PACE_H

#include "attn/arena.h"
#include "attn/runtime.h"

enum { PACE_BYTES = 64 << 10 };

struct pace {
    const attn_arena *arena; /* the arena has the watch; NULL: the work never stops */
    size_t bytes;            /* bytes since the last check */
};

static inline struct pace pace_begin(const attn_arena *arena)
{
    return (struct pace){.arena = arena};
}

/* Whether work with that runtime must stop; NULL: it never stops. */
static inline bool pace_is_cancelled(const attn_runtime *runtime)
{
    return runtime != NULL && runtime->is_cancelled != NULL && runtime->is_cancelled(runtime->cancel_context);
}

/* Counts bytes of work. True: the work must stop. */
static inline bool pace_stops(struct pace *pace, size_t bytes)
{
    pace->bytes += bytes;
    if (pace->bytes < PACE_BYTES)
        return false;
    pace->bytes = 0;
    return pace->arena != NULL && attn_arena_is_cancelled(pace->arena);
}

#endif
