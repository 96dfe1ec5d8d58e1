/*
 * halves.inc.h: panels of a weight of 16 bits in the layout out_in, transposed without widening: a vector holds twice as
 * many numbers as of float. Part of a kernel in float.
 */
#ifndef ATTN_KERNEL_PRODUCTS_HALVES_INC_H
#define ATTN_KERNEL_PRODUCTS_HALVES_INC_H

#include <string.h>

#include "kernel/scratch.inc.h"

enum {
    HALVES = 8,       /* numbers of 16 bits in 128 bits, in which the vectors of all processors interleave */
    LINE_HALVES = 32, /* in a cache line */
};

/* A number of 16 bits of each column of a panel. */
typedef uint16_t half_panel __attribute__((vector_size(PANEL * 2), aligned(2), may_alias));

/* Interleaves the first halves, or the second halves, of each 128 bits of a and b. */
static inline half_panel zip_halves_low(half_panel a, half_panel b)
{
#if LANES == 16
    return (half_panel)_mm512_unpacklo_epi16((__m512i)a, (__m512i)b);
#elif LANES == 8
    return (half_panel)_mm256_unpacklo_epi16((__m256i)a, (__m256i)b);
#else
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#endif
}

static inline half_panel zip_halves_high(half_panel a, half_panel b)
{
#if LANES == 16
    return (half_panel)_mm512_unpackhi_epi16((__m512i)a, (__m512i)b);
#elif LANES == 8
    return (half_panel)_mm256_unpackhi_epi16((__m256i)a, (__m256i)b);
#else
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#endif
}

/* 8 numbers of each of the columns 0, 8 …, of which the first is at from: 128 bits each. */
static inline half_panel load_halves(const uint16_t *from, size_t stride)
{
#if LANES >= 8
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)from)),
                                                _mm_loadu_si128((const __m128i *)(from + 8 * stride)), 1);
#endif
#if LANES == 16
    const __m256i high =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(from + 16 * stride))),
                                _mm_loadu_si128((const __m128i *)(from + 24 * stride)), 1);
    return (half_panel)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
#elif LANES == 8
    return (half_panel)low;
#else
    (void)stride;
    return *(const half_panel *)from;
#endif
}

/* to[d][j] = from[j][d], for PANEL columns j of 8 features d, by three rounds that interleave columns j and j + 4. */
ALWAYS_INLINE void transpose_halves(const uint16_t *from, size_t stride, uint16_t *to)
{
    half_panel columns[HALVES], zipped[HALVES];
#pragma GCC unroll 8
    for (size_t j = 0; j < HALVES; j++)
        columns[j] = load_halves(from + j * stride, stride);
    for (int round = 1; round < HALVES; round *= 2) {
#pragma GCC unroll 4
        for (int j = 0; j < HALVES / 2; j++) {
            zipped[2 * j] = zip_halves_low(columns[j], columns[j + HALVES / 2]);
            zipped[2 * j + 1] = zip_halves_high(columns[j], columns[j + HALVES / 2]);
        }
#pragma GCC unroll 8
        for (int j = 0; j < HALVES; j++)
            columns[j] = zipped[j];
    }
#pragma GCC unroll 8
    for (size_t d = 0; d < HALVES; d++)
        *(half_panel *)(to + d * PANEL) = columns[d];
}

/*
 * Packs a whole panel: to[feature][PANEL]. The columns of a weight may all lie in one set of the L1 cache, so a line of
 * each is copied first. The hardware prefetcher does not follow so many columns.
 */
static void pack_halves(const uint16_t *from, size_t stride, size_t features, uint16_t *to)
{
    uint16_t line[PANEL * LINE_HALVES] __attribute__((aligned(64)));
    size_t d = 0;
    for (; features - d >= LINE_HALVES; d += LINE_HALVES) {
#pragma GCC unroll 4
        for (size_t j = 0; j < PANEL; j++) {
            const uint16_t *column = from + j * stride + d;
            memcpy(line + j * LINE_HALVES, column, sizeof(uint16_t) * LINE_HALVES);
            __builtin_prefetch(column + 2 * LINE_HALVES, 0, 3);
        }
#pragma GCC unroll 4
        for (size_t e = 0; e < LINE_HALVES; e += HALVES)
            transpose_halves(line + e, LINE_HALVES, to + (d + e) * PANEL);
    }
    for (; d < features; d++)
        for (size_t j = 0; j < PANEL; j++)
            to[d * PANEL + j] = from[j * stride + d];
}

#endif
