/* plan.c: checks a request for gradients, decides which parts of a backward pass run, and computes their cost. */
#include <assert.h>
#include <string.h>

#include "backward/backward.h"
#include "base/check.h"
#include "base/size.h"
#include "formulas/formulas.h"
#include "request/request.h"

#define GRADIENT(name) ((uint64_t)1 << ATTN_GRADIENT_##name)

static_assert((int)ATTN_GRADIENT_QUERY == PROJECT_Q && (int)ATTN_GRADIENT_KEY == PROJECT_K &&
                  (int)ATTN_GRADIENT_VALUE == PROJECT_V,
              "inputs and roles are numbered alike");

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

/* ---- needs ---- */

/* Whether the gradient of a weight or of its bias is wanted. */
static bool wants_affine(const attn_gradient_plan *plan, attn_gradient weight)
{
    return attn_gradient_is_wanted(plan, weight) || attn_gradient_is_wanted(plan, attn_gradient_bias_beside(weight));
}

static bool wants_qk_norm(const attn_gradient_plan *plan, int role)
{
    return role != PROJECT_V &&
           wants_affine(plan, role == PROJECT_Q ? ATTN_GRADIENT_QUERY_NORM_WEIGHT : ATTN_GRADIENT_KEY_NORM_WEIGHT);
}

/* Whether the gradient of what stands before the weights of a role is wanted. */
static bool wants_latents(const attn_gradient_plan *plan, int role)
{
    if (role == PROJECT_Q)
        return wants_affine(plan, ATTN_GRADIENT_QUERY_LATENT_WEIGHT) ||
               wants_affine(plan, ATTN_GRADIENT_QUERY_LATENT_NORM_WEIGHT);
    return wants_affine(plan, ATTN_GRADIENT_KEY_LATENT_WEIGHT) ||
           wants_affine(plan, ATTN_GRADIENT_KEY_LATENT_NORM_WEIGHT) ||
           (role == PROJECT_K && wants_affine(plan, ATTN_GRADIENT_KEY_SHARED_WEIGHT));
}

static bool wants_distance(const attn_gradient_plan *plan)
{
    return (plan->of & (GRADIENT(ALIBI) | GRADIENT(RELATIVE_BIAS))) != 0;
}

static size_t numbers_of_role(const attn_dims *d, int role)
{
    if (role == PROJECT_Q)
        return d->batch * d->q_len * d->heads * d->d_k;
    return d->batch * attn_new_len(d) * (role == PROJECT_K ? d->kv_heads * d->d_k : d->v_heads * d->d_v);
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
    const attn_request *request = &plan->forward.request;
    for (int role = PROJECT_Q; role <= PROJECT_V; role++) {
        const attn_role owner = attn_gradient_owner(request, (attn_role)role);
        if (needs->role[role] && (request->is_layer || (int)owner != role))
            needs->grad_role[role] = numbers_of_role(&plan->forward.dims, role);
        if (needs->input[role] && request->is_layer && !attn_gradient_is_wanted(plan, (attn_gradient)role))
            needs->grad_input[role] = numbers_of_input(&plan->forward.dims, role);
    }
}

static void need_roles(const attn_gradient_plan *plan, struct attn_gradient_needs *needs)
{
    const attn_request *request = &plan->forward.request;
    const bool through_pre_norm =
        attn_is_pre_normed(&request->options) && wants_affine(plan, ATTN_GRADIENT_NORM_WEIGHT);
    for (int role = PROJECT_Q; role <= PROJECT_V; role++) {
        const attn_role owner = attn_gradient_owner(request, (attn_role)role);
        needs->input[owner] =
            attn_gradient_is_wanted(plan, (attn_gradient)owner) || (owner == PROJECT_Q && through_pre_norm);
        needs->role[role] =
            needs->input[owner] || wants_qk_norm(plan, role) || wants_latents(plan, role) ||
            (request->is_layer && wants_affine(plan, attn_gradient_weight_of(request, (attn_role)role)));
        needs->heads = needs->heads || needs->role[role];
    }
    const uint64_t within_heads = GRADIENT(MASK_BIAS) | GRADIENT(SCALE) | GRADIENT(ALIBI) | GRADIENT(RELATIVE_BIAS) |
                                  GRADIENT(SINKS) | GRADIENT(SCORES) | GRADIENT(ATTENTION) | GRADIENT(PAST_KEY) |
                                  GRADIENT(PAST_VALUE) | GRADIENT(DECAY) | GRADIENT(BETA) | GRADIENT(PAST_STATE);
    needs->heads = needs->heads || (plan->of & within_heads) != 0;
}

/* A gain of rank 1 that is longer than a head belongs to a whole token; one of rank 2 has a row per head. */
struct attn_gradient_norm attn_gradient_describe_qk_norm(const attn_gradient_plan *plan, attn_role role)
{
    const attn_request *request = &plan->forward.request;
    const attn_dims *d = &plan->forward.dims;
    const attn_affine *weights = role == PROJECT_Q ? &request->weights.query_norm : &request->weights.key_norm;
    const attn_tensor *shaped = weights->weight != NULL ? weights->weight : weights->bias;
    const size_t heads = role == PROJECT_Q ? d->heads : d->kv_heads;
    const size_t tokens = d->batch * (role == PROJECT_Q ? d->q_len : attn_new_len(d));
    const bool is_whole = shaped != NULL && shaped->rank == 1 && shaped->shape[0] != d->d_k;
    return (struct attn_gradient_norm){.type = request->options.qk_norm,
                                       .eps = request->options.qk_norm_eps,
                                       .rows = is_whole ? tokens : tokens * heads,
                                       .d = is_whole ? heads * d->d_k : d->d_k,
                                       .gains = shaped != NULL && shaped->rank == 2 ? heads : 1,
                                       .gain = weights->weight};
}

/* The norms use the memory of partial sums in turn, so the largest count is enough. */
static size_t count_partials(const attn_gradient_plan *plan)
{
    const attn_request *request = &plan->forward.request;
    const attn_dims *d = &plan->forward.dims;
    const bool pre = attn_is_pre_normed(&request->options);
    size_t most = 0;
    if (request->options.norm != ATTN_NORM_NONE)
        most = attn_gradient_norm_partials(d->batch * d->q_len) * 2 * (pre ? d->d_query : d->d_attended);
    if (request->options.feed_forward.norm != ATTN_NORM_NONE)
        most = attn_max(most, attn_gradient_norm_partials(d->batch * d->q_len) * 2 *
                                  attn_max(attn_feed_forward_d_in(request, d), d->d_out));
    if (request->options.branch_norm != ATTN_NORM_NONE)
        most = attn_max(most, attn_gradient_norm_partials(d->batch * d->q_len) * 2 * attn_max(d->d_attended, d->d_out));
    if (request->options.latent_norm != ATTN_NORM_NONE)
        most = attn_max(most, 2 * attn_max(attn_gradient_norm_partials(d->batch * d->q_len) * d->d_query_latent,
                                           attn_gradient_norm_partials(d->batch * attn_new_len(d)) * d->d_key_latent));
    for (int role = PROJECT_Q; request->options.qk_norm != ATTN_NORM_NONE && role <= PROJECT_K; role++) {
        const struct attn_gradient_norm norm = attn_gradient_describe_qk_norm(plan, (attn_role)role);
        const size_t own = attn_gradient_norm_partials(norm.rows) * 2 * norm.gains * norm.d;
        most = own > most ? own : most;
    }
    return most;
}

struct attn_gradient_needs attn_gradient_needs_of(const attn_gradient_plan *plan)
{
    const attn_request *request = &plan->forward.request;
    const attn_options *options = &request->options;
    const attn_dims *d = &plan->forward.dims;
    const size_t tokens = d->batch * d->q_len, outputs = tokens * d->d_attended;
    const bool pre = attn_is_pre_normed(options), post = options->norm != ATTN_NORM_NONE && !pre;
    const bool drops = options->dropout > 0 && options->dropout_residual;
    struct attn_gradient_needs needs = {.live = d->batch * (d->q_len > d->kv_len ? d->q_len : d->kv_len)};
    need_roles(plan, &needs);
    size_roles(plan, &needs);
    needs.summed = post && drops && !options->residual ? outputs : 0;
    needs.grad_summed = post ? outputs : 0;
    needs.grad_projected = drops || attn_changes_branch(options) ? outputs : 0;
    const bool through_gate =
        d->d_gate > 0 && (needs.input[PROJECT_Q] || wants_affine(plan, ATTN_GRADIENT_GATE_WEIGHT));
    needs.grad_gate = through_gate ? tokens * d->heads * d->d_gate : 0;
    needs.concat = needs.heads || (plan->of & (GRADIENT(HEAD_SCALE) | GRADIENT(DIFFERENTIAL))) != 0;
    const bool from_output = request->weights.output.weight != NULL && (needs.concat || through_gate);
    const bool from_gate = d->d_gate > 0 && needs.concat, from_scale = attn_combines_heads(options) && needs.heads;
    needs.grad_context = from_output || from_gate || from_scale ? tokens * d->heads * d->d_v : 0;
    needs.distance_bias = attn_distance_bias_count(options, attn_mask_of(&plan->forward));
    needs.grad_distance = wants_distance(plan) ? d->batch * d->heads * (d->q_len + d->kv_len) : 0;
    needs.partials = count_partials(plan);
    needs.latents = attn_gradient_latents_numbers(d, &needs);
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
    heads.grad_attention = attn_gradient_is_wanted(plan, ATTN_GRADIENT_ATTENTION) ? mark : NULL;
    heads.grad_distance = wants_distance(plan) ? mark : NULL;
    heads.grad_sinks = attn_gradient_is_wanted(plan, ATTN_GRADIENT_SINKS) ? mark : NULL;
    heads.grad_scale = attn_gradient_is_wanted(plan, ATTN_GRADIENT_SCALE) ? mark : NULL;
    if (attn_gradient_is_wanted(plan, ATTN_GRADIENT_MASK_BIAS)) {
        heads.grad_bias = mark;
        describe_bias(&plan->forward.request, &heads);
    }
    return heads;
}

/* ---- checks ---- */

static uint64_t all_given(const attn_request *request)
{
    uint64_t of = request->options.has_scale ? GRADIENT(SCALE) : 0;
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
    const uint64_t needs_no_tensor = GRADIENT(SCALE) | GRADIENT(SCORES) | GRADIENT(ATTENTION);
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
    const bool of_scale = (of & GRADIENT(SCALE)) != 0;
    if (mechanism->type == ATTN_SOFTMAX)
        return true;
    for (int map = ATTN_GRADIENT_SCORES; map <= ATTN_GRADIENT_ATTENTION; map++)
        if ((of >> map & 1) != 0)
            return attn_refuse(check, ATTN_ERR_FIELD, "of", "\"%s\" belongs to mechanism softmax",
                               attn_gradient_name((attn_gradient)map));
    if (of_scale && mechanism->type == ATTN_LINEAR && !mechanism->is_unnormalised)
        return attn_refuse(check, ATTN_ERR_FIELD, "of",
                           "scale has no meaning for mechanism linear, unless it is not normalised");
    if (of_scale && mechanism->type == ATTN_PERFORMER && request->options.has_scale && request->options.scale == 0)
        return attn_refuse(check, ATTN_ERR_VALUE, "options.scale",
                           "performer takes the root of the scale, which has no gradient at 0; name others in ~of");
    return true;
}

/* States are kept for a thread, so their size is not bounded by that of the inputs. */
static bool check_states(const attn_plan *forward, struct attn_check *check)
{
    const double numbers = attn_is_recurrent(&forward->request.options) ? attn_gradient_recurrence_numbers(forward) : 0;
    return numbers <= (double)ATTN_NUMBERS_MAX ||
           attn_refuse(check, ATTN_ERR_TOO_LARGE, "inputs", "the run would work with %.3g numbers", numbers);
}

static bool check_branches(const attn_request *request, struct attn_check *check)
{
    const attn_options *options = &request->options;
    const bool has_post_norm =
        (options->norm != ATTN_NORM_NONE && options->norm_position == ATTN_NORM_POST) ||
        (options->feed_forward.norm != ATTN_NORM_NONE && options->feed_forward.position == ATTN_NORM_POST);
    if (attn_changes_branch(options) && (has_post_norm || attn_drops_residual(options)))
        return attn_refuse(
            check, ATTN_ERR_FIELD, "options.branch_norm",
            "there are no gradients through branch_norm and residual_scale beside a post-norm or dropout");
    if (attn_relative_table(request) != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "options.relative_position",
                           "there are no gradients through relative_position");
    if (request->edits != NULL)
        return attn_refuse(check, ATTN_ERR_FIELD, "edits", "there are no gradients of edited numbers");
    if (request->weights.feed_forward.experts.count > 0)
        return attn_refuse(check, ATTN_ERR_FIELD, "weights.feed_forward.experts",
                           "there are no gradients through a mixture of experts");
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
    if (request->options.mechanism.type == ATTN_SOFTMAX)
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
    plan->gradient[ATTN_GRADIENT_ATTENTION] = plan->gradient[ATTN_GRADIENT_SCORES];
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
    if (attn_is_recurrent(&plan->forward.request.options))
        attention = attn_gradient_recurrence_flops(forward);
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

static void weigh_memory(attn_gradient_plan *plan)
{
    const attn_request *request = &plan->forward.request;
    const struct attn_gradient_needs needs = attn_gradient_needs_of(plan);
    const struct attn_gradient_heads heads = attn_gradient_describe_heads(plan);
    const attn_dims *d = &plan->forward.dims;
    const size_t element = attn_dtype_bytes(plan->forward.compute);
    size_t numbers = needs.summed + needs.distance_bias + needs.grad_summed + needs.grad_projected +
                     needs.grad_context + needs.grad_gate + needs.latents;
    numbers += attn_gradient_feed_forward_numbers(request, d);
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
        const bool has_feature_maps = attn_has_feature_maps(&request->options);
        const struct attn_bytes bytes = attn_is_recurrent(&request->options) ? attn_gradient_recurrence_bytes(forward)
                                        : has_feature_maps                   ? attn_gradient_features_bytes(forward)
                                                                             : attn_gradient_heads_bytes(&heads);
        plan->scratch_bytes += bytes.scratch;
        plan->working_bytes += bytes.shared;
        plan->scratch_bytes += attn_qk_turn_back_scratch_bytes(&plan->forward);
        plan->working_bytes += attn_qk_bytes(&plan->forward);
    }
}

/* ---- the plan ---- */

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
        !check_mechanism(&forward, plan->of, &check) || !check_states(&plan->forward, &check) ||
        !shape_gradients(plan, &check))
        return check.status;
    plan->grad_output = request->grad_output;
    weigh_work(plan);
    weigh_memory(plan);
    return ATTN_OK;
}

size_t attn_gradient_plan_bytes(const attn_gradient_plan *plan, size_t threads)
{
    return plan->result_bytes + plan->working_bytes + threads * plan->scratch_bytes;
}
