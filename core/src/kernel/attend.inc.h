/*
 * attend.inc.h: one task of attention: some query rows of one head against all of its keys, tile by tile.
 *
 * Included by instantiate.inc.h once for float and once for double. For each tile of TILE_ROWS queries by TILE_KEYS keys:
 *
 *     s = q k^T           register tiles over packed operands
 *     x = scale s         then softcap, bias, mask: row by row, in place
 *     m' = max(m, max x)  the running maximum of the row
 *     p = exp(x - m')     in place of x; l = l e^(m - m') + sum p
 *     o = o e^(m - m') + p v
 *
 * and at the end o / l: the online softmax of Milakov and Gimelshein (2018), tiled as in Dao et al., "FlashAttention"
 * (2022). Every number is added in an order that the positions of keys and features fix: which rows share a tile, which
 * thread runs it, what is skipped because nobody attends to it and what is kept for the caller change no bit.
 */
#include "kernel/vector.inc.h"
#include "kernel/task.inc.h"
#include "kernel/products.inc.h"
#include "kernel/rows.inc.h"

/* ---- a tile, and the task ---- */

static bool FN(keeps_scores)(const struct attn_heads_job *job)
{
    return job->map[MAP_SCORES].data != NULL || job->map[MAP_SCALED].data != NULL;
}

/* scores and scaled of the whole tile, hidden columns too: computed apart, so that asking for them changes nothing else. */
static void FN(keep_scores)(task_t *task, const tile_t *tile)
{
    tile_t whole = *tile;
    whole.from = 0;
    whole.to = FN(round_up)(tile->keys, PANEL);
    FN(pack_block)(task, &whole);
    FN(score_tile)(task, &whole);
    for (size_t r = 0; r < tile->rows; r++) {
        REAL *x = task->s + r * TILE_STRIDE;
        FN(keep_seen_row)(task, &whole, MAP_SCORES, r, x);
        FN(scale_row)(x, whole.to, (REAL)task->job->scale, (REAL)task->job->softcap);
        FN(keep_seen_row)(task, &whole, MAP_SCALED, r, x);
    }
}

static void FN(attend_tile)(task_t *task, tile_t tile, REAL *max_abs)
{
    if (FN(keeps_scores)(task->job))
        FN(keep_scores)(task, &tile);
    if (!FN(any_allowed)(task, &tile)) {
        FN(keep_hidden_tile)(task, &tile);
        return;
    }
    FN(pack_block)(task, &tile);
    FN(score_tile)(task, &tile);
    for (size_t r = 0; r < FN(round_up)(tile.rows, REGISTER_ROWS); r++)
        task->alpha[r] = 1;
    for (size_t r = 0; r < tile.rows; r++) {
        FN(scale_row)(task->s + r * TILE_STRIDE + tile.from, tile.to - tile.from, (REAL)task->job->scale,
                      (REAL)task->job->softcap);
        FN(softmax_row)(task, &tile, r, max_abs);
    }
    FN(context_tile)(task, &tile);
    FN(add_odd_values)(task, &tile);
}

/* Turns the kept p of query i into weights: p e^(block maximum - row maximum) / l. */
static void FN(finish_map_row)(const task_t *task, int which, size_t row, REAL m, REAL l)
{
    const struct attn_heads_job *job = task->job;
    const size_t i = task->first_row + row;
    REAL *x = FN(map_row)(task, which, i);
    if (x == NULL)
        return;
    for (size_t block = 0; block < task->key_blocks; block++) {
        REAL gain = FN(exp_one)(task->block_max[row * task->key_blocks + block] - m) / l;
        size_t from = block * TILE_KEYS, to = from + TILE_KEYS < job->kv_len ? from + TILE_KEYS : job->kv_len;
        bool is_plain = gain - gain == 0; /* finite: nothing can spoil the zeros of hidden keys */
        if (job->key_slot == NULL && is_plain)
            for (size_t j = from; j < to; j++)
                x[j] *= gain;
        else
            for (size_t j = from; j < to; j++) {
                size_t slot = job->key_slot == NULL ? j : job->key_slot[j];
                if (slot != SIZE_MAX &&
                    (is_plain || attn_mask_allows(job->mask, job->compute, task->b, task->h, i, j)))
                    x[slot] *= gain;
            }
    }
}

static void FN(finish_row)(const task_t *task, size_t row)
{
    const struct attn_heads_job *job = task->job;
    const size_t i = task->first_row + row, at = (task->b * job->heads + task->h) * job->q_len + i;
    const bool sees = task->row_sees_key[row] != 0;
    const REAL m = task->m[row] == -(REAL)INFINITY ? 0 : task->m[row], l = task->l[row];
    const REAL *o = task->o + row * task->v_columns;
    REAL *to = (REAL *)(uintptr_t)FN(head)(&job->context, task->b, task->h) + (ptrdiff_t)i * job->context.row_stride;
    for (size_t d = 0; d < job->d_v; d++)
        to[d] = sees ? o[d] / l : 0;
    job->row_is_empty[at] = !sees;
    if (job->lse != NULL)
        ((REAL *)job->lse)[at] = sees ? m + (REAL)log((double)l) : -(REAL)INFINITY;
    if (job->entropy != NULL)
        ((REAL *)job->entropy)[at] = sees ? (REAL)log((double)l) - task->entropy_sum[row] / l : 0;
    if (sees && task->block_max != NULL) {
        FN(finish_map_row)(task, MAP_ATTENTION, row, m, l);
        FN(finish_map_row)(task, MAP_MEAN_SOURCE, row, m, l);
        FN(finish_map_row)(task, MAP_DROPPED, row, m, l);
    }
}

/* One tile of rows against the keys of the pack. */
static void FN(attend_rows)(task_t *task, size_t row0, REAL *max_abs)
{
    const struct attn_heads_job *job = task->job;
    size_t rows = task->rows - row0 < TILE_ROWS ? task->rows - row0 : TILE_ROWS;
    tile_t tile = {.row0 = row0, .rows = rows};
    FN(pack_queries)(task, &tile);
    for (size_t r = 0; r < rows; r++)
        task->span[r] = attn_mask_span(job->mask, task->b, task->first_row + row0 + r);
    size_t end = task->pack_first + job->pack_keys < job->kv_len ? task->pack_first + job->pack_keys : job->kv_len;
    for (size_t key0 = task->pack_first; key0 < end; key0 += TILE_KEYS) {
        tile.key0 = key0;
        tile.keys = end - key0 < TILE_KEYS ? end - key0 : TILE_KEYS;
        FN(attend_tile)(task, tile, max_abs);
    }
}

static void FN(attend)(const struct attn_heads_job *job, size_t t, void *scratch)
{
    task_t task = {0};
    REAL max_abs = 0;
    FN(begin)(&task, job, t, scratch);
    const bool is_one_pack = job->kv_len <= job->pack_keys;
    for (size_t first = 0; first < job->kv_len; first += job->pack_keys) {
        task.pack_first = first;
        memset(task.block_is_packed, 0, job->pack_keys / TILE_KEYS);
        for (size_t row0 = 0; row0 < task.rows; row0 += TILE_ROWS) {
            if (job->is_cancelled != NULL && job->is_cancelled(job->cancel_context))
                return;
            FN(attend_rows)(&task, row0, &max_abs);
            /* While the rows of the maps are still in the cache. */
            for (size_t row = row0; is_one_pack && row < task.rows && row < row0 + TILE_ROWS; row++)
                FN(finish_row)(&task, row);
        }
    }
    for (size_t row = 0; (!is_one_pack || job->kv_len == 0) && row < task.rows; row++)
        FN(finish_row)(&task, row);
    job->task_max_abs[t] = (double)max_abs;
}

#undef PANEL
#undef TILE_STRIDE
#undef task_t
#undef tile_t
