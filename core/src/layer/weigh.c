/* weigh.c: decisions and sizes of a run that the plan and the run must agree on. */
#include "layer/weigh.h"

#include <string.h>

#include "attention/distance_bias.h"
#include "attention/feature_maps.h"
#include "attention/starts.h"
#include "base/check.h"
#include "base/parallel.h"
#include "formulas/formulas.h"
#include "gemm/gemm.h"
#include "layer/contribution.h"
#include "layer/feed_forward.h"
#include "layer/projection.h"
#include "layer/queries_keys.h"
#include "mask/resolved.h"
#include "request/request.h"

/*
 * Only for self-attention with evenly spaced query heads, because an operand has one stride. The backward pass of a
 * qk_norm needs queries and keys in arrays of their own.
 */
bool attn_projects_at_once(const attn_request *request, const attn_dims *dims)
{
    const attn_weights *weights = &request->weights;
    if (weights->qkv.weight == NULL || request->inputs.key != NULL || request->inputs.value != NULL)
        return false;
    const attn_projection to_q = attn_projection_of(weights, dims, PROJECT_Q);
    return request->options.qk_norm == ATTN_NORM_NONE && attn_projection_head_step(&to_q, dims->d_k) > 0;
}

size_t attn_product_slots(const attn_request *request, const attn_dims *dims)
{
    size_t slots = dims->d_gate == 0 ? 1 : 1 + attn_projection_of(&request->weights, dims, PROJECT_GATE).slices;
    for (int role = PROJECT_Q; request->is_layer && role <= PROJECT_V; role++)
        slots += attn_projection_of(&request->weights, dims, (attn_role)role).slices;
    return slots;
}

size_t attn_layer_products_scratch_bytes(const attn_kernel *kernel, const attn_request *request)
{
    const attn_dtype compute = request->options.compute;
    return attn_products_scratch_bytes(kernel, compute, attn_projection_narrow_inner(&request->weights, compute));
}

/* The mean is over all heads, so the kept attention map is enough, unless it has a selection of heads. */
bool attn_needs_mean_source(const attn_request *request)
{
    const attn_options *options = &request->options;
    return attn_wants(options, ATTN_STEP_ATTENTION_MEAN) &&
           (!attn_wants(options, ATTN_STEP_ATTENTION) || !attn_selects_all(&options->heads));
}

double attn_mean_source_numbers(const attn_plan *plan)
{
    return (double)plan->dims.batch * (double)plan->dims.heads * (double)plan->selected_queries *
           (double)plan->selected_keys;
}

size_t attn_mean_source_count(const attn_plan *plan)
{
    return plan->dims.batch * plan->dims.heads * plan->selected_queries * plan->selected_keys;
}

static bool gathers(const attn_request *request)
{
    const attn_inputs *inputs = &request->inputs;
    const attn_tensor *const read[] = {inputs->query, inputs->key, inputs->value};
    bool any = inputs->past_key != NULL;
    for (size_t n = 0; n < sizeof read / sizeof *read; n++)
        any = any || (read[n] != NULL && read[n]->dtype != request->options.compute);
    return any;
}

struct attn_heads_job attn_describe_job(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const attn_options *options = &request->options;
    return (struct attn_heads_job){
        .batch = d->batch,
        .heads = d->heads,
        .kv_heads = d->kv_heads,
        .q_len = d->q_len,
        .kv_len = d->kv_len,
        .d_k = d->d_k,
        .d_v = d->d_v,
        .k.past_len = d->past_len,
        .v.past_len = d->past_len,
        .gathers = gathers(request),
        .compute = plan->compute,
        .bf16_products = options->bf16_products,
        .mask = attn_mask_of(plan),
        .scale = plan->scale,
        .softcap = options->softcap,
        .sinks = options->sinks,
        .dropout = options->dropout_attention ? options->dropout : 0,
        .dropout_seed = options->dropout_seed,
        .kept_heads = plan->selected_heads,
        .kept_queries = plan->selected_queries,
        .kept_keys = plan->selected_keys,
    };
}

enum { TAKES_MAX = 64 }; /* an upper bound of the blocks that one run takes from the arena */

/* After the heads, without a feed-forward network: at most one array per stage. The last one may be a wanted step. */
static size_t token_numbers(const attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const attn_options *options = &request->options;
    const size_t context = d->batch * d->q_len * d->heads * d->d_v, out = d->batch * d->q_len * d->d_attended;
    size_t stages = request->weights.output.weight != NULL;
    stages += attn_changes_sum(options);
    stages += attn_is_post_normed(options);
    size_t numbers = context + stages * out;
    if (options->head_scale != NULL)
        numbers += context;
    if (d->d_gate > 0) /* the gate, and its product with concat */
        numbers += d->batch * d->q_len * d->heads * (d->d_gate + d->d_v);
    const attn_step last = d->d_ff > 0 ? ATTN_STEP_ATTENTION_OUTPUT : ATTN_STEP_OUTPUT;
    return attn_wants(options, last) ? numbers - (stages > 0 ? out : context) : numbers;
}

void attn_multihead_weigh(attn_plan *plan, const attn_request *request)
{
    const attn_dims *d = &plan->dims;
    const size_t element = attn_dtype_bytes(plan->compute);
    size_t numbers = token_numbers(plan, request);
    if (request->is_layer)
        numbers += d->batch * (d->q_len * d->heads * d->d_k + attn_new_len(d) * d->kv_heads * (d->d_k + d->d_v));
    if (attn_is_pre_normed(&request->options))
        numbers += d->batch * d->q_len * d->d_query;
    if (attn_needs_mean_source(request))
        numbers += attn_mean_source_count(plan);
    numbers += attn_feed_forward_numbers(request, d);
    numbers += attn_contribution_numbers(request, d);
    numbers += attn_distance_bias_count(&request->options, attn_mask_of(plan));
    struct attn_heads_job job = attn_describe_job(plan, request);
    const attn_step steps[] = {ATTN_STEP_SCORES, ATTN_STEP_SCALED, ATTN_STEP_MASKED, ATTN_STEP_ATTENTION,
                               ATTN_STEP_DROPPED};
    for (int which = MAP_SCORES; which <= MAP_DROPPED; which++)
        job.map[which].data = attn_wants(&request->options, steps[which]) ? plan : NULL;
    if (attn_wants(&request->options, ATTN_STEP_CONTRIBUTION))
        job.map[MAP_ATTENTION].data = plan;
    job.map[MAP_MEAN_SOURCE].data = attn_needs_mean_source(request) ? plan : NULL;
    const bool has_feature_maps = attn_has_feature_maps(&request->options);
    const bool starts = attn_start_of(&request->inputs) != NULL;
    const size_t scratch = starts             ? attn_starts_scratch_bytes(&job)
                           : has_feature_maps ? attn_feature_maps_scratch_bytes(plan, request)
                                              : attn_heads_scratch_bytes(&job);
    const size_t shared = starts             ? attn_starts_shared_bytes(&job)
                          : has_feature_maps ? attn_feature_maps_shared_bytes(plan, request)
                                             : attn_heads_shared_bytes(&job);
    plan->scratch_bytes = scratch + attn_qk_scratch_bytes(plan, request);
    if (request->is_layer)
        plan->scratch_bytes += attn_layer_products_scratch_bytes(NULL, request);
    plan->working_bytes = numbers * element + attn_contribution_bytes(plan) + shared + attn_qk_bytes(plan, request) +
                          attn_product_slots(request, d) * sizeof(struct attn_product) +
                          (d->heads + d->q_len + d->kv_len) * sizeof(size_t) + (size_t)TAKES_MAX * 1024;
}

/*
 * (*slots)[item] = its index in the selection, or SIZE_MAX if it is not selected. *slots is NULL when all items are
 * selected.
 */
static bool invert(const attn_selection *selection, size_t dimension, attn_arena *arena, const attn_runtime *watch,
                   const size_t **slots, struct attn_check *check)
{
    struct attn_pace pace = attn_pace_begin(watch);
    *slots = NULL;
    if (attn_selects_all(selection))
        return true;
    size_t *slot_of = attn_arena_take(arena, dimension, sizeof *slot_of);
    if (slot_of == NULL)
        return attn_refuse_no_memory(check);
    for (size_t i = 0; i < dimension; i++) {
        if (attn_pace_stops(&pace, 1))
            return attn_refuse_stopped(check);
        slot_of[i] = SIZE_MAX;
    }
    for (size_t s = 0; s < selection->count; s++) {
        if (attn_pace_stops(&pace, 1))
            return attn_refuse_stopped(check);
        slot_of[attn_selected(selection, s)] = s;
    }
    *slots = slot_of;
    return true;
}

attn_status attn_invert_selections(const attn_options *options, const attn_dims *d, const attn_runtime *watch,
                                   attn_arena *arena, struct attn_heads_job *job, attn_error *err)
{
    struct attn_check check = {.err = err};
    (void)(invert(&options->heads, d->heads, arena, watch, &job->head_slot, &check) &&
           invert(&options->queries, d->q_len, arena, watch, &job->query_slot, &check) &&
           invert(&options->keys, d->kv_len, arena, watch, &job->key_slot, &check));
    return check.status;
}
