/*
 * naive_parts.c: norms and rotation of queries and keys, caches, and feature maps, as their papers define them.
 */
#include "naive_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Going from double to more is what this file does on purpose. */
#pragma GCC diagnostic ignored "-Wdouble-promotion"

double *naive_numbers(size_t count)
{
    double *all = calloc(count + 1, sizeof *all); /* never of size 0 */
    if (all == NULL)
        abort();
    return all;
}

/* ---- rotation ---- */

static double given_or(double given, double otherwise)
{
    return given > 0 ? given : otherwise;
}

/* YaRN, section 3.2: the share of pair i that is interpolated; r turns in the original length mark its ends. */
static double yarn_share(const attn_rope_scaling *s, double theta, double original, size_t dim, size_t i)
{
    double ends[2];
    const double turns[2] = {given_or(s->beta_fast, 32), given_or(s->beta_slow, 1)};
    for (int end = 0; end < 2; end++)
        ends[end] = (double)dim / 2 * log(original / (2 * M_PI * turns[end])) / log(theta);
    double low = fmax(s->keeps_fraction ? ends[0] : floor(ends[0]), 0);
    double high = fmin(s->keeps_fraction ? ends[1] : ceil(ends[1]), (double)dim - 1);
    return fmin(fmax(((double)i - low) / (high == low ? 0.001 : high - low), 0), 1);
}

/* The angle of pair i for one position, and *gain for its cosine and sine. */
static long double angle(const attn_rope *rope, size_t dim, double length, double position, size_t i, double *gain)
{
    const attn_rope_scaling *s = &rope->scaling;
    double theta = given_or(rope->theta, 10000);
    double original = given_or(s->original_max_position_embeddings, s->max_position_embeddings);
    double most = given_or(s->max_position_embeddings, original);
    double factor = given_or(s->factor, original > 0 ? most / original : 1);
    *gain = 1;
    if (s->type == ATTN_ROPE_DYNAMIC && length > most)
        theta *= pow(factor * length / most - factor + 1, (double)dim / ((double)dim - 2));
    double w = pow(theta, -2.0 * (double)i / (double)dim), wavelength = 2 * M_PI / w;
    if (s->type == ATTN_ROPE_LINEAR)
        w /= factor;
    if (s->type == ATTN_ROPE_YARN) {
        double share = yarn_share(s, theta, original, dim, i);
        w = w * (1 - share) + w / factor * share;
        double with = s->mscale > 0 && s->mscale_all_dim > 0 ? s->mscale : 1;
        double without = s->mscale > 0 && s->mscale_all_dim > 0 ? s->mscale_all_dim : 0;
        double grown = factor > 1 ? (0.1 * with * log(factor) + 1) / (0.1 * without * log(factor) + 1) : 1;
        *gain = given_or(s->attention_factor, grown);
    }
    if (s->type == ATTN_ROPE_LONGROPE) {
        w /= naive_read(length > original ? s->long_factor : s->short_factor, 0, 0, 0, i);
        *gain = given_or(s->attention_factor, factor > 1 ? sqrt(1 + log(factor) / log(original)) : 1);
    }
    if (s->type == ATTN_ROPE_LLAMA3) {
        double turns = original / wavelength, low = s->low_freq_factor, high = s->high_freq_factor;
        double kept = fmin(fmax((turns - low) / (high - low), 0), 1);
        w = w * kept + w / factor * (1 - kept);
    }
    if (s->type == ATTN_ROPE_PROPORTIONAL)
        w = (double)(i + 1) <= given_or(s->partial_rotary_factor, 1) * (double)dim / 2 ? w / given_or(s->factor, 1) : 0;
    return (long double)position * w;
}

static size_t rotary_dim(const attn_rope *rope, size_t d_k)
{
    const attn_rope_scaling *s = &rope->scaling;
    if (rope->dim != 0)
        return rope->dim;
    if (rope->query.cos != NULL)
        return 2 * rope->query.cos->shape[rope->query.cos->rank - 1];
    bool is_part = s->partial_rotary_factor > 0 && s->type != ATTN_ROPE_PROPORTIONAL;
    return is_part ? (size_t)(s->partial_rotary_factor * (double)d_k) : d_k;
}

static double position_of(const attn_rope_side *side, size_t past_len, size_t b, size_t i)
{
    return side->positions != NULL ? naive_read(side->positions, 0, 0, b, i) : (double)(past_len + i);
}

static double longest(const attn_rope *rope, const naive_result *r)
{
    const attn_rope_side *sides[2] = {&rope->query, &rope->key};
    const size_t lengths[2] = {r->q_len, r->kv_len - r->past_len};
    double length = 0;
    for (size_t b = 0; b < r->batch; b++)
        for (int side = 0; side < 2; side++)
            for (size_t i = 0; i < lengths[side]; i++)
                length = fmax(length, position_of(sides[side], r->past_len, b, i) + 1);
    return length;
}

static void cos_sin(const attn_rope *rope, const attn_rope_side *side, const naive_result *r, size_t dim, size_t b,
                    size_t token, size_t i, double *c, double *s, double *spread)
{
    *spread = 1;
    if (side->cos != NULL) {
        size_t row = side->positions != NULL ? (size_t)naive_read(side->positions, 0, 0, b, token) : token;
        *c = naive_read(side->cos, 0, b, row, i);
        *s = naive_read(side->sin, 0, b, row, i);
        return;
    }
    double gain;
    long double a = angle(rope, dim, longest(rope, r), position_of(side, r->past_len, b, token), i, &gain);
    *c = (double)(cosl(a) * gain);
    *s = (double)(sinl(a) * gain);
    *spread = 1 + (double)fabsl(a); /* an angle is off by its own size times the roundoff of double */
}

static void rotate(const attn_request *request, const naive_result *r, bool is_key, size_t b, size_t token, double *x,
                   double *terms)
{
    const attn_rope *rope = &request->options.rope;
    if (rope->layout == ATTN_ROPE_NONE)
        return;
    const size_t dim = rotary_dim(rope, r->d_k), h = dim / 2;
    double *y = naive_numbers(2 * dim);
    for (size_t i = 0; i < h; i++) {
        double c, s, spread;
        cos_sin(rope, is_key ? &rope->key : &rope->query, r, dim, b, token, i, &c, &s, &spread);
        spread = request->options.compute == ATTN_F64 ? spread : 1; /* angles are in double for both */
        size_t from1 = rope->layout == ATTN_ROPE_HALF ? i : 2 * i,
               from2 = from1 + (rope->layout == ATTN_ROPE_HALF ? h : 1);
        size_t to1 = rope->layout == ATTN_ROPE_INTERLEAVED ? 2 * i : i,
               to2 = to1 + (rope->layout == ATTN_ROPE_INTERLEAVED ? 1 : h);
        y[to1] = x[from1] * c - x[from2] * s;
        y[to2] = x[from1] * s + x[from2] * c;
        y[dim + to1] = terms[from1] * (fabs(c) + spread - 1) + terms[from2] * (fabs(s) + spread - 1);
        y[dim + to2] = terms[from1] * (fabs(s) + spread - 1) + terms[from2] * (fabs(c) + spread - 1);
    }
    memcpy(x, y, dim * sizeof *x);
    memcpy(terms, y + dim, dim * sizeof *terms);
    free(y);
}

/* ---- norm ---- */

/* A linear whose vectors are numbers[first …) of another: what one head has of a (heads, d_k) gain. */
static attn_tensor part_of(const attn_tensor *vector, size_t h, size_t d_k)
{
    attn_tensor part = attn_tensor_view(vector->data, vector->dtype, 1, (size_t[]){d_k});
    if (vector->rank == 2)
        part.data = (char *)vector->data + h * d_k * attn_dtype_bytes(vector->dtype);
    return part;
}

/* All heads of one token: (heads, d_k). */
static void norm_token(const attn_request *request, const attn_affine *norm, size_t heads, size_t d_k, double *x,
                       double *terms)
{
    const attn_options *options = &request->options;
    const attn_tensor *any = norm->weight != NULL ? norm->weight : norm->bias;
    if (options->qk_norm == ATTN_NORM_NONE)
        return;
    if (any != NULL && any->rank == 1 && any->shape[0] != d_k) {
        naive_norm(options->qk_norm, options->qk_norm_eps, norm, heads * d_k, x, x, terms);
        return;
    }
    for (size_t h = 0; h < heads; h++) {
        attn_tensor weight, bias;
        attn_affine own = {0};
        if (norm->weight != NULL)
            own.weight = (weight = part_of(norm->weight, h, d_k), &weight);
        if (norm->bias != NULL)
            own.bias = (bias = part_of(norm->bias, h, d_k), &bias);
        naive_norm(options->qk_norm, options->qk_norm_eps, &own, d_k, x + h * d_k, x + h * d_k, terms + h * d_k);
    }
}

/* ---- queries, keys, values as the heads see them ---- */

/* from (batch, heads, len, d) to (batch, heads, past_len + len, d), behind past; change: normalised and turned. */
static void make_side(const attn_request *request, naive_result *r, attn_step from, attn_step to, size_t heads,
                      size_t d, const attn_tensor *past, bool change)
{
    const bool is_key = from != ATTN_STEP_Q;
    const size_t past_len = is_key ? r->past_len : 0, len = is_key ? r->kv_len - r->past_len : r->q_len;
    const size_t rows = past_len + len;
    double *all = naive_numbers(r->batch * heads * rows * d), *terms = naive_numbers(r->batch * heads * rows * d);
    double *x = naive_numbers(2 * heads * d), *t = x + heads * d;
    for (size_t b = 0; b < r->batch; b++) {
        for (size_t at = 0; at < heads * past_len * d; at++)
            all[((b * heads + at / d / past_len) * rows + at / d % past_len) * d + at % d] =
                naive_read(past, b, at / d / past_len, at / d % past_len, at % d);
        for (size_t i = 0; i < len; i++) {
            for (size_t f = 0; f < heads * d; f++) {
                x[f] = r->step[from][((b * heads + f / d) * len + i) * d + f % d];
                t[f] = change ? fabs(x[f]) : 0;
            }
            if (change)
                norm_token(request, is_key ? &request->weights.key_norm : &request->weights.query_norm, heads, d, x, t);
            for (size_t h = 0; h < heads; h++) {
                const size_t at = ((b * heads + h) * rows + past_len + i) * d;
                if (change)
                    rotate(request, r, is_key, b, i, x + h * d, t + h * d);
                memcpy(all + at, x + h * d, d * sizeof *x);
                memcpy(terms + at, t + h * d, d * sizeof *t);
            }
        }
    }
    free(x);
    r->step[to] = all;
    r->terms[to] = terms;
}

static double *copy_of(const double *from, size_t count)
{
    double *to = naive_numbers(count);
    memcpy(to, from, count * sizeof *to);
    return to;
}

void naive_turn(const attn_request *request, naive_result *r)
{
    const attn_options *options = &request->options;
    const bool changes = options->rope.layout != ATTN_ROPE_NONE || options->qk_norm != ATTN_NORM_NONE;
    const size_t keys = r->batch * r->kv_heads * r->kv_len * r->d_k;
    make_side(request, r, ATTN_STEP_Q, ATTN_STEP_Q_ROTATED, r->heads, r->d_k, NULL, changes);
    make_side(request, r, ATTN_STEP_K, ATTN_STEP_K_ROTATED, r->kv_heads, r->d_k, request->inputs.past_key, changes);
    make_side(request, r, ATTN_STEP_V, ATTN_STEP_PRESENT_VALUE, r->kv_heads, r->d_v, request->inputs.past_value, false);
    r->step[ATTN_STEP_PRESENT_KEY] = copy_of(r->step[ATTN_STEP_K_ROTATED], keys);
    r->terms[ATTN_STEP_PRESENT_KEY] = copy_of(r->terms[ATTN_STEP_K_ROTATED], keys);
}

/* ---- feature maps ---- */

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
