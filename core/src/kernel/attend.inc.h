/*
 * attend.inc.h: one task of attention: query rows of one head, or in decoding of several, against their keys. Part of a
 * kernel. For each tile of TILE_ROWS queries by TILE_KEYS keys:
 *
 *     s = scale q k^T     register tiles over packed keys; then the terms of relative positions
 *     x = s               after cap, bias, mask: row by row, in place
 *     m' = max(m, max x)  the running maximum of the row
 *     p = exp(x - m')     in place of x; l = l e^(m - m') + sum p
 *     o = o e^(m - m') + p v          p v as a sum of sums: RUN_KEYS
 *
 * and at the end o / l: the online softmax of Milakov and Gimelshein (2018), tiled as in Dao et al., "FlashAttention"
 * (2022). The positions of keys and features alone fix the order of every sum. So no bit depends on which rows share a
 * tile, on the thread, on the hidden keys that are skipped, or on the maps that are kept.
 */
#ifndef ATTN_KERNEL_ATTEND_INC_H
#define ATTN_KERNEL_ATTEND_INC_H

#if REAL_BITS == 32
#include "kernel/bf16.inc.h"
#endif
#include "kernel/decode.inc.h"
#include "kernel/matmul.inc.h"
#include "kernel/softmax.inc.h"

/* ---- a tile, and the task ---- */

static bool job_is_cancelled(const struct attn_heads_job *job)
{
    return job->is_cancelled != NULL && job->is_cancelled(job->cancel_context);
}

/* x += scale times what relative positions add to the scores of row r. */
static void add_relative_row(struct task *task, const struct tile *tile, size_t r, REAL scale)
{
    const struct attn_heads_job *job = task->job;
    const struct attn_relative_scores *own = &job->relative;
    const struct position position = position_of(task, tile->row0 + r);
    const size_t head = task->b * job->heads + position.h, end = attn_min(tile->to, tile->keys), width = own->width;
    const uint32_t *column = own->columns + task->b * own->item_stride + job->q_len - 1 - position.i + tile->key0;
    REAL *x = task->s + r * task->s_stride;
    if (own->of_queries != NULL) {
        const REAL *row = (const REAL *)own->of_queries + (head * job->q_len + position.i) * width;
        for (size_t c = tile->from; c < end; c++)
            x[c] += scale * row[column[c]];
    }
    if (own->of_keys != NULL) {
        const REAL *rows = (const REAL *)own->of_keys + (head * job->kv_len + tile->key0) * width;
        for (size_t c = tile->from; c < end; c++)
            x[c] += scale * rows[c * width + column[c]];
    }
}

static void multiply_by_keys(struct task *task, const struct tile *tile, REAL scale)
{
    if (is_decode(task->job)) {
        decode_scores(task, tile, scale);
        return;
    }
#if REAL_BITS == 32
    if (has_bf16_products(task->job)) {
        pack_bf16_block(task, tile);
        score_bf16_tile(task, tile, scale);
        return;
    }
#endif
    pack_block(task, tile);
    score_tile(task, tile, scale);
}

static void compute_scores(struct task *task, const struct tile *tile, REAL scale)
{
    multiply_by_keys(task, tile, scale);
    for (size_t r = 0; r < tile->rows && task->job->relative.columns != NULL; r++)
        add_relative_row(task, tile, r, scale);
}

static void pack_queries(struct task *task, const struct tile *tile)
{
#if REAL_BITS == 32
    if (has_bf16_products(task->job)) {
        pack_bf16_queries(task, tile);
        return;
    }
#endif
    pack_last_queries(task, tile);
}

/* o = alpha o + p v for all rows of the tile. */
static void compute_context(struct task *task, const struct tile *tile)
{
    if (is_decode(task->job)) {
        decode_context(task, tile);
        return;
    }
#if REAL_BITS == 32
    if (has_bf16_products(task->job)) {
        context_bf16_tile(task, tile);
        return;
    }
#endif
    context_tile(task, tile);
}

static bool wants_scores(const struct attn_heads_job *job)
{
    return job->map[MAP_SCORES].data != NULL || job->map[MAP_SCALED].data != NULL;
}

/* Keeps scores and scaled of the whole tile, with hidden keys. They are computed apart: no other result changes. */
static void keep_scores(struct task *task, const struct tile *tile)
{
    struct tile whole = *tile;
    whole.from = 0;
    whole.to = attn_round_up(tile->keys, PANEL);
    memset(task->panel_is_seen, 1, (tile->rows + REGISTER_ROWS - 1) / REGISTER_ROWS * PANELS);
    compute_scores(task, &whole, 1);
    for (size_t r = 0; r < tile->rows; r++)
        keep_seen_row(task, &whole, MAP_SCORES, r, task->s + r * task->s_stride);
    compute_scores(task, &whole, (REAL)task->job->scale);
    for (size_t r = 0; r < tile->rows; r++) {
        REAL *x = task->s + r * task->s_stride;
        cap_row(task, x, whole.to);
        keep_seen_row(task, &whole, MAP_SCALED, r, x);
    }
}

static void attend_tile(struct task *task, struct tile tile, REAL *max_abs)
{
    if (wants_scores(task->job))
        keep_scores(task, &tile);
    if (!find_allowed(task, &tile)) {
        keep_hidden_tile(task, &tile);
        return;
    }
    compute_scores(task, &tile, (REAL)task->job->scale);
    const size_t group_rows = is_decode(task->job) ? DECODE_ROWS : REGISTER_ROWS;
    for (size_t r = 0; r < tile.rows; r += group_rows) {
        const struct tile part = tile_of_row(task, &tile, r);
        softmax_group(task, &part, r, attn_min(tile.rows - r, group_rows), max_abs);
    }
    compute_context(task, &tile);
    add_non_finite_values(task, &tile);
}

/* Writes a block of held weights of a row to a map, times gain. They are 0 if the row sees no key of the block. */
static void write_held_block(const struct task *task, size_t row, attn_span block, REAL gain, REAL *to)
{
    const REAL *p = task->rows_of_s + row % TILE_ROWS * task->s_stride;
    size_t j = block.from;
    if (task->block_max[row * task->key_blocks + block.from / TILE_KEYS] == -(REAL)INFINITY) {
        memset(to + j, 0, (block.to - j) * sizeof(REAL));
        return;
    }
    for (; j + LANES <= block.to && task->streams_maps; j += LANES)
        stream(to + j, load(p + j) * gain);
    for (; j < block.to; j++)
        to[j] = p[j] * gain;
}

/* Normalises the kept p of a row: p e^(block maximum - row maximum) / l. */
static void normalise_map_row(const struct task *task, int which, size_t row, REAL m, REAL l)
{
    const struct attn_heads_job *job = task->job;
    const struct position position = position_of(task, row);
    REAL *x = map_row(task, which, position);
    if (x == NULL)
        return;
    for (size_t block = 0; block < task->key_blocks; block++) {
        REAL gain = exp_scalar(task->block_max[row * task->key_blocks + block] - m) / l;
        size_t from = block * TILE_KEYS, to = from + TILE_KEYS < job->kv_len ? from + TILE_KEYS : job->kv_len;
        bool is_plain = gain - gain == 0; /* finite: the zeros of hidden keys stay 0 */
        if (task->holds_rows)
            write_held_block(task, row, (attn_span){from, to}, is_plain ? gain : 1, x);
        else if (job->key_slot == NULL && is_plain)
            for (size_t j = from; j < to; j++)
                x[j] *= gain;
        for (size_t j = from; j < to && !(is_plain && job->key_slot == NULL); j++) {
            size_t slot = job->key_slot == NULL ? j : job->key_slot[j];
            if (slot != SIZE_MAX &&
                (is_plain || attn_mask_allows(job->mask, job->compute, task->b, position.h, position.i, j)))
                x[slot] *= gain;
        }
    }
}

/* What normalises the weights of a row: p = alpha e^(x - m) / sum = e^(x - top) / sum. */
struct row_total {
    REAL top, alpha, sum, sink; /* sink: its term of the sum, 0 without a sink */
    REAL logit;
};

/* A sink is one more term of the sum. The sum is rescaled to the larger of its logit and the maximum of the keys. */
static struct row_total total_of_row(const struct task *task, size_t row)
{
    const attn_tensor *sinks = task->job->options->sinks;
    const REAL m = task->m[row], l = task->l[row] + task->l_low[row];
    if (sinks == NULL)
        return (struct row_total){.top = m == -(REAL)INFINITY ? 0 : m, .alpha = 1, .sum = l};
    const REAL logit = ((const REAL *)sinks->data)[(ptrdiff_t)position_of(task, row).h * sinks->stride[0]];
    struct row_total end = {.top = m > logit ? m : logit, .logit = logit};
    end.alpha = m == end.top ? 1 : exp_scalar(m - end.top);
    end.sink = exp_scalar(logit - end.top);
    end.sum = end.alpha * l + end.sink;
    return end;
}

/* -sum p ln p = ln sum - (sum of (x - top) e^(x - top)) / sum, over the keys and the sink. */
static REAL entropy_of(const struct task *task, size_t row, const struct row_total *end)
{
    REAL moment = task->entropy_sum[row];
    if (task->job->options->sinks != NULL) {
        const REAL moved = end->alpha == 1 ? 0 : (task->m[row] - end->top) * task->l[row];
        moment = (end->alpha == 0 ? 0 : end->alpha * (moment + moved)) + (end->logit - end->top) * end->sink;
    }
    return (REAL)log((double)end->sum) - moment / end->sum;
}

/* Writes the numbers of a row. Without keys and without a sink the sum is 0, and no logarithm is taken. */
static void write_row_numbers(const struct task *task, size_t row, size_t at, bool sees, const struct row_total *end)
{
    const struct attn_heads_job *job = task->job;
    const bool has_sum = sees || job->options->sinks != NULL;
    const REAL m = task->m[row] == -(REAL)INFINITY ? 0 : task->m[row], l = task->l[row] + task->l_low[row];
    if (job->lse != NULL)
        ((REAL *)job->lse)[at] = has_sum ? end->top + (REAL)log((double)end->sum) : -(REAL)INFINITY;
    if (job->lse_keys != NULL)
        ((REAL *)job->lse_keys)[at] = sees ? m + (REAL)log((double)l) : -(REAL)INFINITY;
    if (job->entropy != NULL)
        ((REAL *)job->entropy)[at] = has_sum ? entropy_of(task, row, end) : 0;
    if (job->sink != NULL)
        ((REAL *)job->sink)[at] = end->sink / end->sum;
}

/* ---- rows whose sums overflow ---- */

/*
 * Computes the final weights of one row of a tile, halved: e^(x - top) / sum / 2. Halved weights times finite values do
 * not overflow. Returns false if the row sees no key of the tile.
 */
static bool recompute_weights(struct task *task, struct tile *tile, const struct row_total *end)
{
    const attn_span reach = reach_of_rows(task, tile, 0, 1);
    tile->from = reach.from;
    tile->to = reach.to;
    if (reach.from >= reach.to || (attn_mask_has_lookup(task->job->mask) && !allow_row(task, tile, 0)))
        return false;
    const size_t n = tile->to - tile->from, capped = task->capped, saturated = task->saturated;
    REAL *x = task->s + tile->from, unused = 0, low;
    decode_scores(task, tile, (REAL)task->job->scale);
    if (task->job->relative.columns != NULL)
        add_relative_row(task, tile, 0, (REAL)task->job->scale);
    cap_row(task, x, n);
    mask_and_measure(task, tile, 0, &low, &unused);
    task->capped = capped; /* the row was counted before */
    task->saturated = saturated;
    exponentiate(task->s, tile->from, tile->to, end->top, false);
    for (size_t c = 0; c < n; c++)
        x[c] *= (REAL)0.5 / end->sum;
    if (task->job->dropout > 0)
        drop_row(task, tile, 0, task->s);
    return true;
}

/* Computes half of o of the row. Values that are not finite are hidden from the row, and are left out. */
static void recompute_row(struct task *task, size_t row, const struct row_total *end)
{
    const struct attn_heads_job *job = task->job;
    const size_t columns = task->v_columns, at = row * columns;
    struct tile tile = {.row0 = row, .rows = 1};
    uint8_t non_finite[TILE_KEYS];
    task->span[row] = attn_mask_span(job->mask, task->b, position_of(task, row).i);
    memset(task->o + at, 0, columns * sizeof(REAL));
    memset(task->o_low + at, 0, columns * sizeof(REAL));
    memset(task->part, 0, columns * sizeof(REAL));
    for (; tile.key0 < job->kv_len && !job_is_cancelled(job); tile.key0 += TILE_KEYS) {
        tile.keys = attn_min(job->kv_len - tile.key0, TILE_KEYS);
        if (!recompute_weights(task, &tile, end))
            continue;
        for (size_t from = tile.from, to; from < attn_min(tile.to, tile.keys); from = to) {
            to = attn_min(attn_min(tile.to, tile.keys), from / RUN_KEYS * RUN_KEYS + RUN_KEYS);
            find_non_finite_values(task, &tile, from, to, non_finite);
            decode_context_run(task, &tile, 0, from, to, non_finite, 1);
            add_row_compensated(task->o + at, task->o_low + at, 1, task->part, columns);
        }
    }
}

/*
 * The weights are normalised after the sum, so the sum can overflow although the mean is finite. Such a row is computed
 * again with normalised weights, and replaces the numbers of to that are not finite. A mean cannot exceed the largest
 * value, so a result that rounds beyond the largest number is clamped to it.
 */
static void repair_overflow(struct task *task, size_t row, const struct row_total *end, REAL *to)
{
    const REAL *o = task->o + row * task->v_columns, *o_low = task->o_low + row * task->v_columns;
    const REAL half_of_largest = REAL_LARGEST / 2;
    recompute_row(task, row, end);
    for (size_t d = 0; d < task->job->d_v; d++) {
        REAL half = o[d] + o_low[d];
        if (task->job->dropout == 0) {
            half = half > half_of_largest ? half_of_largest : half;
            half = half < -half_of_largest ? -half_of_largest : half;
        }
        if (to[d] - to[d] != 0)
            to[d] = 2 * half;
    }
}

/* to = alpha (o + o_low) / sum; o extends to whole vectors. Returns whether all of to is finite. */
static bool divide_row(const REAL *o, const REAL *o_low, const struct row_total *end, size_t d_v, REAL *to)
{
    const vec zero = {0};
    vec check = {0}; /* 0, or NaN if a number is not finite */
    for (size_t d = 0; d < d_v; d += LANES) {
        vec low = load(o_low + d);
        low = blend(low * zero == zero, low, zero); /* low is NaN where o is infinite */
        const vec x = end->alpha * (load(o + d) + low) / end->sum;
        check += x * zero;
        if (d_v - d >= LANES)
            store(to + d, x);
        else
            memcpy(to + d, &x, (d_v - d) * sizeof(REAL));
    }
    return sum_lanes(check) == 0;
}

static void finish_maps(const struct task *task, size_t row, const struct row_total *end)
{
    if (task->block_max == NULL || !(task->holds_rows || task->row_sees_key[row]))
        return;
    normalise_map_row(task, MAP_ATTENTION, row, end->top, end->sum);
    normalise_map_row(task, MAP_MEAN_SOURCE, row, end->top, end->sum);
    normalise_map_row(task, MAP_DROPPED, row, end->top, end->sum);
}

static REAL *context_row(const struct task *task, size_t row)
{
    const struct attn_operand *context = &task->job->context;
    const struct position position = position_of(task, row);
    return (REAL *)(uintptr_t)head_of(context, task->b, position.h) + (ptrdiff_t)position.i * context->row_stride;
}

static void finish_row(struct task *task, size_t row)
{
    const struct attn_heads_job *job = task->job;
    const struct position position = position_of(task, row);
    const size_t at = (task->b * job->heads + position.h) * job->q_len + position.i;
    const bool sees = task->row_sees_key[row] != 0;
    const struct row_total end = total_of_row(task, row);
    const REAL *o = task->o + row * task->v_columns, *o_low = task->o_low + row * task->v_columns;
    REAL *to = context_row(task, row);
    finish_maps(task, row, &end); /* before the row is computed again, which overwrites held weights */
    if (!sees)
        memset(to, 0, job->d_v * sizeof(REAL));
    else if (!divide_row(o, o_low, &end, job->d_v, to) && !(task->row_sees_key[row] & SEES_NON_FINITE) &&
             end.sum - end.sum == 0)
        repair_overflow(task, row, &end, to);
    job->row_is_empty[at] = !sees;
    write_row_numbers(task, row, at, sees, &end);
}

/* Prefetches the queries of a tile of rows, and before their last keys the results. */
static void prefetch_tile(const struct task *task, const struct tile *tile, bool has_last_keys)
{
    const struct attn_heads_job *job = task->job;
    for (size_t r = 0; r < tile->rows; r++)
        prefetch_row(query_row(task, tile, r), job->d_k * sizeof(REAL));
    for (size_t r = 0; r < tile->rows && has_last_keys; r++)
        for (size_t d = 0; d < job->d_v; d += ATTN_ALIGNMENT / sizeof(REAL))
            __builtin_prefetch(context_row(task, tile->row0 + r) + d, 1);
}

/* One tile of rows against keys first_key … end_key, which fit the pack unless this is decoding. */
static void attend_rows(struct task *task, size_t row0, size_t first_key, size_t end_key, REAL *max_abs)
{
    const struct attn_heads_job *job = task->job;
    struct tile tile = {.row0 = row0, .rows = attn_min(task->rows - row0, TILE_ROWS)};
    if (!is_decode(job)) {
        prefetch_tile(task, &tile, end_key == job->kv_len);
        pack_queries(task, &tile);
    }
    for (size_t key0 = first_key; key0 < end_key; key0 += TILE_KEYS) {
        if (is_decode(job) && job_is_cancelled(job))
            return;
        tile.key0 = key0;
        tile.keys = attn_min(end_key - key0, TILE_KEYS);
        task->s = task->rows_of_s + (task->holds_rows ? key0 : 0);
        attend_tile(task, tile, max_abs);
    }
}

static void finish_rows(struct task *task, size_t from, size_t to)
{
    for (size_t row = from; row < to; row++)
        finish_row(task, row);
}

/* All rows of a task against all keys, as many keys at a time as the pack holds. */
static void attend_chunk(struct task *task, REAL *max_abs)
{
    const struct attn_heads_job *job = task->job;
    const bool is_one_pack = job->kv_len <= job->pack_keys;
    for (size_t first = 0; first < job->kv_len; first += job->pack_keys) {
        task->pack_first = first;
        memset(task->block_is_packed, 0, job->pack_keys / TILE_KEYS);
        for (size_t row0 = 0; row0 < task->rows; row0 += TILE_ROWS) {
            if (job_is_cancelled(job))
                return;
            attend_rows(task, row0, first, attn_min(first + job->pack_keys, job->kv_len), max_abs);
            if (is_one_pack) /* now, while the rows of the maps are in the cache */
                finish_rows(task, row0, attn_min(row0 + TILE_ROWS, task->rows));
        }
    }
    if (!is_one_pack || job->kv_len == 0)
        finish_rows(task, 0, task->rows);
}

static inline void attend(const struct attn_heads_job *job, size_t t, void *scratch)
{
    struct task task = {0};
    REAL max_abs = 0;
    begin_task(&task, job, t, scratch);
    if (!is_decode(job))
        attend_chunk(&task, &max_abs);
    else
        attend_rows(&task, 0, task.first_key, task.end_key, &max_abs);
    drain_streams();
    job->task_max_abs[t] = (double)max_abs;
    job->task_capped[t] = task.capped;
    job->task_saturated[t] = task.saturated;
}

/* Adds another split of the same row: both are rescaled to the larger maximum. */
static void merge_row(struct task *to, const struct task *from, size_t row)
{
    if (!from->row_sees_key[row])
        return;
    const REAL before = to->m[row], other = from->m[row], m = before > other ? before : other;
    const REAL shift = m == -(REAL)INFINITY ? 0 : m;
    const REAL alpha = m == before ? 1 : exp_scalar(before - shift), beta = exp_scalar(other - shift);
    const REAL moved = alpha == 0 || m == before ? 0 : (before - shift) * to->l[row];
    const REAL other_moved = beta == 0 || m == other ? 0 : (other - shift) * from->l[row];
    to->entropy_sum[row] = alpha * (to->entropy_sum[row] + moved) + beta * (from->entropy_sum[row] + other_moved);
    add_compensated(&to->l[row], &to->l_low[row], alpha, beta * from->l[row]);
    to->l_low[row] += beta * from->l_low[row];
    to->m[row] = m;
    to->row_sees_key[row] |= from->row_sees_key[row];
    const size_t at = row * to->v_columns;
    for (size_t d = at; d < at + to->v_columns; d++) {
        add_compensated(&to->o[d], &to->o_low[d], alpha, beta * from->o[d]);
        to->o_low[d] += beta * from->o_low[d];
    }
}

/* Decoding: merges the splits of head t in order. Its rows are among those of the heads of its task. */
static inline void merge(const struct attn_heads_job *job, size_t t, void *scratch)
{
    struct task task = {0}, part = {0};
    lay_out(job, &task, scratch);
    const size_t together = job->heads_together, first = t % together * job->q_len, end = first + job->q_len;
    find_partials(job, &task, t / together, 0);
    find_head(job, &task, t / together * together);
    for (size_t split = 1; split < job->splits; split++) {
        find_partials(job, &part, t / together, split);
        for (size_t row = first; row < end; row++)
            merge_row(&task, &part, row);
    }
    finish_rows(&task, first, end);
}

#endif
