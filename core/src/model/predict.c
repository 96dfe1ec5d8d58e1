/* predict.c: from a token vector to a score for each word, or each class (model.h). */
#include <math.h>

#include "attn/model.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"
#include "layer/layer.h"
#include "model/dense.h"

enum { TASK_NUMBERS = 1 << 14 };

size_t attn_prediction_head_bytes(const attn_prediction_head *head, size_t rows, size_t threads)
{
    const attn_dtype compute = head->compute;
    const size_t element = attn_dtype_bytes(compute);
    const size_t dense = attn_dense_width(&head->dense, head->dense_layout);
    const size_t words = attn_dense_width(&head->output, head->output_layout);
    const size_t inner =
        dense > 0 ? dense : head->output.weight->shape[head->output_layout == ATTN_LAYOUT_OUT_IN ? 1 : 0];
    size_t bytes = attn_round_up(rows * words * element, ATTN_ALIGNMENT) +
                   attn_dense_bytes(&head->output, head->output_layout, compute, threads);
    if (dense > 0)
        bytes += attn_round_up(rows * dense * element, ATTN_ALIGNMENT) +
                 attn_dense_bytes(&head->dense, head->dense_layout, compute, threads);
    if (head->norm.type != ATTN_NORM_NONE)
        bytes += attn_round_up(rows * inner * element, ATTN_ALIGNMENT);
    return bytes;
}

/* ---- scale, bias and cap ---- */

struct finish_run {
    const attn_prediction_head *head;
    const attn_tensor *scores;
};

static void finish_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct finish_run *run = argument;
    const attn_prediction_head *head = run->head;
    const attn_tensor *bias = head->output.bias;
    const size_t words = run->scores->shape[1],
                 end = attn_min(attn_tensor_count(run->scores), (index + 1) * TASK_NUMBERS);
    const double scale = head->scale != 0 ? head->scale : 1;
    for (size_t at = index * TASK_NUMBERS; at < end; at++) {
        double z = scale * attn_number_get(run->scores->data, head->compute, at);
        z += bias != NULL ? attn_number_get(bias->data, head->compute, at % words) : 0;
        attn_number_put(run->scores->data, head->compute, at,
                        head->softcap > 0 ? head->softcap * tanh(z / head->softcap) : z);
    }
}

static bool needs_finish(const attn_prediction_head *head)
{
    return (head->scale != 0 && head->scale != 1) || head->softcap > 0;
}

/* The product adds the bias, unless something comes before that. */
static attn_status score(const attn_prediction_head *head, const attn_tensor *input, const attn_runtime *runtime,
                         attn_arena *arena, attn_tensor *scores, attn_error *err)
{
    const attn_affine output = {head->output.weight, needs_finish(head) ? NULL : head->output.bias};
    attn_status status = attn_dense(&output, head->output_layout, input, runtime, arena, scores, err);
    if (status != ATTN_OK || !needs_finish(head))
        return status;
    struct finish_run run = {head, scores};
    attn_spread(runtime, attn_ceil_div(attn_tensor_count(scores), TASK_NUMBERS), finish_task, &run);
    return attn_is_cancelled(runtime) ? attn_fail_stopped(err) : ATTN_OK;
}

/* ---- dense ---- */

static void tanh_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const attn_tensor *inner = argument;
    const size_t end = attn_min(attn_tensor_count(inner), (index + 1) * TASK_NUMBERS);
    for (size_t at = index * TASK_NUMBERS; at < end; at++)
        attn_number_put(inner->data, inner->dtype, at, tanh(attn_number_get(inner->data, inner->dtype, at)));
}

void attn_tanh_numbers(const attn_tensor *numbers, const attn_runtime *runtime)
{
    attn_tensor own = *numbers;
    attn_spread(runtime, attn_ceil_div(attn_tensor_count(numbers), TASK_NUMBERS), tanh_task, &own);
}

static void activate(const attn_prediction_head *head, attn_tensor *inner, const attn_runtime *runtime)
{
    if (head->dense_is_tanh)
        attn_tanh_numbers(inner, runtime);
    else if (head->activation != ATTN_ACTIVATION_NONE)
        attn_numbers_activate(head->activation, inner->dtype, attn_tensor_count(inner), inner->data, NULL, inner->data,
                              runtime);
}

attn_status attn_predict(const attn_prediction_head *head, const attn_tensor *input, const attn_runtime *runtime,
                         attn_arena *arena, attn_tensor *scores, attn_error *err)
{
    ATTN_FLOAT_MODE;
    attn_tensor inner = *input, normed;
    attn_status status = ATTN_OK;
    if (head->dense.weight != NULL)
        status = attn_dense(&head->dense, head->dense_layout, input, runtime, arena, &inner, err);
    if (status == ATTN_OK && head->dense.weight != NULL)
        activate(head, &inner, runtime);
    if (status == ATTN_OK)
        status = attn_token_norm_run(&head->norm, &inner, runtime, arena, &normed, err);
    return status == ATTN_OK ? score(head, &normed, runtime, arena, scores, err) : status;
}
