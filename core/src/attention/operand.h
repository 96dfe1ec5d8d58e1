/*
 * operand.h: where the rows of queries, keys and values are.
 */
#ifndef ATTN_ATTENTION_OPERAND_H
#define ATTN_ATTENTION_OPERAND_H

#include "kernel/job.h"

/* (batch, len, heads, d): the heads of a token are contiguous. */
static inline struct attn_operand attn_operand_by_tokens(const void *data, attn_dtype dtype, size_t heads, size_t len,
                                                         size_t d)
{
    return (struct attn_operand){.data = data,
                                 .dtype = dtype,
                                 .batch_stride = (ptrdiff_t)(len * heads * d),
                                 .head_stride = (ptrdiff_t)d,
                                 .row_stride = (ptrdiff_t)(heads * d)};
}

/* (batch, heads, len, d) */
static inline struct attn_operand attn_operand_by_heads(const void *data, attn_dtype dtype, size_t heads, size_t len,
                                                        size_t d)
{
    return (struct attn_operand){.data = data,
                                 .dtype = dtype,
                                 .batch_stride = (ptrdiff_t)(heads * len * d),
                                 .head_stride = (ptrdiff_t)(len * d),
                                 .row_stride = (ptrdiff_t)d};
}

/* Tokens (len, heads * d) or (batch, len, heads * d), or (batch, heads, len, d), where their strides say. */
static inline struct attn_operand attn_operand_of(const attn_tensor *tensor, size_t d)
{
    return (struct attn_operand){.data = tensor->data,
                                 .dtype = tensor->dtype,
                                 .batch_stride = tensor->rank > 2 ? tensor->stride[0] : 0,
                                 .head_stride = tensor->rank == 4 ? tensor->stride[1] : (ptrdiff_t)d,
                                 .row_stride = tensor->stride[tensor->rank - 2]};
}

/* A (batch, heads, len, d) view of an operand, in that shape. */
static inline attn_tensor attn_operand_view(const struct attn_operand *operand, const attn_tensor *shape)
{
    attn_tensor view = *shape;
    view.data = (void *)(uintptr_t)operand->data;
    view.dtype = operand->dtype;
    view.stride[0] = operand->batch_stride;
    view.stride[1] = operand->head_stride;
    view.stride[2] = operand->row_stride;
    view.stride[3] = 1;
    return view;
}

/* A cache (batch, heads, len, d), or (heads, len, d) for one item, where its strides say. */
static inline struct attn_operand attn_operand_of_past(const attn_tensor *tensor)
{
    return (struct attn_operand){.data = tensor->data,
                                 .dtype = tensor->dtype,
                                 .batch_stride = tensor->rank == 4 ? tensor->stride[0] : 0,
                                 .head_stride = tensor->stride[tensor->rank - 3],
                                 .row_stride = tensor->stride[tensor->rank - 2]};
}

#endif
