/* backward_tile.c: one tile of the backward pass. */
#include "backward/backward_tile.h"

#include <math.h>
#include <string.h>

#include "attn/arena.h"
#include "base/number.h"
#include "base/size.h"
#include "formulas/philox.h"
#include "gemm/blas.h"
#include "kernel/kernel.h"

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

size_t gradient_tile_lay_out(const struct attn_gradient_heads *heads, const attn_kernel *kernel,
                             struct gradient_tile *tile, char *memory)
{
    const struct attn_heads_job *job = &heads->job;
    const size_t element = attn_dtype_bytes(job->compute), pairs = GRADIENT_ROWS * GRADIENT_STRIDE;
    const bool is_kept = heads->grad_scores != NULL || heads->grad_bias != NULL || heads->grad_distance != NULL;
    const bool needs_masked = job->softcap > 0 && is_kept;
    size_t used = 0;
    *tile = (struct gradient_tile){.heads = heads, .kernel = kernel};
    tile->x = lend(memory, &used, pairs, element);
    tile->g = lend(memory, &used, pairs, element);
    tile->masked = needs_masked ? lend(memory, &used, pairs, element) : NULL;
    tile->q_copy = lend(memory, &used, GRADIENT_ROWS * job->d_k, element);
    tile->o_copy = lend(memory, &used, GRADIENT_ROWS * job->d_v, element);
    tile->k_copy = lend(memory, &used, GRADIENT_KEYS * job->d_k, element);
    tile->v_copy = lend(memory, &used, GRADIENT_KEYS * job->d_v, element);
    tile->grad_k = lend(memory, &used, GRADIENT_KEYS * job->d_k, element);
    tile->grad_v = lend(memory, &used, GRADIENT_KEYS * job->d_v, element);
    tile->added = lend(memory, &used, GRADIENT_STRIDE, element);
    tile->allow_copy = lend(memory, &used, pairs, 1);
    tile->keep = lend(memory, &used, GRADIENT_STRIDE, 1);
    return used;
}

/* ---- operands ---- */

/* count rows of one head from row first on. If any row is non-finite, the rows are copied, with zeros for that row. */
static struct gradient_rows take_rows(const struct gradient_tile *tile, const struct attn_operand *operand, size_t head,
                                      size_t first, size_t count, size_t d, const uint8_t *is_non_finite, char *copy)
{
    const size_t element = element_of(tile);
    const ptrdiff_t at = (ptrdiff_t)tile->b * operand->batch_stride + (ptrdiff_t)head * operand->head_stride +
                         (ptrdiff_t)first * operand->row_stride;
    struct gradient_rows rows = {.original = (const char *)operand->data + at * (ptrdiff_t)element,
                                 .original_stride = (size_t)operand->row_stride};
    rows.data = rows.original;
    rows.stride = rows.original_stride;
    if (memchr(is_non_finite, 1, count) == NULL)
        return rows;
    for (size_t r = 0; r < count; r++)
        if (is_non_finite[r])
            memset(copy + r * d * element, 0, d * element);
        else
            memcpy(copy + r * d * element, rows.original + r * rows.original_stride * element, d * element);
    rows.data = copy;
    rows.stride = d;
    rows.is_non_finite = is_non_finite;
    return rows;
}

void gradient_tile_set_keys(struct gradient_tile *tile, size_t b, size_t kv_head, size_t key0)
{
    const struct attn_heads_job *job = &tile->heads->job;
    const size_t flag = (b * job->kv_heads + kv_head) * job->kv_len + key0;
    tile->b = b;
    tile->kv_head = kv_head;
    tile->key0 = key0;
    tile->keys = attn_min(job->kv_len - key0, GRADIENT_KEYS);
    tile->k = take_rows(tile, &job->k, kv_head, key0, tile->keys, job->d_k, tile->heads->k_is_non_finite + flag,
                        tile->k_copy);
    tile->v = take_rows(tile, &job->v, kv_head, key0, tile->keys, job->d_v, tile->heads->v_is_non_finite + flag,
                        tile->v_copy);
}

/*
 * What the spans tell about the tile without a lookup of pairs: whether any pair may be allowed, and whether all are.
 */
static bool look_at_spans(const struct gradient_tile *tile, bool *leave_all)
{
    const attn_mask *mask = tile->heads->job.mask;
    const size_t end = tile->key0 + tile->keys;
    bool any = false;
    *leave_all = !attn_mask_has_lookup(mask);
    for (size_t r = 0; r < tile->rows; r++) {
        const attn_span span = attn_mask_span(mask, tile->b, tile->row0 + r);
        any = any || (span.from < end && span.to > tile->key0);
        *leave_all = *leave_all && span.from <= tile->key0 && span.to >= end;
    }
    return any && !attn_mask_hides_tile(mask, tile->b, tile->h, tile->row0, tile->rows, tile->key0, end);
}

static bool has_non_finite_rows(const struct gradient_tile *tile)
{
    return tile->q.is_non_finite != NULL || tile->k.is_non_finite != NULL || tile->v.is_non_finite != NULL ||
           tile->o.is_non_finite != NULL;
}

/* Looks up every pair, unless the spans allow all pairs and no row is non-finite. */
static bool set_allowed(struct gradient_tile *tile)
{
    const struct attn_heads_job *job = &tile->heads->job;
    bool leave_all, any = look_at_spans(tile, &leave_all);
    tile->allow = NULL;
    if (!any || (leave_all && !has_non_finite_rows(tile)))
        return any;
    any = false;
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
    const struct attn_gradient_heads *heads = tile->heads;
    const struct attn_heads_job *job = &heads->job;
    const size_t flag = (tile->b * job->heads + h) * job->q_len + row0;
    tile->h = h;
    tile->row0 = row0;
    tile->rows = attn_min(job->q_len - row0, GRADIENT_ROWS);
    tile->q = take_rows(tile, &job->q, h, row0, tile->rows, job->d_k, heads->q_is_non_finite + flag, tile->q_copy);
    tile->o = take_rows(tile, &heads->grad_context, h, row0, tile->rows, job->d_v, heads->o_is_non_finite + flag,
                        tile->o_copy);
    return set_allowed(tile);
}

/* ---- pairs with a non-finite row ---- */

static bool is_non_finite(const struct gradient_rows *rows, size_t r)
{
    return rows->is_non_finite != NULL && rows->is_non_finite[r];
}

static bool is_allowed(const struct gradient_tile *tile, size_t r, size_t c)
{
    return tile->allow[r * GRADIENT_STRIDE + c] != 0;
}

static double dot(const struct gradient_rows *a, size_t r, const struct gradient_rows *b, size_t c, size_t d,
                  attn_dtype compute)
{
    const size_t element = attn_dtype_bytes(compute);
    const char *x = a->original + r * a->original_stride * element, *y = b->original + c * b->original_stride * element;
    double sum = 0;
    for (size_t f = 0; f < d; f++)
        sum += attn_number_get(x, compute, f) * attn_number_get(y, compute, f);
    return sum;
}

/* Products of allowed pairs of which either is non-finite: tile row r with tile column c. */
static void multiply_non_finite(const struct gradient_tile *tile, const struct gradient_rows *a,
                                const struct gradient_rows *b, size_t d, char *y)
{
    const attn_dtype compute = tile->heads->job.compute;
    if (a->is_non_finite == NULL && b->is_non_finite == NULL)
        return;
    for (size_t r = 0; r < tile->rows; r++)
        for (size_t c = 0; c < tile->keys; c++)
            if ((is_non_finite(a, r) || is_non_finite(b, c)) && is_allowed(tile, r, c))
                attn_number_put(y, compute, r * GRADIENT_STRIDE + c, dot(a, r, b, c, d, compute));
}

static void add_scaled(attn_dtype compute, double factor, const struct gradient_rows *from, size_t r, size_t d,
                       char *to)
{
    const char *x = from->original + r * from->original_stride * attn_dtype_bytes(compute);
    for (size_t f = 0; f < d; f++)
        attn_number_add(to, compute, f, factor * attn_number_get(x, compute, f));
}

/* Adds non-finite rows of queries (or of dO) to the sums over queries; to has a row of d numbers for each key. */
static void add_non_finite_rows(const struct gradient_tile *tile, const struct gradient_rows *rows, size_t d,
                                const char *factors, char *to)
{
    const attn_dtype compute = tile->heads->job.compute;
    for (size_t r = 0; rows->is_non_finite != NULL && r < tile->rows; r++)
        for (size_t c = 0; rows->is_non_finite[r] && c < tile->keys; c++)
            if (is_allowed(tile, r, c))
                add_scaled(compute, attn_number_get(factors, compute, r * GRADIENT_STRIDE + c), rows, r, d,
                           to + c * d * element_of(tile));
}

/* Adds non-finite keys to the sums over keys; to has a row of d numbers for each query. */
static void add_non_finite_keys(const struct gradient_tile *tile, const struct gradient_rows *rows, size_t d,
                                const char *factors, char *to)
{
    const attn_dtype compute = tile->heads->job.compute;
    for (size_t c = 0; rows->is_non_finite != NULL && c < tile->keys; c++)
        for (size_t r = 0; rows->is_non_finite[c] && r < tile->rows; r++)
            if (is_allowed(tile, r, c))
                add_scaled(compute, attn_number_get(factors, compute, r * GRADIENT_STRIDE + c), rows, c, d,
                           to + r * d * element_of(tile));
}

/* ---- the tile ---- */

/* y = a b^T */
static void multiply(const struct gradient_tile *tile, const struct gradient_rows *a, const struct gradient_rows *b,
                     size_t d, char *y)
{
    const size_t element = element_of(tile);
    for (size_t r = 0; r < tile->rows; r++)
        memset(y + r * GRADIENT_STRIDE * element, 0, tile->keys * element);
    attn_blas_multiply_add(tile->heads->job.compute, tile->rows, tile->keys, d, a->data, a->stride, b->data, b->stride,
                           ATTN_LAYOUT_OUT_IN, y, GRADIENT_STRIDE);
    multiply_non_finite(tile, a, b, d, y);
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

static const uint8_t *decide_dropout(const struct gradient_tile *tile, size_t row)
{
    const struct attn_heads_job *job = &tile->heads->job;
    if (job->dropout == 0)
        return NULL;
    attn_dropout_keep(job->dropout_seed, DROPOUT_ATTENTION, job->dropout, (uint64_t)row * job->kv_len + tile->key0,
                      tile->keys, tile->keep);
    return tile->keep;
}

static void score_row(struct gradient_tile *tile, size_t r)
{
    const struct attn_heads_job *job = &tile->heads->job;
    const size_t row = (tile->b * job->heads + tile->h) * job->q_len + tile->row0 + r;
    const size_t at = r * GRADIENT_STRIDE * element_of(tile);
    const struct attn_backward_row one = {
        .n = tile->keys,
        .x = tile->x + at,
        .g = tile->g + at,
        .masked = tile->masked == NULL ? NULL : tile->masked + at,
        .added = find_biases(tile, r),
        .allow = tile->allow == NULL ? NULL : tile->allow + r * GRADIENT_STRIDE,
        .keep = decide_dropout(tile, row),
        .scale = job->scale,
        .softcap = job->softcap,
        .lse = attn_number_get(tile->heads->lse, job->compute, row),
        .delta = attn_number_get(tile->heads->delta, job->compute, row),
        .gain = job->dropout < 1 ? 1 / (1 - job->dropout) : 0,
    };
    attn_kernel_of(tile->kernel, job->compute)->backward_row(&one);
}

void gradient_tile_score(struct gradient_tile *tile)
{
    const struct attn_heads_job *job = &tile->heads->job;
    multiply(tile, &tile->q, &tile->k, job->d_k, tile->x);
    multiply(tile, &tile->o, &tile->v, job->d_v, tile->g);
    for (size_t r = 0; r < tile->rows; r++)
        score_row(tile, r);
}

void gradient_tile_multiply(const struct gradient_tile *tile, char *part)
{
    const struct attn_heads_job *job = &tile->heads->job;
    const attn_dtype compute = job->compute;
    if (tile->heads->grad_v.data != NULL || tile->heads->grad_past_v.data != NULL) {
        attn_blas_multiply_add_transposed(compute, tile->keys, job->d_v, tile->rows, tile->x, GRADIENT_STRIDE,
                                          tile->o.data, tile->o.stride, tile->grad_v, job->d_v);
        add_non_finite_rows(tile, &tile->o, job->d_v, tile->x, tile->grad_v);
    }
    if (tile->heads->grad_k.data != NULL || tile->heads->grad_past_k.data != NULL) {
        attn_blas_multiply_add_transposed(compute, tile->keys, job->d_k, tile->rows, tile->g, GRADIENT_STRIDE,
                                          tile->q.data, tile->q.stride, tile->grad_k, job->d_k);
        add_non_finite_rows(tile, &tile->q, job->d_k, tile->g, tile->grad_k);
    }
    if (part == NULL)
        return;
    attn_blas_multiply_add(compute, tile->rows, job->d_k, tile->keys, tile->g, GRADIENT_STRIDE, tile->k.data,
                           tile->k.stride, ATTN_LAYOUT_IN_OUT, part, job->d_k);
    add_non_finite_keys(tile, &tile->k, job->d_k, tile->g, part);
}
