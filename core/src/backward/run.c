/* run.c: runs a plan for gradients: the forward pass, then back through norm, projections and heads. */
#include "backward/backward.h"

#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"
#include "request/request.h"

enum { TOKEN_ROWS = 64 }; /* rows of tokens that one task normalises or adds */

static bool is_wanted(const struct backward_run *run, attn_gradient gradient)
{
    return attn_gradient_is_wanted(run->plan, gradient);
}

/* Memory for count numbers; NULL when count is 0. */
static char *take(struct backward_run *run, size_t count)
{
    return count > 0 ? backward_take(run, count, run->element) : NULL;
}

/* ---- memory for results and intermediate gradients ---- */

static void take_gradients(struct backward_run *run)
{
    const attn_dims *d = &run->plan->forward.dims;
    const bool is_empty =
        d->batch == 0 || d->q_len == 0 || attn_new_len(d) == 0; /* then nothing adds to some of them */
    for (int gradient = 0; gradient < ATTN_GRADIENT_COUNT; gradient++) {
        attn_tensor *tensor = &run->result->gradient[gradient];
        *tensor = run->plan->gradient[gradient];
        if (!is_wanted(run, (attn_gradient)gradient))
            continue;
        tensor->data =
            (is_empty ? attn_arena_take_zeroed : attn_arena_take)(run->arena, attn_tensor_count(tensor), run->element);
        if (tensor->data == NULL)
            run->status = attn_fail_no_memory(run->err);
    }
}

static void take_roles(struct backward_run *run)
{
    const attn_tensor *gradient = run->result->gradient;
    for (int role = PROJECT_Q; role <= PROJECT_V; role++) {
        run->grad_role[role] = take(run, run->needs.grad_role[role]);
        run->grad_input[role] = take(run, run->needs.grad_input[role]);
        if (run->needs.input[role] && is_wanted(run, (attn_gradient)role))
            run->grad_input[role] = gradient[role].data;
        if (run->needs.role[role] && run->grad_role[role] == NULL)
            run->grad_role[role] = run->grad_input[role];
    }
}

static void take_scratch(struct backward_run *run)
{
    const size_t scratch = attn_gradient_projection_scratch_bytes(run->compute);
    run->is_live = backward_take(run, run->needs.live, 1);
    run->partials = backward_take(run, run->needs.partials, sizeof *run->partials);
    run->affine_scratch = run->request->is_layer ? backward_take(run, run->runtime->threads, scratch) : NULL;
}

/* ---- elementwise ---- */

static void drop_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct backward_run *run = argument;
    const attn_options *options = &run->request->options;
    const size_t all = backward_query_tokens(run) * run->plan->forward.dims.d_attended;
    const struct attn_kernel_type *kernel = backward_kernel(run);
    uint8_t keep[4096];
    const size_t first = index * sizeof keep, count = attn_min(all - first, sizeof keep);
    kernel->dropout_keep(options->dropout_seed, DROPOUT_RESIDUAL, options->dropout, first, count, keep);
    const struct attn_branch_sum sum = {.x = run->drop_from + first * run->element,
                                        .keep = keep,
                                        .gain = options->dropout < 1 ? 1 / (1 - options->dropout) : 0,
                                        .scale = 1,
                                        .y = run->drop_to + first * run->element};
    kernel->add_branch(&sum, count);
}

/* to = dropout(from), with the decisions of the residual. The backward pass of dropout is the same operation. */
static void drop(struct backward_run *run, const char *from, char *to)
{
    run->drop_from = from;
    run->drop_to = to;
    attn_spread(run->runtime, attn_ceil_div(backward_query_tokens(run) * run->plan->forward.dims.d_attended, 4096),
                drop_task, run);
}

/* ---- the forward pass ---- */

static void run_forward(struct backward_run *run)
{
    const attn_inputs *inputs = &run->request->inputs;
    run->status =
        attn_multihead_run(&run->plan->forward, run->runtime, run->arena, &run->result->forward, &run->kept, run->err);
    run->x[PROJECT_Q] = run->kept.query;
    run->x[PROJECT_K] = inputs->key == NULL ? run->kept.query : inputs->key->data;
    run->x[PROJECT_V] = inputs->value == NULL ? run->x[PROJECT_K] : inputs->value->data;
}

/* ---- norm ---- */

static void differentiate_norm(struct backward_run *run, const char *x, size_t d, const char *grad_y, char *grad_x)
{
    const struct attn_gradient_norm norm = {.type = run->request->options.norm,
                                            .eps = run->request->options.norm_eps,
                                            .rows = backward_query_tokens(run),
                                            .d = d,
                                            .gains = 1,
                                            .gain = run->request->weights.norm.weight,
                                            .x = x,
                                            .grad_y = grad_y,
                                            .grad_x = grad_x};
    attn_gradient_norm_run(run, &norm, ATTN_GRADIENT_NORM_WEIGHT);
}

static const char *projected_of(const struct backward_run *run)
{
    const bool has_weight = run->request->weights.output.weight != NULL;
    return backward_step(run, has_weight ? ATTN_STEP_PROJECTED : ATTN_STEP_GATED)->data;
}

/* From the output back to the output projection: post-norm, residual (the query gets its part later), dropout or branch_norm. */
static void go_through_sum(struct backward_run *run)
{
    char *summed = take(run, run->needs.summed), *grad_summed = take(run, run->needs.grad_summed),
         *grad_projected = take(run, run->needs.grad_projected);
    if (!backward_goes_on(run))
        return;
    run->grad_summed = run->grad_output;
    if (grad_summed != NULL) {
        if (summed != NULL)
            drop(run, projected_of(run), summed);
        const char *before = run->request->options.residual ? backward_step(run, ATTN_STEP_RESIDUAL)->data
                             : summed != NULL               ? summed
                                                            : projected_of(run);
        differentiate_norm(run, before, run->plan->forward.dims.d_attended, run->grad_output, grad_summed);
        run->grad_summed = grad_summed;
    }
    run->grad_projected = run->grad_summed;
    if (grad_projected == NULL)
        return;
    if (attn_changes_branch(&run->request->options))
        attn_gradient_of_branch(run, &run->request->weights.branch_norm, run->plan->forward.dims.d_attended,
                                projected_of(run), run->grad_summed, grad_projected);
    else
        drop(run, run->grad_summed, grad_projected);
    run->grad_projected = grad_projected;
}

/* ---- projections ---- */

static void go_through_output(struct backward_run *run)
{
    const attn_dims *d = &run->plan->forward.dims;
    run->context_memory = take(run, run->needs.grad_context);
    run->grad_gated = run->grad_projected;
    if (run->request->weights.output.weight == NULL || !backward_goes_on(run))
        return;
    const attn_projection slices = attn_projection_of_output(&run->request->weights, d);
    const struct attn_gradient_projection output = {slices, d->q_len, backward_step(run, ATTN_STEP_GATED)->data,
                                                    run->grad_projected};
    attn_gradient_of_affine(run, &output, ATTN_GRADIENT_OUTPUT_WEIGHT);
    if (run->context_memory != NULL)
        attn_gradient_of_input(run, &output, 1, d->q_len, slices.inner, run->context_memory);
    run->grad_gated = run->context_memory;
}

static void gate_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct backward_run *run = argument;
    const attn_dims *d = &run->plan->forward.dims;
    const size_t row = index * TOKEN_ROWS, rows = attn_min(backward_query_tokens(run) - row, TOKEN_ROWS);
    const size_t at = row * d->heads * d->d_v * run->element, gate_at = row * d->heads * d->d_gate * run->element;
    const struct attn_gate_gradient gradient = {
        .heads = rows * d->heads,
        .d_v = d->d_v,
        .d_gate = d->d_gate,
        .concat = (const char *)backward_step(run, ATTN_STEP_CONCAT)->data + at,
        .gate = run->kept.gate + gate_at,
        .grad_gated = run->grad_gated + at,
        .grad_concat = run->needs.concat ? run->context_memory + at : NULL,
        .grad_gate = run->grad_gate == NULL ? NULL : run->grad_gate + gate_at,
    };
    backward_kernel(run)->gate_back(&gradient);
}

static void go_through_gate(struct backward_run *run)
{
    run->grad_concat = run->grad_gated;
    if (run->plan->forward.dims.d_gate == 0 || (!run->needs.concat && run->needs.grad_gate == 0))
        return;
    run->grad_gate = take(run, run->needs.grad_gate);
    if (!backward_goes_on(run))
        return;
    attn_spread(run->runtime, attn_ceil_div(backward_query_tokens(run), TOKEN_ROWS), gate_task, run);
    run->grad_concat = run->context_memory;
}

static size_t len_of(const attn_dims *d, int role)
{
    return role == PROJECT_Q ? d->q_len : attn_new_len(d);
}

static size_t width_of_input(const attn_dims *d, int input)
{
    return input == PROJECT_Q ? d->d_query : input == PROJECT_K ? d->d_key : d->d_value;
}

/* The gradient of an input is the sum over the roles that read it. */
static void collect_input(struct backward_run *run, const struct attn_gradient_projection *projections, int input)
{
    const attn_dims *d = &run->plan->forward.dims;
    struct attn_gradient_projection readers[READERS];
    size_t count = 0;
    for (int reader = PROJECT_Q; reader < READERS; reader++) {
        const int role = reader == PROJECT_GATE ? PROJECT_Q : reader == READ_SHARED ? PROJECT_K : reader;
        if ((int)attn_gradient_owner(run->request, (attn_role)role) == input && projections[reader].grad_y != NULL)
            readers[count++] = projections[reader];
    }
    if (run->grad_input[input] != NULL)
        attn_gradient_of_input(run, readers, count, len_of(d, input), width_of_input(d, input), run->grad_input[input]);
}

/* What the weights of a role read: the input, or a latent. */
static const char *source_of(const struct backward_run *run, int role)
{
    const attn_dims *d = &run->plan->forward.dims;
    if (role == PROJECT_Q && d->d_query_latent > 0)
        return backward_step(run, ATTN_STEP_QUERY_LATENT)->data;
    if (role != PROJECT_Q && d->d_key_latent > 0)
        return backward_step(run, ATTN_STEP_KEY_LATENT)->data;
    return run->x[role];
}

static void go_through_projections(struct backward_run *run)
{
    const attn_dims *d = &run->plan->forward.dims;
    struct attn_gradient_projection projections[READERS] = {0};
    for (int role = PROJECT_Q; role <= PROJECT_V; role++)
        projections[role] =
            (struct attn_gradient_projection){attn_projection_of(&run->request->weights, d, (attn_role)role),
                                              len_of(d, role), source_of(run, role), run->grad_role[role]};
    attn_gradient_cut_keys(run, projections);
    for (int role = PROJECT_Q; role <= PROJECT_V && backward_goes_on(run); role++)
        if (projections[role].grad_y != NULL)
            attn_gradient_of_affine(run, &projections[role], attn_gradient_weight_of(run->request, (attn_role)role));
    attn_gradient_latents_run(run, projections);
    if (!backward_goes_on(run))
        return;
    if (run->grad_gate != NULL) {
        projections[PROJECT_GATE] = (struct attn_gradient_projection){
            attn_projection_of(&run->request->weights, d, PROJECT_GATE), d->q_len, run->x[PROJECT_Q], run->grad_gate};
        attn_gradient_of_affine(run, &projections[PROJECT_GATE], ATTN_GRADIENT_GATE_WEIGHT);
    }
    for (int input = PROJECT_Q; input <= PROJECT_V; input++)
        collect_input(run, projections, input);
}

/* Attention without weights: the gradient of a default key or value is added to the input that it defaults to. */
static void add_defaults(struct backward_run *run)
{
    for (int role = PROJECT_K; role <= PROJECT_V; role++) {
        const attn_role owner = attn_gradient_owner(run->request, (attn_role)role);
        if (run->grad_role[role] != NULL && (int)owner != role)
            attn_gradient_add(run, run->needs.grad_role[role], run->grad_input[owner], run->grad_role[role],
                              run->grad_input[owner]);
    }
}

/* ---- heads ---- */

/* The operand of attn_operand_view, whose tensor has no rank unless the caller wants the step. */
static struct attn_operand operand_of(const struct backward_run *run, attn_step step)
{
    const attn_tensor *view = backward_step(run, step);
    return (struct attn_operand){.data = view->data,
                                 .dtype = view->dtype,
                                 .batch_stride = view->stride[0],
                                 .head_stride = view->stride[1],
                                 .row_stride = view->stride[2]};
}

/* data in the layout of an input: token by token, or heads first. */
static struct attn_operand lay_out(const struct backward_run *run, const void *data, size_t heads, size_t len, size_t d)
{
    const bool by_heads = run->plan->forward.dims.query_rank == 4;
    return (by_heads ? attn_operand_by_heads : attn_operand_by_tokens)(data, run->compute, heads, len, d);
}

/* Concat has its gradient in the layout of the output, context in that of the forward pass. */
static void go_through_head_scale(struct backward_run *run)
{
    const attn_dims *d = &run->plan->forward.dims;
    run->grad_context = run->grad_concat;
    if (!attn_combines_heads(&run->request->options) || !run->needs.concat)
        return;
    const struct attn_operand context = operand_of(run, ATTN_STEP_CONTEXT);
    const struct attn_operand grad = lay_out(run, run->grad_concat, d->out_heads, d->q_len, d->d_v);
    const struct attn_operand grad_context =
        lay_out(run, run->needs.heads ? run->context_memory : NULL, d->heads, d->q_len, d->d_v);
    attn_head_scale_back(&run->plan->forward, &context, &grad, &grad_context,
                         backward_gradient(run, ATTN_GRADIENT_HEAD_SCALE),
                         backward_gradient(run, ATTN_GRADIENT_DIFFERENTIAL), run->runtime);
    if (run->needs.heads)
        run->grad_context = run->context_memory;
}

static void describe_heads(struct backward_run *run, struct attn_gradient_heads *heads)
{
    const attn_dims *d = &run->plan->forward.dims;
    const attn_options *options = &run->request->options;
    const attn_tensor *gradient = run->result->gradient;
    *heads = attn_gradient_describe_heads(run->plan);
    heads->job.k.past_len = heads->job.v.past_len = 0; /* these steps begin with the cache */
    heads->job.q = operand_of(run, ATTN_STEP_Q_ROTATED);
    heads->job.k.added = operand_of(run, ATTN_STEP_PRESENT_KEY);
    heads->job.v.added = operand_of(run, ATTN_STEP_PRESENT_VALUE);
    heads->job.context = operand_of(run, ATTN_STEP_CONTEXT);
    heads->lse = backward_step(run, ATTN_STEP_LSE)->data;
    heads->grad_context = lay_out(run, run->grad_context, d->heads, d->q_len, d->d_v);
    heads->grad_q = lay_out(run, run->grad_role[PROJECT_Q], d->heads, d->q_len, d->d_k);
    heads->grad_k = lay_out(run, run->grad_role[PROJECT_K], d->kv_heads, attn_new_len(d), d->d_k);
    heads->grad_v = lay_out(run, run->grad_role[PROJECT_V], d->v_heads, attn_new_len(d), d->d_v);
    const attn_dtype compute = run->compute;
    heads->grad_past_k =
        attn_operand_by_heads(gradient[ATTN_GRADIENT_PAST_KEY].data, compute, d->kv_heads, d->past_len, d->d_k);
    heads->grad_past_v =
        attn_operand_by_heads(gradient[ATTN_GRADIENT_PAST_VALUE].data, compute, d->v_heads, d->past_len, d->d_v);
    heads->grad_scores = gradient[ATTN_GRADIENT_SCORES].data;
    heads->grad_attention = gradient[ATTN_GRADIENT_ATTENTION].data;
    heads->grad_sinks = gradient[ATTN_GRADIENT_SINKS].data;
    heads->grad_decay = gradient[ATTN_GRADIENT_DECAY].data;
    heads->grad_beta = gradient[ATTN_GRADIENT_BETA].data;
    heads->grad_past_state = gradient[ATTN_GRADIENT_PAST_STATE].data;
    if (options->sinks != NULL)
        heads->lse_keys = backward_step(run, ATTN_STEP_LSE_KEYS)->data;
    heads->grad_bias = gradient[ATTN_GRADIENT_MASK_BIAS].data;
    run->status = attn_invert_selections(options, d, run->runtime, run->arena, &heads->job, run->err);
}

/* Computes the biases by distance again, and takes memory for their gradient. */
static void take_distance(struct backward_run *run, struct attn_gradient_heads *heads)
{
    char *data = take(run, run->needs.distance_bias);
    if (data == NULL)
        return;
    heads->job.distance_bias =
        attn_distance_bias_make(&run->request->options, attn_mask_of(&run->plan->forward), data, run->runtime);
    if (run->needs.grad_distance > 0)
        heads->grad_distance = backward_take(run, run->needs.grad_distance, sizeof *heads->grad_distance);
}

static void finish_heads(struct backward_run *run, const struct attn_gradient_heads *heads, double scale)
{
    const attn_tensor *gradient = run->result->gradient;
    if (is_wanted(run, ATTN_GRADIENT_SCALE))
        attn_number_put(gradient[ATTN_GRADIENT_SCALE].data, run->compute, 0, scale);
    if (heads->grad_distance != NULL)
        attn_gradient_of_distances(&run->request->options, attn_mask_of(&run->plan->forward), heads->grad_distance,
                                   gradient[ATTN_GRADIENT_ALIBI].data, gradient[ATTN_GRADIENT_RELATIVE_BIAS].data);
}

/* Replaces the gradient of the normalised queries or keys by the gradient before their norm. */
static void go_through_qk_norm(struct backward_run *run, attn_role role)
{
    const bool is_query = role == PROJECT_Q;
    if (run->request->options.qk_norm == ATTN_NORM_NONE || run->grad_role[role] == NULL)
        return;
    struct attn_gradient_norm norm = attn_gradient_describe_qk_norm(run->plan, role);
    norm.x = backward_step(run, is_query ? ATTN_STEP_Q : ATTN_STEP_K)->data;
    norm.grad_y = norm.grad_x = run->grad_role[role];
    attn_gradient_norm_run(run, &norm, is_query ? ATTN_GRADIENT_QUERY_NORM_WEIGHT : ATTN_GRADIENT_KEY_NORM_WEIGHT);
}

static void run_heads(struct backward_run *run, struct attn_gradient_heads *heads)
{
    if (attn_is_recurrent(&run->request->options))
        run->status = attn_gradient_recurrence_run(&run->plan->forward, heads, run->runtime, run->arena, run->err);
    else if (attn_has_feature_maps(&run->request->options))
        run->status = attn_gradient_features_run(&run->plan->forward, heads, run->runtime, run->arena, run->err);
    else
        run->status = attn_gradient_heads_run(heads, run->runtime, run->arena, run->err);
}

static void go_through_heads(struct backward_run *run)
{
    struct attn_gradient_heads heads;
    double scale = 0;
    go_through_head_scale(run);
    if (!run->needs.heads)
        return;
    describe_heads(run, &heads);
    heads.grad_scale = is_wanted(run, ATTN_GRADIENT_SCALE) ? &scale : NULL;
    if (backward_goes_on(run))
        take_distance(run, &heads);
    if (backward_goes_on(run))
        run_heads(run, &heads);
    if (backward_goes_on(run))
        run->status =
            attn_qk_turn_back(&run->plan->forward, run->runtime, run->arena, &heads.grad_q, &heads.grad_k, run->err);
    if (!backward_goes_on(run))
        return;
    go_through_qk_norm(run, PROJECT_Q);
    go_through_qk_norm(run, PROJECT_K);
    finish_heads(run, &heads, scale);
}

/* ---- the run ---- */

/*
 * The gradient from the heads, and from a parallel network that shares their norm, goes back through a pre-norm. Those
 * of the residual, and of a parallel network with its own norm, are added after it.
 */
static void finish_query(struct backward_run *run)
{
    const attn_dims *d = &run->plan->forward.dims;
    char *grad = run->grad_input[PROJECT_Q];
    const size_t count = backward_query_tokens(run) * d->d_query;
    const bool has_own_norm = run->request->options.feed_forward.norm != ATTN_NORM_NONE;
    if (run->grad_query != NULL && grad != NULL && !has_own_norm)
        attn_gradient_add(run, count, grad, run->grad_query, grad);
    if (attn_is_pre_normed(&run->request->options) && grad != NULL)
        differentiate_norm(run, run->request->inputs.query->data, d->d_query, grad, grad);
    if (run->request->options.residual && is_wanted(run, ATTN_GRADIENT_QUERY))
        attn_gradient_add(run, count, grad, run->grad_summed, grad);
    if (run->grad_query != NULL && has_own_norm && is_wanted(run, ATTN_GRADIENT_QUERY))
        attn_gradient_add(run, count, grad, run->grad_query, grad);
}

static void finish(struct backward_run *run)
{
    if (run->request->is_layer)
        go_through_projections(run);
    else
        add_defaults(run);
    finish_query(run);
    if (attn_is_cancelled(run->runtime))
        run->status = attn_fail_stopped(run->err);
}

/* The stages of a run in their order; the first failure ends it. */
static void (*const stages[])(struct backward_run *run) = {
    run_forward,    take_gradients,    take_roles,      take_scratch,     attn_gradient_feed_forward_run,
    go_through_sum, go_through_output, go_through_gate, go_through_heads, finish,
};

static attn_status run_gradient(const attn_gradient_plan *plan, const char *grad_output, const attn_runtime *runtime,
                                attn_arena *arena, attn_gradient_result *result, attn_error *err)
{
    *result = (attn_gradient_result){0};
    struct backward_run run = {.plan = plan,
                               .request = &plan->forward.request,
                               .runtime = runtime,
                               .arena = arena,
                               .result = result,
                               .err = err,
                               .needs = attn_gradient_needs_of(plan),
                               .compute = plan->forward.compute,
                               .element = attn_dtype_bytes(plan->forward.compute),
                               .grad_output = grad_output};
    for (size_t s = 0; s < sizeof stages / sizeof *stages && backward_goes_on(&run); s++)
        stages[s](&run);
    return run.status;
}

attn_status attn_gradient_run(const attn_gradient_plan *plan, const attn_bindings *bindings,
                              const attn_runtime *runtime, attn_arena *arena, attn_gradient_result *result,
                              attn_error *err)
{
    struct attn_bound bound;
    attn_status status = attn_bind(&plan->forward, bindings, &bound, err);
    if (status != ATTN_OK)
        return status;
    const bool is_bound = bindings != NULL && bindings->grad_output != NULL;
    const char *grad_output = is_bound ? bindings->grad_output : plan->grad_output->data;
    if (grad_output == NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "grad_output", "grad_output has no data");
    attn_gradient_plan on_data = *plan;
    on_data.forward = bound.plan;
    ATTN_FLOAT_MODE;
    return run_gradient(&on_data, grad_output, runtime, arena, result, err);
}
