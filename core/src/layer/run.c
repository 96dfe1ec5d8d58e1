/* run.c: runs a plan: norm, latents, projections, heads, gate, output projection, residual, norm, feed-forward. */
#include "layer/stages.h"

#include <string.h>

#include "base/float_mode.h"
#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"

/* ---- products ---- */

static void run_products(struct layer_run *run)
{
    attn_products_run(run->products, run->product_count, run->plan->compute, run->request->weights.layout, run->runtime,
                      run->product_scratch);
}

/* The slices of one projection, from tokens (batch, len, inner) to y (batch, len, width). */
static void add_batch(struct layer_run *run, const attn_projection *projection, const char *x, size_t batch, size_t len,
                      char *y)
{
    const struct attn_product tokens = {.x = x, .y = y, .batch = batch, .rows = len};
    const attn_kernel *kernel = run->plan->compute == ATTN_F32 ? run->runtime->kernel : NULL;
    attn_projection_products(projection, run->request->weights.layout, run->element, kernel, &tokens,
                             run->products + run->product_count);
    run->product_count += projection->slices;
}

static void add_projection(struct layer_run *run, const attn_projection *projection, const char *x, size_t len, char *y)
{
    add_batch(run, projection, x, run->plan->dims.batch, len, y);
}

/* The pre-norm applies to the query, and to keys and values that default to it. Given ones stay as they are. */
static void prepare_inputs(struct layer_run *run)
{
    const attn_inputs *inputs = &run->request->inputs;
    if (attn_start_of(inputs) != NULL) {
        run->x_v = inputs->value == NULL ? NULL : inputs->value->data;
        return;
    }
    attn_layer_pre_norm(run);
    run->x_k = inputs->key == NULL ? run->x_q : inputs->key->data;
    run->x_v = inputs->value == NULL ? run->x_k : inputs->value->data;
}

static void take_products(struct layer_run *run)
{
    run->products = layer_take_of(run, attn_product_slots(run->request, &run->plan->dims), sizeof *run->products);
    if (run->request->is_layer)
        run->product_scratch = layer_take_of(run, run->runtime->threads,
                                             attn_layer_products_scratch_bytes(run->runtime->kernel, run->request));
}

/* ---- latents ---- */

/* Adds the product by the weight of rank 2 that gives width features, unless there is none. Returns its result. */
static char *add_latent(struct layer_run *run, const attn_affine *affine, const char *x, size_t len, size_t inner,
                        size_t width)
{
    const attn_projection projection = attn_projection_of_matrix(affine, run->request->weights.layout, inner, width);
    char *y = width > 0 ? layer_take(run, run->plan->dims.batch * len * width) : NULL;
    if (y != NULL)
        add_projection(run, &projection, x, len, y);
    return y;
}

/* In memory of its own, because the backward pass reads both. */
static char *norm_latent(struct layer_run *run, const attn_affine *norm, size_t len, size_t width, char *latent)
{
    const attn_options *options = &run->request->options;
    const size_t rows = run->plan->dims.batch * len;
    const struct attn_row_norm row = attn_row_norm_of(options->latent_norm, norm, options->latent_norm_eps, width);
    if (latent == NULL || options->latent_norm == ATTN_NORM_NONE)
        return latent;
    char *y = layer_take(run, rows * width);
    if (y != NULL)
        attn_rows_norm(&row, run->plan->compute, rows, latent, y, run->runtime);
    return y;
}

static void make_latents(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const attn_weights *w = &run->request->weights;
    const size_t new_len = attn_new_len(d);
    if (!attn_has_latents(d))
        return;
    run->product_count = 0;
    char *query = add_latent(run, &w->query_latent, run->x_q, d->q_len, d->d_query, d->d_query_latent);
    char *key = add_latent(run, &w->key_latent, run->x_k, new_len, d->d_key, d->d_key_latent);
    run->key_shared = add_latent(run, &w->key_shared, run->x_k, new_len, d->d_key, d->d_shared);
    if (!layer_goes_on(run))
        return;
    run_products(run);
    run->bare_query_latent = query;
    run->bare_key_latent = key;
    run->query_latent = norm_latent(run, &w->query_latent_norm, d->q_len, d->d_query_latent, query);
    run->key_latent = norm_latent(run, &w->key_latent_norm, new_len, d->d_key_latent, key);
}

struct shared_keys {
    const struct layer_run *run;
    const char *own;
    char *keys;
};

/* Some tokens: for each head its own features, and behind them those that all heads share. */
static void share_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct shared_keys *shared = argument;
    const struct layer_run *run = shared->run;
    const attn_dims *d = &run->plan->dims;
    const size_t own = (d->d_k - d->d_shared) * run->element, all = d->d_k * run->element;
    const size_t end = attn_min((index + 1) * TOKEN_ROWS, d->batch * attn_new_len(d));
    for (size_t row = index * TOKEN_ROWS; row < end; row++)
        for (size_t head = row * d->kv_heads; head < (row + 1) * d->kv_heads; head++) {
            memcpy(shared->keys + head * all, shared->own + head * own, own);
            memcpy(shared->keys + head * all + own, run->key_shared + row * (all - own), all - own);
        }
}

/* Puts the shared features behind those of every key head. */
static void share_keys(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const size_t tokens = d->batch * attn_new_len(d);
    if (d->d_shared == 0)
        return;
    struct shared_keys shared = {
        .run = run, .own = run->k.data, .keys = layer_take(run, tokens * d->kv_heads * d->d_k)};
    if (shared.keys == NULL)
        return;
    attn_spread(run->runtime, attn_ceil_div(tokens, TOKEN_ROWS), share_task, &shared);
    run->k = attn_operand_by_tokens(shared.keys, run->plan->compute, d->kv_heads, attn_new_len(d), d->d_k);
}

/* ---- queries, keys and values ---- */

/* Each in an array of its own. */
static void add_roles(struct layer_run *run, const attn_projection to[])
{
    const attn_dims *d = &run->plan->dims;
    const size_t new_len = attn_new_len(d);
    char *q = layer_take(run, d->batch * d->q_len * d->heads * d->d_k);
    char *k = layer_take(run, d->batch * new_len * d->kv_heads * (d->d_k - d->d_shared));
    char *v = layer_take(run, d->batch * new_len * d->kv_heads * d->d_v);
    if (q == NULL || k == NULL || v == NULL)
        return;
    add_projection(run, &to[PROJECT_Q], run->query_latent != NULL ? run->query_latent : run->x_q, d->q_len, q);
    add_projection(run, &to[PROJECT_K], run->key_latent != NULL ? run->key_latent : run->x_k, new_len, k);
    add_projection(run, &to[PROJECT_V], run->key_latent != NULL ? run->key_latent : run->x_v, new_len, v);
    run->q = attn_operand_by_tokens(q, run->plan->compute, d->heads, d->q_len, d->d_k);
    run->k = attn_operand_by_tokens(k, run->plan->compute, d->kv_heads, new_len, d->d_k);
    run->v = attn_operand_by_tokens(v, run->plan->compute, d->kv_heads, new_len, d->d_v);
}

/* One product for all three. Each token has its queries, keys and values in the order of the fused weight's columns. */
static void add_fused(struct layer_run *run, const attn_projection to[])
{
    const attn_dims *d = &run->plan->dims;
    const attn_projection all = attn_projection_of_fused(&run->request->weights, d);
    char *y = layer_take(run, d->batch * d->q_len * all.columns);
    if (y == NULL)
        return;
    add_projection(run, &all, run->x_q, d->q_len, y);
    struct attn_operand *operands[] = {[PROJECT_Q] = &run->q, [PROJECT_K] = &run->k, [PROJECT_V] = &run->v};
    for (int role = PROJECT_Q; role <= PROJECT_V; role++)
        *operands[role] = (struct attn_operand){.data = y + to[role].bias_first * run->element,
                                                .dtype = run->plan->compute,
                                                .batch_stride = (ptrdiff_t)(d->q_len * all.columns),
                                                .head_stride = (ptrdiff_t)attn_projection_head_step(&to[role], d->d_k),
                                                .row_stride = (ptrdiff_t)all.columns};
}

/* A table of relative positions: the rows of the embedding that are in use, by the weight of the role. */
static void add_relative(struct layer_run *run, attn_role role, const attn_affine *weights, char **table)
{
    if (weights->weight == NULL)
        return;
    const struct attn_relative_rows rows = attn_relative_rows_of(run->request, attn_mask_of(run->plan));
    const attn_projection to = attn_projection_of(&run->request->weights, &run->plan->dims, role);
    const char *embedding = run->request->options.relative_position.embedding->data;
    *table = layer_take(run, rows.count * to.slices * to.columns);
    if (*table != NULL)
        add_batch(run, &to, embedding + rows.first * to.inner * run->element, 1, rows.count, *table);
}

static void project(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const attn_weights *weights = &run->request->weights;
    run->gate = layer_take(run, d->batch * d->q_len * d->heads * d->d_gate);
    attn_projection to[PROJECT_V + 1];
    for (int role = PROJECT_Q; role <= PROJECT_V; role++)
        to[role] = attn_projection_of(weights, d, (attn_role)role);
    run->product_count = 0;
    (attn_projects_at_once(run->request, d) ? add_fused : add_roles)(run, to);
    if (d->d_gate > 0 && run->gate != NULL) {
        attn_projection to_gate = attn_projection_of(weights, d, PROJECT_GATE);
        add_projection(run, &to_gate, run->x_q, d->q_len, run->gate);
    }
    add_relative(run, PROJECT_RELATIVE_KEY, &weights->relative_key, &run->relative_key);
    add_relative(run, PROJECT_RELATIVE_QUERY, &weights->relative_query, &run->relative_query);
    if (layer_goes_on(run))
        run_products(run);
    if (layer_goes_on(run))
        share_keys(run);
}

/* Attention on queries, keys and values as given: where the tensors say. */
static void take_operands(struct layer_run *run)
{
    const attn_inputs *inputs = &run->request->inputs;
    const attn_dims *d = &run->plan->dims;
    const attn_tensor *key = inputs->key == NULL ? inputs->query : inputs->key;
    const attn_tensor *value = inputs->value == NULL ? key : inputs->value;
    if (inputs->query != NULL) {
        run->q = attn_operand_of(inputs->query, d->d_k);
        run->k = attn_operand_of(key, d->d_k);
    }
    if (value != NULL)
        run->v = attn_operand_of(value, d->d_v);
}

static void set_operands(struct layer_run *run)
{
    if (run->request->is_layer)
        project(run);
    else
        take_operands(run);
    run->job.q = run->q;
    run->job.k.added = run->k;
    run->job.v.added = run->v;
    if (run->request->inputs.past_key != NULL) {
        run->job.k.past = attn_operand_of_past(run->request->inputs.past_key);
        run->job.v.past = attn_operand_of_past(run->request->inputs.past_value);
    }
    if (attn_start_of(&run->request->inputs) == NULL && layer_goes_on(run))
        run->status = attn_qk_run(run->plan, run->runtime, run->arena, &run->job, run->err);
}

/* Token by token (batch, q_len, heads * d_v), as the output projection reads it, unless query has rank 4. */
static bool context_is_by_heads(const attn_plan *plan)
{
    return plan->dims.query_rank == 4 && !(plan->want >> ATTN_STEP_CONCAT & 1);
}

/* The layout of the context, and of concat. */
static struct attn_operand lay_out(const struct layer_run *run, const char *data, size_t heads)
{
    const attn_dims *d = &run->plan->dims;
    return (context_is_by_heads(run->plan) ? attn_operand_by_heads : attn_operand_by_tokens)(data, run->plan->compute,
                                                                                             heads, d->q_len, d->d_v);
}

static void make_distance_bias(struct layer_run *run)
{
    const attn_options *options = &run->request->options;
    if (!attn_has_distance_bias(options))
        return;
    char *data = layer_take(run, attn_distance_bias_count(options, attn_mask_of(run->plan)));
    if (data != NULL)
        run->job.distance_bias = attn_distance_bias_make(options, attn_mask_of(run->plan), data, run->runtime);
}

/* Tables are given, or were projected. */
static void make_relative(struct layer_run *run)
{
    const attn_relative_position *own = &run->request->options.relative_position;
    const size_t first = attn_relative_rows_of(run->request, attn_mask_of(run->plan)).first;
    const char *key = run->relative_key, *query = run->relative_query;
    if (own->key != NULL)
        key = (const char *)own->key->data + first * own->key->shape[1] * run->element;
    if (own->query != NULL)
        query = (const char *)own->query->data + first * own->query->shape[1] * run->element;
    run->status = attn_relative_run(run->plan, key, query, run->runtime, run->arena, &run->job, run->err);
}

/* Whether the heads write the output where the caller wants it, because nothing comes after them. */
static bool heads_write_output(const struct layer_run *run)
{
    const bool scales = run->request->options.head_scale != NULL;
    return layer_wants(run, ATTN_STEP_OUTPUT) && run->plan->step[ATTN_STEP_OUTPUT].data != NULL &&
           !run->request->is_layer && !layer_wants(run, ATTN_STEP_CONCAT) &&
           run->request->options.differential == NULL && !(scales && layer_wants(run, ATTN_STEP_CONTEXT));
}

static void prepare_job(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    if (heads_write_output(run)) {
        run->job.context = attn_operand_of(&run->plan->step[ATTN_STEP_OUTPUT], d->d_v);
        run->context = run->plan->step[ATTN_STEP_OUTPUT].data;
    } else {
        run->context = layer_take(run, d->batch * d->q_len * d->heads * d->d_v);
        run->job.context = lay_out(run, run->context, d->heads);
    }
}

static void run_heads(struct layer_run *run)
{
    if (attn_start_of(&run->request->inputs) != NULL)
        run->status = attn_starts_run(run->request, &run->job, run->runtime, run->arena, run->result, run->err);
    else if (attn_is_recurrent(&run->request->options))
        run->status = attn_recurrence_run(run->plan, &run->job, run->runtime, run->arena, run->result, run->err);
    else if (attn_has_feature_maps(&run->request->options))
        run->status = attn_feature_maps_run(run->plan, &run->job, run->runtime, run->arena, run->result, run->err);
    else
        run->status = attn_heads_run(&run->job, run->runtime, run->arena, run->result, run->err);
}

/* ---- after the heads ---- */

/* In place unless the context was asked for, or pairs of heads become one. */
static void combine_heads(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    run->scaled = run->context;
    run->concat = run->job.context;
    if (!attn_combines_heads(&run->request->options))
        return;
    if (layer_wants(run, ATTN_STEP_CONTEXT) || d->out_heads != d->heads) {
        run->scaled = layer_take(run, d->batch * d->q_len * d->out_heads * d->d_v);
        run->concat = lay_out(run, run->scaled, d->out_heads);
    }
    if (run->scaled != NULL)
        attn_head_scale_run(run->plan, &run->job.context, &run->concat, run->runtime);
}

static void gate_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const attn_dims *d = &run->plan->dims;
    const size_t row = index * TOKEN_ROWS, width = d->heads * d->d_v * run->element;
    const size_t rows = attn_min(layer_query_tokens(run) - row, TOKEN_ROWS);
    layer_kernel(run)->gate(rows * d->heads, d->d_v, d->d_gate, run->scaled + row * width,
                            run->gate + row * d->heads * d->d_gate * run->element, run->gated + row * width);
}

/* In place unless the context was asked for. */
static void gate_heads(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    run->gated = run->scaled;
    if (d->d_gate == 0)
        return;
    if (layer_wants(run, ATTN_STEP_CONTEXT) || layer_wants(run, ATTN_STEP_CONCAT))
        run->gated = layer_take(run, d->batch * d->q_len * d->heads * d->d_v);
    if (run->gated != NULL)
        attn_spread(run->runtime, attn_ceil_div(layer_query_tokens(run), TOKEN_ROWS), gate_task, run);
}

static void project_output(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const attn_affine *output = &run->request->weights.output;
    run->projected = run->gated;
    if (output->weight == NULL)
        return;
    run->projected = layer_take(run, d->batch * d->q_len * d->d_attended);
    if (run->projected == NULL)
        return;
    attn_projection projection = attn_projection_of_output(&run->request->weights, d);
    run->product_count = 0;
    add_projection(run, &projection, run->gated, d->q_len, run->projected);
    run_products(run);
}

/* ---- the run ---- */

/* The stages of a run in their order; the first failure ends it. */
static void (*const stages[])(struct layer_run *run) = {
    take_products,
    prepare_inputs,
    make_latents,
    set_operands,
    prepare_job,
    attn_layer_take_maps,
    make_distance_bias,
    make_relative,
    run_heads,
    attn_layer_edit_heads,
    combine_heads,
    gate_heads,
    project_output,
    attn_layer_contribution,
    attn_layer_finish,
    attn_layer_feed_forward,
    attn_layer_reduce_maps,
    attn_layer_present,
    attn_layer_hand_over,
};

attn_status attn_multihead_run(const attn_plan *plan, const attn_runtime *runtime, attn_arena *arena,
                               attn_result *result, struct attn_multihead_kept *kept, attn_error *err)
{
    *result = (attn_result){0};
    memcpy(result->step, plan->step, sizeof result->step);
    for (int step = 0; step < ATTN_STEP_COUNT; step++)
        if (plan->step[step].data != NULL) /* attn_layer_hand_over goes there at the end */
            result->step[step] =
                attn_tensor_view(NULL, plan->step[step].dtype, plan->step[step].rank, plan->step[step].shape);
    struct layer_run run = {.plan = plan,
                            .request = &plan->request,
                            .runtime = runtime,
                            .arena = arena,
                            .result = result,
                            .err = err,
                            .element = attn_dtype_bytes(plan->compute),
                            .job = attn_describe_job(plan)};
    for (size_t s = 0; s < sizeof stages / sizeof *stages && layer_goes_on(&run); s++)
        stages[s](&run);
    *kept = (struct attn_multihead_kept){.query = run.x_q,
                                         .query_latent = run.bare_query_latent,
                                         .key_latent = run.bare_key_latent,
                                         .gate = run.gate,
                                         .ff_input = run.ff_input,
                                         .product_scratch = run.product_scratch};
    return run.status;
}

attn_status attn_plan_run(const attn_plan *plan, const attn_bindings *bindings, const attn_runtime *runtime,
                          attn_arena *arena, attn_result *result, attn_error *err)
{
    struct attn_multihead_kept kept;
    struct attn_bound bound;
    if (bindings != NULL && bindings->grad_output != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "grad_output", "the plan is not for gradients");
    attn_status status = attn_bind(plan, bindings, &bound, err);
    if (status != ATTN_OK)
        return status;
    ATTN_FLOAT_MODE;
    return attn_multihead_run(&bound.plan, runtime, arena, result, &kept, err);
}
