/* feature_maps.c: attention by feature maps: what the mask means for it, what a run takes, and its stages. */
#include "attention/attention.h"

#include <math.h>
#include <string.h>

#include "attn/runtime.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"
#include "kernel/entries.h"

enum {
    TAKES_MAX = 12,
    TASKS_OF_A_THREAD = 8, /* of queries, in a pass over the stages */
    /* Of the keys, whose sums and features a tile of queries reads: from a query to the next, keys end at most one later. */
    TILES_LOOKED_BACK = 4,
};

static const attn_steps MAPS = ATTN_STEP_BIT(ATTN_STEP_ATTENTION) | ATTN_STEP_BIT(ATTN_STEP_ATTENTION_MEAN) |
                               ATTN_STEP_BIT(ATTN_STEP_CONTRIBUTION);

struct feature_run {
    struct attn_feature_job job;
    struct attn_heads_job *heads;
    const attn_plan *plan;
    const attn_runtime *runtime;
    attn_feature_task *stage;
    char *scratch;
    size_t scratch_bytes;
    bool is_by_heads; /* a thread computes a key head, tile of keys by tile, out of its own caches */
};

/* ---- sizes ---- */

/* Performer needs the largest number of all keys before any feature. Weights of pairs need the features again. */
static bool keeps_features(const attn_plan *plan)
{
    return plan->request.options.mechanism.type == ATTN_PERFORMER || !plan->has_running_sums || plan->has_prefix_sums ||
           (plan->want & MAPS) != 0;
}

/* Padded to cache lines: whole vectors of every kernel. */
static size_t padded(const attn_plan *plan, size_t numbers)
{
    return attn_round_up(numbers, ATTN_ALIGNMENT / attn_dtype_bytes(plan->compute));
}

/* Tasks of queries for each key head, which has group query heads. */
static size_t query_tasks(size_t group, size_t q_len)
{
    return attn_max(group * attn_ceil_div(q_len, FEATURE_QUERIES), 1);
}

struct attn_feature_job attn_feature_describe(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const size_t m = attn_mechanism_features(&plan->request.options.mechanism, d->d_k);
    const size_t block_keys = plan->has_prefix_sums ? FEATURE_TILE : FEATURE_SPLIT;
    struct attn_feature_job job = {.mechanism = &plan->request.options.mechanism,
                                   .is_running = plan->has_running_sums,
                                   .m = m,
                                   .m_padded = attn_round_up(m, FEATURE_ROW_UNIT),
                                   .columns = padded(plan, d->d_v),
                                   .q_stride = padded(plan, d->d_k),
                                   .tiles = attn_ceil_div(d->kv_len, FEATURE_TILE),
                                   .blocks = attn_ceil_div(d->kv_len, block_keys),
                                   .end_key = d->kv_len,
                                   .end_query = d->q_len,
                                   .kept_totals = attn_ceil_div(d->kv_len, FEATURE_SPLIT)};
    job.kept_tiles = job.tiles;
    job.kept_blocks = job.blocks;
    job.phi_stride = padded(plan, m) + 2 * padded(plan, 1); /* whole panels of every kernel */
    job.sums_stride = padded(plan, job.m_padded * (job.columns + 1));
    job.heads_together =
        attn_min(attn_ceil_div(FEATURE_TASKS, query_tasks(d->heads / d->kv_heads, d->q_len)), d->batch * d->kv_heads);
    return job;
}

/* Bytes that are kept for the key heads of a pass: features, and the sums of blocks, of splits, and of all keys. */
static size_t kept_bytes(const struct attn_feature_job *job, const attn_plan *plan)
{
    const size_t phi = keeps_features(plan) ? job->kept_tiles * FEATURE_TILE * job->m_padded : 0;
    const size_t sums = job->is_running ? (job->kept_blocks + job->kept_totals + 2) * job->sums_stride : 0;
    return job->heads_together * (phi + sums) * attn_dtype_bytes(plan->compute);
}

static void lay_out_kept(struct attn_feature_job *job, const attn_plan *plan, char *kept)
{
    const size_t element = attn_dtype_bytes(plan->compute),
                 sums_bytes = job->heads_together * job->sums_stride * element;
    job->phi = keeps_features(plan) ? kept : NULL;
    if (keeps_features(plan))
        kept += job->heads_together * job->kept_tiles * FEATURE_TILE * job->m_padded * element;
    job->sums = kept;
    job->totals = kept + job->kept_blocks * sums_bytes;
    job->prefix = kept + (job->kept_blocks + job->kept_totals) * sums_bytes;
}

/* A pass has one key head and, of all but the first stage of performer, one tile of keys at a time. */
static void keep_one_head(struct attn_feature_job *job)
{
    const size_t kept = attn_max(attn_min(job->blocks, TILES_LOOKED_BACK), 1);
    job->heads_together = 1;
    job->kept_blocks = job->kept_totals = kept;
    if (job->mechanism->type == ATTN_LINEAR)
        job->kept_tiles = TILES_LOOKED_BACK;
}

/* Bytes that a thread keeps of a key head of its own. 0: the heads go through the stages together. */
static size_t own_head_bytes(const attn_plan *plan)
{
    enum { MOST_BYTES = 1 << 20 }; /* what the second cache holds; with many threads, more would be too much memory */
    struct attn_feature_job job = attn_feature_describe(plan);
    keep_one_head(&job);
    const size_t bytes = kept_bytes(&job, plan);
    return plan->has_running_sums && (plan->want & MAPS) == 0 && bytes <= MOST_BYTES ? bytes : 0;
}

/* Whether threads can take a key head each, and at most a quarter of their time is lost at the end. */
static bool is_by_heads(const attn_plan *plan, size_t threads)
{
    const size_t kv_heads = plan->dims.batch * plan->dims.kv_heads;
    return own_head_bytes(plan) > 0 && 4 * kv_heads >= 3 * attn_round_up(kv_heads, threads);
}

struct attn_bytes attn_feature_maps_bytes(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const struct attn_heads_job heads = {.d_k = d->d_k, .d_v = d->d_v};
    struct attn_feature_job job = attn_feature_describe(plan);
    job.heads = &heads;
    const size_t rows = d->batch * d->heads * d->q_len, listed = attn_min(rows, ATTN_EMPTY_ROWS_LISTED);
    const size_t largest = job.mechanism->type == ATTN_PERFORMER ? d->batch * d->kv_heads * job.tiles : 0;
    struct attn_bytes bytes = {.shared = kept_bytes(&job, plan) + largest * attn_dtype_bytes(plan->compute) + rows +
                                         listed * sizeof(attn_row) + attn_feature_prepared_bytes(plan) +
                                         (size_t)TAKES_MAX * ATTN_ALIGNMENT};
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        bytes.scratch = attn_max(bytes.scratch, attn_kernel_of(kernel, plan->compute)->feature_scratch_bytes(&job));
    bytes.scratch = attn_round_up(bytes.scratch, ATTN_ALIGNMENT) + own_head_bytes(plan);
    return bytes;
}

double attn_feature_maps_numbers(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const double m = (double)attn_mechanism_features(&plan->request.options.mechanism, d->d_k) + 3 * ATTN_ALIGNMENT;
    const double width = (double)d->d_v + 1 + ATTN_ALIGNMENT, d_k = (double)d->d_k + ATTN_ALIGNMENT;
    const double queries = (double)d->heads * ((double)d->q_len + FEATURE_TILE);
    const double keys = (double)d->kv_heads * ((double)d->kv_len + FEATURE_TILE), batch = (double)d->batch;
    const double blocks = (queries + 3 * keys) / FEATURE_TILE; /* the sums of both, and of slots of queries */
    return batch * ((queries + keys) * (m + width) + blocks * m * width) + 3 * m * d_k;
}

double attn_feature_maps_flops(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const attn_mechanism *mechanism = &plan->request.options.mechanism;
    const double m = (double)attn_mechanism_features(mechanism, d->d_k), width = (double)(d->d_v + 1);
    const double heads = (double)d->batch * (double)d->heads, kv_heads = (double)d->batch * (double)d->kv_heads;
    const double q_len = (double)d->q_len, kv_len = (double)d->kv_len;
    const double map = (mechanism->type == ATTN_PERFORMER ? 2 * m * (double)d->d_k : 0) + 40 * m + 10 * width;
    const double pair = 2 * (m + width);
    double flops = heads * q_len * map + kv_heads * kv_len * map;
    if (plan->has_running_sums)
        flops += heads * q_len * 2 * m * width + kv_heads * kv_len * 2 * m * width;
    if (plan->has_prefix_sums) /* the last keys of each query, pair by pair */
        flops += heads * q_len * FEATURE_TILE * pair;
    if (!plan->has_running_sums)
        flops += plan->pairs * pair;
    if (mechanism->type == ATTN_PERFORMER && mechanism->projection == NULL)
        flops += attn_performer_flops((size_t)m, d->d_k);
    if ((plan->want & MAPS) != 0)
        flops += heads * q_len * kv_len * 2 * m;
    return flops;
}

/* ---- what the stages read ---- */

void attn_find_running_sums(const attn_mask *mask, const attn_runtime *watch, bool *is_running, bool *is_prefix)
{
    struct attn_pace pace = attn_pace_begin(watch);
    attn_mask without = *mask;
    without.padding = NULL;
    *is_running = *is_prefix = false;
    if (attn_mask_has_lookup(&without))
        return;
    bool differs = false;
    for (size_t b = 0; b < mask->batch; b++) {
        size_t end = 0;
        for (size_t i = 0; i < mask->q_len; i++) {
            const attn_span span = attn_mask_span(mask, b, i);
            if (attn_pace_stops(&pace, ATTN_PACE_ROW) || (span.from != 0 && span.from < span.to))
                return;
            differs |= end != 0 && span.from < span.to && span.to != end;
            end = span.from < span.to ? span.to : end;
        }
    }
    *is_running = true;
    *is_prefix = differs;
}

/* Whether padding leaves key j of item b visible. */
static bool is_real(const attn_mask *mask, size_t b, size_t j)
{
    return mask->padding == NULL ||
           mask->padding[(ptrdiff_t)b * mask->padding_stride[0] + (ptrdiff_t)j * mask->padding_stride[1]] != 0;
}

struct preparation {
    struct attn_feature_job *job;
    const attn_plan *plan;
    const struct attn_heads_job *heads;
    const attn_runtime *runtime;
    struct attn_feature_item *item;
    uint8_t *is_seen;
};

/* The keys of each item, and whether its queries end at different keys. */
static bool describe_items(struct preparation *run)
{
    const attn_mask *mask = run->heads->mask;
    struct attn_pace pace = attn_pace_begin(run->runtime);
    for (size_t b = 0; b < run->heads->batch; b++) {
        struct attn_feature_item *item = &run->item[b];
        bool is_prefix = false;
        *item = (struct attn_feature_item){0};
        for (size_t i = 0; i < run->heads->q_len; i++) {
            const attn_span span = attn_mask_span(mask, b, i);
            if (attn_pace_stops(&pace, ATTN_PACE_ROW))
                return false;
            if (span.from >= span.to)
                continue;
            is_prefix |= item->end != 0 && span.to != item->end;
            item->end = attn_max(item->end, span.to);
        }
        item->block_keys = run->job->is_running && is_prefix ? FEATURE_TILE : FEATURE_SPLIT;
        item->blocks = attn_ceil_div(item->end, item->block_keys);
        while (item->first_seen < item->end && !is_real(mask, b, item->first_seen))
            item->first_seen++;
    }
    return true;
}

/* Where the mask is looked up for each head: which keys any query of the group may attend to. */
static void seen_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct preparation *run = argument;
    const struct attn_heads_job *heads = run->heads;
    const size_t kv_head = index / run->job->tiles, from = index % run->job->tiles * FEATURE_TILE;
    const size_t b = kv_head / heads->kv_heads, group = heads->heads / heads->kv_heads;
    const size_t to = attn_min(from + FEATURE_TILE, heads->kv_len), first = kv_head % heads->kv_heads * group;
    uint8_t *seen = run->is_seen + kv_head * heads->kv_len, allow[FEATURE_TILE];
    memset(seen + from, 0, to - from);
    for (size_t i = 0; i < heads->q_len && !attn_is_cancelled(run->runtime); i++) {
        const attn_span span = attn_mask_span(heads->mask, b, i);
        if (span.from >= to || span.to <= from)
            continue;
        for (size_t h = first; h < first + group; h++) {
            attn_mask_row(heads->mask, heads->compute, b, h, i, span, from, to, allow);
            for (size_t j = from; j < to; j++)
                seen[j] |= allow[j - from];
        }
    }
}

static void find_seen(struct preparation *run)
{
    const struct attn_heads_job *heads = run->heads;
    const size_t kv_heads = heads->batch * heads->kv_heads;
    if (run->is_seen == NULL)
        return;
    run->job->is_seen = run->is_seen;
    if (!run->job->is_running) {
        attn_spread(run->runtime, kv_heads * run->job->tiles, seen_task, run);
        return;
    }
    for (size_t head = 0; head < kv_heads && !attn_is_cancelled(run->runtime); head++)
        for (size_t j = 0; j < heads->kv_len; j++)
            run->is_seen[head * heads->kv_len + j] = is_real(heads->mask, head / heads->kv_heads, j);
}

/* P of performer, given or drawn: (m, d_k), and d_k numbers of scratch behind it. False when the run was cancelled. */
static bool draw_projection(const attn_mechanism *mechanism, attn_dtype compute, size_t d_k,
                            const attn_runtime *runtime, double *projection)
{
    const size_t m = attn_mechanism_features(mechanism, d_k);
    if (mechanism->projection != NULL) {
        for (size_t n = 0; n < m * d_k; n++)
            projection[n] = attn_number_get(mechanism->projection->data, compute, n);
        return true;
    }
    for (size_t r = 0; r < m; r++) {
        if (attn_is_cancelled(runtime))
            return false;
        attn_performer_direction(mechanism->seed, r, d_k, projection);
    }
    attn_performer_lengths(mechanism->seed, m, d_k, projection + m * d_k, projection);
    return true;
}

/* P times sqrt(|scale|), padded with rows of 0. */
static attn_status prepare_projection(struct preparation *run, attn_arena *arena)
{
    struct attn_feature_job *job = run->job;
    const size_t d_k = run->heads->d_k, element = attn_dtype_bytes(run->plan->compute);
    if (job->mechanism->type != ATTN_PERFORMER)
        return ATTN_OK;
    void *projection = attn_arena_take_zeroed(arena, job->m_padded * d_k, element);
    double *drawn = attn_arena_take(arena, (job->m + 1) * d_k, sizeof *drawn);
    job->projection_transposed = attn_arena_take(arena, job->phi_stride * d_k, element);
    if (projection == NULL || drawn == NULL || job->projection_transposed == NULL)
        return ATTN_ERR_NO_MEMORY;
    if (!draw_projection(job->mechanism, run->plan->compute, d_k, run->runtime, drawn))
        return ATTN_ERR_CANCELLED;
    const double factor = sqrt(fabs(run->plan->scale));
    for (size_t n = 0; n < job->m * d_k; n++)
        attn_number_put(projection, run->plan->compute, n, factor * drawn[n]);
    job->projection = projection;
    return ATTN_OK;
}

attn_status attn_feature_prepare(struct attn_feature_job *job, const attn_plan *plan,
                                 const struct attn_heads_job *heads, bool finds_seen, const attn_runtime *runtime,
                                 attn_arena *arena)
{
    struct preparation run = {.job = job, .plan = plan, .heads = heads, .runtime = runtime};
    const bool hides = job->is_running ? heads->mask->padding != NULL : finds_seen;
    job->heads = heads;
    run.item = attn_arena_take(arena, heads->batch, sizeof *run.item);
    run.is_seen = hides ? attn_arena_take(arena, heads->batch * heads->kv_heads, heads->kv_len) : NULL;
    if (run.item == NULL || (hides && run.is_seen == NULL))
        return ATTN_ERR_NO_MEMORY;
    attn_status status = prepare_projection(&run, arena);
    if (status != ATTN_OK || !describe_items(&run))
        return status == ATTN_OK ? ATTN_ERR_CANCELLED : status;
    job->item = run.item;
    find_seen(&run);
    return attn_is_cancelled(runtime) ? ATTN_ERR_CANCELLED : ATTN_OK;
}

size_t attn_feature_prepared_bytes(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const struct attn_feature_job job = attn_feature_describe(plan);
    size_t bytes = d->batch * (sizeof(struct attn_feature_item) + d->kv_heads * d->kv_len);
    if (job.mechanism->type == ATTN_PERFORMER)
        bytes +=
            ((job.m_padded + job.phi_stride) * attn_dtype_bytes(plan->compute) + (job.m + 1) * sizeof(double)) * d->d_k;
    return bytes + 5 * (size_t)ATTN_ALIGNMENT;
}

/* ---- the run ---- */

static bool take_memory(struct feature_run *run, attn_arena *arena)
{
    struct attn_heads_job *heads = run->heads;
    struct attn_feature_job *job = &run->job;
    const size_t kv_heads = heads->batch * heads->kv_heads, element = attn_dtype_bytes(run->plan->compute);
    const bool is_performer = job->mechanism->type == ATTN_PERFORMER;
    run->scratch = attn_arena_take(arena, run->runtime->threads, run->scratch_bytes);
    heads->row_is_empty = attn_arena_take_zeroed(arena, heads->batch * heads->heads, heads->q_len);
    job->largest = is_performer ? attn_arena_take(arena, kv_heads * job->tiles, element) : NULL;
    char *kept = run->is_by_heads ? run->scratch : attn_arena_take(arena, 1, kept_bytes(job, run->plan));
    if (run->scratch == NULL || heads->row_is_empty == NULL || (is_performer && job->largest == NULL) || kept == NULL)
        return false;
    lay_out_kept(job, run->plan, kept); /* by heads: each task does it again, in its scratch */
    return true;
}

static void stage_task(void *argument, size_t index, size_t worker)
{
    const struct feature_run *run = argument;
    run->stage(&run->job, index, run->scratch + worker * run->scratch_bytes);
}

static void run_stage(struct feature_run *run, attn_feature_task *stage, size_t tasks)
{
    run->stage = stage;
    attn_spread(run->runtime, tasks, stage_task, run);
}

/* All stages of a pass over count key heads, but the first of performer. */
static void run_pass(struct feature_run *run, size_t count)
{
    const struct attn_feature_job *job = &run->job;
    const struct attn_kernel_type *kernel = attn_kernel_of(run->runtime->kernel, run->plan->compute);
    const size_t heads = count * (run->heads->heads / run->heads->kv_heads);
    if (job->is_running || job->phi != NULL)
        run_stage(run, kernel->sum_keys, count * attn_ceil_div(job->end_key - job->first_key, FEATURE_SPLIT));
    if (job->is_running)
        run_stage(run, kernel->prefix_sums, count * attn_ceil_div(job->sums_stride, FEATURE_SLICE));
    run_stage(run, kernel->attend_features, heads * attn_ceil_div(job->end_query - job->first_query, FEATURE_QUERIES));
}

/*
 * All stages for a few key heads at a time, whose features and sums stay in the caches meanwhile: as few heads as keep
 * the threads busy. No bit depends on their number.
 */
static void run_together(struct feature_run *run)
{
    const struct attn_heads_job *heads = run->heads;
    struct attn_feature_job *job = &run->job;
    const size_t kv_heads = heads->batch * heads->kv_heads;
    const size_t tasks = query_tasks(heads->heads / heads->kv_heads, heads->q_len);
    const size_t together =
        attn_min(job->heads_together, attn_ceil_div(run->runtime->threads * TASKS_OF_A_THREAD, tasks));
    for (job->first_head = 0; job->first_head < kv_heads; job->first_head += together) {
        const size_t count = attn_min(kv_heads - job->first_head, together);
        if (job->mechanism->type == ATTN_PERFORMER)
            run_stage(run, attn_kernel_of(run->runtime->kernel, run->plan->compute)->map_keys, count * job->tiles);
        run_pass(run, count);
    }
}

/* The queries of the pass: tiles of them, up to the first that attends to a later key. */
static size_t end_of_queries(const struct attn_feature_job *job)
{
    const struct attn_heads_job *heads = job->heads;
    const size_t b = job->first_head / heads->kv_heads;
    size_t end = job->end_key < heads->kv_len ? job->first_query : heads->q_len;
    for (size_t next; end < heads->q_len; end = next) {
        next = attn_min(end + TILE_ROWS, heads->q_len);
        size_t to = 0;
        for (size_t i = next; to == 0 && i > end; i--) /* rows without keys may be the last ones */
            to = attn_mask_span(heads->mask, b, i - 1).to;
        if (to > job->end_key)
            break;
    }
    return end;
}

/* All stages of a key head, in one thread, for a tile of keys and the queries that attend to no later one at a time. */
static void head_task(void *argument, size_t index, size_t worker)
{
    struct feature_run run = *(const struct feature_run *)argument;
    struct attn_feature_job *job = &run.job;
    attn_runtime alone = attn_runtime_serial(run.runtime->kernel);
    alone.is_cancelled = run.runtime->is_cancelled;
    alone.cancel_context = run.runtime->cancel_context;
    run.runtime = &alone;
    run.scratch += worker * run.scratch_bytes;
    lay_out_kept(job, run.plan, run.scratch + run.scratch_bytes - kept_bytes(job, run.plan));
    job->first_head = index;
    if (job->mechanism->type == ATTN_PERFORMER)
        run_stage(&run, attn_kernel_of(alone.kernel, run.plan->compute)->map_keys, job->tiles);
    job->end_key = job->end_query = 0;
    do {
        job->first_key = job->end_key;
        job->end_key = attn_min(job->first_key + FEATURE_TILE, run.heads->kv_len);
        job->first_query = job->end_query;
        job->end_query = end_of_queries(job);
        run_pass(&run, 1);
    } while (job->end_key < run.heads->kv_len && !attn_is_cancelled(&alone));
}

static void run_stages(struct feature_run *run)
{
    if (run->job.mechanism->type == ATTN_PERFORMER)
        attn_kernel_of(run->runtime->kernel, run->plan->compute)->pack_projection(&run->job);
    if (run->is_by_heads)
        attn_spread(run->runtime, run->heads->batch * run->heads->kv_heads, head_task, run);
    else
        run_together(run);
}

attn_status attn_feature_maps_run(const attn_plan *plan, struct attn_heads_job *heads, const attn_runtime *runtime,
                                  attn_arena *arena, attn_result *result, attn_error *err)
{
    struct feature_run run = {.job = attn_feature_describe(plan),
                              .heads = heads,
                              .plan = plan,
                              .runtime = runtime,
                              .scratch_bytes = attn_feature_maps_bytes(plan).scratch,
                              .is_by_heads = is_by_heads(plan, runtime->threads)};
    if (run.is_by_heads)
        keep_one_head(&run.job);
    heads->is_cancelled = runtime->is_cancelled;
    heads->cancel_context = runtime->cancel_context;
    const bool is_performer = run.job.mechanism->type == ATTN_PERFORMER; /* it needs the largest number of a head */
    attn_status status = ATTN_ERR_NO_MEMORY;
    if (take_memory(&run, arena))
        status = attn_feature_prepare(&run.job, plan, heads, is_performer, runtime, arena);
    if (status == ATTN_ERR_NO_MEMORY)
        return attn_fail_no_memory(err);
    if (status == ATTN_OK)
        run_stages(&run);
    if (status == ATTN_ERR_CANCELLED || attn_is_cancelled(runtime))
        return attn_fail_stopped(err);
    return attn_heads_list_empty(heads, runtime, arena, result, err);
}
