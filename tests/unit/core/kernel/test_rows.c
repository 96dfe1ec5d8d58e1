/*
 * test_rows.c: the operations on rows (kernel/rows/) of every kernel, in both types, against their equations in long
 * double. Lengths are on both sides of every vector and of every group of vectors.
 */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "kernel/entries.h"

enum { MOST = 150, ROWS = 3 };

/* Arrays of numbers of one type. Guards behind the last number show what is written too far. */
struct numbers {
    attn_dtype type;
    float f32[ROWS * MOST + 1];
    double f64[ROWS * MOST + 1];
};

static void *data_of(struct numbers *numbers)
{
    return numbers->type == ATTN_F32 ? (void *)numbers->f32 : (void *)numbers->f64;
}

static long double number_at(const struct numbers *numbers, size_t at)
{
    return numbers->type == ATTN_F32 ? (long double)numbers->f32[at] : (long double)numbers->f64[at];
}

static void put(struct numbers *numbers, size_t at, double x)
{
    numbers->f32[at] = (float)x;
    numbers->f64[at] = x;
}

/* Numbers between -2 and 2, which the seed decides. */
static struct numbers some(attn_dtype type, unsigned seed)
{
    struct numbers made = {.type = type};
    for (size_t at = 0; at <= (size_t)ROWS * MOST; at++) {
        seed = seed * 1664525u + 1013904223u;
        put(&made, at, (double)(seed >> 8) / 4194304.0 - 2);
    }
    return made;
}

static long double roundoff(attn_dtype type)
{
    return type == ATTN_F32 ? (long double)FLT_EPSILON / 2 : (long double)DBL_EPSILON / 2;
}

static void expect_near(const struct numbers *y, size_t at, long double exact, long double bound, const char *what,
                        size_t n)
{
    if (!(fabsl(number_at(y, at) - exact) <= bound))
        ck_abort_msg("%s, type %d, %zu numbers: number %zu is %Lg, not %Lg", what, (int)y->type, n, at,
                     number_at(y, at), exact);
}

/* Calls check for every kernel, type and length. */
static void for_all(void (*check)(const struct attn_kernel_type *kernel, attn_dtype type, size_t n))
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (int type = ATTN_F32; type <= ATTN_F64; type++)
            for (size_t n = 1; n <= MOST; n++)
                check(attn_kernel_of(kernel, (attn_dtype)type), (attn_dtype)type, n);
}

/* ---- norm ---- */

static void expect_norm(const struct attn_row_norm *norm, const struct numbers *x, size_t row,
                        const struct numbers *gain, const struct numbers *shift, const struct numbers *y)
{
    const size_t d = norm->d;
    long double mean = 0, squares = 0;
    for (size_t f = 0; f < d && norm->type == ATTN_NORM_LAYER; f++)
        mean += number_at(x, row * d + f) / (long double)d;
    for (size_t f = 0; f < d; f++)
        squares += powl(number_at(x, row * d + f) - mean, 2);
    const long double factor = norm->type == ATTN_NORM_L2
                                   ? 1 / fmaxl(sqrtl(squares), (long double)norm->eps)
                                   : 1 / sqrtl(squares / (long double)d + (long double)norm->eps);
    for (size_t f = 0; f < d; f++) {
        const long double z = (number_at(x, row * d + f) - mean) * factor;
        const long double g = norm->gain == NULL ? 1 : number_at(gain, f),
                          s = norm->shift == NULL ? 0 : number_at(shift, f);
        /* In double: sums of up to 16 numbers a lane, whose terms are at most 16 (squares) or 2 + 2, and eps is small
         * beside the variance; then up to four roundings. In float only the last rounding is left. */
        const long double of_sums = 64 * roundoff(ATTN_F64) * (fabsl(g) * (4 * factor + fabsl(z)) + fabsl(s));
        expect_near(y, row * d + f, z * g + s, of_sums + roundoff(y->type) * fabsl(z * g + s), "norm", d);
    }
}

static void check_norm(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    const attn_norm_type types[] = {ATTN_NORM_LAYER, ATTN_NORM_RMS, ATTN_NORM_L2};
    for (size_t t = 0; t < 3; t++)
        for (int parts = 0; parts < 4; parts++) {
            struct numbers x = some(type, 1 + (unsigned)n), gain = some(type, 2), shift = some(type, 3),
                           y = some(type, 4);
            const long double guard = number_at(&y, ROWS * n);
            const struct attn_row_norm norm = {.type = types[t],
                                               .d = n,
                                               .eps = 1e-3,
                                               .gain = parts % 2 == 0 ? NULL : data_of(&gain),
                                               .shift = parts / 2 == 0 ? NULL : data_of(&shift)};
            kernel->norm(&norm, ROWS, data_of(&x), data_of(&y));
            for (size_t row = 0; row < ROWS; row++)
                expect_norm(&norm, &x, row, &gain, &shift, &y);
            ck_assert(number_at(&y, ROWS * n) == guard);
            kernel->norm(&norm, ROWS, data_of(&x), data_of(&x));
            for (size_t at = 0; at < ROWS * n; at++)
                if (number_at(&x, at) != number_at(&y, at))
                    ck_abort_msg("in place, number %zu differs", at);
        }
}

START_TEST(norms_are_their_equations)
{
    for_all(check_norm);
}
END_TEST

/* The sums of gain and shift begin at 0.5. */
static void expect_norm_back(const struct attn_kernel_type *kernel, const struct attn_row_norm *norm,
                             const struct numbers *gain, struct numbers *x, struct numbers *dy)
{
    const size_t d = norm->d;
    struct numbers dx = some(x->type, 42);
    double of_gain[MOST + 1], of_shift[MOST + 1];
    long double mean = 0, squares = 0, mean_dz = 0, along = 0;
    for (size_t f = 0; f <= d; f++)
        of_gain[f] = of_shift[f] = 0.5;
    for (size_t f = 0; f < d && norm->type == ATTN_NORM_LAYER; f++)
        mean += number_at(x, f) / (long double)d;
    for (size_t f = 0; f < d; f++)
        squares += powl(number_at(x, f) - mean, 2);
    const long double eps = (long double)norm->eps, length = sqrtl(squares);
    const bool is_l2 = norm->type == ATTN_NORM_L2;
    const long double r = is_l2 ? 1 / fmaxl(length, eps) : 1 / sqrtl(squares / (long double)d + eps);
    for (size_t f = 0; f < d; f++) {
        const long double dz = number_at(dy, f) * (norm->gain == NULL ? 1 : number_at(gain, f));
        mean_dz += norm->type == ATTN_NORM_LAYER ? dz / (long double)d : 0;
        along += dz * (number_at(x, f) - mean) * r / (is_l2 ? 1 : (long double)d);
    }
    along = is_l2 && length <= eps ? 0 : along;
    const long double guard = number_at(&dx, d);
    const struct attn_norm_gradient_row row = {data_of(x), data_of(dy), data_of(&dx), of_gain, of_shift};
    kernel->norm_back(norm, &row);
    for (size_t f = 0; f < d; f++) {
        const long double z = (number_at(x, f) - mean) * r, g = norm->gain == NULL ? 1 : number_at(gain, f);
        const long double exact = r * (number_at(dy, f) * g - mean_dz - z * along);
        /* in double: sums of up to 150 terms up to 8, then some roundings; in float the last rounding is left */
        const long double of_sums = 600 * roundoff(ATTN_F64) * r * (8 + (1 + fabsl(z)) * (8 + fabsl(along)));
        expect_near(&dx, f, exact, of_sums + roundoff(x->type) * fabsl(exact), "norm back", d);
        if (!(fabsl((long double)of_gain[f] - 0.5L - number_at(dy, f) * z) <= of_sums / r))
            ck_abort_msg("norm back, gain %zu is %g", f, of_gain[f]);
        if (of_shift[f] != 0.5 + (double)number_at(dy, f))
            ck_abort_msg("norm back, shift %zu is %g", f, of_shift[f]);
    }
    ck_assert(number_at(&dx, d) == guard && of_gain[d] == 0.5 && of_shift[d] == 0.5);
}

static void check_norm_back(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    const attn_norm_type types[] = {ATTN_NORM_LAYER, ATTN_NORM_RMS, ATTN_NORM_L2};
    for (size_t t = 0; t < 3; t++)
        for (int parts = 0; parts < 4; parts++) {
            struct numbers x = some(type, 40 + (unsigned)n), dy = some(type, 41), gain = some(type, 43);
            const struct attn_row_norm norm = {.type = types[t],
                                               .d = n,
                                               .eps = parts / 2 == 0 ? 1e-3 : 50, /* above the length of a row */
                                               .gain = parts % 2 == 0 ? NULL : data_of(&gain)};
            expect_norm_back(kernel, &norm, &gain, &x, &dy);
        }
}

START_TEST(norms_go_back)
{
    for_all(check_norm_back);
}
END_TEST

static void check_zero_gradient(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    struct numbers x = some(type, 44), dx = some(type, 45), dy = {.type = type};
    double sums[2 * MOST] = {0};
    put(&x, 0, (double)NAN);
    const struct attn_row_norm norm = {.type = ATTN_NORM_LAYER, .d = n, .eps = 1e-3};
    const struct attn_norm_gradient_row row = {data_of(&x), data_of(&dy), data_of(&dx), sums, sums + n};
    kernel->norm_back(&norm, &row);
    for (size_t f = 0; f < n; f++)
        ck_assert(number_at(&dx, f) == 0 && sums[f] == 0 && sums[n + f] == 0);
}

START_TEST(a_gradient_of_0_goes_through_nan)
{
    for_all(check_zero_gradient);
}
END_TEST

/* A mean a thousand times the deviation keeps the digits that the numbers have. */
static void check_large_mean(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    struct numbers x = some(type, 5), y = some(type, 6);
    for (size_t at = 0; at < ROWS * n; at++)
        put(&x, at, (double)(1000 + number_at(&x, at)));
    const struct attn_row_norm norm = {.type = ATTN_NORM_LAYER, .d = n, .eps = 1e-3};
    kernel->norm(&norm, 1, data_of(&x), data_of(&y));
    long double mean = 0, squares = 0;
    for (size_t f = 0; f < n; f++)
        mean += number_at(&x, f) / (long double)n;
    for (size_t f = 0; f < n; f++)
        squares += powl(number_at(&x, f) - mean, 2);
    const long double factor = 1 / sqrtl(squares / (long double)n + 1e-3L);
    for (size_t f = 0; f < n; f++) { /* the sum is of numbers near 1000, 16 of them a lane and some more sums */
        const long double exact = (number_at(&x, f) - mean) * factor;
        expect_near(&y, f, exact, 40 * 1000 * factor * roundoff(ATTN_F64) + 2 * roundoff(type) * fabsl(exact), "mean",
                    n);
    }
}

START_TEST(a_large_mean_costs_no_digits)
{
    for_all(check_large_mean);
}
END_TEST

static void check_squares(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    struct numbers x = some(type, 7);
    long double sum = 0;
    for (size_t at = 0; at < n; at++)
        sum += number_at(&x, at) * number_at(&x, at);
    ck_assert(fabsl((long double)kernel->sum_squares(n, data_of(&x)) - sum) <= 80 * roundoff(ATTN_F64) * sum);
}

START_TEST(squares_are_summed_in_double)
{
    for_all(check_squares);
}
END_TEST

/* ---- gate, branch, mean ---- */

static void check_gate(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        struct numbers x = some(type, 8), gate = some(type, 9), y = some(type, 10);
        for (size_t at = 0; at < ROWS * n; at++) /* from -60 to 60 */
            put(&gate, at, (double)(30 * number_at(&gate, at)));
        const long double guard = number_at(&y, ROWS * n);
        kernel->gate(ROWS, n, is_shared ? 1 : n, data_of(&x), data_of(&gate), data_of(&y));
        for (size_t at = 0; at < ROWS * n; at++) {
            const long double exact = number_at(&x, at) / (1 + expl(-number_at(&gate, is_shared ? at / n : at)));
            /* the exponential is off by 1.07 ulp at most, and three roundings follow */
            expect_near(&y, at, exact, 6 * roundoff(type) * fabsl(exact), "gate", n);
        }
        ck_assert(number_at(&y, ROWS * n) == guard);
    }
}

START_TEST(the_gate_multiplies_by_a_sigmoid)
{
    for_all(check_gate);
}
END_TEST

/* dy and x of number 2 are 0 and NaN. */
static void expect_gate_back(const struct attn_kernel_type *kernel, attn_dtype type, size_t n, size_t d_gate)
{
    struct numbers dy = some(type, 30), x = some(type, 31), gate = some(type, 32), dx = some(type, 33),
                   dg = some(type, 34);
    const long double guard = number_at(&dx, ROWS * n), gate_guard = number_at(&dg, ROWS * d_gate);
    for (size_t at = 0; at < ROWS * n; at++) /* from -60 to 60 */
        put(&gate, at, (double)(30 * number_at(&gate, at)));
    put(&dy, 2, 0);
    put(&x, 2, (double)NAN);
    const struct attn_gate_gradient gradient = {.heads = ROWS,
                                                .d_v = n,
                                                .d_gate = d_gate,
                                                .concat = data_of(&x),
                                                .gate = data_of(&gate),
                                                .grad_gated = data_of(&dy),
                                                .grad_concat = data_of(&dx),
                                                .grad_gate = data_of(&dg)};
    kernel->gate_back(&gradient);
    for (size_t head = 0; head < ROWS; head++) {
        long double sum = 0, size = 0;
        for (size_t f = 0; f < n; f++) {
            const size_t at = head * n + f;
            const long double g = number_at(&gate, d_gate == 1 ? head : at), s = 1 / (1 + expl(-g));
            const long double slope = s / (1 + expl(g));
            const long double of_gate = at == 2 ? 0 : number_at(&dy, at) * number_at(&x, at) * slope;
            /* the exponential is off by 1.07 ulp at most, and up to five roundings follow */
            expect_near(&dx, at, number_at(&dy, at) * s, 8 * roundoff(type) * fabsl(number_at(&dy, at) * s), "grad", n);
            if (d_gate == n && n != 1)
                expect_near(&dg, at, of_gate, 12 * roundoff(type) * fabsl(of_gate), "grad of a gate", n);
            sum += of_gate;
            size += fabsl(of_gate);
        }
        if (d_gate == 1)
            expect_near(&dg, head, sum, 12 * roundoff(type) * size, "grad of a shared gate", n);
    }
    ck_assert(number_at(&dx, ROWS * n) == guard);
    ck_assert(number_at(&dg, ROWS * d_gate) == gate_guard);
}

static void check_gate_back(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    expect_gate_back(kernel, type, n, n);
    expect_gate_back(kernel, type, n, 1);
}

START_TEST(the_gate_goes_back)
{
    for_all(check_gate_back);
}
END_TEST

START_TEST(an_unwanted_gradient_of_the_gate_is_not_written)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t d_gate = 1; d_gate <= 20; d_gate += 19) {
            struct numbers dy = some(ATTN_F32, 30), x = some(ATTN_F32, 31), gate = some(ATTN_F32, 32);
            struct numbers both[2] = {some(ATTN_F32, 33), some(ATTN_F32, 34)}, one[2] = {both[0], both[1]};
            struct attn_gate_gradient gradient = {ROWS, 20, d_gate, x.f32, gate.f32, dy.f32, both[0].f32, both[1].f32};
            kernel->f32->gate_back(&gradient);
            gradient.grad_concat = NULL;
            gradient.grad_gate = one[1].f32;
            kernel->f32->gate_back(&gradient);
            gradient.grad_concat = one[0].f32;
            gradient.grad_gate = NULL;
            kernel->f32->gate_back(&gradient);
            ck_assert_mem_eq(both, one, sizeof both);
        }
}
END_TEST

static void check_branch(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    uint8_t keep[MOST];
    for (size_t at = 0; at < n; at++)
        keep[at] = at * at % 5 < 3;
    for (int parts = 0; parts < 4; parts++) {
        struct numbers x = some(type, 11), residual = some(type, 12), y = some(type, 13);
        const long double guard = number_at(&y, n);
        put(&x, 3, (double)NAN); /* is dropped */
        const struct attn_branch_sum sum = {.x = data_of(&x),
                                            .residual = parts % 2 == 0 ? NULL : data_of(&residual),
                                            .keep = parts / 2 == 0 ? NULL : keep,
                                            .gain = 1.25,
                                            .scale = 0.75,
                                            .y = data_of(&y)};
        kernel->add_branch(&sum, n);
        for (size_t at = 0; at < n; at++) {
            const bool is_kept = sum.keep == NULL || keep[at];
            const long double gain = sum.keep == NULL ? 1 : 1.25L, from = parts % 2 == 0 ? 0 : number_at(&residual, at);
            const long double branch = is_kept ? number_at(&x, at) * gain * 0.75L : 0;
            if (at == 3 && is_kept)
                ck_assert(isnan((double)number_at(&y, at)));
            else
                expect_near(&y, at, from + branch, 3 * roundoff(type) * (fabsl(from) + fabsl(branch)), "branch", n);
        }
        ck_assert(number_at(&y, n) == guard);
    }
}

START_TEST(a_branch_is_dropped_scaled_and_added)
{
    for_all(check_branch);
}
END_TEST

static void check_mean(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    struct numbers x = some(type, 14), y = some(type, 15);
    const long double guard = number_at(&y, n);
    kernel->mean(ROWS, MOST, n, data_of(&x), data_of(&y));
    for (size_t at = 0; at < n; at++) {
        long double sum = 0, size = 0;
        for (size_t row = 0; row < ROWS; row++) {
            sum += number_at(&x, row * MOST + at);
            size += fabsl(number_at(&x, row * MOST + at));
        }
        const long double exact = sum / ROWS, bound = 3 * roundoff(ATTN_F64) * size + roundoff(type) * fabsl(exact);
        expect_near(&y, at, exact, bound, "mean", n);
    }
    ck_assert(number_at(&y, n) == guard);
}

START_TEST(the_mean_is_taken_in_double)
{
    for_all(check_mean);
}
END_TEST

static void check_weighing(const struct attn_kernel_type *kernel, attn_dtype type, size_t n)
{
    struct numbers weights = some(type, 35), y = some(type, 36);
    double norms[MOST + 1];
    for (size_t at = 0; at < n; at++)
        norms[at] = (double)at;
    put(&weights, 1, 0);
    norms[1] = (double)INFINITY; /* behind a weight of 0 */
    const long double guard = number_at(&y, n);
    kernel->weigh_norms(n, data_of(&weights), norms, 0.75, data_of(&y));
    for (size_t at = 0; at < n; at++) {
        const long double exact = at == 1 ? 0 : 0.75L * fabsl(number_at(&weights, at)) * (long double)norms[at];
        expect_near(&y, at, exact, 3 * roundoff(type) * exact, "contribution", n);
    }
    ck_assert(number_at(&y, n) == guard);
}

START_TEST(a_weight_of_0_hides_its_norm)
{
    for_all(check_weighing);
}
END_TEST

/* ---- rotation ---- */

static const attn_rope_layout layouts[] = {ATTN_ROPE_HALF, ATTN_ROPE_INTERLEAVED, ATTN_ROPE_INTERLEAVED_TO_HALF};

static void check_rotation(const struct attn_kernel_type *kernel, attn_dtype type, size_t half)
{
    const size_t dim = 2 * half, d = dim + 3;
    if (d > MOST)
        return;
    for (size_t l = 0; l < 3; l++) {
        struct numbers x = some(type, 16), c = some(type, 17), s = some(type, 18), y = some(type, 19);
        const struct attn_rotation rotation = {.layout = layouts[l], .d = d, .dim = dim};
        const long double guard = number_at(&y, d);
        kernel->rotate(&rotation, data_of(&c), data_of(&s), data_of(&x), data_of(&y));
        for (size_t i = 0; i < half; i++) {
            const size_t x1 = l == 0 ? i : 2 * i, x2 = l == 0 ? i + half : 2 * i + 1;
            const size_t y1 = l == 1 ? 2 * i : i, y2 = l == 1 ? 2 * i + 1 : i + half;
            const long double a = number_at(&x, x1), b = number_at(&x, x2), cosine = number_at(&c, i);
            const long double sine = number_at(&s, i), bound = 2 * roundoff(type) * 8; /* products are at most 4 */
            expect_near(&y, y1, a * cosine - b * sine, bound, "rotation", dim);
            expect_near(&y, y2, b * cosine + a * sine, bound, "rotation", dim);
        }
        for (size_t f = dim; f < d; f++)
            ck_assert(number_at(&y, f) == number_at(&x, f));
        ck_assert(number_at(&y, d) == guard);
    }
}

START_TEST(a_rotation_turns_the_pairs_of_every_layout)
{
    for_all(check_rotation);
}
END_TEST

static void check_turning_back(const struct attn_kernel_type *kernel, attn_dtype type, size_t half)
{
    const size_t dim = 2 * half, d = dim + 2;
    if (d > MOST)
        return;
    for (size_t l = 0; l < 3; l++) {
        struct numbers x = some(type, 20), c = some(type, 21), s = some(type, 22), y = some(type, 23),
                       z = some(type, 24);
        for (size_t i = 0; i < half; i++) {
            put(&c, i, cos((double)i));
            put(&s, i, sin((double)i));
        }
        struct attn_rotation rotation = {.layout = layouts[l], .d = d, .dim = dim};
        kernel->rotate(&rotation, data_of(&c), data_of(&s), data_of(&x), data_of(&y));
        rotation.inverse = true;
        kernel->rotate(&rotation, data_of(&c), data_of(&s), data_of(&y), data_of(&z));
        for (size_t f = 0; f < d; f++) /* numbers up to 4, rounded a few times */
            expect_near(&z, f, number_at(&x, f), 32 * roundoff(type), "back", dim);
    }
}

START_TEST(turning_back_undoes_a_rotation)
{
    for_all(check_turning_back);
}
END_TEST

CHECK_MAIN("rows")
{
    tcase_add_test(tests, norms_are_their_equations);
    tcase_add_test(tests, norms_go_back);
    tcase_add_test(tests, a_gradient_of_0_goes_through_nan);
    tcase_add_test(tests, a_large_mean_costs_no_digits);
    tcase_add_test(tests, squares_are_summed_in_double);
    tcase_add_test(tests, the_gate_multiplies_by_a_sigmoid);
    tcase_add_test(tests, the_gate_goes_back);
    tcase_add_test(tests, an_unwanted_gradient_of_the_gate_is_not_written);
    tcase_add_test(tests, a_branch_is_dropped_scaled_and_added);
    tcase_add_test(tests, the_mean_is_taken_in_double);
    tcase_add_test(tests, a_weight_of_0_hides_its_norm);
    tcase_add_test(tests, a_rotation_turns_the_pairs_of_every_layout);
    tcase_add_test(tests, turning_back_undoes_a_rotation);
}
