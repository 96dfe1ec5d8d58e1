/*
 * gradient_queries.inc.h: the backward pass of linear and performer, the queries: dQ, and the sums of queries for
 * the keys. Part of a kernel.
 */
#ifndef ATTN_KERNEL_FEATURES_GRADIENT_QUERIES_INC_H
#define ATTN_KERNEL_FEATURES_GRADIENT_QUERIES_INC_H

#include "kernel/features/gradients.inc.h"

/* ---- queries ---- */

static const REAL *query_row_of(const struct attn_operand *operand, const struct feature_rows *tile, size_t r)
{
    return (const REAL *)operand->data + attn_operand_at(operand, tile->b, tile->h, tile->first + r);
}

static bool any_is_not_zero(const REAL *x, size_t n)
{
    bool any = false;
    for (size_t f = 0; f < n; f++)
        any |= x[f] != 0;
    return any;
}

/* h = (dO, -dO o), or (dO, 0); rows without keys are not read. */
static void take_grad_context(struct gradient_task *task, const struct feature_rows *tile)
{
    const struct attn_feature_gradients *run = task->run;
    const struct attn_heads_job *heads = task->features.heads;
    memset(task->h, 0, TILE_ROWS * run->width_stride * sizeof(REAL));
    for (size_t r = 0; r < TILE_ROWS; r++) {
        REAL *h = task->h + r * run->width_stride;
        task->is_live[r] = 0;
        if (task->features.span[r].to == 0)
            continue;
        const REAL *grad = query_row_of(&run->grad_context, tile, r);
        if (!any_is_not_zero(grad, heads->d_v))
            continue;
        task->is_live[r] = 1;
        memcpy(h, grad, heads->d_v * sizeof(REAL));
        if (!run->job->mechanism->is_unnormalised)
            h[heads->d_v] = (REAL)-backward_dot(grad, query_row_of(&heads->context, tile, r), heads->d_v);
    }
}

/* phi(Q), where it is kept; 0 where dO is 0, and behind the last feature. */
static void map_gradient_queries(struct gradient_task *task, const struct feature_rows *tile, REAL *phi)
{
    const struct attn_feature_job *job = task->run->job;
    task->features.phi_q = phi;
    map_queries(&task->features, tile);
    for (size_t r = 0; r < TILE_ROWS; r++) {
        const size_t count = task->is_live[r] ? job->m : 0;
        memset(phi + r * job->phi_stride + count, 0, (job->phi_stride - count) * sizeof(REAL));
    }
}

/* dphi D and D, from the sums of whole blocks. */
static void start_grad_phi(struct gradient_task *task, const struct feature_rows *tile, const REAL *phi)
{
    const struct attn_feature_gradients *run = task->run;
    const size_t m = run->job->m;
    memset(task->features.l, 0, TILE_ROWS * sizeof(REAL));
    if (tile->blocks == 0) {
        memset(task->grad_phi, 0, TILE_ROWS * run->m_stride * sizeof(REAL));
        return;
    }
    const REAL *sums = key_sums_of(run, tile->kv_head, tile->blocks - 1);
    backward_multiply(&(struct attn_backward_product){.a = task->h,
                                                      .b = sums,
                                                      .y = task->grad_phi,
                                                      .rows = TILE_ROWS,
                                                      .columns = m,
                                                      .inner = width_of(task),
                                                      .a_stride = run->width_stride,
                                                      .b_stride = run->m_stride,
                                                      .y_stride = run->m_stride});
    const REAL *weights = sums + task->features.heads->d_v * run->m_stride;
    for (size_t r = 0; r < TILE_ROWS; r++)
        task->features.l[r] = dot_features(phi + r * run->job->phi_stride, weights, attn_round_up(m, LANES));
}

static void add_query_pairs(struct gradient_task *task, const struct feature_rows *tile, const REAL *phi, size_t key0)
{
    const struct attn_feature_gradients *run = task->run;
    const size_t keys = keys_of_tile(&task->features, tile->kv_head, key0);
    const size_t columns = attn_min(tile->to - key0, keys), index = key0 / FEATURE_TILE;
    const REAL *phi_k = phi_of_keys(run, tile->kv_head, index);
    if (!look_up_pairs(task, tile, key0, keys))
        return;
    take_values(task, tile->kv_head, key0);
    transpose_keys(task, phi_k);
    weigh_pairs(task, phi, task->h, columns);
    for (size_t r = 0; r < TILE_ROWS; r++)
        task->features.l[r] += dot_features(task->w + r * WEIGHT_STRIDE, NULL, attn_round_up(columns, LANES));
    add_pair_sum(task, &(struct pair_sum){.factors = task->g,
                                          .rows = phi_k,
                                          .to = task->grad_phi,
                                          .columns = columns,
                                          .n = run->job->m,
                                          .stride = run->m_stride,
                                          .to_stride = run->m_stride,
                                          .is_finite = run->phi_is_finite[tile->kv_head * run->job->tiles + index]});
}

/* Divides dphi, and h into dS. Rows without keys, or whose dO is 0, become 0. */
static void divide_rows(struct gradient_task *task, REAL *phi, REAL *grad_sums)
{
    const struct attn_feature_gradients *run = task->run;
    const attn_mechanism *mechanism = run->job->mechanism;
    for (size_t r = 0; r < TILE_ROWS; r++) {
        REAL *grad_phi = task->grad_phi + r * run->m_stride, *to = grad_sums + r * run->width_stride;
        const REAL *h = task->h + r * run->width_stride;
        task->is_live[r] = task->is_live[r] && task->features.sees[r];
        if (!task->is_live[r]) {
            memset(grad_phi, 0, run->m_stride * sizeof(REAL));
            memset(to, 0, run->width_stride * sizeof(REAL));
            memset(phi + r * run->job->phi_stride, 0, run->job->phi_stride * sizeof(REAL));
            continue;
        }
        const REAL eps = mechanism->type == ATTN_LINEAR ? (REAL)mechanism->eps : 0;
        const vec divisor = splat(mechanism->is_unnormalised ? 1 : task->features.l[r] + eps);
        for (size_t c = 0; c < run->width_stride; c += LANES)
            store(to + c, load(h + c) / divisor);
        for (size_t f = 0; f < run->m_stride; f += LANES)
            store(grad_phi + f, load(grad_phi + f) / divisor);
    }
}

/* From dphi to dq. Returns the part of the gradient of the scale. */
static double map_queries_back(struct gradient_task *task, const struct feature_rows *tile, const REAL *phi)
{
    const struct attn_feature_gradients *run = task->run;
    const struct attn_feature_job *job = run->job;
    const double scale = task->features.heads->scale;
    REAL total[TILE_ROWS] = {0};
    double of_scale = 0;
    const bool is_linear = job->mechanism->type == ATTN_LINEAR;
    for (size_t r = 0; r < tile->rows && !is_linear; r++) {
        REAL *grad_phi = task->grad_phi + r * run->m_stride;
        const REAL *row = phi + r * job->phi_stride, sum = exp_back(task, row, grad_phi);
        if (!(job->mechanism->eps > 0)) /* then a factor of phi cancels, and the sum is rounding errors */
            continue;
        size_t largest = 0;
        (void)find_largest(row, job->m, -(REAL)INFINITY, 0, &largest);
        grad_phi[largest] -= sum;
        total[r] = sum;
    }
    if (!is_linear)
        project_back(task, TILE_ROWS);
    for (size_t r = 0; r < tile->rows; r++) {
        const REAL *x = feature_query(&task->features, tile, r);
        REAL *grad_x = task->grad_x + r * run->x_stride;
        if (!task->is_live[r])
            memset(grad_x, 0, run->x_stride * sizeof(REAL));
        else if (is_linear)
            of_scale += map_linear_back(task, x, task->grad_phi + r * run->m_stride,
                                        job->mechanism->is_unnormalised ? (REAL)scale : 1, grad_x);
        else
            of_scale += finish_projection(task, scale < 0 ? -1 : 1, total[r], x, grad_x);
        if (run->grad_q.data != NULL)
            memcpy((REAL *)(uintptr_t)query_row_of(&run->grad_q, tile, r), grad_x,
                   task->features.heads->d_k * sizeof(REAL));
    }
    return of_scale;
}

static double query_tile_back(struct gradient_task *task, struct feature_rows *tile)
{
    const struct attn_feature_gradients *run = task->run;
    const size_t head = tile->b * run->job->heads->heads + tile->h, index = tile->first / TILE_ROWS;
    REAL *phi = phi_of_queries(run, head, index), *grad_sums = grad_sums_of(run, head, index);
    tile->to = 0;
    find_spans(&task->features, tile);
    take_grad_context(task, tile);
    map_gradient_queries(task, tile, phi);
    start_grad_phi(task, tile, phi);
    for (size_t key0 = tile->from; key0 < tile->to && !features_stop(&task->features, STEPS_OF_LOOKUP);
         key0 += FEATURE_TILE)
        add_query_pairs(task, tile, phi, key0);
    divide_rows(task, phi, grad_sums);
    run->reach[head * run->q_tiles + index] = (struct attn_feature_reach){
        .blocks = tile->blocks,
        .from = tile->from,
        .to = tile->to,
        .is_finite = rows_are_finite(phi, TILE_ROWS, run->job->m, run->job->phi_stride) &&
                     rows_are_finite(grad_sums, TILE_ROWS, width_of(task), run->width_stride),
    };
    return map_queries_back(task, tile, phi);
}

static void queries_back(const struct attn_feature_gradients *run, size_t index, void *scratch)
{
    const struct attn_heads_job *heads = run->job->heads;
    struct gradient_task task;
    lay_out_gradients(run, &task, scratch);
    const size_t across = attn_ceil_div(heads->q_len, FEATURE_QUERIES), head = index / across;
    const size_t first = index % across * FEATURE_QUERIES, end = attn_min(first + FEATURE_QUERIES, heads->q_len);
    struct feature_rows tile = {.b = head / heads->heads, .h = head % heads->heads};
    tile.kv_head = tile.b * heads->kv_heads + tile.h / group_of_heads(heads);
    double of_scale = 0;
    for (tile.first = first;
         tile.first < end && !features_stop(&task.features, TILE_ROWS * run->job->m * run->width_stride);
         tile.first += TILE_ROWS) {
        tile.rows = attn_min(end - tile.first, TILE_ROWS);
        of_scale += query_tile_back(&task, &tile);
    }
    run->query_scale[index] = of_scale;
}

/* ---- sums of queries ---- */

/* The first head of the group of a key head, over all items. */
static size_t first_head_of(const struct attn_heads_job *heads, size_t kv_head)
{
    const size_t b = kv_head / heads->kv_heads;
    return b * heads->heads + kv_head % heads->kv_heads * group_of_heads(heads);
}

static size_t slots_of(const struct attn_feature_gradients *run, size_t kv_head)
{
    const struct attn_feature_item *item = item_of(run->job, kv_head);
    return has_prefixes(item) ? item->blocks + 1
                              : attn_ceil_div(group_of_heads(run->job->heads) * run->q_tiles, FEATURE_SLOT_TILES);
}

static void sum_gradient_queries(const struct attn_feature_gradients *run, size_t index, void *scratch)
{
    struct gradient_task task;
    lay_out_gradients(run, &task, scratch);
    const size_t kv_head = index / run->slots, slot = index % run->slots,
                 head = first_head_of(run->job->heads, kv_head);
    const size_t all = group_of_heads(run->job->heads) * run->q_tiles;
    const bool is_prefix = has_prefixes(item_of(run->job, kv_head));
    const size_t first = is_prefix ? 0 : slot * FEATURE_SLOT_TILES;
    const size_t end = is_prefix ? all : attn_min(first + FEATURE_SLOT_TILES, all);
    REAL *sums = query_sums_of(run, kv_head, slot);
    memset(sums, 0, run->sums_stride * sizeof(REAL));
    for (size_t n = first; n < end; n++) {
        const size_t blocks = run->reach[head * run->q_tiles + n].blocks;
        if (blocks == 0 || (is_prefix && blocks != slot))
            continue;
        if (features_stop(&task.features, TILE_ROWS * run->job->m * run->width_stride))
            return;
        backward_multiply(&(struct attn_backward_product){
            .a = grad_sums_of(run, head, n),
            .b = phi_of_queries(run, head, n),
            .y = sums,
            .rows = width_of(&task),
            .columns = run->job->m,
            .inner = TILE_ROWS,
            .a_stride = run->width_stride,
            .b_stride = run->job->phi_stride,
            .y_stride = run->m_stride,
            .a_is_transposed = true,
            .adds = true,
        });
    }
}

static void suffix_gradient_queries(const struct attn_feature_gradients *run, size_t index, void *scratch)
{
    (void)scratch;
    const size_t slices = attn_ceil_div(run->sums_stride, FEATURE_SLICE), kv_head = index / slices;
    const size_t from = index % slices * FEATURE_SLICE, slots = slots_of(run, kv_head);
    accumulate(query_sums_of(run, kv_head, slots - 1) + from, -(ptrdiff_t)run->sums_stride, slots,
               attn_min(run->sums_stride - from, FEATURE_SLICE));
}

#endif
