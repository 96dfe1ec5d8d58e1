/* heads.c: attention over all batch items and heads as tasks for the tile kernel. */
#include "attention/attention.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/size.h"
#include "kernel/entries.h"

enum { MERGE_ALONE_MAX = 1 << 15 }; /* up to this many numbers, the calling thread merges alone */

/* ---- the keys that any query sees ---- */

struct seen_run {
    const struct attn_heads_job *job;
    const attn_runtime *runtime;
    uint8_t *key_is_seen, *query_sees;
};

static bool needs_seen(const struct attn_heads_job *job)
{
    return job->map[MAP_SCORES].data != NULL || job->map[MAP_SCALED].data != NULL;
}

size_t attn_seen_bytes(const struct attn_heads_job *job)
{
    return needs_seen(job) ? job->batch * job->heads * (job->kv_len + job->q_len) + 2 * ATTN_ALIGNMENT : 0;
}

static void find_seen_by_query(const struct attn_heads_job *job, size_t b, size_t h, size_t i, uint8_t *seen,
                               uint8_t *sees)
{
    attn_span span = attn_mask_span(job->mask, b, i);
    if (!attn_mask_has_lookup(job->mask)) {
        memset(seen + span.from, 1, span.to - span.from);
        *sees = span.from < span.to;
        return;
    }
    uint8_t allow[TILE_KEYS];
    *sees = 0;
    for (size_t from = span.from; from < span.to; from += TILE_KEYS) {
        const size_t to = span.to - from < TILE_KEYS ? span.to : from + TILE_KEYS;
        *sees |= attn_mask_row(job->mask, job->compute, b, h, i, span, from, to, allow);
        for (size_t j = from; j < to; j++)
            seen[j] |= allow[j - from];
    }
}

/* The keys and the queries of one head. */
static void find_seen(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct seen_run *run = argument;
    const struct attn_heads_job *job = run->job;
    uint8_t *seen = run->key_is_seen + index * job->kv_len, *sees = run->query_sees + index * job->q_len;
    memset(seen, 0, job->kv_len);
    for (size_t i = 0; i < job->q_len && !attn_is_cancelled(run->runtime); i++)
        find_seen_by_query(job, index / job->heads, index % job->heads, i, seen, &sees[i]);
}

attn_status attn_seen_find(struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena)
{
    const size_t heads = job->batch * job->heads;
    if (!needs_seen(job))
        return ATTN_OK;
    struct seen_run run = {.job = job,
                           .runtime = runtime,
                           .key_is_seen = attn_arena_take(arena, heads, job->kv_len),
                           .query_sees = attn_arena_take(arena, heads, job->q_len)};
    if (run.key_is_seen == NULL || run.query_sees == NULL)
        return ATTN_ERR_NO_MEMORY;
    runtime->run(runtime->context, heads, find_seen, &run);
    job->key_is_seen = run.key_is_seen;
    job->query_sees = run.query_sees;
    return ATTN_OK;
}

/* ---- tasks ---- */

struct heads_run {
    struct attn_heads_job *job;
    attn_attend_task *task;
    char *scratch;
    size_t scratch_bytes;
};

/*
 * Rows per task: many, because each task packs its keys again, but few enough that every thread gets several tasks. The
 * division changes no number.
 */
static void choose_chunks(struct attn_heads_job *job, size_t threads)
{
    size_t heads = job->batch * job->heads, wanted_tasks = threads > 1 ? 4 * threads : 1;
    size_t per_head = heads == 0 ? 1 : attn_ceil_div(wanted_tasks, heads);
    size_t rows = attn_ceil_div(job->q_len, per_head);
    rows = attn_min(attn_max(rows, 4 * TILE_ROWS), CHUNK_ROWS_MAX);
    job->chunks = attn_ceil_div(job->q_len, rows);
    job->chunks = job->chunks == 0 ? 1 : job->chunks;
    job->chunk_rows = attn_round_up(attn_ceil_div(job->q_len, job->chunks), TILE_ROWS);
    job->chunks = job->q_len == 0 ? 1 : attn_ceil_div(job->q_len, job->chunk_rows);
}

/* Heads that share keys share a task, as long as every thread has work. No number depends on it. */
static void choose_heads_together(struct attn_heads_job *job, size_t threads)
{
    const size_t sharing = job->heads / job->kv_heads, all = job->batch * job->heads * job->splits;
    job->heads_together = 1;
    for (size_t together = 2; job->is_decode && together <= sharing && together * job->q_len <= DECODE_ROWS; together++)
        if (sharing % together == 0 && all / together >= 2 * threads)
            job->heads_together = together;
}

/* The shape alone decides between decoding and packing, because the two round differently. */
static void choose_way(struct attn_heads_job *job, size_t threads)
{
    job->is_decode = job->q_len <= DECODE_ROWS && !job->bf16_products; /* whose operands are packed, to round them */
    job->splits = job->kv_len == 0 ? 1 : attn_ceil_div(job->kv_len, SPLIT_KEYS);
    choose_heads_together(job, threads);
    choose_chunks(job, threads);
}

static void choose_pack(struct attn_heads_job *job)
{
    size_t widest = attn_max(job->d_k, job->d_v);
    size_t keys = PACK_BYTES / (attn_dtype_bytes(job->compute) * widest) / TILE_KEYS * TILE_KEYS;
    keys = keys == 0 ? TILE_KEYS : keys;
    size_t all = attn_round_up(job->kv_len, TILE_KEYS);
    job->pack_keys = all == 0 ? TILE_KEYS : all < keys ? all : keys;
}

static size_t tasks_of(const struct attn_heads_job *job)
{
    return job->batch * job->heads / job->heads_together * (job->is_decode ? job->splits : job->chunks);
}

static size_t kernel_partials_bytes(const struct attn_heads_job *job, const attn_kernel *kernel)
{
    return attn_kernel_of(kernel, job->compute)->attention->partials_bytes(job);
}

static size_t kernel_scratch_bytes(const struct attn_heads_job *job, const attn_kernel *kernel)
{
    return attn_round_up(attn_kernel_of(kernel, job->compute)->attention->scratch_bytes(job), ATTN_ALIGNMENT);
}

struct attn_bytes attn_heads_bytes(const struct attn_heads_job *job)
{
    struct attn_heads_job divided = *job;
    struct attn_bytes bytes = {0};
    const attn_kernel *kernel;
    size_t partials = 0;
    choose_way(&divided, 1);
    choose_pack(&divided);
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        bytes.scratch = attn_max(bytes.scratch, kernel_scratch_bytes(&divided, kernel));
    divided.heads_together = 1; /* this division needs the most memory */
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        partials = attn_max(partials, kernel_partials_bytes(&divided, kernel));
    const size_t heads = job->batch * job->heads, rows = heads * job->q_len;
    const size_t tasks = heads * (job->q_len / TILE_ROWS + 1 + divided.splits);
    const size_t listed = attn_min(rows, ATTN_EMPTY_ROWS_LISTED);
    bytes.shared = rows + attn_seen_bytes(job) + partials + tasks * (sizeof(double) + 2 * sizeof(size_t)) +
                   listed * sizeof(attn_row) + 10 * ATTN_ALIGNMENT;
    return bytes;
}

static void heads_task(void *argument, size_t index, size_t worker)
{
    const struct heads_run *run = argument;
    run->task(run->job, index, run->scratch + worker * run->scratch_bytes);
}

/* A small merge takes less time than waking other threads. */
static void merge_all(struct heads_run *run, const attn_runtime *runtime)
{
    const struct attn_heads_job *job = run->job;
    const size_t heads = job->batch * job->heads;
    if (heads * job->q_len * job->splits * job->d_v > MERGE_ALONE_MAX) {
        runtime->run(runtime->context, heads, heads_task, run);
        return;
    }
    for (size_t head = 0; head < heads; head++)
        heads_task(run, head, 0);
}

bool attn_heads_take_counts(struct attn_heads_job *job, size_t tasks, attn_arena *arena)
{
    job->task_max_abs = attn_arena_take_zeroed(arena, tasks, sizeof(double));
    job->task_capped = attn_arena_take_zeroed(arena, tasks, sizeof(size_t));
    job->task_saturated = attn_arena_take_zeroed(arena, tasks, sizeof(size_t));
    return job->task_max_abs != NULL && job->task_capped != NULL && job->task_saturated != NULL;
}

static attn_status take_memory(struct heads_run *run, const attn_runtime *runtime, attn_arena *arena)
{
    struct attn_heads_job *job = run->job;
    size_t heads = job->batch * job->heads;
    run->scratch_bytes = kernel_scratch_bytes(job, runtime->kernel);
    run->scratch = attn_arena_take(arena, runtime->threads, run->scratch_bytes);
    job->row_is_empty = attn_arena_take(arena, heads, job->q_len);
    job->partials = attn_arena_take(arena, kernel_partials_bytes(job, runtime->kernel), 1);
    const bool has_all = run->scratch != NULL && job->row_is_empty != NULL && job->partials != NULL;
    return has_all && attn_heads_take_counts(job, tasks_of(job), arena) ? ATTN_OK : ATTN_ERR_NO_MEMORY;
}

void attn_map_keep_row(const struct attn_heads_job *job, int which, size_t b, size_t h, size_t i, const double *x,
                       const uint8_t *visible)
{
    const struct attn_map *map = &job->map[which];
    const bool all_heads = map->all_heads || job->head_slot == NULL;
    const size_t head = all_heads ? h : job->head_slot[h], heads = all_heads ? job->heads : job->kept_heads;
    const size_t query = job->query_slot == NULL ? i : job->query_slot[i];
    if (map->data == NULL || head == SIZE_MAX || query == SIZE_MAX)
        return;
    const size_t first = ((b * heads + head) * job->kept_queries + query) * job->kept_keys;
    for (size_t j = 0; j < job->kv_len; j++) {
        const size_t key = job->key_slot == NULL ? j : job->key_slot[j];
        if (key != SIZE_MAX)
            attn_number_put(map->data, job->compute, first + key,
                            visible == NULL || visible[j] ? x[j] : -(double)INFINITY);
    }
}

attn_status attn_heads_list_empty(const struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena,
                                  attn_result *result, attn_error *err)
{
    size_t rows = job->batch * job->heads * job->q_len;
    struct attn_pace pace = attn_pace_begin(runtime);
    for (size_t row = 0; row < rows && !attn_pace_stops(&pace, 1); row++)
        result->rows_without_keys += job->row_is_empty[row];
    size_t listed = attn_min(result->rows_without_keys, ATTN_EMPTY_ROWS_LISTED);
    attn_row *list = attn_arena_take(arena, listed, sizeof *list);
    if (list == NULL)
        return attn_fail_no_memory(err);
    for (size_t row = 0; row < rows && result->empty_rows_listed < listed && !attn_pace_stops(&pace, 1); row++)
        if (job->row_is_empty[row])
            list[result->empty_rows_listed++] = (attn_row){
                .b = row / job->q_len / job->heads, .h = row / job->q_len % job->heads, .i = row % job->q_len};
    result->empty_rows = list;
    return ATTN_OK;
}

attn_status attn_heads_gather(const struct attn_heads_job *job, size_t tasks, const attn_runtime *runtime,
                              attn_arena *arena, attn_result *result, attn_error *err)
{
    for (size_t t = 0; t < tasks; t++) {
        if (job->task_max_abs[t] > result->max_abs_score)
            result->max_abs_score = job->task_max_abs[t];
        result->capped_scores += job->task_capped[t];
        result->saturated_scores += job->task_saturated[t];
    }
    return attn_heads_list_empty(job, runtime, arena, result, err);
}

attn_status attn_heads_run(struct attn_heads_job *job, const attn_runtime *runtime, attn_arena *arena,
                           attn_result *result, attn_error *err)
{
    const struct attn_kernel_attention *attention = attn_kernel_of(runtime->kernel, job->compute)->attention;
    attn_attend_task *attend_bf16 = job->bf16_products ? runtime->kernel->attend_bf16 : NULL;
    struct heads_run run = {.job = job, .task = attend_bf16 != NULL ? attend_bf16 : attention->attend};
    choose_way(job, runtime->threads);
    choose_pack(job);
    job->threads = runtime->threads;
    job->is_cancelled = runtime->is_cancelled;
    job->cancel_context = runtime->cancel_context;
    attn_status status = take_memory(&run, runtime, arena);
    if (status == ATTN_OK)
        status = attn_seen_find(job, runtime, arena);
    if (status != ATTN_OK)
        return attn_fail_no_memory(err);
    if (job->q_len > 0)
        runtime->run(runtime->context, tasks_of(job), heads_task, &run);
    if (attn_is_cancelled(runtime))
        return attn_fail_stopped(err);
    run.task = attention->merge;
    if (job->is_decode && job->q_len > 0)
        merge_all(&run, runtime);
    return attn_heads_gather(job, tasks_of(job), runtime, arena, result, err);
}
