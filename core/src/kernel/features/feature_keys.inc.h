/*
 * features.inc.h: attention by feature maps, linear and performer (attn/mechanism.h has the equations). Part of a
 * kernel. A run has these stages, in this order:
 *
 *     map_keys          performer: P s - |s|^2 / 2 for FEATURE_TILE keys, and its largest number
 *     sum_keys          phi(K) of a block of keys, S = phi(K)^T V and z = phi(K)^T 1
 *     prefix_sums          S and z of all keys before the end of each block, by compensated summation
 *     attend_features   o = phi(Q) S + w V and l = phi(Q) z + w 1, then o / l; w = phi(Q) phi(K)^T, masked, of the keys
 *                       after the last whole block that all queries of a tile attend to
 *
 * Where the mask is no range from key 0 there are no sums, and w has all keys of a query's span. Blocks begin at fixed
 * keys. So no bit depends on the thread, on the neighbours of a query, or on the maps that are kept.
 */
#ifndef ATTN_KERNEL_FEATURES_INC_H
#define ATTN_KERNEL_FEATURES_INC_H

#include "kernel/attend.inc.h"
#include "kernel/features/feature_job.h"
#include "kernel/kernel.h"

enum {
    WEIGHT_STRIDE = FEATURE_TILE + ATTN_ALIGNMENT / sizeof(REAL), /* not a power of two, to avoid cache aliasing */
    STEPS_BETWEEN_LOOKS = 1 << 22,                                /* multiply-adds, or what takes as long: */
    STEPS_OF_LOOKUP = TILE_ROWS * FEATURE_TILE * 8,               /* the mask of a tile */
    STEPS_OF_MAP = 16,                                            /* a feature */
};
static_assert(FEATURE_TILE % PANEL == 0 && FEATURE_TILE % SUM_KEYS == 0, "a tile is whole panels and sums");
static_assert(FEATURE_ROW_UNIT % REGISTER_ROWS == 0, "padded features are whole register tiles");

/* The scratch memory of a task. */
struct feature_task {
    const struct attn_feature_job *job;
    const struct attn_heads_job *heads;
    size_t m_rows;          /* m, padded to whole register tiles */
    size_t steps;           /* multiply-adds since the last look for cancellation */
    REAL *gathered;         /* keys that do not lie in one segment; keys, or a value, of 16 bits, widened */
    REAL *k_pack;           /* keys as panels of (d_k, PANEL) */
    REAL *phi;              /* (m_rows, FEATURE_TILE): features of keys, for S */
    REAL *v_pack;           /* values, as pack_value writes them */
    uint8_t *is_non_finite; /* the value of a key is, and is packed as 0 for w V */
    size_t packed;          /* the first key whose value v_pack has for w V */
    REAL *q, *phi_q, *w;    /* TILE_ROWS rows of queries, features, and weights of FEATURE_TILE keys */
    REAL *o, *o_low, *part; /* TILE_ROWS rows of columns numbers */
    REAL *l, *l_low;        /* the sum of the weights of each row */
    uint8_t *allow, *sees;  /* (TILE_ROWS, FEATURE_TILE): the mask, where it is looked up; the row has a key */
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
    task->v_pack = carve(scratch, &used, TILE_KEYS * job->columns, sizeof(REAL));
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

/*
 * to = a b, added to it unless is_first. b is packed in panels of b_rows rows, of which inner are read. to is written
 * by rows, to_stride apart, or with to_stride 0 in panels of to_rows rows.
 */
struct feature_product {
    const REAL *a, *b;
    REAL *to;
    size_t a_stride, b_rows, to_rows, to_stride;
    size_t rows, inner, columns; /* rows is padded to whole register tiles, columns to whole vectors */
    bool is_first;
};

static void multiply_features(struct feature_task *task, const struct feature_product *p)
{
    for (size_t r = 0; r < p->rows; r += REGISTER_ROWS)
        for (size_t c = 0; c < p->columns; c += PANEL) {
            const size_t width = attn_min(p->columns - c, PANEL), stride = p->to_stride == 0 ? width : p->to_stride;
            struct register_product product = {.a_stride = (ptrdiff_t)p->a_stride,
                                               .groups = 1,
                                               .first = SUM_KEYS,
                                               .run = SUM_KEYS,
                                               .scale = 1,
                                               .to = p->to + r * stride + (p->to_stride == 0 ? c * p->to_rows : c),
                                               .to_stride = stride,
                                               .is_first = p->is_first};
            for (size_t i = 0; i < p->inner; i += LONGEST_SUM, product.is_first = false) {
                product.a = p->a + r * p->a_stride + i;
                product.b = p->b + c * p->b_rows + i * width;
                product.n = attn_min(p->inner - i, LONGEST_SUM);
                if (width == PANEL)
                    multiply_by_panel(&product);
                else
                    multiply_by_vector(&product);
            }
            if (features_stop(task, REGISTER_ROWS * width * p->inner))
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
    return (const REAL *)task->job->phi + (kv_head * task->job->tiles + tile) * numbers;
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

static void pack_feature_keys(struct feature_task *task, size_t kv_head, size_t key0, size_t keys)
{
    const struct attn_heads_job *heads = task->heads;
    const size_t d_k = heads->d_k;
    const struct head_rows head = rows_of_head(&heads->k, kv_head / heads->kv_heads, kv_head % heads->kv_heads);
    for (size_t j = 0; j < FEATURE_TILE; j += LANES) {
        const size_t from = attn_min(j, keys), count = attn_min(keys - from, LANES);
        const struct rows rows = wide_rows(&head, key0 + from, key0 + from + count, d_k, task->gathered);
        pack_lanes(rows.data, rows.stride, count, d_k, task->k_pack + j / PANEL * PANEL * d_k + j % PANEL);
    }
}

/* Sets to 0 the features of keys that are not read, in the layout of task->phi or, with is_panels, of panels. */
static void hide_keys(const struct feature_task *task, const uint8_t *seen, size_t keys, REAL *phi, bool is_panels)
{
    for (size_t j = 0; j < FEATURE_TILE; j++) {
        if (j < keys && (seen == NULL || seen[j]))
            continue;
        const size_t stride = is_panels ? PANEL : FEATURE_TILE;
        REAL *key = phi + (is_panels ? j / PANEL * PANEL * task->m_rows + j % PANEL : j);
        for (size_t f = 0; f < task->m_rows; f++)
            key[f * stride] = 0;
    }
}

/* The largest number of a tile of performer, and |s|^2 / 2 subtracted from all: without eps from the largest too. */
static REAL subtract_squares(const struct feature_task *task, const uint8_t *seen, size_t keys, REAL *phi)
{
    const size_t d_k = task->heads->d_k;
    const REAL half = (REAL)(fabs(task->heads->scale) / 2);
    vec largest = splat(-(REAL)INFINITY);
    for (size_t j = 0; j < keys; j += LANES) {
        REAL *x = phi + j / PANEL * PANEL * task->m_rows + j % PANEL;
        const REAL *k = task->k_pack + j / PANEL * PANEL * d_k + j % PANEL;
        vec square = {0};
        for (size_t f = 0; f < d_k;) {
            vec sum = {0};
            for (const size_t end = attn_min(d_k, f + SUM_KEYS); f < end; f++)
                sum = fma_vec(load(k + f * PANEL), load(k + f * PANEL), sum);
            square += sum;
        }
        square *= half;
        ivec is_seen = (ivec){0};
        for (size_t lane = 0; lane < LANES && j + lane < keys; lane++)
            is_seen[lane] = seen == NULL || seen[j + lane] ? -1 : 0;
        for (size_t r = 0; r < task->job->m; r++) {
            const vec before = load(x + r * PANEL), after = before - square;
            const vec one = blend(is_seen, task->job->mechanism->eps > 0 ? before : after, splat(-(REAL)INFINITY));
            largest = max_vec(one, largest);
            store(x + r * PANEL, after);
        }
    }
    return max_lane(largest);
}

static void map_keys(const struct attn_feature_job *job, size_t index, void *scratch)
{
    struct feature_task task;
    lay_out_features(job, &task, scratch);
    const size_t kv_head = index / job->tiles, tile = index % job->tiles, key0 = tile * FEATURE_TILE;
    const size_t keys = keys_of_tile(&task, kv_head, key0), d_k = job->heads->d_k;
    REAL *to = kept_phi_to_write(&task, kv_head, tile);
    pack_feature_keys(&task, kv_head, key0, keys);
    for (size_t j = 0; j < FEATURE_TILE; j += PANEL)
        multiply_features(&task, &(struct feature_product){.a = job->projection,
                                                           .a_stride = d_k,
                                                           .b = task.k_pack + j * d_k,
                                                           .to = to + j * task.m_rows,
                                                           .to_stride = PANEL,
                                                           .rows = task.m_rows,
                                                           .inner = d_k,
                                                           .columns = PANEL,
                                                           .is_first = true});
    ((REAL *)job->largest)[index] = subtract_squares(&task, seen_keys(&task, kv_head, key0), keys, to);
}

static REAL largest_of_head(const struct attn_feature_job *job, size_t kv_head)
{
    const REAL *largest = (const REAL *)job->largest + kv_head * job->tiles;
    REAL max = -(REAL)INFINITY;
    for (size_t tile = 0; tile < job->tiles; tile++)
        max = largest[tile] > max ? largest[tile] : max;
    return max > -(REAL)INFINITY ? max : 0;
}

/* Writes phi of a tile into task->phi, and where it is kept. */
static void map_tile(struct feature_task *task, size_t kv_head, size_t tile, REAL largest)
{
    const struct attn_feature_job *job = task->job;
    const size_t key0 = tile * FEATURE_TILE, keys = keys_of_tile(task, kv_head, key0);
    const uint8_t *seen = seen_keys(task, kv_head, key0);
    const bool is_linear = job->mechanism->type == ATTN_LINEAR;
    REAL *kept = kept_phi_to_write(task, kv_head, tile);
    if (is_linear)
        pack_feature_keys(task, kv_head, key0, keys);
    for (size_t j = 0; j < FEATURE_TILE; j += LANES)
        for (size_t f = 0; f < job->m; f++) {
            const size_t at = f * PANEL + j % PANEL;
            REAL *to = kept == NULL ? NULL : kept + j / PANEL * PANEL * task->m_rows + at;
            const vec phi = is_linear ? map_linear(job->mechanism, load(task->k_pack + j / PANEL * PANEL * job->m + at))
                                      : map_performer(job->mechanism, load(to), largest);
            store(task->phi + f * FEATURE_TILE + j, phi);
            if (to != NULL)
                store(to, phi);
        }
    memset(task->phi + job->m * FEATURE_TILE, 0, (task->m_rows - job->m) * FEATURE_TILE * sizeof(REAL));
    hide_keys(task, seen, keys, task->phi, false);
    if (kept != NULL)
        hide_keys(task, seen, keys, kept, true);
}

/* ---- sums ---- */

/* Packs the values of a tile; those that are not finite as 0, if they are added apart. */
static void pack_feature_values(struct feature_task *task, size_t kv_head, size_t key0, size_t keys, bool adds_apart)
{
    const struct attn_heads_job *heads = task->heads;
    const struct head_rows head = rows_of_head(&heads->v, kv_head / heads->kv_heads, kv_head % heads->kv_heads);
    const uint8_t *seen = seen_keys(task, kv_head, key0);
    for (size_t j = 0; j < FEATURE_TILE; j++) {
        const bool is_read = j < keys && (seen == NULL || seen[j]);
        const REAL *from = is_read ? wide_row(&head, key0 + j, heads->d_v, task->gathered) : NULL;
        task->is_non_finite[j] = is_read && adds_apart && !all_finite(from, heads->d_v);
        pack_value(from, is_read && !task->is_non_finite[j] ? heads->d_v : 0, task->job->columns, task->v_pack, j);
    }
}

static REAL *sums_of(const struct attn_feature_job *job, size_t kv_head, size_t block)
{
    return (REAL *)job->sums + (kv_head * job->blocks + block) * job->sums_stride;
}

/* S and z += those of a tile. z follows S. */
static void sum_tile(struct feature_task *task, size_t kv_head, size_t tile, bool is_first, REAL *sums)
{
    const struct attn_feature_job *job = task->job;
    const size_t key0 = tile * FEATURE_TILE, columns = job->columns;
    pack_feature_values(task, kv_head, key0, keys_of_tile(task, kv_head, key0), false);
    multiply_features(task, &(struct feature_product){.a = task->phi,
                                                      .a_stride = FEATURE_TILE,
                                                      .b = task->v_pack,
                                                      .b_rows = TILE_KEYS,
                                                      .to = sums,
                                                      .to_rows = task->m_rows,
                                                      .rows = task->m_rows,
                                                      .inner = FEATURE_TILE,
                                                      .columns = columns,
                                                      .is_first = is_first});
    REAL *z = sums + task->m_rows * columns;
    const size_t padded = job->sums_stride - task->m_rows * columns;
    if (is_first)
        memset(z, 0, padded * sizeof(REAL));
    for (size_t f = 0; f < job->m; f++)
        z[f] += dot_features(task->phi + f * FEATURE_TILE, NULL, FEATURE_TILE);
}

static void sum_keys(const struct attn_feature_job *job, size_t index, void *scratch)
{
    struct feature_task task;
    lay_out_features(job, &task, scratch);
    const size_t kv_head = index / job->blocks, block = index % job->blocks;
    const struct attn_feature_item *item = &job->item[kv_head / job->heads->kv_heads];
    const size_t each = item->block_keys / FEATURE_TILE, first = block * each;
    const REAL largest = job->mechanism->type == ATTN_LINEAR ? 0 : largest_of_head(job, kv_head);
    for (size_t tile = first; tile < first + each && tile * FEATURE_TILE < item->end; tile++) {
        if (features_stop(&task, FEATURE_TILE * (job->m * STEPS_OF_MAP + job->columns)))
            return;
        map_tile(&task, kv_head, tile, largest);
        if (job->is_running)
            sum_tile(&task, kv_head, tile, tile == first, sums_of(job, kv_head, block));
    }
}

/* Prefix sums of a slice of the numbers of S and z. */
static void prefix_sums(const struct attn_feature_job *job, size_t index, void *scratch)
{
    (void)scratch;
    const size_t slices = attn_ceil_div(job->sums_stride, FEATURE_SLICE), kv_head = index / slices;
    const size_t from = index % slices * FEATURE_SLICE, count = attn_min(job->sums_stride - from, FEATURE_SLICE);
    REAL sum[FEATURE_SLICE] = {0}, low[FEATURE_SLICE] = {0};
    const size_t blocks = job->item[kv_head / job->heads->kv_heads].blocks;
    for (size_t block = 0; block < blocks; block++) {
        REAL *sums = sums_of(job, kv_head, block) + from;
        add_row_compensated(sum, low, 1, sums, count);
        for (size_t n = 0; n < count; n += LANES)
            store(sums + n, sum_and_low(load(sum + n), load(low + n)));
    }
}

/* Packs P for the features of queries: panels of (d_k, PANEL), padded with 0. */
static void pack_projection(const struct attn_feature_job *job)
{
    const size_t d_k = job->heads->d_k;
    for (size_t r = 0; r < attn_round_up(job->m, PANEL); r += LANES)
        pack_lanes((const REAL *)job->projection + (r < job->m ? r * d_k : 0), (ptrdiff_t)d_k,
                   r < job->m ? job->m - r : 0, d_k,
                   (REAL *)job->projection_panels + r / PANEL * PANEL * d_k + r % PANEL);
}

#endif
