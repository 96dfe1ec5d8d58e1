/* reduce_map.h: one map to reduce, and its two reductions. Private to reduce*.c. */
#ifndef CODEC_ANSWER_REDUCE_MAP_H
#define CODEC_ANSWER_REDUCE_MAP_H

#include <assert.h>

#include "attn/arena.h"
#include "attn/multihead.h"
#include "codec/bytes/pace.h"

/* A map to reduce, and the selection of heads, rows and columns that it has. */
struct reduce_map {
    const attn_plan *plan;
    attn_selection heads, queries, keys; /* the selections; count 0: all */
    attn_step step;
    attn_tensor from, to;    /* the memory of to is taken already */
    const attn_arena *arena; /* its watch is asked while a row is read */
};

/* Loads an element of a map of float32, float64 or bool. */
static inline double reduce_load(const attn_tensor *tensor, ptrdiff_t at)
{
    if (tensor->dtype == ATTN_F32)
        return (double)((const float *)tensor->data)[at];
    return tensor->dtype == ATTN_F64 ? ((const double *)tensor->data)[at] : ((const uint8_t *)tensor->data)[at];
}

static inline void reduce_store(const attn_tensor *tensor, ptrdiff_t at, double value)
{
    if (tensor->dtype == ATTN_F32)
        ((float *)tensor->data)[at] = (float)value;
    else if (tensor->dtype == ATTN_F64)
        ((double *)tensor->data)[at] = value;
    else
        ((uint8_t *)tensor->data)[at] = value != 0;
}

/* The numbers of a row of a float32 map that begins at row; NULL when they do not lie side by side, or are no floats. */
static inline const float *reduce_floats(const attn_tensor *tensor, ptrdiff_t row)
{
    assert(tensor->data != NULL);
    const bool is_plain = tensor->dtype == ATTN_F32 && tensor->stride[tensor->rank - 1] == 1;
    return is_plain ? (const float *)tensor->data + row : NULL;
}

/* Each function fills map->to. It stops early when the runtime asks for it. */
void reduce_pool(const struct reduce_map *map, bool is_mean, const attn_runtime *runtime);
/* indices is an int64 tensor of the shape of map->to. */
attn_status reduce_top_k(const struct reduce_map *map, const attn_tensor *indices, const attn_runtime *runtime,
                         attn_arena *arena, attn_error *err);

#endif
