/*
 * number.h: one number of the compute type, or of 16 bits, for loops that are too rare or too short to be written for
 * each type.
 */
#ifndef ATTN_BASE_NUMBER_H
#define ATTN_BASE_NUMBER_H

#include <stdbool.h>
#include <string.h>

#include "attn/tensor.h"

/* convert.c: whether this CPU converts float16 by instructions of x86-64, F16C. */
bool attn_has_f16c(void);

/*
 * Half precision to single, which is exact. A product by a power of two shifts the exponent, and is exact for subnormal
 * numbers, too; infinity and NaN keep the highest exponent. There is no branch, so that the compiler vectorises loops.
 */
static inline float attn_single_of_f16(uint16_t half)
{
    const uint32_t magnitude = (uint32_t)(half & 0x7FFF) << 13;
    float value;
    uint32_t bits;
    memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;
    memcpy(&bits, &value, sizeof bits);
    bits |= (magnitude >= 0x7C00u << 13 ? 0x7F800000u : 0u) | (uint32_t)(half & 0x8000) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float attn_single_of_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The number at an index computed from strides, which may be negative. */
static inline double attn_number_at(const void *data, attn_dtype dtype, ptrdiff_t at)
{
    if (dtype == ATTN_F16)
        return (double)attn_single_of_f16(((const uint16_t *)data)[at]);
    if (dtype == ATTN_BF16)
        return (double)attn_single_of_bf16(((const uint16_t *)data)[at]);
    return dtype == ATTN_F32 ? (double)((const float *)data)[at] : ((const double *)data)[at];
}

static inline double attn_number_get(const void *data, attn_dtype dtype, size_t at)
{
    return attn_number_at(data, dtype, (ptrdiff_t)at);
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
