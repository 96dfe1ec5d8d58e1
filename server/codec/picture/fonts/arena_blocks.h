/*
 * arena_blocks.h: malloc, realloc and free over an arena, for libraries that free as they go (FreeType, libpng's zlib).
 *
 * Sizes are rounded up to a power of two; a freed block serves the next request of its size. All memory goes with the
 * arena. For one thread at a time, like the arena.
 */
#ifndef CODEC_PICTURE_FONTS_ARENA_BLOCKS_H
#define CODEC_PICTURE_FONTS_ARENA_BLOCKS_H

#include "attn/arena.h"

enum { BLOCKS_CLASSES = 40 };

struct blocks {
    attn_arena *arena;
    void *free_list[BLOCKS_CLASSES]; /* of blocks of 64 << class bytes */
    bool is_short;                   /* a block was refused, so a later failure means that memory was short */
};

struct blocks blocks_begin(attn_arena *arena);
/* NULL without memory, and then blocks->is_short is true. */
void *blocks_take(struct blocks *blocks, size_t bytes);
/* The same content in a block of another size; on NULL the old one stays. block may be NULL. */
void *blocks_resize(struct blocks *blocks, void *block, size_t bytes);
/* NULL is allowed. */
void blocks_give(struct blocks *blocks, void *block);

#endif
