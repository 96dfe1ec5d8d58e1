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

/* The matrices of a network, and what an expert does between them (options of no expert: all 0). */
struct network {
    attn_expert weights;
    attn_layout layout;
    attn_activation activation;
    attn_expert_options options;
};

static double at_most(double x, double limit)
{
    return limit != 0 && x > limit ? limit : x;
}

/* |act(x)| is at most |x|, and its slope at most 1.13: errors of x grow no more. */
static void run_network(const struct network *n, size_t d_in, size_t d_ff, size_t d_out, const double *x,
                        const double *x_terms, double *network, double *terms)
{
    const attn_expert *w = &n->weights;
    const size_t columns = n->options.pairs ? 2 * d_ff : d_ff;
    double *up = naive_numbers(6 * d_ff), *up_terms = up + 2 * d_ff, *gate = up + 4 * d_ff, *gate_terms = up + 5 * d_ff;
    const bool is_gated = n->options.pairs || w->gate.weight != NULL;
    multiply(&w->up, n->layout, d_in, columns, x, x_terms, up, up_terms);
    if (w->gate.weight != NULL)
        multiply(&w->gate, n->layout, d_in, d_ff, x, x_terms, gate, gate_terms);
    for (size_t f = 0; f < d_ff; f++) {
        if (n->options.pairs) {
            gate[f] = up[2 * f];
            gate_terms[f] = up_terms[2 * f];
            up[f] = up[2 * f + 1];
            up_terms[f] = up_terms[2 * f + 1];
        }
        up[f] = -at_most(-at_most(up[f], n->options.limit), n->options.limit) + n->options.offset;
        up_terms[f] += fabs(n->options.offset);
        if (is_gated) {
            up[f] = (double)(act(n->activation, at_most(gate[f], n->options.limit)) * up[f]);
            up_terms[f] *= 1.13 * gate_terms[f];
        } else {
            up[f] = (double)act(n->activation, up[f]);
            up_terms[f] *= 1.13;
        }
    }
    multiply(&w->down, n->layout, d_ff, d_out, up, up_terms, network, terms);
    free(up);
}

/* The chosen experts, by searching the largest logit again and again. */
static void choose(const double *logits, size_t count, size_t k, size_t *chosen)
{
    for (size_t r = 0; r < k; r++) {
        chosen[r] = count;
        for (size_t e = 0; e < count; e++) {
            bool is_taken = false;
            for (size_t before = 0; before < r; before++)
                is_taken = is_taken || chosen[before] == e;
            if (!is_taken && (chosen[r] == count || logits[e] > logits[chosen[r]]))
                chosen[r] = e;
        }
    }
}

/* Adds the experts of a token to network, and the errors of their results and of their weights to terms. */
static void add_experts(const attn_request *request, const attn_dims *dims, size_t d_in, const double *x,
                        const double *x_terms, double *network, double *terms)
{
    const attn_experts *experts = &request->weights.feed_forward.experts;
    const attn_expert_options *own = &request->options.feed_forward.experts;
    const size_t count = experts->count, d_out = dims->d_out;
    double *logits = naive_numbers(2 * count + 2 * d_out + 2), *logit_terms = logits + count, *one = logits + 2 * count,
           *one_terms = one + d_out, *gate = one + 2 * d_out;
    size_t *chosen = calloc(own->per_token, sizeof *chosen);
    if (chosen == NULL)
        abort();
    if (experts->shared_gate.weight != NULL) {
        multiply(&experts->shared_gate, request->weights.layout, d_in, 1, x, x_terms, gate, gate + 1);
        for (size_t d = 0; d < d_out; d++) {
            network[d] = (double)(network[d] / (1 + expl(-(long double)gate[0])));
            terms[d] *= 1 + gate[1];
        }
    }
    multiply(&experts->router, request->weights.layout, d_in, count, x, x_terms, logits, logit_terms);
    choose(logits, count, own->per_token, chosen);
    long double sum = 0;
    for (size_t n = 0; n < (own->normalised ? own->per_token : count); n++)
        sum += expl((long double)logits[own->normalised ? chosen[n] : n]);
    double most = 0;
    for (size_t e = 0; e < count; e++)
        most = fmax(most, logit_terms[e]);
    for (size_t r = 0; r < own->per_token; r++) {
        const struct network expert = {experts->each[chosen[r]], experts->layout,
                                       request->options.feed_forward.activation, *own};
        const double p = (double)(expl((long double)logits[chosen[r]]) / sum);
        run_network(&expert, d_in, dims->d_expert, d_out, x, x_terms, one, one_terms);
        for (size_t d = 0; d < d_out; d++) {
            network[d] += p * one[d];
            terms[d] += p * one_terms[d] * (1 + 2 * most);
        }
    }
    free(chosen);
    free(logits);
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
    const struct network shared = {{w->up, w->gate, w->down}, request->weights.layout, own->activation, {0}};
    double *x = naive_numbers(2 * d_in), *x_terms = x + d_in;
    read_input(request, d_in, b, i, y, x);
    for (size_t f = 0; f < d_in; f++)
        x_terms[f] = fabs(x[f]);
    if (own->norm != ATTN_NORM_NONE && own->position == ATTN_NORM_PRE)
        naive_norm(own->norm, own->norm_eps, &w->norm, d_in, x, x, x_terms);
    memset(network, 0, dims->d_out * sizeof *network);
    memset(terms, 0, dims->d_out * sizeof *terms);
    if (dims->d_ff > 0)
        run_network(&shared, d_in, dims->d_ff, dims->d_out, x, x_terms, network, terms);
    if (dims->experts > 0)
        add_experts(request, dims, d_in, x, x_terms, network, terms);
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
