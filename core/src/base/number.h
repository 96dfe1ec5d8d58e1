/*
 * number.h: one number of the compute type, for loops that are too rare or too short to be written for each type.
 */
#ifndef ATTN_BASE_NUMBER_H
#define ATTN_BASE_NUMBER_H

#include "attn/tensor.h"

static inline double attn_number_get(const void *data, attn_dtype compute, size_t at)
{
    return compute == ATTN_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

/* The same at an index computed from strides, which may be negative. */
static inline double attn_number_at(const void *data, attn_dtype dtype, ptrdiff_t at)
{
    return dtype == ATTN_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static inline void attn_number_put(void *data, attn_dtype compute, size_t at, double value)
{
    if (compute == ATTN_F32)
        ((float *)data)[at] = (float)value;
    else
        ((double *)data)[at] = value;
}

static inline void attn_number_add(void *data, attn_dtype compute, size_t at, double value)
{
    attn_number_put(data, compute, at, attn_number_get(data, compute, at) + value);
}

#endif
