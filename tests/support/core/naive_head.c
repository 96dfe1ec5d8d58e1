/*
 * naive_head.c: the maps and the context of one head, for naive_attention.c. naive_head at the end calls the steps in
 * order.
 */
#include "naive_parts.h"

#include <math.h>
#include <stdlib.h>

#include "naive_masks.h"

/* Going from double to more is what this file does on purpose. */
#pragma GCC diagnostic ignored "-Wdouble-promotion"

/* The maps of head h in item b, and its parts of the other steps. */
typedef struct {
    const attn_request *request;
    naive_result *r;
    size_t b, h;
    size_t map;  /* where its maps start */
    size_t rows; /* where its rows start, in lse, entropy and context / d_v */
    const double *q, *k, *v;
} head;

static head head_at(const attn_request *request, naive_result *r, size_t b, size_t h)
{
    size_t kv_head = b * r->kv_heads + h / (r->heads / r->kv_heads), own = b * r->heads + h;
    return (head){.request = request,
                  .r = r,
                  .b = b,
                  .h = h,
                  .map = own * r->q_len * r->kv_len,
                  .rows = own * r->q_len,
                  .q = r->step[ATTN_STEP_Q] + own * r->q_len * r->d_k,
                  .k = r->step[ATTN_STEP_K] + kv_head * r->kv_len * r->d_k,
                  .v = r->step[ATTN_STEP_V] + kv_head * r->kv_len * r->d_v};
}

static void head_mask(const head *a)
{
    naive_result *r = a->r;
    double *mask = r->step[ATTN_STEP_MASK] + a->map;
    for (size_t i = 0; i < r->q_len; i++)
        for (size_t j = 0; j < r->kv_len; j++)
            mask[i * r->kv_len + j] = naive_allows(&a->request->masks, r->q_len, r->kv_len, a->b, a->h, i, j);
}

static bool row_has_key(const head *a, size_t i)
{
    const double *mask = a->r->step[ATTN_STEP_MASK] + a->map + i * a->r->kv_len;
    for (size_t j = 0; j < a->r->kv_len; j++)
        if (mask[j] != 0)
            return true;
    return false;
}

static bool key_has_row(const head *a, size_t j)
{
    const double *mask = a->r->step[ATTN_STEP_MASK] + a->map + j;
    for (size_t i = 0; i < a->r->q_len; i++)
        if (mask[i * a->r->kv_len] != 0)
            return true;
    return false;
}

/* What relative positions add to the score; adds the sizes of its terms to *terms. */
static long double relative_terms(const head *a, size_t i, size_t j, double distance, double *terms)
{
    const attn_relative_position *own = &a->request->options.relative_position;
    const size_t d_k = a->r->d_k, kv_head = a->h / (a->r->heads / a->r->kv_heads);
    long double sum = 0;
    for (size_t d = 0; d < d_k; d++) {
        if (own->key != NULL) {
            const size_t row = naive_relative_row(own, own->key->shape[0], distance);
            const double term = a->q[i * d_k + d] * naive_read(own->key, 0, 0, row, kv_head * d_k + d);
            sum += term;
            *terms += fabs(term);
        }
        if (own->query != NULL) {
            const size_t row = naive_relative_row(own, own->query->shape[0], distance);
            const double term = a->k[j * d_k + d] * naive_read(own->query, 0, 0, row, a->h * d_k + d);
            sum += term;
            *terms += fabs(term);
        }
    }
    return sum;
}

static void score(const head *a, size_t i, size_t j)
{
    naive_result *r = a->r;
    const attn_options *options = &a->request->options;
    size_t at = a->map + i * r->kv_len + j;
    long double sum = 0;
    double terms = 0;
    for (size_t d = 0; d < r->d_k; d++) {
        double term = a->q[i * r->d_k + d] * a->k[j * r->d_k + d];
        sum += term;
        terms += fabs(term);
    }
    double distance = (double)j - (double)i - naive_offset(&a->request->masks, r->q_len, r->kv_len, a->b);
    sum += relative_terms(a, i, j, distance, &terms);
    r->step[ATTN_STEP_SCORES][at] = (double)sum;
    r->terms[ATTN_STEP_SCORES][at] = terms;
    double scaled = (double)sum * r->scale;
    if (options->softcap > 0)
        scaled = options->softcap * tanh(scaled / options->softcap);
    r->step[ATTN_STEP_SCALED][at] = scaled;
    const attn_tensor *bias = a->request->masks.bias;
    r->step[ATTN_STEP_MASKED][at] = scaled + naive_position_bias(options, distance, r->heads, a->h) +
                                    (bias != NULL ? naive_read(bias, a->b, a->h, i, j) : 0);
}

static void head_scores(const head *a)
{
    naive_result *r = a->r;
    for (size_t i = 0; i < r->q_len; i++) {
        bool row_is_read = row_has_key(a, i);
        for (size_t j = 0; j < r->kv_len; j++) {
            size_t at = a->map + i * r->kv_len + j;
            if (row_is_read && key_has_row(a, j))
                score(a, i, j);
            else
                r->step[ATTN_STEP_SCORES][at] = r->step[ATTN_STEP_SCALED][at] = -HUGE_VAL;
            if (r->step[ATTN_STEP_MASK][at] == 0)
                r->step[ATTN_STEP_MASKED][at] = -HUGE_VAL;
        }
    }
}

/* Remembers how large the scores of a row are, and the terms that they are summed from. */
static void row_peak(const head *a, size_t i)
{
    naive_result *r = a->r;
    double *peak = &r->peak[a->rows + i];
    for (size_t j = 0; j < r->kv_len; j++) {
        size_t at = a->map + i * r->kv_len + j;
        if (r->step[ATTN_STEP_MASK][at] == 0)
            continue;
        double bias = fabs(r->step[ATTN_STEP_MASKED][at] - r->step[ATTN_STEP_SCALED][at]);
        *peak = fmax(*peak, fabs(r->scale) * r->terms[ATTN_STEP_SCORES][at] + bias);
        r->max_abs_score = fmax(r->max_abs_score, fabs(r->step[ATTN_STEP_SCALED][at]));
    }
}

/*
 * softmax over the allowed keys and the sink; subtracting the maximum changes nothing and keeps exp in range. A row
 * without keys has its sink alone.
 */
static void row_softmax(const head *a, size_t i)
{
    naive_result *r = a->r;
    const double *masked = r->step[ATTN_STEP_MASKED] + a->map + i * r->kv_len;
    const double *mask = r->step[ATTN_STEP_MASK] + a->map + i * r->kv_len;
    double *weights = r->step[ATTN_STEP_ATTENTION] + a->map + i * r->kv_len;
    const attn_tensor *sinks = a->request->options.sinks;
    const double logit = sinks != NULL ? naive_read(sinks, 0, 0, 0, a->h) : -HUGE_VAL;
    long double max = logit, sum = 0, entropy = 0, sink = 0;
    for (size_t j = 0; j < r->kv_len; j++)
        if (mask[j] != 0 && !(masked[j] <= max))
            max = masked[j];
    for (size_t j = 0; j < r->kv_len; j++)
        sum += weights[j] = mask[j] != 0 ? (double)expl(masked[j] - max) : 0;
    r->step[ATTN_STEP_LSE_KEYS][a->rows + i] = sum > 0 ? (double)(max + logl(sum)) : -HUGE_VAL;
    if (sinks != NULL)
        sum += sink = expl(logit - max);
    for (size_t j = 0; j < r->kv_len; j++) {
        weights[j] = (double)(weights[j] / sum);
        entropy -= weights[j] > 0 ? weights[j] * log(weights[j]) : 0;
    }
    sink /= sum;
    entropy -= sink > 0 ? sink * logl(sink) : 0;
    r->step[ATTN_STEP_LSE][a->rows + i] = (double)(max + logl(sum));
    r->step[ATTN_STEP_ENTROPY][a->rows + i] = (double)entropy;
    r->step[ATTN_STEP_SINK][a->rows + i] = (double)sink;
    r->peak[a->rows + i] = fmax(r->peak[a->rows + i], sinks != NULL ? fabs(logit) : 0);
}

/* The keys that any query head of the same key head may attend to in some row. */
static void seen_by_group(const head *a, double *seen)
{
    const size_t group = a->r->heads / a->r->kv_heads, first = a->h / group * group;
    for (size_t j = 0; j < a->r->kv_len; j++)
        for (size_t at = 0; at < group * a->r->q_len; at++)
            if (naive_allows(&a->request->masks, a->r->q_len, a->r->kv_len, a->b, first + at / a->r->q_len,
                             at % a->r->q_len, j))
                seen[j] = 1;
}

/* Instead of the softmax: weights of a feature map. */
static void head_features(const head *a)
{
    naive_result *r = a->r;
    double *seen = naive_numbers(r->kv_len);
    seen_by_group(a, seen);
    double max = naive_key_max(a->request, r, a->k, seen);
    for (size_t i = 0; i < r->q_len; i++) {
        const double *mask = r->step[ATTN_STEP_MASK] + a->map + i * r->kv_len;
        double *weights = r->step[ATTN_STEP_ATTENTION] + a->map + i * r->kv_len;
        if (row_has_key(a, i))
            naive_feature_weights(a->request, r, a->q + i * r->d_k, a->k, mask, max, weights);
        else
            r->rows_without_keys++;
    }
    r->max_abs_score = 0;
    free(seen);
}

static void head_softmax(const head *a)
{
    naive_result *r = a->r;
    for (size_t i = 0; i < r->q_len; i++) {
        const bool has_key = row_has_key(a, i);
        r->step[ATTN_STEP_LSE][a->rows + i] = r->step[ATTN_STEP_LSE_KEYS][a->rows + i] = -HUGE_VAL;
        r->rows_without_keys += !has_key;
        if (has_key)
            row_peak(a, i);
        if (has_key || a->request->options.sinks != NULL)
            row_softmax(a, i);
    }
}

static void head_drop(const head *a, const uint8_t *keep)
{
    naive_result *r = a->r;
    double kept = keep != NULL ? 1 / (1 - a->request->options.dropout) : 1;
    for (size_t at = a->map; at < a->map + r->q_len * r->kv_len; at++)
        r->step[ATTN_STEP_DROPPED][at] = keep == NULL || keep[at] ? r->step[ATTN_STEP_ATTENTION][at] * kept : 0;
}

/* A hidden value is not read: 0 times NaN would be NaN. */
static void head_context(const head *a)
{
    naive_result *r = a->r;
    const double *mask = r->step[ATTN_STEP_MASK] + a->map, *weights = r->step[ATTN_STEP_DROPPED] + a->map;
    for (size_t i = 0; i < r->q_len; i++)
        for (size_t d = 0; d < r->d_v; d++) {
            long double sum = 0;
            double terms = 0;
            for (size_t j = 0; j < r->kv_len; j++)
                if (mask[i * r->kv_len + j] != 0) {
                    double term = weights[i * r->kv_len + j] * a->v[j * r->d_v + d];
                    sum += term;
                    terms += fabs(term);
                }
            r->step[ATTN_STEP_CONTEXT][(a->rows + i) * r->d_v + d] = (double)sum;
            r->terms[ATTN_STEP_CONTEXT][(a->rows + i) * r->d_v + d] = terms;
        }
}

void naive_head(const attn_request *request, naive_result *r, const uint8_t *keep, size_t b, size_t h)
{
    const head a = head_at(request, r, b, h);
    head_mask(&a);
    head_scores(&a);
    if (request->options.mechanism.type == ATTN_SOFTMAX)
        head_softmax(&a);
    else
        head_features(&a);
    head_drop(&a, keep);
    head_context(&a);
}
