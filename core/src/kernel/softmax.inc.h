/*
 * softmax.inc.h: what happens to one row of scaled scores: softcap, mask, biases, softmax, dropout, and what is kept of each for
 * the caller. Part of attend.inc.h.
 */
/* ---- the mask of a tile ---- */

static bool FN(allow_row)(task_t *task, const tile_t *tile, size_t r)
{
    const place_t place = FN(place_of)(task, tile->row0 + r);
    const size_t end = FN(least)(tile->to, tile->keys);
    uint8_t *allow = task->allow + r * TILE_KEYS;
    memset(allow + end, 0, tile->to - end);
    return attn_mask_row(task->job->mask, task->job->compute, task->b, place.h, place.i, task->span[r],
                         tile->key0 + tile->from, tile->key0 + end, allow + tile->from);
}

/* The columns that the spans of rows first … end reach, in whole panels; empty when there are none. */
static attn_span FN(reach_of_rows)(const task_t *task, const tile_t *tile, size_t first, size_t end)
{
    size_t from = tile->keys, to = 0;
    for (size_t r = first; r < end; r++) {
        attn_span span = task->span[r];
        size_t f = span.from > tile->key0 ? span.from - tile->key0 : 0;
        size_t t = FN(least)(span.to > tile->key0 ? span.to - tile->key0 : 0, tile->keys);
        if (f >= t)
            continue;
        from = f < from ? f : from;
        to = t > to ? t : to;
    }
    if (from >= to)
        return (attn_span){0, 0};
    return (attn_span){from / PANEL * PANEL, FN(round_up)(to, PANEL)};
}

/* Few queries are not divided into groups: all of them read the same keys. */
static void FN(set_reaches)(task_t *task, const tile_t *tile)
{
    for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS)
        task->reach[r / REGISTER_ROWS] =
            task->job->few_rows ? (attn_span){tile->from, tile->to}
                                : FN(reach_of_rows)(task, tile, r, FN(least)(r + REGISTER_ROWS, tile->rows));
}

/* A group's reach without the panels at either end that none of its rows sees: they hold zeros and add nothing. */
static void FN(narrow_reaches)(task_t *task, const tile_t *tile)
{
    for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS) {
        const uint8_t *seen = task->panel_is_seen + r / REGISTER_ROWS * PANELS;
        attn_span *reach = &task->reach[r / REGISTER_ROWS];
        while (reach->from < reach->to && !seen[reach->from / PANEL])
            reach->from += PANEL;
        while (reach->from < reach->to && !seen[reach->to / PANEL - 1])
            reach->to -= PANEL;
        if (reach->from >= reach->to)
            *reach = (attn_span){0, 0};
    }
}

/* Which panels are worth computing: by the spans, or by every row's allow where there is one. */
static void FN(find_seen_panels)(task_t *task, const tile_t *tile)
{
    const bool has_lookup = attn_mask_has_lookup(task->job->mask);
    for (size_t r = 0; r < tile->rows && !task->job->few_rows; r++) {
        const attn_span reach = task->reach[r / REGISTER_ROWS];
        uint8_t *seen = task->panel_is_seen + r / REGISTER_ROWS * PANELS;
        if (r % REGISTER_ROWS == 0)
            memset(seen, 0, PANELS);
        for (size_t c = reach.from; c < reach.to; c += PANEL) {
            uint8_t any = !has_lookup;
            for (size_t j = 0; has_lookup && j < PANEL; j++)
                any |= task->allow[r * TILE_KEYS + c + j];
            seen[c / PANEL] |= any;
        }
    }
}

/* The part of the tile that row r computes. */
static tile_t FN(tile_of_row)(const task_t *task, const tile_t *tile, size_t r)
{
    tile_t part = *tile;
    part.from = task->reach[r / REGISTER_ROWS].from;
    part.to = task->reach[r / REGISTER_ROWS].to;
    return part;
}

/* Whether the mask is known to hide the whole tile, without looking up all of it. */
static bool FN(hides_tile)(const task_t *task, const tile_t *tile)
{
    const struct attn_heads_job *job = task->job;
    const size_t rows = job->few_rows ? job->q_len : tile->rows;
    bool hides = true;
    for (size_t n = 0; n < job->heads_together && hides; n++)
        hides = attn_mask_hides_tile(job->mask, task->b, task->h + n, task->first_row + tile->row0, rows,
                                     tile->key0 + tile->from, tile->key0 + FN(least)(tile->to, tile->keys));
    return hides;
}

/* Narrows the tile to the columns that the spans of its rows reach, and looks the rest of the mask up. */
static bool FN(any_allowed)(task_t *task, tile_t *tile)
{
    const attn_span reach = FN(reach_of_rows)(task, tile, 0, tile->rows);
    if (reach.from >= reach.to)
        return false;
    tile->from = reach.from;
    tile->to = reach.to;
    FN(set_reaches)(task, tile);
    const attn_mask *mask = task->job->mask;
    if (!attn_mask_has_lookup(mask)) {
        for (size_t r = 0; r < tile->rows; r++)
            if (task->span[r].from < tile->key0 + tile->keys && task->span[r].to > tile->key0)
                task->row_sees_key[tile->row0 + r] |= FN(SEES_KEY);
        FN(find_seen_panels)(task, tile);
        return true;
    }
    if (FN(hides_tile)(task, tile))
        return false;
    bool any = false;
    for (size_t r = 0; r < tile->rows; r++)
        if (FN(allow_row)(task, tile, r)) {
            task->row_sees_key[tile->row0 + r] |= FN(SEES_KEY);
            any = true;
        }
    FN(find_seen_panels)(task, tile);
    if (!task->job->few_rows)
        FN(narrow_reaches)(task, tile);
    return any;
}

/* Puts -infinity where the row may not attend. */
static void FN(mask_row)(task_t *task, const tile_t *tile, size_t r, REAL *x)
{
    const REAL hidden = -(REAL)INFINITY;
    if (!attn_mask_has_lookup(task->job->mask)) {
        attn_span span = task->span[r];
        size_t f = span.from > tile->key0 ? span.from - tile->key0 : 0;
        size_t t = span.to > tile->key0 ? span.to - tile->key0 : 0;
        for (size_t c = tile->from; c < tile->to && c < f; c++)
            x[c] = hidden;
        for (size_t c = t > tile->from ? t : tile->from; c < tile->to; c++)
            x[c] = hidden;
        return;
    }
    const uint8_t *allow = task->allow + r * TILE_KEYS;
    for (size_t c = tile->from; c < tile->to; c += LANES)
        FN(store)(x + c, FN(select)(FN(mask_from_bytes)(allow + c), FN(load)(x + c), FN(splat)(hidden)));
}

/* ---- maps that the caller wants ---- */

/* The row of a map that belongs to a place; NULL when it is not kept. */
static REAL *FN(map_row)(const task_t *task, int which, place_t place)
{
    const struct attn_heads_job *job = task->job;
    const struct attn_map *map = &job->map[which];
    if (map->data == NULL)
        return NULL;
    bool all_heads = map->all_heads || job->head_slot == NULL;
    size_t head = all_heads ? place.h : job->head_slot[place.h], heads = all_heads ? job->heads : job->kept_heads;
    size_t query = job->query_slot == NULL ? place.i : job->query_slot[place.i];
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
    REAL *row = FN(map_row)(task, which, FN(place_of)(task, tile->row0 + r));
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
    const place_t place = FN(place_of)(task, tile->row0 + r);
    const size_t head = task->b * job->heads + place.h;
    REAL *row = FN(map_row)(task, which, place);
    if (row == NULL)
        return;
    const uint8_t *seen = job->key_is_seen + head * job->kv_len;
    bool sees = job->query_sees[head * job->q_len + place.i] != 0;
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

static void FN(cap_row)(REAL *x, size_t n, REAL softcap)
{
    for (size_t c = 0; c < n; c += LANES)
        FN(store)(x + c, softcap * FN(tanh)(FN(load)(x + c) / softcap));
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

/* The largest of x and, in *low, the smallest. */
static REAL FN(extremes)(const REAL *x, size_t n, REAL *low)
{
    vec high[2], least[2];
    high[0] = high[1] = FN(splat)(-(REAL)INFINITY);
    least[0] = least[1] = FN(splat)((REAL)INFINITY);
    for (size_t c = 0; c < n; c += PANEL)
        for (int half = 0; half < 2; half++) {
            const vec y = FN(load)(x + c + (size_t)half * LANES);
            high[half] = FN(larger)(y, high[half]);
            least[half] = FN(smaller)(y, least[half]);
        }
    *low = -FN(largest_lane)(-FN(smaller)(least[0], least[1]));
    return FN(largest_lane)(FN(larger)(high[0], high[1]));
}

/* x += bias; returns the largest sum, and takes the largest finite |x| from before it into *max_abs. */
static REAL FN(add_and_measure)(REAL *x, const REAL *bias, size_t n, REAL *max_abs)
{
    vec m = FN(splat)(-(REAL)INFINITY), a = FN(splat)(*max_abs);
    const vec infinity = FN(splat)((REAL)INFINITY);
    for (size_t c = 0; c < n; c += LANES) {
        vec y = FN(load)(x + c), size = FN(absolute)(y);
        a = FN(larger)((vec)((ivec)size & (size < infinity)), a);
        y += FN(load)(bias + c);
        m = FN(larger)(y, m);
        FN(store)(x + c, y);
    }
    *max_abs = FN(largest_lane)(a);
    return FN(largest_lane)(m);
}

/* Adds masks.bias. Where the mask hides a key the sum stays -infinity. */
static void FN(add_mask_bias)(const task_t *task, const tile_t *tile, size_t r, REAL *x)
{
    const attn_mask *mask = task->job->mask;
    const place_t place = FN(place_of)(task, tile->row0 + r);
    const size_t end = FN(least)(tile->to, tile->keys);
    const REAL *bias = (const REAL *)mask->bias + (ptrdiff_t)task->b * mask->bias_stride[0] +
                       (ptrdiff_t)place.h * mask->bias_stride[1] + (ptrdiff_t)place.i * mask->bias_stride[2];
    for (size_t c = tile->from; c < end; c++)
        x[c] += bias[(ptrdiff_t)(tile->key0 + c) * mask->bias_stride[3]];
}

/* x = exp(x - m) in columns from … to of a tile; returns the sum, taken in runs of RUN_KEYS. */
static REAL FN(exponentiate)(REAL *x, size_t from, size_t to, REAL m)
{
    vec sum = {0};
    for (size_t c = from; c < to;) {
        const size_t end = FN(least)(to, c / RUN_KEYS * RUN_KEYS + RUN_KEYS);
        vec part = {0};
        for (; c < end; c += LANES) {
            vec p = FN(exp)(FN(load)(x + c) - m);
            FN(store)(x + c, p);
            part += p;
        }
        sum += part;
    }
    return FN(sum_lanes)(sum);
}

/* Sum of (x - m) exp(x - m) over the keys that are not hidden. */
static REAL FN(entropy_sum)(const REAL *x, size_t n, REAL m)
{
    vec sum = {0};
    const vec zero = {0};
    for (size_t c = 0; c < n; c += LANES) {
        vec y = FN(load)(x + c);
        vec p = FN(exp)(y - m);
        sum += (vec)((ivec)((y - m) * p) & (p != zero)); /* p ln p goes to 0, also where y - m is -infinity */
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
    const place_t place = FN(place_of)(task, tile->row0 + r);
    uint64_t row = ((uint64_t)task->b * job->heads + place.h) * job->q_len + place.i;
    size_t end = tile->to < tile->keys ? tile->to : tile->keys;
    attn_dropout_keep(job->dropout_seed, DROPOUT_ATTENTION, job->dropout,
                      row * job->kv_len + tile->key0 + tile->from, end - tile->from, task->keep);
    for (size_t c = tile->from; c < end; c++)
        x[c] = task->keep[c - tile->from] ? x[c] * gain : 0;
}

/* How many scores the mask lets through, and how many of them the softcap c holds: c tanh 3 <= |x|, which is 3 c <= |s|. */
static void FN(count_capped)(task_t *task, const REAL *x, size_t n)
{
    const vec infinity = FN(splat)((REAL)INFINITY), limit = FN(splat)((REAL)(task->job->softcap * 0.99505475368673045));
    ivec capped = {0}, saturated = {0};
    for (size_t c = 0; c < n; c += LANES) {
        const vec size = FN(absolute)(FN(load)(x + c));
        capped -= size < infinity;
        saturated -= (size < infinity) & (size >= limit);
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        task->capped += (size_t)capped[lane];
        task->saturated += (size_t)saturated[lane];
    }
}

/* Whether the row sees every column of the tile, and its scores are what they are without bias or softcap. */
static bool FN(is_plain_row)(const task_t *task, const tile_t *tile, size_t r)
{
    const struct attn_heads_job *job = task->job;
    return !job->few_rows && job->softcap == 0 && !attn_mask_has_lookup(job->mask) &&
           job->distance_bias.data == NULL && task->span[r].from <= tile->key0 + tile->from && task->span[r].to >= tile->key0 + tile->to;
}

/* Masks the row and adds its biases; returns its largest score, and takes the largest |score| before them into *max_abs. */
static REAL FN(mask_and_measure)(task_t *task, const tile_t *tile, size_t r, REAL *max_abs)
{
    REAL *x = task->s + r * TILE_STRIDE, largest;
    const size_t n = tile->to - tile->from;
    if (FN(is_plain_row)(task, tile, r)) {
        REAL low, high = FN(extremes)(x + tile->from, n, &low);
        if (high - low < (REAL)INFINITY) {
            *max_abs = high > *max_abs ? high : *max_abs;
            *max_abs = -low > *max_abs ? -low : *max_abs;
            return high;
        }
        return FN(largest)(x + tile->from, n, max_abs);
    }
    FN(mask_row)(task, tile, r, x);
    if (task->job->softcap > 0)
        FN(count_capped)(task, x + tile->from, n);
    const struct attn_distance_bias *distance = &task->job->distance_bias;
    if (distance->data != NULL) {
        const place_t place = FN(place_of)(task, tile->row0 + r);
        const REAL *bias = (const REAL *)distance->data + attn_distance_bias_row(distance, task->b, place.h, place.i) +
                           tile->key0 + tile->from;
        largest = FN(add_and_measure)(x + tile->from, bias, n, max_abs);
    } else {
        largest = FN(largest)(x + tile->from, n, max_abs);
    }
    if (task->job->mask->bias != NULL) {
        REAL with_bias = 0;
        FN(add_mask_bias)(task, tile, r, x);
        largest = FN(largest)(x + tile->from, n, &with_bias);
    }
    return largest;
}

/*
 * Rows r … r + rows of the tile: each step is taken for all of them before the next, because what a row comes to takes
 * long to arrive, but no longer for many side by side.
 */
typedef struct {
    size_t r, rows;
    REAL before[GROUP]; /* the running maximum */
    REAL shift[GROUP];  /* and as it is now, or 0 where there is none: what the exponentials are taken against */
    REAL *alpha;        /* e^(before - shift); in the task, with 1 for rows that do not exist */
    REAL sum[GROUP];    /* of the weights in this tile */
} FN(group);

static void FN(raise_maxima)(task_t *task, const tile_t *tile, FN(group) *group, REAL *max_abs)
{
    group->alpha = task->alpha + group->r;
    memset(group->alpha, 0, GROUP * sizeof(REAL));
    for (size_t n = 0; n < group->rows; n++) {
        const size_t r = group->r + n, row = tile->row0 + r;
        REAL *x = task->s + r * TILE_STRIDE;
        if (task->job->softcap > 0)
            FN(cap_row)(x + tile->from, tile->to - tile->from, (REAL)task->job->softcap);
        const REAL before = task->m[row], largest = FN(mask_and_measure)(task, tile, r, max_abs);
        FN(keep_row)(task, tile, MAP_MASKED, r, x, -(REAL)INFINITY);
        const REAL m = task->m[row] = largest > before ? largest : before;
        /* Nothing but -infinity so far: any finite number keeps the exponentials at 0 instead of NaN. */
        group->shift[n] = m == -(REAL)INFINITY ? 0 : m;
        group->before[n] = before;
        group->alpha[n] = m == before ? 0 : before - group->shift[n];
    }
    FN(exp_all)(group->alpha, GROUP);
}

/* Before the weights take the place of the scores. */
static void FN(add_entropies)(task_t *task, const tile_t *tile, const FN(group) *group)
{
    for (size_t n = 0; n < group->rows && task->job->entropy != NULL; n++) {
        const size_t row = tile->row0 + group->r + n;
        const REAL *x = task->s + (group->r + n) * TILE_STRIDE, alpha = group->alpha[n], m = task->m[row];
        REAL moved = alpha == 0 || m == group->before[n] ? 0 : (group->before[n] - group->shift[n]) * task->l[row];
        task->entropy_sum[row] = alpha * (task->entropy_sum[row] + moved) +
                                 FN(entropy_sum)(x + tile->from, tile->to - tile->from, group->shift[n]);
    }
}

/* What is kept of the weights, and what dropout leaves of them. */
static void FN(keep_weights)(task_t *task, const tile_t *tile, size_t r)
{
    REAL *x = task->s + r * TILE_STRIDE;
    if (task->block_max != NULL)
        task->block_max[(tile->row0 + r) * task->key_blocks + tile->key0 / TILE_KEYS] = task->m[tile->row0 + r];
    FN(keep_row)(task, tile, MAP_ATTENTION, r, x, 0);
    FN(keep_row)(task, tile, MAP_MEAN_SOURCE, r, x, 0);
    if (task->job->dropout > 0) {
        FN(drop_row)(task, tile, r, x);
        FN(keep_row)(task, tile, MAP_DROPPED, r, x, 0);
    }
}

/* A group's scaled scores become unnormalised weights, its running maxima and sums what they are with this tile. */
static void FN(softmax_group)(task_t *task, const tile_t *tile, size_t r, size_t rows, REAL *max_abs)
{
    FN(group) group = {.r = r, .rows = rows};
    FN(raise_maxima)(task, tile, &group, max_abs);
    FN(add_entropies)(task, tile, &group);
    for (size_t n = 0; n < rows; n++)
        group.sum[n] = FN(exponentiate)(task->s + (r + n) * TILE_STRIDE, tile->from, tile->to, group.shift[n]);
    for (size_t n = 0; n < rows; n++) {
        const size_t row = tile->row0 + r + n;
        FN(add_exactly)(&task->l[row], &task->l_low[row], group.alpha[n], group.sum[n]);
        if (FN(keeps_weights)(task->job) || task->job->dropout > 0)
            FN(keep_weights)(task, tile, r + n);
    }
}
