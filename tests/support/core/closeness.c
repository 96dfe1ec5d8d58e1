/*
 * closeness.c: tolerances, and the comparisons that use them, for random inputs. docs/accuracy.md has the bound for any
 * input, which is some ten times as wide.
 *
 * u is the unit roundoff, peak the size of the scores of a row (see naive_attention.h). The constant is 8 throughout. A
 * sum of n terms of mixed sign, rounded n times, is off by about sqrt(n) / 4 roundings of its partial sums, and those
 * stay well below the sum of the absolute values (terms). So 8 u terms is sufficient for thousands of terms with a
 * margin. A tile that is left out or counted twice, or one product in less than the compute type, is far outside.
 */
#include "closeness.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

double unit_roundoff(attn_dtype compute)
{
    return compute == ATTN_F32 ? 0x1p-24 : 0x1p-53;
}

/* Kernels may flush subnormal numbers to zero. */
static double smallest(attn_dtype compute)
{
    return compute == ATTN_F32 ? (double)FLT_MIN : DBL_MIN;
}

/*
 * exp turns an absolute error of its argument into a relative one of its result, and a score is off by u peak. The
 * score itself would be too small a measure: 128 features of either sign that cancel leave the errors of 128 products.
 */
static double softmax_bound(double u, double peak)
{
    return 8 * u * (1 + peak);
}

static double map_bound(const test_run *run, const naive_result *naive, attn_step step, size_t at)
{
    double u = unit_roundoff(run->plan.compute), peak = naive->peak[at / naive->kv_len];
    double terms = naive->terms[ATTN_STEP_SCORES][at];
    switch ((int)step) {
    case ATTN_STEP_MASK:
        return 0;
    case ATTN_STEP_SCORES:
        return 8 * u * terms;
    case ATTN_STEP_SCALED: /* tanh is 1 - 2 / (e^2x + 1) or the like: off by u, not by u tanh x */
        return 8 * u * (fabs(naive->scale) * terms + fabs(naive->step[step][at]) + naive->softcap);
    case ATTN_STEP_MASKED: /* the bias is one more addition */
        return 8 * u * (naive->softcap + peak);
    default: /* attention, dropped */
        return softmax_bound(u, peak) * naive->step[step][at] + smallest(run->plan.compute);
    }
}

/* sum_j p_j v_j, each p_j off by softmax_bound p_j. */
static double context_bound(const test_run *run, const naive_result *naive, size_t at)
{
    double peak = naive->peak[at / naive->d_v], terms = naive->terms[ATTN_STEP_CONTEXT][at];
    return softmax_bound(unit_roundoff(run->plan.compute), peak) * terms + smallest(run->plan.compute);
}

/* The index in (batch, heads, q_len, d_v) of an element of (batch, q_len, heads * d_v). */
static size_t context_index(const naive_result *n, size_t at)
{
    size_t d = at % n->d_v, h = at / n->d_v % n->heads, row = at / n->d_v / n->heads;
    return ((row / n->q_len * n->heads + h) * n->q_len + row % n->q_len) * n->d_v + d;
}

static double mean_bound(const test_run *run, const naive_result *n, size_t at)
{
    size_t map = n->q_len * n->kv_len;
    double sum = 0;
    for (size_t h = 0; h < n->heads; h++)
        sum += map_bound(run, n, ATTN_STEP_ATTENTION, (at / map * n->heads + h) * map + at % map);
    return sum / (double)n->heads;
}

static double row_bound(const test_run *run, const naive_result *naive, attn_step step, size_t row)
{
    double u = unit_roundoff(run->plan.compute), peak = naive->peak[row];
    if (step == ATTN_STEP_SINK)
        return softmax_bound(u, peak) * naive->step[step][row] + smallest(run->plan.compute);
    if (step == ATTN_STEP_LSE ||
        step == ATTN_STEP_LSE_KEYS) /* max + log(sum): two numbers of up to peak + log(kv_len), added */
        return 8 * u * (1 + peak + log((double)naive->kv_len + 1));
    /* sum_j p_j ln p_j, where a relative error e of p_j moves the sum by e p_j (|ln p_j| + 1) */
    return softmax_bound(u, peak) * (1 + peak + log((double)naive->kv_len + 1));
}

static double bound_of(const test_run *run, const naive_result *naive, attn_step step, size_t at)
{
    switch (step) {
    case ATTN_STEP_Q:
    case ATTN_STEP_K:
    case ATTN_STEP_V:
    case ATTN_STEP_PRESENT_KEY:
    case ATTN_STEP_PRESENT_VALUE: /* copies are exact */
        return 0;
    case ATTN_STEP_SCORES:
    case ATTN_STEP_SCALED:
    case ATTN_STEP_MASKED:
    case ATTN_STEP_ATTENTION:
    case ATTN_STEP_DROPPED:
    case ATTN_STEP_MASK:
        return map_bound(run, naive, step, at);
    case ATTN_STEP_LSE:
    case ATTN_STEP_LSE_KEYS:
    case ATTN_STEP_ENTROPY:
    case ATTN_STEP_SINK:
        return row_bound(run, naive, step, at);
    case ATTN_STEP_CONTEXT:
        return context_bound(run, naive, at);
    case ATTN_STEP_ATTENTION_MEAN:
        return mean_bound(run, naive, at);
    case ATTN_STEP_OUTPUT:
        return naive->largest_factor *
               context_bound(run, naive, run->plan.dims.query_rank == 4 ? at : context_index(naive, at));
    case ATTN_STEP_CONCAT:
        return naive->largest_factor * context_bound(run, naive, context_index(naive, at));
    case ATTN_STEP_QUERY_LATENT: /* of requests that test_vectors.c has */
    case ATTN_STEP_KEY_LATENT:
    case ATTN_STEP_Q_ROTATED:
    case ATTN_STEP_K_ROTATED:
    case ATTN_STEP_GATED:
    case ATTN_STEP_PROJECTED:
    case ATTN_STEP_CONTRIBUTION:
    case ATTN_STEP_RESIDUAL:
    case ATTN_STEP_ATTENTION_OUTPUT:
    case ATTN_STEP_FEED_FORWARD:
    case ATTN_STEP_DIFFERENCE:    /* test_differential.c */
    case ATTN_STEP_PRESENT_STATE: /* test_recurrence.c */
    case ATTN_STEP_COUNT:
        break;
    }
    abort();
}

/* Infinite values must be equal, and NaN must meet NaN. */
static void expect_near(double got, double expected, double bound, const char *what, const char *name, size_t at)
{
    bool close =
        isfinite(expected) ? fabs(got - expected) <= bound : got == expected || (isnan(got) && isnan(expected));
    if (!close)
        ck_abort_msg("%s: %s[%zu] is %.17g, not %.17g: off by %.3g, allowed %.3g", what, name, at, got, expected,
                     fabs(got - expected), bound);
}

static void expect_step_close(const test_run *run, const naive_result *naive, attn_step step, const char *what)
{
    const attn_tensor *got = &run->result.step[step];
    ck_assert_msg(got->rank == run->plan.step[step].rank, "%s: rank of %s", what, attn_step_name(step));
    for (size_t at = 0; at < attn_tensor_count(got); at++)
        expect_near(tensor_get(got, at), naive->step[step][at], bound_of(run, naive, step, at), what,
                    attn_step_name(step), at);
}

void expect_close(const test_run *run, const naive_result *naive, const char *what)
{
    for (attn_step step = 0; step < ATTN_STEP_COUNT; step++)
        if (run->plan.want & ATTN_STEP_BIT(step))
            expect_step_close(run, naive, step, what);
    ck_assert_msg(run->result.rows_without_keys == naive->rows_without_keys, "%s: %zu rows without keys, not %zu", what,
                  run->result.rows_without_keys, naive->rows_without_keys);
    expect_near(run->result.max_abs_score, naive->max_abs_score,
                1e-4 * (1 + naive->max_abs_score) /* a diagnostic, shown with a few digits */, what, "max_abs_score",
                0);
}
