/*
 * arena.h: memory that lives and dies with one request.
 *
 * Blocks come from a growing chain of chunks and are never freed one by one: all go when the arena is reset or
 * destroyed. The ceiling given at birth counts every byte taken from the system, so one request cannot take more.
 * An arena serves one thread at a time.
 */
#ifndef ATTN_ARENA_H
#define ATTN_ARENA_H

#include "attn/status.h"

#define ATTN_ALIGNMENT 64 /* bytes: a cache line, and the widest vector */

typedef struct attn_arena attn_arena;

/* A place in an arena to go back to. */
typedef struct {
    void *chunk;
    size_t used;
    size_t total;
} attn_arena_mark;

/*
 * A number of bytes that several arenas share, so that together they cannot take more. Safe from several threads. The
 * first small chunk of an arena is not counted: it is there to say that there is no more. An eighth is left for
 * arenas of at most 256 KiB, so that large ones cannot shut out all others.
 *
 * Beside what it counts, a budget keeps blocks that arenas gave up for those that come, until it is trimmed: at most
 * attn_budget_spare_limit_bytes.
 */
typedef struct attn_budget attn_budget;
attn_budget *attn_budget_create(size_t limit_bytes);
/* After the last of its arenas. NULL is fine. */
void attn_budget_destroy(attn_budget *budget);
size_t attn_budget_bytes(const attn_budget *budget);
size_t attn_budget_limit_bytes(const attn_budget *budget);
/* What a budget of that limit may keep beside it. */
size_t attn_budget_spare_limit_bytes(size_t limit_bytes);
/* Gives the blocks that are kept back to the system. */
void attn_budget_trim(attn_budget *budget);

/* An empty arena that may take up to limit_bytes from the system; NULL without memory. */
attn_arena *attn_arena_create(size_t limit_bytes);
/* The same, within a budget that it shares with others; NULL: none. */
attn_arena *attn_arena_create_within(attn_budget *budget, size_t limit_bytes);
/* Gives everything back. NULL is fine. */
void attn_arena_destroy(attn_arena *arena);
/* Forgets all blocks but keeps the memory for the next use. */
void attn_arena_reset(attn_arena *arena);

/*
 * count * size bytes, aligned to ATTN_ALIGNMENT, with undefined content. NULL when the product overflows, the ceiling
 * would be passed or the system has none; the arena is then as before. Zero bytes give a valid pointer.
 */
ATTN_MUST_CHECK void *attn_arena_take(attn_arena *arena, size_t count, size_t size);
/* The same, filled with zero bytes. */
ATTN_MUST_CHECK void *attn_arena_take_zeroed(attn_arena *arena, size_t count, size_t size);
/* A NUL-terminated copy of text[0 .. length). */
ATTN_MUST_CHECK char *attn_arena_copy_text(attn_arena *arena, const char *text, size_t length);

/* Marks the present state; release frees all blocks taken since (later chunks go back to the system). */
attn_arena_mark attn_arena_mark_here(const attn_arena *arena);
void attn_arena_release(attn_arena *arena, attn_arena_mark mark);

/* Bytes taken from the system now, and at most since creation. */
size_t attn_arena_bytes(const attn_arena *arena);
size_t attn_arena_peak_bytes(const attn_arena *arena);
size_t attn_arena_limit_bytes(const attn_arena *arena);
/* Whether a block was refused because of the arena's own ceiling, rather than for want of memory, since the ceiling
 * was set. */
bool attn_arena_hit_limit(const attn_arena *arena);
/* Sets another ceiling. Bytes that are taken already stay, also when they are more than that. */
void attn_arena_set_limit(attn_arena *arena, size_t limit_bytes);

/*
 * Work that fills an arena, such as reading and writing texts, looks here at whether it is still wanted, as a
 * computation looks at its runtime (runtime.h): set both to the same function. NULL: the work is wanted for ever.
 */
void attn_arena_watch(attn_arena *arena, bool (*is_cancelled)(void *cancel_context), void *cancel_context);
bool attn_arena_is_cancelled(const attn_arena *arena);

#endif
