/*
 * naive_attention.c: attention as the papers write it, one loop a sum. Slow, and meant to be read in one go:
 * naive_attention at the end names the steps in their order. Sums run in long double where that is more than double:
 * adding a thousand doubles one by one is less exact than what float64 kernels do, and they are measured by this.
 */
#include "naive_attention.h"

#include "naive_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "naive_masks.h"

/* Going from double to more is what this file does on purpose. */
#pragma GCC diagnostic ignored "-Wdouble-promotion"

static double element(const attn_tensor *tensor, ptrdiff_t at)
{
    switch (tensor->dtype) {
    case ATTN_F32:
        return (double)((const float *)tensor->data)[at];
    case ATTN_F64:
        return ((const double *)tensor->data)[at];
    case ATTN_I64:
        return (double)((const int64_t *)tensor->data)[at];
    case ATTN_U8:
    case ATTN_BOOL:
        return (double)((const uint8_t *)tensor->data)[at];
    case ATTN_F16:
    case ATTN_BF16:
    case ATTN_I32:
    case ATTN_DTYPE_COUNT:
        break;
    }
    abort();
}

double naive_read(const attn_tensor *tensor, size_t a, size_t b, size_t c, size_t d)
{
    const size_t index[4] = {a, b, c, d};
    ptrdiff_t at = 0;
    for (int r = 0; r < tensor->rank; r++) {
        size_t i = tensor->shape[r] == 1 ? 0 : index[4 - tensor->rank + r];
        at += (ptrdiff_t)i * tensor->stride[r];
    }
    return element(tensor, at);
}

/* ---- dimensions ---- */

static const attn_tensor *input_key(const attn_request *request)
{
    return request->inputs.key != NULL ? request->inputs.key : request->inputs.query;
}

static const attn_tensor *input_value(const attn_request *request)
{
    return request->inputs.value != NULL ? request->inputs.value : input_key(request);
}

static size_t count_heads(size_t given, const attn_tensor *input, const attn_tensor *weight, size_t otherwise)
{
    if (given != 0)
        return given;
    if (input->rank == 4)
        return input->shape[1];
    return weight != NULL && weight->rank == 3 ? weight->shape[0] : otherwise;
}

/* What a linear map gives to all its heads together. */
static size_t columns(const attn_request *request, const attn_tensor *weight)
{
    bool in_out = request->weights.layout == ATTN_LAYOUT_IN_OUT;
    size_t last = weight->shape[weight->rank - 1], before = weight->shape[weight->rank - 2];
    size_t heads = weight->rank == 3 ? weight->shape[0] : 1;
    return heads * (in_out ? last : before);
}

static size_t features(const attn_tensor *input, size_t heads)
{
    size_t last = input->shape[input->rank - 1];
    return input->rank == 4 ? last : last / heads;
}

static void measure_heads(const attn_request *request, naive_result *r)
{
    const attn_weights *w = &request->weights;
    const attn_tensor *query = request->inputs.query, *key = input_key(request), *value = input_value(request);
    r->heads = count_heads(request->options.num_heads, query, w->query.weight, 1);
    r->kv_heads = count_heads(request->options.kv_num_heads, key, w->key.weight, r->heads);
    if (!request->is_layer) {
        r->d_k = features(query, r->heads);
        r->d_v = features(value, r->kv_heads);
    } else if (w->qkv.weight != NULL) {
        r->d_k = r->d_v = columns(request, w->qkv.weight) / (r->heads + 2 * r->kv_heads);
    } else {
        r->d_k = columns(request, w->query.weight) / r->heads;
        r->d_v = columns(request, w->value.weight) / r->kv_heads;
    }
}

static void measure(const attn_request *request, naive_result *r)
{
    const attn_tensor *query = request->inputs.query, *key = input_key(request), *value = input_value(request);
    const attn_tensor *output = request->weights.output.weight;
    r->batch = query->rank > 2 ? query->shape[0] : 1;
    r->q_len = query->shape[query->rank - 2];
    const attn_tensor *past = request->inputs.past_key;
    r->past_len = past != NULL ? past->shape[past->rank - 2] : 0;
    r->kv_len = r->past_len + key->shape[key->rank - 2];
    r->d_query = query->shape[query->rank - 1];
    r->d_key = key->shape[key->rank - 1];
    r->d_value = value->shape[value->rank - 1];
    measure_heads(request, r);
    r->d_out = r->heads * r->d_v;
    if (output != NULL) {
        bool in_out = request->weights.layout == ATTN_LAYOUT_IN_OUT;
        r->d_out = output->shape[output->rank - (in_out ? 1 : 2)];
    }
    r->softcap = request->options.softcap;
    const attn_mechanism *mechanism = &request->options.mechanism;
    bool has_no_scale = mechanism->type == ATTN_LINEAR && !mechanism->is_unnormalised;
    r->scale = request->options.has_scale ? request->options.scale : has_no_scale ? 1 : 1 / sqrt((double)r->d_k);
}

/* ---- norm ---- */

void naive_norm(attn_norm_type type, double eps, const attn_linear *norm, size_t count, const double *from, double *to,
                double *terms)
{
    long double mean = 0, square = 0;
    double size = 0;
    for (size_t f = 0; f < count; f++) {
        mean += from[f] / (long double)count;
        size += fabs(from[f]) / (double)count;
    }
    if (type != ATTN_NORM_LAYER)
        mean = 0;
    for (size_t f = 0; f < count; f++)
        square += (from[f] - mean) * (from[f] - mean) / count;
    double deviation = (double)sqrtl(square + eps);
    if (type == ATTN_NORM_L2)
        deviation = fmax((double)sqrtl(square * count), eps);
    for (size_t f = 0; f < count; f++) {
        double gain = norm->weight != NULL ? naive_read(norm->weight, 0, 0, 0, f) : 1;
        double shift = norm->bias != NULL ? naive_read(norm->bias, 0, 0, 0, f) : 0;
        if (terms != NULL)
            terms[f] = (fabs(from[f]) + size) / deviation * fabs(gain) + fabs(shift);
        to[f] = (double)((from[f] - mean) / deviation * gain + shift);
    }
}

/* ---- projections ---- */

typedef enum { PART_Q, PART_K, PART_V } part;

/* The features of one position; terms is what their rounding errors are in proportion to. */
typedef struct {
    size_t count;
    double *features, *terms;
} token;

/* The block of d_k columns that head h of a part has in a fused weight. */
static size_t fused_block(const attn_request *request, const naive_result *r, part which, size_t h)
{
    size_t group = r->heads / r->kv_heads;
    switch (request->weights.qkv_order) {
    case ATTN_QKV_STACKED:
        return which == PART_Q ? h : which == PART_K ? r->heads + h : r->heads + r->kv_heads + h;
    case ATTN_QKV_PER_HEAD:
        return 3 * h + (size_t)which;
    case ATTN_QKV_PER_GROUP:
        if (which == PART_Q)
            return h / group * (group + 2) + h % group;
        return h * (group + 2) + group + (which == PART_V);
    }
    abort();
}

/* What input feature f adds to feature d of head h. */
static double weight_at(const attn_request *request, const attn_tensor *weight, size_t h, size_t width, size_t f,
                        size_t d)
{
    size_t column = weight->rank == 3 ? d : h * width + d;
    if (request->weights.layout == ATTN_LAYOUT_IN_OUT)
        return naive_read(weight, 0, h, f, column);
    return naive_read(weight, 0, h, column, f);
}

static double bias_at(const attn_tensor *bias, size_t h, size_t width, size_t d)
{
    if (bias == NULL)
        return 0;
    return bias->rank == 2 ? naive_read(bias, 0, 0, h, d) : naive_read(bias, 0, 0, 0, h * width + d);
}

/* One number of q, k or v: x W + b; returns the sum of the absolute values of the terms beside it. */
static double project(const attn_request *request, const naive_result *r, part which, size_t h, size_t d,
                      const token *x, double *terms)
{
    const attn_weights *w = &request->weights;
    const attn_linear *linear = which == PART_Q ? &w->query : which == PART_K ? &w->key : &w->value;
    size_t width = which == PART_V ? r->d_v : r->d_k;
    if (w->qkv.weight != NULL) {
        linear = &w->qkv;
        h = fused_block(request, r, which, h);
    }
    long double sum = bias_at(linear->bias, h, width, d);
    *terms = (double)fabsl(sum);
    for (size_t f = 0; f < x->count; f++) {
        double weight = weight_at(request, linear->weight, h, width, f, d);
        sum += x->features[f] * weight;
        *terms += x->terms[f] * fabs(weight);
    }
    return (double)sum;
}

/* Reads the features of one token, normalised when the request says so. */
static void read_token(const attn_request *request, const attn_tensor *input, bool with_norm, size_t b, size_t i,
                       token *x)
{
    const attn_options *options = &request->options;
    for (size_t f = 0; f < x->count; f++) {
        x->features[f] = naive_read(input, 0, b, i, f);
        x->terms[f] = fabs(x->features[f]);
    }
    if (with_norm && options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_PRE)
        naive_norm(options->norm, options->norm_eps, &request->weights.norm, x->count, x->features, x->features,
                   x->terms);
}

/* q, k or v as (batch, heads, len, width): projected in a layer, else cut out of the input. */
static void make_part(const attn_request *request, naive_result *r, part which)
{
    const attn_inputs *in = &request->inputs;
    const attn_tensor *input = which == PART_Q   ? in->query
                               : which == PART_K ? input_key(request)
                                                 : input_value(request);
    size_t heads = which == PART_Q ? r->heads : r->kv_heads, len = which == PART_Q ? r->q_len : r->kv_len - r->past_len;
    size_t width = which == PART_V ? r->d_v : r->d_k;
    double *out = naive_numbers(r->batch * heads * len * width), *terms = naive_numbers(r->batch * heads * len * width);
    token x = {.count = input->shape[input->rank - 1]};
    x.features = naive_numbers(x.count);
    x.terms = naive_numbers(x.count);
    for (size_t b = 0; b < r->batch; b++)
        for (size_t i = 0; i < len; i++) {
            if (input->rank < 4)
                read_token(request, input, request->is_layer && input == in->query, b, i, &x);
            for (size_t h = 0; h < heads; h++)
                for (size_t d = 0; d < width; d++) {
                    size_t at = ((b * heads + h) * len + i) * width + d;
                    if (request->is_layer)
                        out[at] = project(request, r, which, h, d, &x, &terms[at]);
                    else
                        out[at] = input->rank == 4 ? naive_read(input, b, h, i, d) : x.features[h * width + d];
                }
        }
    free(x.features);
    free(x.terms);
    const attn_step step[] = {ATTN_STEP_Q, ATTN_STEP_K, ATTN_STEP_V};
    r->step[step[which]] = out;
    r->terms[step[which]] = terms;
}

/* ---- one head ---- */

/* The maps of head h in item b, and what belongs to it of the rest. */
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
                  .q = r->step[ATTN_STEP_Q_ROTATED] + own * r->q_len * r->d_k,
                  .k = r->step[ATTN_STEP_K_ROTATED] + kv_head * r->kv_len * r->d_k,
                  .v = r->step[ATTN_STEP_PRESENT_VALUE] + kv_head * r->kv_len * r->d_v};
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
    r->step[ATTN_STEP_SCORES][at] = (double)sum;
    r->terms[ATTN_STEP_SCORES][at] = terms;
    double scaled = (double)sum * r->scale;
    if (options->softcap > 0)
        scaled = options->softcap * tanh(scaled / options->softcap);
    r->step[ATTN_STEP_SCALED][at] = scaled;
    const attn_tensor *bias = a->request->masks.bias;
    double distance = (double)j - (double)i - naive_offset(&a->request->masks, r->q_len, r->kv_len, a->b);
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

/* ---- after the heads ---- */

static void mean_over_heads(naive_result *r)
{
    size_t map = r->q_len * r->kv_len;
    for (size_t b = 0; b < r->batch; b++)
        for (size_t h = 0; h < r->heads; h++)
            for (size_t at = 0; at < map; at++)
                r->step[ATTN_STEP_ATTENTION_MEAN][b * map + at] +=
                    r->step[ATTN_STEP_ATTENTION][(b * r->heads + h) * map + at] / (double)r->heads;
}

static void concatenate(naive_result *r)
{
    for (size_t b = 0; b < r->batch; b++)
        for (size_t h = 0; h < r->heads; h++)
            for (size_t i = 0; i < r->q_len; i++)
                for (size_t d = 0; d < r->d_v; d++)
                    r->step[ATTN_STEP_CONCAT][((b * r->q_len + i) * r->heads + h) * r->d_v + d] =
                        r->step[ATTN_STEP_CONTEXT][((b * r->heads + h) * r->q_len + i) * r->d_v + d];
}

double naive_gate(const attn_request *request, const naive_result *r, size_t b, size_t i, size_t h, size_t d)
{
    const attn_linear *gate = &request->weights.gate;
    const size_t width = columns(request, gate->weight) / r->heads;
    token x = {.count = r->d_query, .features = naive_numbers(r->d_query), .terms = naive_numbers(r->d_query)};
    read_token(request, request->inputs.query, true, b, i, &x);
    long double sum = bias_at(gate->bias, h, width, d);
    for (size_t f = 0; f < x.count; f++)
        sum += x.features[f] * weight_at(request, gate->weight, h, width, f, d);
    free(x.features);
    free(x.terms);
    return (double)(1 / (1 + expl(-sum)));
}

static void make_gated(const attn_request *request, naive_result *r)
{
    const size_t width = r->heads * r->d_v, all = r->batch * r->q_len * width;
    const attn_tensor *gate = request->weights.gate.weight;
    for (size_t at = 0; at < all; at++) {
        size_t row = at / width, h = at % width / r->d_v;
        bool is_of_head = gate != NULL && columns(request, gate) == r->heads;
        double factor =
            gate == NULL ? 1 : naive_gate(request, r, row / r->q_len, row % r->q_len, h, is_of_head ? 0 : at % r->d_v);
        r->step[ATTN_STEP_GATED][at] = r->step[ATTN_STEP_CONCAT][at] * factor;
    }
}

double naive_project_output(const attn_request *request, size_t heads, size_t d_v, const double *row, size_t d,
                            double *terms)
{
    const attn_linear *output = &request->weights.output;
    bool in_out = request->weights.layout == ATTN_LAYOUT_IN_OUT;
    long double sum = bias_at(output->bias, 0, 0, d);
    *terms = (double)fabsl(sum);
    for (size_t c = 0; c < heads * d_v; c++) {
        size_t h = c / d_v, from = output->weight->rank == 3 ? c % d_v : c;
        double weight = in_out ? naive_read(output->weight, 0, h, from, d) : naive_read(output->weight, 0, h, d, from);
        sum += row[c] * weight;
        *terms += fabs(row[c] * weight);
    }
    return (double)sum;
}

static void make_projected(const attn_request *request, naive_result *r)
{
    for (size_t row = 0; row < r->batch * r->q_len; row++)
        for (size_t d = 0; d < r->d_out; d++) {
            size_t at = row * r->d_out + d;
            const double *concat = r->step[ATTN_STEP_GATED] + row * r->heads * r->d_v;
            double *terms = &r->terms[ATTN_STEP_PROJECTED][at];
            r->step[ATTN_STEP_PROJECTED][at] = request->weights.output.weight == NULL
                                                   ? concat[d]
                                                   : naive_project_output(request, r->heads, r->d_v, concat, d, terms);
        }
}

static void make_residual(const attn_request *request, naive_result *r)
{
    for (size_t at = 0; at < r->batch * r->q_len * r->d_out; at++) {
        size_t row = at / r->d_out, b = row / r->q_len, i = row % r->q_len;
        r->step[ATTN_STEP_RESIDUAL][at] = r->step[ATTN_STEP_PROJECTED][at];
        if (request->options.residual)
            r->step[ATTN_STEP_RESIDUAL][at] += naive_read(request->inputs.query, 0, b, i, at % r->d_out);
    }
}

static void make_output(const attn_request *request, naive_result *r)
{
    const attn_options *options = &request->options;
    size_t rows = r->batch * r->q_len, bytes = rows * r->d_out * sizeof(double);
    bool of_heads = request->inputs.query->rank == 4;
    double *output = r->step[ATTN_STEP_OUTPUT];
    memcpy(output, r->step[of_heads ? ATTN_STEP_CONTEXT : ATTN_STEP_RESIDUAL], bytes);
    if (options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_POST)
        for (size_t row = 0; row < rows; row++)
            naive_norm(options->norm, options->norm_eps, &request->weights.norm, r->d_out, output + row * r->d_out,
                       output + row * r->d_out, NULL);
}

/* ---- all of it ---- */

static void make_room(naive_result *r)
{
    const attn_step maps[] = {ATTN_STEP_SCORES,    ATTN_STEP_SCALED,  ATTN_STEP_MASKED,
                              ATTN_STEP_ATTENTION, ATTN_STEP_DROPPED, ATTN_STEP_MASK};
    size_t rows = r->batch * r->heads * r->q_len, map = rows * r->kv_len, out = r->batch * r->q_len * r->d_out;
    for (size_t m = 0; m < sizeof maps / sizeof *maps; m++)
        r->step[maps[m]] = naive_numbers(map);
    r->terms[ATTN_STEP_SCORES] = naive_numbers(map);
    r->step[ATTN_STEP_ATTENTION_MEAN] = naive_numbers(r->batch * r->q_len * r->kv_len);
    r->step[ATTN_STEP_LSE] = naive_numbers(rows);
    r->step[ATTN_STEP_LSE_KEYS] = naive_numbers(rows);
    r->step[ATTN_STEP_ENTROPY] = naive_numbers(rows);
    r->step[ATTN_STEP_SINK] = naive_numbers(rows);
    r->peak = naive_numbers(rows);
    r->step[ATTN_STEP_CONTEXT] = naive_numbers(rows * r->d_v);
    r->terms[ATTN_STEP_CONTEXT] = naive_numbers(rows * r->d_v);
    r->step[ATTN_STEP_CONCAT] = naive_numbers(rows * r->d_v);
    r->step[ATTN_STEP_GATED] = naive_numbers(rows * r->d_v);
    r->step[ATTN_STEP_PROJECTED] = naive_numbers(out);
    r->terms[ATTN_STEP_PROJECTED] = naive_numbers(out);
    r->step[ATTN_STEP_RESIDUAL] = naive_numbers(out);
    r->step[ATTN_STEP_OUTPUT] = naive_numbers(out);
}

naive_result naive_attention(const attn_request *request, const uint8_t *keep)
{
    naive_result r = {0};
    measure(request, &r);
    make_room(&r);
    make_part(request, &r, PART_Q);
    make_part(request, &r, PART_K);
    make_part(request, &r, PART_V);
    naive_turn(request, &r);
    for (size_t b = 0; b < r.batch; b++)
        for (size_t h = 0; h < r.heads; h++) {
            head a = head_at(request, &r, b, h);
            head_mask(&a);
            head_scores(&a);
            if (request->options.mechanism.type == ATTN_SOFTMAX)
                head_softmax(&a);
            else
                head_features(&a);
            head_drop(&a, keep);
            head_context(&a);
        }
    mean_over_heads(&r);
    concatenate(&r);
    make_gated(request, &r);
    make_projected(request, &r);
    make_residual(request, &r);
    make_output(request, &r);
    return r;
}

void naive_release(naive_result *result)
{
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        free(result->step[step]);
        free(result->terms[step]);
    }
    free(result->peak);
}
