/* block.c: one block of a model for one item. */
#include "service/run/model/item.h"

#include <string.h>

#include "attn/multihead.h"
#include "base/array.h"
#include "codec/answer/reduce.h"
#include "codec/request/envelope.h"

/* Whether the maps of the block are needed for rollout, head scores or times. */
static bool reads_maps(const struct model_block_run *run)
{
    return run->part->rollout != NULL || run->part->head_scores[0] != NULL || model_times_reads(run);
}

/* Whether all maps are needed, whatever is shown of them. */
static bool needs_maps(const struct model_block_run *run)
{
    return reads_maps(run) || run->edits.places >> ATTN_EDIT_ATTENTION & 1;
}

/* ---- what a block computes ---- */

/*
 * Leaves out the elements from length on. If none remains, choice->is_empty is set, because an empty attn_selection
 * would select everything.
 */
static bool clip(struct model_job *job, const attn_selection *given, size_t length, struct model_choice *choice)
{
    *choice = (struct model_choice){.is_empty = false};
    if (given->items == NULL) {
        const size_t left = given->first < length ? length - given->first : 0;
        choice->is_empty = given->count > 0 && left == 0;
        choice->selection = (attn_selection){.count = given->count < left ? given->count : left,
                                             .first = choice->is_empty ? 0 : given->first};
        return true;
    }
    size_t *items = outcome_take(&job->outcome, given->count, sizeof *items);
    size_t *places = outcome_take(&job->outcome, given->count, sizeof *places), kept = 0;
    if (outcome_has_failed(&job->outcome))
        return false;
    for (size_t i = 0; i < given->count; i++)
        if (given->items[i] < length) {
            items[kept] = given->items[i];
            places[kept++] = i;
        }
    choice->is_empty = kept == 0;
    if (!choice->is_empty) {
        choice->selection = (attn_selection){.items = items, .count = kept};
        choice->places = places;
    }
    return true;
}

/* The steps of the request that this block shows. */
static attn_steps shown_steps(const struct model_block_run *run)
{
    attn_steps steps = run->place != SIZE_MAX ? run->part->wanted : 0;
    if (run->queries.is_empty || run->keys.is_empty)
        for (int step = 0; step < ATTN_STEP_COUNT; step++)
            steps &= attn_step_has_keys((attn_step)step) ? ~ATTN_STEP_BIT(step) : ~(attn_steps)0;
    return steps;
}

/* The request's selections; whole maps where something else needs them. */
static void select_maps(struct model_block_run *run, bool is_whole)
{
    attn_options *options = &run->envelope.request.options;
    const attn_selection all = {.items = NULL};
    options->heads = is_whole ? all : run->part->shown->heads;
    options->queries = is_whole ? all : run->queries.selection;
    options->keys = is_whole ? all : run->keys.selection;
}

static bool set_inputs(struct model_block_run *run, size_t q_len, size_t kv_len)
{
    const attn_dtype compute = run->envelope.request.options.compute;
    const attn_dims *dims = &run->block->facts.dims;
    attn_tensor *inputs = outcome_take(&run->job->outcome, 2, sizeof *inputs);
    if (inputs == NULL)
        return false;
    inputs[0] = attn_tensor_view(NULL, compute, 3, (const size_t[]){1, q_len, dims->d_query});
    inputs[1] = attn_tensor_view(NULL, compute, 3, (const size_t[]){1, kv_len, dims->d_key});
    run->envelope.request.inputs = (attn_inputs){.query = &inputs[0], .key = run->block->is_cross ? &inputs[1] : NULL};
    return true;
}

static bool make_plan(struct model_block_run *run)
{
    return outcome_note(&run->job->outcome, envelope_plan(&run->envelope, &run->plan, run->job->outcome.err));
}

static bool make_plans(struct model_block_run *run)
{
    const attn_steps steps = shown_steps(run);
    struct envelope *envelope = &run->envelope;
    attn_options *options = &envelope->request.options;
    options->want = ATTN_STEP_BIT(ATTN_STEP_OUTPUT) | steps | model_attribution_steps(run) |
                    (needs_maps(run) ? ATTN_STEP_BIT(ATTN_STEP_ATTENTION) : 0);
    select_maps(run, false);
    if (run->selects_later) /* weights are edited in whole maps alone */
        envelope->request.edits = NULL;
    const bool is_ok =
        make_plan(run) && outcome_note(&run->job->outcome, reduce_plan(envelope, &run->plan, steps, run->job->is_binary,
                                                                       &run->shown, run->job->outcome.err));
    if (!is_ok || !run->selects_later)
        return is_ok;
    select_maps(run, true);
    envelope->request.edits = run->edits.places != 0 ? &run->edits : NULL;
    return make_plan(run);
}

bool model_block_plan(struct model_block_run *run, size_t q_len, size_t kv_len, bool shapes_only)
{
    struct model_job *job = run->job;
    const attn_options *options = &job->request->common.request.options;
    const struct model_selections *given = run->part->shown;
    run->queries.selection = given->queries;
    run->keys.selection = given->keys;
    const bool is_ok =
        (run->is_longest ||
         (clip(job, &given->queries, q_len, &run->queries) && clip(job, &given->keys, kv_len, &run->keys))) &&
        outcome_note(&job->outcome,
                     envelope_decode_base(&run->block->source, ENVELOPE_LAYER, options->compute, shapes_only,
                                          job->outcome.arena, &run->envelope, job->outcome.err));
    run->envelope.request.options.bf16_products = options->bf16_products;
    if (!is_ok || !set_inputs(run, q_len, kv_len) || !model_edit_block(run, q_len, kv_len))
        return false;
    run->envelope.reduction = job->request->common.reduction;
    run->envelope.request.watch = job->runtime;
    run->selects_later = needs_maps(run) && !(attn_selects_all(&given->heads) && attn_selects_all(&given->queries) &&
                                              attn_selects_all(&given->keys));
    return make_plans(run);
}

/* ---- weight ---- */

double model_converted_bytes(const struct model_job *job, const struct envelope_source *source, envelope_kind kind)
{
    const attn_dtype compute = model_job_compute(job);
    double bytes = 0;
    for (size_t i = 0; i < source->count; i++)
        if (source->attachments[i].tensor.dtype == ATTN_U8) /* two numbers of 4 bits, as bfloat16 or double */
            bytes += 2 * (double)attn_tensor_count(&source->attachments[i].tensor) * (double)attn_dtype_bytes(compute);
        else if (!model_reads_as_it_is(&source->attachments[i].tensor, compute) ||
                 (envelope_is_gradients(kind) && source->attachments[i].tensor.dtype != compute))
            bytes += (double)attn_tensor_count(&source->attachments[i].tensor) * (double)attn_dtype_bytes(compute);
    return bytes;
}

/* ---- run ---- */

static bool has_output_shape(const attn_tensor *step, const attn_tensor *output)
{
    bool is_same = step->dtype == output->dtype && step->rank + 1 == output->rank;
    for (int axis = 1; axis < step->rank && is_same; axis++)
        is_same = step->shape[axis] == output->shape[axis + 1];
    return is_same;
}

/* The run writes maps into their outputs, where these have the same shape and type. All others are copied later. */
static void place_maps(struct model_block_run *run)
{
    static const attn_step maps[] = {ATTN_STEP_SCORES, ATTN_STEP_SCALED, ATTN_STEP_MASKED, ATTN_STEP_ATTENTION,
                                     ATTN_STEP_DROPPED};
    if (run->selects_later || run->envelope.reduction.has_pool)
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(maps); i++) {
        const attn_step step = maps[i];
        if (!(run->shown.want & ATTN_STEP_BIT(step)) || reduce_keeps_top(&run->envelope.reduction, (int)step))
            continue;
        const attn_tensor *output = &run->part->steps[step]->tensor;
        if (has_output_shape(&run->plan.step[step], output))
            run->plan.step[step].data = model_copy_place(output, run->place, run->item);
    }
}

static bool show_steps(struct model_block_run *run, attn_result *result)
{
    struct model_job *job = run->job;
    bool goes_on = (!run->selects_later || model_maps_select(run, result)) &&
                   outcome_note(&job->outcome, reduce_result(&run->envelope, &run->plan, &run->shown, job->runtime,
                                                             job->outcome.arena, result, job->outcome.err));
    const bool has_places = !run->envelope.reduction.has_pool;
    struct pace pace = pace_begin(job->outcome.arena);
    for (int step = 0; step < ATTN_STEP_COUNT && goes_on; step++) {
        if (!(run->shown.want & ATTN_STEP_BIT(step)) || run->plan.step[step].data != NULL)
            continue;
        const bool is_map = attn_step_has_keys((attn_step)step) && has_places;
        const bool keeps_top = reduce_keeps_top(&run->envelope.reduction, step);
        const struct model_copy copy = {.layer = run->place,
                                        .item = run->item,
                                        .query_places = is_map ? run->queries.places : NULL,
                                        .key_places = is_map && !keeps_top ? run->keys.places : NULL,
                                        .pace = &pace};
        const attn_tensor *indices = &run->envelope.reduction.top_indices;
        goes_on = (model_copy_step(&copy, &result->step[step], &run->part->steps[step]->tensor) &&
                   (!keeps_top || model_copy_step(&copy, indices, &run->part->indices->tensor))) ||
                  model_job_fail_cancelled(job);
    }
    return goes_on;
}

/* The experts of the selected queries, which the item has. */
static void show_experts(const struct model_block_run *run, const attn_result *result)
{
    const struct model_part *part = run->part;
    const attn_tensor *chosen = &result->expert_indices, *weights = &result->expert_weights;
    if (part->expert_indices == NULL || run->place == SIZE_MAX || chosen->data == NULL || run->queries.is_empty)
        return;
    const attn_selection *queries = &run->queries.selection;
    const size_t each = chosen->shape[2], element = attn_dtype_bytes(weights->dtype);
    const size_t count = attn_selects_all(queries) ? chosen->shape[1] : queries->count;
    const attn_tensor *to[] = {&part->expert_indices->tensor, &part->expert_weights->tensor};
    char *const places[] = {model_copy_place(to[0], run->place, run->item),
                            model_copy_place(to[1], run->place, run->item)};
    for (size_t i = 0; i < count; i++) {
        const size_t from = (attn_selects_all(queries) ? i : attn_selected(queries, i)) * each;
        const size_t at = (run->queries.places != NULL ? run->queries.places[i] : i) * to[0]->shape[3];
        memcpy(places[0] + at * sizeof(int64_t), (const int64_t *)chosen->data + from, each * sizeof(int64_t));
        memcpy(places[1] + at * element, (const char *)weights->data + from * element, each * element);
    }
}

static bool plan_and_run(struct model_block_run *run, const attn_tensor *hidden, const attn_tensor *encoded, void *next)
{
    struct model_job *job = run->job;
    const attn_bindings inputs = {.query = hidden->data, .key = encoded != NULL ? encoded->data : NULL};
    if (!model_block_plan(run, hidden->shape[0], encoded != NULL ? encoded->shape[0] : hidden->shape[0], false))
        return false;
    attn_result result;
    place_maps(run);
    if (!outcome_note(&job->outcome,
                      attn_plan_run(&run->plan, &inputs, job->runtime, job->outcome.arena, &result, job->outcome.err)))
        return false;
    const attn_tensor *output = &result.step[ATTN_STEP_OUTPUT];
    memcpy(next, output->data, attn_tensor_count(output) * attn_dtype_bytes(output->dtype));
    show_experts(run, &result);
    return model_attribution_keep(run, &result) &&
           (!reads_maps(run) || model_maps_read(run, &result.step[ATTN_STEP_ATTENTION])) && show_steps(run, &result);
}

bool model_block_run(struct model_job *job, const struct model_block *block, struct model_part *part, size_t item,
                     const attn_tensor *hidden, const attn_tensor *encoded, void *next)
{
    struct model_block prepared_block = *block;
    struct model_block_run run = {.job = job,
                                  .block = &prepared_block,
                                  .part = part,
                                  .place = model_part_place(part, block->layer),
                                  .item = item};
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    struct prepared_weights *prepared = NULL;
    progress_rename(job->progress, PROGRESS_PREPARING);
    if (model_job_compute(job) == block->facts.compute)
        prepared = prepared_weights_take(job->prepared, &job->version->slots[block->slot], &block->facts, job->runtime,
                                         job->outcome.arena, &prepared_block.source);
    progress_rename(job->progress, PROGRESS_LAYER);
    const bool is_ok = plan_and_run(&run, hidden, block->is_cross ? encoded : NULL, next);
    progress_add(job->progress, PROGRESS_LAYER, 1, 0);
    prepared_weights_release(prepared);
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}
