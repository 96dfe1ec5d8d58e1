/* features.c: the backward pass of linear and performer: what a run takes, and its stages. */
#include "backward/backward.h"

#include "base/parallel.h"
#include "base/size.h"

enum { TAKES_MAX = 20 };

struct gradient_run {
    struct attn_feature_job job;
    struct attn_feature_gradients gradients;
    struct attn_heads_job heads;
    const attn_runtime *runtime;
    attn_feature_gradient_task *stage;
    char *scratch;
    size_t scratch_bytes;
};

/* ---- sizes ---- */

static size_t columns_of(size_t features)
{
    return attn_round_up(features, BACKWARD_COLUMN_UNIT);
}

static void describe(const attn_plan *plan, struct gradient_run *run)
{
    const attn_dims *d = &plan->dims;
    run->job = attn_feature_describe(plan);
    run->gradients = (struct attn_feature_gradients){
        .job = &run->job,
        .q_tiles = attn_ceil_div(d->q_len, TILE_ROWS),
        .m_stride = columns_of(run->job.m),
        .x_stride = columns_of(d->d_k),
        .width_stride = columns_of(d->d_v + 1),
    };
    struct attn_feature_gradients *g = &run->gradients;
    const size_t prefixes = plan->has_prefix_sums ? run->job.blocks + 1 : 0;
    const size_t slots = attn_ceil_div(d->heads / d->kv_heads * g->q_tiles, FEATURE_SLOT_TILES);
    g->slots = attn_max(prefixes, slots);
    g->sums_stride = g->width_stride * g->m_stride;
}

struct counts {
    size_t key_heads, key_tiles, query_tiles, query_tasks;            /* over all items and heads */
    size_t phi_k, phi_q, grad_sums, key_sums, query_sums, projection; /* numbers of the compute type */
};

static struct counts count(const attn_plan *plan, const struct gradient_run *run)
{
    const attn_dims *d = &plan->dims;
    const struct attn_feature_gradients *g = &run->gradients;
    const bool is_performer = run->job.mechanism->type == ATTN_PERFORMER;
    struct counts n = {.key_heads = d->batch * d->kv_heads};
    n.key_tiles = n.key_heads * run->job.tiles;
    n.query_tiles = d->batch * d->heads * g->q_tiles;
    n.query_tasks = d->batch * d->heads * attn_ceil_div(d->q_len, FEATURE_QUERIES);
    n.phi_k = n.key_tiles * FEATURE_TILE * g->m_stride;
    n.phi_q = n.query_tiles * TILE_ROWS * run->job.phi_stride;
    n.grad_sums = n.query_tiles * TILE_ROWS * g->width_stride + ATTN_ALIGNMENT; /* read by whole register tiles */
    n.key_sums = run->job.is_running ? n.key_heads * run->job.blocks * g->sums_stride : 0;
    n.query_sums = run->job.is_running ? n.key_heads * g->slots * g->sums_stride : 0;
    n.projection = is_performer ? run->job.m * g->x_stride + d->d_k * g->m_stride : 0;
    return n;
}

struct attn_bytes attn_gradient_features_bytes(const attn_plan *plan)
{
    struct gradient_run run;
    describe(plan, &run);
    run.heads = (struct attn_heads_job){.d_k = plan->dims.d_k, .d_v = plan->dims.d_v};
    run.job.heads = &run.heads;
    const struct counts n = count(plan, &run);
    const size_t numbers =
        n.phi_k + n.phi_q + n.grad_sums + n.key_sums + n.query_sums + n.projection + n.key_tiles /* largest */;
    struct attn_bytes bytes = {.shared = attn_feature_prepared_bytes(plan) + numbers * attn_dtype_bytes(plan->compute) +
                                         n.key_tiles * (2 * sizeof(double) + sizeof(size_t) + 1) +
                                         n.query_tiles * sizeof(struct attn_feature_reach) +
                                         (n.query_tasks + n.key_heads) * sizeof(double) +
                                         (size_t)TAKES_MAX * ATTN_ALIGNMENT};
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        bytes.scratch = attn_max(
            bytes.scratch, attn_kernel_of(kernel, plan->compute)->feature_gradients.scratch_bytes(&run.gradients));
    bytes.scratch = attn_round_up(bytes.scratch, ATTN_ALIGNMENT);
    return bytes;
}

/* Each product of the forward pass has two or three in the backward pass. A mask that is looked up is looked up again. */
double attn_gradient_features_flops(const attn_plan *plan)
{
    return 4 * attn_feature_maps_flops(plan);
}

/* ---- the run ---- */

static bool take_memory(struct gradient_run *run, const attn_plan *plan, attn_arena *arena)
{
    struct attn_feature_gradients *g = &run->gradients;
    const struct counts n = count(plan, run);
    const size_t element = attn_dtype_bytes(plan->compute), m = run->job.m, d_k = plan->dims.d_k;
    const bool is_performer = run->job.mechanism->type == ATTN_PERFORMER;
    run->scratch = attn_arena_take(arena, run->runtime->threads, run->scratch_bytes);
    g->phi_k = attn_arena_take(arena, n.phi_k, element);
    g->phi_is_finite = attn_arena_take(arena, n.key_tiles, 1);
    g->phi_q = attn_arena_take(arena, n.phi_q, element);
    g->grad_sums = attn_arena_take(arena, n.grad_sums, element);
    g->reach = attn_arena_take(arena, n.query_tiles, sizeof *g->reach);
    g->key_sums = attn_arena_take(arena, n.key_sums, element);
    g->query_sums = attn_arena_take(arena, n.query_sums, element);
    g->query_scale = attn_arena_take_zeroed(arena, n.query_tasks, sizeof(double));
    g->key_scale = attn_arena_take_zeroed(arena, n.key_tiles, sizeof(double));
    g->largest_scale = attn_arena_take_zeroed(arena, n.key_heads, sizeof(double));
    const bool has_all = run->scratch != NULL && g->phi_k != NULL && g->phi_is_finite != NULL && g->phi_q != NULL &&
                         g->grad_sums != NULL && g->reach != NULL && g->key_sums != NULL && g->query_sums != NULL &&
                         g->query_scale != NULL && g->key_scale != NULL && g->largest_scale != NULL;
    if (!is_performer || !has_all)
        return has_all;
    g->projection = attn_arena_take(arena, m * g->x_stride, element);
    g->projection_transposed = attn_arena_take(arena, d_k * g->m_stride, element);
    g->largest_at = attn_arena_take(arena, n.key_tiles, sizeof *g->largest_at);
    g->largest_parts = attn_arena_take(arena, n.key_tiles, sizeof *g->largest_parts);
    run->job.largest = attn_arena_take(arena, n.key_tiles, element);
    return g->projection != NULL && g->projection_transposed != NULL && g->largest_at != NULL &&
           g->largest_parts != NULL && run->job.largest != NULL;
}

static void stage_task(void *argument, size_t index, size_t worker)
{
    const struct gradient_run *run = argument;
    run->stage(&run->gradients, index, run->scratch + worker * run->scratch_bytes);
}

static void run_stage(struct gradient_run *run, attn_feature_gradient_task *stage, size_t tasks)
{
    run->stage = stage;
    if (!attn_is_cancelled(run->runtime))
        attn_spread(run->runtime, tasks, stage_task, run);
}

static void run_stages(struct gradient_run *run, const struct counts *n)
{
    const struct attn_kernel_type *forward = attn_kernel_of(run->runtime->kernel, run->heads.compute);
    const struct attn_kernel_feature_gradients *kernel = &forward->feature_gradients;
    const size_t slices = attn_ceil_div(run->gradients.sums_stride, FEATURE_SLICE);
    const bool is_performer = run->job.mechanism->type == ATTN_PERFORMER, is_running = run->job.is_running;
    if (is_performer) {
        forward->pack_projection(&run->job); /* for the features of the queries */
        kernel->pack_projection(&run->gradients);
        run_stage(run, kernel->project_keys, n->key_tiles);
    }
    run_stage(run, kernel->sum_keys, n->key_heads * run->job.blocks);
    if (is_running)
        run_stage(run, kernel->prefix_keys, n->key_heads * slices);
    run_stage(run, kernel->queries, n->query_tasks);
    if (is_running) {
        run_stage(run, kernel->sum_queries, n->key_heads * run->gradients.slots);
        run_stage(run, kernel->suffix_queries, n->key_heads * slices);
    }
    run_stage(run, kernel->keys, n->key_tiles);
    if (is_performer && run->job.mechanism->eps > 0)
        run_stage(run, kernel->largest, n->key_heads);
}

static double sum_of(const double *parts, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += parts[i];
    return sum;
}

attn_status attn_gradient_features_run(const attn_plan *plan, const struct attn_gradient_heads *heads,
                                       const attn_runtime *runtime, attn_arena *arena, attn_error *err)
{
    struct gradient_run run;
    describe(plan, &run);
    run.runtime = runtime;
    run.heads = heads->job;
    run.heads.is_cancelled = runtime->is_cancelled;
    run.heads.cancel_context = runtime->cancel_context;
    run.scratch_bytes = attn_gradient_features_bytes(plan).scratch;
    run.gradients.grad_context = heads->grad_context;
    run.gradients.grad_q = heads->grad_q;
    run.gradients.grad_k = heads->grad_k;
    run.gradients.grad_v = heads->grad_v;
    run.gradients.grad_past_k = heads->grad_past_k;
    run.gradients.grad_past_v = heads->grad_past_v;
    run.gradients.past_len = heads->past_len;
    attn_status status = ATTN_ERR_NO_MEMORY;
    if (take_memory(&run, plan, arena))
        status = attn_feature_prepare(&run.job, plan, &run.heads, true, runtime, arena);
    if (status == ATTN_ERR_NO_MEMORY)
        return attn_fail_no_memory(err);
    const struct counts n = count(plan, &run);
    if (status == ATTN_OK)
        run_stages(&run, &n);
    if (status != ATTN_OK || attn_is_cancelled(runtime))
        return attn_fail_stopped(err);
    if (heads->grad_scale != NULL)
        *heads->grad_scale = sum_of(run.gradients.query_scale, n.query_tasks) +
                             sum_of(run.gradients.key_scale, n.key_tiles) +
                             sum_of(run.gradients.largest_scale, n.key_heads);
    return ATTN_OK;
}
