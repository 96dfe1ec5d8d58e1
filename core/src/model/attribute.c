/* attribute.c: the directions in which token vectors add to the score of a word (model.h). */
#include <math.h>
#include <string.h>

#include "attn/model.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"
#include "layer/layer.h"
#include "model/dense.h"

/* ---- norms ---- */

static double norm_factor(const attn_token_norm *norm, const attn_tensor *input, size_t row)
{
    const size_t d = input->shape[1], first = row * d;
    double sum = 0, squares = 0;
    for (size_t f = 0; f < d && norm->type == ATTN_NORM_LAYER; f++)
        sum += attn_number_get(input->data, input->dtype, first + f);
    for (size_t f = 0; f < d; f++) {
        const double x = attn_number_get(input->data, input->dtype, first + f) - sum / (double)d;
        squares += x * x;
    }
    return 1 / sqrt(squares / (double)d + norm->eps);
}

void attn_norm_factors(const attn_token_norm *norm, const attn_tensor *input, double *factors)
{
    for (size_t row = 0; row < input->shape[0]; row++)
        factors[row] = norm->type == ATTN_NORM_NONE ? 1 : norm_factor(norm, input, row);
}

struct norm_run {
    const attn_token_norm *norm;
    const double *factors;
    const attn_tensor *directions;
    size_t each; /* directions of a factor */
};

static void norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct norm_run *run = argument;
    const attn_tensor *u = run->directions, *gain = run->norm->weights.weight;
    const size_t d = u->shape[1], first = index * d;
    const double factor = run->factors[index / run->each];
    double mean = 0;
    for (size_t f = 0; f < d && gain != NULL; f++)
        attn_number_put(u->data, u->dtype, first + f,
                        attn_number_get(u->data, u->dtype, first + f) * attn_number_get(gain->data, gain->dtype, f));
    for (size_t f = 0; f < d && run->norm->type == ATTN_NORM_LAYER; f++)
        mean += attn_number_get(u->data, u->dtype, first + f) / (double)d;
    for (size_t f = 0; f < d; f++)
        attn_number_put(u->data, u->dtype, first + f, factor * (attn_number_get(u->data, u->dtype, first + f) - mean));
}

void attn_norm_directions(const attn_token_norm *norm, size_t rows, const double *factors,
                          const attn_tensor *directions, const attn_runtime *runtime)
{
    struct norm_run run = {norm, factors, directions, directions->shape[0] / rows};
    if (norm->type != ATTN_NORM_NONE)
        attn_spread(runtime, directions->shape[0], norm_task, &run);
}

/* ---- a weight ---- */

attn_status attn_weight_directions(const attn_tensor *weight, attn_layout layout, size_t rows,
                                   const attn_tensor *directions, const attn_runtime *runtime, attn_arena *arena,
                                   attn_tensor *before, attn_error *err)
{
    ATTN_FLOAT_MODE;
    const bool in_out = layout == ATTN_LAYOUT_IN_OUT;
    const size_t width = directions->shape[1], inner = attn_tensor_count(weight) / width;
    const attn_tensor turned = attn_tensor_view(weight->data, weight->dtype, 2,
                                                (const size_t[]){in_out ? inner : width, in_out ? width : inner});
    const attn_affine affine = {&turned, NULL};
    const attn_tensor by_rows = attn_tensor_view(directions->data, directions->dtype, 3,
                                                 (const size_t[]){rows, directions->shape[0] / rows, width});
    return attn_dense(&affine, in_out ? ATTN_LAYOUT_OUT_IN : ATTN_LAYOUT_IN_OUT, &by_rows, runtime, arena, before, err);
}

/* ---- the head ---- */

struct head_run {
    const attn_prediction_head *head;
    const attn_tensor *normed, *directions;
    const int64_t *words;
};

/* The score before the cap; the cap then multiplies it by a number. */
static double cap_factor(const struct head_run *run, size_t index, double product)
{
    const attn_prediction_head *head = run->head;
    const attn_tensor *bias = head->output.bias;
    double z = (head->scale != 0 ? head->scale : 1) * product;
    z += bias != NULL ? attn_number_get(bias->data, bias->dtype, (size_t)run->words[index]) : 0;
    return head->softcap > 0 && z != 0 ? head->softcap * tanh(z / head->softcap) / z : 1;
}

/* The column of W_o of one word, times what multiplies its score. */
static void word_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct head_run *run = argument;
    const attn_prediction_head *head = run->head;
    const attn_tensor *weight = head->output.weight, *u = run->directions, *x = run->normed;
    const size_t d = u->shape[1], row = index / (u->shape[0] / x->shape[0]), word = (size_t)run->words[index];
    const bool out_in = head->output_layout == ATTN_LAYOUT_OUT_IN;
    const size_t step = out_in ? 1 : attn_dense_width(&head->output, head->output_layout);
    const size_t first = out_in ? word * d : word;
    double product = 0;
    for (size_t f = 0; f < d && head->softcap > 0; f++)
        product += attn_number_get(weight->data, weight->dtype, first + f * step) *
                   attn_number_get(x->data, x->dtype, row * d + f);
    const double factor = (head->scale != 0 ? head->scale : 1) * cap_factor(run, index, product);
    for (size_t f = 0; f < d; f++)
        attn_number_put(u->data, u->dtype, index * d + f,
                        factor * attn_number_get(weight->data, weight->dtype, first + f * step));
}

/* Directions before the activation: those behind it times act(x) / x. At 0 nothing is added, whatever the factor. */
struct activation_run {
    const attn_tensor *inner, *active, *directions;
};

static void activation_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct activation_run *run = argument;
    const attn_tensor *u = run->directions;
    const size_t d = u->shape[1], row = index / (u->shape[0] / run->inner->shape[0]);
    for (size_t f = 0; f < d; f++) {
        const double x = attn_number_get(run->inner->data, u->dtype, row * d + f);
        const double y = attn_number_get(run->active->data, u->dtype, row * d + f);
        attn_number_put(u->data, u->dtype, index * d + f,
                        x == 0 ? 0 : attn_number_get(u->data, u->dtype, index * d + f) * (y / x));
    }
}

attn_status attn_head_inner_run(const attn_prediction_head *head, const attn_tensor *input, const attn_runtime *runtime,
                                attn_arena *arena, struct attn_head_inner *inner, attn_error *err)
{
    attn_status status = ATTN_OK;
    const bool is_active = head->activation != ATTN_ACTIVATION_NONE || head->dense_is_tanh;
    const attn_tensor each =
        attn_tensor_view(input->data, input->dtype, 3, (const size_t[]){input->shape[0], 1, input->shape[1]});
    inner->dense = *input;
    if (head->dense.weight != NULL)
        status = attn_dense(&head->dense, head->dense_layout, &each, runtime, arena, &inner->dense, err);
    if (status != ATTN_OK)
        return status;
    inner->active = inner->dense;
    const size_t count = attn_tensor_count(&inner->dense), element = attn_dtype_bytes(inner->dense.dtype);
    if (is_active)
        inner->active.data = attn_arena_take(arena, count, element);
    if (inner->active.data == NULL)
        return attn_fail_no_memory(err);
    if (head->dense_is_tanh) {
        memcpy(inner->active.data, inner->dense.data, count * element);
        attn_tanh_numbers(&inner->active, runtime);
    } else if (is_active)
        attn_numbers_activate(head->activation, inner->dense.dtype, count, inner->dense.data, NULL, inner->active.data,
                              runtime);
    return attn_token_norm_run(&head->norm, &inner->active, runtime, arena, &inner->normed, err);
}

attn_status attn_head_directions(const attn_prediction_head *head, const attn_tensor *input, size_t n,
                                 const int64_t *words, const attn_runtime *runtime, attn_arena *arena,
                                 attn_tensor *directions, attn_error *err)
{
    ATTN_FLOAT_MODE;
    struct attn_head_inner inner;
    const attn_status status = attn_head_inner_run(head, input, runtime, arena, &inner, err);
    double *factors = attn_arena_take(arena, input->shape[0], sizeof *factors);
    if (status != ATTN_OK)
        return status;
    const size_t shape[] = {input->shape[0] * n, inner.normed.shape[1]};
    *directions = attn_tensor_view(attn_arena_take(arena, shape[0] * shape[1], attn_dtype_bytes(head->compute)),
                                   head->compute, 2, shape);
    if (directions->data == NULL || factors == NULL)
        return attn_fail_no_memory(err);
    attn_norm_factors(&head->norm, &inner.active, factors);
    struct head_run run = {head, &inner.normed, directions, words};
    attn_spread(runtime, shape[0], word_task, &run);
    attn_norm_directions(&head->norm, input->shape[0], factors, directions, runtime);
    struct activation_run active = {&inner.dense, &inner.active, directions};
    if (head->activation != ATTN_ACTIVATION_NONE)
        attn_spread(runtime, shape[0], activation_task, &active);
    if (attn_is_cancelled(runtime))
        return attn_fail_stopped(err);
    const attn_tensor behind = *directions;
    return head->dense.weight == NULL ? ATTN_OK
                                      : attn_weight_directions(head->dense.weight, head->dense_layout, input->shape[0],
                                                               &behind, runtime, arena, directions, err);
}

/* ---- parts ---- */

struct parts_run {
    const attn_tensor *parts, *directions;
    size_t groups;
    double *added;
};

static void part_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct parts_run *run = argument;
    const attn_tensor *x = run->parts, *u = run->directions;
    const size_t row = index / (u->shape[0] / x->shape[0]), d = x->shape[1], width = d / run->groups;
    for (size_t group = 0; group < run->groups; group++) {
        double sum = 0;
        for (size_t f = group * width; f < (group + 1) * width; f++)
            sum += attn_number_get(x->data, x->dtype, row * d + f) * attn_number_get(u->data, u->dtype, index * d + f);
        run->added[index * run->groups + group] = sum;
    }
}

attn_status attn_add_parts(const attn_tensor *parts, size_t groups, const attn_tensor *directions, double *added,
                           const attn_runtime *runtime, attn_error *err)
{
    ATTN_FLOAT_MODE;
    struct parts_run run = {parts, directions, groups, added};
    attn_spread(runtime, directions->shape[0], part_task, &run);
    return attn_is_cancelled(runtime) ? attn_fail_stopped(err) : ATTN_OK;
}
