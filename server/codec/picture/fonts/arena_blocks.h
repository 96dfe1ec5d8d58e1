/*
 * arena_blocks.h: malloc, realloc and free over an arena, for libraries that free as they go (FreeType, libpng's zlib).
 *
 * Sizes are rounded up to a power of two. A freed block serves the next request of its size. The arena releases all
 * memory at its end. Like the arena, blocks serve one thread at a time.
 */
#ifndef CODEC_PICTURE_FONTS_ARENA_BLOCKS_H
#define CODEC_PICTURE_FONTS_ARENA_BLOCKS_H

#include "attn/arena.h"

enum { BLOCKS_CLASSES = 40 };

struct blocks {
    attn_arena *arena;
    void *free_list[BLOCKS_CLASSES]; /* free_list[class] holds blocks of 64 << class bytes */
    bool is_short;                   /* a block was refused, so a later failure means that memory is short */
};

struct blocks blocks_begin(attn_arena *arena);
/* Returns NULL without memory; then blocks->is_short is true. */
void *blocks_take(struct blocks *blocks, size_t bytes);
/* Copies the content into a block of another size. On NULL the old block stays valid. block may be NULL. */
void *blocks_resize(struct blocks *blocks, void *block, size_t bytes);
/* Frees a block. block may be NULL. */
void blocks_give(struct blocks *blocks, void *block);

#endif
