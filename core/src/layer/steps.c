/*
 * steps.c: what a run keeps: memory for the maps and rows that the heads fill; the mean over heads, the difference of
 * pairs, and the mask as a map; the cache of the next request; the steps of the result.
 */
#include "layer/stages.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"

/* ---- memory of maps and rows ---- */

static void take_map(struct layer_run *run, attn_step step, int which)
{
    if (!layer_wants(run, step))
        return;
    void *given = run->plan->step[step].data;
    run->job.map[which].data = given != NULL ? given : layer_take(run, attn_tensor_count(&run->plan->step[step]));
    run->result->step[step].data = run->job.map[which].data;
}

/* The weights stand in the map of the contribution, unless they are a step of the result themselves. */
static void take_contribution(struct layer_run *run)
{
    attn_tensor *map = &run->result->step[ATTN_STEP_CONTRIBUTION];
    map->data = layer_take(run, attn_tensor_count(map));
    if (!layer_wants(run, ATTN_STEP_ATTENTION))
        run->job.map[MAP_ATTENTION].data = map->data;
}

static void take_maps(struct layer_run *run)
{
    for (int which = MAP_SCORES; which <= MAP_DROPPED; which++)
        take_map(run, attn_step_of_map(which), which);
    if (layer_wants(run, ATTN_STEP_CONTRIBUTION))
        take_contribution(run);
    if (!layer_wants(run, ATTN_STEP_ATTENTION_MEAN) && !layer_wants(run, ATTN_STEP_DIFFERENCE))
        return;
    if (!attn_needs_mean_source(run->request)) {
        run->mean_source = run->job.map[MAP_ATTENTION].data;
        return;
    }
    run->mean_source = layer_take(run, attn_mean_source_count(run->plan));
    run->job.map[MAP_MEAN_SOURCE] = (struct attn_map){.data = run->mean_source, .all_heads = true};
}

static void take_rows(struct layer_run *run, attn_step step, void **rows)
{
    if (!layer_wants(run, step))
        return;
    *rows = layer_take(run, attn_tensor_count(&run->plan->step[step]));
    run->result->step[step].data = *rows;
}

/* (*slots)[item] = its index in the selection, or SIZE_MAX if it is not selected. *slots NULL: all are selected. */
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

void attn_layer_take_maps(struct layer_run *run)
{
    const struct {
        attn_step step;
        void **rows;
    } each[] = {{ATTN_STEP_LSE, &run->job.lse},
                {ATTN_STEP_LSE_KEYS, &run->job.lse_keys},
                {ATTN_STEP_ENTROPY, &run->job.entropy},
                {ATTN_STEP_SINK, &run->job.sink},
                {ATTN_STEP_PRESENT_STATE, &run->job.present_state}};
    take_maps(run);
    for (size_t n = 0; n < sizeof each / sizeof *each; n++)
        take_rows(run, each[n].step, each[n].rows);
    if (layer_goes_on(run))
        run->status = attn_invert_selections(&run->request->options, &run->plan->dims, run->runtime, run->arena,
                                             &run->job, run->err);
}

/* ---- after the heads ---- */

static void mean_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const attn_plan *plan = run->plan;
    const size_t keys = plan->selected_keys, heads = plan->dims.heads, queries = plan->selected_queries;
    const size_t b = index / queries, query = index % queries;
    char *mean = run->result->step[ATTN_STEP_ATTENTION_MEAN].data;
    layer_kernel(run)->mean(heads, queries * keys, keys,
                            run->mean_source + (b * heads * queries + query) * keys * run->element,
                            mean + index * keys * run->element);
}

/* One row of the map of a pair. */
static void difference_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct layer_run *run = argument;
    const attn_plan *plan = run->plan;
    const attn_tensor *factors = run->request->options.differential;
    const size_t keys = plan->selected_keys, queries = plan->selected_queries;
    const size_t pair = index / queries, of_item = pair % (plan->dims.heads / 2); /* pair: of all batch items */
    const char *first = run->mean_source + (2 * pair * queries + index % queries) * keys * run->element;
    const struct attn_branch_sum sum = {
        .x = first + queries * keys * run->element,
        .residual = first,
        .scale = -attn_number_at(factors->data, plan->compute, (ptrdiff_t)of_item * factors->stride[0]),
        .y = (char *)run->result->step[ATTN_STEP_DIFFERENCE].data + index * keys * run->element};
    layer_kernel(run)->add_branch(&sum, keys);
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
        attn_mask_row(attn_mask_of(plan), plan->compute, b, h, i, attn_mask_span(attn_mask_of(plan), b, i), 0, keys,
                      row);
        return;
    }
    for (size_t j = 0; j < keys; j++)
        row[j] = attn_mask_allows(attn_mask_of(plan), plan->compute, b, h, i, attn_selected(&options->keys, j));
}

void attn_layer_reduce_maps(struct layer_run *run)
{
    attn_tensor *step = run->result->step;
    if (layer_wants(run, ATTN_STEP_ATTENTION_MEAN)) {
        step[ATTN_STEP_ATTENTION_MEAN].data = layer_take(run, attn_tensor_count(&step[ATTN_STEP_ATTENTION_MEAN]));
        if (step[ATTN_STEP_ATTENTION_MEAN].data == NULL)
            return;
        attn_spread(run->runtime, run->plan->dims.batch * run->plan->selected_queries, mean_task, run);
    }
    if (layer_wants(run, ATTN_STEP_DIFFERENCE)) {
        const attn_dims *d = &run->plan->dims;
        step[ATTN_STEP_DIFFERENCE].data = layer_take(run, attn_tensor_count(&step[ATTN_STEP_DIFFERENCE]));
        if (step[ATTN_STEP_DIFFERENCE].data == NULL)
            return;
        attn_spread(run->runtime, d->batch * d->heads / 2 * run->plan->selected_queries, difference_task, run);
    }
    if (layer_wants(run, ATTN_STEP_MASK)) {
        size_t rows = run->plan->dims.batch * run->plan->selected_heads * run->plan->selected_queries;
        step[ATTN_STEP_MASK].data = layer_take_of(run, rows, run->plan->selected_keys);
        if (step[ATTN_STEP_MASK].data == NULL)
            return;
        attn_spread(run->runtime, rows, mask_task, run);
    }
}

/* ---- copies ---- */

struct copy {
    const attn_tensor *from, *to; /* of one shape */
    size_t rows;
};

/* Where row number row of the last axis begins. */
static char *row_of(const attn_tensor *tensor, size_t row)
{
    ptrdiff_t at = 0;
    for (int axis = tensor->rank - 2; axis >= 0; axis--) {
        at += (ptrdiff_t)(row % tensor->shape[axis]) * tensor->stride[axis];
        row /= tensor->shape[axis];
    }
    return (char *)tensor->data + at * (ptrdiff_t)attn_dtype_bytes(tensor->dtype);
}

static void copy_row(const struct copy *copy, size_t row)
{
    const int last = copy->to->rank - 1;
    const size_t bytes = attn_dtype_bytes(copy->to->dtype), count = copy->to->shape[last];
    const ptrdiff_t from_step = copy->from->stride[last], to_step = copy->to->stride[last];
    const char *from = row_of(copy->from, row);
    char *to = row_of(copy->to, row);
    if (copy->from->dtype != copy->to->dtype) {
        for (size_t i = 0; i < count; i++)
            attn_number_put(to + (ptrdiff_t)i * to_step * (ptrdiff_t)bytes, copy->to->dtype, 0,
                            attn_number_at(from, copy->from->dtype, (ptrdiff_t)i * from_step));
        return;
    }
    if (from_step == 1 && to_step == 1) {
        memcpy(to, from, count * bytes);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(to + (ptrdiff_t)i * to_step * (ptrdiff_t)bytes, from + (ptrdiff_t)i * from_step * (ptrdiff_t)bytes,
               bytes);
}

static void copy_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct copy *copy = argument;
    const size_t end = attn_min((index + 1) * TOKEN_ROWS, copy->rows);
    for (size_t row = index * TOKEN_ROWS; row < end; row++)
        copy_row(copy, row);
}

/* to[...] = from[...] for two tensors of one shape that do not overlap; from has the type of to, or 16 bits. */
static void copy_tensor(const attn_tensor *from, const attn_tensor *to, const attn_runtime *runtime)
{
    const size_t width = to->shape[to->rank - 1], count = attn_tensor_count(to);
    struct copy copy = {.from = from, .to = to, .rows = width == 0 ? 0 : count / width};
    attn_spread(runtime, attn_ceil_div(copy.rows, TOKEN_ROWS), copy_task, &copy);
}

/* ---- the cache of the next request: the rows of the cache and the new rows ---- */

/* Rows from … to of every head. */
static attn_tensor rows_between(const struct attn_operand *operand, const attn_tensor *all, size_t from, size_t to)
{
    attn_tensor rows = attn_operand_view(operand, all);
    rows.data = (char *)rows.data + (ptrdiff_t)from * rows.stride[2] * (ptrdiff_t)attn_dtype_bytes(rows.dtype);
    rows.shape[2] = to - from;
    return rows;
}

static bool is_same_place(const attn_tensor *a, const attn_tensor *b)
{
    bool is_same = a->data == b->data && a->dtype == b->dtype;
    for (int axis = 0; axis < 3; axis++)
        is_same = is_same && (a->shape[axis] <= 1 || a->stride[axis] == b->stride[axis]);
    return is_same;
}

static void join(struct layer_run *run, const struct attn_keys *keys, attn_step step, struct attn_operand *to)
{
    const attn_tensor *shape = &run->plan->step[step];
    const size_t past_len = keys->past_len, end = shape->shape[2];
    if (shape->data != NULL && shape->stride[3] == 1) {
        *to = attn_operand_of(shape, shape->shape[3]);
    } else {
        const char *data = layer_take(run, attn_tensor_count(shape));
        *to = attn_operand_by_heads(data, run->plan->compute, shape->shape[1], end, shape->shape[3]);
    }
    if (to->data == NULL)
        return;
    const attn_tensor past = rows_between(&keys->past, shape, 0, past_len),
                      to_past = rows_between(to, shape, 0, past_len);
    const attn_tensor added = rows_between(&keys->added, shape, 0, end - past_len);
    const attn_tensor to_added = rows_between(to, shape, past_len, end);
    if (!is_same_place(&past, &to_past))
        copy_tensor(&past, &to_past, run->runtime);
    copy_tensor(&added, &to_added, run->runtime);
}

void attn_layer_present(struct layer_run *run)
{
    const struct attn_heads_job *job = &run->job;
    run->present_k = job->k.added;
    run->present_v = job->v.added;
    if (job->k.past_len == 0)
        return;
    const attn_step keys = layer_wants(run, ATTN_STEP_PRESENT_KEY) ? ATTN_STEP_PRESENT_KEY : ATTN_STEP_K_ROTATED;
    if (layer_wants(run, keys))
        join(run, &job->k, keys, &run->present_k);
    if (layer_goes_on(run) && layer_wants(run, ATTN_STEP_PRESENT_VALUE))
        join(run, &job->v, ATTN_STEP_PRESENT_VALUE, &run->present_v);
}

/* ---- the result ---- */

static void show_steps(struct layer_run *run)
{
    attn_tensor *step = run->result->step;
    step[ATTN_STEP_QUERY_LATENT].data = run->query_latent;
    step[ATTN_STEP_KEY_LATENT].data = run->key_latent;
    step[ATTN_STEP_Q] = attn_operand_view(&run->q, &step[ATTN_STEP_Q]);
    step[ATTN_STEP_K] = attn_operand_view(&run->k, &step[ATTN_STEP_K]);
    step[ATTN_STEP_V] = attn_operand_view(&run->v, &step[ATTN_STEP_V]);
    step[ATTN_STEP_Q_ROTATED] = attn_operand_view(&run->job.q, &step[ATTN_STEP_Q_ROTATED]);
    step[ATTN_STEP_K_ROTATED] = attn_operand_view(&run->present_k, &step[ATTN_STEP_K_ROTATED]);
    step[ATTN_STEP_PRESENT_KEY] = attn_operand_view(&run->present_k, &step[ATTN_STEP_PRESENT_KEY]);
    step[ATTN_STEP_PRESENT_VALUE] = attn_operand_view(&run->present_v, &step[ATTN_STEP_PRESENT_VALUE]);
    step[ATTN_STEP_CONTEXT] = attn_operand_view(&run->job.context, &step[ATTN_STEP_CONTEXT]);
    step[ATTN_STEP_CONCAT].data = run->scaled;
    step[ATTN_STEP_GATED].data = run->gated;
    step[ATTN_STEP_PROJECTED].data = run->projected;
    step[ATTN_STEP_RESIDUAL].data = run->summed;
    step[ATTN_STEP_ATTENTION_OUTPUT].data = run->attended;
    step[ATTN_STEP_FEED_FORWARD].data = run->expanded;
    if (run->plan->dims.query_rank == 4)
        step[ATTN_STEP_OUTPUT] = attn_operand_view(&run->concat, &step[ATTN_STEP_OUTPUT]);
    step[ATTN_STEP_OUTPUT].data = run->output;
}

/* Copies every wanted step that is not yet where the plan wants it, or is of 16 bits like the input that it shows. */
static void place_steps(struct layer_run *run)
{
    for (int step = 0; step < ATTN_STEP_COUNT; step++) {
        attn_tensor to = run->plan->step[step];
        attn_tensor *from = &run->result->step[step];
        if (!layer_wants(run, (attn_step)step) || (to.data == NULL && from->dtype == to.dtype))
            continue;
        if (to.data == NULL)
            to.data = layer_take(run, attn_tensor_count(&to));
        if (to.data == NULL)
            return;
        if (from->data != to.data)
            copy_tensor(from, &to, run->runtime);
        *from = to;
    }
}

void attn_layer_hand_over(struct layer_run *run)
{
    show_steps(run);
    place_steps(run);
    if (layer_goes_on(run) && attn_is_cancelled(run->runtime))
        run->status = attn_fail_stopped(run->err);
}
