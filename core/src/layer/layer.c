/* layer.c: runs a plan: norm, projections, heads, gate, output projection, residual, norm. */
#include "layer/layer.h"

#include <string.h>

#include "attention/distance_bias.h"
#include "attention/feature_maps.h"
#include "attention/heads.h"
#include "base/float_mode.h"
#include "base/parallel.h"
#include "base/size.h"
#include "formulas/features.h"
#include "formulas/philox.h"
#include "gemm/gemm.h"
#include "layer/gate.h"
#include "layer/layer_weigh.h"
#include "layer/norm.h"
#include "layer/projection.h"
#include "layer/queries_keys.h"
#include "request/steps.h"

enum {
    /* Rows of tokens that one task normalises or adds. */
    TOKEN_ROWS = 64,
};

struct layer_run {
    const attn_plan *plan;
    const attn_request *request;
    const attn_runtime *runtime;
    attn_arena *arena;
    attn_result *result;
    attn_error *err;
    size_t element; /* bytes of one number */
    /* token-wise buffers: (batch, len, features) */
    const char *x_q, *x_k, *x_v; /* the inputs, after a pre-norm */
    struct attn_operand q, k, v; /* of these tokens, before norm, rotation and cache */
    char *context;               /* of the heads, in the layout of context_operand */
    char *gate, *gated;          /* gated is context without a gate */
    char *projected, *summed, *output;
    struct attn_product *products;
    size_t product_count;
    char *product_scratch;
    struct attn_heads_job job;
    char *mean_source;
    char *normed; /* the queries after a pre-norm */
};

static attn_status no_memory(struct layer_run *run, const char *what)
{
    return attn_fail(run->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for %s", what);
}

static char *take(struct layer_run *run, size_t count)
{
    return attn_arena_take(run->arena, count, run->element);
}

static bool wants(const struct layer_run *run, attn_step step)
{
    return attn_wants(&run->request->options, step);
}

/* ---- products ---- */

static void run_products(struct layer_run *run)
{
    attn_products_run(run->products, run->product_count, run->plan->compute, run->request->weights.layout, run->runtime,
                      run->product_scratch);
}

/* The slices of one projection: tokens (batch, len, inner) to y (batch, len, width). */
static void add_projection(struct layer_run *run, const attn_projection *projection, const char *x, size_t len, char *y)
{
    const struct attn_product tokens = {.x = x, .y = y, .batch = run->plan->dims.batch, .rows = len};
    const attn_kernel *kernel = run->plan->compute == ATTN_F32 ? run->runtime->kernel : NULL;
    attn_projection_products(projection, run->request->weights.layout, run->element, kernel, &tokens,
                             run->products + run->product_count);
    run->product_count += projection->slices;
}

/* ---- before the heads ---- */

/* The norm of all inputs or of the output: rows of d numbers from row first on. */
static void norm_rows(const struct layer_run *run, size_t first, size_t rows, size_t d, const char *x, char *y)
{
    const attn_options *options = &run->request->options;
    const attn_tensor *gain = run->request->weights.norm.weight, *shift = run->request->weights.norm.bias;
    const size_t at = first * d * run->element;
    attn_norm_rows(options->norm, run->plan->compute, rows, d, x + at, gain == NULL ? NULL : gain->data,
                   shift == NULL ? NULL : shift->data, options->norm_eps, y + at);
}

static size_t query_tokens(const struct layer_run *run)
{
    return run->plan->dims.batch * run->plan->dims.q_len;
}

static void pre_norm_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const size_t row = index * TOKEN_ROWS, rows = attn_min(query_tokens(run) - row, TOKEN_ROWS);
    norm_rows(run, row, rows, run->plan->dims.d_query, run->request->inputs.query->data, run->normed);
}

/* A key or value that is the query by default is the normalised query too; one that was given is left as it is. */
static attn_status prepare_inputs(struct layer_run *run)
{
    const attn_inputs *inputs = &run->request->inputs;
    run->x_q = inputs->query->data;
    if (attn_is_pre_normed(&run->request->options)) {
        run->normed = take(run, query_tokens(run) * run->plan->dims.d_query);
        if (run->normed == NULL)
            return no_memory(run, "the normalised inputs");
        attn_spread(run->runtime, attn_ceil_div(query_tokens(run), TOKEN_ROWS), pre_norm_task, run);
        run->x_q = run->normed;
    }
    run->x_k = inputs->key == NULL ? run->x_q : inputs->key->data;
    run->x_v = inputs->value == NULL ? run->x_k : inputs->value->data;
    return ATTN_OK;
}

static attn_status take_products(struct layer_run *run)
{
    run->products =
        attn_arena_take(run->arena, attn_product_slots(run->request, &run->plan->dims), sizeof *run->products);
    if (run->request->is_layer)
        run->product_scratch =
            attn_arena_take(run->arena, run->runtime->threads, attn_products_scratch_bytes(run->plan->compute));
    if (run->products == NULL || (run->request->is_layer && run->product_scratch == NULL))
        return no_memory(run, "the projections");
    return ATTN_OK;
}

static struct attn_operand tokens_operand(const void *data, size_t heads, size_t len, size_t d)
{
    return (struct attn_operand){.data = data,
                                 .batch_stride = (ptrdiff_t)(len * heads * d),
                                 .head_stride = (ptrdiff_t)d,
                                 .row_stride = (ptrdiff_t)(heads * d)};
}

static struct attn_operand heads_operand(const void *data, size_t heads, size_t len, size_t d)
{
    return (struct attn_operand){.data = data,
                                 .batch_stride = (ptrdiff_t)(heads * len * d),
                                 .head_stride = (ptrdiff_t)(len * d),
                                 .row_stride = (ptrdiff_t)d};
}

/* Queries, keys and values, each in tokens of its own. */
static attn_status add_roles(struct layer_run *run, const attn_projection to[])
{
    const attn_dims *d = &run->plan->dims;
    const size_t new_len = attn_new_len(d);
    char *q = take(run, d->batch * d->q_len * d->heads * d->d_k);
    char *k = take(run, d->batch * new_len * d->kv_heads * d->d_k);
    char *v = take(run, d->batch * new_len * d->kv_heads * d->d_v);
    if (q == NULL || k == NULL || v == NULL)
        return no_memory(run, "queries, keys and values");
    add_projection(run, &to[PROJECT_Q], run->x_q, d->q_len, q);
    add_projection(run, &to[PROJECT_K], run->x_k, new_len, k);
    add_projection(run, &to[PROJECT_V], run->x_v, new_len, v);
    run->q = tokens_operand(q, d->heads, d->q_len, d->d_k);
    run->k = tokens_operand(k, d->kv_heads, new_len, d->d_k);
    run->v = tokens_operand(v, d->kv_heads, new_len, d->d_v);
    return ATTN_OK;
}

/* All of them at once, side by side in each token, as their columns are in the fused weight. */
static attn_status add_fused(struct layer_run *run, const attn_projection to[])
{
    const attn_dims *d = &run->plan->dims;
    const attn_projection all = attn_projection_of_fused(&run->request->weights, d);
    char *y = take(run, d->batch * d->q_len * all.columns);
    if (y == NULL)
        return no_memory(run, "queries, keys and values");
    add_projection(run, &all, run->x_q, d->q_len, y);
    struct attn_operand *operands[] = {[PROJECT_Q] = &run->q, [PROJECT_K] = &run->k, [PROJECT_V] = &run->v};
    for (int role = PROJECT_Q; role <= PROJECT_V; role++)
        *operands[role] = (struct attn_operand){.data = y + to[role].bias_first * run->element,
                                                .batch_stride = (ptrdiff_t)(d->q_len * all.columns),
                                                .head_stride = (ptrdiff_t)attn_projection_head_step(&to[role], d->d_k),
                                                .row_stride = (ptrdiff_t)all.columns};
    return ATTN_OK;
}

static attn_status project(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const attn_weights *weights = &run->request->weights;
    run->gate = take(run, d->batch * d->q_len * d->heads * d->d_gate);
    if (run->gate == NULL)
        return no_memory(run, "queries, keys, values and gate");
    attn_projection to[PROJECT_V + 1];
    for (int role = PROJECT_Q; role <= PROJECT_V; role++)
        to[role] = attn_projection_of(weights, d, (attn_role)role);
    run->product_count = 0;
    attn_status status = (attn_projects_at_once(run->request, d) ? add_fused : add_roles)(run, to);
    if (status != ATTN_OK)
        return status;
    if (d->d_gate > 0) {
        attn_projection to_gate = attn_projection_of(weights, d, PROJECT_GATE);
        add_projection(run, &to_gate, run->x_q, d->q_len, run->gate);
    }
    run_products(run);
    return ATTN_OK;
}

static attn_status set_operands(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    attn_status status = ATTN_OK;
    bool by_heads = d->query_rank == 4;
    if (run->request->is_layer) {
        status = project(run);
    } else {
        run->q = (by_heads ? heads_operand : tokens_operand)(run->x_q, d->heads, d->q_len, d->d_k);
        run->k = (by_heads ? heads_operand : tokens_operand)(run->x_k, d->kv_heads, attn_new_len(d), d->d_k);
        run->v = (by_heads ? heads_operand : tokens_operand)(run->x_v, d->kv_heads, attn_new_len(d), d->d_v);
    }
    run->job.q = run->q;
    run->job.k = run->k;
    run->job.v = run->v;
    return status == ATTN_OK ? attn_qk_run(run->plan, run->request, run->runtime, run->arena, &run->job, run->err)
                             : status;
}

/* ---- the heads ---- */

static attn_status invert(struct layer_run *run, const attn_selection *selection, size_t dimension,
                          const size_t **slots)
{
    return attn_invert_selection(selection, dimension, run->arena, slots) ? ATTN_OK : no_memory(run, "the selection");
}

static attn_status take_map(struct layer_run *run, attn_step step, int which)
{
    if (!wants(run, step))
        return ATTN_OK;
    run->job.map[which].data = take(run, attn_tensor_count(&run->plan->step[step]));
    run->result->step[step].data = run->job.map[which].data;
    return run->job.map[which].data == NULL ? no_memory(run, attn_step_name(step)) : ATTN_OK;
}

static attn_status take_maps(struct layer_run *run)
{
    static const struct {
        attn_step step;
        int which;
    } maps[] = {{ATTN_STEP_SCORES, MAP_SCORES},
                {ATTN_STEP_SCALED, MAP_SCALED},
                {ATTN_STEP_MASKED, MAP_MASKED},
                {ATTN_STEP_ATTENTION, MAP_ATTENTION},
                {ATTN_STEP_DROPPED, MAP_DROPPED}};
    attn_status status = ATTN_OK;
    for (size_t m = 0; status == ATTN_OK && m < sizeof maps / sizeof *maps; m++)
        status = take_map(run, maps[m].step, maps[m].which);
    if (status != ATTN_OK || !wants(run, ATTN_STEP_ATTENTION_MEAN))
        return status;
    if (!attn_needs_mean_source(run->request)) {
        run->mean_source = run->job.map[MAP_ATTENTION].data;
        return ATTN_OK;
    }
    run->mean_source = take(run, attn_mean_source_count(run->plan));
    run->job.map[MAP_MEAN_SOURCE] = (struct attn_map){.data = run->mean_source, .all_heads = true};
    return run->mean_source == NULL ? no_memory(run, "attention_mean") : ATTN_OK;
}

static attn_status take_rows(struct layer_run *run, attn_step step, void **rows)
{
    if (!wants(run, step))
        return ATTN_OK;
    *rows = take(run, attn_tensor_count(&run->plan->step[step]));
    run->result->step[step].data = *rows;
    return *rows == NULL ? no_memory(run, attn_step_name(step)) : ATTN_OK;
}

/* Token-wise (batch, q_len, heads * d_v), as the output projection wants it; only a query of rank 4 asks for heads
 * first. */
static bool context_is_by_heads(const attn_plan *plan)
{
    return plan->dims.query_rank == 4 && !(plan->want >> ATTN_STEP_CONCAT & 1);
}

static attn_status make_distance_bias(struct layer_run *run)
{
    const attn_options *options = &run->request->options;
    if (!attn_has_distance_bias(options))
        return ATTN_OK;
    char *data = take(run, attn_distance_bias_count(options, &run->plan->mask));
    if (data == NULL)
        return no_memory(run, "the biases by distance");
    run->job.distance_bias = attn_distance_bias_make(options, &run->plan->mask, data, run->runtime);
    return ATTN_OK;
}

static attn_status prepare_job(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const attn_options *options = &run->request->options;
    run->context = take(run, d->batch * d->q_len * d->heads * d->d_v);
    if (run->context == NULL)
        return no_memory(run, "the context");
    run->job.context =
        (context_is_by_heads(run->plan) ? heads_operand : tokens_operand)(run->context, d->heads, d->q_len, d->d_v);
    attn_status status = take_maps(run);
    if (status == ATTN_OK)
        status = take_rows(run, ATTN_STEP_LSE, &run->job.lse);
    if (status == ATTN_OK)
        status = take_rows(run, ATTN_STEP_LSE_KEYS, &run->job.lse_keys);
    if (status == ATTN_OK)
        status = take_rows(run, ATTN_STEP_ENTROPY, &run->job.entropy);
    if (status == ATTN_OK)
        status = take_rows(run, ATTN_STEP_SINK, &run->job.sink);
    if (status == ATTN_OK)
        status = make_distance_bias(run);
    if (status == ATTN_OK)
        status = invert(run, &options->heads, d->heads, &run->job.head_slot);
    if (status == ATTN_OK)
        status = invert(run, &options->queries, d->q_len, &run->job.query_slot);
    if (status == ATTN_OK)
        status = invert(run, &options->keys, d->kv_len, &run->job.key_slot);
    return status;
}

static attn_status run_heads(struct layer_run *run)
{
    if (attn_has_feature_maps(&run->request->options))
        return attn_feature_maps_run(run->plan, run->request, &run->job, run->runtime, run->arena, run->result,
                                     run->err);
    return attn_heads_run(&run->job, run->runtime, run->arena, run->result, run->err);
}

/* ---- after the heads ---- */

static void gate_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const attn_dims *d = &run->plan->dims;
    const size_t row = index * TOKEN_ROWS, width = d->heads * d->d_v * run->element;
    const size_t rows = attn_min(query_tokens(run) - row, TOKEN_ROWS);
    attn_gate_rows(run->plan->compute, rows, d->heads, d->d_v, d->d_gate, run->context + row * width,
                   run->gate + row * d->heads * d->d_gate * run->element, run->gated + row * width);
}

/* In place unless the context was asked for. */
static attn_status gate_heads(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    run->gated = run->context;
    if (d->d_gate == 0)
        return ATTN_OK;
    if (wants(run, ATTN_STEP_CONTEXT) || wants(run, ATTN_STEP_CONCAT))
        run->gated = take(run, d->batch * d->q_len * d->heads * d->d_v);
    if (run->gated == NULL)
        return no_memory(run, "the output gate");
    attn_spread(run->runtime, attn_ceil_div(query_tokens(run), TOKEN_ROWS), gate_task, run);
    return ATTN_OK;
}

static attn_status project_output(struct layer_run *run)
{
    const attn_dims *d = &run->plan->dims;
    const attn_affine *output = &run->request->weights.output;
    run->projected = run->gated;
    if (output->weight == NULL)
        return ATTN_OK;
    run->projected = take(run, d->batch * d->q_len * d->d_out);
    if (run->projected == NULL)
        return no_memory(run, "the output projection");
    attn_projection projection = attn_projection_of_output(&run->request->weights, d);
    run->product_count = 0;
    add_projection(run, &projection, run->gated, d->q_len, run->projected);
    run_products(run);
    return ATTN_OK;
}

static bool changes_sum(const attn_options *options)
{
    return options->residual || attn_drops_residual(options);
}

/* summed = query + dropout(projected), each part where it is asked for; number by number. */
static void add_rows(const struct layer_run *run, size_t first, size_t count)
{
    const attn_options *options = &run->request->options;
    const double p = options->dropout_residual ? options->dropout : 0, gain = p < 1 ? 1 / (1 - p) : 0;
    uint8_t keep[512];
    for (size_t done = 0; done < count; done += sizeof keep) {
        size_t some = attn_min(count - done, sizeof keep), at = first + done;
        memset(keep, 1, some);
        if (p > 0)
            attn_dropout_keep(options->dropout_seed, DROPOUT_RESIDUAL, p, at, some, keep);
        for (size_t n = 0; n < some; n++)
            if (run->plan->compute == ATTN_F32) {
                float y = ((const float *)run->projected)[at + n];
                y = p > 0 ? (keep[n] ? y * (float)gain : 0) : y;
                ((float *)run->summed)[at + n] =
                    options->residual ? ((const float *)run->request->inputs.query->data)[at + n] + y : y;
            } else {
                double y = ((const double *)run->projected)[at + n];
                y = p > 0 ? (keep[n] ? y * gain : 0) : y;
                ((double *)run->summed)[at + n] =
                    options->residual ? ((const double *)run->request->inputs.query->data)[at + n] + y : y;
            }
    }
}

static void finish_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const size_t d = run->plan->dims.d_out, row = index * TOKEN_ROWS;
    const size_t rows = attn_min(query_tokens(run) - row, TOKEN_ROWS);
    if (changes_sum(&run->request->options))
        add_rows(run, row * d, rows * d);
    if (attn_is_post_normed(&run->request->options))
        norm_rows(run, row, rows, d, run->summed, run->output);
}

/* Residual and norm. Each writes over its input unless that was asked for, or belongs to the steps of the heads. */
static attn_status finish(struct layer_run *run)
{
    const attn_options *options = &run->request->options;
    const size_t rows = query_tokens(run), count = rows * run->plan->dims.d_out;
    const bool projected_is_kept = wants(run, ATTN_STEP_PROJECTED) || run->projected == run->gated;
    run->summed = run->projected;
    if (changes_sum(options) && projected_is_kept)
        run->summed = take(run, count);
    const bool sum_is_kept = wants(run, ATTN_STEP_RESIDUAL) || (run->summed == run->projected && projected_is_kept);
    run->output = attn_is_post_normed(options) && sum_is_kept ? take(run, count) : run->summed;
    if (run->summed == NULL || run->output == NULL)
        return no_memory(run, "residual and norm");
    if (changes_sum(options) || attn_is_post_normed(options))
        attn_spread(run->runtime, attn_ceil_div(rows, TOKEN_ROWS), finish_task, run);
    return ATTN_OK;
}

static void mean_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const attn_plan *plan = run->plan;
    const size_t keys = plan->selected_keys, heads = plan->dims.heads, queries = plan->selected_queries;
    const size_t b = index / queries, query = index % queries;
    void *mean = run->result->step[ATTN_STEP_ATTENTION_MEAN].data;
    for (size_t j = 0; j < keys; j++) {
        double sum = 0;
        for (size_t h = 0; h < heads; h++) {
            size_t at = ((b * heads + h) * queries + query) * keys + j;
            sum += plan->compute == ATTN_F32 ? (double)((const float *)run->mean_source)[at]
                                             : ((const double *)run->mean_source)[at];
        }
        if (plan->compute == ATTN_F32)
            ((float *)mean)[index * keys + j] = (float)(sum / (double)heads);
        else
            ((double *)mean)[index * keys + j] = sum / (double)heads;
    }
}

static void mask_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const attn_plan *plan = run->plan;
    const attn_options *options = &run->request->options;
    const size_t keys = plan->selected_keys, queries = plan->selected_queries;
    const size_t b = index / queries / plan->selected_heads;
    const size_t h = attn_selected(&options->heads, index / queries % plan->selected_heads);
    const size_t i = attn_selected(&options->queries, index % queries);
    uint8_t *row = (uint8_t *)run->result->step[ATTN_STEP_MASK].data + index * keys;
    if (attn_selects_all(&options->keys)) {
        attn_mask_row(&plan->mask, plan->compute, b, h, i, attn_mask_span(&plan->mask, b, i), 0, keys, row);
        return;
    }
    for (size_t j = 0; j < keys; j++)
        row[j] = attn_mask_allows(&plan->mask, plan->compute, b, h, i, attn_selected(&options->keys, j));
}

static attn_status reduce_maps(struct layer_run *run)
{
    attn_tensor *step = run->result->step;
    if (wants(run, ATTN_STEP_ATTENTION_MEAN)) {
        step[ATTN_STEP_ATTENTION_MEAN].data = take(run, attn_tensor_count(&step[ATTN_STEP_ATTENTION_MEAN]));
        if (step[ATTN_STEP_ATTENTION_MEAN].data == NULL)
            return no_memory(run, "attention_mean");
        attn_spread(run->runtime, run->plan->dims.batch * run->plan->selected_queries, mean_task, run);
    }
    if (wants(run, ATTN_STEP_MASK)) {
        size_t rows = run->plan->dims.batch * run->plan->selected_heads * run->plan->selected_queries;
        step[ATTN_STEP_MASK].data = attn_arena_take(run->arena, rows, run->plan->selected_keys);
        if (step[ATTN_STEP_MASK].data == NULL)
            return no_memory(run, "the mask");
        attn_spread(run->runtime, rows, mask_task, run);
    }
    return ATTN_OK;
}

/* ---- the result ---- */

/* A (batch, heads, len, d) view of an operand. */
static attn_tensor operand_view(const struct attn_operand *operand, const attn_tensor *shape)
{
    attn_tensor view = *shape;
    view.data = (void *)(uintptr_t)operand->data;
    view.stride[0] = operand->batch_stride;
    view.stride[1] = operand->head_stride;
    view.stride[2] = operand->row_stride;
    view.stride[3] = 1;
    return view;
}

static void show_steps(struct layer_run *run)
{
    attn_tensor *step = run->result->step;
    step[ATTN_STEP_Q] = operand_view(&run->q, &step[ATTN_STEP_Q]);
    step[ATTN_STEP_K] = operand_view(&run->k, &step[ATTN_STEP_K]);
    step[ATTN_STEP_V] = operand_view(&run->v, &step[ATTN_STEP_V]);
    step[ATTN_STEP_Q_ROTATED] = operand_view(&run->job.q, &step[ATTN_STEP_Q_ROTATED]);
    step[ATTN_STEP_K_ROTATED] = operand_view(&run->job.k, &step[ATTN_STEP_K_ROTATED]);
    step[ATTN_STEP_PRESENT_KEY] = operand_view(&run->job.k, &step[ATTN_STEP_PRESENT_KEY]);
    step[ATTN_STEP_PRESENT_VALUE] = operand_view(&run->job.v, &step[ATTN_STEP_PRESENT_VALUE]);
    step[ATTN_STEP_CONTEXT] = operand_view(&run->job.context, &step[ATTN_STEP_CONTEXT]);
    step[ATTN_STEP_CONCAT].data = run->context;
    step[ATTN_STEP_GATED].data = run->gated;
    step[ATTN_STEP_PROJECTED].data = run->projected;
    step[ATTN_STEP_RESIDUAL].data = run->summed;
    if (run->plan->dims.query_rank == 4)
        step[ATTN_STEP_OUTPUT] = operand_view(&run->job.context, &step[ATTN_STEP_OUTPUT]);
    else
        step[ATTN_STEP_OUTPUT].data = run->output;
}

attn_status attn_multihead_run(const attn_plan *plan, const attn_request *request, const attn_runtime *runtime,
                               attn_arena *arena, attn_result *result, struct attn_multihead_kept *kept,
                               attn_error *err)
{
    *result = (attn_result){0};
    memcpy(result->step, plan->step, sizeof result->step);
    struct layer_run run = {.plan = plan,
                            .request = request,
                            .runtime = runtime,
                            .arena = arena,
                            .result = result,
                            .err = err,
                            .element = attn_dtype_bytes(plan->compute),
                            .job = attn_describe_job(plan, request)};
    attn_status status = take_products(&run);
    if (status == ATTN_OK)
        status = prepare_inputs(&run);
    if (status == ATTN_OK)
        status = set_operands(&run);
    if (status == ATTN_OK)
        status = prepare_job(&run);
    if (status == ATTN_OK)
        status = run_heads(&run);
    if (status == ATTN_OK)
        status = gate_heads(&run);
    if (status == ATTN_OK)
        status = project_output(&run);
    if (status == ATTN_OK)
        status = finish(&run);
    if (status == ATTN_OK)
        status = reduce_maps(&run);
    if (status == ATTN_OK && attn_is_cancelled(run.runtime))
        status = attn_fail(err, ATTN_ERR_CANCELLED, NULL, "stopped before the end");
    if (status == ATTN_OK)
        show_steps(&run);
    *kept = (struct attn_multihead_kept){.query = run.x_q, .gate = run.gate};
    return status;
}

attn_status attn_plan_run(const attn_plan *plan, const attn_request *request, const attn_runtime *runtime,
                          attn_arena *arena, attn_result *result, attn_error *err)
{
    struct attn_multihead_kept kept;
    attn_status status = attn_plan_check_request(plan, request, err);
    if (status != ATTN_OK)
        return status;
    const uint64_t mode = attn_float_mode_enter();
    status = attn_multihead_run(plan, request, runtime, arena, result, &kept, err);
    attn_float_mode_leave(mode);
    return status;
}
