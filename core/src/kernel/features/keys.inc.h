/*
 * keys.inc.h: attention by feature maps, linear and performer (attn/mechanism.h has the equations). Part of a
 * kernel. A run has these stages, in this order:
 *
 *     map_keys          performer: P s - |s|^2 / 2 for FEATURE_TILE keys, and its largest number
 *     sum_keys          phi(K) of a split of FEATURE_SPLIT keys, S = phi(K)^T V and z = phi(K)^T 1: of the keys of the
 *                       split before the end of each block
 *     prefix_sums       S and z of all keys before the end of each split, by compensated summation
 *     attend_features   o = phi(Q) S + w V and l = phi(Q) z + w 1, then o / l; w = phi(Q) phi(K)^T, masked, of the keys
 *                       after the last whole block that all queries of a tile attend to
 *
 * Where the mask is no range from key 0 there are no sums, and w has all keys of a query's span. A block is a split, or a
 * tile if queries end at different keys. Blocks begin at fixed keys. So no bit depends on the thread, on the neighbours
 * of a query, on the maps that are kept, or on how many keys and queries go through the stages at a time.
 */
#ifndef ATTN_KERNEL_FEATURES_KEYS_INC_H
#define ATTN_KERNEL_FEATURES_KEYS_INC_H

#include "kernel/attend.inc.h"
#include "kernel/entries.h"
#include "kernel/features/job.h"
#include "kernel/products/backward.inc.h"

enum {
    LISTS_AHEAD = 5,
    GROUPS_OF_TILE = TILE_ROWS / REGISTER_ROWS,
    WEIGHT_STRIDE = FEATURE_TILE + ATTN_ALIGNMENT / sizeof(REAL), /* not a power of two, to avoid cache aliasing */
    STEPS_BETWEEN_LOOKS = 1 << 22,                                /* multiply-adds, or what takes as long: */
    STEPS_OF_LOOKUP = TILE_ROWS * FEATURE_TILE * 8,               /* the mask of a tile */
    STEPS_OF_MAP = 16,                                            /* a feature */
};
static_assert(FEATURE_TILE % LANES == 0 && FEATURE_TILE % SUM_KEYS == 0, "a tile is whole vectors and sums");
static_assert(FEATURE_ROW_UNIT % REGISTER_ROWS == 0, "padded features are whole register tiles");

/* The scratch memory of a task. */
struct feature_task {
    const struct attn_feature_job *job;
    const struct attn_heads_job *heads;
    size_t m_rows;                        /* m, padded to whole register tiles */
    size_t steps;                         /* multiply-adds since the last look for cancellation */
    struct rows_ahead ahead[LISTS_AHEAD]; /* what the next tile reads, and what this one writes */
    REAL *gathered;               /* keys that do not lie in one segment; keys, or a value, of 16 bits, widened */
    REAL *k_pack;                 /* (d_k, FEATURE_TILE): keys */
    REAL *phi;                    /* (m_rows, FEATURE_TILE): their features, unless these are kept */
    REAL *v_pack;                 /* (FEATURE_TILE, columns): values */
    REAL *sums;                   /* S and z for a tile of queries */
    uint8_t *is_non_finite;       /* the value of a key is, and is packed as 0 for w V */
    size_t packed;                /* the first key whose value v_pack has for w V */
    REAL *q, *phi_q, *w;          /* TILE_ROWS rows of queries, features, and weights of FEATURE_TILE keys */
    REAL *o, *o_low, *part;       /* TILE_ROWS rows of columns numbers */
    REAL *l, *l_low;              /* the sum of the weights of each row */
    uint8_t *allow, *sees;        /* (TILE_ROWS, FEATURE_TILE): the mask, where it is looked up; the row has a key */
    size_t reach[GROUPS_OF_TILE]; /* keys up to the last one that a row of the group may attend to */
    attn_span *span;
};

static size_t lay_out_features(const struct attn_feature_job *job, struct feature_task *task, char *scratch)
{
    const size_t row = TILE_ROWS * sizeof(REAL);
    size_t used = 0;
    *task = (struct feature_task){.job = job, .heads = job->heads, .m_rows = attn_round_up(job->m, REGISTER_ROWS)};
    task->gathered = carve(scratch, &used, attn_max(LANES * job->heads->d_k, job->heads->d_v), sizeof(REAL));
    task->k_pack = carve(scratch, &used, FEATURE_TILE * job->heads->d_k, sizeof(REAL));
    task->phi = carve(scratch, &used, FEATURE_TILE * job->m_padded, sizeof(REAL));
    task->v_pack = carve(scratch, &used, FEATURE_TILE * job->columns, sizeof(REAL));
    task->sums = carve(scratch, &used, job->sums_stride, sizeof(REAL));
    task->is_non_finite = carve(scratch, &used, FEATURE_TILE, 1);
    task->q = carve(scratch, &used, job->q_stride, row);
    task->phi_q = carve(scratch, &used, job->phi_stride, row);
    task->w = carve(scratch, &used, WEIGHT_STRIDE, row);
    task->o = carve(scratch, &used, job->columns, row);
    task->o_low = carve(scratch, &used, job->columns, row);
    task->part = carve(scratch, &used, job->columns, row);
    task->l = carve(scratch, &used, 1, row);
    task->l_low = carve(scratch, &used, 1, row);
    task->allow = carve(scratch, &used, TILE_ROWS, FEATURE_TILE);
    task->sees = carve(scratch, &used, TILE_ROWS, 1);
    task->span = carve(scratch, &used, TILE_ROWS, sizeof(attn_span));
    return used;
}

static size_t feature_scratch_bytes(const struct attn_feature_job *job)
{
    struct feature_task task;
    return lay_out_features(job, &task, NULL);
}

static bool features_stop(struct feature_task *task, size_t steps)
{
    task->steps += steps;
    if (task->steps < STEPS_BETWEEN_LOOKS)
        return false;
    task->steps = 0;
    return job_is_cancelled(task->heads);
}

/* ---- products ---- */

/* to = a b, or add + a b. Rows are read and written in whole register tiles, columns in whole vectors. */
struct feature_product {
    const REAL *a, *b, *add; /* add NULL: nothing; its rows are to_stride apart, too */
    REAL *to;
    size_t a_stride, b_stride, to_stride;
    size_t rows, inner, columns;
};

/* Rows of one segment, from row first on, before end. */
static struct rows_ahead rows_before(const struct attn_keys *keys, size_t b, size_t kv_head, size_t first, size_t end,
                                     size_t features)
{
    const struct head_rows head = rows_of_head(keys, b, kv_head);
    const size_t to = attn_min(segment_of(&head, first).to, end);
    return (struct rows_ahead){rows_from(&head, first), first < to ? attn_min(to - first, FEATURE_TILE) : 0, features};
}

static void multiply_features(struct feature_task *task, const struct feature_product *p)
{
    struct register_product product = {.a_stride = (ptrdiff_t)p->a_stride,
                                       .b_stride = p->b_stride,
                                       .groups = attn_ceil_div(p->rows, REGISTER_ROWS),
                                       .scale = 1,
                                       .to_stride = p->to_stride,
                                       .ahead = task->ahead,
                                       .lists_ahead = LISTS_AHEAD};
    for (size_t c = 0; c < p->columns; c += PANEL) {
        product.add = p->add == NULL ? NULL : p->add + c;
        product.to = p->to + c;
        for (size_t i = 0; i < p->inner; i += RUN_PRODUCTS, product.add = product.to) {
            product.a = p->a + i;
            product.b = p->b + i * p->b_stride + c;
            product.n = attn_min(p->inner - i, RUN_PRODUCTS);
            (p->columns - c > LANES ? multiply_by_panel : multiply_by_vector)(&product);
        }
        if (features_stop(task, p->rows * PANEL * p->inner))
            return;
    }
}

/* The sum of n numbers times those of y, or alone; n is padded to whole vectors. */
static REAL dot_features(const REAL *x, const REAL *y, size_t n)
{
    vec total = {0};
    for (size_t i = 0; i < n;) {
        vec sum = {0};
        for (const size_t end = attn_min(n, i + SUM_KEYS * LANES); i < end; i += LANES)
            sum = y == NULL ? sum + load(x + i) : fma_vec(load(x + i), load(y + i), sum);
        total += sum;
    }
    return sum_lanes(total);
}

/* A compensated sum. An infinite one has an error that is NaN. */
static inline vec sum_and_low(vec sum, vec low)
{
    return blend(abs_vec(sum) <= splat(REAL_LARGEST), sum + low, sum);
}

/* ---- features ---- */

static inline vec map_linear(const attn_mechanism *mechanism, vec x)
{
    return mechanism->is_identity ? x : blend(x > 0, x + 1, exp_vec(x));
}

ALWAYS_INLINE void elu_plus_1(const REAL *x, size_t n, REAL factor, REAL *phi, const bool is_normal)
{
    for (size_t f = 0; f < n; f += LANES) {
        const vec y = load(x + f);
        store(phi + f, factor * blend(y > 0, y + 1, is_normal ? exp_normal(y) : exp_vec(y)));
    }
}

/* phi of linear times factor, for n numbers. The bits are those of map_linear: the smallest number chooses the faster exp. */
static void map_linear_row(const attn_mechanism *mechanism, const REAL *x, size_t n, REAL factor, REAL *phi)
{
    vec largest = splat(-(REAL)INFINITY);
    for (size_t f = 0; f < n; f += LANES)
        largest = max_vec(-load(x + f), largest);
    if (mechanism->is_identity)
        for (size_t f = 0; f < n; f += LANES)
            store(phi + f, factor * load(x + f));
    else if (max_lane(largest) <= -EXP_NORMAL)
        elu_plus_1(x, n, factor, phi, true);
    else
        elu_plus_1(x, n, factor, phi, false);
}

/*
 * phi of performer, without the factors that o / l cancels: m^(-1/2), and without eps also e^(-|s|^2 / 2) of a query
 * and the largest number of the keys. So fewer weights underflow.
 */
static inline vec map_performer(const attn_mechanism *mechanism, vec x, REAL largest)
{
    return exp_vec(x - splat(largest)) + (REAL)mechanism->eps;
}

static const REAL *kept_phi(const struct feature_task *task, size_t kv_head, size_t tile)
{
    const size_t numbers = FEATURE_TILE * task->job->m_padded;
    const size_t head = kv_head - task->job->first_head, kept = task->job->kept_tiles;
    return (const REAL *)task->job->phi + (head * kept + tile % kept) * numbers;
}

static REAL *kept_phi_to_write(const struct feature_task *task, size_t kv_head, size_t tile)
{
    return task->job->phi == NULL ? NULL : (REAL *)(uintptr_t)kept_phi(task, kv_head, tile);
}

/* Which keys of a tile are read; NULL: all. */
static const uint8_t *seen_keys(const struct feature_task *task, size_t kv_head, size_t key0)
{
    const uint8_t *seen = task->job->is_seen;
    return seen == NULL ? NULL : seen + kv_head * task->heads->kv_len + key0;
}

static size_t keys_of_tile(const struct feature_task *task, size_t kv_head, size_t key0)
{
    const size_t end = task->job->item[kv_head / task->heads->kv_heads].end;
    return key0 < end ? attn_min(end - key0, FEATURE_TILE) : 0;
}

/* k_pack[d_k][FEATURE_TILE], padded with 0 behind the last key. */
static void pack_feature_keys(struct feature_task *task, size_t kv_head, size_t key0, size_t keys)
{
    const struct attn_heads_job *heads = task->heads;
    const size_t d_k = heads->d_k;
    const struct head_rows head = rows_of_head(&heads->k, kv_head / heads->kv_heads, kv_head % heads->kv_heads);
    for (size_t j = 0; j < FEATURE_TILE; j += LANES) {
        const size_t from = attn_min(j, keys), count = attn_min(keys - from, LANES);
        const struct rows rows = wide_rows(&head, key0 + from, key0 + from + count, d_k, task->gathered);
        const REAL *row = rows.data;
        size_t d = 0;
        for (; count == LANES && d_k - d >= LANES; d += LANES)
            transpose(row + d, rows.stride, task->k_pack + d * FEATURE_TILE + j, FEATURE_TILE);
        for (; d < d_k; d++)
            for (size_t lane = 0; lane < LANES; lane++)
                task->k_pack[d * FEATURE_TILE + j + lane] =
                    lane < count ? row[(ptrdiff_t)lane * rows.stride + (ptrdiff_t)d] : 0;
    }
}

/* Sets to 0 the features of keys that are not read. */
static void hide_keys(const struct feature_task *task, const uint8_t *seen, size_t keys, REAL *phi)
{
    for (size_t j = 0; j < FEATURE_TILE; j++)
        for (size_t f = 0; !(j < keys && (seen == NULL || seen[j])) && f < task->m_rows; f++)
            phi[f * FEATURE_TILE + j] = 0;
}

/* The largest number of a tile of performer, and |s|^2 / 2 subtracted from all: without eps from the largest too. */
static REAL subtract_squares(const struct feature_task *task, const uint8_t *seen, size_t keys, REAL *phi)
{
    const size_t d_k = task->heads->d_k;
    const REAL half = (REAL)(fabs(task->heads->scale) / 2);
    vec largest = splat(-(REAL)INFINITY);
    for (size_t j = 0; j < keys; j += LANES) {
        REAL *x = phi + j;
        const REAL *k = task->k_pack + j;
        vec square = {0};
        for (size_t f = 0; f < d_k;) {
            vec sum = {0};
            for (const size_t end = attn_min(d_k, f + SUM_KEYS); f < end; f++)
                sum = fma_vec(load(k + f * FEATURE_TILE), load(k + f * FEATURE_TILE), sum);
            square += sum;
        }
        square *= half;
        ivec is_seen = (ivec){0};
        for (size_t lane = 0; lane < LANES && j + lane < keys; lane++)
            is_seen[lane] = seen == NULL || seen[j + lane] ? -1 : 0;
        for (size_t r = 0; r < task->job->m; r++) {
            const vec before = load(x + r * FEATURE_TILE), after = before - square;
            const vec one = blend(is_seen, task->job->mechanism->eps > 0 ? before : after, splat(-(REAL)INFINITY));
            largest = max_vec(one, largest);
            store(x + r * FEATURE_TILE, after);
        }
    }
    return max_lane(largest);
}

static void map_keys(const struct attn_feature_job *job, size_t index, void *scratch)
{
    struct feature_task task;
    lay_out_features(job, &task, scratch);
    const size_t kv_head = job->first_head + index / job->tiles, tile = index % job->tiles, key0 = tile * FEATURE_TILE;
    const size_t keys = keys_of_tile(&task, kv_head, key0), d_k = job->heads->d_k;
    REAL *to = kept_phi_to_write(&task, kv_head, tile);
    pack_feature_keys(&task, kv_head, key0, keys);
    multiply_features(&task, &(struct feature_product){.a = job->projection,
                                                       .a_stride = d_k,
                                                       .b = task.k_pack,
                                                       .b_stride = FEATURE_TILE,
                                                       .to = to,
                                                       .to_stride = FEATURE_TILE,
                                                       .rows = task.m_rows,
                                                       .inner = d_k,
                                                       .columns = FEATURE_TILE});
    ((REAL *)job->largest)[kv_head * job->tiles + tile] =
        subtract_squares(&task, seen_keys(&task, kv_head, key0), keys, to);
}

static REAL largest_of_head(const struct attn_feature_job *job, size_t kv_head)
{
    const REAL *largest = (const REAL *)job->largest + kv_head * job->tiles;
    REAL max = -(REAL)INFINITY;
    for (size_t tile = 0; tile < job->tiles; tile++)
        max = largest[tile] > max ? largest[tile] : max;
    return max > -(REAL)INFINITY ? max : 0;
}

/* Computes phi of a tile, where it is kept or in scratch memory: (m_rows, FEATURE_TILE). */
static const REAL *map_tile(struct feature_task *task, size_t kv_head, size_t tile, REAL largest)
{
    const struct attn_feature_job *job = task->job;
    const size_t key0 = tile * FEATURE_TILE, keys = keys_of_tile(task, kv_head, key0), numbers = job->m * FEATURE_TILE;
    const bool is_linear = job->mechanism->type == ATTN_LINEAR;
    REAL *phi = job->phi == NULL ? task->phi : kept_phi_to_write(task, kv_head, tile);
    if (is_linear)
        pack_feature_keys(task, kv_head, key0, keys);
    if (is_linear)
        map_linear_row(job->mechanism, task->k_pack, numbers, 1, phi);
    for (size_t n = 0; !is_linear && n < numbers; n += LANES)
        store(phi + n, map_performer(job->mechanism, load(phi + n), largest));
    memset(phi + numbers, 0, (task->m_rows - job->m) * FEATURE_TILE * sizeof(REAL));
    hide_keys(task, seen_keys(task, kv_head, key0), keys, phi);
    return phi;
}

/* ---- sums ---- */

/* Packs the values of a tile; those that are not finite as 0, if they are added apart. */
static void pack_feature_values(struct feature_task *task, size_t kv_head, size_t key0, size_t keys, bool adds_apart)
{
    const struct attn_heads_job *heads = task->heads;
    const struct head_rows head = rows_of_head(&heads->v, kv_head / heads->kv_heads, kv_head % heads->kv_heads);
    const uint8_t *seen = seen_keys(task, kv_head, key0);
    if (heads->d_v < task->job->columns)
        memset(task->v_pack, 0, FEATURE_TILE * task->job->columns * sizeof(REAL));
    for (size_t j = 0; j < FEATURE_TILE; j++) {
        const bool is_read = j < keys && (seen == NULL || seen[j]);
        REAL *to = task->v_pack + j * task->job->columns;
        const bool is_finite =
            is_read && copy_row(wide_row(&head, key0 + j, heads->d_v, task->gathered), heads->d_v, to);
        task->is_non_finite[j] = is_read && adds_apart && !is_finite;
        if (!is_read || task->is_non_finite[j])
            memset(to, 0, heads->d_v * sizeof(REAL));
    }
}

static REAL *sums_of(const struct attn_feature_job *job, size_t kv_head, size_t block)
{
    const size_t head = kv_head - job->first_head, kept = job->kept_blocks;
    return (REAL *)job->sums + (head * kept + block % kept) * job->sums_stride;
}

static REAL *totals_of(const struct attn_feature_job *job, size_t kv_head, size_t split)
{
    const size_t head = kv_head - job->first_head, kept = job->kept_totals;
    return (REAL *)job->totals + (head * kept + split % kept) * job->sums_stride;
}

/* The values of a tile: packed, or where they are, if they are whole rows of the kernel's type and all are read. */
static struct rows values_of_tile(struct feature_task *task, size_t kv_head, size_t key0)
{
    const struct attn_heads_job *heads = task->heads;
    const size_t keys = keys_of_tile(task, kv_head, key0), columns = task->job->columns;
    const struct head_rows head = rows_of_head(&heads->v, kv_head / heads->kv_heads, kv_head % heads->kv_heads);
    const struct rows rows = rows_from(&head, key0);
    if (rows.dtype == KERNEL_TYPE && heads->d_v == columns && keys == FEATURE_TILE &&
        key0 + keys <= segment_of(&head, key0).to && seen_keys(task, kv_head, key0) == NULL)
        return rows;
    pack_feature_values(task, kv_head, key0, keys, false);
    return (struct rows){task->v_pack, (ptrdiff_t)columns, KERNEL_TYPE};
}

/* S and z of a tile, added to those before it unless that is NULL. z follows S. */
static void sum_tile(struct feature_task *task, size_t kv_head, size_t tile, const REAL *phi, const REAL *before,
                     REAL *sums)
{
    const struct attn_feature_job *job = task->job;
    const size_t columns = job->columns;
    const struct rows values = values_of_tile(task, kv_head, tile * FEATURE_TILE);
    multiply_features(task, &(struct feature_product){.a = phi,
                                                      .a_stride = FEATURE_TILE,
                                                      .b = values.data,
                                                      .b_stride = (size_t)values.stride,
                                                      .add = before,
                                                      .to = sums,
                                                      .to_stride = columns,
                                                      .rows = task->m_rows,
                                                      .inner = FEATURE_TILE,
                                                      .columns = columns});
    const size_t first = task->m_rows * columns;
    for (size_t f = 0; f < job->m; f++)
        sums[first + f] =
            (before == NULL ? 0 : before[first + f]) + dot_features(phi + f * FEATURE_TILE, NULL, FEATURE_TILE);
    memset(sums + first + job->m, 0, (job->sums_stride - first - job->m) * sizeof(REAL));
}

static size_t splits_of_pass(const struct attn_feature_job *job)
{
    return attn_ceil_div(job->end_key - job->first_key, FEATURE_SPLIT);
}

/* A task is the keys of a split in this pass: of one block, or several, each of which has the sums from the first on. */
static void sum_keys(const struct attn_feature_job *job, size_t index, void *scratch)
{
    struct feature_task task;
    lay_out_features(job, &task, scratch);
    const struct attn_heads_job *heads = job->heads;
    const size_t splits = splits_of_pass(job), kv_head = job->first_head + index / splits;
    const size_t b = kv_head / heads->kv_heads, h = kv_head % heads->kv_heads;
    const struct attn_feature_item *item = &job->item[b];
    const size_t first = job->first_key + index % splits * FEATURE_SPLIT;
    const size_t end = attn_min(attn_min(first + FEATURE_SPLIT, job->end_key), item->end);
    const REAL largest = job->mechanism->type == ATTN_LINEAR ? 0 : largest_of_head(job, kv_head);
    for (size_t key0 = first; key0 < end; key0 += FEATURE_TILE) {
        if (features_stop(&task, FEATURE_TILE * (job->m * STEPS_OF_MAP + job->columns)))
            return;
        const REAL *phi = map_tile(&task, kv_head, key0 / FEATURE_TILE, largest);
        if (job->mechanism->type == ATTN_LINEAR)
            task.ahead[0] = rows_before(&heads->k, b, h, key0 + FEATURE_TILE, item->end, heads->d_k);
        task.ahead[1] = rows_before(&heads->v, b, h, key0 + FEATURE_TILE, item->end, heads->d_v);
        if (job->is_running)
            sum_tile(&task, kv_head, key0 / FEATURE_TILE, phi,
                     key0 % FEATURE_SPLIT == 0 ? NULL : sums_of(job, kv_head, (key0 - 1) / item->block_keys),
                     sums_of(job, kv_head, key0 / item->block_keys));
    }
}

/* Prefix sums over the splits that end in this pass, of a slice of the numbers of S and z. */
static void prefix_sums(const struct attn_feature_job *job, size_t index, void *scratch)
{
    (void)scratch;
    const size_t slices = attn_ceil_div(job->sums_stride, FEATURE_SLICE), kv_head = job->first_head + index / slices;
    const size_t from = index % slices * FEATURE_SLICE, count = attn_min(job->sums_stride - from, FEATURE_SLICE);
    REAL *sum = (REAL *)job->prefix + (kv_head - job->first_head) * 2 * job->sums_stride + from;
    REAL *low = sum + job->sums_stride;
    const struct attn_feature_item *item = &job->item[kv_head / job->heads->kv_heads];
    for (size_t split = job->first_key / FEATURE_SPLIT; split * FEATURE_SPLIT < item->end; split++) {
        const size_t end = attn_min((split + 1) * FEATURE_SPLIT, item->end);
        REAL *total = totals_of(job, kv_head, split) + from;
        if (end <= job->first_key || end > job->end_key)
            return;
        if (split == 0) {
            memset(sum, 0, count * sizeof(REAL));
            memset(low, 0, count * sizeof(REAL));
        }
        add_row_compensated(sum, low, 1, sums_of(job, kv_head, (end - 1) / item->block_keys) + from, count);
        for (size_t n = 0; n < count; n += LANES)
            store(total + n, sum_and_low(load(sum + n), load(low + n)));
    }
}

/* S and z of the first blocks, which are at least one. */
static const REAL *sums_before(struct feature_task *task, size_t kv_head, size_t blocks)
{
    const struct attn_feature_job *job = task->job;
    const size_t keys = blocks * job->item[kv_head / job->heads->kv_heads].block_keys, splits = keys / FEATURE_SPLIT;
    const REAL *total = splits == 0 ? NULL : totals_of(job, kv_head, splits - 1);
    if (keys % FEATURE_SPLIT == 0)
        return total;
    const REAL *sums = sums_of(job, kv_head, blocks - 1);
    for (size_t n = 0; splits > 0 && n < job->sums_stride; n += LANES)
        store(task->sums + n, load(total + n) + load(sums + n));
    return splits == 0 ? sums : task->sums;
}

/* Transposes P for the features of queries, padded with 0. */
static void pack_projection(const struct attn_feature_job *job)
{
    const size_t d_k = job->heads->d_k;
    REAL *to = job->projection_transposed;
    memset(to, 0, d_k * job->phi_stride * sizeof(REAL));
    for (size_t r = 0; r < job->m; r++)
        for (size_t f = 0; f < d_k; f++)
            to[f * job->phi_stride + r] = ((const REAL *)job->projection)[r * d_k + f];
}

#endif
