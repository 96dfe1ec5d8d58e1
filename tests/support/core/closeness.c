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
    double u = unit_roundoff(run->plan.compute);
    switch (step) {
    case ATTN_STEP_Q:
    case ATTN_STEP_K:
    case ATTN_STEP_V:
    case ATTN_STEP_Q_ROTATED:
    case ATTN_STEP_K_ROTATED:
    case ATTN_STEP_PRESENT_KEY:
    case ATTN_STEP_PRESENT_VALUE: /* terms is 0 when they are given: copies are exact */
        return 8 * u * naive->terms[step][at];
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
    case ATTN_STEP_GATED:
    case ATTN_STEP_PROJECTED:
    case ATTN_STEP_RESIDUAL:
    case ATTN_STEP_ATTENTION_OUTPUT:
    case ATTN_STEP_FEED_FORWARD:
        return naive->largest_factor * context_bound(run, naive, context_index(naive, at));
    case ATTN_STEP_CONTRIBUTION: /* expect_contribution_close */
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

static void expect_steps_of_naive(const test_run *run, const naive_result *naive, attn_steps steps, const char *what)
{
    for (attn_step step = 0; step < ATTN_STEP_COUNT; step++)
        if (run->plan.want & steps & ATTN_STEP_BIT(step))
            expect_step_close(run, naive, step, what);
}

static void expect_steps_close(const test_run *run, const naive_result *naive, attn_steps steps, const char *what)
{
    expect_steps_of_naive(run, naive, steps, what);
    ck_assert_msg(run->result.rows_without_keys == naive->rows_without_keys, "%s: %zu rows without keys, not %zu", what,
                  run->result.rows_without_keys, naive->rows_without_keys);
    expect_near(run->result.max_abs_score, naive->max_abs_score,
                1e-4 * (1 + naive->max_abs_score) /* a diagnostic, shown with a few digits */, what, "max_abs_score",
                0);
}

void expect_close(const test_run *run, const naive_result *naive, const char *what)
{
    expect_steps_close(run, naive, UINT32_MAX, what);
}

/* ---- a layer, link by link ---- */

/* The attention inside a layer, as a separate request on the q, k and v of the run. */
static attn_request inner_attention(const test_run *run, const attn_request *request)
{
    attn_request inner = {.masks = request->masks, .options = request->options};
    inner.inputs.query = &run->result.step[ATTN_STEP_Q];
    inner.inputs.key = &run->result.step[ATTN_STEP_K];
    inner.inputs.value = &run->result.step[ATTN_STEP_V];
    inner.inputs.past_key = request->inputs.past_key;
    inner.inputs.past_value = request->inputs.past_value;
    inner.weights.query_norm = request->weights.query_norm;
    inner.weights.key_norm = request->weights.key_norm;
    inner.options.norm = ATTN_NORM_NONE;
    inner.options.residual = false;
    return inner;
}

static const attn_steps turned_steps = ATTN_STEP_BIT(ATTN_STEP_Q_ROTATED) | ATTN_STEP_BIT(ATTN_STEP_K_ROTATED) |
                                       ATTN_STEP_BIT(ATTN_STEP_PRESENT_KEY) | ATTN_STEP_BIT(ATTN_STEP_PRESENT_VALUE);

/* Compares q, k and v after norm, rotation and cache, then continues with the run's own values. */
static attn_request after_turning(const test_run *run, const attn_request *attention, const char *what)
{
    naive_result turned = naive_attention(attention, NULL);
    expect_steps_of_naive(run, &turned, turned_steps, what);
    naive_release(&turned);
    attn_request plain = *attention;
    const bool changes =
        attention->options.rope.layout != ATTN_ROPE_NONE || attention->options.qk_norm != ATTN_NORM_NONE;
    plain.inputs = (attn_inputs){.query = &run->result.step[changes ? ATTN_STEP_Q_ROTATED : ATTN_STEP_Q],
                                 .key = &run->result.step[ATTN_STEP_PRESENT_KEY],
                                 .value = &run->result.step[ATTN_STEP_PRESENT_VALUE]};
    plain.weights = (attn_weights){0};
    plain.options.rope.layout = ATTN_ROPE_NONE;
    plain.options.qk_norm = ATTN_NORM_NONE;
    return plain;
}

void expect_turned_close(const test_run *run, const attn_request *request, const char *what)
{
    attn_request attention = inner_attention(run, request), plain = after_turning(run, &attention, what);
    naive_result inner = naive_attention(&plain, NULL);
    const attn_steps other =
        turned_steps | ATTN_STEP_BIT(ATTN_STEP_Q) | ATTN_STEP_BIT(ATTN_STEP_K) | ATTN_STEP_BIT(ATTN_STEP_V);
    expect_steps_close(run, &inner, ~other, what);
    naive_release(&inner);
}

/* One sigmoid and one product; the gate itself is a sum, whose error the derivative 1/4 of the sigmoid damps. */
static void expect_gated_close(const test_run *run, const attn_request *request, const naive_result *whole,
                               const char *what)
{
    const attn_dims *n = &run->plan.dims;
    const size_t width = n->heads * n->d_v;
    for (size_t at = 0; at < n->batch * n->q_len * width; at++) {
        const size_t row = at / width, h = at % width / n->d_v;
        const double concat = tensor_get(&run->result.step[ATTN_STEP_CONCAT], at);
        const double gate =
            naive_gate(request, whole, row / n->q_len, row % n->q_len, h, n->d_gate == 1 ? 0 : at % n->d_v);
        expect_near(tensor_get(&run->result.step[ATTN_STEP_GATED], at), concat * gate,
                    64 * unit_roundoff(run->plan.compute) * fabs(concat), what, "gated", at);
    }
}

static void read_row(const attn_tensor *tensor, size_t row, size_t count, double *to)
{
    for (size_t at = 0; at < count; at++)
        to[at] = tensor_get(tensor, row * count + at);
}

/* The norm of one value behind the output projection, without the bias; the value is alone in its head of row. */
static double norm_of_value(const test_run *run, const attn_request *request, size_t b, size_t h, size_t j, double *row)
{
    const attn_dims *n = &run->plan.dims;
    const size_t g = h / (n->heads / n->kv_heads);
    attn_request without = *request;
    without.weights.output.bias = NULL;
    double sum = 0, terms;
    for (size_t d = 0; d < n->d_v; d++)
        row[h * n->d_v + d] = tensor_get(&run->result.step[ATTN_STEP_PRESENT_VALUE],
                                         ((b * n->kv_heads + g) * n->kv_len + j) * n->d_v + d);
    for (size_t d = 0; d < n->d_attended; d++) {
        const double y = naive_project_output(&without, n->heads, n->d_v, row, d, &terms);
        sum += y * y;
    }
    for (size_t d = 0; d < n->d_v; d++)
        row[h * n->d_v + d] = 0;
    return sqrt(sum);
}

/* Of the weights of the run. A product of few features and a root: within a few dozen roundings of the largest norm. */
static void expect_contribution_close(const test_run *run, const attn_request *request, const char *what)
{
    const attn_dims *n = &run->plan.dims;
    const attn_tensor *scale = request->options.head_scale;
    double *row = calloc(n->heads * n->d_v, sizeof *row), *norms = calloc(n->kv_len, sizeof *norms);
    for (size_t head = 0; head < n->batch * n->heads; head++) {
        const size_t b = head / n->heads, h = head % n->heads;
        const double factor = scale == NULL ? 1 : fabs(naive_read(scale, 0, 0, 0, h));
        double largest = 0;
        for (size_t j = 0; j < n->kv_len; j++) {
            norms[j] = norm_of_value(run, request, b, h, j, row);
            largest = fmax(largest, norms[j]);
        }
        for (size_t at = head * n->q_len * n->kv_len; at < (head + 1) * n->q_len * n->kv_len; at++) {
            const double weight = fabs(tensor_get(&run->result.step[ATTN_STEP_ATTENTION], at));
            expect_near(tensor_get(&run->result.step[ATTN_STEP_CONTRIBUTION], at),
                        factor * weight * norms[at % n->kv_len],
                        64 * unit_roundoff(run->plan.compute) * factor * weight * largest, what, "contribution", at);
        }
    }
    free(row);
    free(norms);
}

static void expect_projected_close(const test_run *run, const attn_request *request, const char *what)
{
    const attn_dims *n = &run->plan.dims;
    double *row = calloc(n->heads * n->d_v, sizeof *row);
    for (size_t i = 0; i < n->batch * n->q_len; i++) {
        read_row(&run->result.step[n->d_gate > 0 ? ATTN_STEP_GATED : ATTN_STEP_CONCAT], i, n->heads * n->d_v, row);
        for (size_t d = 0; d < n->d_attended; d++) {
            double terms, expected = naive_project_output(request, n->heads, n->d_v, row, d, &terms);
            double got = tensor_get(&run->result.step[ATTN_STEP_PROJECTED], i * n->d_attended + d);
            expect_near(got, expected, 8 * unit_roundoff(run->plan.compute) * terms, what, "projected",
                        i * n->d_attended + d);
        }
    }
    free(row);
}

/* One addition: half a unit in the last place, which 2 u bounds. */
static void expect_residual_close(const test_run *run, const attn_request *request, const attn_tensor *before,
                                  const char *what)
{
    for (size_t at = 0; at < attn_tensor_count(before); at++) {
        double expected = tensor_get(request->inputs.query, at) + tensor_get(before, at);
        double got = tensor_get(&run->result.step[ATTN_STEP_RESIDUAL], at);
        expect_near(got, expected, 2 * unit_roundoff(run->plan.compute) * fabs(expected), what, "residual", at);
    }
}

static void expect_norm_close(const test_run *run, const attn_request *request, const attn_tensor *before,
                              const char *what)
{
    const attn_options *options = &request->options;
    size_t count = run->plan.dims.d_out, rows = run->plan.dims.batch * run->plan.dims.q_len;
    bool post = options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_POST;
    double *row = calloc(3 * count, sizeof *row), *terms = row + count, *expected = row + 2 * count;
    for (size_t i = 0; i < rows; i++) {
        read_row(before, i, count, row);
        naive_norm(options->norm, options->norm_eps, &request->weights.norm, count, row, expected, terms);
        for (size_t d = 0; d < count; d++) {
            double got = tensor_get(&run->result.step[ATTN_STEP_OUTPUT], i * count + d);
            expect_near(got, post ? expected[d] : row[d], post ? 8 * unit_roundoff(run->plan.compute) * terms[d] : 0,
                        what, "output", i * count + d);
        }
    }
    free(row);
}

/* Errors of all links together, with scores near 1: a few hundred roundings. */
static void expect_output_close(const test_run *run, const naive_result *naive, const char *what)
{
    double allowed = 4096 * unit_roundoff(run->plan.compute);
    const attn_tensor *output = &run->result.step[ATTN_STEP_OUTPUT];
    for (size_t at = 0; at < attn_tensor_count(output); at++) {
        double expected = naive->step[ATTN_STEP_OUTPUT][at];
        expect_near(tensor_get(output, at), expected, allowed * (1 + fabs(expected)), what, "output end to end", at);
    }
}

void expect_layer_close(const test_run *run, const attn_request *request, const char *what)
{
    const attn_steps parts = ATTN_STEP_BIT(ATTN_STEP_Q) | ATTN_STEP_BIT(ATTN_STEP_K) | ATTN_STEP_BIT(ATTN_STEP_V);
    const attn_steps after = ATTN_STEP_BIT(ATTN_STEP_GATED) | ATTN_STEP_BIT(ATTN_STEP_CONTRIBUTION) |
                             ATTN_STEP_BIT(ATTN_STEP_PROJECTED) | ATTN_STEP_BIT(ATTN_STEP_RESIDUAL) |
                             ATTN_STEP_BIT(ATTN_STEP_OUTPUT);
    const attn_tensor *last = &run->result.step[ATTN_STEP_CONCAT];
    naive_result whole = naive_attention(request, NULL);
    expect_steps_close(run, &whole, parts, what);
    attn_request attention = inner_attention(run, request), plain = after_turning(run, &attention, what);
    naive_result inner = naive_attention(&plain, NULL);
    expect_steps_close(run, &inner, ~(parts | after | turned_steps), what);
    if (run->plan.dims.d_gate > 0) {
        expect_gated_close(run, request, &whole, what);
        last = &run->result.step[ATTN_STEP_GATED];
    }
    if (request->weights.output.weight != NULL) {
        expect_projected_close(run, request, what);
        if (run->plan.want >> ATTN_STEP_CONTRIBUTION & 1)
            expect_contribution_close(run, request, what);
        last = &run->result.step[ATTN_STEP_PROJECTED];
    }
    if (request->options.residual) {
        expect_residual_close(run, request, last, what);
        last = &run->result.step[ATTN_STEP_RESIDUAL];
    }
    expect_norm_close(run, request, last, what);
    expect_output_close(run, &whole, what);
    naive_release(&inner);
    naive_release(&whole);
}
