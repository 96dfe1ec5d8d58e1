/* test_activation.c: the activations of every kernel, against the C library's functions in higher precision. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "check_main.h"
#include "kernel/entries.h"

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

/* The derivative of exact_of. */
static long double exact_slope_of(attn_activation activation, long double x)
{
    const long double root = 0.7978845608028653558798921198687637369517L; /* of 2 / pi */
    long double u = x, du = 1;
    switch (activation) {
    case ATTN_ACTIVATION_NONE:
        return 1;
    case ATTN_ACTIVATION_RELU:
        return x > 0;
    case ATTN_ACTIVATION_GELU:
        return erfcl(-x * 0.70710678118654752440084436210485L) / 2 + x * expl(-x * x / 2) * root / 2;
    case ATTN_ACTIVATION_GELU_TANH:
        u = 2 * root * (x + 0.044715L * x * x * x);
        du = 2 * root * (1 + 3 * 0.044715L * x * x);
        break;
    case ATTN_ACTIVATION_QUICK_GELU:
        u = 1.702L * x, du = 1.702L;
        break;
    case ATTN_ACTIVATION_SILU:
        break;
    }
    return sigmoid(u) + x * du * sigmoid(u) * sigmoid(-u);
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

/* The two terms of a slope are at most 1.2; where they cancel, their rounding errors stay. */
START_TEST(the_backward_pass_multiplies_by_the_slope)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t a = 0; a < ACTIVATIONS; a++) {
            float x[COUNT], grad[COUNT];
            double wide_x[COUNT], wide_grad[COUNT];
            for (int n = 0; n < COUNT; n++) {
                wide_x[n] = x[n] = -40.0f + 0.02f * (float)n;
                wide_grad[n] = grad[n] = n % 5 == 0 ? 0 : 2;
            }
            const struct attn_activation_gradient narrow = {all[a], COUNT, x, NULL, grad, NULL},
                                                  wide = {all[a], COUNT, wide_x, NULL, wide_grad, NULL};
            kernel->f32->activate_back(&narrow);
            kernel->f64->activate_back(&wide);
            for (int n = 0; n < COUNT; n++) {
                const long double exact = n % 5 == 0 ? 0 : 2 * exact_slope_of(all[a], wide_x[n]);
                ck_assert_msg(fabsl((long double)grad[n] - exact) <= 8 * (long double)FLT_EPSILON,
                              "%s, slope %d of %.9g: %.9g, not %.9Lg", kernel->name, (int)all[a], (double)x[n],
                              (double)grad[n], exact);
                ck_assert_msg(fabsl((long double)wide_grad[n] - exact) <= 8 * (long double)DBL_EPSILON,
                              "%s, slope %d of %.17g: %.17g, not %.17Lg", kernel->name, (int)all[a], wide_x[n],
                              wide_grad[n], exact);
            }
        }
}
END_TEST

/* hidden = act(gate) up: dup = dhidden act(gate), dgate = dhidden up act'(gate). Every length up to two vectors. */
START_TEST(a_gate_gets_its_own_gradient)
{
    enum { N = 35 };
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t a = 0; a < ACTIVATIONS; a++)
            for (size_t count = 1; count <= N; count++) {
                double up[N], gate[N], act[N], grad_hidden[N], grad_gate[N];
                for (int n = 0; n < N; n++) {
                    up[n] = 0.25 * n - 3;
                    gate[n] = 2 - 0.125 * n;
                    grad_hidden[n] = grad_gate[n] = n % 3;
                }
                kernel->f64->activate(all[a], count, gate, NULL, act);
                const struct attn_activation_gradient gradient = {all[a], count, up, gate, grad_hidden, grad_gate};
                kernel->f64->activate_back(&gradient);
                for (int n = 0; n < N; n++) {
                    const bool is_done = (size_t)n < count;
                    const double grad = n % 3, slope = (double)exact_slope_of(all[a], (long double)gate[n]);
                    ck_assert_double_eq_tol(grad_hidden[n], is_done ? grad * act[n] : grad, 1e-14);
                    ck_assert_double_eq_tol(grad_gate[n], is_done ? grad * up[n] * slope : grad, 1e-14);
                }
            }
}
END_TEST

/* Infinite and missing numbers behind a gradient of 0 add nothing; else NaN stays NaN, and far away slopes are 0 or 1. */
START_TEST(far_from_zero_a_slope_is_one_or_zero)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (size_t a = 0; a < ACTIVATIONS; a++) {
            const float x[] = {3e38f, -3e38f, 1e30f, -1e30f, INFINITY, NAN, NAN};
            float grad[] = {1, 1, 1, 1, 0, 0, 1};
            const struct attn_activation_gradient gradient = {all[a], 7, x, NULL, grad, NULL};
            kernel->f32->activate_back(&gradient);
            ck_assert(grad[0] == 1 && grad[1] == 0 && grad[2] == 1 && grad[3] == 0 && grad[4] == 0 && grad[5] == 0);
            ck_assert(all[a] == ATTN_ACTIVATION_RELU ? grad[6] == 0 : isnan(grad[6]));
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
    tcase_add_test(tests, the_backward_pass_multiplies_by_the_slope);
    tcase_add_test(tests, a_gate_gets_its_own_gradient);
    tcase_add_test(tests, far_from_zero_a_slope_is_one_or_zero);
    tcase_add_test(tests, a_number_does_not_depend_on_its_neighbours);
    tcase_add_test(tests, far_from_zero_an_activation_is_the_number_or_zero);
}
