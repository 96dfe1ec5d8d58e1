/*
 * gradients.inc.h: the backward pass of attention by feature maps, linear and performer: tiles of queries and
 * keys, and their products. gradient_queries.inc.h and gradient_keys.inc.h have the stages. Part of a
 * kernel.
 *
 *     w_ij = phi(q_i) phi(k_j)      D_i = sum_j w_ij (+ eps), or 1 without a denominator      o_i = sum_j w_ij v_j / D_i
 *     dS_i = (dO_i, -dO_i o_i) / D_i, or (dO_i, 0) without a denominator      g_ij = dS_i (v_j, 1)
 *     dphi(q_i) = sum_j g_ij phi(k_j)      dphi(k_j) = sum_i g_ij phi(q_i)      dv_j = sum_i w_ij dS_i
 *
 * As in the forward pass, the keys of whole blocks that all queries of a tile attend to are taken together:
 *
 *     dphi(q_i) = S dS_i,  S^T = sum_j (v_j, 1) phi(k_j)^T      dphi(k_j) = R (v_j, 1),  dv_j = R^T phi(k_j),
 *                                                               R^T = sum_i dS_i phi(q_i)^T
 *
 * phi leaves out the same factors as in the forward pass: they cancel here, too.
 *
 * A run has these stages, in this order:
 *
 *     project_gradient_keys      performer: P s - |s|^2 / 2 for a tile of keys, and the largest number
 *     sum_gradient_keys          phi(K) of a block of keys, and S^T
 *     prefix_gradient_keys       S^T of all keys before the end of each block, by compensated summation
 *     queries_back               phi(Q), dS and dQ
 *     sum_gradient_queries       R^T of a slot: the tiles of queries that begin their pairs at the same block, or, if all
 *                                queries end at the same key, FEATURE_SLOT_TILES tiles
 *     suffix_gradient_queries    R^T of each slot and all behind it, by compensated summation
 *     keys_back                  dK and dV
 *     largest_back               performer with eps: the gradient of the largest number of a head
 *
 * Blocks, slots and tiles begin at fixed keys and queries. So no bit depends on the thread or on other items.
 */
#ifndef ATTN_KERNEL_FEATURES_GRADIENTS_INC_H
#define ATTN_KERNEL_FEATURES_GRADIENTS_INC_H

#include "kernel/features/queries.inc.h"
#include "kernel/products/backward.inc.h"
#include "kernel/rows/elementwise.inc.h"

/* The scratch memory of a task. Tiles of queries have TILE_ROWS rows, the others FEATURE_TILE. */
struct gradient_task {
    const struct attn_feature_gradients *run;
    struct feature_task features;                     /* its queries, spans and masks */
    REAL *x, *grad_x;                                 /* x_stride */
    REAL *values, *grad_values;                       /* width_stride: (v_j, 1), and dv_j */
    REAL *grad_phi;                                   /* m_stride */
    REAL *h;                                          /* width_stride, of queries: dS_i D_i */
    REAL *phi_transposed, *values_transposed, *w, *g; /* WEIGHT_STRIDE; w and g have rows of queries */
    REAL *sums;                                       /* (m, width_stride): R */
    uint8_t *is_live;                                 /* of queries: dO is not 0 */
};

static size_t lay_out_gradients(const struct attn_feature_gradients *run, struct gradient_task *task, char *scratch)
{
    const struct attn_feature_job *job = run->job;
    const size_t keys = FEATURE_TILE * sizeof(REAL), queries = TILE_ROWS * sizeof(REAL);
    size_t used = 0;
    *task = (struct gradient_task){.run = run, .features = {.job = job, .heads = job->heads}};
    task->features.m_rows = attn_round_up(job->m, REGISTER_ROWS);
    task->features.q = carve(scratch, &used, job->q_stride, queries);
    task->features.l = carve(scratch, &used, 1, queries);
    task->features.allow = carve(scratch, &used, TILE_ROWS, FEATURE_TILE);
    task->features.sees = carve(scratch, &used, TILE_ROWS, 1);
    task->features.span = carve(scratch, &used, TILE_ROWS, sizeof(attn_span));
    task->x = carve(scratch, &used, run->x_stride, keys);
    task->grad_x = carve(scratch, &used, run->x_stride, keys);
    task->values = carve(scratch, &used, run->width_stride, keys + ATTN_ALIGNMENT); /* read by whole register tiles */
    task->grad_values = carve(scratch, &used, run->width_stride, keys);
    task->grad_phi = carve(scratch, &used, run->m_stride, keys);
    task->h = carve(scratch, &used, run->width_stride, queries);
    task->phi_transposed = carve(scratch, &used, run->m_stride, WEIGHT_STRIDE * sizeof(REAL));
    task->values_transposed = carve(scratch, &used, run->width_stride, WEIGHT_STRIDE * sizeof(REAL));
    task->w = carve(scratch, &used, WEIGHT_STRIDE, queries);
    task->g = carve(scratch, &used, WEIGHT_STRIDE, queries);
    task->sums = carve(scratch, &used, run->m_stride, run->width_stride * sizeof(REAL));
    task->is_live = carve(scratch, &used, TILE_ROWS, 1);
    return used;
}

static size_t gradient_scratch_bytes(const struct attn_feature_gradients *run)
{
    struct gradient_task task;
    return lay_out_gradients(run, &task, NULL);
}

/* ---- where a tile lies ---- */

static size_t width_of(const struct gradient_task *task)
{
    return task->run->job->heads->d_v + 1;
}

static size_t group_of_heads(const struct attn_heads_job *heads)
{
    return heads->heads / heads->kv_heads;
}

static REAL *phi_of_keys(const struct attn_feature_gradients *run, size_t kv_head, size_t tile)
{
    return (REAL *)run->phi_k + (kv_head * run->job->tiles + tile) * FEATURE_TILE * run->m_stride;
}

/* head counts the heads of all items. */
static REAL *phi_of_queries(const struct attn_feature_gradients *run, size_t head, size_t tile)
{
    return (REAL *)run->phi_q + (head * run->q_tiles + tile) * TILE_ROWS * run->job->phi_stride;
}

static REAL *grad_sums_of(const struct attn_feature_gradients *run, size_t head, size_t tile)
{
    return (REAL *)run->grad_sums + (head * run->q_tiles + tile) * TILE_ROWS * run->width_stride;
}

/* The sums of all keys of the first blocks, and of one slot of queries or of all from it on. */
static REAL *key_sums_of(const struct attn_feature_gradients *run, size_t kv_head, size_t block)
{
    return (REAL *)run->key_sums + (kv_head * run->job->blocks + block) * run->sums_stride;
}

static REAL *query_sums_of(const struct attn_feature_gradients *run, size_t kv_head, size_t slot)
{
    return (REAL *)run->query_sums + (kv_head * run->slots + slot) * run->sums_stride;
}

static const REAL *row_of(const struct attn_operand *operand, const struct attn_heads_job *heads, size_t kv_head,
                          size_t row)
{
    return (const REAL *)operand->data +
           attn_operand_at(operand, kv_head / heads->kv_heads, kv_head % heads->kv_heads, row);
}

/* Whether key j of a tile is read: of keys, and not hidden from all queries. */
static bool key_is_read(const uint8_t *seen, size_t keys, size_t j)
{
    return j < keys && (seen == NULL || seen[j]);
}

/* ---- rows ---- */

static bool rows_are_finite(const REAL *rows, size_t count, size_t n, size_t stride)
{
    bool are_finite = true;
    for (size_t r = 0; r < count; r++)
        are_finite = are_finite && all_finite(rows + r * stride, n);
    return are_finite;
}

/* The keys of a tile; rows that are not read are 0. */
static void take_keys(struct gradient_task *task, size_t kv_head, size_t key0)
{
    const struct attn_heads_job *heads = task->features.heads;
    const size_t keys = keys_of_tile(&task->features, kv_head, key0), stride = task->run->x_stride;
    const uint8_t *seen = seen_keys(&task->features, kv_head, key0);
    memset(task->x, 0, FEATURE_TILE * stride * sizeof(REAL));
    for (size_t j = 0; j < keys; j++)
        if (key_is_read(seen, keys, j))
            memcpy(task->x + j * stride, row_of(&heads->k.added, heads, kv_head, key0 + j), heads->d_k * sizeof(REAL));
}

/* (v_j, 1) of a tile; rows that are not read are 0. */
static void take_values(struct gradient_task *task, size_t kv_head, size_t key0)
{
    const struct attn_heads_job *heads = task->features.heads;
    const size_t keys = keys_of_tile(&task->features, kv_head, key0), stride = task->run->width_stride;
    const uint8_t *seen = seen_keys(&task->features, kv_head, key0);
    memset(task->values, 0, FEATURE_TILE * stride * sizeof(REAL));
    for (size_t j = 0; j < keys; j++) {
        if (!key_is_read(seen, keys, j))
            continue;
        memcpy(task->values + j * stride, row_of(&heads->v.added, heads, kv_head, key0 + j), heads->d_v * sizeof(REAL));
        task->values[j * stride + heads->d_v] = 1;
    }
}

/* to (features, rows) = rows, both in whole vectors. */
static void transpose_rows(const REAL *rows, size_t count, size_t features, size_t stride, REAL *to, size_t to_stride)
{
    for (size_t r = 0; r < count; r += LANES)
        for (size_t f = 0; f < features; f += LANES)
            transpose(rows + r * stride + f, (ptrdiff_t)stride, to + f * to_stride + r, to_stride);
}

/* ---- pairs ---- */

/* Looks up which pairs of a tile of queries and one of keys are allowed. Returns whether any is. */
static bool look_up_pairs(struct gradient_task *task, const struct feature_rows *tile, size_t key0, size_t keys)
{
    bool any = false;
    for (size_t r = 0; r < TILE_ROWS; r++) {
        const attn_span span = task->features.span[r];
        uint8_t *allow = task->features.allow + r * FEATURE_TILE;
        size_t to = span.to > key0 ? attn_min(span.to - key0, keys) : 0;
        if (task->run->job->is_running)
            memset(allow, 1, to);
        else
            to = look_up_row(&task->features, tile, r, key0, keys) ? keys : 0;
        memset(allow + to, 0, FEATURE_TILE - to);
        any |= to > 0;
    }
    return any;
}

/* A product of two tiles whose rows are queries and keys: 0 for hidden pairs, whatever it is. */
static void multiply_pairs(const struct gradient_task *task, const REAL *a, size_t a_stride, const REAL *transposed,
                           size_t inner, size_t columns, REAL *to)
{
    backward_multiply(&(struct attn_backward_product){.a = a,
                                                      .b = transposed,
                                                      .y = to,
                                                      .rows = TILE_ROWS,
                                                      .columns = columns,
                                                      .inner = inner,
                                                      .a_stride = a_stride,
                                                      .b_stride = WEIGHT_STRIDE,
                                                      .y_stride = WEIGHT_STRIDE});
    for (size_t r = 0; r < TILE_ROWS; r++)
        for (size_t j = 0; j < columns; j += LANES) {
            REAL *pair = to + r * WEIGHT_STRIDE + j;
            store(pair, blend(mask_from_bytes(task->features.allow + r * FEATURE_TILE + j), load(pair), (vec){0}));
        }
}

/* w, and g times D if rows has dS times D. phi_transposed and values_transposed have the keys. */
static void weigh_pairs(const struct gradient_task *task, const REAL *phi_q, const REAL *rows, size_t columns)
{
    const struct attn_feature_gradients *run = task->run;
    multiply_pairs(task, phi_q, run->job->phi_stride, task->phi_transposed, run->job->m, columns, task->w);
    multiply_pairs(task, rows, run->width_stride, task->values_transposed, width_of(task), columns, task->g);
}

static void transpose_keys(struct gradient_task *task, const REAL *phi_k)
{
    const struct attn_feature_gradients *run = task->run;
    transpose_rows(phi_k, FEATURE_TILE, run->job->m, run->m_stride, task->phi_transposed, WEIGHT_STRIDE);
    transpose_rows(task->values, FEATURE_TILE, width_of(task), run->width_stride, task->values_transposed,
                   WEIGHT_STRIDE);
}

/*
 * A sum over the keys or queries of a tile: to += factors rows, or factors^T rows. Rows that are not finite are added
 * pair by pair, because 0 times them is NaN.
 */
struct pair_sum {
    const REAL *factors; /* (TILE_ROWS, WEIGHT_STRIDE) */
    const REAL *rows;
    REAL *to;
    size_t columns, n, stride, to_stride; /* columns of factors; numbers of a row */
    bool is_over_queries, is_finite;
};

static void add_each_pair(const struct gradient_task *task, const struct pair_sum *sum)
{
    for (size_t r = 0; r < TILE_ROWS; r++)
        for (size_t j = 0; j < sum->columns; j++) {
            if (!task->features.allow[r * FEATURE_TILE + j])
                continue;
            const REAL factor = sum->factors[r * WEIGHT_STRIDE + j];
            const REAL *row = sum->rows + (sum->is_over_queries ? r : j) * sum->stride;
            REAL *to = sum->to + (sum->is_over_queries ? j : r) * sum->to_stride;
            for (size_t f = 0; f < sum->n; f++)
                to[f] += factor * row[f];
        }
}

static void add_pair_sum(const struct gradient_task *task, const struct pair_sum *sum)
{
    if (!sum->is_finite) {
        add_each_pair(task, sum);
        return;
    }
    backward_multiply(&(struct attn_backward_product){.a = sum->factors,
                                                      .b = sum->rows,
                                                      .y = sum->to,
                                                      .rows = sum->is_over_queries ? sum->columns : TILE_ROWS,
                                                      .columns = sum->n,
                                                      .inner = sum->is_over_queries ? TILE_ROWS : sum->columns,
                                                      .a_stride = WEIGHT_STRIDE,
                                                      .b_stride = sum->stride,
                                                      .y_stride = sum->to_stride,
                                                      .a_is_transposed = sum->is_over_queries,
                                                      .adds = true});
}

/* ---- the feature maps ---- */

/* dx of linear: dphi times the slope and the factor of the scale. Returns the sum of dphi phi. */
static double map_linear_back(const struct gradient_task *task, const REAL *x, const REAL *grad_phi, REAL factor,
                              REAL *grad_x)
{
    const attn_mechanism *mechanism = task->run->job->mechanism;
    const size_t m = task->run->job->m;
    for (size_t f = 0; f < m; f += LANES) {
        const vec at = load(x + f), phi = map_linear(mechanism, at);
        const vec slope = mechanism->is_identity ? splat(1) : blend(at > 0, splat(1), phi);
        store(grad_x + f, factor * slope * load(grad_phi + f));
    }
    double sum = 0;
    for (size_t f = 0; f < m && mechanism->is_unnormalised; f++)
        sum += (double)grad_phi[f] *
               (double)(mechanism->is_identity || x[f] <= 0 ? map_linear(mechanism, splat(x[f]))[0] : x[f] + 1);
    return sum;
}

/* du = dphi (phi - eps), in place; returns their sum: the negative gradient of |s|^2 / 2 and of the largest P s. */
static REAL exp_back(const struct gradient_task *task, const REAL *phi, REAL *grad_phi)
{
    const size_t m = task->run->job->m;
    const vec eps = splat((REAL)task->run->job->mechanism->eps);
    for (size_t f = 0; f < m; f += LANES)
        store(grad_phi + f, load(grad_phi + f) * (load(phi + f) - eps));
    for (size_t f = m; f < attn_round_up(m, LANES); f++)
        grad_phi[f] = 0;
    return dot_features(grad_phi, NULL, attn_round_up(m, LANES));
}

/* grad_x = du P for rows rows: x_stride apart, as all tokens of a tile. */
static void project_back(const struct gradient_task *task, size_t rows)
{
    const struct attn_feature_gradients *run = task->run;
    backward_multiply(&(struct attn_backward_product){.a = task->grad_phi,
                                                      .b = run->projection,
                                                      .y = task->grad_x,
                                                      .rows = rows,
                                                      .columns = run->job->heads->d_k,
                                                      .inner = run->job->m,
                                                      .a_stride = run->m_stride,
                                                      .b_stride = run->x_stride,
                                                      .y_stride = run->x_stride});
}

/* dx = sign P^T du - total |scale| x, where grad_x has P^T du. Returns the part of the gradient of the scale. */
static double finish_projection(const struct gradient_task *task, REAL sign, REAL total, const REAL *x, REAL *grad_x)
{
    const size_t d_k = task->features.heads->d_k;
    const double scale = task->features.heads->scale;
    const REAL factor = total * (REAL)fabs(scale);
    for (size_t f = 0; f < d_k; f++)
        grad_x[f] = sign * grad_x[f] - factor * x[f];
    return scale == 0 ? 0 : backward_dot(grad_x, x, d_k) / (2 * scale);
}

/* ---- what queries and keys share ---- */

static const struct attn_feature_item *item_of(const struct attn_feature_job *job, size_t kv_head)
{
    return &job->item[kv_head / job->heads->kv_heads];
}

/* Whether the queries of the item end at different keys. */
static bool has_prefixes(const struct attn_feature_item *item)
{
    return item->block_keys == FEATURE_TILE;
}

/* Finds the largest number of a row that is larger than before. */
static REAL find_largest(const REAL *row, size_t m, REAL before, size_t first, size_t *at)
{
    for (size_t r = 0; r < m; r++)
        if (row[r] > before) {
            before = row[r];
            *at = first + r;
        }
    return before;
}

/* Sums of a slice of numbers over count blocks, each of which becomes the sum of all up to itself. */
static void accumulate(REAL *from, ptrdiff_t stride, size_t count, size_t numbers)
{
    REAL sum[FEATURE_SLICE] = {0}, low[FEATURE_SLICE] = {0};
    for (size_t n = 0; n < count; n++) {
        REAL *sums = from + (ptrdiff_t)n * stride;
        add_row_compensated(sum, low, 1, sums, numbers);
        for (size_t at = 0; at < numbers; at += LANES)
            store(sums + at, sum_and_low(load(sum + at), load(low + at)));
    }
}

#endif
