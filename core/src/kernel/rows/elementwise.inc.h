/*
 * elementwise.inc.h: the output gate, the sum of a residual and a branch, the mean over heads, contributions, and the
 * first and last sums of the backward pass. Part of a kernel.
 */
#ifndef ATTN_KERNEL_ROWS_ELEMENTWISE_INC_H
#define ATTN_KERNEL_ROWS_ELEMENTWISE_INC_H

#include "kernel/entries.h"
#include "kernel/rows/activation.inc.h"
#include "kernel/rows/wide.inc.h"

/* ---- the output gate ---- */

static void gate_numbers(size_t n, const REAL *x, const REAL *gate, REAL *y)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, load(x + i) * sigmoid_vec(load(gate + i)));
    store_part(y + i, n - i, load_part(x + i, n - i) * sigmoid_vec(load_part(gate + i, n - i)));
}

static void scale_numbers(size_t n, const REAL *x, REAL factor, REAL *y)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, load(x + i) * factor);
    for (; i < n; i++)
        y[i] = x[i] * factor;
}

static void gate_heads(size_t heads, size_t d_v, size_t d_gate, const void *concat, const void *gate, void *gated)
{
    const REAL *x = concat, *g = gate;
    REAL *y = gated;
    if (d_gate == d_v)
        gate_numbers(heads * d_v, x, g, y);
    else
        for (size_t h = 0; h < heads; h++)
            scale_numbers(d_v, x + h * d_v, sigmoid_vec(splat(g[h]))[0], y + h * d_v);
}

/* ---- its backward pass ---- */

/* The sigmoid and its slope s (1 - s) from one exponential. Nothing cancels. */
struct sigmoid {
    vec s, slope;
};

static inline struct sigmoid sigmoid_and_slope(vec x)
{
    const vec e = exp_vec(-abs_vec(x)), r = 1 / (1 + e);
    return (struct sigmoid){.s = blend(x >= 0, r, e * r), .slope = e * r * r};
}

/* The first n of LANES features; a constant n becomes whole vectors. */
ALWAYS_INLINE void gate_part_back(size_t n, const REAL *grad, const REAL *x, const REAL *gate, REAL *grad_x,
                                  REAL *grad_gate)
{
    const struct sigmoid sigmoid = sigmoid_and_slope(load_part(gate, n));
    const vec dy = load_part(grad, n), of_gate = dy * load_part(x, n) * sigmoid.slope;
    const ivec counts = dy != 0;
    if (grad_x != NULL)
        store_part(grad_x, n, (vec)((ivec)(dy * sigmoid.s) & counts));
    if (grad_gate != NULL)
        store_part(grad_gate, n, (vec)((ivec)of_gate & counts));
}

static void gate_numbers_back(size_t n, const REAL *dy, const REAL *x, const REAL *gate, REAL *grad_x, REAL *grad_gate)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        gate_part_back(LANES, dy + i, x + i, gate + i, grad_x == NULL ? NULL : grad_x + i,
                       grad_gate == NULL ? NULL : grad_gate + i);
    gate_part_back(n - i, dy + i, x + i, gate + i, grad_x == NULL ? NULL : grad_x + i,
                   grad_gate == NULL ? NULL : grad_gate + i);
}

/* Sum of dy x without the terms whose dy is 0. */
static double sum_where(size_t n, const REAL *dy, const REAL *x)
{
    wide sum[WIDE_SUMS] = {{0}};
    size_t i = 0;
    for (; i + WIDE_LANES <= n; i += WIDE_LANES) {
        const wide a = load_wide(dy + i), product = a * load_wide(x + i);
        sum[i / WIDE_LANES % WIDE_SUMS] += (wide)((wide_bits)product & (wide_bits)(a != 0));
    }
    double total = sum_wide(sum);
    for (; i < n; i++)
        total += dy[i] == 0 ? 0 : (double)dy[i] * (double)x[i];
    return total;
}

static void gate_head_back(size_t d_v, const REAL *dy, const REAL *x, REAL gate, REAL *grad_x, REAL *grad_gate)
{
    const struct sigmoid sigmoid = sigmoid_and_slope(splat(gate));
    const double sum = grad_gate == NULL ? 0 : sum_where(d_v, dy, x);
    bool counts = false;
    for (size_t i = 0; i < d_v; i++) {
        counts = counts || dy[i] != 0;
        if (grad_x != NULL)
            grad_x[i] = dy[i] == 0 ? 0 : dy[i] * sigmoid.s[0];
    }
    if (grad_gate != NULL)
        *grad_gate = counts ? (REAL)(sum * (double)sigmoid.slope[0]) : 0;
}

static void gate_heads_back(const struct attn_gate_gradient *gradient)
{
    const REAL *dy = gradient->grad_gated, *x = gradient->concat, *gate = gradient->gate;
    REAL *grad_x = gradient->grad_concat, *grad_gate = gradient->grad_gate;
    const size_t d_v = gradient->d_v;
    if (gradient->d_gate == d_v) {
        gate_numbers_back(gradient->heads * d_v, dy, x, gate, grad_x, grad_gate);
        return;
    }
    for (size_t h = 0; h < gradient->heads; h++)
        gate_head_back(d_v, dy + h * d_v, x + h * d_v, gate[h], grad_x == NULL ? NULL : grad_x + h * d_v,
                       grad_gate == NULL ? NULL : grad_gate + h);
}

/* ---- a branch and its residual ---- */

ALWAYS_INLINE vec branch_vec(vec x, const uint8_t *keep, REAL gain, REAL scale)
{
    return (keep == NULL ? x : (vec)((ivec)(x * gain) & mask_from_bytes(keep))) * scale;
}

ALWAYS_INLINE void add_branch_all(const REAL *x, const REAL *residual, const uint8_t *keep, REAL gain, REAL scale,
                                  size_t n, REAL *y)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vec branch = branch_vec(load(x + i), keep == NULL ? NULL : keep + i, gain, scale);
        store(y + i, residual == NULL ? branch : load(residual + i) + branch);
    }
    if (i == n)
        return;
    uint8_t decisions[LANES] = {0};
    if (keep != NULL)
        memcpy(decisions, keep + i, n - i);
    const vec branch = branch_vec(load_part(x + i, n - i), keep == NULL ? NULL : decisions, gain, scale);
    store_part(y + i, n - i, residual == NULL ? branch : load_part(residual + i, n - i) + branch);
}

/* A loop for each case: the choice is outside of it. */
static void add_branch(const struct attn_branch_sum *sum, size_t n)
{
    const REAL gain = (REAL)sum->gain, scale = (REAL)sum->scale;
    if (sum->residual == NULL && sum->keep == NULL)
        add_branch_all(sum->x, NULL, NULL, gain, scale, n, sum->y);
    else if (sum->residual == NULL)
        add_branch_all(sum->x, NULL, sum->keep, gain, scale, n, sum->y);
    else if (sum->keep == NULL)
        add_branch_all(sum->x, sum->residual, NULL, gain, scale, n, sum->y);
    else
        add_branch_all(sum->x, sum->residual, sum->keep, gain, scale, n, sum->y);
}

/* ---- maps ---- */

static void mean_rows(size_t rows, size_t stride, size_t n, const void *numbers, void *mean)
{
    const REAL *x = numbers;
    REAL *y = mean;
    size_t i = 0;
    for (; i + WIDE_SUMS * WIDE_LANES <= n; i += WIDE_SUMS * WIDE_LANES) {
        wide sum[WIDE_SUMS] = {{0}};
        for (size_t r = 0; r < rows; r++)
            UNROLLED_FOR (s, WIDE_SUMS)
                sum[s] += load_wide(x + r * stride + i + (size_t)s * WIDE_LANES);
        UNROLLED_FOR (s, WIDE_SUMS)
            store_wide(y + i + (size_t)s * WIDE_LANES, sum[s] / (double)rows);
    }
    for (; i < n; i++) {
        double sum = 0;
        for (size_t r = 0; r < rows; r++)
            sum += (double)x[r * stride + i];
        y[i] = (REAL)(sum / (double)rows);
    }
}

static void weigh_norms(size_t n, const void *weights, const double *norms, double factor, void *contribution)
{
    const REAL *w = weights;
    REAL *y = contribution;
    size_t i = 0;
    for (; i + WIDE_LANES <= n; i += WIDE_LANES) {
        const wide weight = load_wide(w + i), size = (wide)((wide_bits)weight & (UINT64_MAX >> 1));
        wide norm;
        memcpy(&norm, norms + i, sizeof norm);
        store_wide(y + i, (wide)((wide_bits)(factor * size * norm) & (wide_bits)(weight != 0)));
    }
    for (; i < n; i++)
        y[i] = w[i] == 0 ? 0 : (REAL)(factor * fabs((double)w[i]) * norms[i]);
}

/* ---- ends of the backward pass ---- */

static double backward_dot(const void *x, const void *y, size_t n)
{
    const REAL *a = x, *b = y;
    wide sum[WIDE_SUMS] = {{0}};
    size_t f = 0;
    for (; n - f >= WIDE_LANES; f += WIDE_LANES)
        sum[0] += load_wide(a + f) * load_wide(b + f);
    double total = sum_wide(sum);
    for (; f < n; f++)
        total += (double)a[f] * (double)b[f];
    return total;
}

static void backward_sum(const struct attn_backward_sum *sum)
{
    const REAL *from = sum->from;
    REAL *to = sum->to;
    size_t f = 0;
    for (; sum->n - f >= WIDE_LANES; f += WIDE_LANES) {
        wide total = {0};
        for (size_t p = 0; p < sum->parts; p++)
            total += load_wide(from + p * sum->stride + f);
        store_wide(to + f, total * sum->factor);
    }
    for (; f < sum->n; f++) {
        double total = 0;
        for (size_t p = 0; p < sum->parts; p++)
            total += (double)from[p * sum->stride + f];
        to[f] = (REAL)(total * sum->factor);
    }
}

#endif
