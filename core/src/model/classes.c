/* classes.c: probabilities of classes, the best answer to a question, and one vector for many tokens (model.h). */
#include <math.h>

#include "attn/model.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"

/* ---- probabilities ---- */

struct classes_run {
    attn_class_rule rule;
    attn_dtype compute;
    size_t count;
    const void *logits;
    void *probabilities;
};

/* Subtracting the largest logit leaves the result unchanged and keeps exp in range. */
static void softmax_row(const struct classes_run *run, size_t from)
{
    double largest = -(double)INFINITY, sum = 0;
    for (size_t i = from; i < from + run->count; i++) {
        const double logit = attn_number_get(run->logits, run->compute, i);
        largest = logit > largest ? logit : largest; /* gcc 12 for AArch64 fails to compile fmax here */
    }
    for (size_t i = from; i < from + run->count; i++)
        sum += exp(attn_number_get(run->logits, run->compute, i) - largest);
    for (size_t i = from; i < from + run->count; i++)
        attn_number_put(run->probabilities, run->compute, i,
                        exp(attn_number_get(run->logits, run->compute, i) - largest) / sum);
}

static void classes_task(void *argument, size_t row, size_t worker)
{
    (void)worker;
    const struct classes_run *run = argument;
    const size_t from = row * run->count;
    if (run->rule == ATTN_CLASSES_SOFTMAX) {
        softmax_row(run, from);
        return;
    }
    for (size_t i = from; i < from + run->count; i++)
        attn_number_put(run->probabilities, run->compute, i,
                        1 / (1 + exp(-attn_number_get(run->logits, run->compute, i))));
}

void attn_class_probabilities(attn_class_rule rule, attn_dtype compute, size_t rows, size_t count, const void *logits,
                              void *probabilities, const attn_runtime *runtime)
{
    ATTN_FLOAT_MODE;
    struct classes_run run = {rule, compute, count, logits, probabilities};
    attn_spread(runtime, rows, classes_task, &run);
}

/* ---- the best answer ---- */

/* The softmax of scores[chosen] over the tokens that may be chosen. */
static double share(size_t count, const double *scores, const bool *may, size_t chosen)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (may == NULL || may[i])
            sum += exp(scores[i] - scores[chosen]);
    return 1 / sum;
}

bool attn_best_span(size_t count, const double *starts, const double *ends, const bool *may, attn_answer *span)
{
    ATTN_FLOAT_MODE;
    double best = -(double)INFINITY;
    size_t start = count; /* of the largest score so far */
    for (size_t i = 0; i < count; i++) {
        if (may != NULL && !may[i])
            continue;
        if (isfinite(starts[i]) && (start == count || starts[i] > starts[start]))
            start = i;
        if (start < count && starts[start] + ends[i] > best && isfinite(ends[i])) {
            best = starts[start] + ends[i];
            *span = (attn_answer){.first = start, .last = i};
        }
    }
    const bool is_found = isfinite(best);
    if (is_found)
        span->probability = share(count, starts, may, span->first) * share(count, ends, may, span->last);
    return is_found;
}

/* ---- one vector ---- */

static double pooled_number(attn_pooling pool, const attn_tensor *input, size_t feature)
{
    const size_t n = input->shape[0], d = input->shape[1];
    double sum = 0, weights = 0, largest = -(double)INFINITY;
    if (pool == ATTN_POOL_FIRST || pool == ATTN_POOL_LAST)
        return attn_number_get(input->data, input->dtype, (pool == ATTN_POOL_LAST ? n - 1 : 0) * d + feature);
    for (size_t i = 0; i < n; i++) {
        const double number = attn_number_get(input->data, input->dtype, i * d + feature);
        const double weight = pool == ATTN_POOL_WEIGHTED ? (double)(i + 1) : 1;
        sum += weight * number;
        weights += weight;
        largest = fmax(largest, number);
    }
    if (pool == ATTN_POOL_MAX)
        return largest;
    return sum / (pool == ATTN_POOL_MEAN_SQRT ? sqrt((double)n) : weights);
}

void attn_pool_tokens(attn_pooling pool, const attn_tensor *input, void *pooled)
{
    ATTN_FLOAT_MODE;
    for (size_t feature = 0; feature < input->shape[1]; feature++)
        attn_number_put(pooled, input->dtype, feature, pooled_number(pool, input, feature));
}

void attn_normalize_vector(attn_dtype compute, size_t d, void *vector)
{
    ATTN_FLOAT_MODE;
    double squares = 0;
    for (size_t i = 0; i < d; i++)
        squares += attn_number_get(vector, compute, i) * attn_number_get(vector, compute, i);
    const double length = fmax(sqrt(squares), 1e-12);
    for (size_t i = 0; i < d; i++)
        attn_number_put(vector, compute, i, attn_number_get(vector, compute, i) / length);
}
