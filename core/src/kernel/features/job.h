/*
 * job.h: linear attention and performer over all heads, as the kernels see them.
 */
#ifndef ATTN_KERNEL_FEATURES_JOB_H
#define ATTN_KERNEL_FEATURES_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/job.h"

enum {
    FEATURE_TILE = TILE_ROWS, /* keys whose features are computed together: a triangle with a tile of queries */
    FEATURE_SPLIT =
        10 * FEATURE_TILE, /* keys that a task sums: a block, or a block a tile if queries end at different keys */
    FEATURE_ROW_UNIT = 24, /* a multiple of the rows of every register tile */
    FEATURE_QUERIES = 4 * TILE_ROWS, /* queries per task */
    FEATURE_SLICE = 1024,            /* numbers of the sums per task of prefix sums */
    FEATURE_TASKS = 64,              /* tasks of queries of the key heads that share a pass over the stages, at most */
};

/* The keys of a batch item. The bits of a result depend on its blocks. */
struct attn_feature_item {
    size_t end, first_seen;    /* keys before end are read; the first of them that padding does not hide */
    size_t block_keys, blocks; /* blocks of sums */
};

/* Attention by feature maps over all heads, as the kernels see it. Numbers are of the compute type. */
struct attn_feature_job {
    const struct attn_heads_job *heads;
    const attn_mechanism *mechanism;
    const struct attn_feature_item *item; /* (batch) */
    bool is_running;                      /* the mask is a range from key 0 for every query, and padding */
    size_t m, m_padded;                   /* features of phi; to FEATURE_ROW_UNIT */
    size_t columns, q_stride, phi_stride; /* d_v, d_k and m, padded */
    size_t tiles, blocks, sums_stride;    /* of FEATURE_TILE keys; blocks and their numbers of an item, at most */
    size_t first_head, heads_together;    /* the key heads of a pass, counted over all items */
    size_t first_key, end_key;            /* its keys: all, or some of one split */
    size_t first_query, end_query;        /* its queries */
    size_t kept_tiles, kept_blocks, kept_totals; /* all of a head, or as many as the queries of a pass look back at */
    const uint8_t *is_seen; /* (batch, kv_heads, kv_len): whether any query may attend to the key; NULL: all are read */
    const void *projection; /* performer: (m_padded, d_k), times sqrt(|scale|) */
    void *projection_transposed; /* the same for queries: (d_k, phi_stride) */
    void *phi;                   /* (heads_together, kept_tiles, m_padded, FEATURE_TILE); NULL: features are not kept */
    void *largest;               /* performer: (batch, kv_heads, tiles): the largest number of a tile */
    void *sums;   /* is_running: (heads_together, kept_blocks, sums_stride): of a split up to each block */
    void *totals; /* is_running: (heads_together, kept_totals, sums_stride): of all splits up to each */
    void *prefix; /* is_running: (heads_together, 2, sums_stride): the last of these, and what rounding left out */
};

/* Which keys a tile of TILE_ROWS queries takes one by one: from … to. The keys before them are whole blocks of sums. */
struct attn_feature_reach {
    size_t blocks, from, to;
    bool is_finite; /* phi and dS of the queries */
};

enum { FEATURE_SLOT_TILES = 20 /* tiles of queries that are summed together where all of them end at the same key */ };

/*
 * The backward pass of the same (kernel/features/gradients.inc.h has the equations). Numbers are of the compute
 * type; a tile has whole TILE_ROWS queries or FEATURE_TILE keys.
 */
struct attn_feature_gradients {
    const struct attn_feature_job *job;
    struct attn_operand grad_context, grad_q;     /* grad_q and those below: data NULL if not wanted */
    struct attn_operand grad_k, grad_v;           /* of the new keys, */
    struct attn_operand grad_past_k, grad_past_v; /* and of past_len cached keys before them */
    size_t past_len;
    size_t q_tiles, slots;                    /* tiles of queries of a head; sums of queries of a key head, at most */
    size_t m_stride, x_stride, width_stride;  /* m, d_k and d_v + 1 in whole vectors */
    size_t sums_stride;                       /* (width_stride, m_stride) */
    void *projection, *projection_transposed; /* performer: (m, x_stride) and (d_k, m_stride), times sqrt(|scale|) */
    void *phi_k;                              /* (batch, kv_heads, tiles, FEATURE_TILE, m_stride) */
    uint8_t *phi_is_finite;                   /* (batch, kv_heads, tiles) */
    void *phi_q;                              /* (batch, heads, q_tiles, TILE_ROWS, job->phi_stride) */
    void *grad_sums;                          /* (batch, heads, q_tiles, TILE_ROWS, width_stride): dS */
    struct attn_feature_reach *reach;         /* (batch, heads, q_tiles) */
    void *key_sums, *query_sums; /* is_running: (batch, kv_heads, blocks or slots, sums_stride): S^T, R^T */
    size_t *largest_at;          /* performer: (batch, kv_heads, tiles): where job->largest is */
    double *largest_parts;       /* performer: (batch, kv_heads, tiles): the gradient of the largest */
    double *query_scale, *key_scale, *largest_scale; /* of the scale: each task of queries, of keys, each key head */
};

#endif
