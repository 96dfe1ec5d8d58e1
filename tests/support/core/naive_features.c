/* naive_features.c: the weights of feature maps, as their papers define them. */
#include <math.h>
#include <stdlib.h>

#include "naive_parts.h"

/* Going from double to more is what this file does on purpose. */
#pragma GCC diagnostic ignored "-Wdouble-promotion"

static size_t features_of(const attn_request *request, const naive_result *r)
{
    const attn_mechanism *m = &request->options.mechanism;
    return m->type == ATTN_LINEAR ? r->d_k : m->projection->shape[0];
}

static double projected(const attn_request *request, const naive_result *r, const double *x, double factor, size_t f)
{
    long double sum = 0;
    for (size_t d = 0; d < r->d_k; d++)
        sum += factor * x[d] * naive_read(request->options.mechanism.projection, 0, 0, f, d);
    return (double)sum;
}

static void features(const attn_request *request, const naive_result *r, const double *x, double factor, double max,
                     double *phi)
{
    const attn_mechanism *m = &request->options.mechanism;
    const size_t count = features_of(request, r);
    double half_square = 0;
    for (size_t d = 0; d < r->d_k; d++)
        half_square += factor * factor * x[d] * x[d] / 2;
    for (size_t f = 0; f < count; f++)
        if (m->type == ATTN_LINEAR)
            phi[f] = m->is_identity ? x[f] : x[f] > 0 ? x[f] + 1 : exp(x[f]);
        else
            phi[f] = (exp(projected(request, r, x, factor, f) - half_square - max) + m->eps) / sqrt((double)count);
}

double naive_key_max(const attn_request *request, const naive_result *r, const double *k, const double *seen)
{
    double max = -HUGE_VAL;
    if (request->options.mechanism.type != ATTN_PERFORMER)
        return 0;
    for (size_t j = 0; j < r->kv_len; j++)
        for (size_t f = 0; seen[j] != 0 && f < features_of(request, r); f++)
            max = fmax(max, projected(request, r, k + j * r->d_k, sqrt(fabs(r->scale)), f));
    return max;
}

void naive_feature_weights(const attn_request *request, const naive_result *r, const double *q, const double *k,
                           const double *mask, double key_max, double *weights)
{
    const attn_mechanism *m = &request->options.mechanism;
    const size_t count = features_of(request, r);
    const double root = sqrt(fabs(r->scale));
    double *phi_q = naive_numbers(2 * count), *phi_k = phi_q + count, query_max = -HUGE_VAL;
    long double sum = m->type == ATTN_LINEAR ? m->eps : 0;
    for (size_t f = 0; m->type == ATTN_PERFORMER && f < count; f++)
        query_max = fmax(query_max, projected(request, r, q, r->scale < 0 ? -root : root, f));
    features(request, r, q, r->scale < 0 ? -root : root, query_max, phi_q);
    for (size_t j = 0; j < r->kv_len; j++) {
        weights[j] = 0;
        if (mask[j] == 0)
            continue;
        features(request, r, k + j * r->d_k, root, key_max, phi_k);
        for (size_t f = 0; f < count; f++)
            weights[j] += phi_q[f] * phi_k[f];
        sum += weights[j];
    }
    for (size_t j = 0; j < r->kv_len; j++)
        weights[j] = m->is_unnormalised ? weights[j] * r->scale : (double)(weights[j] / sum);
    free(phi_q);
}
