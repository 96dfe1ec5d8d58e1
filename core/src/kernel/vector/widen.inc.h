/*
 * widen.inc.h: loads of numbers of 16 bits, which are exact in float. Part of a kernel. A kernel in double reads its own
 * type only.
 */
#ifndef ATTN_KERNEL_VECTOR_WIDEN_INC_H
#define ATTN_KERNEL_VECTOR_WIDEN_INC_H

#include "attn/tensor.h"
#include "base/number.h"
#include "kernel/vector/operations.inc.h"

#if REAL_BITS == 32
#define KERNEL_TYPE ATTN_F32

typedef uint16_t half_vec __attribute__((vector_size(LANES * 2), aligned(2), may_alias));
typedef uint32_t bits_vec __attribute__((vector_size(VECTOR_BYTES)));

/* GCC 12 extends in two halves, and puts them together. */
static inline bits_vec load_half_bits(const uint16_t *from)
{
#if defined(__AVX512F__) && VECTOR_BYTES == 64
    return (bits_vec)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
#elif defined(__AVX2__) && VECTOR_BYTES == 32
    return (bits_vec)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
#else
    return __builtin_convertvector(*(const half_vec *)from, bits_vec);
#endif
}

static inline vec load_bf16(const uint16_t *from)
{
    return (vec)(load_half_bits(from) << 16);
}

static inline vec load_f16(const uint16_t *from)
{
#if defined(__AVX512F__)
    return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#elif defined(__F16C__)
    return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
#elif defined(__aarch64__)
    return (vec)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
#else
    /* A product by a power of two shifts the exponent, and is exact; infinity and NaN keep the highest exponent. */
    const bits_vec half = load_half_bits(from);
    const bits_vec magnitude = (half & 0x7FFF) << 13, special = (bits_vec)(magnitude >= 0x7C00u << 13);
    const bits_vec scaled = (bits_vec)((vec)magnitude * 0x1p112f);
    return (vec)(scaled | (special & 0x7F800000u) | (half & 0x8000) << 16);
#endif
}
#else
#define KERNEL_TYPE ATTN_F64
#endif

/* LANES numbers from number at on; dtype is a constant, so that one of the loads remains. */
ALWAYS_INLINE vec load_as(const void *from, ptrdiff_t at, const attn_dtype dtype)
{
#if REAL_BITS == 32
    if (dtype == ATTN_BF16)
        return load_bf16((const uint16_t *)from + at);
    if (dtype == ATTN_F16)
        return load_f16((const uint16_t *)from + at);
#endif
    (void)dtype;
    return load((const REAL *)from + at);
}

ALWAYS_INLINE REAL number_as(const void *from, ptrdiff_t at, const attn_dtype dtype)
{
    return dtype == KERNEL_TYPE ? ((const REAL *)from)[at] : (REAL)attn_number_at(from, dtype, at);
}

static inline size_t bytes_of(attn_dtype dtype)
{
    return dtype == KERNEL_TYPE ? sizeof(REAL) : sizeof(uint16_t);
}

ALWAYS_INLINE void widen_row_as(const void *from, size_t n, REAL *to, const attn_dtype dtype)
{
    size_t d = 0;
    for (; n - d >= LANES; d += LANES)
        store(to + d, load_as(from, (ptrdiff_t)d, dtype));
    for (; d < n; d++)
        to[d] = number_as(from, (ptrdiff_t)d, dtype);
}

static void widen_row(const void *from, attn_dtype dtype, size_t n, REAL *to)
{
    if (dtype == KERNEL_TYPE)
        widen_row_as(from, n, to, KERNEL_TYPE);
    else if (dtype == ATTN_BF16)
        widen_row_as(from, n, to, ATTN_BF16);
    else
        widen_row_as(from, n, to, ATTN_F16);
}

#endif
