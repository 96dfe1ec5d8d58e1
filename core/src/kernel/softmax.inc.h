/*
 * softmax.inc.h: the rows of scaled scores: softcap, mask, biases, softmax, dropout, and the maps that the caller
 * wants. Part of a kernel.
 */
#ifndef ATTN_KERNEL_SOFTMAX_INC_H
#define ATTN_KERNEL_SOFTMAX_INC_H

#include "formulas/formulas.h"
#include "kernel/dropout.inc.h"
#include "kernel/scratch.inc.h"

/* ---- the mask of a tile ---- */

/* Writes the mask of row r into task->allow; returns whether the row sees any key of the tile. */
static bool allow_row(struct task *task, const struct tile *tile, size_t r)
{
    const struct position position = position_of(task, tile->row0 + r);
    const size_t end = attn_min(tile->to, tile->keys);
    uint8_t *allow = task->allow + r * TILE_KEYS;
    memset(allow + end, 0, tile->to - end);
    return attn_mask_row(task->job->mask, task->job->compute, task->b, position.h, position.i,
                         task->span[tile->row0 + r], tile->key0 + tile->from, tile->key0 + end, allow + tile->from);
}

/* The smallest range of whole panels that has the spans of rows first … end; empty if none reaches the tile. */
static attn_span reach_of_rows(const struct task *task, const struct tile *tile, size_t first, size_t end)
{
    size_t from = tile->keys, to = 0;
    for (size_t r = first; r < end; r++) {
        attn_span span = task->span[tile->row0 + r];
        size_t f = span.from > tile->key0 ? span.from - tile->key0 : 0;
        size_t t = attn_min(span.to > tile->key0 ? span.to - tile->key0 : 0, tile->keys);
        if (f >= t)
            continue;
        from = f < from ? f : from;
        to = t > to ? t : to;
    }
    if (from >= to)
        return (attn_span){0, 0};
    return (attn_span){from / PANEL * PANEL, attn_round_up(to, PANEL)};
}

/* In decoding all rows have the reach of the tile: they read the same keys. */
static void set_reaches(struct task *task, const struct tile *tile)
{
    for (size_t r = 0; r < tile->rows; r += REGISTER_ROWS)
        task->reach[r / REGISTER_ROWS] = is_decode(task->job)
                                             ? (attn_span){tile->from, tile->to}
                                             : reach_of_rows(task, tile, r, attn_min(r + REGISTER_ROWS, tile->rows));
}

/* Cuts off the panels at either end of a reach that no row of the group sees: their weights are 0. */
static void narrow_reaches(struct task *task, const struct tile *tile)
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

/* Which panels a row of each group sees: all panels of the reach, or, where the mask is looked up, those of allow. */
static void find_seen_panels(struct task *task, const struct tile *tile)
{
    const bool has_lookup = attn_mask_has_lookup(task->job->mask);
    for (size_t r = 0; r < tile->rows && !is_decode(task->job); r++) {
        const attn_span reach = task->reach[r / REGISTER_ROWS];
        uint8_t *seen = task->panel_is_seen + r / REGISTER_ROWS * PANELS;
        if (r % REGISTER_ROWS == 0) {
            memset(seen, 0, PANELS);
            memset(seen + reach.from / PANEL, !has_lookup, (reach.to - reach.from) / PANEL);
        }
        for (size_t c = reach.from; c < reach.to && has_lookup; c += PANEL)
            for (size_t j = 0; j < PANEL; j++)
                seen[c / PANEL] |= task->allow[r * TILE_KEYS + c + j];
    }
}

/* The tile with the columns that row r computes. */
static struct tile tile_of_row(const struct task *task, const struct tile *tile, size_t r)
{
    struct tile part = *tile;
    part.from = task->reach[r / REGISTER_ROWS].from;
    part.to = task->reach[r / REGISTER_ROWS].to;
    return part;
}

/* Whether the mask hides the whole tile, as far as is known without a lookup of each row. */
static bool hides_tile(const struct task *task, const struct tile *tile)
{
    const struct attn_heads_job *job = task->job;
    const size_t rows = is_decode(job) ? job->q_len : tile->rows;
    bool hides = true;
    for (size_t n = 0; n < job->heads_together && hides; n++)
        hides = attn_mask_hides_tile(job->mask, task->b, task->h + n, task->first_row + tile->row0, rows,
                                     tile->key0 + tile->from, tile->key0 + attn_min(tile->to, tile->keys));
    return hides;
}

/* Narrows the tile to the columns that its rows reach, and looks up the mask. Returns whether any row sees any key. */
static bool find_allowed(struct task *task, struct tile *tile)
{
    const attn_span reach = reach_of_rows(task, tile, 0, tile->rows);
    if (reach.from >= reach.to)
        return false;
    tile->from = reach.from;
    tile->to = reach.to;
    set_reaches(task, tile);
    const attn_mask *mask = task->job->mask;
    if (!attn_mask_has_lookup(mask)) {
        for (size_t r = 0; r < tile->rows; r++)
            if (task->span[tile->row0 + r].from < tile->key0 + tile->keys && task->span[tile->row0 + r].to > tile->key0)
                task->row_sees_key[tile->row0 + r] |= SEES_KEY;
        find_seen_panels(task, tile);
        return true;
    }
    if (hides_tile(task, tile))
        return false;
    bool any = false;
    for (size_t r = 0; r < tile->rows; r++)
        if (allow_row(task, tile, r)) {
            task->row_sees_key[tile->row0 + r] |= SEES_KEY;
            any = true;
        }
    find_seen_panels(task, tile);
    if (!is_decode(task->job))
        narrow_reaches(task, tile);
    return any;
}

/* Writes -infinity where the row may not attend. */
static void mask_row(struct task *task, const struct tile *tile, size_t r, REAL *x)
{
    const REAL hidden = -(REAL)INFINITY;
    if (!attn_mask_has_lookup(task->job->mask)) {
        attn_span span = task->span[tile->row0 + r];
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
        store(x + c, blend(mask_from_bytes(allow + c), load(x + c), splat(hidden)));
}

/* ---- maps that the caller wants ---- */

/* The row of a map for a position; NULL if the map does not keep it. */
static REAL *map_row(const struct task *task, int which, struct position position)
{
    const struct attn_heads_job *job = task->job;
    const struct attn_map *map = &job->map[which];
    if (map->data == NULL)
        return NULL;
    bool all_heads = map->all_heads || job->head_slot == NULL;
    size_t head = all_heads ? position.h : job->head_slot[position.h], heads = all_heads ? job->heads : job->kept_heads;
    size_t query = job->query_slot == NULL ? position.i : job->query_slot[position.i];
    if (head == SIZE_MAX || query == SIZE_MAX)
        return NULL;
    return (REAL *)map->data + ((task->b * heads + head) * job->kept_queries + query) * job->kept_keys;
}

static void keep_cell(const struct task *task, REAL *row, size_t j, REAL value)
{
    const size_t *slot = task->job->key_slot;
    if (slot == NULL)
        row[j] = value;
    else if (slot[j] != SIZE_MAX)
        row[slot[j]] = value;
}

/* Keeps x[column] for columns from … to of row r, and fill for the rest of the tile. x NULL: fill for all. */
static void keep_row(const struct task *task, const struct tile *tile, int which, size_t r, const REAL *x, REAL fill)
{
    if (task->job->map[which].data == NULL)
        return;
    REAL *row = map_row(task, which, position_of(task, tile->row0 + r));
    if (row == NULL)
        return;
    size_t from = x == NULL ? tile->keys : tile->from, to = attn_min(tile->to, tile->keys);
    for (size_t c = 0; c < from; c++)
        keep_cell(task, row, tile->key0 + c, fill);
    if (x == NULL)
        return;
    if (task->job->key_slot == NULL)
        memcpy(row + tile->key0 + from, x + from, (to - from) * sizeof(REAL));
    else
        for (size_t c = from; c < to; c++)
            keep_cell(task, row, tile->key0 + c, x[c]);
    for (size_t c = to; c < tile->keys; c++)
        keep_cell(task, row, tile->key0 + c, fill);
}

/* scores and scaled have every score of a key that some query sees, in rows of queries that see some key. */
static void keep_seen_row(const struct task *task, const struct tile *tile, int which, size_t r, const REAL *x)
{
    const struct attn_heads_job *job = task->job;
    const struct position position = position_of(task, tile->row0 + r);
    const size_t head = task->b * job->heads + position.h;
    REAL *row = map_row(task, which, position);
    if (row == NULL)
        return;
    const uint8_t *seen = job->key_is_seen + head * job->kv_len;
    bool sees = job->query_sees[head * job->q_len + position.i] != 0;
    for (size_t c = 0; c < tile->keys; c++)
        keep_cell(task, row, tile->key0 + c, sees && seen[tile->key0 + c] ? x[c] : -(REAL)INFINITY);
}

static void keep_hidden_tile(const struct task *task, const struct tile *tile)
{
    if (!wants_maps(task->job))
        return;
    for (size_t r = 0; r < tile->rows; r++) {
        keep_row(task, tile, MAP_MASKED, r, NULL, -(REAL)INFINITY);
        if (!task->holds_rows) {
            keep_row(task, tile, MAP_ATTENTION, r, NULL, 0);
            keep_row(task, tile, MAP_MEAN_SOURCE, r, NULL, 0);
            keep_row(task, tile, MAP_DROPPED, r, NULL, 0);
        }
        if (task->block_max != NULL)
            task->block_max[(tile->row0 + r) * task->key_blocks + tile->key0 / TILE_KEYS] = -(REAL)INFINITY;
    }
}

/* ---- the softmax of a tile ---- */

static void cap_numbers(REAL *x, size_t n, REAL softcap)
{
    for (size_t c = 0; c < n; c += LANES)
        store(x + c, softcap * tanh_vec(load(x + c) / softcap));
}

ALWAYS_INLINE void cap_row(const struct task *task, REAL *x, size_t n)
{
    if (task->job->options->softcap > 0)
        cap_numbers(x, n, (REAL)task->job->options->softcap);
}

/* Returns the largest x, and raises *max_abs to the largest finite |x|. */
static REAL max_of(const REAL *x, size_t n, REAL *max_abs)
{
    vec m = splat(-(REAL)INFINITY), a = splat(*max_abs);
    const vec infinity = splat((REAL)INFINITY);
    for (size_t c = 0; c < n; c += LANES) {
        vec y = load(x + c), size = abs_vec(y);
        m = max_vec(y, m);
        a = max_vec((vec)((ivec)size & (size < infinity)), a);
    }
    *max_abs = max_lane(a);
    return max_lane(m);
}

/* All ones in the lanes of columns c … c + LANES that are in seen. */
static inline ivec lanes_of_span(size_t c, attn_span seen)
{
    static const INTEGER lanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    ivec column;
    memcpy(&column, lanes, sizeof column);
    column += (INTEGER)c;
    return (column >= (INTEGER)seen.from) & (column < (INTEGER)seen.to);
}

/* x = -infinity in the columns of the tile that are not in seen. Returns the largest x, and the smallest seen in *low. */
static REAL hide_and_measure(REAL *x, const struct tile *tile, attn_span seen, REAL *low)
{
    const vec infinity = splat((REAL)INFINITY);
    vec high[2] = {-infinity, -infinity}, least[2] = {infinity, infinity};
    for (size_t c = tile->from; c < tile->to; c += PANEL) {
        const bool is_edge = c < seen.from || c + PANEL > seen.to;
        for (int half = 0; half < 2; half++) {
            REAL *at = x + c + (size_t)half * LANES;
            vec y = load(at), y_low = y;
            if (is_edge) {
                const ivec is_seen = lanes_of_span(c + (size_t)half * LANES, seen);
                y_low = blend(is_seen, y, infinity);
                y = blend(is_seen, y, -infinity);
                store(at, y);
            }
            high[half] = max_vec(y, high[half]);
            least[half] = min_vec(y_low, least[half]);
        }
    }
    *low = -max_lane(-min_vec(least[0], least[1]));
    return max_lane(max_vec(high[0], high[1]));
}

/* x += bias. Returns the largest sum, and raises *max_abs to the largest finite |x| before the addition. */
static REAL add_bias_and_measure(REAL *x, const REAL *bias, size_t n, REAL *max_abs)
{
    vec m = splat(-(REAL)INFINITY), a = splat(*max_abs);
    const vec infinity = splat((REAL)INFINITY);
    for (size_t c = 0; c < n; c += LANES) {
        vec y = load(x + c), size = abs_vec(y);
        a = max_vec((vec)((ivec)size & (size < infinity)), a);
        y += load(bias + c);
        m = max_vec(y, m);
        store(x + c, y);
    }
    *max_abs = max_lane(a);
    return max_lane(m);
}

/* Adds masks.bias. The sum of a hidden key stays -infinity. */
static void add_mask_bias(const struct task *task, const struct tile *tile, size_t r, REAL *x)
{
    const attn_mask *mask = task->job->mask;
    const struct position position = position_of(task, tile->row0 + r);
    const size_t end = attn_min(tile->to, tile->keys);
    const REAL *bias = (const REAL *)mask->bias + (ptrdiff_t)task->b * mask->bias_stride[0] +
                       (ptrdiff_t)position.h * mask->bias_stride[1] + (ptrdiff_t)position.i * mask->bias_stride[2];
    for (size_t c = tile->from; c < end; c++)
        x[c] += bias[(ptrdiff_t)(tile->key0 + c) * mask->bias_stride[3]];
}

/*
 * x = exp(x - m) in columns from … to of a tile, for x <= m. Returns the sum, added up in runs of RUN_KEYS. is_normal: no
 * result is below the smallest normal number, except the 0 of hidden keys.
 */
ALWAYS_INLINE REAL exponentiate_as(REAL *x, size_t from, size_t to, REAL m, const bool is_normal)
{
    vec sum = {0};
    for (size_t c = from; c < to;) {
        const size_t end = attn_min(to, c / RUN_KEYS * RUN_KEYS + RUN_KEYS);
        vec part = {0};
        for (; c < end; c += LANES) {
            const vec y = load(x + c) - m, p = is_normal ? exp_normal(y) : exp_up_to_highest(y);
            store(x + c, p);
            part += p;
        }
        sum += part;
    }
    return sum_lanes(sum);
}

static REAL exponentiate(REAL *x, size_t from, size_t to, REAL m, bool is_normal)
{
    return is_normal ? exponentiate_as(x, from, to, m, true) : exponentiate_as(x, from, to, m, false);
}

/* Sum of (x - m) exp(x - m) over the keys that are not hidden. */
static REAL entropy_sum(const REAL *x, size_t n, REAL m)
{
    vec sum = {0};
    const vec zero = {0};
    for (size_t c = 0; c < n; c += LANES) {
        vec y = load(x + c);
        vec p = exp_vec(y - m);
        sum += (vec)((ivec)((y - m) * p) & (p != zero)); /* p ln p is 0 at p = 0, where y - m may be -infinity */
    }
    return sum_lanes(sum);
}

static REAL exp_scalar(REAL x)
{
    return exp_vec(splat(x))[0];
}

static void exp_all(void *numbers, size_t n)
{
    REAL *x = numbers;
    for (size_t c = 0; c < n; c += LANES)
        store(x + c, exp_vec(load(x + c)));
}

static void drop_row(struct task *task, const struct tile *tile, size_t r, REAL *x)
{
    const struct attn_heads_job *job = task->job;
    const REAL gain = job->dropout < 1 ? (REAL)(1 / (1 - job->dropout)) : 0;
    const struct position position = position_of(task, tile->row0 + r);
    uint64_t row = ((uint64_t)task->b * job->heads + position.h) * job->q_len + position.i;
    dropout_keep(job->options->dropout_seed, DROPOUT_ATTENTION, job->dropout,
                 row * job->kv_len + tile->key0 + tile->from, tile->to - tile->from, task->keep);
    for (size_t c = tile->from; c < tile->to; c += LANES)
        store(x + c, (vec)((ivec)(load(x + c) * gain) & mask_from_bytes(task->keep + (c - tile->from))));
}

/* Counts the scores that are not hidden, and those that the softcap c saturates: |x| >= c tanh 3, so |s| >= 3 c. */
static void count_capped(struct task *task, const REAL *x, size_t n)
{
    const vec infinity = splat((REAL)INFINITY),
              limit = splat((REAL)(task->job->options->softcap * 0.99505475368673045));
    ivec capped = {0}, saturated = {0};
    for (size_t c = 0; c < n; c += LANES) {
        const vec size = abs_vec(load(x + c));
        capped -= size < infinity;
        saturated -= (size < infinity) & (size >= limit);
    }
    for (size_t lane = 0; lane < LANES; lane++) {
        task->capped += (size_t)capped[lane];
        task->saturated += (size_t)saturated[lane];
    }
}

/* Whether nothing but spans changes the scaled scores. */
static bool has_plain_scores(const struct attn_heads_job *job)
{
    return job->options->softcap == 0 && !attn_mask_has_lookup(job->mask) && job->distance_bias.data == NULL;
}

/*
 * Masks the row and adds its biases. Returns the largest sum, and raises *max_abs to the largest |score|. *low: the
 * smallest sum of a key that is not hidden, or -infinity.
 */
static REAL mask_and_measure(struct task *task, const struct tile *tile, size_t r, REAL *low, REAL *max_abs)
{
    REAL *x = task->s + r * task->s_stride, largest;
    const size_t n = tile->to - tile->from;
    if (has_plain_scores(task->job)) {
        const attn_span seen = columns_of_span(tile, task->span[tile->row0 + r]);
        const REAL high = hide_and_measure(x, tile, seen, low);
        if (!(high - *low < (REAL)INFINITY))
            return max_of(x + tile->from, n, max_abs);
        *max_abs = high > *max_abs ? high : *max_abs;
        *max_abs = -*low > *max_abs ? -*low : *max_abs;
        return high;
    }
    *low = -(REAL)INFINITY;
    mask_row(task, tile, r, x);
    if (task->job->options->softcap > 0)
        count_capped(task, x + tile->from, n);
    const struct attn_distance_bias *distance = &task->job->distance_bias;
    if (distance->data != NULL) {
        const struct position position = position_of(task, tile->row0 + r);
        const REAL *bias = (const REAL *)distance->data +
                           attn_distance_bias_row(distance, task->b, position.h, position.i) + tile->key0 + tile->from;
        largest = add_bias_and_measure(x + tile->from, bias, n, max_abs);
    } else {
        largest = max_of(x + tile->from, n, max_abs);
    }
    if (task->job->mask->bias != NULL) {
        REAL with_bias = 0;
        add_mask_bias(task, tile, r, x);
        largest = max_of(x + tile->from, n, &with_bias);
    }
    return largest;
}

/*
 * Rows r … r + rows of the tile. Each step runs over all of them before the next step, so that the latency of one row's
 * reductions is hidden behind the other rows.
 */
struct row_group {
    size_t r, rows;
    REAL before[SOFTMAX_ROWS];    /* the running maximum before this tile */
    REAL shift[SOFTMAX_ROWS];     /* the running maximum now, or 0 where it is -infinity: exp(x - shift) */
    REAL *alpha;                  /* e^(before - shift), in the memory of the task; 1 for rows that do not exist */
    REAL sum[SOFTMAX_ROWS];       /* of the weights of this tile */
    bool is_normal[SOFTMAX_ROWS]; /* no weight of a key that is not hidden is subnormal */
};

static void raise_maxima(struct task *task, const struct tile *tile, struct row_group *group, REAL *max_abs)
{
    group->alpha = task->alpha + group->r;
    memset(group->alpha, 0, SOFTMAX_ROWS * sizeof(REAL));
    for (size_t n = 0; n < group->rows; n++) {
        const size_t r = group->r + n, row = tile->row0 + r;
        REAL *x = task->s + r * task->s_stride;
        cap_row(task, x + tile->from, tile->to - tile->from);
        REAL low;
        const REAL before = task->m[row], largest = mask_and_measure(task, tile, r, &low, max_abs);
        keep_row(task, tile, MAP_MASKED, r, x, -(REAL)INFINITY);
        const REAL m = task->m[row] = largest > before ? largest : before;
        /* All scores so far are -infinity: with any finite shift the exponentials are 0, and not NaN. */
        group->shift[n] = m == -(REAL)INFINITY ? 0 : m;
        group->is_normal[n] = low - group->shift[n] >= EXP_NORMAL;
        group->before[n] = before;
        group->alpha[n] = m == before ? 0 : before - group->shift[n];
    }
    exp_all(group->alpha, SOFTMAX_ROWS);
}

/* Adds to the entropies, before the weights overwrite the scores. */
static void add_entropies(struct task *task, const struct tile *tile, const struct row_group *group)
{
    for (size_t n = 0; n < group->rows && task->job->entropy != NULL; n++) {
        const size_t row = tile->row0 + group->r + n;
        const REAL *x = task->s + (group->r + n) * task->s_stride, alpha = group->alpha[n], m = task->m[row];
        REAL moved = alpha == 0 || m == group->before[n] ? 0 : (group->before[n] - group->shift[n]) * task->l[row];
        task->entropy_sum[row] = alpha * (task->entropy_sum[row] + moved) +
                                 entropy_sum(x + tile->from, tile->to - tile->from, group->shift[n]);
    }
}

/* Keeps the weights where the caller wants them, or in task->s for finish_maps, and applies dropout. */
static void keep_weights(struct task *task, const struct tile *tile, size_t r)
{
    REAL *x = task->s + r * task->s_stride;
    if (task->block_max != NULL)
        task->block_max[(tile->row0 + r) * task->key_blocks + tile->key0 / TILE_KEYS] = task->m[tile->row0 + r];
    if (task->holds_rows) {
        memset(x, 0, tile->from * sizeof(REAL));
        memset(x + tile->to, 0, (attn_round_up(tile->keys, PANEL) - tile->to) * sizeof(REAL));
        return;
    }
    keep_row(task, tile, MAP_ATTENTION, r, x, 0);
    keep_row(task, tile, MAP_MEAN_SOURCE, r, x, 0);
    if (task->job->dropout > 0) {
        drop_row(task, tile, r, x);
        keep_row(task, tile, MAP_DROPPED, r, x, 0);
    }
}

/* Overwrites the scaled scores of a row group by unnormalised weights, and updates its running maxima and sums. */
static void softmax_group(struct task *task, const struct tile *tile, size_t r, size_t rows, REAL *max_abs)
{
    struct row_group group = {.r = r, .rows = rows};
    raise_maxima(task, tile, &group, max_abs);
    add_entropies(task, tile, &group);
    for (size_t n = 0; n < rows; n++)
        group.sum[n] =
            exponentiate(task->s + (r + n) * task->s_stride, tile->from, tile->to, group.shift[n], group.is_normal[n]);
    for (size_t n = 0; n < rows; n++) {
        const size_t row = tile->row0 + r + n;
        add_compensated(&task->l[row], &task->l_low[row], group.alpha[n], group.sum[n]);
        if (wants_weights(task->job) || task->job->dropout > 0)
            keep_weights(task, tile, r + n);
    }
}

#endif
