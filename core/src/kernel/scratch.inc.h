/*
 * scratch.inc.h: the state of one task of attention: its range of the job and its scratch memory. Part of a kernel.
 */
#ifndef ATTN_KERNEL_SCRATCH_INC_H
#define ATTN_KERNEL_SCRATCH_INC_H

#include <assert.h>

#include "attn/arena.h"
#include "attn/mask.h"
#include "base/size.h"
#include "kernel/job.h"
#include "kernel/vector/operations.inc.h"
#include "kernel/vector/widen.inc.h"

enum {
    REGISTER_VECTORS = 2,             /* per row of a register tile */
    PANEL = REGISTER_VECTORS * LANES, /* columns of a register tile */
    PANELS = TILE_KEYS / PANEL,       /* per tile */
    /* rows whose softmax is computed together, rounded up to whole vectors */
    SOFTMAX_ROWS = ((REGISTER_ROWS > DECODE_ROWS ? REGISTER_ROWS : DECODE_ROWS) + LANES - 1) / LANES * LANES,
    DECODE_TILE_ROWS = VECTOR_BYTES == 64 ? 4 : 2, /* in decoding: rows that share each loaded value */
    TILE_STRIDE = TILE_KEYS + LANES,               /* of score rows: not a power of two, to avoid cache aliasing */
    HELD_KEYS = 4 * TILE_KEYS,                     /* rows of at most so many keys wait in scratch.s, see holds_rows */
    STREAM_BYTES = 1 << 23,                        /* maps from this size on do not wait in a cache for their reader */
};
static_assert(TILE_ROWS % REGISTER_ROWS == 0 && TILE_KEYS % (2 * LANES) == 0, "tiles are whole register tiles");
static_assert(TILE_KEYS % RUN_KEYS == 0 && RUN_KEYS % (2 * LANES) == 0, "runs of keys are whole panels");
static_assert(RUN_KEYS % SUM_KEYS == 0, "a run is whole sums");

/* ---- the keys or the values of one head, in the cache and behind it ---- */

/* Rows of one head, of the kernel's type or of 16 bits; stride is in elements. */
struct rows {
    const void *data;
    ptrdiff_t stride;
    attn_dtype dtype;
};

/* Rows 0 … past_len are in the cache; the added rows follow. */
struct head_rows {
    size_t past_len;
    struct rows past, added;
};

/* The address of a row. */
static inline const void *row_at(const struct rows *rows, ptrdiff_t row)
{
    return (const char *)rows->data + row * rows->stride * (ptrdiff_t)bytes_of(rows->dtype);
}

/* NULL where there is no cache. */
static struct rows rows_of_operand(const struct attn_operand *operand, size_t b, size_t h)
{
    return (struct rows){.data = operand->data == NULL ? NULL : attn_operand_row(operand, b, h, 0).data,
                         .stride = operand->row_stride,
                         .dtype = operand->dtype};
}

static struct head_rows rows_of_head(const struct attn_keys *keys, size_t b, size_t kv_head)
{
    const size_t h = attn_keys_head(keys, kv_head);
    return (struct head_rows){.past_len = keys->past_len,
                              .past = rows_of_operand(&keys->past, b, h),
                              .added = rows_of_operand(&keys->added, b, h)};
}

/* The rows that lie in one segment with row j. */
static inline attn_span segment_of(const struct head_rows *head, size_t j)
{
    return j < head->past_len ? (attn_span){0, head->past_len} : (attn_span){head->past_len, SIZE_MAX};
}

/* Row j, and behind it the rest of its segment. */
static inline struct rows rows_from(const struct head_rows *head, size_t j)
{
    const bool is_past = j < head->past_len;
    struct rows rows = is_past ? head->past : head->added;
    rows.data = row_at(&rows, (ptrdiff_t)(is_past ? j : j - head->past_len));
    return rows;
}

/* Rows from … to in copy, in the kernel's type. */
static struct rows gather_rows(const struct head_rows *head, size_t from, size_t to, size_t features, REAL *copy)
{
    for (size_t j = from; j < to; j++) {
        const struct rows row = rows_from(head, j);
        widen_row(row.data, row.dtype, features, copy + (j - from) * features);
    }
    return (struct rows){copy, (ptrdiff_t)features, KERNEL_TYPE};
}

/* Rows from … to: where they are, in their own type, or, from both segments, in copy. */
static inline struct rows rows_together(const struct head_rows *head, size_t from, size_t to, size_t features,
                                        REAL *copy)
{
    return to <= segment_of(head, from).to ? rows_from(head, from) : gather_rows(head, from, to, features, copy);
}

/* The same in the kernel's type. */
static inline struct rows wide_rows(const struct head_rows *head, size_t from, size_t to, size_t features, REAL *copy)
{
    const struct rows rows = rows_together(head, from, to, features, copy);
    return rows.dtype == KERNEL_TYPE ? rows : gather_rows(head, from, to, features, copy);
}

static inline const REAL *wide_row(const struct head_rows *head, size_t j, size_t features, REAL *copy)
{
    return wide_rows(head, j, j + 1, features, copy).data;
}

/* ---- a task ---- */

enum { BF16_RUN = 128 }; /* keys whose weights are rounded to bfloat16 at a time: their values stay in the L1 cache */

enum { SEES_KEY = 1, SEES_NON_FINITE = 2 };

enum { AHEAD = 3 };

/* Rows that are read soon and are not prefetched yet. */
struct rows_ahead {
    struct rows rows;
    size_t count, features;
};

/* A task: its range of the job, and its parts of the scratch memory. */
struct task {
    const struct attn_heads_job *job;
    size_t b, h, first_row, rows; /* its queries; h: the first of its heads */
    size_t first_key, end_key;    /* its keys */
    size_t v_columns;             /* d_v rounded up to whole vectors */
    size_t key_blocks;            /* tiles of keys of the whole job */
    const REAL *q_head;
    struct head_rows keys, values;
    struct rows_ahead ahead[AHEAD]; /* keys, values and queries */
    REAL *gathered;                 /* rows of 16 bits, widened, and rows that lie in both segments */
    /* per row of the task: output, maximum and sum of the online softmax, as attend.inc.h names them */
    REAL *o, *m, *l, *entropy_sum;
    REAL *o_low, *l_low; /* the rounding errors of o and l, by compensated summation */
    REAL *block_max;     /* (row, key block): the maximum that was subtracted in the block; NULL: no weights are kept */
    attn_span *span;     /* keys of each row */
    uint8_t *row_sees_key; /* SEES_KEY, with SEES_NON_FINITE if the value of a seen key is not finite; 0: sees none */
    bool skips_hidden;     /* decoding: values of hidden keys are no longer read, because one was not finite */
    size_t capped, saturated; /* counts of capped scores, for the diagnostics */
    /* packed operands: keys pack_first … pack_first + pack_keys */
    size_t pack_first;
    REAL *k_pack, *v_pack;
    uint8_t *block_is_packed, *key_is_non_finite; /* non_finite: its value is not */
    size_t *block_non_finite_keys;
    REAL *part;                         /* partial sums of o: TILE_ROWS rows, in decoding DECODE_TILE_ROWS */
    uint16_t *q_bf16, *k_bf16, *p_bf16; /* of bf16.inc.h: the rows of a tile, LANES keys, a run of a row group */
    /* of one tile */
    REAL *q_pack;    /* the last group of REGISTER_ROWS rows, when it is not full */
    REAL *s, *alpha; /* s: of the tile, in rows s_stride apart */
    REAL *rows_of_s; /* where s begins for the first tile of keys */
    size_t s_stride;
    /* s has room for all keys of a row: its weights are normalised there, and written to the map once; past the caches
       if streams_maps is set, so that no line of the map is read first */
    bool holds_rows, streams_maps;
    uint8_t *allow; /* (TILE_ROWS, TILE_KEYS): the mask, where spans do not describe it */
    uint8_t *keep;  /* one row: which weights dropout keeps */
    /* per group of REGISTER_ROWS rows: whether any row sees any key of each panel, and the columns from the first such
       panel to the last */
    uint8_t *panel_is_seen;
    attn_span *reach;
};

/* A tile: rows row0 … row0 + rows of the task, keys key0 … key0 + keys. Its columns from … to are computed. */
struct tile {
    size_t row0, rows, key0, keys, from, to;
};

/* The columns of the tile within a span of keys; empty or reversed if there are none. */
static inline attn_span columns_of_span(const struct tile *tile, attn_span span)
{
    const size_t from = span.from > tile->key0 ? span.from - tile->key0 : 0;
    const size_t to = span.to > tile->key0 ? span.to - tile->key0 : 0;
    return (attn_span){attn_max(from, tile->from), attn_min(to, attn_min(tile->to, tile->keys))};
}

/* A constant where it can be, so that the compiler leaves out what does not run. */
static inline bool has_bf16_products(const struct attn_heads_job *job)
{
#if defined(ONLY_BF16_PRODUCTS)
    (void)job;
    return true;
#else
    return REAL_BITS == 32 && job->bf16_products;
#endif
}

/* Products in bfloat16 always pack their operands, to round them. */
static inline bool is_decode(const struct attn_heads_job *job)
{
    return !has_bf16_products(job) && job->is_decode;
}

/* ---- scratch memory ---- */

/* The next count elements of the scratch memory; NULL while it is only measured, with scratch NULL. */
static void *carve(char *scratch, size_t *used, size_t count, size_t size)
{
    void *block = scratch == NULL ? NULL : scratch + *used;
    *used += attn_round_up(count * size, ATTN_ALIGNMENT);
    return block;
}

static bool wants_weights(const struct attn_heads_job *job)
{
    return job->map[MAP_ATTENTION].data != NULL || job->map[MAP_DROPPED].data != NULL ||
           job->map[MAP_MEAN_SOURCE].data != NULL;
}

static bool wants_maps(const struct attn_heads_job *job)
{
    return wants_weights(job) || job->map[MAP_MASKED].data != NULL;
}

/*
 * The state of the online softmax of rows rows: o, m, l and so on. Returns its bytes; with memory NULL it only
 * measures. block_max is laid out apart, because all splits of a row share it.
 */
static size_t lay_out_rows(struct task *task, size_t rows, char *memory)
{
    size_t used = 0;
    task->o = carve(memory, &used, rows * task->v_columns, sizeof(REAL));
    task->o_low = carve(memory, &used, rows * task->v_columns, sizeof(REAL));
    task->m = carve(memory, &used, rows, sizeof(REAL));
    task->l = carve(memory, &used, rows, sizeof(REAL));
    task->l_low = carve(memory, &used, rows, sizeof(REAL));
    task->entropy_sum = carve(memory, &used, rows, sizeof(REAL));
    task->row_sees_key = carve(memory, &used, rows, 1);
    return used;
}

static size_t lay_out_block_max(const struct attn_heads_job *job, struct task *task, size_t rows, char *memory)
{
    size_t used = 0;
    task->block_max = wants_weights(job) ? carve(memory, &used, rows * task->key_blocks, sizeof(REAL)) : NULL;
    return used;
}

/* Whether the map of weights is large, and its rows begin at whole vectors. */
static bool can_stream(const struct attn_heads_job *job)
{
    const struct attn_map *map = &job->map[MAP_ATTENTION];
    const size_t heads = map->all_heads || job->head_slot == NULL ? job->heads : job->kept_heads;
    const size_t row_bytes = job->kept_keys * sizeof(REAL), rows = job->batch * heads * job->kept_queries;
    return (uintptr_t)map->data % VECTOR_BYTES == 0 && row_bytes % VECTOR_BYTES == 0 && row_bytes > 0 &&
           rows >= STREAM_BYTES / row_bytes;
}

static void set_sizes(const struct attn_heads_job *job, struct task *task)
{
    task->job = job;
    task->v_columns = attn_round_up(job->d_v, LANES);
    task->key_blocks = attn_ceil_div(job->kv_len, TILE_KEYS);
    /* With more keys than a pack holds, a row returns for the next pack after all other rows. */
    task->holds_rows = wants_weights(job) && job->dropout == 0 && job->key_slot == NULL && !is_decode(job) &&
                       job->kv_len <= attn_min(HELD_KEYS, job->pack_keys);
    task->streams_maps = task->holds_rows && can_stream(job);
    task->s_stride = (task->holds_rows ? task->key_blocks * TILE_KEYS : TILE_KEYS) + LANES;
}

/* The buffers of one tile, which every task has. */
static size_t lay_out_tile(struct task *task, size_t rows, char *scratch)
{
    size_t used = 0;
    task->rows_of_s = task->s = carve(scratch, &used, rows * task->s_stride, sizeof(REAL));
    task->alpha = carve(scratch, &used, rows + SOFTMAX_ROWS, sizeof(REAL));
    task->allow = carve(scratch, &used, rows * TILE_KEYS, 1);
    task->keep = carve(scratch, &used, TILE_KEYS, 1);
    task->panel_is_seen = carve(scratch, &used, rows / REGISTER_ROWS + 1, TILE_KEYS / PANEL);
    task->reach = carve(scratch, &used, rows / REGISTER_ROWS + 1, sizeof(attn_span));
    return used;
}

static size_t lay_out_pack(const struct attn_heads_job *job, struct task *task, char *scratch)
{
    size_t used = 0, blocks = job->pack_keys / TILE_KEYS;
    task->k_pack = carve(scratch, &used, job->pack_keys * job->d_k, sizeof(REAL));
    task->v_pack = carve(scratch, &used, job->pack_keys * task->v_columns, sizeof(REAL));
    task->q_pack = carve(scratch, &used, REGISTER_ROWS * job->d_k, sizeof(REAL));
    task->block_is_packed = carve(scratch, &used, blocks, 1);
    task->key_is_non_finite = carve(scratch, &used, job->pack_keys, 1);
    task->block_non_finite_keys = carve(scratch, &used, blocks, sizeof(size_t));
    return used;
}

/* At most LANES keys, or a run of values. */
static size_t gathered_numbers(const struct attn_heads_job *job)
{
    return job->gathers ? attn_max(LANES * job->d_k, RUN_KEYS * job->d_v) : 0;
}

/* A row of bfloat16 extends to whole vectors. So do the packed pairs, which need no more memory than in float. */
static size_t lay_out_bf16(const struct attn_heads_job *job, struct task *task, char *scratch)
{
    const size_t features = attn_round_up(job->d_k, LANES);
    size_t used = 0;
    task->q_bf16 = carve(scratch, &used, TILE_ROWS * features, sizeof(uint16_t));
    task->k_bf16 = carve(scratch, &used, LANES * features, sizeof(uint16_t));
    task->p_bf16 = carve(scratch, &used, REGISTER_ROWS * BF16_RUN, sizeof(uint16_t));
    return used;
}

static char *offset(char *memory, size_t used)
{
    return memory == NULL ? NULL : memory + used;
}

/* Divides the scratch memory; with scratch NULL it only measures. */
static size_t lay_out(const struct attn_heads_job *job, struct task *task, char *scratch)
{
    set_sizes(job, task);
    size_t used = lay_out_tile(task, is_decode(job) ? DECODE_ROWS : TILE_ROWS, scratch);
    task->span = carve(scratch, &used, is_decode(job) ? DECODE_ROWS : attn_round_up(job->chunk_rows, TILE_ROWS),
                       sizeof(attn_span));
    const size_t part_rows = is_decode(job) ? DECODE_TILE_ROWS : TILE_ROWS;
    task->part = carve(scratch, &used, part_rows * task->v_columns, sizeof(REAL));
    task->gathered = carve(scratch, &used, gathered_numbers(job), sizeof(REAL));
    if (is_decode(job)) {
        task->key_is_non_finite = carve(scratch, &used, TILE_KEYS, 1);
        task->block_non_finite_keys = carve(scratch, &used, 1, sizeof(size_t));
        return used;
    }
    size_t rows = attn_round_up(job->chunk_rows, TILE_ROWS);
    used += lay_out_pack(job, task, offset(scratch, used));
    used += has_bf16_products(job) ? lay_out_bf16(job, task, offset(scratch, used)) : 0;
    used += lay_out_rows(task, rows, offset(scratch, used));
    used += lay_out_block_max(job, task, rows, offset(scratch, used));
    return used;
}

static inline size_t scratch_bytes(const struct attn_heads_job *job)
{
    struct task task = {0};
    return lay_out(job, &task, NULL);
}

/* Rows of a task in decoding: all queries of its heads, head by head. */
static size_t decode_task_rows(const struct attn_heads_job *job)
{
    return job->heads_together * job->q_len;
}

/* The partial results of the heads of a task: their maxima per block, then the state of the softmax of each split. */
static size_t lay_out_partials(const struct attn_heads_job *job, struct task *task, size_t split, char *memory)
{
    const size_t rows = decode_task_rows(job);
    set_sizes(job, task);
    size_t used = lay_out_block_max(job, task, rows, memory);
    size_t each = lay_out_rows(task, rows, NULL);
    lay_out_rows(task, rows, offset(memory, used + split * each));
    return used + job->splits * each;
}

static inline size_t partials_bytes(const struct attn_heads_job *job)
{
    struct task task = {0};
    if (!is_decode(job))
        return 0;
    return job->batch * job->heads / job->heads_together * lay_out_partials(job, &task, 0, NULL);
}

static void find_partials(const struct attn_heads_job *job, struct task *task, size_t heads, size_t split)
{
    struct task measured = {0};
    size_t each = lay_out_partials(job, &measured, 0, NULL);
    lay_out_partials(job, task, split, (char *)job->partials + heads * each);
}

static const REAL *head_of(const struct attn_operand *operand, size_t b, size_t h)
{
    return (const REAL *)operand->data + (ptrdiff_t)b * operand->batch_stride + (ptrdiff_t)h * operand->head_stride;
}

static void find_head(const struct attn_heads_job *job, struct task *task, size_t head)
{
    task->b = head / job->heads;
    task->h = head % job->heads;
    size_t kv_head = task->h / (job->heads / job->kv_heads);
    task->q_head = head_of(&job->q, task->b, task->h);
    task->keys = rows_of_head(&job->k, task->b, kv_head);
    task->values = rows_of_head(&job->v, task->b, kv_head);
}

/* The head and the query of a row of the task. */
struct position {
    size_t h, i;
};

static struct position position_of(const struct task *task, size_t row)
{
    const size_t q_len = task->job->q_len;
    if (!is_decode(task->job))
        return (struct position){task->h, task->first_row + row};
    return (struct position){task->h + row / q_len, row % q_len};
}

static void begin_task(struct task *task, const struct attn_heads_job *job, size_t t, char *scratch)
{
    lay_out(job, task, scratch);
    const size_t tasks = is_decode(job) ? job->splits : job->chunks;
    const size_t part = tasks - 1 - t % tasks; /* under a causal mask the last part takes longest, so it comes first */
    find_head(job, task, t / tasks * job->heads_together);
    task->rows = decode_task_rows(job);
    task->end_key = job->kv_len;
    if (is_decode(job)) {
        find_partials(job, task, t / tasks, part);
        task->first_key = part * SPLIT_KEYS;
        task->end_key = attn_min(task->first_key + SPLIT_KEYS, job->kv_len);
    } else {
        task->first_row = part * job->chunk_rows;
        task->rows = attn_min(job->q_len - task->first_row, job->chunk_rows);
    }
    size_t rows = is_decode(job) ? task->rows : attn_round_up(task->rows, REGISTER_ROWS);
    memset(task->o, 0, rows * task->v_columns * sizeof(REAL));
    memset(task->o_low, 0, rows * task->v_columns * sizeof(REAL));
    memset(task->row_sees_key, 0, rows);
    for (size_t r = 0; r < task->rows; r++)
        task->span[r] = attn_mask_span(job->mask, task->b, position_of(task, r).i);
    for (size_t r = 0; r < rows; r++) {
        task->m[r] = -(REAL)INFINITY;
        task->l[r] = task->l_low[r] = task->entropy_sum[r] = 0;
    }
}

#endif
