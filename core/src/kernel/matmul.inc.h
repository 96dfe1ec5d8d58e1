/*
 * matmul.inc.h: the two products of a tile, q k^T and p v, for many queries. Part of attend.inc.h.
 *
 * Keys and values are packed in the order in which the register tiles read them.
 */
/* ---- packing: operands in the order in which the register tiles read them ---- */

/* The first and the second halves of a and b, lane by lane in turn. */
static inline vec FN(zip_low)(vec a, vec b)
{
#if VECTOR_BYTES / (REAL_BITS / 8) == 16
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif VECTOR_BYTES / (REAL_BITS / 8) == 8
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#elif VECTOR_BYTES / (REAL_BITS / 8) == 4
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#else
    return __builtin_shufflevector(a, b, 0, 2);
#endif
}

static inline vec FN(zip_high)(vec a, vec b)
{
#if VECTOR_BYTES / (REAL_BITS / 8) == 16
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif VECTOR_BYTES / (REAL_BITS / 8) == 8
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#elif VECTOR_BYTES / (REAL_BITS / 8) == 4
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#else
    return __builtin_shufflevector(a, b, 1, 3);
#endif
}

/* to[d][0 … LANES) = from[0 … LANES)[d] for LANES features: rows half of them apart are zipped, log2 LANES times. */
static inline void FN(transpose)(const REAL *from, ptrdiff_t from_stride, REAL *to, size_t to_stride)
{
    vec row[LANES], zipped[LANES];
#pragma GCC unroll 16
    for (int j = 0; j < LANES; j++)
        row[j] = FN(load)(from + j * from_stride);
    for (int round = 1; round < LANES; round *= 2) {
#pragma GCC unroll 8
        for (int j = 0; j < LANES / 2; j++) {
            zipped[2 * j] = FN(zip_low)(row[j], row[j + LANES / 2]);
            zipped[2 * j + 1] = FN(zip_high)(row[j], row[j + LANES / 2]);
        }
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++)
            row[j] = zipped[j];
    }
#pragma GCC unroll 16
    for (int d = 0; d < LANES; d++)
        FN(store)(to + (size_t)d * to_stride, row[d]);
}

/* LANES keys of a panel; those beyond the last are 0. */
static void FN(pack_some_keys)(const REAL *from, ptrdiff_t stride, size_t keys, size_t d_k, REAL *to)
{
    size_t d = 0;
    for (; keys >= LANES && d_k - d >= LANES; d += LANES)
        FN(transpose)(from + d, stride, to + d * PANEL, PANEL);
    for (; d < d_k; d++)
        for (size_t j = 0; j < LANES; j++)
            to[d * PANEL + j] = j < keys ? from[(ptrdiff_t)j * stride + (ptrdiff_t)d] : 0;
}

/*
 * Asks for rows that are packed soon: they may lie far away, and the order in which they are packed is none that the
 * processor foresees.
 */
enum { FN(FETCH_AHEAD) = 2 * LANES };
static inline void FN(fetch)(const REAL *from, ptrdiff_t stride, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++, from += stride)
        for (size_t d = 0; d < columns; d += ATTN_ALIGNMENT / sizeof(REAL))
            __builtin_prefetch(from + d);
}

/* k_pack[block][panel][d][PANEL] */
static void FN(pack_keys)(task_t *task, REAL *to, size_t key0, size_t keys)
{
    const size_t d_k = task->job->d_k;
    const ptrdiff_t stride = task->job->k.row_stride;
    for (size_t j = 0; j < FN(round_up)(keys, PANEL); j += LANES) {
        const REAL *from = task->k_head + (j < keys ? (ptrdiff_t)(key0 + j) * stride : 0);
        if (j + FN(FETCH_AHEAD) < keys)
            FN(fetch)(from + FN(FETCH_AHEAD) * stride, stride, FN(least)(keys - j - FN(FETCH_AHEAD), LANES), d_k);
        FN(pack_some_keys)(from, stride, j < keys ? keys - j : 0, d_k, to + j / PANEL * PANEL * d_k + j % PANEL);
    }
}

static const REAL *FN(query)(const task_t *task, const tile_t *tile, size_t r)
{
    return task->q_head + (ptrdiff_t)(task->first_row + tile->row0 + r) * task->job->q.row_stride;
}

/* Queries are read where they lie, a group of REGISTER_ROWS at a time; a group that is not full is filled up with 0. */
static void FN(pack_last_queries)(task_t *task, const tile_t *tile)
{
    const size_t d_k = task->job->d_k, first = tile->rows / REGISTER_ROWS * REGISTER_ROWS;
    for (size_t r = 0; r < REGISTER_ROWS && first < tile->rows; r++)
        if (first + r < tile->rows)
            memcpy(task->q_pack + r * d_k, FN(query)(task, tile, first + r), d_k * sizeof(REAL));
        else
            memset(task->q_pack + r * d_k, 0, d_k * sizeof(REAL));
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

/* One value of which features are real; what is beyond them is 0. */
static void FN(pack_value)(const REAL *from, size_t features, size_t columns, REAL *to, size_t key)
{
    size_t column = 0;
    for (; features - column >= PANEL; column += PANEL) {
        REAL *row = to + column * TILE_KEYS + key * PANEL;
        FN(store)(row, FN(load)(from + column));
        FN(store)(row + LANES, FN(load)(from + column + LANES));
    }
    while (column < columns) {
        const size_t width = columns - column >= PANEL ? PANEL : LANES;
        REAL *row = to + column * TILE_KEYS + key * width;
        for (size_t d = 0; d < width; d++)
            row[d] = column + d < features ? from[column + d] : 0;
        column += width;
    }
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
        if (j + FN(FETCH_AHEAD) < keys)
            FN(fetch)(from + FN(FETCH_AHEAD) * task->job->v.row_stride, 0, 1, d_v);
        odd[j] = !FN(all_finite)(from, d_v);
        task->block_odd_keys[block] += odd[j];
        FN(pack_value)(from, odd[j] ? 0 : d_v, task->v_columns, to, j);
    }
    const size_t beyond = FN(round_up)(keys, PANEL) - keys; /* of the last panel of keys; further ones are never read */
    for (size_t column = 0; column < task->v_columns;) {
        size_t width = task->v_columns - column >= PANEL ? PANEL : LANES;
        memset(to + column * TILE_KEYS + keys * width, 0, beyond * width * sizeof(REAL));
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

/*
 * Products that are summed in a row: longer sums are sums of sums, which round less. Heads of more than LONG_HEAD
 * features have more such sums, and take half as many products for each; LONGEST_SUM features come to one score, and more
 * of them are added to it.
 */
enum { FN(SUM_FEATURES) = 32, FN(LONG_HEAD) = 64, FN(LONGEST_SUM) = 256 };

/*
 * Register tiles: REGISTER_ROWS rows of numbers a, each times REGISTER_VECTORS vectors of b, in sums that are then added
 * to sums of sums. AVX-512 has registers for both if a tile is one vector wide, which runs at 0.96 of the peak; two wide,
 * the sums of sums lie in memory, and it is 0.88. With 16 registers the sums alone are too few to keep the units busy.
 */
enum { FN(FOURS) = (REGISTER_ROWS + 3) / 4 };

/* Where each four rows of a begin: no address then takes more than such a pointer, a stride and three strides. */
typedef struct {
    const REAL *four[FN(FOURS)];
    ptrdiff_t stride;
} FN(rows);

static inline FN(rows) FN(rows_of)(const REAL *a, ptrdiff_t stride)
{
    FN(rows) rows = {.stride = stride};
    for (int four = 0; four < FN(FOURS); four++)
        rows.four[four] = a + 4 * four * stride;
    return rows;
}

/* sum[r][…] += a[r][i] b[…] */
static inline __attribute__((always_inline)) void FN(add_products)(vec sum[][REGISTER_VECTORS], const FN(rows) *a,
                                                                   size_t i, const REAL *restrict b, const int width)
{
    vec x[REGISTER_VECTORS];
#pragma GCC unroll 2
    for (int w = 0; w < width; w++)
        x[w] = FN(load)(b + w * LANES);
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++) {
        const REAL number = a->four[r / 4][r % 4 * a->stride + (ptrdiff_t)i];
#pragma GCC unroll 2
        for (int w = 0; w < width; w++)
            sum[r][w] = FN(fma_number)(number, x[w], sum[r][w]);
    }
}

static inline __attribute__((always_inline)) void FN(add_sums)(vec part[][REGISTER_VECTORS],
                                                               vec sum[][REGISTER_VECTORS], const int width)
{
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
#pragma GCC unroll 2
        for (int w = 0; w < width; w++)
            part[r][w] += sum[r][w];
}

/*
 * s[r][…] = or += scale times the sum over features of q[r][d] k[d][…], for REGISTER_ROWS rows and REGISTER_VECTORS
 * vectors of keys: a sum of sums of run products.
 */
static __attribute__((noinline)) void FN(score_register_tile)(const FN(rows) *q, const REAL *restrict k,
                                                              size_t features, size_t run, bool is_first,
                                                              REAL *restrict s, REAL scale)
{
    vec part[REGISTER_ROWS][REGISTER_VECTORS] = {0};
    for (size_t d = 0; d < features;) {
        const size_t end = FN(least)(features, d + run);
        vec sum[REGISTER_ROWS][REGISTER_VECTORS] = {0};
        for (; d < end; d++, k += PANEL)
            FN(add_products)(sum, q, d, k, REGISTER_VECTORS);
        FN(add_sums)(part, sum, REGISTER_VECTORS);
    }
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
#pragma GCC unroll 2
        for (int w = 0; w < REGISTER_VECTORS; w++) {
            REAL *at = s + r * TILE_STRIDE + w * LANES;
            FN(store)(at, is_first ? scale * part[r][w] : FN(load)(at) + scale * part[r][w]);
        }
}

/* A panel of keys against all rows. */
static void FN(score_panel)(const task_t *task, const tile_t *tile, const REAL *k, size_t column, REAL scale)
{
    const size_t d_k = task->job->d_k, run = d_k > FN(LONG_HEAD) ? FN(SUM_FEATURES) / 2 : FN(SUM_FEATURES);
    for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS) {
        if (!task->panel_is_seen[r / REGISTER_ROWS * PANELS + column / PANEL])
            continue;
        const bool is_full = tile->rows - r >= REGISTER_ROWS;
        const REAL *first_row = is_full ? FN(query)(task, tile, r) : task->q_pack;
        const ptrdiff_t stride = is_full ? task->job->q.row_stride : (ptrdiff_t)d_k;
        REAL *s = task->s + r * TILE_STRIDE + column;
        for (size_t d = 0; d < d_k; d += FN(LONGEST_SUM)) {
            const FN(rows) q = FN(rows_of)(first_row + d, stride);
            const size_t features = FN(least)(d_k - d, FN(LONGEST_SUM));
            for (size_t c = 0; c < PANEL; c += REGISTER_VECTORS * LANES)
                FN(score_register_tile)(&q, k + d * PANEL + c, features, run, d == 0, s + c, scale);
        }
    }
}

/* Scores of the tile times scale. */
static void FN(score_tile)(task_t *task, const tile_t *tile, REAL scale)
{
    const size_t d_k = task->job->d_k;
    const REAL *k = task->k_pack + (FN(block_of)(task, tile) * TILE_KEYS + tile->from) * d_k;
    for (size_t column = tile->from; column < tile->to; column += PANEL, k += PANEL * d_k)
        FN(score_panel)(task, tile, k, column, scale);
}

/*
 * total[r][…] = or += sum over keys from … to of p[r][key] v[key][…], for REGISTER_ROWS rows and width vectors of
 * features: sums of SUM_KEYS keys, which begin at multiples of it, are summed in a part of their own first.
 */
static inline __attribute__((always_inline)) void FN(context_register_tile)(const REAL *restrict p,
                                                                            const REAL *restrict v, size_t v_stride,
                                                                            size_t from, size_t to, bool is_first,
                                                                            REAL *restrict total, size_t stride,
                                                                            const int width)
{
    const FN(rows) rows = FN(rows_of)(p, TILE_STRIDE);
    vec part[REGISTER_ROWS][REGISTER_VECTORS] = {0};
    for (size_t j = from; j < to;) {
        const size_t end = FN(least)(to, j / SUM_KEYS * SUM_KEYS + SUM_KEYS);
        vec sum[REGISTER_ROWS][REGISTER_VECTORS] = {0};
        for (; j < end; j++, v += v_stride)
            FN(add_products)(sum, &rows, j, v, width);
        FN(add_sums)(part, sum, width);
    }
#pragma GCC unroll 16
    for (int r = 0; r < REGISTER_ROWS; r++)
#pragma GCC unroll 2
        for (int w = 0; w < width; w++) {
            REAL *at = total + (size_t)r * stride + (size_t)w * LANES;
            FN(store)(at, is_first ? part[r][w] : part[r][w] + FN(load)(at));
        }
}

/* Columns from … to of a group of rows: into task->part, or added to it. */
static void FN(context_run)(task_t *task, const tile_t *tile, size_t r, size_t from, size_t to, bool is_first)
{
    const size_t columns = task->v_columns;
    const REAL *v = task->v_pack + FN(block_of)(task, tile) * TILE_KEYS * columns;
    const REAL *p = task->s + r * TILE_STRIDE;
    for (size_t panel = 0; panel < columns; panel += PANEL) {
        const size_t panel_width = FN(least)(columns - panel, PANEL);
        const REAL *at = v + panel * TILE_KEYS + from * panel_width;
        REAL *total = task->part + panel;
        size_t c = 0;
        for (; panel_width - c >= REGISTER_VECTORS * LANES; c += REGISTER_VECTORS * LANES)
            FN(context_register_tile)(p, at + c, panel_width, from, to, is_first, total + c, columns,
                                      REGISTER_VECTORS);
        for (; c < panel_width; c += LANES)
            FN(context_register_tile)(p, at + c, panel_width, from, to, is_first, total + c, columns, 1);
    }
}

/* o = alpha o + part, and what rounding leaves out of it, for a group of rows. */
static void FN(add_part)(task_t *task, const tile_t *tile, size_t r)
{
    const size_t columns = task->v_columns;
    for (size_t row = 0; row < REGISTER_ROWS; row++) {
        const size_t at = (tile->row0 + r + row) * columns;
        FN(add_row_exactly)(task->o + at, task->o_low + at, task->alpha[r + row], task->part + row * columns, columns);
    }
}

/*
 * o of a group of rows, with this tile. Keys in runs of RUN_KEYS, which begin at multiples of it, so that the order of a
 * sum follows from the positions alone; of each the panels from the first to the last that some row of the group sees:
 * what lies between has weight 0.
 */
static void FN(context_group)(task_t *task, const tile_t *tile, size_t r)
{
    enum { RUN = RUN_KEYS / PANEL };
    const uint8_t *seen = task->panel_is_seen + r / REGISTER_ROWS * PANELS;
    bool is_first = true;
    for (size_t run = tile->from / RUN_KEYS * RUN; run < tile->to / PANEL; run += RUN) {
        size_t from = run > tile->from / PANEL ? run : tile->from / PANEL;
        size_t to = FN(least)(run + RUN, tile->to / PANEL);
        while (from < to && !seen[from])
            from++;
        while (from < to && !seen[to - 1])
            to--;
        if (from == to)
            continue;
        FN(context_run)(task, tile, r, from * PANEL, to * PANEL, is_first);
        is_first = false;
    }
    if (!is_first)
        FN(add_part)(task, tile, r);
}

/* Which columns of the tile row r may see: what its span leaves, and what allow says of these; allow NULL: all of them. */
static attn_span FN(columns_of_row)(const task_t *task, const tile_t *tile, size_t r, const uint8_t **allow)
{
    const attn_span span = task->span[r];
    const size_t from = span.from > tile->key0 ? span.from - tile->key0 : 0;
    const size_t to = span.to > tile->key0 ? span.to - tile->key0 : 0;
    *allow = attn_mask_has_lookup(task->job->mask) ? task->allow + r * TILE_KEYS : NULL;
    return (attn_span){from > tile->from ? from : tile->from, FN(least)(to, FN(least)(tile->to, tile->keys))};
}

/* The first column from … to whose flag is set in odd, and in allow where there is one; eight at a time. */
static size_t FN(next_odd)(const uint8_t *odd, const uint8_t *allow, size_t from, size_t to)
{
    for (; from + 8 <= to; from += 8) {
        uint64_t flags, allowed = UINT64_MAX;
        memcpy(&flags, odd + from, sizeof flags);
        if (allow != NULL)
            memcpy(&allowed, allow + from, sizeof allowed);
        if ((flags & allowed) != 0)
            break;
    }
    while (from < to && !(odd[from] != 0 && (allow == NULL || allow[from] != 0)))
        from++;
    return from;
}

/* o += weight v, for a value that is not finite. */
static void FN(add_odd_value)(REAL weight, const REAL *v, size_t d_v, REAL *o)
{
    size_t d = 0;
    for (; d_v - d >= LANES; d += LANES)
        FN(store)(o + d, FN(fma_number)(weight, FN(load)(v + d), FN(load)(o + d)));
    for (; d < d_v; d++)
        o[d] += weight * v[d];
}

/* Adds p v for the values that pack_values left out, to the rows that may see them; hidden ones cost a glance. */
static void FN(add_odd_values)(task_t *task, const tile_t *tile)
{
    const struct attn_heads_job *job = task->job;
    const size_t block = job->few_rows ? 0 : FN(block_of)(task, tile);
    const uint8_t *odd = task->key_is_odd + block * TILE_KEYS, *allow;
    if (task->block_odd_keys[block] == 0)
        return;
    for (size_t r = 0; r < tile->rows; r++) {
        const attn_span seen = FN(columns_of_row)(task, tile, r, &allow);
        REAL *o = task->o + (tile->row0 + r) * task->v_columns;
        for (size_t j = seen.from; (j = FN(next_odd)(odd, allow, j, seen.to)) < seen.to; j++) {
            const REAL *v = task->v_head + (ptrdiff_t)(tile->key0 + j) * job->v.row_stride;
            FN(add_odd_value)(task->s[r * TILE_STRIDE + j], v, job->d_v, o);
            task->row_sees_key[tile->row0 + r] |= FN(SEES_ODD);
        }
    }
}
