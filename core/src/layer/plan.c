/* plan.c: checks a request, and computes its dimensions, masks, kept steps, bytes and FLOPs. */
#include "layer/stages.h"

#include <math.h>

#include "base/check.h"
#include "base/parallel.h"
#include "base/size.h"
#include "formulas/formulas.h"

/* ---- what a plan and its runs must agree on ---- */

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
    if (request->weights.relative_key.weight != NULL)
        slots += attn_projection_of(&request->weights, dims, PROJECT_RELATIVE_KEY).slices;
    if (request->weights.relative_query.weight != NULL)
        slots += attn_projection_of(&request->weights, dims, PROJECT_RELATIVE_QUERY).slices;
    return slots;
}

size_t attn_layer_products_scratch_bytes(const attn_kernel *kernel, const attn_request *request)
{
    const attn_dtype compute = request->options.compute;
    return attn_products_scratch_bytes(kernel, compute, attn_projection_narrow_inner(&request->weights, compute));
}

/* The mean and differences are of all heads, so the kept attention map is enough, unless it has a selection of heads. */
bool attn_needs_mean_source(const attn_request *request)
{
    const attn_options *options = &request->options;
    return (attn_wants(options, ATTN_STEP_ATTENTION_MEAN) || attn_wants(options, ATTN_STEP_DIFFERENCE)) &&
           (!attn_wants(options, ATTN_STEP_ATTENTION) || !attn_selects_all(&options->heads));
}

/* The same as a double, which cannot overflow, for a plan whose size is not checked yet. */
static double mean_source_numbers(const attn_plan *plan)
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

struct attn_heads_job attn_describe_job(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const attn_options *options = &plan->request.options;
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
        .v.is_shared = d->v_heads != d->kv_heads,
        .gathers = gathers(&plan->request),
        .compute = plan->compute,
        .bf16_products = options->bf16_products,
        .mask = attn_mask_of(plan),
        .options = options,
        .scale = plan->scale,
        .dropout = options->dropout_attention ? options->dropout : 0,
        .kept_heads = plan->selected_heads,
        .kept_queries = plan->selected_queries,
        .kept_keys = plan->selected_keys,
    };
}

/* ---- the steps to keep, and their size ---- */

/* Removes the first axis if tokens have no batch. */
static attn_tensor shape_tokens(const attn_plan *plan, size_t len, size_t features)
{
    const attn_dims *d = &plan->dims;
    const int skip = d->query_rank == 2 ? 1 : 0;
    const size_t shape[3] = {d->batch, len, features};
    return attn_tensor_view(NULL, plan->compute, 3 - skip, shape + skip);
}

static attn_tensor shape_of(const attn_plan *plan, attn_axes axes)
{
    const attn_dims *d = &plan->dims;
    const size_t new_len = attn_new_len(d), queries = plan->selected_queries, keys = plan->selected_keys;
    switch (axes) {
    case ATTN_AXES_QUERY_LATENT:
        return shape_tokens(plan, d->q_len, d->d_query_latent);
    case ATTN_AXES_KEY_LATENT:
        return shape_tokens(plan, new_len, d->d_key_latent);
    case ATTN_AXES_Q:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->heads, d->q_len, d->d_k});
    case ATTN_AXES_NEW_K:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->kv_heads, new_len, d->d_k});
    case ATTN_AXES_NEW_V:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->v_heads, new_len, d->d_v});
    case ATTN_AXES_K:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->kv_heads, d->kv_len, d->d_k});
    case ATTN_AXES_V:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->v_heads, d->kv_len, d->d_v});
    case ATTN_AXES_MAP:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, plan->selected_heads, queries, keys});
    case ATTN_AXES_MEAN:
        return attn_tensor_view(NULL, plan->compute, 3, (size_t[]){d->batch, queries, keys});
    case ATTN_AXES_PAIRS:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->heads / 2, queries, keys});
    case ATTN_AXES_ROWS:
        return attn_tensor_view(NULL, plan->compute, 3, (size_t[]){d->batch, d->heads, d->q_len});
    case ATTN_AXES_STATE:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->kv_heads, d->d_k, d->d_v});
    case ATTN_AXES_CONTEXT:
        return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->heads, d->q_len, d->d_v});
    case ATTN_AXES_CONCAT:
        return shape_tokens(plan, d->q_len, d->out_heads * d->d_v);
    case ATTN_AXES_TOKENS:
        return shape_tokens(plan, d->q_len, d->d_attended);
    case ATTN_AXES_OUTPUT:
        break;
    }
    if (d->query_rank != 4)
        return shape_tokens(plan, d->q_len, d->d_out);
    return attn_tensor_view(NULL, plan->compute, 4, (size_t[]){d->batch, d->out_heads, d->q_len, d->d_v});
}

/* Sizes are products in double, because a size_t could overflow. */
static bool weigh_results(attn_plan *plan, struct attn_check *check)
{
    double bytes = 0;
    plan->step[ATTN_STEP_OUTPUT] = shape_of(plan, ATTN_AXES_OUTPUT);
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        if (!(plan->want >> step & 1))
            continue;
        attn_tensor *tensor = &plan->step[step];
        *tensor = shape_of(plan, attn_step_axes((attn_step)step));
        if (attn_step_values((attn_step)step) == ATTN_VALUES_FLAGS)
            tensor->dtype = ATTN_BOOL;
        double own = (double)attn_dtype_bytes(tensor->dtype);
        for (int axis = 0; axis < tensor->rank; axis++)
            own *= (double)tensor->shape[axis];
        bytes += own;
        if (bytes > (double)((size_t)1 << 52))
            return attn_refuse(check, ATTN_ERR_TOO_LARGE, "options.want", "\"%s\" would take %.3g bytes",
                               attn_step_name((attn_step)step), own);
        plan->step_bytes[step] = (size_t)own;
    }
    plan->result_bytes = (size_t)bytes;
    return true;
}

static double product_flops(double rows, double inner, double columns)
{
    return 2 * rows * inner * columns;
}

/* The cost of a pair without its products, measured with few features per head, and rounded up. */
static double flops_of_a_pair(const attn_request *request, const attn_mask *mask)
{
    const attn_options *options = &request->options;
    double flops = 100 + (attn_caps_scores(options) ? 100 : 0) + (attn_mask_has_lookup(mask) ? 200 : 0) +
                   (attn_has_distance_bias(options) ? 30 : 0) + (attn_relative_table(request) != NULL ? 100 : 0);
    if (options->dropout > 0)
        flops += 400;
    if (attn_wants(options, ATTN_STEP_SCORES) || attn_wants(options, ATTN_STEP_SCALED))
        flops += 400;
    return flops;
}

/* The numbers of the tables of relative positions that a layer makes. */
static double relative_table_numbers(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const double rows = (double)attn_relative_rows_of(&plan->request, attn_mask_of(plan)).count;
    return rows * (double)d->d_k *
           ((plan->request.weights.relative_key.weight != NULL ? (double)d->kv_heads : 0) +
            (plan->request.weights.relative_query.weight != NULL ? (double)d->heads : 0));
}

/*
 * How often a run looks the whole mask up. The tile kernel asks whether a tile is hidden, and then for its rows. The
 * steps scores and scaled cost one more lookup, and so does mask. Feature maps look the mask up four times: for the
 * keys that are read, for rows without keys, for the sums and for the map. A recurrence looks at the diagonal alone.
 */
static double looks(const attn_request *request)
{
    const attn_options *options = &request->options;
    double times = attn_is_recurrent(options) ? 0 : attn_has_feature_maps(options) ? 4 : 2;
    times += attn_wants(options, ATTN_STEP_SCORES) || attn_wants(options, ATTN_STEP_SCALED);
    return times + attn_wants(options, ATTN_STEP_MASK);
}

static void weigh_work(const attn_request *request, attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const double queries = (double)d->batch * (double)d->q_len, keys = (double)d->batch * (double)attn_new_len(d);
    const double heads = (double)d->heads, kv_heads = (double)d->kv_heads, d_k = (double)d->d_k, d_v = (double)d->d_v;
    attn_flops *f = &plan->flops;
    if (request->is_layer)
        f->projections =
            product_flops(queries, (double)attn_query_inner(d), heads * d_k) +
            product_flops(keys, (double)attn_key_inner(d), kv_heads * (d_k - (double)d->d_shared)) +
            product_flops(keys, (double)attn_value_inner(d), kv_heads * d_v) +
            product_flops(queries, (double)d->d_query, heads * (double)d->d_gate + (double)d->d_query_latent) +
            product_flops(keys, (double)d->d_key, (double)(d->d_key_latent + d->d_shared));
    plan->pairs = attn_mask_pairs(attn_mask_of(plan), request->watch);
    const bool has_feature_maps = attn_has_feature_maps(&request->options);
    if (has_feature_maps)
        attn_find_running_sums(attn_mask_of(plan), request->watch, &plan->has_running_sums, &plan->has_prefix_sums);
    const bool starts = attn_start_of(&request->inputs) != NULL;
    const bool is_recurrent = attn_is_recurrent(&request->options);
    f->attention = starts             ? attn_starts_flops(plan)
                   : is_recurrent     ? attn_recurrence_flops(plan)
                   : has_feature_maps ? attn_feature_maps_flops(plan)
                                      : plan->pairs * (2 * (d_k + d_v) + 8);
    f->attention += product_flops(attn_relative_numbers(plan), d_k, 1);
    if (request->options.relative_position.embedding != NULL)
        f->projections += product_flops(relative_table_numbers(plan),
                                        (double)request->options.relative_position.embedding->shape[1], 1);
    if (request->weights.output.weight != NULL)
        f->output_projection = product_flops(queries, heads * d_v, (double)d->d_attended);
    if (attn_has_feed_forward(d)) {
        const double d_ff = (double)d->d_ff, gates = request->weights.feed_forward.gate.weight != NULL ? 2 : 1;
        f->feed_forward = product_flops(queries, (double)attn_feed_forward_d_in(request, d), gates * d_ff) +
                          product_flops(queries, d_ff, (double)d->d_out) + queries * d_ff * 30 +
                          attn_experts_flops(request, d);
    }
    f->rest = queries * (double)attn_max(d->d_attended, d->d_out) * 8 + attn_qk_flops(plan);
    f->rest += d->d_gate > 0 ? queries * heads * d_v * 20 : 0;
    f->rest += attn_contribution_flops(plan);
    if (attn_is_edited(request, ATTN_EDIT_ATTENTION))
        f->rest += queries * heads * (double)d->kv_len * d_v * 8; /* plain loops */
    f->rest += attn_combines_heads(&request->options) ? queries * heads * d_v : 0;
    if (attn_wants(&request->options, ATTN_STEP_DIFFERENCE))
        f->rest += 2 * mean_source_numbers(plan);
    plan->total_flops = f->projections + f->attention + f->output_projection + f->feed_forward + f->rest;
    const bool by_pairs = request->options.mechanism.type == ATTN_SOFTMAX;
    const double of_pairs = by_pairs ? plan->pairs * flops_of_a_pair(request, attn_mask_of(plan)) : 0;
    const double of_looks = attn_mask_lookup_flops(attn_mask_of(plan), request->watch) * looks(request);
    plan->time_flops = (plan->total_flops + of_pairs + of_looks) * (plan->compute == ATTN_F64 ? 2 : 1);
    if (starts)
        plan->time_flops += attn_starts_time_flops(plan);
    if (is_recurrent)
        plan->time_flops += attn_recurrence_time_flops(plan);
}

/* ---- memory ---- */

enum { TAKES_MAX = 64 }; /* an upper bound of the blocks that one run takes from the arena */

/* After the heads, without a feed-forward network: at most one array per stage. The last one may be a wanted step. */
static size_t token_numbers(const attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const attn_options *options = &plan->request.options;
    const size_t context = d->batch * d->q_len * d->heads * d->d_v, out = d->batch * d->q_len * d->d_attended;
    size_t stages = plan->request.weights.output.weight != NULL;
    stages += attn_changes_sum(options);
    stages += attn_is_post_normed(options);
    size_t numbers = context + stages * out;
    if (attn_combines_heads(options))
        numbers += context;
    if (d->d_gate > 0) /* the gate, and its product with concat */
        numbers += d->batch * d->q_len * d->heads * (d->d_gate + d->d_v);
    const attn_step last = attn_has_feed_forward(d) ? ATTN_STEP_ATTENTION_OUTPUT : ATTN_STEP_OUTPUT;
    return attn_wants(options, last) ? numbers - (stages > 0 ? out : context) : numbers;
}

/* The latents, before and after their norm, the features that key heads share, and those of keys without these. */
static size_t latent_numbers(const attn_request *request, const attn_dims *d)
{
    const size_t copies = request->options.latent_norm != ATTN_NORM_NONE ? 2 : 1;
    const size_t own = d->d_shared > 0 ? d->kv_heads * (d->d_k - d->d_shared) : 0;
    return d->batch *
           (d->q_len * copies * d->d_query_latent + attn_new_len(d) * (copies * d->d_key_latent + d->d_shared + own));
}

static void weigh_memory(attn_plan *plan)
{
    const attn_dims *d = &plan->dims;
    const attn_request *request = &plan->request;
    const size_t element = attn_dtype_bytes(plan->compute);
    size_t numbers = token_numbers(plan);
    if (request->is_layer)
        numbers += d->batch * (d->q_len * d->heads * d->d_k + attn_new_len(d) * d->kv_heads * (d->d_k + d->d_v)) +
                   latent_numbers(request, d);
    if (attn_is_pre_normed(&request->options))
        numbers += d->batch * d->q_len * d->d_query;
    if (attn_needs_mean_source(request))
        numbers += attn_mean_source_count(plan);
    numbers += attn_feed_forward_numbers(request, d);
    numbers += attn_distance_bias_count(&request->options, attn_mask_of(plan)) + (size_t)relative_table_numbers(plan);
    struct attn_heads_job job = attn_describe_job(plan);
    for (int which = MAP_SCORES; which <= MAP_DROPPED; which++)
        job.map[which].data = attn_wants(&request->options, attn_step_of_map(which)) ? plan : NULL;
    if (attn_wants(&request->options, ATTN_STEP_CONTRIBUTION))
        job.map[MAP_ATTENTION].data = plan;
    job.map[MAP_MEAN_SOURCE].data = attn_needs_mean_source(request) ? plan : NULL;
    const bool has_feature_maps = attn_has_feature_maps(&request->options);
    const bool starts = attn_start_of(&request->inputs) != NULL;
    const bool is_recurrent = attn_is_recurrent(&request->options);
    const struct attn_bytes bytes = starts             ? attn_starts_bytes(&job)
                                    : is_recurrent     ? attn_recurrence_bytes(plan)
                                    : has_feature_maps ? attn_feature_maps_bytes(plan)
                                                       : attn_heads_bytes(&job);
    const struct attn_bytes relative = attn_relative_bytes(plan);
    plan->scratch_bytes = bytes.scratch + relative.scratch + attn_qk_scratch_bytes(plan);
    if (request->is_layer)
        plan->scratch_bytes += attn_layer_products_scratch_bytes(NULL, request);
    plan->working_bytes = numbers * element + attn_experts_bytes(request, d) + attn_contribution_bytes(plan) +
                          attn_edits_bytes(request, d) + bytes.shared + relative.shared + attn_qk_bytes(plan) +
                          attn_product_slots(request, d) * sizeof(struct attn_product) +
                          (d->heads + d->q_len + d->kv_len) * sizeof(size_t) + (size_t)TAKES_MAX * 1024;
}

/* ---- checks ---- */

/* The limit holds for empty tensors too, so that a request without data cannot cause a long loop over heads. */
enum { HEADS_MAX = 1 << 20 };

static bool check_sizes(const attn_plan *plan, struct attn_check *check)
{
    const attn_dims *d = &plan->dims;
    const size_t sizes[] = {d->batch,   d->q_len, d->kv_len,     d->d_query,        d->d_key,
                            d->d_value, d->d_out, d->d_attended, d->heads * d->d_k, d->heads * d->d_v};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        if (sizes[s] > DIMENSION_MAX)
            return attn_refuse(check, ATTN_ERR_TOO_LARGE, "inputs", "a dimension is %zu; at most %zu can be counted",
                               sizes[s], DIMENSION_MAX);
    const size_t latents = d->d_query_latent + d->d_key_latent + d->d_shared;
    const size_t widest = attn_max(attn_max(d->d_attended, d->d_out), latents);
    size_t count;
    if (d->batch > HEADS_MAX / d->heads)
        return attn_refuse(check, ATTN_ERR_TOO_LARGE, "inputs", "%zu batch items of %zu heads; at most %d heads in all",
                           d->batch, d->heads, HEADS_MAX);
    if (!attn_shape_count(
            3, (size_t[]){d->batch * d->heads, d->q_len > d->kv_len ? d->q_len : d->kv_len, d->d_k + d->d_v + widest},
            &count) ||
        count > ATTN_NUMBERS_MAX)
        return attn_refuse(check, ATTN_ERR_TOO_LARGE, "inputs", "the request has too many elements");
    return true;
}

/* Ranks are checked first, because all code that reads a shape relies on them. */
static bool check_ranks(const attn_request *request, struct attn_check *check)
{
    const struct attn_tensor_row *row;
    for (size_t n = 0; (row = attn_tensor_row_at(n)) != NULL; n++) {
        const attn_tensor *tensor = attn_tensor_of(request, row);
        if (tensor != NULL && (tensor->rank < 0 || tensor->rank > ATTN_REQUEST_RANK))
            return attn_refuse(check, ATTN_ERR_SHAPE, row->path, "~ has rank %d; a tensor has a rank from 0 to %d",
                               tensor->rank, ATTN_REQUEST_RANK);
    }
    return true;
}

/* Working memory that is not bounded by a small multiple of the inputs and results. */
static bool check_work(const attn_request *request, const attn_plan *plan, struct attn_check *check)
{
    double numbers = attn_has_feature_maps(&request->options) ? attn_feature_maps_numbers(plan) : 0;
    if (attn_needs_mean_source(request))
        numbers += mean_source_numbers(plan);
    numbers += 2 * (double)plan->dims.batch * (double)plan->dims.q_len * (double)plan->dims.d_ff;
    numbers += attn_experts_numbers(request, &plan->dims);
    numbers += attn_relative_numbers(plan) + relative_table_numbers(plan);
    if (numbers > (double)ATTN_NUMBERS_MAX)
        return attn_refuse(check, ATTN_ERR_TOO_LARGE, "inputs", "the run would work with %.3g numbers", numbers);
    return true;
}

static bool resolve_masks(const attn_request *request, attn_plan *plan, struct attn_check *check)
{
    const attn_dims *d = &plan->dims;
    attn_mask mask;
    if (!attn_mask_resolve(&plan->request.masks, d->batch, d->heads, d->q_len, d->kv_len, plan->compute, request->watch,
                           &mask, check))
        return false;
    if (request->masks.align == ATTN_ALIGN_PAST && request->masks.offset == NULL)
        mask.base_offset += (int64_t)d->past_len;
    if (request->inputs.scores != NULL)
        mask.scores = request->inputs.scores->data;
    attn_mask_put(&mask, plan);
    return true;
}

static bool check_all(const attn_request *request, attn_plan *plan, struct attn_check *check)
{
    return check_ranks(request, check) && attn_options_check_alone(request, check) &&
           attn_edits_check(request, check) && attn_dims_read(request, &plan->dims, check) &&
           attn_experts_read(request, &plan->dims, check) && check_sizes(plan, check) &&
           attn_options_check(request, plan, check) && resolve_masks(request, plan, check) &&
           attn_score_bias_check(request, plan, check) && weigh_results(plan, check) &&
           check_work(request, plan, check);
}

attn_status attn_plan_make(const attn_request *request, attn_plan *plan, attn_error *err)
{
    return attn_plan_make_named(request, NULL, plan, err);
}

attn_status attn_plan_make_named(const attn_request *request, attn_namer *names, attn_plan *plan, attn_error *err)
{
    const attn_options *options = &request->options;
    struct attn_check check = {.request = request, .names = names, .err = err};
    *plan = (attn_plan){.compute = options->compute, .want = options->want};
    plan->request = *request;
    plan->request.watch = NULL;
    plan->request.masks.causal = request->masks.causal || attn_is_recurrent(options);
    if (!check_all(request, plan, &check))
        return check.status;
    const attn_mechanism *mechanism = &options->mechanism;
    const bool has_no_scale =
        attn_start_of(&request->inputs) != NULL || (mechanism->type == ATTN_LINEAR && !mechanism->is_unnormalised);
    const double terms = 1 + (double)attn_has_relative_key(request) + (double)attn_has_relative_query(request);
    plan->scale = options->has_scale ? options->scale : has_no_scale ? 1 : 1 / sqrt((double)plan->dims.d_k * terms);
    weigh_work(request, plan);
    if (attn_is_stopped(request->watch))
        return attn_fail_stopped(err);
    weigh_memory(plan);
    return ATTN_OK;
}

size_t attn_plan_bytes(const attn_plan *plan, size_t threads)
{
    return plan->result_bytes + plan->working_bytes + threads * plan->scratch_bytes;
}
