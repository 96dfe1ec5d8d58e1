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

enum {
    FN(PANEL) = 2 * LANES,            /* columns of a register tile */
    FN(TILE_STRIDE) = TILE_KEYS + LANES, /* of score rows: not a power of two, to spread over the cache's sets */
};
#define PANEL FN(PANEL)
#define TILE_STRIDE FN(TILE_STRIDE)
static_assert(TILE_ROWS % REGISTER_ROWS == 0 && TILE_KEYS % (2 * LANES) == 0, "tiles are whole register tiles");

/* What a task works with: its place in the job, and its parts of the scratch memory. */
typedef struct {
    const struct attn_heads_job *job;
    size_t b, h, first_row, rows; /* the task's queries */
    size_t v_columns;             /* d_v rounded up to whole vectors */
    size_t key_blocks;            /* tiles of keys in all */
    const REAL *q_head, *k_head, *v_head;
    /* per row of the task */
    REAL *o, *m, *l, *entropy_sum;
    REAL *block_max; /* (row, key block): the maximum that p of the block was taken against; NULL: no weights kept */
    uint8_t *row_sees_key;
    /* the pack: keys pack_first … pack_first + pack_keys */
    size_t pack_first;
    REAL *k_pack, *v_pack;
    uint8_t *block_is_packed, *key_is_odd; /* odd: a value that is not finite */
    size_t *block_odd_keys;
    /* one tile */
    REAL *q_pack, *s, *alpha;
    uint8_t *allow; /* (TILE_ROWS, TILE_KEYS): the whole mask, where it takes looking up */
    uint8_t *keep;  /* one row of dropout's decisions */
    attn_span *span;
} FN(task);
#define task_t FN(task)

/* A tile: rows row0 … row0 + rows of the task, keys key0 … key0 + keys, of which columns from … to are computed. */
typedef struct {
    size_t row0, rows, key0, keys, from, to;
} FN(tile);
#define tile_t FN(tile)

/* ---- scratch memory ---- */

static size_t FN(round_up)(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static void *FN(lend)(char *scratch, size_t *used, size_t count, size_t size)
{
    void *block = scratch == NULL ? NULL : scratch + *used;
    *used += FN(round_up)(count * size, ATTN_ALIGNMENT);
    return block;
}

static bool FN(keeps_weights)(const struct attn_heads_job *job)
{
    return job->map[MAP_ATTENTION].data != NULL || job->map[MAP_DROPPED].data != NULL ||
           job->map[MAP_MEAN_SOURCE].data != NULL;
}

/* Hands out the scratch memory; with scratch NULL only measures. */
static size_t FN(lay_out)(const struct attn_heads_job *job, task_t *task, char *scratch)
{
    size_t used = 0, blocks = job->pack_keys / TILE_KEYS;
    size_t rows = FN(round_up)(job->chunk_rows, TILE_ROWS);
    task->v_columns = FN(round_up)(job->d_v, LANES);
    task->key_blocks = (job->kv_len + TILE_KEYS - 1) / TILE_KEYS;
    task->k_pack = FN(lend)(scratch, &used, job->pack_keys * job->d_k, sizeof(REAL));
    task->v_pack = FN(lend)(scratch, &used, job->pack_keys * task->v_columns, sizeof(REAL));
    task->q_pack = FN(lend)(scratch, &used, TILE_ROWS * job->d_k, sizeof(REAL));
    task->s = FN(lend)(scratch, &used, TILE_ROWS * TILE_STRIDE, sizeof(REAL));
    task->o = FN(lend)(scratch, &used, rows * task->v_columns, sizeof(REAL));
    task->m = FN(lend)(scratch, &used, rows, sizeof(REAL));
    task->l = FN(lend)(scratch, &used, rows, sizeof(REAL));
    task->entropy_sum = FN(lend)(scratch, &used, rows, sizeof(REAL));
    task->alpha = FN(lend)(scratch, &used, TILE_ROWS, sizeof(REAL));
    task->row_sees_key = FN(lend)(scratch, &used, rows, 1);
    task->block_is_packed = FN(lend)(scratch, &used, blocks, 1);
    task->key_is_odd = FN(lend)(scratch, &used, job->pack_keys, 1);
    task->block_odd_keys = FN(lend)(scratch, &used, blocks, sizeof(size_t));
    task->allow = FN(lend)(scratch, &used, TILE_ROWS * TILE_KEYS, 1);
    task->keep = FN(lend)(scratch, &used, TILE_KEYS, 1);
    task->span = FN(lend)(scratch, &used, TILE_ROWS, sizeof(attn_span));
    task->block_max =
        FN(keeps_weights)(job) ? FN(lend)(scratch, &used, rows * task->key_blocks, sizeof(REAL)) : NULL;
    return used;
}

static size_t FN(scratch_bytes)(const struct attn_heads_job *job)
{
    task_t task = {0};
    return FN(lay_out)(job, &task, NULL);
}

static const REAL *FN(head)(const struct attn_operand *operand, size_t b, size_t h)
{
    return (const REAL *)operand->data + (ptrdiff_t)b * operand->batch_stride + (ptrdiff_t)h * operand->head_stride;
}

static void FN(begin)(task_t *task, const struct attn_heads_job *job, size_t t, char *scratch)
{
    FN(lay_out)(job, task, scratch);
    task->job = job;
    task->b = t / job->chunks / job->heads;
    task->h = t / job->chunks % job->heads;
    task->first_row = t % job->chunks * job->chunk_rows;
    task->rows = job->q_len - task->first_row < job->chunk_rows ? job->q_len - task->first_row : job->chunk_rows;
    size_t kv_head = task->h / (job->heads / job->kv_heads);
    task->q_head = FN(head)(&job->q, task->b, task->h);
    task->k_head = FN(head)(&job->k, task->b, kv_head);
    task->v_head = FN(head)(&job->v, task->b, kv_head);
    size_t rows = FN(round_up)(task->rows, TILE_ROWS);
    memset(task->o, 0, rows * task->v_columns * sizeof(REAL));
    memset(task->row_sees_key, 0, rows);
    for (size_t r = 0; r < rows; r++) {
        task->m[r] = -(REAL)INFINITY;
        task->l[r] = task->entropy_sum[r] = 0;
    }
}

/* ---- packing: operands in the order in which the register tiles read them ---- */

/* q_pack[group][d][REGISTER_ROWS]; rows beyond the last are 0. */
static void FN(pack_queries)(task_t *task, const tile_t *tile)
{
    const size_t d_k = task->job->d_k;
    for (size_t r = 0; r < FN(round_up)(tile->rows, REGISTER_ROWS); r++) {
        REAL *to = task->q_pack + r / REGISTER_ROWS * REGISTER_ROWS * d_k + r % REGISTER_ROWS;
        const REAL *from = task->q_head + (ptrdiff_t)(task->first_row + tile->row0 + r) * task->job->q.row_stride;
        for (size_t d = 0; d < d_k; d++)
            to[d * REGISTER_ROWS] = r < tile->rows ? from[d] : 0;
    }
}

/* k_pack[block][panel][d][PANEL]; keys beyond the last are 0. */
static void FN(pack_keys)(task_t *task, REAL *to, size_t key0, size_t keys)
{
    const size_t d_k = task->job->d_k;
    for (size_t panel = 0; panel < FN(round_up)(keys, PANEL); panel += PANEL, to += PANEL * d_k)
        for (size_t j = 0; j < PANEL; j++) {
            const REAL *from = task->k_head + (ptrdiff_t)(key0 + panel + j) * task->job->k.row_stride;
            if (panel + j < keys)
                for (size_t d = 0; d < d_k; d++)
                    to[d * PANEL + j] = from[d];
            else
                for (size_t d = 0; d < d_k; d++)
                    to[d * PANEL + j] = 0;
        }
}

static bool FN(all_finite)(const REAL *x, size_t n)
{
    INTEGER largest = 0;
    const INTEGER exponent = (INTEGER)(((INTEGER)2 * EXPONENT_BIAS + 1) << MANTISSA_BITS);
    for (size_t d = 0; d < n; d++) {
        INTEGER bits;
        memcpy(&bits, &x[d], sizeof bits);
        bits &= exponent;
        largest = bits > largest ? bits : largest;
    }
    return largest < exponent;
}

/*
 * v_pack[block][panel of features][key][columns of the panel], padded with 0. A value that is not finite would spoil,
 * as 0 times it, the rows that may not see it: it is left out here (add_odd_values).
 */
static void FN(pack_values)(task_t *task, REAL *to, size_t block, size_t key0, size_t keys)
{
    const size_t d_v = task->job->d_v;
    uint8_t *odd = task->key_is_odd + block * TILE_KEYS;
    task->block_odd_keys[block] = 0;
    for (size_t j = 0; j < keys; j++) {
        const REAL *from = task->v_head + (ptrdiff_t)(key0 + j) * task->job->v.row_stride;
        odd[j] = !FN(all_finite)(from, d_v);
        task->block_odd_keys[block] += odd[j];
        for (size_t column = 0; column < task->v_columns;) {
            size_t width = task->v_columns - column >= PANEL ? PANEL : LANES;
            REAL *row = to + column * TILE_KEYS + j * width;
            size_t real = d_v - column < width ? d_v - column : width;
            if (odd[j])
                real = 0;
            memcpy(row, from + column, real * sizeof(REAL));
            memset(row + real, 0, (width - real) * sizeof(REAL));
            column += width;
        }
    }
    for (size_t column = 0; column < task->v_columns;) {
        size_t width = task->v_columns - column >= PANEL ? PANEL : LANES;
        memset(to + column * TILE_KEYS + keys * width, 0, (TILE_KEYS - keys) * width * sizeof(REAL));
        column += width;
    }
}

static size_t FN(block_of)(const task_t *task, const tile_t *tile)
{
    return (tile->key0 - task->pack_first) / TILE_KEYS;
}

static void FN(pack_block)(task_t *task, const tile_t *tile)
{
    size_t block = FN(block_of)(task, tile);
    if (task->block_is_packed[block])
        return;
    FN(pack_keys)(task, task->k_pack + block * TILE_KEYS * task->job->d_k, tile->key0, tile->keys);
    FN(pack_values)(task, task->v_pack + block * TILE_KEYS * task->v_columns, block, tile->key0, tile->keys);
    task->block_is_packed[block] = 1;
}

/* ---- the two products ---- */

/* s[r][0 … PANEL) = sum over d of q[d][r] k[d][…] for REGISTER_ROWS rows. */
static inline void FN(score_register_tile)(const REAL *restrict q, const REAL *restrict k, size_t d_k, REAL *restrict s)
{
    vec sum[REGISTER_ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
        sum[r][0] = sum[r][1] = (vec){0};
    for (size_t d = 0; d < d_k; d++, q += REGISTER_ROWS, k += PANEL) {
        vec k0 = FN(load)(k), k1 = FN(load)(k + LANES);
#pragma GCC unroll 16
        for (int r = 0; r < REGISTER_ROWS; r++) {
            sum[r][0] += q[r] * k0;
            sum[r][1] += q[r] * k1;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++) {
        FN(store)(s + r * TILE_STRIDE, sum[r][0]);
        FN(store)(s + r * TILE_STRIDE + LANES, sum[r][1]);
    }
}

static void FN(score_tile)(task_t *task, const tile_t *tile)
{
    const size_t d_k = task->job->d_k;
    const REAL *k = task->k_pack + (FN(block_of)(task, tile) * TILE_KEYS + tile->from) * d_k;
    for (size_t column = tile->from; column < tile->to; column += PANEL, k += PANEL * d_k)
        for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS)
            FN(score_register_tile)(task->q_pack + r * d_k, k, d_k, task->s + r * TILE_STRIDE + column);
}

/* o[r][…] = alpha[r] o[r][…] + sum over keys of p[r][key] v[key][…], for REGISTER_ROWS rows and width vectors. */
static inline __attribute__((always_inline)) void FN(context_register_tile)(const REAL *restrict p,
                                                                            const REAL *restrict v, size_t keys,
                                                                            const REAL *restrict alpha,
                                                                            REAL *restrict o, size_t o_stride,
                                                                            const int width)
{
    vec sum[REGISTER_ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
#pragma GCC unroll 2
        for (int w = 0; w < width; w++)
            sum[r][w] = alpha[r] * FN(load)(o + (size_t)r * o_stride + (size_t)w * LANES);
    for (size_t j = 0; j < keys; j++, v += (size_t)width * LANES) {
        vec v0 = FN(load)(v), v1 = width > 1 ? FN(load)(v + LANES) : v0;
#pragma GCC unroll 16
        for (int r = 0; r < REGISTER_ROWS; r++) {
            REAL weight = p[(size_t)r * TILE_STRIDE + j];
            sum[r][0] += weight * v0;
            if (width > 1)
                sum[r][1] += weight * v1;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
#pragma GCC unroll 2
        for (int w = 0; w < width; w++)
            FN(store)(o + (size_t)r * o_stride + (size_t)w * LANES, sum[r][w]);
}

static void FN(context_tile)(task_t *task, const tile_t *tile)
{
    const size_t columns = task->v_columns, keys = tile->to - tile->from;
    const REAL *v = task->v_pack + FN(block_of)(task, tile) * TILE_KEYS * columns;
    for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS) {
        const REAL *p = task->s + r * TILE_STRIDE + tile->from;
        REAL *o = task->o + (tile->row0 + r) * columns;
        size_t column = 0;
        for (; columns - column >= PANEL; column += PANEL)
            FN(context_register_tile)(p, v + column * TILE_KEYS + tile->from * PANEL, keys, task->alpha + r,
                                      o + column, columns, 2);
        if (column < columns)
            FN(context_register_tile)(p, v + column * TILE_KEYS + tile->from * LANES, keys, task->alpha + r,
                                      o + column, columns, 1);
    }
}

/* Adds p v for the values that pack_values left out, to the rows that may see them. */
static void FN(add_odd_values)(task_t *task, const tile_t *tile)
{
    const struct attn_heads_job *job = task->job;
    const size_t block = FN(block_of)(task, tile);
    if (task->block_odd_keys[block] == 0)
        return;
    for (size_t j = tile->from; j < tile->to && j < tile->keys; j++) {
        if (!task->key_is_odd[block * TILE_KEYS + j])
            continue;
        const REAL *v = task->v_head + (ptrdiff_t)(tile->key0 + j) * job->v.row_stride;
        for (size_t r = 0; r < tile->rows; r++) {
            size_t i = task->first_row + tile->row0 + r;
            if (!attn_mask_allows(job->mask, job->compute, task->b, task->h, i, tile->key0 + j))
                continue;
            REAL weight = task->s[r * TILE_STRIDE + j], *o = task->o + (tile->row0 + r) * task->v_columns;
            for (size_t d = 0; d < job->d_v; d++)
                o[d] += weight * v[d];
        }
    }
}

/* ---- the mask of a tile ---- */

static bool FN(allow_row)(task_t *task, const tile_t *tile, size_t r)
{
    const attn_mask *mask = task->job->mask;
    const size_t b = task->b, i = task->first_row + tile->row0 + r;
    uint8_t *allow = task->allow + r * TILE_KEYS, any = 0;
    const attn_span span = task->span[r];
    const uint8_t *padding = mask->padding == NULL ? NULL : mask->padding + (ptrdiff_t)b * mask->padding_stride[0];
    const uint8_t *attend = mask->attend;
    const REAL *bias = mask->bias;
    if (attend != NULL)
        attend += (ptrdiff_t)b * mask->attend_stride[0] + (ptrdiff_t)task->h * mask->attend_stride[1] +
                  (ptrdiff_t)i * mask->attend_stride[2];
    if (bias != NULL)
        bias += (ptrdiff_t)b * mask->bias_stride[0] + (ptrdiff_t)task->h * mask->bias_stride[1] +
                (ptrdiff_t)i * mask->bias_stride[2];
    for (size_t c = tile->from; c < tile->to; c++)
        allow[c] = tile->key0 + c >= span.from && tile->key0 + c < span.to;
    size_t end = tile->to < tile->keys ? tile->to : tile->keys;
    if (padding != NULL)
        for (size_t c = tile->from; c < end; c++)
            allow[c] &= padding[(ptrdiff_t)(tile->key0 + c) * mask->padding_stride[1]] != 0;
    if (attend != NULL)
        for (size_t c = tile->from; c < end; c++)
            allow[c] &= attend[(ptrdiff_t)(tile->key0 + c) * mask->attend_stride[3]] != 0;
    if (bias != NULL)
        for (size_t c = tile->from; c < end; c++)
            allow[c] &= bias[(ptrdiff_t)(tile->key0 + c) * mask->bias_stride[3]] > -(REAL)INFINITY;
    for (size_t c = tile->from; c < tile->to; c++)
        any |= allow[c];
    return any != 0;
}

/* Narrows the tile to the columns that the spans of its rows reach, and looks the rest of the mask up. */
static bool FN(any_allowed)(task_t *task, tile_t *tile)
{
    size_t from = tile->keys, to = 0;
    for (size_t r = 0; r < tile->rows; r++) {
        attn_span span = task->span[r];
        size_t f = span.from > tile->key0 ? span.from - tile->key0 : 0;
        size_t t = span.to > tile->key0 ? span.to - tile->key0 : 0;
        t = t < tile->keys ? t : tile->keys;
        if (f >= t)
            continue;
        from = f < from ? f : from;
        to = t > to ? t : to;
    }
    if (from >= to)
        return false;
    tile->from = from / PANEL * PANEL;
    tile->to = FN(round_up)(to, PANEL);
    if (!attn_mask_has_lookup(task->job->mask)) {
        for (size_t r = 0; r < tile->rows; r++)
            if (task->span[r].from < tile->key0 + tile->keys && task->span[r].to > tile->key0)
                task->row_sees_key[tile->row0 + r] = 1;
        return true;
    }
    bool any = false;
    for (size_t r = 0; r < tile->rows; r++)
        if (FN(allow_row)(task, tile, r)) {
            task->row_sees_key[tile->row0 + r] = 1;
            any = true;
        }
    return any;
}

/* Adds the bias, and puts -infinity where the row may not attend. */
static void FN(mask_row)(task_t *task, const tile_t *tile, size_t r, REAL *x)
{
    const attn_mask *mask = task->job->mask;
    const REAL hidden = -(REAL)INFINITY;
    if (!attn_mask_has_lookup(mask)) {
        attn_span span = task->span[r];
        size_t f = span.from > tile->key0 ? span.from - tile->key0 : 0;
        size_t t = span.to > tile->key0 ? span.to - tile->key0 : 0;
        for (size_t c = tile->from; c < tile->to && c < f; c++)
            x[c] = hidden;
        for (size_t c = t > tile->from ? t : tile->from; c < tile->to; c++)
            x[c] = hidden;
        return;
    }
    if (mask->bias != NULL) {
        size_t i = task->first_row + tile->row0 + r, end = tile->to < tile->keys ? tile->to : tile->keys;
        const REAL *bias = (const REAL *)mask->bias + (ptrdiff_t)task->b * mask->bias_stride[0] +
                           (ptrdiff_t)task->h * mask->bias_stride[1] + (ptrdiff_t)i * mask->bias_stride[2];
        for (size_t c = tile->from; c < end; c++)
            x[c] += bias[(ptrdiff_t)(tile->key0 + c) * mask->bias_stride[3]];
    }
    const uint8_t *allow = task->allow + r * TILE_KEYS;
    for (size_t c = tile->from; c < tile->to; c += LANES)
        FN(store)(x + c, FN(select)(FN(mask_from_bytes)(allow + c), FN(load)(x + c), FN(splat)(hidden)));
}

/* ---- maps that the caller wants ---- */

/* The row of a map that belongs to query i; NULL when it is not kept. */
static REAL *FN(map_row)(const task_t *task, int which, size_t i)
{
    const struct attn_heads_job *job = task->job;
    const struct attn_map *map = &job->map[which];
    if (map->data == NULL)
        return NULL;
    bool all_heads = map->all_heads || job->head_slot == NULL;
    size_t head = all_heads ? task->h : job->head_slot[task->h], heads = all_heads ? job->heads : job->kept_heads;
    size_t query = job->query_slot == NULL ? i : job->query_slot[i];
    if (head == SIZE_MAX || query == SIZE_MAX)
        return NULL;
    return (REAL *)map->data + ((task->b * heads + head) * job->kept_queries + query) * job->kept_keys;
}

static void FN(keep_cell)(const task_t *task, REAL *row, size_t j, REAL value)
{
    const size_t *slot = task->job->key_slot;
    if (slot == NULL)
        row[j] = value;
    else if (slot[j] != SIZE_MAX)
        row[slot[j]] = value;
}

/* Keeps columns from … to of row r, x[column], and fill in the rest of the tile. x NULL: fill alone. */
static void FN(keep_row)(const task_t *task, const tile_t *tile, int which, size_t r, const REAL *x, REAL fill)
{
    REAL *row = FN(map_row)(task, which, task->first_row + tile->row0 + r);
    if (row == NULL)
        return;
    size_t from = x == NULL ? tile->keys : tile->from, to = tile->to < tile->keys ? tile->to : tile->keys;
    for (size_t c = 0; c < from; c++)
        FN(keep_cell)(task, row, tile->key0 + c, fill);
    if (x == NULL)
        return;
    if (task->job->key_slot == NULL)
        memcpy(row + tile->key0 + from, x + from, (to - from) * sizeof(REAL));
    else
        for (size_t c = from; c < to; c++)
            FN(keep_cell)(task, row, tile->key0 + c, x[c]);
    for (size_t c = to; c < tile->keys; c++)
        FN(keep_cell)(task, row, tile->key0 + c, fill);
}

/* scores and scaled show every score that was worth reading: of keys that some query sees, for queries that see some. */
static void FN(keep_seen_row)(const task_t *task, const tile_t *tile, int which, size_t r, const REAL *x)
{
    const struct attn_heads_job *job = task->job;
    size_t i = task->first_row + tile->row0 + r, head = task->b * job->heads + task->h;
    REAL *row = FN(map_row)(task, which, i);
    if (row == NULL)
        return;
    const uint8_t *seen = job->key_is_seen + head * job->kv_len;
    bool sees = job->query_sees[head * job->q_len + i] != 0;
    for (size_t c = 0; c < tile->keys; c++)
        FN(keep_cell)(task, row, tile->key0 + c, sees && seen[tile->key0 + c] ? x[c] : -(REAL)INFINITY);
}

static void FN(keep_hidden_tile)(const task_t *task, const tile_t *tile)
{
    for (size_t r = 0; r < tile->rows; r++) {
        FN(keep_row)(task, tile, MAP_MASKED, r, NULL, -(REAL)INFINITY);
        FN(keep_row)(task, tile, MAP_ATTENTION, r, NULL, 0);
        FN(keep_row)(task, tile, MAP_MEAN_SOURCE, r, NULL, 0);
        FN(keep_row)(task, tile, MAP_DROPPED, r, NULL, 0);
        if (task->block_max != NULL)
            task->block_max[(tile->row0 + r) * task->key_blocks + tile->key0 / TILE_KEYS] = -(REAL)INFINITY;
    }
}

/* ---- softmax of one row of a tile ---- */

static void FN(scale_row)(REAL *x, size_t n, REAL scale, REAL softcap)
{
    if (softcap == 0)
        for (size_t c = 0; c < n; c += LANES)
            FN(store)(x + c, scale * FN(load)(x + c));
    else
        for (size_t c = 0; c < n; c += LANES)
            FN(store)(x + c, softcap * FN(tanh)(scale * FN(load)(x + c) / softcap));
}

/* The largest of x, and of |x| where finite. */
static REAL FN(largest)(const REAL *x, size_t n, REAL *max_abs)
{
    vec m = FN(splat)(-(REAL)INFINITY), a = FN(splat)(*max_abs);
    const vec infinity = FN(splat)((REAL)INFINITY);
    for (size_t c = 0; c < n; c += LANES) {
        vec y = FN(load)(x + c), size = FN(absolute)(y);
        m = FN(larger)(y, m);
        a = FN(larger)((vec)((ivec)size & (size < infinity)), a);
    }
    *max_abs = FN(largest_lane)(a);
    return FN(largest_lane)(m);
}

/* x = exp(x - m); returns the sum. */
static REAL FN(exponentiate)(REAL *x, size_t n, REAL m)
{
    vec sum = {0};
    for (size_t c = 0; c < n; c += LANES) {
        vec p = FN(exp)(FN(load)(x + c) - m);
        FN(store)(x + c, p);
        sum += p;
    }
    return FN(sum_lanes)(sum);
}

/* Sum of (x - m) exp(x - m) over the keys that are not hidden. */
static REAL FN(entropy_sum)(const REAL *x, size_t n, REAL m)
{
    vec sum = {0};
    const vec hidden = FN(splat)(-(REAL)INFINITY);
    for (size_t c = 0; c < n; c += LANES) {
        vec y = FN(load)(x + c);
        vec term = (y - m) * FN(exp)(y - m);
        sum += (vec)((ivec)term & (y != hidden));
    }
    return FN(sum_lanes)(sum);
}

static REAL FN(exp_one)(REAL x)
{
    return FN(exp)(FN(splat)(x))[0];
}

static void FN(exp_all)(REAL *x, size_t n)
{
    for (size_t c = 0; c < n; c += LANES)
        FN(store)(x + c, FN(exp)(FN(load)(x + c)));
}

static void FN(drop_row)(task_t *task, const tile_t *tile, size_t r, REAL *x)
{
    const struct attn_heads_job *job = task->job;
    const REAL gain = job->dropout < 1 ? (REAL)(1 / (1 - job->dropout)) : 0;
    uint64_t row = ((uint64_t)task->b * job->heads + task->h) * job->q_len + task->first_row + tile->row0 + r;
    size_t end = tile->to < tile->keys ? tile->to : tile->keys;
    attn_dropout_keep(job->dropout_seed, DROPOUT_ATTENTION, job->dropout,
                      row * job->kv_len + tile->key0 + tile->from, end - tile->from, task->keep);
    for (size_t c = tile->from; c < end; c++)
        x[c] = task->keep[c - tile->from] ? x[c] * gain : 0;
}

/* Row r of the tile from scaled scores to unnormalised weights, and the row's running maximum and sums. */
static void FN(softmax_row)(task_t *task, const tile_t *tile, size_t r, REAL *max_abs)
{
    REAL *x = task->s + r * TILE_STRIDE, *from = x + tile->from;
    const size_t n = tile->to - tile->from, row = tile->row0 + r;
    FN(mask_row)(task, tile, r, x);
    FN(keep_row)(task, tile, MAP_MASKED, r, x, -(REAL)INFINITY);
    REAL before = task->m[row], m = FN(largest)(from, n, max_abs);
    m = m > before ? m : before;
    /* Nothing but -infinity so far: any finite number keeps the exponentials at 0 instead of NaN. */
    REAL shift = m == -(REAL)INFINITY ? 0 : m;
    REAL alpha = m == before ? 1 : FN(exp_one)(before - shift);
    if (task->job->entropy != NULL) {
        REAL moved = alpha == 0 || m == before ? 0 : (before - shift) * task->l[row];
        task->entropy_sum[row] =
            alpha * (task->entropy_sum[row] + moved) + FN(entropy_sum)(from, n, shift);
    }
    task->l[row] = alpha * task->l[row] + FN(exponentiate)(from, n, shift);
    task->m[row] = m;
    task->alpha[r] = alpha;
    if (task->block_max != NULL)
        task->block_max[row * task->key_blocks + tile->key0 / TILE_KEYS] = shift;
    FN(keep_row)(task, tile, MAP_ATTENTION, r, x, 0);
    FN(keep_row)(task, tile, MAP_MEAN_SOURCE, r, x, 0);
    if (task->job->dropout > 0) {
        FN(drop_row)(task, tile, r, x);
        FN(keep_row)(task, tile, MAP_DROPPED, r, x, 0);
    }
}

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
