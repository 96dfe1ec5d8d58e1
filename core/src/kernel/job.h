/*
 * job.h: attention over all heads as a kernel sees it, and how it is cut into tiles and tasks.
 */
#ifndef ATTN_KERNEL_JOB_H
#define ATTN_KERNEL_JOB_H

#include "attn/mask.h"
#include "attn/plan.h"

enum {
    TILE_ROWS = 48,  /* query rows of a tile: a multiple of the rows of every register tile */
    TILE_KEYS = 512, /* keys of a tile: partial sums are taken per tile, so this number is part of the result's bits */
    /*
     * A sum over keys is a sum of sums, because a sum of n numbers in a row can be off by n roundings: products of
     * SUM_KEYS keys, sums of those of RUN_KEYS, of those a tile (with many queries), and all of them with what rounding
     * leaves out. docs/accuracy.md derives its bound from these numbers.
     */
    SUM_KEYS = 16,
    RUN_KEYS = 64,
    DECODE_ROWS = 8,                 /* up to so many queries are computed without packing */
    SPLIT_KEYS = 4 * TILE_KEYS,      /* keys of a task for few queries: part of the result's bits too */
    CHUNK_ROWS_MAX = 22 * TILE_ROWS, /* query rows of a task: keys are packed once for all of them */
    PACK_BYTES = 1 << 20,            /* of packed keys at a time, and of packed values */
};

/* The maps that a kernel can fill while it goes. */
enum { MAP_SCORES, MAP_SCALED, MAP_MASKED, MAP_ATTENTION, MAP_DROPPED, MAP_MEAN_SOURCE, MAP_COUNT };

/* A kept map: (batch, kept heads, kept queries, kept keys), row-major, of the compute type; data NULL: not wanted. */
struct attn_map {
    void *data;
    bool all_heads; /* keeps every head, whatever the selection of heads says */
};

/*
 * Biases by distance: a vector for every head, and for every batch item where items have offsets of their own, of
 * q_len + kv_len - 1 numbers; data NULL: there is no such bias.
 */
struct attn_distance_bias {
    const void *data;                /* of the compute type */
    size_t item_stride, head_stride; /* in elements; item_stride 0: one for all items */
    size_t q_len;
};

/* Elements that may be read behind the last vector, so that the kernel adds whole registers. */
enum { DISTANCE_BIAS_SLACK = 64 };

/* Where the slice of query i starts: key j's number is at [attn_distance_bias_row + j] of data. */
static inline size_t attn_distance_bias_row(const struct attn_distance_bias *bias, size_t b, size_t h, size_t i)
{
    return b * bias->item_stride + h * bias->head_stride + bias->q_len - 1 - i;
}

/* (batch, heads, rows, features) with contiguous features; strides in elements. */
struct attn_operand {
    const void *data;
    ptrdiff_t batch_stride, head_stride, row_stride;
};

/* Where a row of an operand begins, in elements. */
static inline size_t attn_operand_at(const struct attn_operand *operand, size_t b, size_t h, size_t row)
{
    return (size_t)((ptrdiff_t)b * operand->batch_stride + (ptrdiff_t)h * operand->head_stride +
                    (ptrdiff_t)row * operand->row_stride);
}

/* Attention over all batch items and heads, as the kernels see it. Read-only while tasks run, but for what they fill.
 */
struct attn_heads_job {
    size_t batch, heads, kv_heads, q_len, kv_len, d_k, d_v;
    attn_dtype compute;
    struct attn_operand q, k, v;
    struct attn_operand context; /* written: (batch, heads, q_len, d_v) */
    const attn_mask *mask;
    double scale, softcap; /* softcap 0: none */
    struct attn_distance_bias distance_bias;
    const attn_tensor *sinks; /* (heads); NULL: none */
    double dropout;           /* p; 0: none */
    uint64_t dropout_seed;
    struct attn_map map[MAP_COUNT];
    /* Position among the kept, or SIZE_MAX; NULL: all are kept, in order. Kept counts are those of the maps. */
    const size_t *head_slot, *query_slot, *key_slot;
    size_t kept_heads, kept_queries, kept_keys;
    /* For scores and scaled: which keys any query of the head sees, and which queries see any. (batch, heads, …) */
    const uint8_t *key_is_seen, *query_sees;
    void *lse, *lse_keys, *entropy, *sink; /* (batch, heads, q_len); NULL: not wanted */
    uint8_t *row_is_empty;                 /* (batch, heads, q_len), written */
    double *task_max_abs; /* one per task, written: the largest finite |scaled score| that the mask let through */
    size_t *task_capped, *task_saturated; /* with a softcap: scores that the mask let through, and of them |s| >= 3 c */
    /* Many queries: a task is chunk_rows query rows of a head, and all its keys. */
    size_t chunk_rows, chunks; /* tasks of a head */
    /*
     * Few queries: a task is all query rows of some heads that share their keys, and SPLIT_KEYS of these. What it found
     * waits in partials for the merge.
     */
    bool is_decode;
    size_t heads_together; /* query heads of a task: 1 with many queries */
    size_t splits;         /* tasks of the keys */
    void *partials;
    size_t pack_keys; /* keys packed at a time: a multiple of TILE_KEYS */
    bool (*is_cancelled)(void *context);
    void *cancel_context;
};

#endif
