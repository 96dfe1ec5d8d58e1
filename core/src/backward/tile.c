/* tile.c: one tile of the backward pass. */
#include "backward/backward.h"

#include <string.h>

#include "base/number.h"
#include "base/size.h"
#include "formulas/formulas.h"
#include "request/request.h"

static size_t element_of(const struct gradient_tile *tile)
{
    return attn_dtype_bytes(tile->heads->job.compute);
}

/* ---- scratch ---- */

static void *lend(char *memory, size_t *used, size_t count, size_t size)
{
    void *block = memory == NULL ? NULL : memory + *used;
    *used += attn_round_up(count * size, ATTN_ALIGNMENT);
    return block;
}

/* Memory for rows of an operand. Returns the bytes used so far. */
static size_t lend_rows(struct attn_backward_rows *rows, size_t count, size_t features, size_t element, char *memory,
                        size_t used)
{
    rows->features = features;
    rows->stride = gradient_stride(features);
    rows->copy = lend(memory, &used, count * rows->stride, element);
    rows->is_non_finite = lend(memory, &used, count, 1);
    return used;
}

size_t gradient_tile_lay_out(const struct attn_gradient_heads *heads, const attn_kernel *kernel,
                             struct gradient_tile *tile, char *memory)
{
    const struct attn_heads_job *job = &heads->job;
    const size_t element = attn_dtype_bytes(job->compute), pairs = GRADIENT_ROWS * GRADIENT_STRIDE;
    const bool is_kept = heads->grad_scores != NULL || heads->grad_bias != NULL || heads->grad_distance != NULL;
    const bool needs_masked = attn_caps_scores(job->options) && is_kept;
    size_t used = 0;
    *tile =
        (struct gradient_tile){.heads = heads, .kernel = kernel == NULL ? NULL : attn_kernel_of(kernel, job->compute)};
    tile->x = lend(memory, &used, pairs, element);
    tile->g = lend(memory, &used, pairs, element);
    tile->masked = needs_masked ? lend(memory, &used, pairs, element) : NULL;
    tile->weights = heads->grad_attention != NULL ? lend(memory, &used, pairs, element) : NULL;
    used = lend_rows(&tile->q, GRADIENT_ROWS, job->d_k, element, memory, used);
    used = lend_rows(&tile->o, GRADIENT_ROWS, job->d_v, element, memory, used);
    used = lend_rows(&tile->k, GRADIENT_KEYS, job->d_k, element, memory, used);
    used = lend_rows(&tile->v, GRADIENT_KEYS, job->d_v, element, memory, used);
    tile->k_transposed = lend(memory, &used, tile->k.stride * GRADIENT_STRIDE, element);
    tile->v_transposed = lend(memory, &used, tile->v.stride * GRADIENT_STRIDE, element);
    tile->grad_k = lend(memory, &used, GRADIENT_KEYS * tile->k.stride, element);
    tile->grad_v = lend(memory, &used, GRADIENT_KEYS * tile->v.stride, element);
    tile->added = lend(memory, &used, GRADIENT_STRIDE, element);
    tile->allow_copy = lend(memory, &used, pairs, 1);
    tile->keep = lend(memory, &used, GRADIENT_STRIDE, 1);
    return used;
}

/* ---- operands ---- */

/* Copies count rows of one head, from row first on. */
static void take_rows(const struct gradient_tile *tile, const struct attn_operand *operand, size_t head, size_t first,
                      size_t count, struct attn_backward_rows *rows)
{
    const size_t element = element_of(tile);
    const ptrdiff_t at = (ptrdiff_t)attn_operand_at(operand, tile->b, head, first);
    rows->original = (const char *)operand->data + at * (ptrdiff_t)element;
    rows->original_stride = operand->row_stride;
    rows->count = count;
    tile->kernel->backward.pack(rows);
}

void gradient_tile_set_keys(struct gradient_tile *tile, size_t b, size_t kv_head, size_t key0)
{
    const struct attn_heads_job *job = &tile->heads->job;
    tile->b = b;
    tile->kv_head = kv_head;
    tile->key0 = key0;
    tile->keys = attn_min(job->kv_len - key0, GRADIENT_KEYS);
    take_rows(tile, &job->k.added, kv_head, key0, tile->keys, &tile->k);
    take_rows(tile, &job->v.added, attn_keys_head(&job->v, kv_head), key0, tile->keys, &tile->v);
    tile->kernel->backward.transpose(&tile->k, tile->k_transposed, GRADIENT_STRIDE);
    tile->kernel->backward.transpose(&tile->v, tile->v_transposed, GRADIENT_STRIDE);
}

/* Reads the spans of the rows. Returns whether any row sees any column. */
static bool set_spans(struct gradient_tile *tile)
{
    const attn_mask *mask = tile->heads->job.mask;
    const size_t key0 = tile->key0, end = key0 + tile->keys;
    bool any = false;
    tile->is_whole = !attn_mask_has_lookup(mask);
    for (size_t r = 0; r < tile->rows; r++) {
        const attn_span span = attn_mask_span(mask, tile->b, tile->row0 + r);
        const size_t from = attn_max(span.from, key0), to = attn_min(span.to, end);
        tile->span[r] = from < to ? (attn_span){from - key0, to - key0} : (attn_span){0, 0};
        any = any || from < to;
        tile->is_whole = tile->is_whole && from == key0 && to == end;
    }
    return any && !attn_mask_hides_tile(mask, tile->b, tile->h, tile->row0, tile->rows, key0, end);
}

/* Looks up every pair, unless the spans tell everything and no row is non-finite. Returns whether any is allowed. */
static bool set_allowed(struct gradient_tile *tile)
{
    const struct attn_heads_job *job = &tile->heads->job;
    const bool any_non_finite =
        tile->q.any_non_finite || tile->k.any_non_finite || tile->v.any_non_finite || tile->o.any_non_finite;
    tile->allow = NULL;
    if (!attn_mask_has_lookup(job->mask) && !any_non_finite)
        return true;
    bool any = false;
    tile->allow = tile->allow_copy;
    for (size_t r = 0; r < tile->rows; r++) {
        const size_t i = tile->row0 + r;
        any |= attn_mask_row(job->mask, job->compute, tile->b, tile->h, i, attn_mask_span(job->mask, tile->b, i),
                             tile->key0, tile->key0 + tile->keys, tile->allow_copy + r * GRADIENT_STRIDE);
    }
    return any;
}

bool gradient_tile_set_rows(struct gradient_tile *tile, size_t h, size_t row0)
{
    const struct attn_heads_job *job = &tile->heads->job;
    tile->h = h;
    tile->row0 = row0;
    tile->rows = attn_min(job->q_len - row0, GRADIENT_ROWS);
    if (!set_spans(tile))
        return false;
    take_rows(tile, &job->q, h, row0, tile->rows, &tile->q);
    take_rows(tile, &tile->heads->grad_context, h, row0, tile->rows, &tile->o);
    return set_allowed(tile);
}

/* ---- pairs with a non-finite row ---- */

static bool is_allowed(const struct gradient_tile *tile, size_t r, size_t c)
{
    return tile->allow[r * GRADIENT_STRIDE + c] != 0;
}

static const char *original_row(const struct gradient_tile *tile, const struct attn_backward_rows *rows, size_t r)
{
    return rows->original + (ptrdiff_t)r * rows->original_stride * (ptrdiff_t)element_of(tile);
}

/* Products of allowed pairs of which either is non-finite: tile row r with tile column c. */
static void multiply_non_finite(const struct gradient_tile *tile, const struct attn_backward_rows *a,
                                const struct attn_backward_rows *b, char *y)
{
    const attn_dtype compute = tile->heads->job.compute;
    if (!a->any_non_finite && !b->any_non_finite)
        return;
    for (size_t r = 0; r < tile->rows; r++)
        for (size_t c = 0; c < tile->keys; c++)
            if ((a->is_non_finite[r] || b->is_non_finite[c]) && is_allowed(tile, r, c))
                attn_number_put(
                    y, compute, r * GRADIENT_STRIDE + c,
                    tile->kernel->backward.dot(original_row(tile, a, r), original_row(tile, b, c), a->features));
}

static void add_scaled(attn_dtype compute, double factor, const char *from, size_t features, char *to)
{
    for (size_t f = 0; f < features; f++)
        attn_number_add(to, compute, f, factor * attn_number_get(from, compute, f));
}

/* Adds the non-finite rows: queries (or rows of dO) to the sums of each key, or keys to the sums of each query. */
static void add_non_finite(const struct gradient_tile *tile, const struct attn_backward_rows *rows, bool are_keys,
                           const char *factors, char *to, size_t to_stride)
{
    const attn_dtype compute = tile->heads->job.compute;
    for (size_t r = 0; rows->any_non_finite && r < tile->rows; r++)
        for (size_t c = 0; c < tile->keys; c++)
            if (rows->is_non_finite[are_keys ? c : r] && is_allowed(tile, r, c))
                add_scaled(compute, attn_number_get(factors, compute, r * GRADIENT_STRIDE + c),
                           original_row(tile, rows, are_keys ? c : r), rows->features,
                           to + (are_keys ? r : c) * to_stride * element_of(tile));
}

/* ---- groups of rows, and of keys ---- */

/* Rows, or columns, that share a product. */
static size_t group_of(const struct gradient_tile *tile, size_t all)
{
    return tile->is_whole ? all : GRADIENT_GROUP;
}

/* The columns from the first that any of the rows sees to the last. */
static attn_span columns_seen(const struct gradient_tile *tile, size_t row, size_t rows)
{
    attn_span seen = {tile->keys, 0};
    for (size_t r = row; r < row + rows; r++)
        if (tile->span[r].to != 0) {
            seen.from = attn_min(seen.from, tile->span[r].from);
            seen.to = attn_max(seen.to, tile->span[r].to);
        }
    return seen;
}

/* The rows from the first that sees any of the columns to the last. */
static attn_span rows_seen(const struct gradient_tile *tile, size_t column, size_t columns)
{
    attn_span seen = {tile->rows, 0};
    for (size_t r = 0; r < tile->rows; r++)
        if (tile->span[r].from < column + columns && tile->span[r].to > column) {
            seen.from = attn_min(seen.from, r);
            seen.to = r + 1;
        }
    return seen;
}

/* ---- the tile ---- */

/* y = a b^T for the columns that each group of rows sees; b_transposed has the columns of b^T. */
static void multiply(const struct gradient_tile *tile, const struct attn_backward_rows *a,
                     const struct attn_backward_rows *b, const char *b_transposed, char *y)
{
    const size_t element = element_of(tile), group = group_of(tile, tile->rows);
    for (size_t r = 0; r < tile->rows; r += group) {
        const size_t rows = attn_min(tile->rows - r, group);
        const attn_span seen = columns_seen(tile, r, rows);
        const size_t from = attn_min(seen.from, seen.to) / BACKWARD_COLUMN_UNIT * BACKWARD_COLUMN_UNIT;
        const struct attn_backward_product product = {.a = a->copy + r * a->stride * element,
                                                      .b = b_transposed + from * element,
                                                      .y = y + (r * GRADIENT_STRIDE + from) * element,
                                                      .rows = rows,
                                                      .columns = seen.to - from,
                                                      .inner = a->features,
                                                      .a_stride = a->stride,
                                                      .b_stride = GRADIENT_STRIDE,
                                                      .y_stride = GRADIENT_STRIDE};
        tile->kernel->backward.multiply(&product);
    }
    multiply_non_finite(tile, a, b, y);
}

/* The biases by distance of one row, contiguous; NULL: there are none. */
static const char *find_distance_bias(const struct gradient_tile *tile, size_t r)
{
    const struct attn_distance_bias *distance = &tile->heads->job.distance_bias;
    if (distance->data == NULL)
        return NULL;
    const size_t row = attn_distance_bias_row(distance, tile->b, tile->h, tile->row0 + r);
    return (const char *)distance->data + (row + tile->key0) * element_of(tile);
}

/* The sum of all biases of one row; NULL: no biases. */
static const char *find_biases(const struct gradient_tile *tile, size_t r)
{
    const struct attn_heads_job *job = &tile->heads->job;
    const attn_mask *mask = job->mask;
    const char *distance = find_distance_bias(tile, r);
    if (mask->bias == NULL)
        return distance;
    const ptrdiff_t *stride = mask->bias_stride;
    const ptrdiff_t first = (ptrdiff_t)tile->b * stride[0] + (ptrdiff_t)tile->h * stride[1] +
                            (ptrdiff_t)(tile->row0 + r) * stride[2] + (ptrdiff_t)tile->key0 * stride[3];
    for (size_t c = 0; c < tile->keys; c++) {
        const double bias = attn_number_get(mask->bias, job->compute, (size_t)(first + (ptrdiff_t)c * stride[3]));
        const double beside = distance == NULL ? 0 : attn_number_get(distance, job->compute, c);
        attn_number_put(tile->added, job->compute, c, beside + bias);
    }
    return tile->added;
}

/* From key first of the row on. */
static const uint8_t *decide_dropout(const struct gradient_tile *tile, size_t row, size_t first, size_t keys)
{
    const struct attn_heads_job *job = &tile->heads->job;
    if (job->dropout == 0)
        return NULL;
    tile->kernel->dropout_keep(job->options->dropout_seed, DROPOUT_ATTENTION, job->dropout,
                               (uint64_t)row * job->kv_len + tile->key0 + first, keys, tile->keep);
    return tile->keep;
}

/* Clears what the row does not see. Products of groups read it. */
static void clear_unseen(const struct gradient_tile *tile, size_t r, char *y)
{
    const attn_span seen = tile->span[r];
    const size_t element = element_of(tile);
    char *row = y + r * GRADIENT_STRIDE * element;
    memset(row, 0, seen.from * element);
    memset(row + seen.to * element, 0, (tile->keys - seen.to) * element);
}

/* dP of the columns from first on, before their place in g becomes dS: 0 for what is hidden or dropped. */
static void keep_weights(const struct gradient_tile *tile, const struct attn_backward_row *row, size_t at)
{
    const attn_dtype compute = tile->heads->job.compute;
    for (size_t c = 0; c < row->n; c++) {
        const bool is_there = (row->allow == NULL || row->allow[c]) && (row->keep == NULL || row->keep[c]);
        const double gain = row->keep == NULL ? 1 : row->gain;
        attn_number_put(tile->weights, compute, at + c,
                        is_there ? gain * attn_number_get(tile->g, compute, at + c) : 0);
    }
}

/* The columns from first on. */
static void score_columns(const struct gradient_tile *tile, size_t r, size_t first, size_t columns)
{
    const struct attn_heads_job *job = &tile->heads->job;
    const size_t row = (tile->b * job->heads + tile->h) * job->q_len + tile->row0 + r;
    const size_t element = element_of(tile), at = (r * GRADIENT_STRIDE + first) * element;
    const char *added = find_biases(tile, r);
    const struct attn_backward_row one = {
        .n = columns,
        .x = tile->x + at,
        .g = tile->g + at,
        .masked = tile->masked == NULL ? NULL : tile->masked + at,
        .added = added == NULL ? NULL : added + first * element,
        .allow = tile->allow == NULL ? NULL : tile->allow + r * GRADIENT_STRIDE + first,
        .keep = decide_dropout(tile, row, first, columns),
        .job = job,
        .lse = attn_number_get(tile->heads->lse, job->compute, row),
        .delta = attn_number_get(tile->heads->delta, job->compute, row),
        .gain = job->dropout < 1 ? 1 / (1 - job->dropout) : 0,
    };
    if (tile->weights != NULL)
        keep_weights(tile, &one, r * GRADIENT_STRIDE + first);
    tile->kernel->backward.row(&one);
}

void gradient_tile_score(struct gradient_tile *tile)
{
    multiply(tile, &tile->q, &tile->k, tile->k_transposed, tile->x);
    multiply(tile, &tile->o, &tile->v, tile->v_transposed, tile->g);
    for (size_t r = 0; r < tile->rows; r++) {
        const size_t first = tile->span[r].from / BACKWARD_COLUMN_UNIT * BACKWARD_COLUMN_UNIT;
        if (tile->span[r].to != 0)
            score_columns(tile, r, first, tile->span[r].to - first);
        clear_unseen(tile, r, tile->x);
        clear_unseen(tile, r, tile->g);
        if (tile->masked != NULL)
            clear_unseen(tile, r, tile->masked);
        if (tile->weights != NULL)
            clear_unseen(tile, r, tile->weights);
    }
}

/* The sums over queries: to += factors^T rows, where to has a row for each key. */
static void add_over_rows(const struct gradient_tile *tile, const char *factors, const struct attn_backward_rows *rows,
                          char *to)
{
    const size_t element = element_of(tile), group = group_of(tile, tile->keys);
    for (size_t c = 0; c < tile->keys; c += group) {
        const size_t keys = attn_min(tile->keys - c, group);
        const attn_span seen = rows_seen(tile, c, keys);
        const struct attn_backward_product product = {.a = factors + (seen.from * GRADIENT_STRIDE + c) * element,
                                                      .b = rows->copy + seen.from * rows->stride * element,
                                                      .y = to + c * rows->stride * element,
                                                      .rows = keys,
                                                      .columns = rows->features,
                                                      .inner = seen.from < seen.to ? seen.to - seen.from : 0,
                                                      .a_stride = GRADIENT_STRIDE,
                                                      .b_stride = rows->stride,
                                                      .y_stride = rows->stride,
                                                      .a_is_transposed = true,
                                                      .adds = true};
        tile->kernel->backward.multiply(&product);
    }
    add_non_finite(tile, rows, false, factors, to, rows->stride);
}

/* The sums over keys: to = g k or to += g k, where to has a row for each query. */
static void add_over_keys(const struct gradient_tile *tile, char *to, bool is_first)
{
    const size_t to_stride = gradient_columns(tile->k.features), element = element_of(tile),
                 group = group_of(tile, tile->rows);
    for (size_t r = 0; r < tile->rows; r += group) {
        const size_t rows = attn_min(tile->rows - r, group);
        const attn_span seen = columns_seen(tile, r, rows);
        const struct attn_backward_product product = {.a = tile->g + (r * GRADIENT_STRIDE + seen.from) * element,
                                                      .b = tile->k.copy + seen.from * tile->k.stride * element,
                                                      .y = to + r * to_stride * element,
                                                      .rows = rows,
                                                      .columns = tile->k.features,
                                                      .inner = seen.from < seen.to ? seen.to - seen.from : 0,
                                                      .a_stride = GRADIENT_STRIDE,
                                                      .b_stride = tile->k.stride,
                                                      .y_stride = to_stride,
                                                      .adds = !is_first};
        tile->kernel->backward.multiply(&product);
    }
    add_non_finite(tile, &tile->k, true, tile->g, to, to_stride);
}

void gradient_tile_multiply(const struct gradient_tile *tile, char *part, bool is_first)
{
    if (tile->heads->grad_v.data != NULL || tile->heads->grad_past_v.data != NULL)
        add_over_rows(tile, tile->x, &tile->o, tile->grad_v);
    if (tile->heads->grad_k.data != NULL || tile->heads->grad_past_k.data != NULL)
        add_over_rows(tile, tile->g, &tile->q, tile->grad_k);
    if (part != NULL)
        add_over_keys(tile, part, is_first);
}
