/* test_exp.c: the exponential inside the softmax, against the C library's in higher precision. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "kernel/entries.h"

enum { GROUP = 64 };

/* The bound of core/README.md, which docs/accuracy.md uses. */
static const double most_ulp = 1.07;

/* Largest error in units of the last place; results that are 0 or infinite must be so on both sides. */
static double error_f32(float x, float got)
{
    if (x < -110) /* seven floats in eight need no exponential to be judged */
        return got == 0 ? 0 : INFINITY;
    if (x > 89)
        return isinf(got) ? 0 : INFINITY;
    if (fabsf(x) < 0x1p-26f)
        return fabs((double)got - 1) / (double)FLT_EPSILON;
    double exact = exp((double)x);
    float nearest = (float)exact;
    if (isnan(x))
        return isnan(got) ? 0 : INFINITY;
    if (isinf(nearest) || isinf(got))
        return nearest == got || fabs(exact / 3.4028235677973366e38 - 1) < 1e-6 ? 0 : INFINITY;
    return fabs((double)got - exact) / (double)(nextafterf(nearest, INFINITY) - nearest);
}

static double worst_f32(const attn_kernel *kernel, uint64_t step)
{
    double worst = 0;
    for (uint64_t first = 0; first <= UINT32_MAX; first += GROUP * step) {
        float x[GROUP], y[GROUP];
        for (uint64_t n = 0; n < GROUP; n++) {
            uint32_t bits = (uint32_t)(first + n * step);
            memcpy(&x[n], &bits, sizeof bits);
        }
        memcpy(y, x, sizeof y);
        kernel->f32->exp(y, GROUP);
        for (int n = 0; n < GROUP; n++)
            worst = fmax(worst, error_f32(x[n], y[n]));
    }
    return worst;
}

START_TEST(float_exp_is_within_its_bound_everywhere)
{
    const uint64_t step = one_in(997); /* every float takes minutes */
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        double worst = worst_f32(kernel, step);
        ck_assert_msg(worst <= most_ulp, "%s is off by %g ulp", kernel->name, worst);
    }
}
END_TEST

START_TEST(double_exp_is_within_its_bound)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++)
        for (int group = 0; group < 4000; group++) {
            double x[GROUP], y[GROUP];
            for (int n = 0; n < GROUP; n++)
                y[n] = x[n] = -744.0 + 1453.0 * (group * GROUP + n) / (4000.0 * GROUP);
            kernel->f64->exp(y, GROUP);
            for (int n = 0; n < GROUP; n++) {
                long double exact = expl((long double)x[n]);
                double nearest = (double)exact, ulp = nextafter(nearest, INFINITY) - nearest;
                long double error = fabsl((long double)y[n] - exact);
                if (!(error <= (long double)(most_ulp * ulp)))
                    ck_abort_msg("%s: exp(%.17g) is off by %Lg ulp", kernel->name, x[n], error / (long double)ulp);
            }
        }
}
END_TEST

START_TEST(exp_is_exact_at_zero_and_at_the_infinities)
{
    const attn_kernel *kernel;
    for (size_t k = 0; (kernel = attn_kernel_at(k)) != NULL; k++) {
        float f[GROUP] = {0.0f, -0.0f, -INFINITY, INFINITY, NAN, -104.0f, -3e38f};
        double d[GROUP] = {0.0, -0.0, -(double)INFINITY, (double)INFINITY, (double)NAN, -746.0, -1e308};
        kernel->f32->exp(f, GROUP);
        kernel->f64->exp(d, GROUP);
        ck_assert(f[0] == 1 && f[1] == 1 && f[2] == 0 && isinf(f[3]) && isnan(f[4]) && f[5] == 0 && f[6] == 0);
        ck_assert(d[0] == 1 && d[1] == 1 && d[2] == 0 && isinf(d[3]) && isnan(d[4]) && d[5] == 0 && d[6] == 0);
    }
}
END_TEST

CHECK_MAIN("exp")
{
    tcase_add_test(tests, float_exp_is_within_its_bound_everywhere);
    tcase_add_test(tests, double_exp_is_within_its_bound);
    tcase_add_test(tests, exp_is_exact_at_zero_and_at_the_infinities);
}
