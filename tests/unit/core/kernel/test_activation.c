/* test_activation.c: the activations of every kernel, against the C library's functions in higher precision. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "kernel/kernel.h"

enum { COUNT = 4001 };

static const attn_activation all[] = {ATTN_ACTIVATION_RELU, ATTN_ACTIVATION_GELU, ATTN_ACTIVATION_GELU_TANH,
                                      ATTN_ACTIVATION_QUICK_GELU, ATTN_ACTIVATION_SILU};
enum { ACTIVATIONS = sizeof all / sizeof *all };

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

/* The exact value; *u is the argument of its exponential, whose rounding errors are in proportion to it. */
static long double exact_of(attn_activation activation, long double x, long double *u)
{
    const long double root = 0.7978845608028653558798921198687637369517L; /* of 2 / pi */
    *u = 0;
    switch (activation) {
    case ATTN_ACTIVATION_NONE:
        break;
    case ATTN_ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case ATTN_ACTIVATION_GELU:
        *u = x * x / 2;
        return x * erfcl(-x * 0.70710678118654752440084436210485L) / 2;
    case ATTN_ACTIVATION_GELU_TANH:
        *u = 2 * root * (x + 0.044715L * x * x * x);
        return x * sigmoid(*u);
    case ATTN_ACTIVATION_QUICK_GELU:
        *u = 1.702L * x;
        return x * sigmoid(*u);
    case ATTN_ACTIVATION_SILU:
        *u = x;
        return x * sigmoid(x);
    }
    return x;
}

/*
 * Four roundings and the exponential make 5 units of the result. The argument of the exponential is rounded up to three
 * times, and an error of it is a factor of a result that the exponential makes small. 1 / (1 + e^x) is 0 where it would be
 * subnormal.
 */
static long double bound_of(long double exact, long double u, long double x, long double epsilon, long double least)
{
    const long double from_argument = x < 0 ? 2 * fabsl(u) : 0;
    return fabsl(exact) * (5 + from_argument) * epsilon + fabsl(x) * least + least;
}

START_TEST(activations_are_found_by_their_names)
{
    for (size_t a = 0; a < ACTIVATIONS; a++)
        ck_assert_int_eq(attn_activation_from_name(attn_activation_name(all[a])), all[a]);
    ck_assert_str_eq(attn_activation_name(ATTN_ACTIVATION_GELU_TANH), "gelu_tanh");
    ck_assert_int_eq(attn_activation_from_name("gelu_new"), ATTN_ACTIVATION_NONE);
    ck_assert_int_eq(attn_activation_from_name(""), ATTN_ACTIVATION_NONE);
}
END_TEST

START_TEST(float_activations_keep_the_digits_of_small_results_too)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t a = 0; a < ACTIVATIONS; a++) {
            float x[COUNT], y[COUNT];
            for (int n = 0; n < COUNT; n++)
                x[n] = -20.0f + 0.01f * (float)n;
            kernel->f32->activate(all[a], COUNT, x, NULL, y);
            for (int n = 0; n < COUNT; n++) {
                long double u, exact = exact_of(all[a], (long double)x[n], &u);
                long double error = fabsl((long double)y[n] - exact);
                ck_assert_msg(error <=
                                  bound_of(exact, u, (long double)x[n], (long double)FLT_EPSILON, (long double)FLT_MIN),
                              "%s, activation %d of %.9g: %.9g, not %.9Lg (%.3Lg ulp)", kernel->name, (int)all[a],
                              (double)x[n], (double)y[n], exact, error / fabsl(exact) / (long double)FLT_EPSILON);
            }
        }
}
END_TEST

START_TEST(double_activations_keep_the_digits_of_small_results_too)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t a = 0; a < ACTIVATIONS; a++) {
            double x[COUNT], y[COUNT];
            for (int n = 0; n < COUNT; n++)
                x[n] = -40.0 + 0.02 * n;
            kernel->f64->activate(all[a], COUNT, x, NULL, y);
            for (int n = 0; n < COUNT; n++) {
                long double u, exact = exact_of(all[a], (long double)x[n], &u);
                long double error = fabsl((long double)y[n] - exact);
                ck_assert_msg(
                    error <= bound_of(exact, u, (long double)x[n], (long double)DBL_EPSILON, (long double)DBL_MIN),
                    "%s, activation %d of %.17g: %.17g, not %.17Lg", kernel->name, (int)all[a], x[n], y[n], exact);
            }
        }
}
END_TEST

/* Lengths around a vector, and results in place, give the bits of one long row. */
START_TEST(a_number_does_not_depend_on_its_neighbours)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t a = 0; a < ACTIVATIONS; a++) {
            float x[67], times[67], whole[67], part[67];
            for (int n = 0; n < 67; n++) {
                x[n] = -3.0f + 0.1f * (float)n;
                times[n] = 0.3f * (float)(n % 7) - 1;
            }
            kernel->f32->activate(all[a], 67, x, times, whole);
            for (size_t first = 0; first < 67; first += 5)
                for (size_t count = 1; first + count <= 67; count += 3) {
                    memcpy(part, x, sizeof part);
                    kernel->f32->activate(all[a], count, part + first, times + first, part + first);
                    ck_assert_mem_eq(part + first, whole + first, count * sizeof *part);
                    ck_assert(first + count == 67 || part[first + count] == x[first + count]);
                }
        }
}
END_TEST

START_TEST(far_from_zero_an_activation_is_the_number_or_zero)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t a = 0; a < ACTIVATIONS; a++) {
            float f[] = {3e38f, -3e38f, INFINITY, NAN, 0, 1e30f, -1e30f};
            double d[] = {1e308, -1e308, (double)INFINITY, (double)NAN, 0, 1e30, -1e30};
            kernel->f32->activate(all[a], 7, f, NULL, f);
            kernel->f64->activate(all[a], 7, d, NULL, d);
            ck_assert(f[0] == 3e38f && f[1] == 0 && isinf(f[2]) && isnan(f[3]) && f[4] == 0);
            ck_assert(f[5] == 1e30f && f[6] == 0);
            ck_assert(d[0] == 1e308 && d[1] == 0 && isinf(d[2]) && isnan(d[3]) && d[4] == 0);
            ck_assert(d[5] == 1e30 && d[6] == 0);
        }
}
END_TEST

CHECK_MAIN("activation")
{
    tcase_add_test(tests, activations_are_found_by_their_names);
    tcase_add_test(tests, float_activations_keep_the_digits_of_small_results_too);
    tcase_add_test(tests, double_activations_keep_the_digits_of_small_results_too);
    tcase_add_test(tests, a_number_does_not_depend_on_its_neighbours);
    tcase_add_test(tests, far_from_zero_an_activation_is_the_number_or_zero);
}
