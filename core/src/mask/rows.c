/* rows.c: what a resolved mask allows: spans, rows of keys, tiles, and their number. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/size.h"
#include "mask/resolved.h"

int64_t attn_mask_offset(const attn_mask *mask, size_t b)
{
    return mask->base_offset + (mask->offset == NULL ? 0 : mask->offset[b * mask->offset_stride]);
}

/* The position of query i of item b among the keys. */
static int64_t position_of(const attn_mask *mask, size_t b, size_t i)
{
    return (int64_t)i + attn_mask_offset(mask, b);
}

/* The first key of item b whose document is not below id; only for sorted documents. */
static size_t first_of_document(const attn_mask *mask, size_t b, int64_t id)
{
    return attn_count_below(attn_document_of_key(mask, b, 0), mask->documents_key_stride[1], mask->kv_len, id);
}

static void narrow_to_document(const attn_mask *mask, size_t b, size_t i, int64_t *from, int64_t *to)
{
    const int64_t id = attn_document_of_query(mask, b, i);
    *from = attn_max_i64(*from, (int64_t)first_of_document(mask, b, id));
    if (id < INT64_MAX)
        *to = attn_min_i64(*to, (int64_t)first_of_document(mask, b, id + 1));
}

attn_span attn_mask_span(const attn_mask *mask, size_t b, size_t i)
{
    const int64_t position = position_of(mask, b, i);
    int64_t from = 0, to = (int64_t)mask->kv_len;
    if (mask->causal)
        to = attn_min_i64(to, position + 1);
    if (mask->has_window) {
        to = attn_min_i64(to, position + mask->right + 1);
        from = attn_max_i64(position - mask->left, 0);
    }
    if (mask->kv_lengths != NULL)
        to = attn_min_i64(to, mask->kv_lengths[b * mask->kv_lengths_stride]);
    if (mask->q_lengths != NULL && (int64_t)i >= mask->q_lengths[b * mask->q_lengths_stride])
        to = 0;
    attn_blocks_narrow(mask, b, position, &from, &to);
    if (mask->documents_are_sorted && from < to)
        narrow_to_document(mask, b, i, &from, &to);
    if (from >= to)
        return (attn_span){0, 0};
    return (attn_span){(size_t)from, (size_t)to};
}

static bool looks_up_documents(const attn_mask *mask)
{
    return mask->documents_key != NULL && !mask->documents_are_sorted;
}

bool attn_mask_has_lookup(const attn_mask *mask)
{
    return mask->attend != NULL || mask->padding != NULL || mask->bias != NULL || mask->scores != NULL ||
           looks_up_documents(mask) || attn_blocks_have_lookup(mask);
}

/* ---- one row ---- */

static ptrdiff_t at(const ptrdiff_t stride[4], size_t b, size_t h, size_t i, size_t j)
{
    return (ptrdiff_t)b * stride[0] + (ptrdiff_t)h * stride[1] + (ptrdiff_t)i * stride[2] + (ptrdiff_t)j * stride[3];
}

/* allow[c] &= flags[c stride] != 0. The usual strides, 0 and 1, have loops of their own, which are vectorised. */
static void and_flags(uint8_t *restrict allow, size_t count, const uint8_t *restrict flags, ptrdiff_t stride)
{
    if (stride == 0 && count > 0 && flags[0] == 0)
        memset(allow, 0, count);
    if (stride == 1)
        for (size_t c = 0; c < count; c++)
            allow[c] &= flags[c] != 0;
    else if (stride != 0)
        for (size_t c = 0; c < count; c++)
            allow[c] &= flags[(ptrdiff_t)c * stride] != 0;
}

/* allow[c] &= whether number c is not -infinity. NaN does not hide a key. */
static void and_finite_f32(uint8_t *restrict allow, size_t count, const float *restrict numbers, ptrdiff_t stride)
{
    if (stride == 1)
        for (size_t c = 0; c < count; c++)
            allow[c] &= !(numbers[c] <= -INFINITY);
    else
        for (size_t c = 0; c < count; c++)
            allow[c] &= !(numbers[(ptrdiff_t)c * stride] <= -INFINITY);
}

static void and_finite_f64(uint8_t *restrict allow, size_t count, const double *restrict numbers, ptrdiff_t stride)
{
    if (stride == 1)
        for (size_t c = 0; c < count; c++)
            allow[c] &= !(numbers[c] <= -(double)INFINITY);
    else
        for (size_t c = 0; c < count; c++)
            allow[c] &= !(numbers[(ptrdiff_t)c * stride] <= -(double)INFINITY);
}

static void and_finite(uint8_t *allow, size_t count, const void *numbers, attn_dtype compute, ptrdiff_t first,
                       ptrdiff_t stride)
{
    if (compute == ATTN_F32)
        and_finite_f32(allow, count, (const float *)numbers + first, stride);
    else
        and_finite_f64(allow, count, (const double *)numbers + first, stride);
}

static void and_document(uint8_t *restrict allow, size_t count, const int64_t *restrict ids, ptrdiff_t stride,
                         int64_t id)
{
    if (stride == 1)
        for (size_t c = 0; c < count; c++)
            allow[c] &= ids[c] == id;
    else
        for (size_t c = 0; c < count; c++)
            allow[c] &= ids[(ptrdiff_t)c * stride] == id;
}

static bool any_of(const uint8_t *allow, size_t count)
{
    uint8_t any = 0;
    for (size_t c = 0; c < count; c++)
        any |= allow[c];
    return any != 0;
}

bool attn_mask_row(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, attn_span span, size_t from,
                   size_t to, uint8_t *allow)
{
    const size_t low = attn_max(span.from, from), high = attn_min(span.to, to);
    memset(allow, 0, to - from);
    if (low >= high)
        return false;
    const size_t count = high - low;
    allow += low - from;
    if (attn_blocks_have_lookup(mask))
        attn_blocks_row(mask, b, h, i, position_of(mask, b, i), low, high, allow);
    else
        memset(allow, 1, count);
    if (mask->padding != NULL)
        and_flags(allow, count,
                  mask->padding + (ptrdiff_t)b * mask->padding_stride[0] + (ptrdiff_t)low * mask->padding_stride[1],
                  mask->padding_stride[1]);
    if (mask->attend != NULL)
        and_flags(allow, count, mask->attend + at(mask->attend_stride, b, h, i, low), mask->attend_stride[3]);
    if (looks_up_documents(mask))
        and_document(allow, count, attn_document_of_key(mask, b, low), mask->documents_key_stride[1],
                     attn_document_of_query(mask, b, i));
    if (mask->bias != NULL)
        and_finite(allow, count, mask->bias, compute, at(mask->bias_stride, b, h, i, low), mask->bias_stride[3]);
    if (mask->scores != NULL)
        and_finite(allow, count, mask->scores, compute,
                   (ptrdiff_t)(((b * mask->heads + h) * mask->q_len + i) * mask->kv_len + low), 1);
    return any_of(allow, count);
}

bool attn_mask_allows(const attn_mask *mask, attn_dtype compute, size_t b, size_t h, size_t i, size_t j)
{
    uint8_t allow;
    const attn_span span = attn_mask_span(mask, b, i);
    return j >= span.from && j < span.to && attn_mask_row(mask, compute, b, h, i, span, j, j + 1, &allow);
}

/* ---- tiles and sums ---- */

static bool has_document(const int64_t *ids, size_t count, ptrdiff_t stride, int64_t id)
{
    uint8_t any = 0;
    if (stride == 1)
        for (size_t c = 0; c < count; c++)
            any |= ids[c] == id;
    else
        for (size_t c = 0; c < count; c++)
            any |= ids[(ptrdiff_t)c * stride] == id;
    return any != 0;
}

/* Neighbouring queries mostly belong to one document, so each document is searched once. */
static bool documents_hide_tile(const attn_mask *mask, size_t b, size_t i, size_t rows, size_t from, size_t to)
{
    const int64_t *ids = attn_document_of_key(mask, b, from);
    const ptrdiff_t stride = mask->documents_key_stride[1];
    for (size_t row = 0; row < rows; row++) {
        const int64_t id = attn_document_of_query(mask, b, i + row);
        if (row > 0 && id == attn_document_of_query(mask, b, i + row - 1))
            continue;
        if (has_document(ids, to - from, stride, id))
            return false;
    }
    return true;
}

bool attn_mask_hides_tile(const attn_mask *mask, size_t b, size_t h, size_t i, size_t rows, size_t from, size_t to)
{
    if (looks_up_documents(mask) && documents_hide_tile(mask, b, i, rows, from, to))
        return true;
    return attn_blocks_have_lookup(mask) &&
           attn_blocks_hide_tile(mask, b, h, i, position_of(mask, b, i), rows, from, to);
}

double attn_mask_pairs(const attn_mask *mask, const attn_runtime *watch)
{
    const bool has_pattern = attn_blocks_have_lookup(mask) && mask->blocks.kind != ATTN_BLOCKS_MATRIX;
    struct attn_pace pace = attn_pace_begin(watch);
    double of_spans = 0, of_blocks = 0;
    for (size_t b = 0; b < mask->batch; b++)
        for (size_t i = 0; i < mask->q_len; i++) {
            if (attn_pace_stops(&pace, ATTN_PACE_ROW))
                return 0;
            const attn_span span = attn_mask_span(mask, b, i);
            const double keys = (double)(span.to - span.from);
            of_spans += keys;
            of_blocks += has_pattern ? fmin(attn_blocks_keys(mask, position_of(mask, b, i)), keys) : keys;
        }
    of_blocks *= (double)mask->heads;
    of_spans *= (double)mask->heads;
    if (mask->blocks.kind == ATTN_BLOCKS_MATRIX)
        of_blocks = attn_blocks_matrix_pairs(mask, watch);
    return fmin(of_blocks, of_spans);
}

double attn_mask_lookup_flops(const attn_mask *mask, const attn_runtime *watch)
{
    /* Measured on a core of 100 GFLOP/s: the cost of a call, and of each of its keys. */
    const double call = 4000, key = 50, tile = 512;
    const double keys = fmin((double)mask->kv_len, tile);
    struct attn_pace pace = attn_pace_begin(watch);
    double tiles = 0;
    if (!attn_mask_has_lookup(mask))
        return 0;
    for (size_t b = 0; b < mask->batch; b++)
        for (size_t i = 0; i < mask->q_len; i++) {
            if (attn_pace_stops(&pace, ATTN_PACE_ROW))
                return 0;
            const attn_span span = attn_mask_span(mask, b, i);
            tiles += ceil((double)(span.to - span.from) / tile);
        }
    return tiles * (double)mask->heads * (call + key * keys + attn_blocks_row_flops(mask, keys));
}

/* ---- in a plan ---- */

void attn_mask_put(const attn_mask *mask, attn_plan *plan)
{
    plan->mask =
        (attn_mask_facts){.has_positions = mask->causal || mask->has_window || mask->blocks.kind > ATTN_BLOCKS_MATRIX,
                          .has_lookup = attn_mask_has_lookup(mask),
                          .bias_as_mask = mask->bias_as_mask,
                          .bias_lowest = mask->bias_lowest};
    memcpy(&plan->mask.resolved, mask, sizeof *mask);
}

int64_t attn_plan_offset(const attn_plan *plan, size_t b)
{
    return attn_mask_offset(attn_mask_of(plan), b);
}

attn_span attn_plan_span(const attn_plan *plan, size_t b, size_t i)
{
    return attn_mask_span(attn_mask_of(plan), b, i);
}

bool attn_plan_allows(const attn_plan *plan, size_t b, size_t h, size_t i, size_t j)
{
    return attn_mask_allows(attn_mask_of(plan), plan->compute, b, h, i, j);
}
