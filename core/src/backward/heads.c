/* heads.c: the backward pass of attention over all batch items and heads. */
#include "backward/backward.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"

enum {
    WANTED_TASKS = 32, /* per batch item: key heads are split until there are this many */
    SPLITS_MAX = 8,    /* each split has its own partial sum of dq in memory */
    ROWS_OF_A_TASK = 256,
};

struct head_gradients {
    struct attn_gradient_heads *heads;
    const attn_runtime *runtime;
    const struct attn_kernel_backward *kernel;
    char *scratch;
    size_t scratch_bytes;
};

/* Splits depend only on the shape of one batch item, because they determine the order of sums. */
static void choose_splits(struct attn_gradient_heads *heads)
{
    const struct attn_heads_job *job = &heads->job;
    const size_t tiles = attn_ceil_div(job->kv_len, GRADIENT_KEYS);
    size_t splits = attn_min(attn_min(attn_ceil_div(WANTED_TASKS, job->kv_heads), SPLITS_MAX), tiles);
    splits = splits == 0 ? 1 : splits;
    const size_t tiles_each = attn_ceil_div(tiles, splits);
    heads->split_keys = (tiles_each == 0 ? 1 : tiles_each) * GRADIENT_KEYS;
    heads->splits = attn_ceil_div(job->kv_len, heads->split_keys); /* 0 without keys: dq is an empty sum */
}

/* ---- before: delta ---- */

static size_t row_tasks(const struct attn_heads_job *job)
{
    return job->batch * job->heads * attn_ceil_div(job->q_len, ROWS_OF_A_TASK);
}

struct rows_of_task {
    size_t b, h, from, to;
};

static struct rows_of_task rows_of(const struct attn_heads_job *job, size_t index)
{
    const size_t across = attn_ceil_div(job->q_len, ROWS_OF_A_TASK), head = index / across;
    const size_t from = index % across * ROWS_OF_A_TASK;
    return (struct rows_of_task){head / job->heads, head % job->heads, from,
                                 attn_min(from + ROWS_OF_A_TASK, job->q_len)};
}

static void prepare_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct head_gradients *run = argument;
    const struct attn_gradient_heads *heads = run->heads;
    const struct attn_heads_job *job = &heads->job;
    const struct rows_of_task rows = rows_of(job, index);
    for (size_t i = rows.from; i < rows.to && !attn_is_cancelled(run->runtime); i++)
        attn_number_put(heads->delta, job->compute, (rows.b * job->heads + rows.h) * job->q_len + i,
                        run->kernel->dot(attn_operand_row(&heads->grad_context, rows.b, rows.h, i).data,
                                         attn_operand_row(&job->context, rows.b, rows.h, i).data, job->d_v));
}

/* ---- results of a tile ---- */

static const char *masked_of(const struct gradient_tile *tile)
{
    return tile->masked == NULL ? tile->g : tile->masked;
}

/* Writes the selected pairs of the tile to a map; NULL: not wanted. */
static void keep_map(const struct gradient_tile *tile, const char *numbers, void *map)
{
    if (map == NULL)
        return;
    const struct attn_heads_job *job = &tile->heads->job;
    const size_t head = job->head_slot == NULL ? tile->h : job->head_slot[tile->h];
    for (size_t r = 0; r < tile->rows && head != SIZE_MAX; r++) {
        const size_t i = tile->row0 + r, query = job->query_slot == NULL ? i : job->query_slot[i];
        const size_t row = ((tile->b * job->kept_heads + head) * job->kept_queries + query) * job->kept_keys;
        for (size_t c = 0; query != SIZE_MAX && c < tile->keys; c++) {
            const size_t j = tile->key0 + c, key = job->key_slot == NULL ? j : job->key_slot[j];
            if (key != SIZE_MAX)
                attn_number_put(map, job->compute, row + key,
                                attn_number_get(numbers, job->compute, r * GRADIENT_STRIDE + c));
        }
    }
}

static void add_bias(const struct gradient_tile *tile)
{
    const struct attn_gradient_heads *heads = tile->heads;
    const attn_dtype compute = heads->job.compute;
    const size_t *step = heads->bias_step;
    for (size_t r = 0; r < tile->rows; r++) {
        const size_t at = tile->b * step[0] + tile->h * step[1] + (tile->row0 + r) * step[2] + tile->key0 * step[3];
        double sum = 0;
        for (size_t c = 0; c < tile->keys; c++) {
            const double gradient = attn_number_get(masked_of(tile), compute, r * GRADIENT_STRIDE + c);
            if (step[3] == 0)
                sum += gradient;
            else
                attn_number_add(heads->grad_bias, compute, at + c * step[3], gradient);
        }
        if (step[3] == 0)
            attn_number_add(heads->grad_bias, compute, at, sum);
    }
}

/* Sums along the diagonals: query i and key j have index q_len - 1 - i + j, as in attn_distance_bias_row. */
static void add_distance(const struct gradient_tile *tile, double *to)
{
    const struct attn_heads_job *job = &tile->heads->job;
    for (size_t r = 0; r < tile->rows; r++) {
        double *row = to + job->q_len - 1 - (tile->row0 + r) + tile->key0;
        for (size_t c = 0; c < tile->keys; c++)
            row[c] += attn_number_get(masked_of(tile), job->compute, r * GRADIENT_STRIDE + c);
    }
}

/* Whether no two splits of key heads add to the same number of the bias. Otherwise the bias has a pass of its own. */
static bool bias_is_owned(const struct attn_gradient_heads *heads)
{
    const struct attn_heads_job *job = &heads->job;
    return (heads->bias_step[0] != 0 || job->batch == 1) && (heads->bias_step[1] != 0 || job->kv_heads == 1) &&
           (heads->bias_step[3] != 0 || heads->splits == 1);
}

/* ---- the pass over keys ---- */

/* Cached keys and new keys have their gradients in different tensors. from has rows with the stride of rows. */
static void store_keys(const struct gradient_tile *tile, const struct attn_operand *to_past,
                       const struct attn_operand *to_new, size_t head, const char *from,
                       const struct attn_backward_rows *rows, double factor)
{
    const attn_dtype compute = tile->heads->job.compute;
    const size_t past_len = tile->heads->past_len;
    for (size_t c = 0; c < tile->keys; c++) {
        const size_t key = tile->key0 + c;
        const struct attn_operand *to = key < past_len ? to_past : to_new;
        if (to->data == NULL)
            continue;
        const struct attn_backward_sum one = {
            .from = from + c * rows->stride * attn_dtype_bytes(compute),
            .to = (void *)(uintptr_t)attn_operand_row(to, tile->b, head, key < past_len ? key : key - past_len).data,
            .parts = 1,
            .n = rows->features,
            .factor = factor};
        tile->kernel->backward.sum(&one);
    }
}

static size_t diagonals(const struct attn_heads_job *job)
{
    return job->q_len + job->kv_len;
}

static double *distance_part_of(const struct attn_gradient_heads *heads, size_t split, size_t b, size_t h)
{
    const struct attn_heads_job *job = &heads->job;
    return heads->distance_parts + ((split * job->batch + b) * job->heads + h) * diagonals(job);
}

static char *part_of(const struct attn_gradient_heads *heads, size_t split, size_t b, size_t h, size_t i)
{
    const struct attn_heads_job *job = &heads->job;
    const size_t row = ((split * job->batch + b) * job->heads + h) * job->q_len + i;
    return heads->parts == NULL ? NULL
                                : heads->parts + row * gradient_columns(job->d_k) * attn_dtype_bytes(job->compute);
}

/* All queries of the group against the keys of the tile. */
static bool attend_keys(const struct head_gradients *run, struct gradient_tile *tile, size_t split, bool keeps_bias)
{
    const struct attn_heads_job *job = &run->heads->job;
    const size_t group = job->heads / job->kv_heads, element = attn_dtype_bytes(job->compute);
    memset(tile->grad_k, 0, tile->keys * tile->k.stride * element);
    for (size_t h = tile->kv_head * group; h < (tile->kv_head + 1) * group; h++)
        for (size_t row0 = 0; row0 < job->q_len; row0 += GRADIENT_ROWS) {
            if (attn_is_cancelled(run->runtime))
                return false;
            char *part = part_of(run->heads, split, tile->b, h, row0);
            const bool is_first = tile->key0 == split * run->heads->split_keys;
            if (!gradient_tile_set_rows(tile, h, row0)) {
                if (part != NULL && is_first)
                    memset(part, 0, tile->rows * gradient_columns(job->d_k) * element);
                continue;
            }
            gradient_tile_score(tile);
            gradient_tile_multiply(tile, part, is_first);
            keep_map(tile, masked_of(tile), run->heads->grad_scores);
            keep_map(tile, tile->weights, run->heads->grad_attention);
            if (keeps_bias)
                add_bias(tile);
            if (run->heads->grad_distance != NULL)
                add_distance(tile, distance_part_of(run->heads, split, tile->b, h));
        }
    store_keys(tile, &run->heads->grad_past_k, &run->heads->grad_k, tile->kv_head, tile->grad_k, &tile->k, job->scale);
    return true;
}

/* The key heads that read one head of values, whose gradients are one sum. */
static size_t key_heads_of_values(const struct attn_heads_job *job)
{
    return job->v.is_shared ? 2 : 1;
}

static void keys_task(void *argument, size_t index, size_t worker)
{
    const struct head_gradients *run = argument;
    const struct attn_gradient_heads *heads = run->heads;
    const struct attn_heads_job *job = &heads->job;
    const size_t split = index % heads->splits, owner = index / heads->splits, group = job->heads / job->kv_heads;
    const size_t sharing = key_heads_of_values(job), v_heads = job->kv_heads / sharing;
    const size_t b = owner / v_heads, v_head = owner % v_heads, kv_head = v_head * sharing;
    const size_t end = attn_min((split + 1) * heads->split_keys, job->kv_len);
    const bool keeps_bias = heads->grad_bias != NULL && bias_is_owned(heads);
    struct gradient_tile tile;
    gradient_tile_lay_out(heads, run->runtime->kernel, &tile, run->scratch + worker * run->scratch_bytes);
    if (heads->grad_distance != NULL)
        memset(distance_part_of(heads, split, b, kv_head * group), 0,
               sharing * group * diagonals(job) * sizeof(double));
    for (size_t key0 = split * heads->split_keys; key0 < end; key0 += GRADIENT_KEYS) {
        for (size_t k = kv_head; k < kv_head + sharing; k++) {
            gradient_tile_set_keys(&tile, b, k, key0);
            if (k == kv_head)
                memset(tile.grad_v, 0, tile.keys * tile.v.stride * attn_dtype_bytes(job->compute));
            if (!attend_keys(run, &tile, split, keeps_bias))
                return;
        }
        store_keys(&tile, &heads->grad_past_v, &heads->grad_v, v_head, tile.grad_v, &tile.v, 1);
    }
}

/* ---- the pass for a bias whose sums would cross tasks ---- */

struct range {
    size_t from, to;
};

/* The indices of a dimension that share the bias at index at: all where it is broadcast (step 0), otherwise only at. */
static struct range range_of(size_t step, size_t at, size_t all)
{
    return step == 0 ? (struct range){0, all} : (struct range){at, at + 1};
}

static size_t bias_key_tasks(const struct attn_gradient_heads *heads)
{
    return heads->bias_step[3] == 0 ? 1 : attn_ceil_div(heads->job.kv_len, GRADIENT_KEYS);
}

static void bias_rows(const struct head_gradients *run, struct gradient_tile *tile, struct range of_heads)
{
    const struct attn_heads_job *job = &run->heads->job;
    const size_t group = job->heads / job->kv_heads;
    size_t first = tile->kv_head * group, end = first + group;
    first = first < of_heads.from ? of_heads.from : first;
    end = attn_min(end, of_heads.to);
    for (size_t h = first; h < end; h++)
        for (size_t row0 = 0; row0 < job->q_len && !attn_is_cancelled(run->runtime); row0 += GRADIENT_ROWS)
            if (gradient_tile_set_rows(tile, h, row0)) {
                gradient_tile_score(tile);
                add_bias(tile);
            }
}

static void bias_task(void *argument, size_t index, size_t worker)
{
    const struct head_gradients *run = argument;
    const struct attn_gradient_heads *heads = run->heads;
    const struct attn_heads_job *job = &heads->job;
    const size_t key_tasks = bias_key_tasks(heads), head_place = index / key_tasks % heads->bias_size[1];
    const size_t group = job->heads / job->kv_heads;
    const struct range items = range_of(heads->bias_step[0], index / key_tasks / heads->bias_size[1], job->batch);
    const struct range of_heads = range_of(heads->bias_step[1], head_place, job->heads);
    const size_t key0 = index % key_tasks * GRADIENT_KEYS;
    const size_t end = heads->bias_step[3] == 0 ? job->kv_len : attn_min(key0 + GRADIENT_KEYS, job->kv_len);
    struct gradient_tile tile;
    gradient_tile_lay_out(heads, run->runtime->kernel, &tile, run->scratch + worker * run->scratch_bytes);
    for (size_t b = items.from; b < items.to; b++)
        for (size_t kv_head = of_heads.from / group; kv_head * group < of_heads.to; kv_head++)
            for (size_t key = key0; key < end && !attn_is_cancelled(run->runtime); key += GRADIENT_KEYS) {
                gradient_tile_set_keys(&tile, b, kv_head, key);
                bias_rows(run, &tile, of_heads);
            }
}

/* ---- after: dq, the scale, and gradients of one vector or number per head ---- */

static bool row_has_keys(const struct attn_gradient_heads *heads, size_t row)
{
    const void *lse = heads->lse_keys != NULL ? heads->lse_keys : heads->lse;
    return attn_number_get(lse, heads->job.compute, row) != -(double)INFINITY;
}

/* to = factor times the sum of the parts of dq. */
static void sum_parts(const struct head_gradients *run, size_t b, size_t h, size_t i, double factor, void *to)
{
    const struct attn_heads_job *job = &run->heads->job;
    const struct attn_backward_sum sum = {.from = part_of(run->heads, 0, b, h, i),
                                          .to = to,
                                          .parts = run->heads->splits,
                                          .stride = job->batch * job->heads * job->q_len * gradient_columns(job->d_k),
                                          .n = job->d_k,
                                          .factor = factor};
    run->kernel->sum(&sum);
}

static void finish_task(void *argument, size_t index, size_t worker)
{
    const struct head_gradients *run = argument;
    const struct attn_gradient_heads *heads = run->heads;
    const struct attn_heads_job *job = &heads->job;
    const struct rows_of_task rows = rows_of(job, index);
    const size_t b = rows.b, h = rows.h;
    char *sum = run->scratch + worker * run->scratch_bytes;
    double product = 0;
    for (size_t i = rows.from; i < rows.to && !attn_is_cancelled(run->runtime); i++) {
        if (heads->grad_q.data != NULL)
            sum_parts(run, b, h, i, job->scale, (void *)(uintptr_t)attn_operand_row(&heads->grad_q, b, h, i).data);
        if (heads->grad_scale == NULL || !row_has_keys(heads, (b * job->heads + h) * job->q_len + i))
            continue;
        sum_parts(run, b, h, i, 1, sum);
        product += run->kernel->dot(sum, attn_operand_row(&job->q, b, h, i).data, job->d_k);
    }
    heads->scale_parts[index] = product;
}

/* The sink has no value, so the gradient of its weight is 0: dS = p (0 - delta). Rows without keys add nothing. */
static void finish_sink(const struct attn_gradient_heads *heads, size_t h)
{
    const struct attn_heads_job *job = &heads->job;
    const attn_dtype compute = job->compute;
    const double logit =
        attn_number_get(job->options->sinks->data, compute, h * (size_t)job->options->sinks->stride[0]);
    double sum = 0;
    for (size_t b = 0; b < job->batch; b++)
        for (size_t i = 0; i < job->q_len; i++) {
            const size_t row = (b * job->heads + h) * job->q_len + i;
            if (row_has_keys(heads, row))
                sum -= exp(logit - attn_number_get(heads->lse, compute, row)) *
                       attn_number_get(heads->delta, compute, row);
        }
    attn_number_put(heads->grad_sinks, compute, h, sum);
}

static void finish_head_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct head_gradients *run = argument;
    const struct attn_gradient_heads *heads = run->heads;
    const struct attn_heads_job *job = &heads->job;
    if (heads->grad_sinks != NULL)
        finish_sink(heads, index);
    for (size_t b = 0; heads->grad_distance != NULL && b < job->batch; b++)
        for (size_t n = 0; n < diagonals(job); n++) {
            double sum = 0;
            for (size_t s = 0; s < heads->splits; s++)
                sum += distance_part_of(heads, s, b, index)[n];
            heads->grad_distance[(b * job->heads + index) * diagonals(job) + n] = sum;
        }
}

/* ---- the run ---- */

static bool needs_parts(const struct attn_gradient_heads *heads)
{
    return heads->grad_q.data != NULL || heads->grad_scale != NULL;
}

static size_t query_rows(const struct attn_heads_job *job)
{
    return job->batch * job->heads * job->q_len;
}

static size_t parts_count(const struct attn_gradient_heads *heads)
{
    return needs_parts(heads) ? heads->splits * query_rows(&heads->job) * gradient_columns(heads->job.d_k) : 0;
}

static size_t distance_count(const struct attn_gradient_heads *heads)
{
    const struct attn_heads_job *job = &heads->job;
    return heads->grad_distance != NULL ? heads->splits * job->batch * job->heads * diagonals(job) : 0;
}

enum { TAKES = 4 };

struct attn_bytes attn_gradient_heads_bytes(const struct attn_gradient_heads *heads)
{
    struct gradient_tile tile;
    struct attn_gradient_heads divided = *heads;
    choose_splits(&divided);
    const size_t numbers = query_rows(&heads->job) + parts_count(&divided);
    const size_t doubles = row_tasks(&heads->job) + distance_count(&divided);
    return (struct attn_bytes){
        .scratch = gradient_tile_lay_out(heads, NULL, &tile, NULL),
        .shared =
            numbers * attn_dtype_bytes(heads->job.compute) + doubles * sizeof(double) + (size_t)TAKES * ATTN_ALIGNMENT,
    };
}

static bool take_memory(struct head_gradients *run, attn_arena *arena)
{
    struct attn_gradient_heads *heads = run->heads;
    const struct attn_heads_job *job = &heads->job;
    const size_t element = attn_dtype_bytes(job->compute);
    run->scratch_bytes = gradient_tile_lay_out(heads, NULL, &(struct gradient_tile){0}, NULL);
    run->scratch = attn_arena_take(arena, run->runtime->threads, run->scratch_bytes);
    heads->delta = attn_arena_take(arena, query_rows(job), element);
    heads->scale_parts = attn_arena_take(arena, row_tasks(job), sizeof(double));
    heads->distance_parts = attn_arena_take(arena, distance_count(heads), sizeof(double));
    heads->parts = needs_parts(heads) ? attn_arena_take(arena, parts_count(heads), element) : NULL;
    return run->scratch != NULL && heads->delta != NULL && heads->scale_parts != NULL &&
           heads->distance_parts != NULL && (heads->parts != NULL || !needs_parts(heads));
}

/* Tiles without allowed pairs are skipped, so the maps are cleared first. */
static void clear_maps(const struct attn_gradient_heads *heads)
{
    const struct attn_heads_job *job = &heads->job;
    const size_t element = attn_dtype_bytes(job->compute), *size = heads->bias_size;
    void *const maps[] = {heads->grad_scores, heads->grad_attention};
    for (size_t i = 0; i < 2; i++)
        if (maps[i] != NULL)
            memset(maps[i], 0, job->batch * job->kept_heads * job->kept_queries * job->kept_keys * element);
    if (heads->grad_bias != NULL)
        memset(heads->grad_bias, 0, size[0] * size[1] * size[2] * size[3] * element);
}

attn_status attn_gradient_heads_run(struct attn_gradient_heads *heads, const attn_runtime *runtime, attn_arena *arena,
                                    attn_error *err)
{
    struct head_gradients run = {
        .heads = heads, .runtime = runtime, .kernel = &attn_kernel_of(runtime->kernel, heads->job.compute)->backward};
    const struct attn_heads_job *job = &heads->job;
    choose_splits(heads);
    if (!take_memory(&run, arena))
        return attn_fail_no_memory(err);
    clear_maps(heads);
    attn_spread(run.runtime, row_tasks(job), prepare_task, &run);
    attn_spread(run.runtime, job->batch * job->kv_heads / key_heads_of_values(job) * heads->splits, keys_task, &run);
    if (heads->grad_bias != NULL && !bias_is_owned(heads))
        attn_spread(run.runtime, heads->bias_size[0] * heads->bias_size[1] * bias_key_tasks(heads), bias_task, &run);
    if (needs_parts(heads))
        attn_spread(run.runtime, row_tasks(job), finish_task, &run);
    if (heads->grad_sinks != NULL || heads->grad_distance != NULL)
        attn_spread(run.runtime, job->heads, finish_head_task, &run);
    if (attn_is_cancelled(run.runtime))
        return attn_fail_stopped(err);
    double scale = 0;
    for (size_t t = 0; needs_parts(heads) && t < row_tasks(job); t++)
        scale += heads->scale_parts[t];
    if (heads->grad_scale != NULL)
        *heads->grad_scale = scale;
    return ATTN_OK;
}
