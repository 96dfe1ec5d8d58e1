/*
 * operand.h: the two layouts of queries, keys and values without gaps.
 */
#ifndef ATTN_ATTENTION_OPERAND_H
#define ATTN_ATTENTION_OPERAND_H

#include "kernel/job.h"

/* (batch, len, heads, d): the heads of a token are contiguous. */
static inline struct attn_operand attn_operand_by_tokens(const void *data, size_t heads, size_t len, size_t d)
{
    return (struct attn_operand){.data = data,
                                 .batch_stride = (ptrdiff_t)(len * heads * d),
                                 .head_stride = (ptrdiff_t)d,
                                 .row_stride = (ptrdiff_t)(heads * d)};
}

/* (batch, heads, len, d) */
static inline struct attn_operand attn_operand_by_heads(const void *data, size_t heads, size_t len, size_t d)
{
    return (struct attn_operand){.data = data,
                                 .batch_stride = (ptrdiff_t)(heads * len * d),
                                 .head_stride = (ptrdiff_t)(len * d),
                                 .row_stride = (ptrdiff_t)d};
}

#endif
