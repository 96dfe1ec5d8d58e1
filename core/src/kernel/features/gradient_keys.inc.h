/*
 * gradient_keys.inc.h: the backward pass of linear and performer, the keys: their features and sums for the
 * queries, then dK and dV. Part of a kernel.
 */
#ifndef ATTN_KERNEL_FEATURES_GRADIENT_KEYS_INC_H
#define ATTN_KERNEL_FEATURES_GRADIENT_KEYS_INC_H

#include "kernel/features/gradient_queries.inc.h"

/* P as rows for gradients, and transposed for features; numbers behind the last feature are 0. */
static void pack_gradient_projection(const struct attn_feature_gradients *run)
{
    const size_t d_k = run->job->heads->d_k, m = run->job->m;
    const REAL *from = run->job->projection;
    REAL *rows = run->projection, *transposed = run->projection_transposed;
    memset(rows, 0, m * run->x_stride * sizeof(REAL));
    memset(transposed, 0, d_k * run->m_stride * sizeof(REAL));
    for (size_t r = 0; r < m; r++)
        for (size_t f = 0; f < d_k; f++)
            rows[r * run->x_stride + f] = transposed[f * run->m_stride + r] = from[r * d_k + f];
}

/* ---- keys: features and sums ---- */

/* |s|^2 / 2 is subtracted from all; with eps, the largest number is that before. */
static REAL subtract_key_squares(const struct gradient_task *task, size_t kv_head, size_t key0, REAL *phi, size_t *at)
{
    const struct attn_feature_gradients *run = task->run;
    const size_t m = run->job->m, keys = keys_of_tile(&task->features, kv_head, key0);
    const uint8_t *seen = seen_keys(&task->features, kv_head, key0);
    const REAL half = (REAL)(fabs(task->features.heads->scale) / 2);
    REAL largest = -(REAL)INFINITY;
    for (size_t j = 0; j < keys; j++) {
        const REAL *x = task->x + j * run->x_stride;
        REAL *row = phi + j * run->m_stride;
        if (!key_is_read(seen, keys, j))
            continue;
        if (run->job->mechanism->eps > 0)
            largest = find_largest(row, m, largest, (key0 + j) * m, at);
        const vec square = splat(half * dot_features(x, x, run->x_stride));
        for (size_t r = 0; r < m; r += LANES)
            store(row + r, load(row + r) - square);
        if (!(run->job->mechanism->eps > 0))
            largest = find_largest(row, m, largest, (key0 + j) * m, at);
    }
    return largest;
}

static void project_gradient_keys(const struct attn_feature_gradients *run, size_t index, void *scratch)
{
    struct gradient_task task;
    lay_out_gradients(run, &task, scratch);
    const size_t kv_head = index / run->job->tiles, tile = index % run->job->tiles;
    REAL *phi = phi_of_keys(run, kv_head, tile);
    take_keys(&task, kv_head, tile * FEATURE_TILE);
    backward_multiply(&(struct attn_backward_product){.a = task.x,
                                                      .b = run->projection_transposed,
                                                      .y = phi,
                                                      .rows = FEATURE_TILE,
                                                      .columns = run->job->m,
                                                      .inner = run->job->heads->d_k,
                                                      .a_stride = run->x_stride,
                                                      .b_stride = run->m_stride,
                                                      .y_stride = run->m_stride});
    run->largest_at[index] = 0;
    ((REAL *)run->job->largest)[index] =
        subtract_key_squares(&task, kv_head, tile * FEATURE_TILE, phi, &run->largest_at[index]);
}

/* phi of a tile; 0 for keys that are not read, and behind the last feature. */
static void map_gradient_keys(struct gradient_task *task, size_t kv_head, size_t tile, REAL largest)
{
    const struct attn_feature_gradients *run = task->run;
    const attn_mechanism *mechanism = run->job->mechanism;
    const size_t m = run->job->m, key0 = tile * FEATURE_TILE, keys = keys_of_tile(&task->features, kv_head, key0);
    const uint8_t *seen = seen_keys(&task->features, kv_head, key0);
    const bool is_linear = mechanism->type == ATTN_LINEAR;
    if (is_linear)
        take_keys(task, kv_head, key0);
    for (size_t j = 0; j < FEATURE_TILE; j++) {
        REAL *phi = phi_of_keys(run, kv_head, tile) + j * run->m_stride;
        const REAL *x = is_linear ? task->x + j * run->x_stride : phi;
        const size_t count = key_is_read(seen, keys, j) ? m : 0;
        for (size_t r = 0; r < count; r += LANES)
            store(phi + r,
                  is_linear ? map_linear(mechanism, load(x + r)) : map_performer(mechanism, load(x + r), largest));
        memset(phi + count, 0, (run->m_stride - count) * sizeof(REAL));
    }
    run->phi_is_finite[kv_head * run->job->tiles + tile] =
        rows_are_finite(phi_of_keys(run, kv_head, tile), FEATURE_TILE, m, run->m_stride);
}

static void sum_gradient_tile(struct gradient_task *task, size_t kv_head, size_t tile, bool is_first, REAL *sums)
{
    const struct attn_feature_gradients *run = task->run;
    take_values(task, kv_head, tile * FEATURE_TILE);
    backward_multiply(&(struct attn_backward_product){.a = task->values,
                                                      .b = phi_of_keys(run, kv_head, tile),
                                                      .y = sums,
                                                      .rows = width_of(task),
                                                      .columns = run->job->m,
                                                      .inner = FEATURE_TILE,
                                                      .a_stride = run->width_stride,
                                                      .b_stride = run->m_stride,
                                                      .y_stride = run->m_stride,
                                                      .a_is_transposed = true,
                                                      .adds = !is_first});
}

static void sum_gradient_keys(const struct attn_feature_gradients *run, size_t index, void *scratch)
{
    const struct attn_feature_job *job = run->job;
    struct gradient_task task;
    lay_out_gradients(run, &task, scratch);
    const size_t kv_head = index / job->blocks, block = index % job->blocks;
    const struct attn_feature_item *item = item_of(job, kv_head);
    const size_t each = item->block_keys / FEATURE_TILE, first = block * each;
    const REAL largest = job->mechanism->type == ATTN_LINEAR ? 0 : largest_of_head(job, kv_head);
    if (job->is_running)
        memset(key_sums_of(run, kv_head, block), 0, run->sums_stride * sizeof(REAL));
    for (size_t tile = first; tile < first + each && tile * FEATURE_TILE < item->end; tile++) {
        if (features_stop(&task.features, FEATURE_TILE * (job->m * STEPS_OF_MAP + run->width_stride * job->m)))
            return;
        map_gradient_keys(&task, kv_head, tile, largest);
        if (job->is_running)
            sum_gradient_tile(&task, kv_head, tile, tile == first, key_sums_of(run, kv_head, block));
    }
}

static void prefix_gradient_keys(const struct attn_feature_gradients *run, size_t index, void *scratch)
{
    (void)scratch;
    const size_t slices = attn_ceil_div(run->sums_stride, FEATURE_SLICE), kv_head = index / slices;
    const size_t from = index % slices * FEATURE_SLICE;
    accumulate(key_sums_of(run, kv_head, 0) + from, (ptrdiff_t)run->sums_stride, item_of(run->job, kv_head)->blocks,
               attn_min(run->sums_stride - from, FEATURE_SLICE));
}

/* ---- keys ---- */

/* dphi and dv, from R of the queries that attend to all keys of the tile. */
static void start_keys(struct gradient_task *task, size_t kv_head, size_t tile, const REAL *phi)
{
    const struct attn_feature_gradients *run = task->run;
    const struct attn_feature_item *item = item_of(run->job, kv_head);
    if (!run->job->is_running) {
        memset(task->grad_phi, 0, FEATURE_TILE * run->m_stride * sizeof(REAL));
        memset(task->grad_values, 0, FEATURE_TILE * run->width_stride * sizeof(REAL));
        return;
    }
    const REAL *sums = query_sums_of(run, kv_head, has_prefixes(item) ? tile + 1 : 0);
    backward_multiply(&(struct attn_backward_product){.a = task->values,
                                                      .b = sums,
                                                      .y = task->grad_phi,
                                                      .rows = FEATURE_TILE,
                                                      .columns = run->job->m,
                                                      .inner = width_of(task),
                                                      .a_stride = run->width_stride,
                                                      .b_stride = run->m_stride,
                                                      .y_stride = run->m_stride});
    transpose_rows(sums, width_of(task), run->job->m, run->m_stride, task->sums, run->width_stride);
    backward_multiply(&(struct attn_backward_product){.a = phi,
                                                      .b = task->sums,
                                                      .y = task->grad_values,
                                                      .rows = FEATURE_TILE,
                                                      .columns = task->features.heads->d_v,
                                                      .inner = run->job->m,
                                                      .a_stride = run->m_stride,
                                                      .b_stride = run->width_stride,
                                                      .y_stride = run->width_stride});
}

/* Adds the pairs of a tile of queries. */
static void add_key_pairs(struct gradient_task *task, struct feature_rows *tile, size_t key0)
{
    const struct attn_feature_gradients *run = task->run;
    const size_t head = tile->b * run->job->heads->heads + tile->h, index = tile->first / TILE_ROWS;
    const struct attn_feature_reach *reach = &run->reach[head * run->q_tiles + index];
    const size_t keys = keys_of_tile(&task->features, tile->kv_head, key0), columns = attn_min(reach->to - key0, keys);
    const REAL *phi = phi_of_queries(run, head, index), *grad_sums = grad_sums_of(run, head, index);
    tile->to = 0;
    find_spans(&task->features, tile);
    if (!look_up_pairs(task, tile, key0, keys))
        return;
    weigh_pairs(task, phi, grad_sums, columns);
    struct pair_sum sum = {.factors = task->g,
                           .rows = phi,
                           .to = task->grad_phi,
                           .columns = columns,
                           .n = run->job->m,
                           .stride = run->job->phi_stride,
                           .to_stride = run->m_stride,
                           .is_over_queries = true,
                           .is_finite = reach->is_finite};
    add_pair_sum(task, &sum);
    sum.factors = task->w;
    sum.rows = grad_sums;
    sum.to = task->grad_values;
    sum.n = task->features.heads->d_v;
    sum.stride = sum.to_stride = run->width_stride;
    add_pair_sum(task, &sum);
}

/* Adds the pairs of all queries that do not take the tile within a block. */
static void add_group_pairs(struct gradient_task *task, size_t kv_head, size_t key0, const REAL *phi)
{
    const struct attn_feature_gradients *run = task->run;
    const struct attn_heads_job *heads = task->features.heads;
    const size_t first = first_head_of(heads, kv_head), all = group_of_heads(heads) * run->q_tiles;
    bool is_transposed = false;
    for (size_t n = 0; n < all; n++) {
        const struct attn_feature_reach *reach = &run->reach[first * run->q_tiles + n];
        if (reach->from > key0 || reach->to <= key0)
            continue;
        if (features_stop(&task->features, STEPS_OF_LOOKUP + TILE_ROWS * FEATURE_TILE * run->m_stride))
            return;
        if (!is_transposed)
            transpose_keys(task, phi);
        is_transposed = true;
        const size_t head = first + n / run->q_tiles, row = n % run->q_tiles * TILE_ROWS;
        struct feature_rows tile = {.b = head / heads->heads,
                                    .h = head % heads->heads,
                                    .kv_head = kv_head,
                                    .first = row,
                                    .rows = attn_min(heads->q_len - row, TILE_ROWS)};
        add_key_pairs(task, &tile, key0);
    }
}

/* From dphi to dk. Returns the part of the gradient of the scale; *of_largest += that of the largest number. */
static double map_keys_back(struct gradient_task *task, size_t kv_head, size_t key0, const REAL *phi,
                            double *of_largest)
{
    const struct attn_feature_gradients *run = task->run;
    const size_t keys = keys_of_tile(&task->features, kv_head, key0);
    const uint8_t *seen = seen_keys(&task->features, kv_head, key0);
    const bool is_linear = run->job->mechanism->type == ATTN_LINEAR;
    REAL total[FEATURE_TILE] = {0};
    double of_scale = 0;
    take_keys(task, kv_head, key0);
    for (size_t j = 0; j < FEATURE_TILE && !is_linear; j++)
        total[j] = exp_back(task, phi + j * run->m_stride, task->grad_phi + j * run->m_stride);
    if (!is_linear)
        project_back(task, FEATURE_TILE);
    for (size_t j = 0; j < FEATURE_TILE; j++) {
        const REAL *x = task->x + j * run->x_stride;
        REAL *grad_x = task->grad_x + j * run->x_stride;
        if (!key_is_read(seen, keys, j)) {
            memset(grad_x, 0, run->x_stride * sizeof(REAL));
            memset(task->grad_values + j * run->width_stride, 0, run->width_stride * sizeof(REAL));
        } else if (is_linear) {
            (void)map_linear_back(task, x, task->grad_phi + j * run->m_stride, 1, grad_x);
        } else {
            of_scale += finish_projection(task, 1, total[j], x, grad_x);
            *of_largest -= (double)total[j];
        }
    }
    return of_scale;
}

/* Row j of the cached or of the new keys; NULL if it is not wanted. */
static REAL *key_row_to_write(const struct attn_feature_gradients *run, const struct attn_operand *past,
                              const struct attn_operand *added, size_t kv_head, size_t j)
{
    const struct attn_operand *to = j < run->past_len ? past : added;
    return to->data == NULL
               ? NULL
               : (REAL *)(uintptr_t)row_of(to, run->job->heads, kv_head, j < run->past_len ? j : j - run->past_len);
}

static void put_keys(const struct gradient_task *task, size_t kv_head, size_t key0)
{
    const struct attn_feature_gradients *run = task->run;
    const struct attn_heads_job *heads = run->job->heads;
    for (size_t j = 0; j < attn_min(heads->kv_len - key0, FEATURE_TILE); j++) {
        REAL *k = key_row_to_write(run, &run->grad_past_k, &run->grad_k, kv_head, key0 + j);
        REAL *v = key_row_to_write(run, &run->grad_past_v, &run->grad_v, kv_head, key0 + j);
        if (k != NULL)
            memcpy(k, task->grad_x + j * run->x_stride, heads->d_k * sizeof(REAL));
        if (v != NULL)
            memcpy(v, task->grad_values + j * run->width_stride, heads->d_v * sizeof(REAL));
    }
}

static void keys_back(const struct attn_feature_gradients *run, size_t index, void *scratch)
{
    struct gradient_task task;
    lay_out_gradients(run, &task, scratch);
    const size_t kv_head = index / run->job->tiles, tile = index % run->job->tiles, key0 = tile * FEATURE_TILE;
    double of_scale = 0, of_largest = 0;
    if (keys_of_tile(&task.features, kv_head, key0) == 0) {
        memset(task.grad_x, 0, FEATURE_TILE * run->x_stride * sizeof(REAL));
        memset(task.grad_values, 0, FEATURE_TILE * run->width_stride * sizeof(REAL));
    } else {
        const REAL *phi = phi_of_keys(run, kv_head, tile);
        take_values(&task, kv_head, key0);
        start_keys(&task, kv_head, tile, phi);
        add_group_pairs(&task, kv_head, key0, phi);
        of_scale = map_keys_back(&task, kv_head, key0, phi, &of_largest);
    }
    put_keys(&task, kv_head, key0);
    run->key_scale[index] = of_scale;
    if (run->largest_parts != NULL)
        run->largest_parts[index] = of_largest;
}

/* Adds the gradient of the largest number of a head to the key and the feature that have it. */
static void largest_back(const struct attn_feature_gradients *run, size_t kv_head, void *scratch)
{
    (void)scratch;
    const struct attn_feature_job *job = run->job;
    const struct attn_heads_job *heads = job->heads;
    const REAL *largest = (const REAL *)job->largest + kv_head * job->tiles;
    size_t tile = 0;
    double total = 0, of_scale = 0;
    for (size_t t = 0; t < job->tiles; t++) {
        tile = largest[t] > largest[tile] ? t : tile;
        total += t * FEATURE_TILE < item_of(job, kv_head)->end ? run->largest_parts[kv_head * job->tiles + t] : 0;
    }
    run->largest_scale[kv_head] = 0;
    if (!(largest[tile] > -(REAL)INFINITY))
        return;
    const size_t j = run->largest_at[kv_head * job->tiles + tile] / job->m;
    const size_t r = run->largest_at[kv_head * job->tiles + tile] % job->m;
    const REAL *k = row_of(&heads->k.added, heads, kv_head, j), *p = (const REAL *)job->projection + r * heads->d_k;
    REAL *to = key_row_to_write(run, &run->grad_past_k, &run->grad_k, kv_head, j);
    for (size_t f = 0; f < heads->d_k; f++) {
        const double grad = (double)p[f] * total;
        of_scale += grad * (double)k[f];
        if (to != NULL)
            to[f] += (REAL)grad;
    }
    run->largest_scale[kv_head] = heads->scale == 0 ? 0 : of_scale / (2 * heads->scale);
}

#endif
