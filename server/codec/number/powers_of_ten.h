/*
 * powers_of_ten.h: 10^k to 128 bits. Reading and writing of numbers share this table.
 *
 * For -342 <= k <= 324, high and low are the halves of the g with (g - 1) 2^e < 10^k <= g 2^e and 2^127 <= g < 2^128,
 * where e = power_of_ten_log2(k) - 127. So g is 10^k / 2^e, rounded up. It is exact for 0 <= k <= 55. low is 0 only for
 * 0 <= k <= 27, where high alone is exact.
 */
#ifndef CODEC_NUMBER_POWERS_OF_TEN_H
#define CODEC_NUMBER_POWERS_OF_TEN_H

#include <stdint.h>

enum { POWER_OF_TEN_MIN = -342, POWER_OF_TEN_MAX = 324 };

struct power_of_ten {
    uint64_t high, low;
};

/* The index is k - POWER_OF_TEN_MIN. */
extern const struct power_of_ten POWERS_OF_TEN[POWER_OF_TEN_MAX - POWER_OF_TEN_MIN + 1];

/* floor(log2(10^k)). Correct for |k| <= 1233. */
static inline int power_of_ten_log2(int k)
{
    return (k * 1741647) >> 19;
}

__extension__ typedef unsigned __int128 wide_product;

/* The full 128-bit product of two 64-bit numbers. */
static inline wide_product multiply_wide(uint64_t a, uint64_t b)
{
    return (wide_product)a * b;
}

#endif
