/*
 * block.c: the memory of one cache.
 *
 * The block has a run for each head of each batch item: first those of the keys, then those of the values. A run has
 * memory for room rows, and the first rows of it are kept ones.
 */
#include "service/cache/cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "codec/tensor/write.h"

enum { BATCH, HEADS, LENGTH, WIDTH, RANK };

static size_t heads_of(const attn_tensor *tensor)
{
    return tensor->shape[BATCH] * tensor->shape[HEADS];
}

static size_t row_bytes(const attn_tensor *tensor)
{
    return tensor->shape[WIDTH] * attn_dtype_bytes(tensor->dtype);
}

size_t cache_block_bytes(const attn_tensor *key, const attn_tensor *value, size_t room)
{
    const size_t position = heads_of(key) * (row_bytes(key) + row_bytes(value));
    return position > 0 && room > SIZE_MAX / position ? SIZE_MAX : position * room;
}

/* A view of length rows of each head, with the strides of that room. */
static attn_tensor view(char *data, const attn_tensor *shaped, size_t length, size_t room)
{
    const size_t *shape = shaped->shape;
    attn_tensor tensor =
        attn_tensor_view(data, shaped->dtype, RANK, (size_t[]){shape[BATCH], shape[HEADS], length, shape[WIDTH]});
    tensor.stride[HEADS] = (ptrdiff_t)(room * shape[WIDTH]);
    tensor.stride[BATCH] = (ptrdiff_t)shape[HEADS] * tensor.stride[HEADS];
    return tensor;
}

void cache_block_view(const struct cache_block *block, size_t length, attn_tensor *key, attn_tensor *value)
{
    char *data = block->key.data;
    assert(length <= block->room);
    *key = view(data, &block->key, length, block->room);
    *value =
        view(data + heads_of(&block->key) * row_bytes(&block->key) * block->room, &block->value, length, block->room);
}

/* Moves the rows of a run from where they lie with room old to where they belong with room new. */
static void move_run(const struct cache_block *block, size_t run, size_t old, size_t new)
{
    const size_t heads = heads_of(&block->key), length = block->key.shape[LENGTH];
    const size_t key_bytes = row_bytes(&block->key), value_bytes = row_bytes(&block->value);
    const size_t before = run < heads ? run * key_bytes : heads * key_bytes + (run - heads) * value_bytes;
    char *data = block->key.data;
    memmove(data + before * new, data + before * old, length * (run < heads ? key_bytes : value_bytes));
}

/* Runs move away from the beginning when the room grows: the last one first, so that none lands on one that waits. */
static void move_runs(const struct cache_block *block, size_t old, size_t new)
{
    const size_t runs = 2 * heads_of(&block->key);
    for (size_t i = 0; i < runs; i++)
        move_run(block, new > old ? runs - 1 - i : i, old, new);
}

bool cache_block_resize(struct cache_block *block, size_t room)
{
    const size_t old = block->room, bytes = cache_block_bytes(&block->key, &block->value, room);
    assert(room >= block->key.shape[LENGTH]);
    if (room < old)
        move_runs(block, old, room);
    char *data = realloc(block->key.data, bytes > 0 ? bytes : 1);
    if (data == NULL && room > old)
        return false;
    if (data != NULL) /* else a smaller block was refused, and the larger one serves */
        block->key.data = data;
    if (room > old)
        move_runs(block, old, room);
    block->room = room;
    cache_block_view(block, block->key.shape[LENGTH], &block->key, &block->value);
    return true;
}

bool cache_block_begin(struct cache_block *block, const attn_tensor *key, const attn_tensor *value, size_t room)
{
    struct cache_block new = {.key = view(NULL, key, 0, 0), .value = view(NULL, value, 0, 0)};
    if (!cache_block_resize(&new, room))
        return false;
    cache_block_free(block);
    *block = new;
    return true;
}

void cache_block_write(const attn_tensor *part, const attn_tensor *from, size_t first)
{
    const size_t length = part->shape[LENGTH], width = part->shape[WIDTH];
    const size_t bytes = attn_dtype_bytes(part->dtype);
    for (size_t head = 0; first < length && head < heads_of(part); head++) {
        const size_t at = (size_t)part->stride[HEADS] * head + first * width;
        tensor_gather((char *)part->data + at * bytes, from, (head * length + first) * width, (length - first) * width);
    }
}

void cache_block_free(struct cache_block *block)
{
    free(block->key.data);
    *block = (struct cache_block){.room = 0};
}
