/* naive_block.c: norms, and the feed-forward network of a block for one token: see attn_feed_forward_options. */
#include "naive_attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Going from double to more is what this file does on purpose. */
#pragma GCC diagnostic ignored "-Wdouble-promotion"

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
    for (size_t f = 0; f < count; f++) {
        double gain = norm->weight != NULL ? naive_read(norm->weight, 0, 0, 0, f) : 1;
        double shift = norm->bias != NULL ? naive_read(norm->bias, 0, 0, 0, f) : 0;
        if (terms != NULL)
            terms[f] = (fabs(from[f]) + size) / deviation * fabs(gain) + fabs(shift);
        to[f] = (double)((from[f] - mean) / deviation * gain + shift);
    }
}

static long double act(attn_activation activation, long double x)
{
    switch (activation) {
    case ATTN_ACTIVATION_NONE:
        break;
    case ATTN_ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case ATTN_ACTIVATION_GELU:
        return x * (1 + erfl(x / sqrtl(2))) / 2;
    case ATTN_ACTIVATION_GELU_TANH:
        return x * (1 + tanhl(sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x))) / 2;
    case ATTN_ACTIVATION_QUICK_GELU:
        return x / (1 + expl(-1.702L * x));
    case ATTN_ACTIVATION_SILU:
        return x / (1 + expl(-x));
    }
    abort();
}

/* y (out) = x W + b; terms (out) = the sum of |x W| and |b|, with the terms of x in place of |x|. */
static void multiply(const attn_affine *affine, attn_layout layout, size_t in, size_t out, const double *x,
                     const double *x_terms, double *y, double *terms)
{
    for (size_t d = 0; d < out; d++) {
        long double sum = affine->bias == NULL ? 0 : naive_read(affine->bias, 0, 0, 0, d);
        terms[d] = (double)fabsl(sum);
        for (size_t f = 0; f < in; f++) {
            const double w = layout == ATTN_LAYOUT_IN_OUT ? naive_read(affine->weight, 0, 0, f, d)
                                                          : naive_read(affine->weight, 0, 0, d, f);
            sum += x[f] * w;
            terms[d] += x_terms[f] * fabs(w);
        }
        y[d] = (double)sum;
    }
}

/* |act(x)| is at most |x|, and its slope at most 1.13: errors of x grow no more. */
static void run_network(const attn_request *request, size_t d_in, size_t d_ff, size_t d_out, const double *x,
                        const double *x_terms, double *network, double *terms)
{
    const attn_feed_forward_weights *w = &request->weights.feed_forward;
    const attn_layout layout = request->weights.layout;
    double *up = naive_numbers(4 * d_ff), *up_terms = up + d_ff, *gate = up + 2 * d_ff, *gate_terms = up + 3 * d_ff;
    multiply(&w->up, layout, d_in, d_ff, x, x_terms, up, up_terms);
    if (w->gate.weight != NULL)
        multiply(&w->gate, layout, d_in, d_ff, x, x_terms, gate, gate_terms);
    for (size_t f = 0; f < d_ff; f++) {
        const attn_activation activation = request->options.feed_forward.activation;
        if (w->gate.weight != NULL) {
            up[f] = (double)(act(activation, gate[f]) * up[f]);
            up_terms[f] *= 1.13 * gate_terms[f];
        } else {
            up[f] = (double)act(activation, up[f]);
            up_terms[f] *= 1.13;
        }
    }
    multiply(&w->down, layout, d_ff, d_out, up, up_terms, network, terms);
    free(up);
}

/* to (d_out) = norm(from) * scale, as options have them for branches; gains are those of the branch. */
static void scale_branch(const attn_request *request, const attn_affine *norm, size_t d_out, const double *from,
                         double *to)
{
    const attn_options *options = &request->options;
    memmove(to, from, d_out * sizeof *to);
    if (options->branch_norm != ATTN_NORM_NONE)
        naive_norm(options->branch_norm, options->branch_norm_eps, norm, d_out, to, to, NULL);
    for (size_t d = 0; d < d_out; d++)
        to[d] *= options->residual_scale == 0 ? 1 : options->residual_scale;
}

/* What the network reads: y, or the token of the query after the norm that the projections have. */
static void read_input(const attn_request *request, size_t d_in, size_t b, size_t i, const double *y, double *x)
{
    const attn_options *options = &request->options;
    for (size_t f = 0; f < d_in; f++)
        x[f] = options->feed_forward.parallel ? naive_read(request->inputs.query, 0, b, i, f) : y[f];
    if (options->feed_forward.parallel && options->feed_forward.norm == ATTN_NORM_NONE &&
        options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_PRE)
        naive_norm(options->norm, options->norm_eps, &request->weights.norm, d_in, x, x, NULL);
}

void naive_feed_forward(const attn_request *request, const attn_dims *dims, size_t b, size_t i, const double *y,
                        double *network, double *output, double *terms)
{
    const attn_feed_forward_options *own = &request->options.feed_forward;
    const attn_feed_forward_weights *w = &request->weights.feed_forward;
    const size_t d_in = own->parallel ? dims->d_query : dims->d_attended;
    const size_t d_ff = w->up.weight->shape[request->weights.layout == ATTN_LAYOUT_IN_OUT ? 1 : 0];
    double *x = naive_numbers(2 * d_in), *x_terms = x + d_in;
    read_input(request, d_in, b, i, y, x);
    for (size_t f = 0; f < d_in; f++)
        x_terms[f] = fabs(x[f]);
    if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_PRE)
        naive_norm(own->norm, own->norm_eps, &w->norm, d_in, x, x, x_terms);
    run_network(request, d_in, d_ff, dims->d_out, x, x_terms, network, terms);
    double *sum = naive_numbers(dims->d_out);
    scale_branch(request, &w->branch_norm, dims->d_out, network, sum);
    for (size_t d = 0; d < dims->d_out && own->residual; d++)
        sum[d] += y[d];
    if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_POST)
        naive_norm(own->norm, own->norm_eps, &w->norm, dims->d_out, sum, sum, NULL);
    memcpy(output, sum, dims->d_out * sizeof *sum);
    free(sum);
    free(x);
}
