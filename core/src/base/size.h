/* size.h: arithmetic on sizes: the smaller, the larger, and divisions that round up. */
#ifndef ATTN_BASE_SIZE_H
#define ATTN_BASE_SIZE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* The largest dimension, head count or row stride, because the BLAS counts by int. */
#define DIMENSION_MAX ((size_t)INT_MAX)

static inline size_t attn_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t attn_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The same for positions, which may be negative. */
static inline int64_t attn_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t attn_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* n / d, rounded up; d is at least 1. */
static inline size_t attn_ceil_div(size_t n, size_t d)
{
    return (n + d - 1) / d;
}

/* The least multiple of unit that is not below n. */
static inline size_t attn_round_up(size_t n, size_t unit)
{
    return attn_ceil_div(n, unit) * unit;
}

#endif
