/*
 * wide.inc.h: vectors of double, read from and written to numbers of REAL. Sums over the features of a row are taken in
 * them, for both types. Part of a kernel.
 */
#ifndef ATTN_KERNEL_ROWS_WIDE_INC_H
#define ATTN_KERNEL_ROWS_WIDE_INC_H

#include "kernel/vector/operations.inc.h"

#define WIDE_LANES (VECTOR_BYTES / 8)
#define WIDE_SUMS  4 /* partial sums side by side, which hide the latency of an addition */

typedef double wide __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t wide_bits __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL wide_numbers __attribute__((vector_size(WIDE_LANES * sizeof(REAL))));
typedef REAL loose_wide_numbers
    __attribute__((vector_size(WIDE_LANES * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));

/* GCC 12 converts half a vector at a time, so the conversion of a whole one is an intrinsic. */
static inline wide load_wide(const REAL *from)
{
#if defined(__AVX512F__) && REAL_BITS == 32
    return (wide)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(__AVX2__) && REAL_BITS == 32
    return (wide)_mm256_cvtps_pd(_mm_loadu_ps(from));
#else
    return __builtin_convertvector((wide_numbers)(*(const loose_wide_numbers *)from), wide);
#endif
}

static inline void store_wide(REAL *to, wide x)
{
    *(loose_wide_numbers *)to = __builtin_convertvector(x, wide_numbers);
}

/* The sum of the lanes of all partial sums, in the order of a fixed tree. */
static inline double sum_wide(const wide sum[WIDE_SUMS])
{
    const wide all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    double lane[WIDE_LANES];
    memcpy(lane, &all, sizeof lane);
    for (int width = WIDE_LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

/* Sum of (x - centre)^2. */
static double sum_squares(size_t n, const REAL *x, double centre)
{
    wide sum[WIDE_SUMS] = {{0}};
    size_t i = 0;
    for (; i + WIDE_SUMS * WIDE_LANES <= n; i += WIDE_SUMS * WIDE_LANES)
        UNROLLED_FOR (s, WIDE_SUMS) {
            const wide z = load_wide(x + i + (size_t)s * WIDE_LANES) - centre;
            sum[s] += z * z;
        }
    for (; i + WIDE_LANES <= n; i += WIDE_LANES) {
        const wide z = load_wide(x + i) - centre;
        sum[0] += z * z;
    }
    double total = sum_wide(sum);
    for (; i < n; i++)
        total += ((double)x[i] - centre) * ((double)x[i] - centre);
    return total;
}

/* Sum of x. */
static double sum_numbers(size_t n, const REAL *x)
{
    wide sum[WIDE_SUMS] = {{0}};
    size_t i = 0;
    for (; i + WIDE_SUMS * WIDE_LANES <= n; i += WIDE_SUMS * WIDE_LANES)
        UNROLLED_FOR (s, WIDE_SUMS)
            sum[s] += load_wide(x + i + (size_t)s * WIDE_LANES);
    for (; i + WIDE_LANES <= n; i += WIDE_LANES)
        sum[0] += load_wide(x + i);
    double total = sum_wide(sum);
    for (; i < n; i++)
        total += (double)x[i];
    return total;
}

#endif
