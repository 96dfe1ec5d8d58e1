/*
 * arena_blocks.c: free lists over an arena. Each block has a header that holds its size class. The header keeps the
 * alignment that malloc guarantees.
 */
#include "codec/picture/fonts/fonts.h"

#include <assert.h>
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

struct header {
    alignas(max_align_t) unsigned class;
};

enum { CLASS_BYTES_FIRST = ATTN_ALIGNMENT };

struct blocks blocks_begin(attn_arena *arena)
{
    return (struct blocks){.arena = arena};
}

static size_t class_bytes(unsigned class)
{
    return (size_t)CLASS_BYTES_FIRST << class;
}

static struct header *header_of(void *block)
{
    return (struct header *)block - 1;
}

static void *take_class(struct blocks *blocks, unsigned class)
{
    void *block = blocks->free_list[class];
    if (block != NULL) {
        memcpy(&blocks->free_list[class], block, sizeof(void *));
        return block;
    }
    struct header *header = attn_arena_take(blocks->arena, 1, class_bytes(class));
    if (header == NULL)
        return NULL;
    header->class = class;
    return header + 1;
}

void *blocks_take(struct blocks *blocks, size_t bytes)
{
    unsigned class = 0;
    while (class < BLOCKS_CLASSES && class_bytes(class) - sizeof(struct header) < bytes)
        class ++;
    void *block = class < BLOCKS_CLASSES ? take_class(blocks, class) : NULL;
    blocks->is_short = blocks->is_short || block == NULL;
    return block;
}

void *blocks_resize(struct blocks *blocks, void *block, size_t bytes)
{
    if (block == NULL)
        return blocks_take(blocks, bytes);
    size_t has = class_bytes(header_of(block)->class) - sizeof(struct header);
    if (bytes <= has)
        return block;
    void *larger = blocks_take(blocks, bytes);
    if (larger == NULL)
        return NULL;
    memcpy(larger, block, has);
    blocks_give(blocks, block);
    return larger;
}

void blocks_give(struct blocks *blocks, void *block)
{
    if (block == NULL)
        return;
    unsigned class = header_of(block)->class;
    assert(class < BLOCKS_CLASSES);
    memcpy(block, &blocks->free_list[class], sizeof(void *));
    blocks->free_list[class] = block;
}
