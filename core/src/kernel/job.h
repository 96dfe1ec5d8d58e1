/*
 * job.h: attention over all heads as a kernel sees it, and how it is cut into tiles and tasks.
 */
#ifndef ATTN_KERNEL_JOB_H
#define ATTN_KERNEL_JOB_H

#include "attn/plan.h"
#include "base/number.h"
#include "mask/resolved.h"

enum {
    TILE_ROWS = 48,  /* query rows per tile: a multiple of the rows of every register tile */
    TILE_KEYS = 512, /* keys per tile: partial sums are taken per tile, so the bits of a result depend on it */
    /*
     * A sum over keys is a sum of sums, because a plain sum of n numbers can be off by n roundings. The levels are:
     * SUM_KEYS products (with few queries), RUN_KEYS keys, a tile (with many queries), and all keys by compensated
     * summation.
     * docs/accuracy.md derives its bound from these numbers.
     */
    SUM_KEYS = 16,
    RUN_KEYS = 64,
    DECODE_ROWS = 8,                 /* up to this many queries are computed without packing: decoding */
    SPLIT_KEYS = 4 * TILE_KEYS,      /* keys per task in decoding: the bits of a result depend on it too */
    CHUNK_ROWS_MAX = 22 * TILE_ROWS, /* query rows per task: keys are packed once for all of them */
    PACK_BYTES = 1 << 18,            /* limit of the packed keys, and of the packed values: both stay in L2 */
};

/* The maps that a kernel can write while it computes. */
enum { MAP_SCORES, MAP_SCALED, MAP_MASKED, MAP_ATTENTION, MAP_DROPPED, MAP_MEAN_SOURCE, MAP_COUNT };

/* A kept map: (batch, kept heads, kept queries, kept keys), row-major, of the compute type; data NULL: not wanted. */
struct attn_map {
    void *data;
    bool all_heads; /* keeps every head: the selection of heads does not apply */
};

/*
 * Biases by distance: a vector of q_len + kv_len - 1 numbers per head. Batch items with offsets of their own have
 * vectors of their own. data NULL: there is no such bias.
 */
struct attn_distance_bias {
    const void *data;                /* of the compute type */
    size_t item_stride, head_stride; /* in elements; item_stride 0: one for all items */
    size_t q_len;
};

/* Elements behind the last vector that the kernel may read, because it adds whole registers. */
enum { DISTANCE_BIAS_SLACK = 64 };

/* Where the slice of query i starts: the bias of key j is at [attn_distance_bias_row + j] of data. */
static inline size_t attn_distance_bias_row(const struct attn_distance_bias *bias, size_t b, size_t h, size_t i)
{
    return b * bias->item_stride + h * bias->head_stride + bias->q_len - 1 - i;
}

/*
 * What relative positions add to the score of query i and key j of a head, before scale:
 *
 *     of_queries[i][c] + of_keys[j][c],      c = columns[q_len - 1 - i + j]
 *
 * of_queries is (batch, heads, q_len, width), of_keys (batch, heads, kv_len, width), of the compute type; NULL: there is
 * no such term. Batch items with offsets of their own have columns of their own. columns NULL: there is no term.
 */
struct attn_relative_scores {
    const void *of_queries, *of_keys;
    const uint32_t *columns;
    size_t item_stride, width; /* item_stride 0: one for all items */
};

/* (batch, heads, rows, features) with contiguous features; strides in elements. */
struct attn_operand {
    const void *data;
    attn_dtype dtype;
    ptrdiff_t batch_stride, head_stride, row_stride;
};

/* Where a row of an operand begins, in elements. */
static inline size_t attn_operand_at(const struct attn_operand *operand, size_t b, size_t h, size_t row)
{
    return (size_t)((ptrdiff_t)b * operand->batch_stride + (ptrdiff_t)h * operand->head_stride +
                    (ptrdiff_t)row * operand->row_stride);
}

/* The features of one row: of the compute type, or of 16 bits where that is float32. */
struct attn_vector {
    const void *data;
    attn_dtype dtype;
};

static inline struct attn_vector attn_operand_row(const struct attn_operand *operand, size_t b, size_t h, size_t row)
{
    const size_t at = attn_operand_at(operand, b, h, row) * attn_dtype_bytes(operand->dtype);
    return (struct attn_vector){(const char *)operand->data + at, operand->dtype};
}

/* Copies count numbers, converted to the compute type. */
static inline void attn_vector_read(struct attn_vector from, attn_dtype compute, size_t count, void *to)
{
    if (from.dtype == compute)
        memcpy(to, from.data, count * attn_dtype_bytes(compute));
    else
        for (size_t n = 0; n < count; n++)
            attn_number_put(to, compute, n, attn_number_get(from.data, from.dtype, n));
}

/* Keys or values in two segments: rows of the cache, which are read where they lie, and behind them the added rows. */
struct attn_keys {
    size_t past_len; /* 0: there is no cache */
    struct attn_operand past, added;
    bool is_shared; /* two neighbouring key heads read one head of these: values of differential attention */
};

/* The head of keys or values that a key head reads. */
static inline size_t attn_keys_head(const struct attn_keys *keys, size_t kv_head)
{
    return keys->is_shared ? kv_head / 2 : kv_head;
}

/* Row j of all, which begin with the cache. */
static inline struct attn_vector attn_keys_row(const struct attn_keys *keys, size_t b, size_t kv_head, size_t j)
{
    const size_t h = attn_keys_head(keys, kv_head);
    return j < keys->past_len ? attn_operand_row(&keys->past, b, h, j)
                              : attn_operand_row(&keys->added, b, h, j - keys->past_len);
}

/* Attention over all batch items and heads, as the kernels see it. Tasks write the results and read all else. */
struct attn_heads_job {
    size_t batch, heads, kv_heads, q_len, kv_len, d_k, d_v;
    attn_dtype compute;
    bool bf16_products; /* q, k, v and weights are rounded to bfloat16 for the products */
    struct attn_operand q;
    struct attn_keys k, v;
    bool gathers;                /* keys or values are in two segments, or of 16 bits */
    struct attn_operand context; /* written: (batch, heads, q_len, d_v) */
    const attn_mask *mask;
    const attn_options *options; /* of the request, read for the cap, the sinks and the seed of dropout */
    double scale;
    struct attn_relative_scores relative;
    struct attn_distance_bias distance_bias;
    double dropout; /* p; 0: none */
    struct attn_map map[MAP_COUNT];
    /* Position among the kept ones, or SIZE_MAX; NULL: all are kept, in order. The counts are dimensions of maps. */
    const size_t *head_slot, *query_slot, *key_slot;
    size_t kept_heads, kept_queries, kept_keys;
    /* For scores and scaled: which keys any query of the head sees, which queries see any key. (batch, heads, …) */
    const uint8_t *key_is_seen, *query_sees;
    void *lse, *lse_keys, *entropy, *sink; /* (batch, heads, q_len); NULL: not wanted */
    void *present_state;                   /* of a recurrence: (batch, kv_heads, d_k, d_v); NULL: not wanted */
    uint8_t *row_is_empty;                 /* (batch, heads, q_len), written */
    double *task_max_abs; /* one per task, written: the largest finite |scaled score| of a key that is not hidden */
    size_t *task_capped, *task_saturated; /* with a cap c: scores that are not hidden, and of them |s| >= 3 c */
    /* Many queries: a task is chunk_rows query rows of a head, and all its keys. */
    size_t chunk_rows, chunks; /* chunks: tasks per head */
    /*
     * Few queries, which is decoding: a task is all query rows of some heads that share their keys, against SPLIT_KEYS
     * of these keys (split-KV). Its partial results are in partials until the merge.
     */
    bool is_decode;
    size_t heads_together; /* query heads per task: 1 with many queries */
    size_t splits;         /* tasks into which the keys are split */
    void *partials;
    size_t pack_keys; /* keys that are packed at a time: a multiple of TILE_KEYS */
    bool (*is_cancelled)(void *context);
    void *cancel_context;
    size_t threads; /* that share the tasks: prefetching guesses the next task of a thread from it */
};

#endif
