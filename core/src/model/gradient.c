/* gradient.c: the backward pass of norms and of the prediction head (model.h); embed.c has that of embeddings. */
#include <string.h>

#include "attn/model.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"
#include "layer/layer.h"
#include "model/dense.h"

/* ---- norms ---- */

struct norm_run {
    struct attn_row_norm norm;
    const struct attn_kernel_type *kernel;
    const attn_tensor *input, *behind, *before;
    double *sums; /* of the gain and the shift, of each thread: nobody reads them */
};

static void norm_task(void *argument, size_t row, size_t worker)
{
    const struct norm_run *run = argument;
    const size_t d = run->norm.d, at = row * d * attn_dtype_bytes(run->input->dtype);
    double *sums = run->sums + 2 * d * worker;
    const struct attn_norm_gradient_row one = {.x = (const char *)run->input->data + at,
                                               .grad_y = (const char *)run->behind->data + at,
                                               .grad_x = (char *)run->before->data + at,
                                               .gain = sums,
                                               .shift = sums + d};
    memset(sums, 0, 2 * d * sizeof *sums);
    run->kernel->norm_back(&run->norm, &one);
}

attn_status attn_token_norm_back(const attn_token_norm *norm, const attn_tensor *input, const attn_tensor *behind,
                                 const attn_runtime *runtime, attn_arena *arena, attn_tensor *before, attn_error *err)
{
    const size_t d = input->shape[1];
    *before = *behind;
    if (norm->type == ATTN_NORM_NONE)
        return ATTN_OK;
    before->data = attn_arena_take(arena, attn_tensor_count(input), attn_dtype_bytes(input->dtype));
    struct norm_run run = {attn_row_norm_of(norm->type, &norm->weights, norm->eps, d),
                           attn_kernel_of(runtime->kernel, input->dtype),
                           input,
                           behind,
                           before,
                           attn_arena_take(arena, runtime->threads * 2 * d, sizeof(double))};
    if (before->data == NULL || run.sums == NULL)
        return attn_fail_no_memory(err);
    attn_spread(runtime, input->shape[0], norm_task, &run);
    return attn_is_cancelled(runtime) ? attn_fail_stopped(err) : ATTN_OK;
}

attn_status attn_norm_tokens_back(const attn_token_norm *norm, const attn_tensor *input, const attn_tensor *behind,
                                  const attn_runtime *runtime, attn_arena *arena, attn_tensor *before, attn_error *err)
{
    ATTN_FLOAT_MODE;
    return attn_token_norm_back(norm, input, behind, runtime, arena, before, err);
}

/* ---- the head ---- */

/* The gradient by x W_o: through the cap, and times the scale. */
static void go_through_cap(const attn_prediction_head *head, const attn_tensor *scores, const attn_tensor *behind,
                           const attn_tensor *before)
{
    const double scale = head->scale != 0 ? head->scale : 1, cap = head->softcap;
    for (size_t at = 0; at < attn_tensor_count(scores); at++) {
        const double z = cap > 0 ? attn_number_get(scores->data, head->compute, at) / cap : 0;
        attn_number_put(before->data, head->compute, at,
                        scale * (1 - z * z) * attn_number_get(behind->data, head->compute, at));
    }
}

static void go_through_activation(const attn_prediction_head *head, const struct attn_head_inner *inner,
                                  const attn_tensor *grad, const attn_runtime *runtime)
{
    const size_t count = attn_tensor_count(grad);
    const struct attn_activation_gradient gradient = {
        .activation = head->activation, .n = count, .up = inner->dense.data, .grad_hidden = grad->data};
    if (!head->dense_is_tanh && head->activation != ATTN_ACTIVATION_NONE)
        attn_kernel_of(runtime->kernel, head->compute)->activate_back(&gradient);
    for (size_t at = 0; at < count && head->dense_is_tanh; at++) {
        const double y = attn_number_get(inner->active.data, head->compute, at);
        attn_number_put(grad->data, head->compute, at, (1 - y * y) * attn_number_get(grad->data, head->compute, at));
    }
}

attn_status attn_predict_back(const attn_prediction_head *head, const attn_tensor *input, const attn_tensor *scores,
                              const attn_tensor *behind, const attn_runtime *runtime, attn_arena *arena,
                              attn_tensor *before, attn_error *err)
{
    ATTN_FLOAT_MODE;
    struct attn_head_inner inner;
    attn_tensor product = *behind, grad;
    attn_status status = attn_head_inner_run(head, input, runtime, arena, &inner, err);
    product.data = attn_arena_take(arena, attn_tensor_count(behind), attn_dtype_bytes(head->compute));
    if (status != ATTN_OK)
        return status;
    if (product.data == NULL)
        return attn_fail_no_memory(err);
    go_through_cap(head, scores, behind, &product);
    status = attn_weight_directions(head->output.weight, head->output_layout, 1, &product, runtime, arena, &grad, err);
    *before = grad;
    if (status == ATTN_OK)
        status = attn_token_norm_back(&head->norm, &inner.active, &grad, runtime, arena, before, err);
    if (status != ATTN_OK || head->dense.weight == NULL)
        return status;
    grad = *before;
    go_through_activation(head, &inner, &grad, runtime);
    return attn_weight_directions(head->dense.weight, head->dense_layout, 1, &grad, runtime, arena, before, err);
}
