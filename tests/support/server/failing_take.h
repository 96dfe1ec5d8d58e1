/*
 * failing_take.h: refuses a chosen block of an arena although there is memory for it. A low limit refuses that block
 * and all later ones. This refuses only that block, so that the code itself must notice the failure.
 *
 * A program includes it once, and is linked with TAKES_CAN_FAIL (Makefile), which sends its calls here.
 */
#ifndef TESTS_FAILING_TAKE_H
#define TESTS_FAILING_TAKE_H

#include <stdint.h>

#include "attn/arena.h"

static size_t takes_left = SIZE_MAX; /* that are granted before one is refused; SIZE_MAX: all are */

static inline bool take_fails(void)
{
    if (takes_left == SIZE_MAX)
        return false;
    return takes_left-- == 0; /* and SIZE_MAX after that */
}

/* From now on, grants all blocks except number n, counted from 0. */
static inline void fail_take(size_t n)
{
    takes_left = n;
}

/* Grants all blocks again; returns whether one was refused. */
static inline bool take_has_failed(void)
{
    const bool has_failed = takes_left == SIZE_MAX;
    takes_left = SIZE_MAX;
    return has_failed;
}

void *__real_attn_arena_take(attn_arena *arena, size_t count, size_t size);
void *__real_attn_arena_take_zeroed(attn_arena *arena, size_t count, size_t size);
char *__real_attn_arena_copy_text(attn_arena *arena, const char *text, size_t length);
attn_arena *__real_attn_arena_create_within(attn_budget *budget, size_t limit_bytes);
void *__wrap_attn_arena_take(attn_arena *arena, size_t count, size_t size);
void *__wrap_attn_arena_take_zeroed(attn_arena *arena, size_t count, size_t size);
char *__wrap_attn_arena_copy_text(attn_arena *arena, const char *text, size_t length);
attn_arena *__wrap_attn_arena_create_within(attn_budget *budget, size_t limit_bytes);

void *__wrap_attn_arena_take(attn_arena *arena, size_t count, size_t size)
{
    return take_fails() ? NULL : __real_attn_arena_take(arena, count, size);
}

void *__wrap_attn_arena_take_zeroed(attn_arena *arena, size_t count, size_t size)
{
    return take_fails() ? NULL : __real_attn_arena_take_zeroed(arena, count, size);
}

char *__wrap_attn_arena_copy_text(attn_arena *arena, const char *text, size_t length)
{
    return take_fails() ? NULL : __real_attn_arena_copy_text(arena, text, length);
}

attn_arena *__wrap_attn_arena_create_within(attn_budget *budget, size_t limit_bytes)
{
    return take_fails() ? NULL : __real_attn_arena_create_within(budget, limit_bytes);
}

#endif
