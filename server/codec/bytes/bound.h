/* bound.h: sums and products of sizes, for upper bounds of lengths. A result that does not fit becomes SIZE_MAX. */
#ifndef CODEC_BYTES_BOUND_H
#define CODEC_BYTES_BOUND_H

#include <stddef.h>
#include <stdint.h>

/* Computes bound + count * size. */
static inline size_t bound_add(size_t bound, size_t count, size_t size)
{
    size_t product, sum;
    if (__builtin_mul_overflow(count, size, &product) || __builtin_add_overflow(bound, product, &sum))
        return SIZE_MAX;
    return sum;
}

/* Counts the decimal digits of number. */
static inline size_t bound_digits(size_t number)
{
    size_t digits = 1;
    for (; number >= 10; number /= 10)
        digits++;
    return digits;
}

#endif
