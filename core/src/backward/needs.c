/*
 * needs.c: decides which parts of a backward pass run, and their bytes. The plan and the run must agree on
 * them.
 */
#include "backward/needs.h"

#include <assert.h>
#include <stddef.h>

#include "attention/attention.h"
#include "backward/features.h"
#include "backward/feed_forward.h"
#include "backward/projection.h"
#include "base/size.h"
#include "base/vocabulary.h"
#include "formulas/formulas.h"
#include "layer/layer.h"
#include "mask/resolved.h"
#include "request/request.h"

static_assert((int)ATTN_GRADIENT_QUERY == PROJECT_Q && (int)ATTN_GRADIENT_KEY == PROJECT_K &&
                  (int)ATTN_GRADIENT_VALUE == PROJECT_V,
              "inputs and roles are numbered alike");

const attn_tensor *attn_gradient_subject(const attn_request *request, attn_gradient gradient)
{
    const struct attn_tensor_row *row;
    for (size_t n = 0; (row = attn_tensor_row_at(n)) != NULL; n++)
        if (row->gradient == gradient)
            return attn_tensor_of(request, row);
    return NULL;
}

attn_role attn_gradient_owner(const attn_request *request, attn_role role)
{
    if (role == PROJECT_V && request->inputs.value != NULL)
        return PROJECT_V;
    return role != PROJECT_Q && request->inputs.key != NULL ? PROJECT_K : PROJECT_Q;
}

attn_gradient attn_gradient_weight_of(const attn_request *request, attn_role role)
{
    static const attn_gradient own[] = {
        [PROJECT_Q] = ATTN_GRADIENT_QUERY_WEIGHT,
        [PROJECT_K] = ATTN_GRADIENT_KEY_WEIGHT,
        [PROJECT_V] = ATTN_GRADIENT_VALUE_WEIGHT,
    };
    return request->weights.qkv.weight != NULL ? ATTN_GRADIENT_QKV_WEIGHT : own[role];
}

attn_gradient attn_gradient_bias_of(const attn_request *request, attn_role role)
{
    static const attn_gradient own[] = {
        [PROJECT_Q] = ATTN_GRADIENT_QUERY_BIAS,
        [PROJECT_K] = ATTN_GRADIENT_KEY_BIAS,
        [PROJECT_V] = ATTN_GRADIENT_VALUE_BIAS,
    };
    return request->weights.qkv.weight != NULL ? ATTN_GRADIENT_QKV_BIAS : own[role];
}

/* ---- needs ---- */

static bool wants_role_weights(const attn_gradient_plan *plan, attn_role role)
{
    return attn_gradient_is_wanted(plan, attn_gradient_weight_of(&plan->forward.request, role)) ||
           attn_gradient_is_wanted(plan, attn_gradient_bias_of(&plan->forward.request, role));
}

static bool wants_norm(const attn_gradient_plan *plan)
{
    return attn_gradient_is_wanted(plan, ATTN_GRADIENT_NORM_WEIGHT) ||
           attn_gradient_is_wanted(plan, ATTN_GRADIENT_NORM_BIAS);
}

static bool wants_qk_norm(const attn_gradient_plan *plan, int role)
{
    const int weight = role == PROJECT_Q ? ATTN_GRADIENT_QUERY_NORM_WEIGHT : ATTN_GRADIENT_KEY_NORM_WEIGHT;
    const int bias = role == PROJECT_Q ? ATTN_GRADIENT_QUERY_NORM_BIAS : ATTN_GRADIENT_KEY_NORM_BIAS;
    return role != PROJECT_V &&
           (attn_gradient_is_wanted(plan, (attn_gradient)weight) || attn_gradient_is_wanted(plan, (attn_gradient)bias));
}

static bool wants_gate(const attn_gradient_plan *plan)
{
    return attn_gradient_is_wanted(plan, ATTN_GRADIENT_GATE_WEIGHT) ||
           attn_gradient_is_wanted(plan, ATTN_GRADIENT_GATE_BIAS);
}

static bool wants_distance(const attn_gradient_plan *plan)
{
    return attn_gradient_is_wanted(plan, ATTN_GRADIENT_ALIBI) ||
           attn_gradient_is_wanted(plan, ATTN_GRADIENT_RELATIVE_BIAS);
}

static size_t numbers_of_role(const attn_dims *d, int role)
{
    if (role == PROJECT_Q)
        return d->batch * d->q_len * d->heads * d->d_k;
    return d->batch * attn_new_len(d) * d->kv_heads * (role == PROJECT_K ? d->d_k : d->d_v);
}

static size_t numbers_of_input(const attn_dims *d, int input)
{
    if (input == PROJECT_Q)
        return d->batch * d->q_len * d->d_query;
    return d->batch * attn_new_len(d) * (input == PROJECT_K ? d->d_key : d->d_value);
}

/* A role needs no buffer of its own if it is the only role that reads its input. */
static void size_roles(const attn_gradient_plan *plan, struct attn_gradient_needs *needs)
{
    for (int role = PROJECT_Q; role <= PROJECT_V; role++) {
        const attn_role owner = attn_gradient_owner(&plan->forward.request, (attn_role)role);
        if (needs->role[role] && (plan->forward.request.is_layer || (int)owner != role))
            needs->grad_role[role] = numbers_of_role(&plan->forward.dims, role);
        if (needs->input[role] && plan->forward.request.is_layer && !attn_gradient_is_wanted(plan, (attn_gradient)role))
            needs->grad_input[role] = numbers_of_input(&plan->forward.dims, role);
    }
}

static void need_roles(const attn_gradient_plan *plan, struct attn_gradient_needs *needs)
{
    const bool through_pre_norm = attn_is_pre_normed(&plan->forward.request.options) && wants_norm(plan);
    for (int role = PROJECT_Q; role <= PROJECT_V; role++) {
        const attn_role owner = attn_gradient_owner(&plan->forward.request, (attn_role)role);
        needs->input[owner] =
            attn_gradient_is_wanted(plan, (attn_gradient)owner) || (owner == PROJECT_Q && through_pre_norm);
        needs->role[role] = needs->input[owner] || wants_qk_norm(plan, role) ||
                            (plan->forward.request.is_layer && wants_role_weights(plan, (attn_role)role));
        needs->heads = needs->heads || needs->role[role];
    }
    needs->heads = needs->heads || attn_gradient_is_wanted(plan, ATTN_GRADIENT_MASK_BIAS) ||
                   attn_gradient_is_wanted(plan, ATTN_GRADIENT_SCALE) || wants_distance(plan) ||
                   attn_gradient_is_wanted(plan, ATTN_GRADIENT_SINKS) ||
                   attn_gradient_is_wanted(plan, ATTN_GRADIENT_SCORES) ||
                   attn_gradient_is_wanted(plan, ATTN_GRADIENT_PAST_KEY) ||
                   attn_gradient_is_wanted(plan, ATTN_GRADIENT_PAST_VALUE);
}

/*
 * A gain of rank 1 that is longer than a head belongs to a whole token. A gain of rank 2 has one row per head (plan.h).
 */
struct attn_gradient_norm attn_gradient_describe_qk_norm(const attn_gradient_plan *plan, attn_role role)
{
    const attn_dims *d = &plan->forward.dims;
    const attn_affine *weights =
        role == PROJECT_Q ? &plan->forward.request.weights.query_norm : &plan->forward.request.weights.key_norm;
    const attn_tensor *shaped = weights->weight != NULL ? weights->weight : weights->bias;
    const size_t heads = role == PROJECT_Q ? d->heads : d->kv_heads;
    const size_t tokens = d->batch * (role == PROJECT_Q ? d->q_len : attn_new_len(d));
    const bool is_whole = shaped != NULL && shaped->rank == 1 && shaped->shape[0] != d->d_k;
    return (struct attn_gradient_norm){.type = plan->forward.request.options.qk_norm,
                                       .compute = plan->forward.compute,
                                       .eps = plan->forward.request.options.qk_norm_eps,
                                       .rows = is_whole ? tokens : tokens * heads,
                                       .d = is_whole ? heads * d->d_k : d->d_k,
                                       .gains = shaped != NULL && shaped->rank == 2 ? heads : 1,
                                       .gain = weights->weight == NULL ? NULL : weights->weight->data};
}

/* The norms use the memory of partial sums in turn, so the largest count is enough. */
static size_t count_partials(const attn_gradient_plan *plan)
{
    const attn_dims *d = &plan->forward.dims;
    const bool pre = attn_is_pre_normed(&plan->forward.request.options);
    size_t most = 0;
    if (plan->forward.request.options.norm != ATTN_NORM_NONE)
        most = attn_gradient_norm_partials(d->batch * d->q_len) * 2 * (pre ? d->d_query : d->d_attended);
    if (plan->forward.request.options.feed_forward.norm != ATTN_NORM_NONE)
        most = attn_max(most, attn_gradient_norm_partials(d->batch * d->q_len) * 2 *
                                  attn_max(attn_feed_forward_d_in(&plan->forward.request, d), d->d_out));
    for (int role = PROJECT_Q; plan->forward.request.options.qk_norm != ATTN_NORM_NONE && role <= PROJECT_K; role++) {
        const struct attn_gradient_norm norm = attn_gradient_describe_qk_norm(plan, (attn_role)role);
        const size_t own = attn_gradient_norm_partials(norm.rows) * 2 * norm.gains * norm.d;
        most = own > most ? own : most;
    }
    return most;
}

struct attn_gradient_needs attn_gradient_needs_of(const attn_gradient_plan *plan)
{
    const attn_options *options = &plan->forward.request.options;
    const attn_dims *d = &plan->forward.dims;
    const size_t tokens = d->batch * d->q_len, outputs = tokens * d->d_attended;
    const bool pre = attn_is_pre_normed(options), post = options->norm != ATTN_NORM_NONE && !pre;
    const bool drops = options->dropout > 0 && options->dropout_residual;
    struct attn_gradient_needs needs = {.live = d->batch * (d->q_len > d->kv_len ? d->q_len : d->kv_len)};
    need_roles(plan, &needs);
    size_roles(plan, &needs);
    needs.output = attn_gradient_is_wanted(plan, ATTN_GRADIENT_OUTPUT_WEIGHT) ||
                   attn_gradient_is_wanted(plan, ATTN_GRADIENT_OUTPUT_BIAS);
    needs.summed = post && drops && !options->residual ? outputs : 0;
    needs.grad_summed = post ? outputs : 0;
    needs.grad_projected = drops ? outputs : 0;
    const bool through_gate = d->d_gate > 0 && (needs.input[PROJECT_Q] || wants_gate(plan));
    needs.grad_gate = through_gate ? tokens * d->heads * d->d_gate : 0;
    needs.concat = needs.heads || attn_gradient_is_wanted(plan, ATTN_GRADIENT_HEAD_SCALE);
    const bool from_output = plan->forward.request.weights.output.weight != NULL && (needs.concat || through_gate);
    const bool from_gate = d->d_gate > 0 && needs.concat, from_scale = options->head_scale != NULL && needs.heads;
    needs.grad_context = from_output || from_gate || from_scale ? tokens * d->heads * d->d_v : 0;
    needs.distance_bias = attn_distance_bias_count(options, attn_mask_of(&plan->forward));
    needs.grad_distance = wants_distance(plan) ? d->batch * d->heads * (d->q_len + d->kv_len) : 0;
    needs.partials = count_partials(plan);
    return needs;
}

/* ---- the heads ---- */

/* The shape of the bias, with leading 1s, and the steps of its gradient: 0 where it is broadcast. */
static void describe_bias(const attn_request *request, struct attn_gradient_heads *heads)
{
    const attn_tensor *bias = request->masks.bias;
    const struct attn_heads_job *job = &heads->job;
    const size_t full[4] = {job->batch, job->heads, job->q_len, job->kv_len};
    size_t step = 1;
    for (int axis = 3; axis >= 0; axis--) {
        const int own = axis - (4 - bias->rank);
        heads->bias_size[axis] = own < 0 ? 1 : bias->shape[own];
        heads->bias_step[axis] = heads->bias_size[axis] == full[axis] && full[axis] != 1 ? step : 0;
        step *= heads->bias_size[axis];
    }
}

struct attn_gradient_heads attn_gradient_describe_heads(const attn_gradient_plan *plan)
{
    void *mark = (void *)(uintptr_t)plan; /* any address but NULL */
    const struct attn_gradient_needs needs = attn_gradient_needs_of(plan);
    struct attn_gradient_heads heads = {.job = attn_describe_job(&plan->forward),
                                        .past_len = plan->forward.dims.past_len};
    heads.grad_q.data = needs.role[PROJECT_Q] ? mark : NULL;
    heads.grad_k.data = needs.role[PROJECT_K] ? mark : NULL;
    heads.grad_v.data = needs.role[PROJECT_V] ? mark : NULL;
    heads.grad_past_k.data = attn_gradient_is_wanted(plan, ATTN_GRADIENT_PAST_KEY) ? mark : NULL;
    heads.grad_past_v.data = attn_gradient_is_wanted(plan, ATTN_GRADIENT_PAST_VALUE) ? mark : NULL;
    heads.grad_scores = attn_gradient_is_wanted(plan, ATTN_GRADIENT_SCORES) ? mark : NULL;
    heads.grad_distance = wants_distance(plan) ? mark : NULL;
    heads.grad_sinks = attn_gradient_is_wanted(plan, ATTN_GRADIENT_SINKS) ? mark : NULL;
    heads.grad_scale = attn_gradient_is_wanted(plan, ATTN_GRADIENT_SCALE) ? mark : NULL;
    if (attn_gradient_is_wanted(plan, ATTN_GRADIENT_MASK_BIAS)) {
        heads.grad_bias = mark;
        describe_bias(&plan->forward.request, &heads);
    }
    return heads;
}

/* ---- bytes ---- */

enum { TAKES_MAX = 64 }; /* an upper bound of the blocks that the backward pass takes from the arena */

/* The memory of the forward pass beyond the steps that the caller wants. */
static size_t forward_working_bytes(const attn_gradient_plan *plan)
{
    const attn_plan *forward = &plan->forward;
    size_t bytes = attn_plan_bytes(forward, 0);
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        bytes -= plan->want >> step & 1 ? forward->step_bytes[step] : 0;
    return bytes;
}

void attn_gradient_weigh(attn_gradient_plan *plan)
{
    const struct attn_gradient_needs needs = attn_gradient_needs_of(plan);
    const struct attn_gradient_heads heads = attn_gradient_describe_heads(plan);
    const attn_dims *d = &plan->forward.dims;
    const size_t element = attn_dtype_bytes(plan->forward.compute);
    size_t numbers = needs.summed + needs.distance_bias + needs.grad_summed + needs.grad_projected +
                     needs.grad_context + needs.grad_gate;
    numbers += attn_gradient_feed_forward_numbers(&plan->forward.request, d);
    size_t gradients = 0, steps = 0;
    for (int role = PROJECT_Q; role <= PROJECT_V; role++)
        numbers += needs.grad_role[role] + needs.grad_input[role];
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++)
        gradients += attn_gradient_is_wanted(plan, (attn_gradient)gradient) ? plan->gradient_bytes[gradient] : 0;
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        steps += plan->want >> step & 1 ? plan->forward.step_bytes[step] : 0;
    plan->result_bytes = gradients + steps;
    plan->scratch_bytes = plan->forward.scratch_bytes + attn_gradient_projection_scratch_bytes(plan->forward.compute);
    plan->working_bytes = forward_working_bytes(plan) + numbers * element + 4 * needs.live +
                          (needs.partials + needs.grad_distance) * sizeof(double) +
                          (d->heads + d->q_len + d->kv_len) * sizeof(size_t) + (size_t)TAKES_MAX * 1024;
    if (needs.heads) {
        const attn_plan *forward = &plan->forward;
        const bool has_feature_maps = attn_has_feature_maps(&plan->forward.request.options);
        plan->scratch_bytes += has_feature_maps ? attn_gradient_features_scratch_bytes(forward)
                                                : attn_gradient_heads_scratch_bytes(&heads);
        plan->working_bytes +=
            has_feature_maps ? attn_gradient_features_shared_bytes(forward) : attn_gradient_heads_shared_bytes(&heads);
        plan->scratch_bytes += attn_qk_turn_back_scratch_bytes(&plan->forward);
        plan->working_bytes += attn_qk_bytes(&plan->forward);
    }
}
