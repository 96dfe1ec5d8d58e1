/* feature_maps.c: attention by feature maps: running sums over keys where the mask allows them, else pair by pair. */
#include "attention/feature_maps.h"

#include <math.h>
#include <string.h>

#include "attention/feature_keys.h"
#include "base/number.h"
#include "base/pace.h"
#include "base/size.h"
#include "formulas/features.h"

enum {
    QUERIES = 64, /* queries of a task */
    TAKES_MAX = 4,
};

/* ---- what a run works with ---- */

struct feature_run {
    struct attn_feature_keys keys;
    struct attn_heads_job *job;
    char *scratch;
    size_t scratch_bytes;
};

/* ---- queries ---- */

/* What a task needs for its rows. */
struct row {
    size_t b, h, i;
    struct attn_feature_sums sums; /* of the keys before sums.at */
    double *phi;                   /* of the query */
    double *out;                   /* d_v, and the denominator */
    struct attn_feature_look look;
};

static bool allows(const struct feature_run *run, struct row *row, size_t j)
{
    return attn_feature_allows(&run->keys, &row->look, row->b, row->h, row->i, j);
}

static double weight_of(const struct feature_run *run, const struct row *row, size_t j)
{
    const struct attn_feature_keys *keys = &run->keys;
    return attn_feature_dot(row->phi, keys->phi + (row->sums.head * run->job->kv_len + j) * keys->m, keys->m);
}

static void sum_running(const struct feature_run *run, struct row *row, attn_span span)
{
    const struct attn_feature_keys *keys = &run->keys;
    attn_feature_advance(keys, &row->sums, span.to);
    for (size_t r = 0; r < keys->m; r++)
        for (size_t c = 0; c < keys->width; c++)
            row->out[c] += row->phi[r] * row->sums.sums[r * keys->width + c];
}

static void sum_pairs(const struct feature_run *run, struct row *row, attn_span span)
{
    const struct attn_heads_job *job = run->job;
    for (size_t j = span.from; j < span.to && !attn_is_cancelled(run->keys.runtime); j++) {
        if (!allows(run, row, j))
            continue;
        const double w = weight_of(run, row, j);
        const size_t v = attn_operand_at(&job->v, row->b, row->h / (job->heads / job->kv_heads), j);
        for (size_t c = 0; c < job->d_v; c++)
            row->out[c] += w * attn_number_get(job->v.data, job->compute, v + c);
        row->out[job->d_v] += w;
    }
}

/* The equivalent weights of a row, in a map that keeps it. */
static void keep_row(const struct feature_run *run, struct row *row, int which, attn_span span, double divisor)
{
    const struct attn_heads_job *job = run->job;
    const struct attn_map *map = &job->map[which];
    const size_t head = map->all_heads || job->head_slot == NULL ? row->h : job->head_slot[row->h];
    const size_t heads = map->all_heads ? job->heads : job->kept_heads;
    const size_t query = job->query_slot == NULL ? row->i : job->query_slot[row->i];
    if (map->data == NULL || head == SIZE_MAX || query == SIZE_MAX)
        return;
    const size_t first = ((row->b * heads + head) * job->kept_queries + query) * job->kept_keys;
    for (size_t j = 0; j < job->kept_keys; j++)
        attn_number_put(map->data, job->compute, first + j, 0);
    for (size_t j = span.from; j < span.to && !attn_is_cancelled(run->keys.runtime); j++) {
        const size_t key = job->key_slot == NULL ? j : job->key_slot[j];
        if (key != SIZE_MAX && allows(run, row, j))
            attn_number_put(map->data, job->compute, first + key, weight_of(run, row, j) / divisor);
    }
}

static void attend_row(const struct feature_run *run, struct row *row)
{
    const struct attn_heads_job *job = run->job;
    const struct attn_feature_keys *keys = &run->keys;
    const attn_span span = attn_mask_span(job->mask, row->b, row->i);
    const bool sees = attn_feature_sees(keys, &row->look, row->b, row->h, row->i, span);
    memset(row->out, 0, keys->width * sizeof *row->out);
    if (sees) {
        attn_feature_map_query(keys, row->b, row->h, row->i, row->phi);
        if (keys->is_running)
            sum_running(run, row, span);
        else
            sum_pairs(run, row, span);
    }
    const double divisor = sees ? attn_feature_divisor(keys->mechanism, row->out[job->d_v]) : 1;
    const size_t to = attn_operand_at(&job->context, row->b, row->h, row->i);
    for (size_t c = 0; c < job->d_v; c++)
        attn_number_put((void *)(uintptr_t)job->context.data, job->compute, to + c, row->out[c] / divisor);
    job->row_is_empty[(row->b * job->heads + row->h) * job->q_len + row->i] = !sees;
    const attn_span kept = sees ? span : (attn_span){0, 0};
    keep_row(run, row, MAP_ATTENTION, kept, divisor);
    keep_row(run, row, MAP_MEAN_SOURCE, kept, divisor);
}

static size_t row_blocks(size_t q_len)
{
    return attn_ceil_div(q_len, QUERIES);
}

static void query_task(void *argument, size_t index, size_t worker)
{
    const struct feature_run *run = argument;
    const struct attn_heads_job *job = run->job;
    const size_t across = row_blocks(job->q_len), head = index / across, first = index % across * QUERIES;
    struct row row = {.b = head / job->heads, .h = head % job->heads, .sums = {.at = SIZE_MAX}};
    row.sums.head = row.b * job->kv_heads + row.h / (job->heads / job->kv_heads);
    row.phi = (double *)(void *)(run->scratch + worker * run->scratch_bytes);
    row.out = row.phi + run->keys.m;
    row.sums.sums = row.out + run->keys.width;
    for (row.i = first; row.i < job->q_len && row.i < first + QUERIES && !attn_is_cancelled(run->keys.runtime); row.i++)
        attend_row(run, &row);
}

/* ---- the run ---- */

static bool take_memory(struct feature_run *run, attn_arena *arena)
{
    struct attn_heads_job *job = run->job;
    run->scratch = attn_arena_take(arena, run->keys.runtime->threads, run->scratch_bytes);
    job->row_is_empty = attn_arena_take_zeroed(arena, job->batch * job->heads, job->q_len);
    return run->scratch != NULL && job->row_is_empty != NULL;
}

attn_status attn_feature_maps_run(const attn_plan *plan, const attn_request *request, struct attn_heads_job *job,
                                  const attn_runtime *runtime, attn_arena *arena, attn_result *result, attn_error *err)
{
    const size_t tasks = job->batch * job->heads * row_blocks(job->q_len);
    struct feature_run run = {.keys = attn_feature_keys_describe(plan, request, job, runtime),
                              .job = job,
                              .scratch_bytes = attn_feature_maps_scratch_bytes(plan, request)};
    attn_status status = take_memory(&run, arena) ? attn_feature_keys_prepare(&run.keys, arena) : ATTN_ERR_NO_MEMORY;
    if (status == ATTN_OK)
        attn_spread(runtime, tasks, query_task, &run);
    if (status == ATTN_ERR_NO_MEMORY)
        return attn_fail(err, status, NULL, "not enough memory for the features of the keys");
    if (status == ATTN_ERR_CANCELLED || attn_is_cancelled(run.keys.runtime))
        return attn_fail_stopped(err);
    status = attn_heads_list_empty(job, runtime, arena, result);
    return status == ATTN_OK ? ATTN_OK : attn_fail(err, status, NULL, "not enough memory for the diagnostics");
}

/* ---- weight ---- */

size_t attn_feature_maps_scratch_bytes(const attn_plan *plan, const attn_request *request)
{
    const size_t m = attn_mechanism_features(&request->options.mechanism, plan->dims.d_k), width = plan->dims.d_v + 1;
    const size_t bytes = (m + width + m * width) * sizeof(double);
    return attn_round_up(bytes, ATTN_ALIGNMENT);
}

size_t attn_feature_maps_shared_bytes(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const size_t rows = d->batch * d->heads * d->q_len;
    const size_t listed = attn_min(rows, ATTN_EMPTY_ROWS_LISTED);
    return attn_feature_keys_bytes(plan, request) + rows + listed * sizeof(attn_row) +
           (size_t)TAKES_MAX * ATTN_ALIGNMENT;
}

double attn_feature_maps_numbers(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const double m = (double)attn_mechanism_features(&request->options.mechanism, d->d_k), width = (double)d->d_v + 1;
    const double tokens =
        (double)d->batch * ((double)d->heads * (double)d->q_len + (double)d->kv_heads * (double)d->kv_len);
    const double blocks = (double)d->kv_len / FEATURE_KEYS + 2;
    return tokens * (m + width) + (double)d->batch * (double)d->kv_heads * blocks * m * width + 3 * m * (double)d->d_k;
}

double attn_feature_maps_flops(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const attn_mechanism *mechanism = &request->options.mechanism;
    const double m = (double)attn_mechanism_features(mechanism, d->d_k), width = (double)(d->d_v + 1);
    const double heads = (double)d->batch * (double)d->heads, kv_heads = (double)d->batch * (double)d->kv_heads;
    const double q_len = (double)d->q_len, kv_len = (double)d->kv_len;
    const double map = mechanism->type == ATTN_PERFORMER ? 2 * m * (double)d->d_k + 20 * m : 20 * m;
    /* All keys are summed once per head. Each task of queries sums the keys of one more block. */
    double flops = heads * q_len * (map + 4 * m * width) + kv_heads * kv_len * (map + 2 * m * width) +
                   heads * (double)row_blocks(d->q_len) * FEATURE_KEYS * 2 * m * width;
    if (mechanism->type == ATTN_PERFORMER && mechanism->projection == NULL)
        flops += attn_performer_flops((size_t)m, d->d_k);
    const uint32_t maps = UINT32_C(1) << ATTN_STEP_ATTENTION | UINT32_C(1) << ATTN_STEP_ATTENTION_MEAN |
                          UINT32_C(1) << ATTN_STEP_CONTRIBUTION;
    const double pairs = heads * q_len * kv_len;
    if ((plan->want & maps) != 0)
        flops += 2 * pairs * m;
    if (!plan->has_running_sums)
        flops += 2 * pairs * (m + width + 50);
    return flops;
}
