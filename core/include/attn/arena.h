/*
 * arena.h: the memory of one request.
 *
 * Blocks come from a growing chain of chunks. They are freed together, when the arena is reset or destroyed. The limit
 * of an arena counts every byte taken from the system, so one request cannot take more.
 * An arena serves one thread at a time.
 */
#ifndef ATTN_ARENA_H
#define ATTN_ARENA_H

#include "attn/status.h"

ATTN_BEGIN_C

#define ATTN_ALIGNMENT 64 /* bytes: a cache line, and the widest vector */

typedef struct attn_arena attn_arena;

/* A place in an arena to go back to. */
typedef struct {
    void *chunk;
    size_t used;
    size_t total;
} attn_arena_mark;

/*
 * A limit in bytes that several arenas share. Safe from several threads. The first small chunk of an arena is not
 * counted, so that a request can always report that memory is used up. An eighth is reserved for arenas of at most
 * 256 KiB, so that large arenas leave room for small ones.
 *
 * A budget also caches blocks of finished arenas for new ones, until it is trimmed, or until an arena needs their bytes
 * of the limit. Together these spare blocks have at most attn_budget_spare_limit_bytes.
 */
typedef struct attn_budget attn_budget;
attn_budget *attn_budget_create(size_t limit_bytes);
/* Call it after all arenas of the budget are destroyed. NULL is fine. */
void attn_budget_destroy(attn_budget *budget);
/* The bytes that arenas have taken, without those of the spare blocks. */
size_t attn_budget_bytes(attn_budget *budget);
size_t attn_budget_spare_bytes(attn_budget *budget);
size_t attn_budget_limit_bytes(const attn_budget *budget);
/* The bytes that a large arena can still take, if the spare blocks are freed for them. */
size_t attn_budget_room_bytes(attn_budget *budget);
/*
 * The bytes of all arenas together with the block that was last refused because of the limit. 0: none was refused since
 * the last call.
 */
size_t attn_budget_refused_bytes(attn_budget *budget);
/* The most bytes that a budget with that limit keeps in spare blocks. */
size_t attn_budget_spare_limit_bytes(size_t limit_bytes);
/* Returns the spare blocks to the system. */
void attn_budget_trim(attn_budget *budget);

/* An empty arena that may take up to limit_bytes from the system; NULL without memory. */
attn_arena *attn_arena_create(size_t limit_bytes);
/* The same, within a budget that several arenas share; NULL: no budget. */
attn_arena *attn_arena_create_within(attn_budget *budget, size_t limit_bytes);
/* Another arena with the budget, the limit and the watch of the first. */
attn_arena *attn_arena_create_beside(const attn_arena *arena);
/* Returns all memory to the budget or the system. NULL is fine. */
void attn_arena_destroy(attn_arena *arena);
/* Forgets all blocks but keeps the memory for the next use. */
void attn_arena_reset(attn_arena *arena);

/*
 * count * size bytes, aligned to ATTN_ALIGNMENT, with undefined content. NULL when the product overflows, the limit
 * would be passed or the system has no memory; the arena is then unchanged. Zero bytes give a valid pointer.
 */
ATTN_MUST_CHECK void *attn_arena_take(attn_arena *arena, size_t count, size_t size);
/* The same, filled with zero bytes. */
ATTN_MUST_CHECK void *attn_arena_take_zeroed(attn_arena *arena, size_t count, size_t size);
/* A NUL-terminated copy of text[0 .. length). */
ATTN_MUST_CHECK char *attn_arena_copy_text(attn_arena *arena, const char *text, size_t length);

/* Marks the present state; release frees all blocks taken since (later chunks go back to the system). */
attn_arena_mark attn_arena_mark_here(const attn_arena *arena);
void attn_arena_release(attn_arena *arena, attn_arena_mark mark);

/* Bytes taken from the system: now, and the peak since creation. */
size_t attn_arena_bytes(const attn_arena *arena);
size_t attn_arena_peak_bytes(const attn_arena *arena);
size_t attn_arena_limit_bytes(const attn_arena *arena);
/* Whether the arena's own limit, rather than a lack of memory, has refused a block since the limit was set. */
bool attn_arena_hit_limit(const attn_arena *arena);
/* Sets another limit. Bytes that are taken already stay, even when they are more. */
void attn_arena_set_limit(attn_arena *arena, size_t limit_bytes);

/*
 * Sets the function that tells work without a runtime, such as reading and writing text, whether it is cancelled. A
 * computation asks its runtime instead (runtime.h); set both to the same function. NULL: the work is never cancelled.
 */
void attn_arena_watch(attn_arena *arena, bool (*is_cancelled)(void *cancel_context), void *cancel_context);
bool attn_arena_is_cancelled(const attn_arena *arena);

ATTN_END_C

#endif
