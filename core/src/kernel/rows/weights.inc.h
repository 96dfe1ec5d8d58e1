/*
 * weights.inc.h: sums over a row of attention weights, for the diagnostics, in float only. Part of a kernel.
 *
 * It reads as much memory as the softmax wrote, so it is vectorised too.
 */
#ifndef ATTN_KERNEL_ROWS_WEIGHTS_INC_H
#define ATTN_KERNEL_ROWS_WEIGHTS_INC_H

#include "kernel/entries.h"
#include "kernel/vector/operations.inc.h"

/* ln x for normal x: x = 2^e m with m in [sqrt(1/2), sqrt 2), ln m = 2 artanh s, s = (m - 1) / (m + 1). */
static inline vec log_vec(vec x)
{
    const ivec half_root = (ivec)splat(0.70710677f), mantissa = (ivec){0} + 0x7fffff;
    const ivec bits = (ivec)x - half_root, e = bits >> MANTISSA_BITS;
    const vec m = (vec)((bits & mantissa) + half_root);
    const vec s = (m - 1) / (m + 1), z = s * s;
    vec series = fma_scalars(z, 1.0f / 9, 1.0f / 7);
    series = fma_vec(z, series, splat(0.2f));
    series = fma_vec(z, series, splat(1.0f / 3));
    series = fma_vec(z, series, splat(1));
    return fma_scalar(0.693147181f, __builtin_convertvector(e, vec), 2 * s * series);
}

struct weight_sums {
    vec sum, moment, largest;
    ivec zeros; /* minus the number of zeros: a true lane is -1 */
};

/* p ln p is 0 at p = 0, because log_vec is finite there. */
static inline void add_weights(struct weight_sums *sums, vec p)
{
    sums->sum += p;
    sums->moment = fma_vec(p, log_vec(p), sums->moment);
    sums->largest = max_vec(p, sums->largest);
    sums->zeros += p == 0;
}

/* Two independent sums hide the latency of the additions. */
static void weigh_row(const REAL *p, size_t n, struct attn_weight_row *row)
{
    struct weight_sums even = {.sum = {0}}, odd = {.sum = {0}};
    REAL rest[LANES] = {0};
    size_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) {
        add_weights(&even, load(p + j));
        add_weights(&odd, load(p + j + LANES));
    }
    for (; j + LANES <= n; j += LANES)
        add_weights(&even, load(p + j));
    const size_t padding = j < n ? LANES - (n - j) : 0;
    if (j < n) {
        memcpy(rest, p + j, (n - j) * sizeof *rest);
        add_weights(&odd, load(rest));
    }
    const ivec zeros = even.zeros + odd.zeros;
    row->sum = sum_lanes(even.sum + odd.sum);
    row->moment = sum_lanes(even.moment + odd.moment);
    row->largest = max_lane(max_vec(even.largest, odd.largest));
    row->zeros = 0 - padding;
    for (int lane = 0; lane < LANES; lane++)
        row->zeros += (size_t)-zeros[lane];
}

#endif
