/*
 * weights.inc.h: what the diagnostics ask of a row of the map: sums over its weights, in float alone.
 *
 * Included by instantiate.inc.h for float. It reads as much memory as the softmax wrote, so that it has to be as wide.
 */

/* ln x of normal numbers: x = 2^e m with m in [sqrt(1/2), sqrt 2), ln m = 2 artanh s, s = (m - 1) / (m + 1). */
static inline vec FN(logarithm)(vec x)
{
    const ivec half_root = (ivec)FN(splat)(0.70710677f), mantissa = (ivec){0} + 0x7fffff;
    const ivec bits = (ivec)x - half_root, e = bits >> MANTISSA_BITS;
    const vec m = (vec)((bits & mantissa) + half_root);
    const vec s = (m - 1) / (m + 1), z = s * s;
    vec series = FN(fma_numbers)(z, 1.0f / 9, 1.0f / 7);
    series = FN(fma)(z, series, FN(splat)(0.2f));
    series = FN(fma)(z, series, FN(splat)(1.0f / 3));
    series = FN(fma)(z, series, FN(splat)(1));
    return FN(fma_number)(0.693147181f, __builtin_convertvector(e, vec), 2 * s * series);
}

struct FN(weight_sums) {
    vec sum, moment, largest;
    ivec zeros; /* less the number of them: a true lane is -1 */
};

/* p ln p is 0 at p = 0: the logarithm there is some finite number. */
static inline void FN(add_weights)(struct FN(weight_sums) *sums, vec p)
{
    sums->sum += p;
    sums->moment = FN(fma)(p, FN(logarithm)(p), sums->moment);
    sums->largest = FN(larger)(p, sums->largest);
    sums->zeros += p == 0;
}

/* Two sums side by side, so that one does not wait for the other. */
static void FN(weigh_row)(const REAL *p, size_t n, struct attn_weight_row *row)
{
    struct FN(weight_sums) even = {.sum = {0}}, odd = {.sum = {0}};
    REAL rest[LANES] = {0};
    size_t j = 0;
    for (; j + 2 * LANES <= n; j += 2 * LANES) {
        FN(add_weights)(&even, FN(load)(p + j));
        FN(add_weights)(&odd, FN(load)(p + j + LANES));
    }
    for (; j + LANES <= n; j += LANES)
        FN(add_weights)(&even, FN(load)(p + j));
    const size_t padding = j < n ? LANES - (n - j) : 0;
    if (j < n) {
        memcpy(rest, p + j, (n - j) * sizeof *rest);
        FN(add_weights)(&odd, FN(load)(rest));
    }
    const ivec zeros = even.zeros + odd.zeros;
    row->sum = FN(sum_lanes)(even.sum + odd.sum);
    row->moment = FN(sum_lanes)(even.moment + odd.moment);
    row->largest = FN(largest_lane)(FN(larger)(even.largest, odd.largest));
    row->zeros = 0 - padding;
    for (int lane = 0; lane < LANES; lane++)
        row->zeros += (size_t)-zeros[lane];
}
