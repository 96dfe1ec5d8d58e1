/*
 * few.inc.h: the two products of a tile, q k^T and p v, for few queries (decoding). Part of attend.inc.h.
 *
 * Keys and values are read once, where they lie: packing would cost more than the product, and memory is what limits it.
 */
/*
 * a and b as one vector of sums: lane i becomes lanes i and i ^ apart together, of a where i has not that bit, else of b.
 */
#define ADD_PARTNERS(a, b, apart)                                                                                      \
    (__builtin_shufflevector(a, b, ALL_LANES(OWN_LANE, apart)) +                                                       \
     __builtin_shufflevector(a, b, ALL_LANES(PARTNER_LANE, apart)))
#define OWN_LANE(i, apart)          ((i) + LANE_OF_B(i, apart))
#define PARTNER_LANE(i, apart)      (((i) ^ (apart)) % LANES + LANE_OF_B(i, apart))
#define LANE_OF_B(i, apart)         ((i) & (apart) ? LANES : 0)
#define TWO_LANES(lane, i, apart)   lane(i, apart), lane(i + 1, apart)
#define FOUR_LANES(lane, i, apart)  TWO_LANES(lane, i, apart), TWO_LANES(lane, i + 2, apart)
#define EIGHT_LANES(lane, i, apart) FOUR_LANES(lane, i, apart), FOUR_LANES(lane, i + 4, apart)
#if VECTOR_BYTES / (REAL_BITS / 8) == 16
#define ALL_LANES(lane, apart) EIGHT_LANES(lane, 0, apart), EIGHT_LANES(lane, 8, apart)
#elif VECTOR_BYTES / (REAL_BITS / 8) == 8
#define ALL_LANES(lane, apart) EIGHT_LANES(lane, 0, apart)
#elif VECTOR_BYTES / (REAL_BITS / 8) == 4
#define ALL_LANES(lane, apart) FOUR_LANES(lane, 0, apart)
#else
#define ALL_LANES(lane, apart) TWO_LANES(lane, 0, apart)
#endif

enum {
    FN(RUN_FEATURES) = 16 * LANES,        /* of which a lane sums 16 products in a row; longer sums are sums of those */
    FN(FEW_WIDTH) = 4,                    /* vectors of features that are read together */
    FN(VALUES_WIDTH) = 8,
    FN(FEW_KEYS) = LANES < 4 ? LANES : 4, /* so many keys */
};

/* Lane by lane the sum of q[d] k[d] over whole vectors of features. */
static inline __attribute__((always_inline)) vec FN(multiply_vectors)(const REAL *q, const REAL *k, size_t features)
{
    vec sum = {0};
    size_t d = 0;
    for (; features - d >= FN(FEW_WIDTH) * LANES; d += FN(FEW_WIDTH) * LANES)
        UNROLL
        for (int w = 0; w < FN(FEW_WIDTH); w++)
            sum += FN(load)(q + d + w * LANES) * FN(load)(k + d + w * LANES);
    for (; d < features; d += LANES)
        sum += FN(load)(q + d) * FN(load)(k + d);
    return sum;
}

/* Lane j: the sum of the lanes of sum[j], for LANES of them; of few, lane j % FEW_KEYS, but for lanes FEW_KEYS apart. */
static inline __attribute__((always_inline)) vec FN(join_few)(const vec *sum)
{
    const vec first = ADD_PARTNERS(sum[0], sum[1], 1);
    if (LANES < 4)
        return first;
    return ADD_PARTNERS(first, ADD_PARTNERS(sum[FN(FEW_KEYS) - 2], sum[FN(FEW_KEYS) - 1], 1), 2);
}

static inline __attribute__((always_inline)) vec FN(join_all)(const vec *few)
{
    if (LANES <= 4)
        return few[0];
    const vec first = ADD_PARTNERS(few[0], few[1], 4);
    if (LANES == 8)
        return first;
    return ADD_PARTNERS(first, ADD_PARTNERS(few[LANES / 4 - 2], few[LANES / 4 - 1], 4), 8);
}

/* q k_j over whole vectors of features, for LANES keys: FEW_KEYS at a time, and a tree that turns sums into lanes. */
static inline __attribute__((always_inline)) vec FN(multiply_lanes)(const REAL *q, const REAL *k, ptrdiff_t k_stride,
                                                                    size_t features)
{
    vec few[LANES / FN(FEW_KEYS)];
    UNROLL
    for (int n = 0; n < LANES / FN(FEW_KEYS); n++, k += FN(FEW_KEYS) * k_stride) {
        vec sum[FN(FEW_KEYS)];
        UNROLL
        for (int j = 0; j < FN(FEW_KEYS); j++)
            sum[j] = FN(multiply_vectors)(q, k + j * k_stride, features);
        few[n] = FN(join_few)(sum);
    }
    return FN(join_all)(few);
}

/* q k_j for LANES keys at once: runs of RUN_FEATURES, what is beyond whole vectors feature by feature. */
static vec FN(score_keys)(const REAL *q, const REAL *k, ptrdiff_t k_stride, size_t d_k)
{
    const size_t whole = d_k / LANES * LANES;
    vec all = FN(multiply_lanes)(q, k, k_stride, FN(least)(whole, FN(RUN_FEATURES)));
    for (size_t d = FN(RUN_FEATURES); d < whole; d += FN(RUN_FEATURES))
        all += FN(multiply_lanes)(q + d, k + d, k_stride, FN(least)(whole - d, FN(RUN_FEATURES)));
    for (size_t d = whole; d < d_k; d++) {
        vec feature;
        for (int j = 0; j < LANES; j++)
            feature[j] = k[j * k_stride + (ptrdiff_t)d];
        all += q[d] * feature;
    }
    return all;
}

/*
 * Scores of one row, for keys from … end of those that begin at k, at most LANES. Where they are fewer, they are computed
 * together with ones before them, or one by one: in whichever lane it is computed, a score is the same bits.
 */
static inline void FN(score_few_row)(const REAL *q, const REAL *k, ptrdiff_t k_stride, size_t d_k, size_t from,
                                     size_t end, REAL scale, REAL *s)
{
    if (end >= LANES) {
        const size_t first = FN(least)(from, end - LANES);
        FN(store)(s + first, scale * FN(score_keys)(q, k + (ptrdiff_t)first * k_stride, k_stride, d_k));
        return;
    }
    for (size_t c = from; c < end; c++)
        s[c] = (scale * FN(score_keys)(q, k + (ptrdiff_t)c * k_stride, 0, d_k))[0];
}

static const REAL *FN(few_query)(const task_t *task, size_t r)
{
    const place_t place = FN(place_of)(task, r);
    return FN(head)(&task->job->q, task->b, place.h) + (ptrdiff_t)place.i * task->job->q.row_stride;
}

/* Scores of the tile times scale, a few keys for all rows at a time. Keys that do not exist have 0. */
static void FN(score_few_rows)(task_t *task, const tile_t *tile, REAL scale)
{
    const size_t d_k = task->job->d_k, end = FN(least)(tile->to, tile->keys);
    const ptrdiff_t k_stride = task->job->k.row_stride;
    const REAL *k = task->k_head + (ptrdiff_t)tile->key0 * k_stride;
    for (size_t from = tile->from; from < end; from += LANES)
        for (size_t r = 0; r < tile->rows; r++)
            FN(score_few_row)(FN(few_query)(task, r), k, k_stride, d_k, from, FN(least)(from + LANES, end), scale,
                              task->s + r * TILE_STRIDE);
    for (size_t r = 0; r < tile->rows && end < tile->to; r++)
        memset(task->s + r * TILE_STRIDE + end, 0, (tile->to - end) * sizeof(REAL));
}

/* n numbers, fewer than LANES, and 0 beyond them. */
static inline vec FN(load_some)(const REAL *from, size_t n)
{
    REAL some[LANES] = {0};
    memcpy(some, from, n * sizeof *some);
    return FN(load)(some);
}

/*
 * part[…] = the sum over keys from … end of p[key] v[key][…], for width vectors of features: sums of SUM_KEYS keys, which
 * begin at multiples of it, and their sum. v: the value of key from; odd: keys to be left out, NULL: none. Of a head that
 * is no vector wide there are some features alone.
 */
static inline __attribute__((always_inline)) void FN(context_few_tile)(const REAL *p, const REAL *v, ptrdiff_t v_stride,
                                                                       size_t from, size_t end, const uint8_t *odd,
                                                                       REAL *part, const int width, size_t some)
{
    vec all[FN(VALUES_WIDTH)];
    UNROLL
    for (int w = 0; w < width; w++)
        all[w] = (vec){0};
    for (size_t j = from; j < end;) {
        const size_t sum_end = FN(least)(end, j / SUM_KEYS * SUM_KEYS + SUM_KEYS);
        vec sum[FN(VALUES_WIDTH)];
        UNROLL
        for (int w = 0; w < width; w++)
            sum[w] = (vec){0};
        for (; j < sum_end; j++, v += v_stride) {
            if (odd != NULL && odd[j])
                continue;
            UNROLL
            for (int w = 0; w < width; w++)
                sum[w] += p[j] * (some < LANES ? FN(load_some)(v, some) : FN(load)(v + w * LANES));
        }
        UNROLL
        for (int w = 0; w < width; w++)
            all[w] += sum[w];
    }
    UNROLL
    for (int w = 0; w < width; w++)
        FN(store)(part + w * LANES, all[w]);
}

/* part = the sum over keys from … end of the tile, of one row with weights p: all features. */
static inline __attribute__((always_inline)) void FN(context_few_run)(const task_t *task, const tile_t *tile,
                                                                      const REAL *p, size_t from, size_t end,
                                                                      const uint8_t *odd, REAL *part)
{
    const size_t d_v = task->job->d_v;
    const ptrdiff_t v_stride = task->job->v.row_stride;
    const REAL *v = task->v_head + (ptrdiff_t)(tile->key0 + from) * v_stride;
    if (d_v < LANES) {
        FN(context_few_tile)(p, v, v_stride, from, end, odd, part, 1, d_v);
        return;
    }
    size_t d = 0;
    for (; d_v - d >= 8 * LANES; d += 8 * LANES)
        FN(context_few_tile)(p, v + d, v_stride, from, end, odd, part + d, 8, LANES);
    for (; d_v - d >= 4 * LANES; d += 4 * LANES)
        FN(context_few_tile)(p, v + d, v_stride, from, end, odd, part + d, 4, LANES);
    for (; d_v - d >= LANES; d += LANES)
        FN(context_few_tile)(p, v + d, v_stride, from, end, odd, part + d, 1, LANES);
    if (d < d_v) /* the last ones together with some that are there already, and are the same again */
        FN(context_few_tile)(p, v + d_v - LANES, v_stride, from, end, odd, part + d_v - LANES, 1, LANES);
}

/* Which values of the tile are not finite. */
static void FN(find_odd_values)(task_t *task, const tile_t *tile)
{
    size_t odd_keys = 0, end = FN(least)(tile->to, tile->keys);
    for (size_t j = tile->from; j < end; j++) {
        const REAL *v = task->v_head + (ptrdiff_t)(tile->key0 + j) * task->job->v.row_stride;
        task->key_is_odd[j] = !FN(all_finite)(v, task->job->d_v);
        odd_keys += task->key_is_odd[j];
    }
    task->block_odd_keys[0] = odd_keys;
}

/* All keys of one row onto o and o_low: runs of RUN_KEYS. skips_odd: leaving out the values that are not finite. */
static void FN(context_few_keys)(const task_t *task, const tile_t *tile, size_t r, bool skips_odd, REAL *o,
                                 REAL *o_low)
{
    const size_t tile_end = FN(least)(tile->to, tile->keys), columns = task->v_columns;
    const REAL *p = task->s + r * TILE_STRIDE;
    REAL *part = task->part;
    memset(part, 0, columns * sizeof(REAL));
    for (size_t from = tile->from, end; from < tile_end; from = end) {
        end = FN(least)(tile_end, from / RUN_KEYS * RUN_KEYS + RUN_KEYS);
        if (skips_odd)
            FN(context_few_run)(task, tile, p, from, end, task->key_is_odd, part);
        else
            FN(context_few_run)(task, tile, p, from, end, NULL, part);
        FN(add_row_exactly)(o, o_low, 1, part, columns);
    }
}

/*
 * A value that is not finite makes the sums of every row so, be its weight 0 or not. So all are taken first, and only
 * if a sum is not finite are the values looked at.
 */
static void FN(context_few_rows)(task_t *task, const tile_t *tile)
{
    const size_t columns = task->v_columns, bytes = columns * sizeof(REAL);
    task->block_odd_keys[0] = 0;
    for (size_t r = 0; r < tile->rows; r++) {
        REAL *o = task->o + (tile->row0 + r) * columns, *o_low = task->o_low + (tile->row0 + r) * columns;
        for (size_t d = 0; d < columns; d += LANES) {
            FN(store)(o + d, task->alpha[r] * FN(load)(o + d));
            FN(store)(o_low + d, task->alpha[r] * FN(load)(o_low + d));
        }
        memcpy(task->o_before, o, bytes);
        memcpy(task->o_before + columns, o_low, bytes);
        FN(context_few_keys)(task, tile, r, false, o, o_low);
        if (FN(all_finite)(o, task->job->d_v))
            continue;
        FN(find_odd_values)(task, tile);
        memcpy(o, task->o_before, bytes);
        memcpy(o_low, task->o_before + columns, bytes);
        FN(context_few_keys)(task, tile, r, true, o, o_low);
    }
}

#undef OWN_LANE
#undef PARTNER_LANE
#undef LANE_OF_B
#undef TWO_LANES
#undef FOUR_LANES
#undef EIGHT_LANES
#undef ALL_LANES
#undef ADD_PARTNERS
