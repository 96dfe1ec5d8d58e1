/*
 * queries.inc.h: attention by feature maps, the queries: from the sums of keys that keys.inc.h computes, and
 * from weights of pairs. Part of a kernel.
 */
#ifndef ATTN_KERNEL_FEATURES_QUERIES_INC_H
#define ATTN_KERNEL_FEATURES_QUERIES_INC_H

#include "kernel/features/keys.inc.h"

/* ---- features ---- */

/* Up to TILE_ROWS queries of a head, and the keys that w has: from … to. */
struct feature_rows {
    size_t b, h, kv_head, first, rows;
    size_t blocks; /* whole blocks before from, whose sums are taken */
    size_t from, to;
    bool is_compensated; /* sums over many tiles of keys */
};

/* The spans of the rows; a row without keys has an empty one. Which of the rest see a key is known after the lookup. */
static void find_spans(struct feature_task *task, struct feature_rows *tile)
{
    const struct attn_feature_job *job = task->job;
    const struct attn_feature_item *item = &job->item[tile->b];
    tile->blocks = SIZE_MAX;
    tile->from = SIZE_MAX;
    for (size_t r = 0; r < TILE_ROWS; r++) {
        attn_span span = {0};
        if (r < tile->rows)
            span = attn_mask_span(task->heads->mask, tile->b, tile->first + r);
        if (span.from >= span.to || (job->is_running && span.to <= item->first_seen))
            span = (attn_span){0};
        task->span[r] = span;
        task->sees[r] = job->is_running && span.to > 0;
        if (span.to == 0)
            continue;
        tile->blocks = attn_min(tile->blocks, span.to == item->end ? item->blocks : span.to / item->block_keys);
        tile->from = attn_min(tile->from, span.from);
        tile->to = attn_max(tile->to, span.to);
    }
    if (!job->is_running || tile->to == 0)
        tile->blocks = 0;
    tile->from = job->is_running ? tile->blocks * item->block_keys : tile->from / FEATURE_TILE * FEATURE_TILE;
    tile->is_compensated = tile->to > tile->from + 2 * FEATURE_TILE;
}

/* Whether queries are copied into rows of whole vectors before they are mapped. */
static bool packs_queries(const struct feature_task *task)
{
    return task->job->mechanism->type == ATTN_PERFORMER || task->heads->d_k % LANES != 0;
}

/* A query of a row with keys, to be mapped. */
static const REAL *feature_query(const struct feature_task *task, const struct feature_rows *tile, size_t r)
{
    const struct attn_operand *q = &task->heads->q;
    return packs_queries(task) ? task->q + r * task->job->q_stride
                               : (const REAL *)q->data + attn_operand_at(q, tile->b, tile->h, tile->first + r);
}

static void map_performer_query(const struct feature_task *task, const REAL *q, REAL *phi)
{
    const attn_mechanism *mechanism = task->job->mechanism;
    const size_t m = task->job->m, whole = m / LANES * LANES;
    const REAL sign = task->heads->scale < 0 ? -1 : 1, half = (REAL)(fabs(task->heads->scale) / 2);
    vec largest = splat(-(REAL)INFINITY);
    for (size_t f = 0; f < m; f += LANES)
        store(phi + f, sign * load(phi + f));
    for (size_t f = 0; f < whole; f += LANES)
        largest = max_vec(load(phi + f), largest);
    REAL max = max_lane(largest);
    for (size_t f = whole; f < m; f++)
        max = phi[f] > max ? phi[f] : max;
    max = max > -(REAL)INFINITY ? max : 0;
    if (mechanism->eps > 0)
        max += half * dot_features(q, q, task->job->q_stride);
    for (size_t f = 0; f < m; f += LANES)
        store(phi + f, map_performer(mechanism, load(phi + f), max));
}

/* Queries of rows with keys, as rows of whole vectors. The others are 0. */
static void pack_feature_queries(struct feature_task *task, const struct feature_rows *tile)
{
    const struct attn_feature_job *job = task->job;
    const struct attn_operand *q = &task->heads->q;
    for (size_t r = 0; r < TILE_ROWS; r++) {
        REAL *row = task->q + r * job->q_stride;
        const size_t count = r < tile->rows && task->span[r].to > 0 ? task->heads->d_k : 0;
        if (count > 0)
            memcpy(row, (const REAL *)q->data + attn_operand_at(q, tile->b, tile->h, tile->first + r),
                   count * sizeof(REAL));
        memset(row + count, 0, (job->q_stride - count) * sizeof(REAL));
    }
}

/* phi of the rows; 0 in rows without keys, whose queries are not read. */
static void map_queries(struct feature_task *task, const struct feature_rows *tile)
{
    const struct attn_feature_job *job = task->job;
    const attn_mechanism *mechanism = job->mechanism;
    const REAL factor = mechanism->is_unnormalised ? (REAL)task->heads->scale : 1;
    if (packs_queries(task))
        pack_feature_queries(task, tile);
    if (mechanism->type == ATTN_PERFORMER)
        multiply_features(task, &(struct feature_product){.a = task->q,
                                                          .a_stride = job->q_stride,
                                                          .b = job->projection_transposed,
                                                          .b_stride = job->phi_stride,
                                                          .to = task->phi_q,
                                                          .to_stride = job->phi_stride,
                                                          .rows = TILE_ROWS,
                                                          .inner = task->heads->d_k,
                                                          .columns = attn_round_up(job->m, LANES)});
    for (size_t r = 0; r < TILE_ROWS; r++) {
        REAL *phi = task->phi_q + r * job->phi_stride;
        if (task->span[r].to == 0)
            memset(phi, 0, job->phi_stride * sizeof(REAL));
        else if (mechanism->type == ATTN_LINEAR)
            map_linear_row(mechanism, feature_query(task, tile, r), job->m, factor, phi);
        else
            map_performer_query(task, feature_query(task, tile, r), phi);
    }
}

/* o = phi(Q) S and l = phi(Q) z, or 0. */
static void take_sums(struct feature_task *task, const struct feature_rows *tile)
{
    const struct attn_feature_job *job = task->job;
    const size_t columns = job->columns;
    if (tile->is_compensated)
        memset(task->o_low, 0, TILE_ROWS * columns * sizeof(REAL));
    memset(task->l_low, 0, TILE_ROWS * sizeof(REAL));
    if (tile->blocks == 0) {
        memset(task->o, 0, TILE_ROWS * columns * sizeof(REAL));
        memset(task->l, 0, TILE_ROWS * sizeof(REAL));
        return;
    }
    const REAL *sums = sums_before(task, tile->kv_head, tile->blocks);
    multiply_features(task, &(struct feature_product){.a = task->phi_q,
                                                      .a_stride = job->phi_stride,
                                                      .b = sums,
                                                      .b_stride = columns,
                                                      .to = task->o,
                                                      .to_stride = columns,
                                                      .rows = TILE_ROWS,
                                                      .inner = job->m,
                                                      .columns = columns});
    for (size_t r = 0; r < TILE_ROWS; r++)
        task->l[r] = dot_features(task->phi_q + r * job->phi_stride, sums + task->m_rows * columns,
                                  attn_round_up(job->m, LANES));
}

/* Looks up the mask of a row of w. */
static bool look_up_row(struct feature_task *task, const struct feature_rows *tile, size_t r, size_t key0, size_t keys)
{
    const struct attn_heads_job *heads = task->heads;
    const attn_span span = task->span[r];
    if (span.from >= key0 + keys || span.to <= key0)
        return false;
    const bool sees = attn_mask_row(heads->mask, heads->compute, tile->b, tile->h, tile->first + r, span, key0,
                                    key0 + keys, task->allow + r * FEATURE_TILE);
    task->sees[r] |= sees;
    return sees;
}

/* The keys of a tile up to the last one that a row of the group may attend to; 0: none may. */
static size_t reach_of_group(struct feature_task *task, const struct feature_rows *tile, size_t group, size_t key0,
                             size_t keys)
{
    size_t reach = 0;
    for (size_t r = group; r < group + REGISTER_ROWS; r++) {
        const size_t to = task->span[r].to > key0 ? attn_min(task->span[r].to - key0, keys) : 0;
        if (task->job->is_running || look_up_row(task, tile, r, key0, keys))
            reach = attn_max(reach, to);
        else
            memset(task->allow + r * FEATURE_TILE, 0, FEATURE_TILE);
    }
    return reach;
}

/* Whether the row may attend to key j of the tile. */
static bool row_sees(const struct feature_task *task, size_t r, size_t key0, size_t j)
{
    return task->job->is_running ? key0 + j < task->span[r].to : task->allow[r * FEATURE_TILE + j] != 0;
}

/* Weights of hidden keys become 0, whatever they are: columns columns, of which keys are keys. */
static void mask_weights(struct feature_task *task, const struct feature_rows *tile, size_t r, size_t key0, size_t keys,
                         size_t columns)
{
    REAL *w = task->w + r * WEIGHT_STRIDE;
    const size_t to = task->span[r].to > key0 ? attn_min(task->span[r].to - key0, keys) : 0;
    const uint8_t *seen = task->job->is_running ? seen_keys(task, tile->kv_head, key0) : task->allow + r * FEATURE_TILE;
    for (size_t j = 0; j < to && seen != NULL; j++)
        w[j] = seen[j] ? w[j] : 0;
    if (to < columns)
        memset(w + to, 0, (columns - to) * sizeof(REAL));
}

/* Computes a panel of w from column on, for the groups that reach it; those side by side are one product. */
static void weigh_panel(struct feature_task *task, size_t column, const REAL *phi)
{
    const struct attn_feature_job *job = task->job;
    for (size_t from = 0, to; from < GROUPS_OF_TILE; from = to) {
        for (to = from; to < GROUPS_OF_TILE && task->reach[to] > column; to++) {
        }
        multiply_features(task, &(struct feature_product){.a = task->phi_q + from * REGISTER_ROWS * job->phi_stride,
                                                          .a_stride = job->phi_stride,
                                                          .b = phi + column,
                                                          .b_stride = FEATURE_TILE,
                                                          .to = task->w + from * REGISTER_ROWS * WEIGHT_STRIDE + column,
                                                          .to_stride = WEIGHT_STRIDE,
                                                          .rows = (to - from) * REGISTER_ROWS,
                                                          .inner = job->m,
                                                          .columns = attn_min(PANEL, FEATURE_TILE - column)});
        to = attn_max(to, from + 1);
    }
}

/* Computes w for keys that begin at key0: in each group of rows for reach of them; 0: all are hidden. */
static void weigh_tile(struct feature_task *task, const struct feature_rows *tile, size_t key0)
{
    const size_t keys = keys_of_tile(task, tile->kv_head, key0);
    for (size_t group = 0; group < GROUPS_OF_TILE; group++)
        task->reach[group] =
            group * REGISTER_ROWS < tile->rows ? reach_of_group(task, tile, group * REGISTER_ROWS, key0, keys) : 0;
    for (size_t column = 0; column < keys; column += PANEL)
        weigh_panel(task, column, kept_phi(task, tile->kv_head, key0 / FEATURE_TILE));
    for (size_t r = 0; r < TILE_ROWS; r++)
        mask_weights(task, tile, r, key0, keys, attn_round_up(task->reach[r / REGISTER_ROWS], LANES));
}

/* Values that are not finite are packed as 0, because 0 times them is NaN. They are added to the rows that see them. */
static void add_non_finite(struct feature_task *task, const struct feature_rows *tile, size_t group, size_t key0)
{
    const struct attn_heads_job *heads = task->heads;
    const struct head_rows head = rows_of_head(&heads->v, tile->b, tile->kv_head % heads->kv_heads);
    const size_t columns = task->job->columns;
    if (memchr(task->is_non_finite, true, FEATURE_TILE) == NULL)
        return;
    for (size_t j = 0; j < FEATURE_TILE; j++) {
        if (!task->is_non_finite[j])
            continue;
        const REAL *v = wide_row(&head, key0 + j, heads->d_v, task->gathered);
        for (size_t r = group; r < group + REGISTER_ROWS; r++)
            for (size_t c = 0; row_sees(task, r, key0, j) && c < heads->d_v; c++)
                task->o[r * columns + c] += task->w[r * WEIGHT_STRIDE + j] * v[c];
    }
}

/* o += w V and l += w 1, for a group of rows and the keys of a tile. */
static void add_group(struct feature_task *task, const struct feature_rows *tile, size_t group, size_t key0)
{
    const size_t columns = task->job->columns, reach = task->reach[group / REGISTER_ROWS];
    if (reach == 0)
        return;
    if (task->packed != key0)
        pack_feature_values(task, tile->kv_head, key0, keys_of_tile(task, tile->kv_head, key0), true);
    task->packed = key0;
    REAL *o = task->o + group * columns;
    multiply_features(task, &(struct feature_product){.a = task->w + group * WEIGHT_STRIDE,
                                                      .a_stride = WEIGHT_STRIDE,
                                                      .b = task->v_pack,
                                                      .b_stride = columns,
                                                      .add = tile->is_compensated ? NULL : o,
                                                      .to = tile->is_compensated ? task->part : o,
                                                      .to_stride = columns,
                                                      .rows = REGISTER_ROWS,
                                                      .inner = reach,
                                                      .columns = columns});
    if (tile->is_compensated)
        add_row_compensated(o, task->o_low + group * columns, 1, task->part, REGISTER_ROWS * columns);
    for (size_t r = group; r < group + REGISTER_ROWS; r++) {
        const REAL sum = dot_features(task->w + r * WEIGHT_STRIDE, NULL, attn_round_up(reach, LANES));
        if (tile->is_compensated)
            add_compensated(&task->l[r], &task->l_low[r], 1, sum);
        else
            task->l[r] += sum;
    }
    add_non_finite(task, tile, group, key0);
}

static void add_pairs(struct feature_task *task, const struct feature_rows *tile)
{
    task->packed = SIZE_MAX;
    for (size_t key0 = tile->from; key0 < tile->to && !features_stop(task, STEPS_OF_LOOKUP); key0 += FEATURE_TILE) {
        weigh_tile(task, tile, key0);
        for (size_t group = 0; group < tile->rows; group += REGISTER_ROWS)
            add_group(task, tile, group, key0);
    }
}

static REAL divisor_of(const struct feature_task *task, size_t r)
{
    const attn_mechanism *mechanism = task->job->mechanism;
    if (mechanism->is_unnormalised || !task->sees[r])
        return 1;
    const REAL sum = sum_and_low(splat(task->l[r]), splat(task->l_low[r]))[0];
    return mechanism->type == ATTN_LINEAR ? sum + (REAL)mechanism->eps : sum;
}

static void write_rows(struct feature_task *task, const struct feature_rows *tile)
{
    const struct attn_heads_job *heads = task->heads;
    const size_t columns = task->job->columns;
    for (size_t r = 0; r < tile->rows; r++) {
        const size_t i = tile->first + r;
        REAL *o = task->o + r * columns;
        REAL *to = (REAL *)(uintptr_t)heads->context.data + attn_operand_at(&heads->context, tile->b, tile->h, i);
        REAL *quotient = heads->d_v == columns ? to : o;
        const vec divisor = splat(divisor_of(task, r));
        for (size_t c = 0; c < columns; c += LANES) {
            const vec sum = load(o + c);
            store(quotient + c,
                  (tile->is_compensated ? sum_and_low(sum, load(task->o_low + r * columns + c)) : sum) / divisor);
        }
        if (!task->sees[r])
            memset(to, 0, heads->d_v * sizeof(REAL));
        else if (quotient == o)
            memcpy(to, o, heads->d_v * sizeof(REAL));
        heads->row_is_empty[(tile->b * heads->heads + tile->h) * heads->q_len + i] = !task->sees[r];
    }
}

/* Row i of a map; NULL where it is not kept. */
static REAL *map_row_of(const struct attn_heads_job *heads, int which, const struct feature_rows *tile, size_t i)
{
    const struct attn_map *map = &heads->map[which];
    const size_t head = map->all_heads || heads->head_slot == NULL ? tile->h : heads->head_slot[tile->h];
    const size_t kept_heads = map->all_heads ? heads->heads : heads->kept_heads;
    const size_t query = heads->query_slot == NULL ? i : heads->query_slot[i];
    if (map->data == NULL || head == SIZE_MAX || query == SIZE_MAX)
        return NULL;
    return (REAL *)map->data + ((tile->b * kept_heads + head) * heads->kept_queries + query) * heads->kept_keys;
}

/* Writes the weights of the rows of a group for the keys of a tile, divided, into a map. */
static void keep_row_weights(const struct feature_task *task, int which, const struct feature_rows *tile, size_t group,
                             size_t key0, size_t keys)
{
    const struct attn_heads_job *heads = task->heads;
    for (size_t r = group; r < attn_min(group + REGISTER_ROWS, tile->rows); r++) {
        REAL *row = map_row_of(heads, which, tile, tile->first + r);
        const REAL *w = task->w + r * WEIGHT_STRIDE, divisor = divisor_of(task, r);
        for (size_t j = 0; row != NULL && j < keys; j++) {
            const size_t key = heads->key_slot == NULL ? key0 + j : heads->key_slot[key0 + j];
            if (key != SIZE_MAX)
                row[key] = w[j] / divisor;
        }
    }
}

static void keep_maps(struct feature_task *task, const struct feature_rows *tile)
{
    static const int maps[] = {MAP_ATTENTION, MAP_MEAN_SOURCE};
    for (size_t r = 0; r < tile->rows; r++)
        for (size_t n = 0; n < 2; n++) {
            REAL *row = map_row_of(task->heads, maps[n], tile, tile->first + r);
            if (row != NULL)
                memset(row, 0, task->heads->kept_keys * sizeof(REAL));
        }
    const size_t first = task->job->is_running ? 0 : tile->from;
    for (size_t key0 = first; key0 < tile->to && !features_stop(task, STEPS_OF_LOOKUP); key0 += FEATURE_TILE) {
        weigh_tile(task, tile, key0);
        for (size_t group = 0; group < tile->rows; group += REGISTER_ROWS)
            for (size_t n = 0; n < 2; n++)
                keep_row_weights(task, maps[n], tile, group, key0, task->reach[group / REGISTER_ROWS]);
    }
}

/* Rows of the kernel's type that follow each other. */
static struct rows_ahead own_rows(const REAL *data, size_t stride, size_t count, size_t features)
{
    return (struct rows_ahead){{data, (ptrdiff_t)stride, KERNEL_TYPE}, count, features};
}

/* What the tile writes, and what the next one reads. */
static void look_ahead_of(struct feature_task *task, const struct feature_rows *tile)
{
    const struct attn_feature_job *job = task->job;
    const struct attn_heads_job *heads = task->heads;
    const struct attn_operand *q = &heads->q, *context = &heads->context;
    const size_t next = tile->first + TILE_ROWS, key0 = tile->from + FEATURE_TILE;
    task->ahead[0] = own_rows((const REAL *)context->data + attn_operand_at(context, tile->b, tile->h, tile->first),
                              (size_t)context->row_stride, tile->rows, heads->d_v);
    if (next < heads->q_len)
        task->ahead[1] = own_rows((const REAL *)q->data + attn_operand_at(q, tile->b, tile->h, next),
                                  (size_t)q->row_stride, attn_min(heads->q_len - next, TILE_ROWS), heads->d_k);
    if (!job->is_running || tile->from >= tile->to || key0 >= attn_min(job->item[tile->b].end, job->end_key))
        return;
    task->ahead[2] = own_rows(sums_of(job, tile->kv_head, tile->blocks), job->columns, task->m_rows + 1, job->columns);
    task->ahead[3] = own_rows(kept_phi(task, tile->kv_head, key0 / FEATURE_TILE), FEATURE_TILE, job->m, FEATURE_TILE);
    task->ahead[4] = rows_before(&heads->v, tile->b, tile->kv_head % heads->kv_heads, key0, heads->kv_len, heads->d_v);
}

static void attend_features(const struct attn_feature_job *job, size_t index, void *scratch)
{
    struct feature_task task;
    const struct attn_heads_job *heads = job->heads;
    lay_out_features(job, &task, scratch);
    const size_t across = attn_ceil_div(job->end_query - job->first_query, FEATURE_QUERIES);
    const size_t group = heads->heads / heads->kv_heads;
    const size_t head = job->first_head * group + index / across;
    const size_t first = job->first_query + index % across * FEATURE_QUERIES;
    const size_t end = attn_min(first + FEATURE_QUERIES, job->end_query);
    struct feature_rows tile = {.b = head / heads->heads, .h = head % heads->heads};
    tile.kv_head = tile.b * heads->kv_heads + tile.h / group;
    for (tile.first = first; tile.first < end && !features_stop(&task, TILE_ROWS * job->m * STEPS_OF_MAP);
         tile.first += TILE_ROWS) {
        tile.rows = attn_min(end - tile.first, TILE_ROWS);
        tile.to = 0;
        find_spans(&task, &tile);
        map_queries(&task, &tile);
        look_ahead_of(&task, &tile);
        take_sums(&task, &tile);
        add_pairs(&task, &tile);
        write_rows(&task, &tile);
        if (heads->map[MAP_ATTENTION].data != NULL || heads->map[MAP_MEAN_SOURCE].data != NULL)
            keep_maps(&task, &tile);
    }
}

#endif
