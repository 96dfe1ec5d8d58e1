/*
 * naive_attention.c: attention as the papers write it, with one loop per sum. It is slow, and meant to be read in one
 * go: naive_attention at the end calls the steps in order, and naive_head.c has those of a head. Sums are in long
 * double where it is wider than double, because a plain sum of a thousand doubles is less exact than the float64
 * kernels that are compared with it.
 */
#include "naive_attention.h"

#include "naive_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* The output features of a linear map, over all its heads. */
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
    r->d_attended = r->heads * r->d_v;
    if (output != NULL) {
        bool in_out = request->weights.layout == ATTN_LAYOUT_IN_OUT;
        r->d_attended = output->shape[output->rank - (in_out ? 1 : 2)];
    }
    const attn_tensor *down = request->weights.feed_forward.down.weight;
    r->d_out = down != NULL ? down->shape[request->weights.layout == ATTN_LAYOUT_IN_OUT ? 1 : 0] : r->d_attended;
    r->softcap = request->options.softcap;
    const attn_mechanism *mechanism = &request->options.mechanism;
    bool has_no_scale = mechanism->type == ATTN_LINEAR && !mechanism->is_unnormalised;
    r->scale = request->options.has_scale ? request->options.scale : has_no_scale ? 1 : 1 / sqrt((double)r->d_k);
}

/* ---- norm ---- */

void naive_norm(attn_norm_type type, double eps, const attn_affine *norm, size_t count, const double *from, double *to,
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

/* The features of one position; rounding errors are proportional to terms. */
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

/* The weight from input feature f to feature d of head h. */
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
    const attn_affine *linear = which == PART_Q ? &w->query : which == PART_K ? &w->key : &w->value;
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

static void concatenate(const attn_request *request, naive_result *r)
{
    const attn_tensor *scale = request->options.head_scale;
    r->largest_factor = 1;
    for (size_t h = 0; scale != NULL && h < r->heads; h++)
        r->largest_factor = fmax(r->largest_factor, fabs(naive_read(scale, 0, 0, 0, h)));
    for (size_t b = 0; b < r->batch; b++)
        for (size_t h = 0; h < r->heads; h++)
            for (size_t i = 0; i < r->q_len; i++)
                for (size_t d = 0; d < r->d_v; d++) {
                    const double factor = scale == NULL ? 1 : naive_read(scale, 0, 0, 0, h);
                    const double context = r->step[ATTN_STEP_CONTEXT][((b * r->heads + h) * r->q_len + i) * r->d_v + d];
                    r->step[ATTN_STEP_CONCAT][((b * r->q_len + i) * r->heads + h) * r->d_v + d] =
                        factor == 0 ? 0 : factor * context;
                }
}

double naive_gate(const attn_request *request, const naive_result *r, size_t b, size_t i, size_t h, size_t d)
{
    const attn_affine *gate = &request->weights.gate;
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
    const attn_affine *output = &request->weights.output;
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
        for (size_t d = 0; d < r->d_attended; d++) {
            size_t at = row * r->d_attended + d;
            const double *concat = r->step[ATTN_STEP_GATED] + row * r->heads * r->d_v;
            double *terms = &r->terms[ATTN_STEP_PROJECTED][at];
            r->step[ATTN_STEP_PROJECTED][at] = request->weights.output.weight == NULL
                                                   ? concat[d]
                                                   : naive_project_output(request, r->heads, r->d_v, concat, d, terms);
        }
}

void naive_query_token(const attn_request *request, size_t b, size_t i, size_t d_query, double *to)
{
    token x = {.count = d_query, .features = to, .terms = naive_numbers(d_query)};
    read_token(request, request->inputs.query, true, b, i, &x);
    free(x.terms);
}

static void make_residual(const attn_request *request, naive_result *r)
{
    double *residual = r->step[ATTN_STEP_RESIDUAL];
    for (size_t row = 0; row < r->batch * r->q_len; row++)
        naive_branch(request, &request->weights.branch_norm, r->d_attended,
                     r->step[ATTN_STEP_PROJECTED] + row * r->d_attended, residual + row * r->d_attended);
    for (size_t at = 0; at < r->batch * r->q_len * r->d_attended && request->options.residual; at++) {
        size_t row = at / r->d_attended, b = row / r->q_len, i = row % r->q_len;
        residual[at] += naive_read(request->inputs.query, 0, b, i, at % r->d_attended);
    }
}

/* The output of a query of rank 4: concat, heads first. */
static void put_heads_first(const naive_result *r, double *output)
{
    const size_t d_v = r->d_v;
    for (size_t row = 0; row < r->batch * r->q_len; row++)
        for (size_t h = 0; h < r->heads; h++)
            memcpy(output + ((row / r->q_len * r->heads + h) * r->q_len + row % r->q_len) * d_v,
                   r->step[ATTN_STEP_CONCAT] + (row * r->heads + h) * d_v, d_v * sizeof(double));
}

static void make_output(const attn_request *request, naive_result *r)
{
    const attn_options *options = &request->options;
    size_t rows = r->batch * r->q_len, bytes = rows * r->d_attended * sizeof(double);
    const bool has_network = request->weights.feed_forward.up.weight != NULL;
    double *output = r->step[has_network ? ATTN_STEP_ATTENTION_OUTPUT : ATTN_STEP_OUTPUT];
    if (request->inputs.query->rank == 4)
        put_heads_first(r, output);
    else
        memcpy(output, r->step[ATTN_STEP_RESIDUAL], bytes);
    if (options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_POST)
        for (size_t row = 0; row < rows; row++)
            naive_norm(options->norm, options->norm_eps, &request->weights.norm, r->d_attended,
                       output + row * r->d_attended, output + row * r->d_attended, NULL);
    for (size_t row = 0; row < rows && has_network; row++)
        naive_feed_forward(request, r, row / r->q_len, row % r->q_len, output + row * r->d_attended,
                           r->step[ATTN_STEP_FEED_FORWARD] + row * r->d_out, r->step[ATTN_STEP_OUTPUT] + row * r->d_out,
                           r->terms[ATTN_STEP_FEED_FORWARD] + row * r->d_out);
}

/* ---- all of it ---- */

static void make_room(naive_result *r)
{
    const attn_step maps[] = {ATTN_STEP_SCORES,    ATTN_STEP_SCALED,  ATTN_STEP_MASKED,
                              ATTN_STEP_ATTENTION, ATTN_STEP_DROPPED, ATTN_STEP_MASK};
    size_t rows = r->batch * r->heads * r->q_len, map = rows * r->kv_len;
    size_t attended = r->batch * r->q_len * r->d_attended, out = r->batch * r->q_len * r->d_out;
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
    r->step[ATTN_STEP_PROJECTED] = naive_numbers(attended);
    r->terms[ATTN_STEP_PROJECTED] = naive_numbers(attended);
    r->step[ATTN_STEP_RESIDUAL] = naive_numbers(attended);
    r->step[ATTN_STEP_OUTPUT] = naive_numbers(out);
    r->step[ATTN_STEP_ATTENTION_OUTPUT] = naive_numbers(attended);
    r->step[ATTN_STEP_FEED_FORWARD] = naive_numbers(out);
    r->terms[ATTN_STEP_FEED_FORWARD] = naive_numbers(out);
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
        for (size_t h = 0; h < r.heads; h++)
            naive_head(request, &r, keep, b, h);
    mean_over_heads(&r);
    concatenate(request, &r);
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
