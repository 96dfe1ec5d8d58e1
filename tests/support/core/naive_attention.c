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

double *naive_numbers(size_t count)
{
    double *all = calloc(count + 1, sizeof *all); /* never of size 0 */
    if (all == NULL)
        abort();
    return all;
}

/* ---- queries, keys, values ---- */

static const attn_tensor *input_key(const attn_request *request)
{
    return request->inputs.key != NULL ? request->inputs.key : request->inputs.query;
}

static const attn_tensor *input_value(const attn_request *request)
{
    return request->inputs.value != NULL ? request->inputs.value : input_key(request);
}

static size_t count_heads(size_t given, const attn_tensor *input, size_t otherwise)
{
    return given != 0 ? given : input->rank == 4 ? input->shape[1] : otherwise;
}

static size_t features(const attn_tensor *input, size_t heads)
{
    size_t last = input->shape[input->rank - 1];
    return input->rank == 4 ? last : last / heads;
}

static void measure(const attn_request *request, naive_result *r)
{
    const attn_options *options = &request->options;
    const attn_tensor *query = request->inputs.query, *key = input_key(request);
    r->batch = query->rank > 2 ? query->shape[0] : 1;
    r->heads = count_heads(options->num_heads, query, 1);
    r->kv_heads = count_heads(options->kv_num_heads, key, r->heads);
    r->q_len = query->shape[query->rank - 2];
    r->kv_len = key->shape[key->rank - 2];
    r->d_k = features(query, r->heads);
    r->d_v = features(input_value(request), r->kv_heads);
    r->softcap = options->softcap;
    bool has_no_scale = options->mechanism.type == ATTN_LINEAR && !options->mechanism.is_unnormalised;
    const int terms = 1 + (options->relative_position.key != NULL) + (options->relative_position.query != NULL);
    r->scale = options->has_scale ? options->scale : has_no_scale ? 1 : 1 / sqrt((double)r->d_k * terms);
}

/* (batch, heads, len, width), cut out of an input of any rank. */
static double *split(const attn_tensor *input, size_t batch, size_t heads, size_t len, size_t width)
{
    double *out = naive_numbers(batch * heads * len * width);
    for (size_t at = 0; at < batch * heads * len * width; at++) {
        const size_t d = at % width, i = at / width % len, h = at / width / len % heads, b = at / width / len / heads;
        out[at] = input->rank == 4 ? naive_read(input, b, h, i, d) : naive_read(input, 0, b, i, h * width + d);
    }
    return out;
}

/* Without a cache, the present keys and values are those of the request. */
static void split_inputs(const attn_request *request, naive_result *r)
{
    const attn_tensor *key = input_key(request), *value = input_value(request);
    r->step[ATTN_STEP_Q] = split(request->inputs.query, r->batch, r->heads, r->q_len, r->d_k);
    r->step[ATTN_STEP_K] = split(key, r->batch, r->kv_heads, r->kv_len, r->d_k);
    r->step[ATTN_STEP_V] = split(value, r->batch, r->kv_heads, r->kv_len, r->d_v);
    r->step[ATTN_STEP_PRESENT_KEY] = split(key, r->batch, r->kv_heads, r->kv_len, r->d_k);
    r->step[ATTN_STEP_PRESENT_VALUE] = split(value, r->batch, r->kv_heads, r->kv_len, r->d_v);
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

/* concat; for a query of rank 4 heads first. */
static void make_output(const attn_request *request, naive_result *r)
{
    double *output = r->step[ATTN_STEP_OUTPUT];
    const double *concat = r->step[ATTN_STEP_CONCAT];
    const size_t d_v = r->d_v;
    for (size_t head = 0; head < r->batch * r->q_len * r->heads; head++) {
        const size_t row = head / r->heads, h = head % r->heads;
        const size_t to =
            request->inputs.query->rank == 4 ? (row / r->q_len * r->heads + h) * r->q_len + row % r->q_len : head;
        memcpy(output + to * d_v, concat + head * d_v, d_v * sizeof(double));
    }
}

/* ---- all of it ---- */

static void make_room(naive_result *r)
{
    const attn_step maps[] = {ATTN_STEP_SCORES,    ATTN_STEP_SCALED,  ATTN_STEP_MASKED,
                              ATTN_STEP_ATTENTION, ATTN_STEP_DROPPED, ATTN_STEP_MASK};
    const attn_step of_rows[] = {ATTN_STEP_LSE, ATTN_STEP_LSE_KEYS, ATTN_STEP_ENTROPY, ATTN_STEP_SINK};
    const attn_step of_values[] = {ATTN_STEP_CONTEXT, ATTN_STEP_CONCAT, ATTN_STEP_OUTPUT};
    const size_t rows = r->batch * r->heads * r->q_len;
    for (size_t m = 0; m < sizeof maps / sizeof *maps; m++)
        r->step[maps[m]] = naive_numbers(rows * r->kv_len);
    for (size_t s = 0; s < sizeof of_rows / sizeof *of_rows; s++)
        r->step[of_rows[s]] = naive_numbers(rows);
    for (size_t s = 0; s < sizeof of_values / sizeof *of_values; s++)
        r->step[of_values[s]] = naive_numbers(rows * r->d_v);
    r->step[ATTN_STEP_ATTENTION_MEAN] = naive_numbers(r->batch * r->q_len * r->kv_len);
    r->terms[ATTN_STEP_SCORES] = naive_numbers(rows * r->kv_len);
    r->terms[ATTN_STEP_CONTEXT] = naive_numbers(rows * r->d_v);
    r->peak = naive_numbers(rows);
}

naive_result naive_attention(const attn_request *request, const uint8_t *keep)
{
    naive_result r = {0};
    measure(request, &r);
    make_room(&r);
    split_inputs(request, &r);
    for (size_t b = 0; b < r.batch; b++)
        for (size_t h = 0; h < r.heads; h++)
            naive_head(request, &r, keep, b, h);
    mean_over_heads(&r);
    concatenate(request, &r);
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
