/* head_scale.c: a factor for each head. */
#include "layer/layer.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"

struct head_scale {
    const attn_plan *plan;
    const struct attn_kernel_type *kernel;
    const attn_tensor *factors;
    const struct attn_operand *context, *grad;
    void *to, *grad_factors;
};

static double factor_of(const struct head_scale *run, size_t h)
{
    return attn_number_at(run->factors->data, run->plan->compute, (ptrdiff_t)h * run->factors->stride[0]);
}

/* All queries of one head. */
static void scale_head(const struct head_scale *run, const struct attn_operand *from, size_t b, size_t h)
{
    const attn_dims *d = &run->plan->dims;
    const double factor = factor_of(run, h);
    for (size_t i = 0; i < d->q_len; i++) {
        const size_t at = attn_operand_at(from, b, h, i) * attn_dtype_bytes(run->plan->compute);
        char *to = (char *)run->to + at;
        const struct attn_branch_sum sum = {.x = (const char *)from->data + at, .scale = factor, .y = to};
        if (factor == 0)
            memset(to, 0, d->d_v * attn_dtype_bytes(run->plan->compute));
        else
            run->kernel->add_branch(&sum, d->d_v);
    }
}

static void scale_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct head_scale *run = argument;
    scale_head(run, run->context, index / run->plan->dims.heads, index % run->plan->dims.heads);
}

void attn_head_scale_run(const attn_plan *plan, const struct attn_operand *context, void *data,
                         const attn_runtime *runtime)
{
    struct head_scale run = {.plan = plan,
                             .kernel = attn_kernel_of(runtime->kernel, plan->compute),
                             .factors = plan->request.options.head_scale,
                             .context = context,
                             .to = data};
    attn_spread(runtime, plan->dims.batch * plan->dims.heads, scale_task, &run);
}

/* ---- backward ---- */

static double sum_of_query(const struct head_scale *run, size_t b, size_t h, size_t i)
{
    const attn_dtype compute = run->plan->compute;
    const size_t context = attn_operand_at(run->context, b, h, i), grad = attn_operand_at(run->grad, b, h, i);
    double sum = 0;
    for (size_t f = 0; f < run->plan->dims.d_v; f++) {
        const double dy = attn_number_get(run->grad->data, compute, grad + f);
        sum += dy == 0 ? 0 : dy * attn_number_get(run->context->data, compute, context + f);
    }
    return sum;
}

/* One head of all batch items, so that the order of its sum is fixed. The sum comes before grad is overwritten. */
static void back_task(void *argument, size_t h, size_t worker)
{
    (void)worker;
    const struct head_scale *run = argument;
    const attn_dims *d = &run->plan->dims;
    double sum = 0;
    for (size_t b = 0; run->grad_factors != NULL && b < d->batch; b++)
        for (size_t i = 0; i < d->q_len; i++)
            sum += sum_of_query(run, b, h, i);
    if (run->grad_factors != NULL)
        attn_number_put(run->grad_factors, run->plan->compute, h, sum);
    for (size_t b = 0; run->to != NULL && b < d->batch; b++)
        scale_head(run, run->grad, b, h);
}

void attn_head_scale_back(const attn_plan *plan, const struct attn_operand *context, const struct attn_operand *grad,
                          void *grad_context, void *grad_factors, const attn_runtime *runtime)
{
    struct head_scale run = {.plan = plan,
                             .kernel = attn_kernel_of(runtime->kernel, plan->compute),
                             .factors = plan->request.options.head_scale,
                             .context = context,
                             .grad = grad,
                             .to = grad_context,
                             .grad_factors = grad_factors};
    attn_spread(runtime, plan->dims.heads, back_task, &run);
}
