/* plan.c: checks a request for gradients, and computes its cost. */
#include <string.h>

#include "backward/features.h"
#include "backward/needs.h"
#include "backward/tile.h"
#include "base/check.h"
#include "base/vocabulary.h"
#include "formulas/formulas.h"
#include "request/request.h"

/* ---- what is wanted ---- */

static uint64_t all_given(const attn_request *request)
{
    uint64_t of = request->options.has_scale ? (uint64_t)1 << ATTN_GRADIENT_SCALE : 0;
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++)
        if (attn_gradient_subject(request, (attn_gradient)gradient) != NULL)
            of |= (uint64_t)1 << gradient;
    return of;
}

/* The input that replaces an input that was not given. */
static const char *stand_in(const attn_request *request, attn_gradient gradient)
{
    if (gradient != ATTN_GRADIENT_KEY && gradient != ATTN_GRADIENT_VALUE)
        return "";
    return attn_gradient_owner(request, (attn_role)gradient) == PROJECT_K
               ? ": it is inputs.key, whose gradient holds both"
               : ": it is inputs.query, whose gradient holds both";
}

static bool check_wanted(const attn_request *request, uint64_t of, struct attn_check *check)
{
    const uint64_t needs_no_tensor = (uint64_t)1 << ATTN_GRADIENT_SCALE | (uint64_t)1 << ATTN_GRADIENT_SCORES;
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++)
        if ((of & ~needs_no_tensor) >> gradient & 1 && attn_gradient_subject(request, (attn_gradient)gradient) == NULL)
            return attn_refuse(check, ATTN_ERR_FIELD, "of", "the gradient of %s is wanted, which was not given%s",
                               attn_gradient_name((attn_gradient)gradient), stand_in(request, (attn_gradient)gradient));
    return true;
}

static bool check_grad_output(const attn_tensor *grad, const attn_tensor *output, struct attn_check *check)
{
    static const char *const field = "grad_output";
    char expected[64], received[64];
    if (grad == NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, field,
                           "grad_output is missing: the gradient with respect to the output, in its shape");
    if (grad->dtype != output->dtype)
        return attn_refuse(check, ATTN_ERR_FIELD, field, "grad_output must be %s, got %s",
                           attn_dtype_name(output->dtype), attn_dtype_name(grad->dtype));
    bool fits = grad->rank == output->rank;
    for (int axis = 0; fits && axis < grad->rank; axis++)
        fits = grad->shape[axis] == output->shape[axis];
    if (!fits) {
        attn_shape_text(expected, sizeof expected, output->rank, output->shape);
        attn_shape_text(received, sizeof received, grad->rank, grad->shape);
        return attn_refuse_shape(check, field, grad, expected, "grad_output has shape %s, the output has %s", received,
                                 expected);
    }
    if (!attn_tensor_is_contiguous(grad))
        return attn_refuse(check, ATTN_ERR_FIELD, field, "grad_output must be row-major without gaps");
    return true;
}

/* Gradients that linear and performer lack, always or in some cases. */
static bool check_mechanism(const attn_request *request, uint64_t of, struct attn_check *check)
{
    const attn_mechanism *mechanism = &request->options.mechanism;
    const bool of_scale = (of >> ATTN_GRADIENT_SCALE & 1) != 0;
    if (mechanism->type == ATTN_SOFTMAX)
        return true;
    if (of >> ATTN_GRADIENT_SCORES & 1)
        return attn_refuse(check, ATTN_ERR_FIELD, "of", "\"%s\" belongs to mechanism softmax",
                           attn_gradient_name(ATTN_GRADIENT_SCORES));
    if (of_scale && mechanism->type == ATTN_LINEAR && !mechanism->is_unnormalised)
        return attn_refuse(check, ATTN_ERR_FIELD, "of",
                           "scale has no meaning for mechanism linear, unless it is not normalised");
    if (of_scale && mechanism->type == ATTN_PERFORMER && request->options.has_scale && request->options.scale == 0)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.scale",
                           "performer takes the root of the scale, which has no gradient at 0; name others in ~of");
    return true;
}

static bool check_branches(const attn_request *request, struct attn_check *check)
{
    if (attn_changes_branch(&request->options))
        return attn_refuse(check, ATTN_ERR_FIELD, "options.branch_norm",
                           "there are no gradients through branch_norm and residual_scale");
    return true;
}

static bool check_start(const attn_request *request, struct attn_check *check)
{
    const bool has_scores = request->inputs.scores != NULL;
    if (request->options.bf16_products)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.bf16_products",
                           "there are no gradients of products in bfloat16");
    if (attn_start_of(&request->inputs) == NULL)
        return true;
    return attn_refuse(check, ATTN_ERR_FIELD, has_scores ? "inputs.scores" : "inputs.attention",
                       "there are no gradients of a request that starts at %s", has_scores ? "scores" : "attention");
}

/* Vectors, which are never of 16 bits, are of the compute type in every plan. */
static bool check_types(const attn_request *request, struct attn_check *check)
{
    const struct attn_tensor_row *row;
    for (size_t n = 0; (row = attn_tensor_row_at(n)) != NULL; n++) {
        const attn_tensor *tensor = attn_tensor_of(request, row);
        if (tensor != NULL && row->gradient != ATTN_GRADIENT_COUNT && tensor->dtype != request->options.compute)
            return attn_refuse(check, ATTN_ERR_FIELD, row->path, "gradients need %s in %s, got %s",
                               strncmp(row->path, "inputs.", strlen("inputs.")) == 0 ? "inputs" : "weights",
                               attn_dtype_name(request->options.compute), attn_dtype_name(tensor->dtype));
    }
    return true;
}

/* ---- shapes and weights ---- */

/* The steps of the forward pass that the backward pass reads, in addition to those that the caller wants. */
static attn_steps steps_to_keep(const attn_request *request)
{
    attn_steps want = ATTN_STEP_BIT(ATTN_STEP_CONTEXT);
    if (!attn_has_feature_maps(&request->options))
        want |= ATTN_STEP_BIT(ATTN_STEP_LSE);
    if (request->inputs.past_key != NULL)
        want |= ATTN_STEP_BIT(ATTN_STEP_PRESENT_KEY) | ATTN_STEP_BIT(ATTN_STEP_PRESENT_VALUE);
    if (request->weights.output.weight != NULL)
        want |= ATTN_STEP_BIT(ATTN_STEP_PROJECTED);
    if (request->weights.feed_forward.up.weight != NULL)
        want |= ATTN_STEP_BIT(ATTN_STEP_ATTENTION_OUTPUT) | ATTN_STEP_BIT(ATTN_STEP_FEED_FORWARD);
    if (request->options.sinks != NULL)
        want |= ATTN_STEP_BIT(ATTN_STEP_LSE_KEYS);
    if (request->options.residual)
        want |= ATTN_STEP_BIT(ATTN_STEP_RESIDUAL);
    if (request->options.head_scale != NULL && request->weights.gate.weight != NULL)
        want |= ATTN_STEP_BIT(ATTN_STEP_CONCAT);
    return want;
}

static bool shape_gradients(attn_gradient_plan *plan, struct attn_check *check)
{
    const attn_plan *forward = &plan->forward;
    const size_t map[4] = {forward->dims.batch, forward->selected_heads, forward->selected_queries,
                           forward->selected_keys};
    plan->gradient[ATTN_GRADIENT_SCALE] = attn_tensor_view(NULL, forward->compute, 0, NULL);
    plan->gradient[ATTN_GRADIENT_SCORES] = attn_tensor_view(NULL, forward->compute, 4, map);
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++) {
        const attn_tensor *subject = attn_gradient_subject(&plan->forward.request, (attn_gradient)gradient);
        attn_tensor *own = &plan->gradient[gradient];
        if (subject != NULL)
            *own = attn_tensor_view(NULL, forward->compute, subject->rank, subject->shape);
        double bytes = (double)attn_dtype_bytes(forward->compute);
        for (int axis = 0; axis < own->rank; axis++)
            bytes *= (double)own->shape[axis];
        if (attn_gradient_is_wanted(plan, (attn_gradient)gradient) && bytes > (double)((size_t)1 << 52))
            return attn_refuse(check, ATTN_ERR_TOO_LARGE, "of", "\"%s\" would take %.3g bytes",
                               attn_gradient_name((attn_gradient)gradient), bytes);
        plan->gradient_bytes[gradient] = bytes > (double)((size_t)1 << 52) ? 0 : (size_t)bytes;
    }
    return true;
}

/* Work follows the spans in whole tiles: a row computes up to two tiles of hidden keys. */
static double pairs_of_tiles(const attn_plan *forward)
{
    const attn_dims *d = &forward->dims;
    const double rows = (double)d->batch * (double)d->heads * (double)d->q_len, all = rows * (double)d->kv_len;
    const double pairs = forward->pairs + rows * 2 * GRADIENT_KEYS;
    return pairs < all ? pairs : all;
}

/* The heads compute five products instead of two, and each projection becomes three products. */
static void weigh_work(attn_gradient_plan *plan)
{
    const attn_plan *forward = &plan->forward;
    const attn_dims *d = &forward->dims;
    const double pairs = pairs_of_tiles(forward), d_k = (double)d->d_k, d_v = (double)d->d_v;
    const double precision = forward->compute == ATTN_F64 ? 2 : 1;
    double attention = pairs * (2 * (3 * d_k + 2 * d_v) + 20);
    if (attn_gradient_is_wanted(plan, ATTN_GRADIENT_MASK_BIAS))
        attention += pairs * 2 * (d_k + d_v);
    if (attn_has_feature_maps(&plan->forward.request.options))
        attention = attn_gradient_features_flops(forward);
    plan->flops = forward->flops;
    plan->flops.attention += attention;
    plan->flops.projections *= 3;
    plan->flops.output_projection *= 3;
    plan->flops.feed_forward *= 4;
    plan->flops.rest *= 4;
    plan->total_flops = plan->flops.projections + plan->flops.attention + plan->flops.output_projection +
                        plan->flops.feed_forward + plan->flops.rest;
    const double beyond = forward->time_flops / precision - forward->total_flops;
    const double of_a_pair = forward->pairs > 0 ? beyond / forward->pairs : 0;
    plan->time_flops = precision * (plan->total_flops + beyond + 2 * pairs * of_a_pair);
}

attn_status attn_gradient_plan_make(const attn_gradient_request *request, attn_gradient_plan *plan, attn_error *err)
{
    return attn_gradient_plan_make_named(request, NULL, plan, err);
}

attn_status attn_gradient_plan_make_named(const attn_gradient_request *request, attn_namer *names,
                                          attn_gradient_plan *plan, attn_error *err)
{
    attn_request forward = *request->request;
    struct attn_check check = {.request = &forward, .names = names, .err = err};
    *plan = (attn_gradient_plan){.want = forward.options.want};
    forward.options.want |= steps_to_keep(&forward);
    if (!check_start(&forward, &check))
        return check.status;
    const attn_status status = attn_plan_make_named(&forward, names, &plan->forward, err);
    if (status != ATTN_OK)
        return status;
    plan->of = request->of != 0 ? request->of : all_given(&forward);
    if (!check_branches(&forward, &check) || !check_types(&forward, &check) ||
        !check_wanted(&forward, request->of, &check) ||
        !check_grad_output(request->grad_output, &plan->forward.step[ATTN_STEP_OUTPUT], &check) ||
        !check_mechanism(&forward, plan->of, &check) || !shape_gradients(plan, &check))
        return check.status;
    plan->grad_output = request->grad_output;
    weigh_work(plan);
    attn_gradient_weigh(plan);
    return ATTN_OK;
}

size_t attn_gradient_plan_bytes(const attn_gradient_plan *plan, size_t threads)
{
    return plan->result_bytes + plan->working_bytes + threads * plan->scratch_bytes;
}
