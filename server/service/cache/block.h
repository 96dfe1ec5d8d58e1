/*
 * block.h: the memory of one cache: keys and values in one block, each head with room for rows to come.
 *
 * The rows of a head are contiguous, as the kernels read them, and behind them is the room of the head. So a step writes
 * its new rows behind the past ones, and nothing moves until the room is full.
 */
#ifndef SERVICE_CACHE_BLOCK_H
#define SERVICE_CACHE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "attn/tensor.h"

/* Begins as zero: no memory. */
struct cache_block {
    attn_tensor key, value; /* (batch, kv_heads, length, d): the rows, where they lie; data NULL: no memory */
    size_t room;            /* how many rows a head has memory for */
};

/* The bytes of room rows per head in the shapes of key and value. SIZE_MAX when they do not fit a size_t. */
size_t cache_block_bytes(const attn_tensor *key, const attn_tensor *value, size_t room);

/*
 * Changes the room to at least the length, and keeps the rows. The block may move: no pointer into it is valid
 * afterwards. It grows in place rather than into a second block, because two at a time would take bytes that are not
 * reserved. Returns false without memory, and the block is as it was.
 */
bool cache_block_resize(struct cache_block *block, size_t room);

/*
 * Gives an empty block another shape and room: (batch, kv_heads, 0, d) of the type, batch, heads and widths of key and
 * value. Returns false without memory.
 */
bool cache_block_begin(struct cache_block *block, const attn_tensor *key, const attn_tensor *value, size_t room);

/* The first length rows of each head as *key and *value, where they lie. The room has at least as many. */
void cache_block_view(const struct cache_block *block, size_t length, attn_tensor *key, attn_tensor *value);

/* Copies the rows from first on of a tensor that is shaped like part into part, a view of the block. */
void cache_block_write(const attn_tensor *part, const attn_tensor *from, size_t first);

void cache_block_free(struct cache_block *block);

#endif
