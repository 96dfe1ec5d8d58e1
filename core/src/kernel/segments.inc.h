/*
 * segments.inc.h: the keys or the values of one head, in the cache and behind it. Part of a kernel.
 */
#ifndef ATTN_KERNEL_SEGMENTS_INC_H
#define ATTN_KERNEL_SEGMENTS_INC_H

#include "attn/mask.h"
#include "kernel/job.h"
#include "kernel/vector/widen.inc.h"

/* Rows of one head, of the kernel's type or of 16 bits; stride is in elements. */
struct rows {
    const void *data;
    ptrdiff_t stride;
    attn_dtype dtype;
};

/* Rows 0 … past_len are in the cache; the added rows follow. */
struct head_rows {
    size_t past_len;
    struct rows past, added;
};

/* The address of a row. */
static inline const void *row_at(const struct rows *rows, ptrdiff_t row)
{
    return (const char *)rows->data + row * rows->stride * (ptrdiff_t)bytes_of(rows->dtype);
}

/* NULL where there is no cache. */
static struct rows rows_of_operand(const struct attn_operand *operand, size_t b, size_t h)
{
    return (struct rows){.data = operand->data == NULL ? NULL : attn_operand_row(operand, b, h, 0).data,
                         .stride = operand->row_stride,
                         .dtype = operand->dtype};
}

static struct head_rows rows_of_head(const struct attn_keys *keys, size_t b, size_t kv_head)
{
    return (struct head_rows){.past_len = keys->past_len,
                              .past = rows_of_operand(&keys->past, b, kv_head),
                              .added = rows_of_operand(&keys->added, b, kv_head)};
}

/* The rows that lie in one segment with row j. */
static inline attn_span segment_of(const struct head_rows *head, size_t j)
{
    return j < head->past_len ? (attn_span){0, head->past_len} : (attn_span){head->past_len, SIZE_MAX};
}

/* Row j, and behind it the rest of its segment. */
static inline struct rows rows_from(const struct head_rows *head, size_t j)
{
    const bool is_past = j < head->past_len;
    struct rows rows = is_past ? head->past : head->added;
    rows.data = row_at(&rows, (ptrdiff_t)(is_past ? j : j - head->past_len));
    return rows;
}

/* Rows from … to in copy, in the kernel's type. */
static struct rows gather_rows(const struct head_rows *head, size_t from, size_t to, size_t features, REAL *copy)
{
    for (size_t j = from; j < to; j++) {
        const struct rows row = rows_from(head, j);
        widen_row(row.data, row.dtype, features, copy + (j - from) * features);
    }
    return (struct rows){copy, (ptrdiff_t)features, KERNEL_TYPE};
}

/* Rows from … to: where they are, in their own type, or, from both segments, in copy. */
static inline struct rows rows_together(const struct head_rows *head, size_t from, size_t to, size_t features,
                                        REAL *copy)
{
    return to <= segment_of(head, from).to ? rows_from(head, from) : gather_rows(head, from, to, features, copy);
}

/* The same in the kernel's type. */
static inline struct rows wide_rows(const struct head_rows *head, size_t from, size_t to, size_t features, REAL *copy)
{
    const struct rows rows = rows_together(head, from, to, features, copy);
    return rows.dtype == KERNEL_TYPE ? rows : gather_rows(head, from, to, features, copy);
}

static inline const REAL *wide_row(const struct head_rows *head, size_t j, size_t features, REAL *copy)
{
    return wide_rows(head, j, j + 1, features, copy).data;
}

#endif
