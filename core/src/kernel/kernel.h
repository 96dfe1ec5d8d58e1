/*
 * kernel.h: what a tile kernel computes, and the table entry by which it is chosen.
 *
 * A kernel is the same source (attend.inc.h) compiled for one instruction set, in float and in double. One call handles
 * one task: query rows of a head, or a few of several that share their keys, against all keys or a split of them.
 */
#ifndef ATTN_KERNEL_KERNEL_H
#define ATTN_KERNEL_KERNEL_H

#include "attention/distance_bias.h"
#include "attn/mask.h"
#include "attn/plan.h"
#include "attn/runtime.h"

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
    FEW_ROWS = 8,                    /* up to so many queries are computed without packing */
    SPLIT_KEYS = 4 * TILE_KEYS,      /* keys of a task for few queries: part of the result's bits too */
    CHUNK_ROWS_MAX = 22 * TILE_ROWS, /* query rows of a task: keys are packed once for all of them */
    PACK_BYTES = 1 << 20,            /* of packed keys at a time, and of packed values */
    LINEAR_INNER = 256,   /* features of a projection that are summed in a row: part of the result's bits as well */
    LINEAR_COLUMNS = 128, /* of a block of a projection, at the most */
    LINEAR_ROWS = 264,    /* the same */
    LINEAR_GROUP = 24,    /* a multiple of the rows of every register tile */
    LINEAR_SCRATCH = 32 * LINEAR_INNER + LINEAR_ROWS * (LINEAR_INNER + 16), /* numbers: a panel of weights, and rows */
};

/* The maps that a kernel can fill while it goes. */
enum { MAP_SCORES, MAP_SCALED, MAP_MASKED, MAP_ATTENTION, MAP_DROPPED, MAP_MEAN_SOURCE, MAP_COUNT };

/* A kept map: (batch, kept heads, kept queries, kept keys), row-major, of the compute type; data NULL: not wanted. */
struct attn_map {
    void *data;
    bool all_heads; /* keeps every head, whatever the selection of heads says */
};

/* (batch, heads, rows, features) with contiguous features; strides in elements. */
struct attn_operand {
    const void *data;
    ptrdiff_t batch_stride, head_stride, row_stride;
};

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
    bool few_rows;
    size_t heads_together; /* query heads of a task: 1 with many queries */
    size_t splits;         /* tasks of the keys */
    void *partials;
    size_t pack_keys; /* keys packed at a time: a multiple of TILE_KEYS */
    bool (*is_cancelled)(void *context);
    void *cancel_context;
};

/*
 * Task t of batch * heads * chunks, or batch * heads / heads_together * splits, with scratch of scratch_bytes, aligned
 * to ATTN_ALIGNMENT.
 */
typedef void attn_attend_task(const struct attn_heads_job *job, size_t t, void *scratch);

/*
 * One row of a tile of the backward pass: arrays of n numbers of the compute type, with room for whole vectors beyond,
 * whose content there does not matter.
 */
struct attn_gradient_row {
    size_t n;
    void *x;               /* q·k; becomes the weights as they meet v: after dropout, 0 where hidden */
    void *g;               /* dO·v; becomes the gradient of scale q·k, 0 where hidden */
    void *masked;          /* written: the gradient of the masked score; NULL: not wanted */
    const void *added;     /* to the score after softcap; NULL: nothing */
    const uint8_t *allow;  /* NULL: all */
    const uint8_t *keep;   /* dropout's decisions; NULL: all are kept */
    double scale, softcap; /* softcap 0: none */
    double lse, delta;     /* of the row */
    double gain;           /* of what dropout keeps */
};

/* Sums over the weights p of a row. */
struct attn_weight_row {
    float sum, moment, largest; /* of p, p ln p, p */
    size_t zeros;
};

/*
 * A block of y = x W + b, of the kernel's type: x (rows, inner), y (rows, columns), b (columns) or NULL; at most
 * LINEAR_ROWS by LINEAR_COLUMNS. Strides of rows in elements; of columns of W where the layout is out_in.
 */
struct attn_linear_block {
    const void *x, *w, *bias;
    const void *panels; /* of the columns of W, the kernel's own; NULL: w is read */
    void *y;
    size_t rows, columns, inner;
    size_t skip; /* columns of the first panel that come before those of the block */
    size_t x_stride, w_stride, y_stride;
    attn_layout layout;
};

/*
 * Features first … first + LINEAR_INNER of a block, first a multiple of that. To be called for each run of them in
 * order: the first writes y, the others add to it, the last adds b as well. A number of y is the same bits in whatever
 * block. scratch has LINEAR_SCRATCH numbers, aligned to ATTN_ALIGNMENT.
 */
typedef void attn_multiply(const struct attn_linear_block *block, size_t first, void *scratch);

/*
 * Writes a panel of at most panel_columns columns of W, for all features: data[feature][panel_columns], with 0 beyond
 * the last. Of the block only w, columns, inner, w_stride and layout matter.
 */
typedef void attn_pack_panel(const struct attn_linear_block *block, float *data);

struct attn_kernel {
    const char *name;
    attn_attend_task *attend_f32, *attend_f64;
    attn_attend_task *merge_f32,
        *merge_f64; /* few queries: after all tasks, for head t of batch * heads; same scratch */
    size_t (*scratch_f32)(const struct attn_heads_job *job);
    size_t (*scratch_f64)(const struct attn_heads_job *job);
    /* Few queries: bytes of job->partials. */
    size_t (*partials_f32)(const struct attn_heads_job *job);
    size_t (*partials_f64)(const struct attn_heads_job *job);
    void (*gradient_f32)(const struct attn_gradient_row *row);
    void (*gradient_f64)(const struct attn_gradient_row *row);
    void (*weigh_row)(const float *p, size_t n, struct attn_weight_row *row);
    attn_multiply *multiply_f32, *multiply_f64;
    attn_pack_panel *pack_f32;
    size_t panel_columns;                              /* of float */
    bool multiplies_f32_faster, multiplies_f64_faster; /* than the BLAS on the same CPU */
    /* With weights out_in, which the kernel would transpose, the BLAS multiplies up to so many rows. */
    size_t blas_up_to_rows_out_in;
    /* exp of n numbers in place, n a multiple of 64: the one inside the softmax, for the tests. */
    void (*exp_f32)(float *x, size_t n);
    void (*exp_f64)(double *x, size_t n);
};

extern const attn_kernel attn_kernel_portable;
#if defined(__x86_64__)
extern const attn_kernel attn_kernel_avx2, attn_kernel_avx512;
#elif defined(__aarch64__)
extern const attn_kernel attn_kernel_neon;
#endif

#endif
