/* head_scale.c: from the heads to concat: a factor for each head, and the difference of each pair of heads. */
#include "layer/layer.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"

struct head_scale {
    const attn_plan *plan;
    const struct attn_kernel_type *kernel;
    const struct attn_operand *context, *grad;
    struct attn_operand to;
    void *grad_factors, *grad_differential;
};

/* ---- factors ---- */

static double number_of(const struct head_scale *run, const attn_tensor *numbers, size_t at)
{
    return numbers == NULL ? 1 : attn_number_at(numbers->data, run->plan->compute, (ptrdiff_t)at * numbers->stride[0]);
}

static double scale_of(const struct head_scale *run, size_t h)
{
    return number_of(run, run->plan->request.options.head_scale, h);
}

/* The sign and factor of head h in its pair; 1 without pairs. */
static double part_in_pair(const struct head_scale *run, size_t h)
{
    const attn_tensor *differential = run->plan->request.options.differential;
    return differential == NULL || h % 2 == 0 ? 1 : -number_of(run, differential, h / 2);
}

/* The head of concat that head h adds to. */
static size_t out_head_of(const struct head_scale *run, size_t h)
{
    return h / (run->plan->dims.heads / run->plan->dims.out_heads);
}

/* ---- rows ---- */

/* to = factor * from, for all queries of one head; or it is added to what is there. */
static void scale_head(const struct head_scale *run, const struct attn_operand *from, size_t b, size_t from_head,
                       size_t to_head, double factor, bool is_added)
{
    const attn_dims *d = &run->plan->dims;
    const size_t element = attn_dtype_bytes(run->plan->compute);
    for (size_t i = 0; i < d->q_len; i++) {
        char *to = (char *)(uintptr_t)run->to.data + attn_operand_at(&run->to, b, to_head, i) * element;
        const struct attn_branch_sum sum = {.x = (const char *)from->data +
                                                 attn_operand_at(from, b, from_head, i) * element,
                                            .residual = is_added ? to : NULL,
                                            .scale = factor,
                                            .y = to};
        if (factor != 0)
            run->kernel->add_branch(&sum, d->d_v);
        else if (!is_added)
            memset(to, 0, d->d_v * element);
    }
}

/* One head of concat. */
static void combine_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct head_scale *run = argument;
    const attn_dims *d = &run->plan->dims;
    const size_t b = index / d->out_heads, out = index % d->out_heads, each = d->heads / d->out_heads;
    for (size_t h = out * each; h < (out + 1) * each; h++)
        scale_head(run, run->context, b, h, out, scale_of(run, h) * part_in_pair(run, h), h > out * each);
}

void attn_head_scale_run(const attn_plan *plan, const struct attn_operand *context, const struct attn_operand *concat,
                         const attn_runtime *runtime)
{
    struct head_scale run = {
        .plan = plan, .kernel = attn_kernel_of(runtime->kernel, plan->compute), .context = context, .to = *concat};
    attn_spread(runtime, plan->dims.batch * plan->dims.out_heads, combine_task, &run);
}

/* ---- backward ---- */

static double sum_of_query(const struct head_scale *run, size_t b, size_t h, size_t i)
{
    const attn_dtype compute = run->plan->compute;
    const size_t context = attn_operand_at(run->context, b, h, i),
                 grad = attn_operand_at(run->grad, b, out_head_of(run, h), i);
    double sum = 0;
    for (size_t f = 0; f < run->plan->dims.d_v; f++) {
        const double dy = attn_number_get(run->grad->data, compute, grad + f);
        sum += dy == 0 ? 0 : dy * attn_number_get(run->context->data, compute, context + f);
    }
    return sum;
}

/* The gradients of the numbers in the factor of head h. */
static void put_factors(const struct head_scale *run, size_t h)
{
    const attn_dims *d = &run->plan->dims;
    double sum = 0;
    for (size_t b = 0; b < d->batch; b++)
        for (size_t i = 0; i < d->q_len; i++)
            sum += sum_of_query(run, b, h, i);
    if (run->grad_factors != NULL)
        attn_number_put(run->grad_factors, run->plan->compute, h, sum * part_in_pair(run, h));
    if (run->grad_differential != NULL && h % 2 == 1)
        attn_number_put(run->grad_differential, run->plan->compute, h / 2, -sum * scale_of(run, h));
}

/* One head of all batch items, so that the order of its sum is fixed. The sum comes before grad is overwritten. */
static void back_task(void *argument, size_t h, size_t worker)
{
    (void)worker;
    const struct head_scale *run = argument;
    if (run->grad_factors != NULL || run->grad_differential != NULL)
        put_factors(run, h);
    for (size_t b = 0; run->to.data != NULL && b < run->plan->dims.batch; b++)
        scale_head(run, run->grad, b, out_head_of(run, h), h, scale_of(run, h) * part_in_pair(run, h), false);
}

void attn_head_scale_back(const attn_plan *plan, const struct attn_operand *context, const struct attn_operand *grad,
                          const struct attn_operand *grad_context, void *grad_factors, void *grad_differential,
                          const attn_runtime *runtime)
{
    struct head_scale run = {.plan = plan,
                             .kernel = attn_kernel_of(runtime->kernel, plan->compute),
                             .context = context,
                             .grad = grad,
                             .to = *grad_context,
                             .grad_factors = grad_factors,
                             .grad_differential = grad_differential};
    attn_spread(runtime, plan->dims.heads, back_task, &run);
}
