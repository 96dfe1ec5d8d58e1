/*
 * arena.c: the memory of one request: chunks from the system, which serve blocks front to back.
 *
 * Three lists hold the chunks. Blocks come from the head of `open`; a chunk with less room left than that head goes to
 * `full`; after a reset all chunks wait in `spare`. Each chunk stores how many chunks were in use when it joined. To go
 * back to a mark, the arena returns the chunks with a higher number.
 */
#include "attn/arena.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/budget.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef HAS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(start, bytes)   ((void)(start), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(start, bytes) ((void)(start), (void)(bytes))
#endif

/* Small at first, so that a small request stays small and a low ceiling still leaves room. */
enum { CHUNK_BYTES_FIRST = 16 << 10, CHUNK_BYTES_MAX = 64 << 10 };

enum { HUGE_PAGE_BYTES = 2 << 20 };

struct chunk {
    struct chunk *next;
    size_t capacity, used; /* bytes behind the header */
    size_t number;
    void *block;        /* the block of the system that contains the chunk */
    size_t block_bytes; /* of a block that may become a spare one; 0: it may not */
    size_t taken_bytes; /* from the budget */
};

enum { HEADER_BYTES = ATTN_ALIGNMENT };
_Static_assert(sizeof(struct chunk) <= HEADER_BYTES, "blocks start behind the header");

struct attn_arena {
    struct chunk *open, *full, *spare;
    size_t chunks; /* in open and full */
    size_t chunk_bytes;
    attn_budget *budget;
    bool hit_limit;
    bool (*is_cancelled)(void *cancel_context);
    void *cancel_context;
    size_t bytes, peak_bytes, limit_bytes; /* this record itself, one small malloc, is not counted */
};

attn_arena *attn_arena_create(size_t limit_bytes)
{
    return attn_arena_create_within(NULL, limit_bytes);
}

attn_arena *attn_arena_create_within(attn_budget *budget, size_t limit_bytes)
{
    attn_arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        return NULL;
    arena->budget = budget;
    arena->limit_bytes = limit_bytes;
    arena->chunk_bytes = CHUNK_BYTES_FIRST;
    return arena;
}

attn_arena *attn_arena_create_beside(const attn_arena *arena)
{
    attn_arena *beside = attn_arena_create_within(arena->budget, arena->limit_bytes);
    if (beside != NULL)
        attn_arena_watch(beside, arena->is_cancelled, arena->cancel_context);
    return beside;
}

static char *chunk_data(struct chunk *chunk)
{
    return (char *)chunk + HEADER_BYTES;
}

static void chunk_free(attn_arena *arena, struct chunk *chunk)
{
    ASAN_UNPOISON_MEMORY_REGION(chunk_data(chunk), chunk->capacity);
    arena->bytes -= HEADER_BYTES + chunk->capacity;
    void *block = chunk->block;
    const size_t block_bytes = chunk->block_bytes;
    if (block_bytes > 0 && attn_budget_keep_spare(arena->budget, block, block_bytes))
        return;
    const size_t taken_bytes = chunk->taken_bytes;
    free(block);
    attn_budget_give(arena->budget, taken_bytes);
}

static void list_free(attn_arena *arena, struct chunk **list)
{
    while (*list != NULL) {
        struct chunk *chunk = *list;
        *list = chunk->next;
        chunk_free(arena, chunk);
    }
}

void attn_arena_destroy(attn_arena *arena)
{
    if (arena == NULL)
        return;
    list_free(arena, &arena->open);
    list_free(arena, &arena->full);
    list_free(arena, &arena->spare);
    free(arena);
}

static void list_move_to_spare(attn_arena *arena, struct chunk **list)
{
    while (*list != NULL) {
        struct chunk *chunk = *list;
        *list = chunk->next;
        chunk->next = arena->spare;
        chunk->used = 0;
        arena->spare = chunk;
        ASAN_POISON_MEMORY_REGION(chunk_data(chunk), chunk->capacity);
    }
}

void attn_arena_reset(attn_arena *arena)
{
    list_move_to_spare(arena, &arena->open);
    list_move_to_spare(arena, &arena->full);
    arena->chunks = 0;
}

static size_t room(const struct chunk *chunk)
{
    return chunk == NULL ? 0 : chunk->capacity - chunk->used;
}

/* The smallest spare chunk with that capacity, unlinked; NULL when there is none. */
static struct chunk *take_spare(attn_arena *arena, size_t capacity)
{
    struct chunk **best = NULL;
    for (struct chunk **at = &arena->spare; *at != NULL; at = &(*at)->next) {
        if ((*at)->capacity >= capacity && (best == NULL || (*at)->capacity < (*best)->capacity))
            best = at;
    }
    if (best == NULL)
        return NULL;
    struct chunk *chunk = *best;
    *best = chunk->next;
    return chunk;
}

static size_t list_bytes(const struct chunk *list)
{
    size_t bytes = 0;
    for (; list != NULL; list = list->next)
        bytes += HEADER_BYTES + list->capacity;
    return bytes;
}

/* The size of a new chunk for a block of need bytes; 0 when not even the block alone fits within the limit. */
static size_t choose_chunk_bytes(const attn_arena *arena, size_t need)
{
    const size_t free_bytes = arena->limit_bytes > arena->bytes ? arena->limit_bytes - arena->bytes : 0;
    const size_t left = free_bytes / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
    if (left < HEADER_BYTES || left - HEADER_BYTES < need)
        return 0;
    /* A large block has a chunk of its own: in a shared one, it would leave too much of the previous chunk unused. */
    if (need > arena->chunk_bytes / 4)
        return need + HEADER_BYTES;
    return arena->chunk_bytes < left ? arena->chunk_bytes : left;
}

/*
 * The bytes of a block that are worth huge pages. If less than half of the last huge page is used, clearing it costs
 * more than using small pages.
 */
static size_t huge_bytes(size_t bytes)
{
    const size_t whole = bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    return bytes - whole < HUGE_PAGE_BYTES / 2 ? whole : bytes;
}

/*
 * Aligned memory from the system; *block is the pointer to free. A small block is aligned here, because posix_memalign
 * costs as much as ten mallocs: it splits a larger block and frees both ends. For a large block that cost is
 * negligible, and posix_memalign keeps its pages together.
 */
static struct chunk *take_block(size_t bytes, void **block)
{
    enum { MALLOC_ALIGNMENT = _Alignof(max_align_t) };
    const size_t alignment = bytes < HUGE_PAGE_BYTES ? ATTN_ALIGNMENT : HUGE_PAGE_BYTES;
    if (bytes > CHUNK_BYTES_MAX) /* not aligned_alloc, which may require a multiple of the alignment */
        return posix_memalign(block, alignment, bytes) == 0 ? *block : NULL;
    *block = malloc(bytes + ATTN_ALIGNMENT - MALLOC_ALIGNMENT);
    const uintptr_t at = (uintptr_t)*block, aligned = (at + ATTN_ALIGNMENT - 1) / ATTN_ALIGNMENT * ATTN_ALIGNMENT;
    return *block != NULL ? (void *)((char *)*block + (aligned - at)) : NULL;
}

/* Whether a block is too large for the heaps of the C library. */
static bool may_be_spare(size_t bytes)
{
    return bytes > CHUNK_BYTES_MAX;
}

static struct chunk *chunk_of_spare(attn_arena *arena, size_t bytes)
{
    size_t block_bytes = bytes;
    void *block = may_be_spare(bytes) ? attn_budget_take_spare(arena->budget, &block_bytes) : NULL;
    struct chunk *chunk = block;
    if (chunk != NULL)
        *chunk = (struct chunk){.block = block, .block_bytes = block_bytes, .taken_bytes = block_bytes};
    return chunk;
}

static struct chunk *chunk_of_system(attn_arena *arena, size_t bytes, bool is_small)
{
    /* Only a first small chunk can report that memory is used up. */
    const size_t taken_bytes = arena->bytes > 0 || bytes > CHUNK_BYTES_FIRST ? bytes : 0;
    if (!attn_budget_take(arena->budget, taken_bytes, is_small))
        return NULL;
    void *block = NULL;
    struct chunk *chunk = take_block(bytes, &block);
#ifdef MADV_HUGEPAGE
    if (chunk != NULL && bytes >= HUGE_PAGE_BYTES)
        (void)madvise(chunk, huge_bytes(bytes), MADV_HUGEPAGE);
#endif
    if (chunk == NULL)
        attn_budget_give(arena->budget, taken_bytes);
    else
        *chunk =
            (struct chunk){.block = block, .block_bytes = may_be_spare(bytes) ? bytes : 0, .taken_bytes = taken_bytes};
    return chunk;
}

static struct chunk *chunk_create(attn_arena *arena, size_t bytes)
{
    const bool is_small = arena->bytes + bytes <= BUDGET_SMALL_BYTES;
    struct chunk *chunk = chunk_of_spare(arena, bytes);
    if (chunk == NULL)
        chunk = chunk_of_system(arena, bytes, is_small);
    if (chunk != NULL)
        chunk->capacity = bytes - HEADER_BYTES;
    return chunk;
}

static struct chunk *new_chunk(attn_arena *arena, size_t need)
{
    size_t bytes = choose_chunk_bytes(arena, need);
    if (bytes == 0) {
        /* Spare chunks that are too small for this block count against the limit. Free them, but only if that helps. */
        size_t in_use = arena->bytes - list_bytes(arena->spare);
        attn_arena alone = {.limit_bytes = arena->limit_bytes, .bytes = in_use, .chunk_bytes = arena->chunk_bytes};
        bytes = choose_chunk_bytes(&alone, need);
        arena->hit_limit = arena->hit_limit || bytes == 0;
        if (bytes == 0)
            return NULL;
        list_free(arena, &arena->spare);
    }
    struct chunk *chunk = chunk_create(arena, bytes);
    if (chunk == NULL && arena->spare != NULL) {
        list_free(arena, &arena->spare); /* their bytes may be what the budget lacks */
        chunk = chunk_create(arena, bytes);
    }
    if (chunk == NULL)
        return NULL;
    ASAN_POISON_MEMORY_REGION(chunk_data(chunk), chunk->capacity);
    arena->bytes += bytes;
    if (arena->bytes > arena->peak_bytes)
        arena->peak_bytes = arena->bytes;
    if (bytes == arena->chunk_bytes && bytes < CHUNK_BYTES_MAX)
        arena->chunk_bytes = 2 * bytes;
    return chunk;
}

/* Takes need bytes from a chunk that was not in use. The next block comes from the chunk with more free bytes. */
static struct chunk *join_chunk(attn_arena *arena, size_t need)
{
    struct chunk *chunk = take_spare(arena, need);
    if (chunk == NULL)
        chunk = new_chunk(arena, need);
    if (chunk == NULL)
        return NULL;
    chunk->used = need;
    chunk->number = ++arena->chunks;
    struct chunk **list = room(chunk) > room(arena->open) ? &arena->open : &arena->full;
    chunk->next = *list;
    *list = chunk;
    return chunk;
}

void *attn_arena_take(attn_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - 2 * ATTN_ALIGNMENT) / size)
        return NULL;
    size_t wanted = count * size;
    size_t lines = wanted / ATTN_ALIGNMENT + (wanted % ATTN_ALIGNMENT != 0 || wanted == 0);
    size_t need = lines * ATTN_ALIGNMENT;
    struct chunk *chunk = arena->open;
    if (room(chunk) >= need)
        chunk->used += need;
    else
        chunk = join_chunk(arena, need);
    if (chunk == NULL)
        return NULL;
    char *block = chunk_data(chunk) + chunk->used - need;
    ASAN_UNPOISON_MEMORY_REGION(block, wanted);
    return block;
}

void *attn_arena_take_zeroed(attn_arena *arena, size_t count, size_t size)
{
    void *block = attn_arena_take(arena, count, size);
    if (block != NULL)
        memset(block, 0, count * size);
    return block;
}

char *attn_arena_copy_text(attn_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX)
        return NULL;
    char *copy = attn_arena_take(arena, length + 1, 1);
    if (copy == NULL)
        return NULL;
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

attn_arena_mark attn_arena_mark_here(const attn_arena *arena)
{
    struct chunk *open = arena->open;
    return (attn_arena_mark){.chunk = open, .used = open == NULL ? 0 : open->used, .total = arena->chunks};
}

static void list_free_later(attn_arena *arena, struct chunk **list, size_t number)
{
    while (*list != NULL && (*list)->number > number) {
        struct chunk *chunk = *list;
        *list = chunk->next;
        chunk_free(arena, chunk);
    }
}

void attn_arena_release(attn_arena *arena, attn_arena_mark mark)
{
    list_free_later(arena, &arena->open, mark.total);
    list_free_later(arena, &arena->full, mark.total);
    arena->chunks = mark.total;
    struct chunk *open = arena->open;
    assert(open == mark.chunk); /* else the mark is of another arena, or from before a reset */
    if (open == NULL)
        return;
    open->used = mark.used;
    ASAN_POISON_MEMORY_REGION(chunk_data(open) + open->used, room(open));
}

size_t attn_arena_bytes(const attn_arena *arena)
{
    return arena->bytes;
}

size_t attn_arena_peak_bytes(const attn_arena *arena)
{
    return arena->peak_bytes;
}

size_t attn_arena_limit_bytes(const attn_arena *arena)
{
    return arena->limit_bytes;
}

bool attn_arena_hit_limit(const attn_arena *arena)
{
    return arena->hit_limit;
}

void attn_arena_set_limit(attn_arena *arena, size_t limit_bytes)
{
    arena->limit_bytes = limit_bytes;
    arena->hit_limit = false;
}

void attn_arena_watch(attn_arena *arena, bool (*is_cancelled)(void *cancel_context), void *cancel_context)
{
    arena->is_cancelled = is_cancelled;
    arena->cancel_context = cancel_context;
}

bool attn_arena_is_cancelled(const attn_arena *arena)
{
    return arena->is_cancelled != NULL && arena->is_cancelled(arena->cancel_context);
}
