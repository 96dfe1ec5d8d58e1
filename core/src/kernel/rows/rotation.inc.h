/*
 * rotation.inc.h: the rotation of queries and keys by their positions (attn/rope.h). Part of a kernel.
 */
#ifndef ATTN_KERNEL_ROWS_ROTATION_INC_H
#define ATTN_KERNEL_ROWS_ROTATION_INC_H

#include "kernel/entries.h"
#include "kernel/vector/operations.inc.h"

#define ALL_2(f, i)  f(i), f((i) + 1)
#define ALL_4(f, i)  ALL_2(f, i), ALL_2(f, (i) + 2)
#define ALL_8(f, i)  ALL_4(f, i), ALL_4(f, (i) + 4)
#define ALL_16(f, i) ALL_8(f, i), ALL_8(f, (i) + 8)
#if LANES == 16
#define PAIR_LANES(f) ALL_16(f, 0)
#elif LANES == 8
#define PAIR_LANES(f) ALL_8(f, 0)
#elif LANES == 4
#define PAIR_LANES(f) ALL_4(f, 0)
#else
#define PAIR_LANES(f) ALL_2(f, 0)
#endif
#define EVEN(i)     (2 * (i))
#define ODD(i)      (2 * (i) + 1)
#define ZIP_LOW(i)  ((i) / 2 + (i) % 2 * LANES)
#define ZIP_HIGH(i) (LANES / 2 + (i) / 2 + (i) % 2 * LANES)

/* The first and the second numbers of LANES pairs. apart 0: the two numbers of a pair are neighbours. */
struct pairs {
    vec first, second;
};

static inline struct pairs load_pairs(const REAL *x, size_t i, size_t apart)
{
    if (apart != 0)
        return (struct pairs){load(x + i), load(x + i + apart)};
    const vec a = load(x + 2 * i), b = load(x + 2 * i + LANES);
    return (struct pairs){__builtin_shufflevector(a, b, PAIR_LANES(EVEN)),
                          __builtin_shufflevector(a, b, PAIR_LANES(ODD))};
}

static inline void store_pairs(REAL *y, size_t i, size_t apart, struct pairs p)
{
    if (apart != 0) {
        store(y + i, p.first);
        store(y + i + apart, p.second);
        return;
    }
    store(y + 2 * i, __builtin_shufflevector(p.first, p.second, PAIR_LANES(ZIP_LOW)));
    store(y + 2 * i + LANES, __builtin_shufflevector(p.first, p.second, PAIR_LANES(ZIP_HIGH)));
}

ALWAYS_INLINE void rotate_pairs(size_t pairs, const size_t from, const size_t to, const REAL *c, const REAL *s,
                                REAL sign, const REAL *x, REAL *y)
{
    size_t i = 0;
    for (; i + LANES <= pairs; i += LANES) {
        const struct pairs p = load_pairs(x, i, from);
        const vec cosine = load(c + i), sine = load(s + i) * sign;
        store_pairs(y, i, to, (struct pairs){p.first * cosine - p.second * sine, p.second * cosine + p.first * sine});
    }
    for (; i < pairs; i++) {
        const REAL *a = x + (from == 0 ? 2 * i : i), *b = a + (from == 0 ? 1 : from);
        REAL *first = y + (to == 0 ? 2 * i : i), *second = first + (to == 0 ? 1 : to);
        const REAL cosine = c[i], sine = s[i] * sign;
        *first = *a * cosine - *b * sine;
        *second = *b * cosine + *a * sine;
    }
}

static void rotate(const struct attn_rotation *rotation, const void *cosines, const void *sines, const void *x, void *y)
{
    const size_t half = rotation->dim / 2;
    const REAL sign = rotation->inverse ? -1 : 1;
    size_t from = rotation->layout == ATTN_ROPE_HALF ? half : 0,
           to = rotation->layout == ATTN_ROPE_INTERLEAVED ? 0 : half;
    if (rotation->inverse) {
        const size_t swapped = from;
        from = to;
        to = swapped;
    }
    rotate_pairs(half, from, to, cosines, sines, sign, x, y);
    memcpy((REAL *)y + rotation->dim, (const REAL *)x + rotation->dim, (rotation->d - rotation->dim) * sizeof(REAL));
}

#endif
