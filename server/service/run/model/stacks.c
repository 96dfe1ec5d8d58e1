/* stacks.c: runs a model on a batch, item by item. */
#include "service/run/model/item.h"

#include <string.h>

/* ---- one stack for one item ---- */

struct stack_run {
    struct model_job *job;
    const struct model_stack *stack;
    struct model_part *part; /* of the stack's attention to itself; that to the encoder follows it */
    size_t item;
    const attn_tensor *encoded;
};

/* hidden[place] of the item, (count, d). */
static bool put_hidden(const struct stack_run *run, const attn_tensor *hidden, size_t place)
{
    struct pace pace = pace_begin(run->job->outcome.arena);
    const struct model_copy copy = {.layer = place, .item = run->item, .pace = &pace};
    attn_tensor batched =
        attn_tensor_view(hidden->data, hidden->dtype, 3, (const size_t[]){1, hidden->shape[0], hidden->shape[1]});
    return run->part->hidden == NULL || model_copy_step(&copy, &batched, &run->part->hidden->tensor) ||
           model_job_fail_cancelled(run->job);
}

/* Shows the output of a layer. The last one is shown behind the final norm, if transformers does so. */
static bool show_layer(const struct stack_run *run, size_t layer, const attn_tensor *hidden)
{
    struct model_job *job = run->job;
    const size_t place = model_part_place(run->part, layer);
    const bool has_lens = job->lens.ids != NULL && run->part->stack == job->last_stack;
    const bool is_last = layer + 1 == run->stack->layers;
    if (place == SIZE_MAX || (run->part->hidden == NULL && !has_lens))
        return true;
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    attn_tensor normed;
    const bool is_ok = model_norm(job, run->stack, hidden, &normed) &&
                       put_hidden(run, is_last && run->stack->norm_in_hidden ? &normed : hidden, place + 1) &&
                       (!has_lens || model_predict(job, &normed, place, run->item, &job->lens));
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

static bool take_flow(const struct stack_run *run, size_t n)
{
    struct model_part *part = run->part;
    double **const each[] = {&part->flow[0], &part->flow[1], &part->flow_work};
    part->has_flow = false;
    for (size_t i = 0; i < 3 && part->rollout != NULL; i++)
        *each[i] = outcome_take(&run->job->outcome, n * n, sizeof(double));
    return !outcome_has_failed(&run->job->outcome);
}

/* Runs the blocks from those of a layer on. */
static bool run_blocks(const struct stack_run *run, size_t layer, attn_tensor *hidden)
{
    struct model_job *job = run->job;
    const struct model_stack *stack = run->stack;
    void *next = outcome_take(&job->outcome, attn_tensor_count(hidden), attn_dtype_bytes(hidden->dtype));
    bool goes_on = take_flow(run, hidden->shape[0]);
    for (size_t i = 0; i < stack->block_count && goes_on; i++) {
        const struct model_block *block = &stack->blocks[i];
        if (block->layer < layer)
            continue;
        goes_on =
            model_block_run(job, block, run->part + (block->is_cross ? 1 : 0), run->item, hidden, run->encoded, next);
        void *const before = hidden->data;
        hidden->data = next;
        next = before;
        if (goes_on && (i + 1 == stack->block_count || stack->blocks[i + 1].layer != block->layer)) {
            model_sweep_keep(job, run->part->stack, block->layer + 1, hidden);
            goes_on = model_edit_hidden(job, run->part->stack, block->layer + 1, run->item, hidden) &&
                      show_layer(run, block->layer, hidden);
        }
    }
    return goes_on;
}

static bool embed(const struct stack_run *run, attn_tensor *hidden)
{
    if (!model_embed(run->job, run->part->stack, run->item, 0, hidden))
        return false;
    model_sweep_keep(run->job, run->part->stack, 0, hidden);
    return true;
}

/* *output becomes the stack's output behind its final norm. */
static bool run_stack(const struct stack_run *run, attn_tensor *output)
{
    attn_tensor hidden;
    return embed(run, &hidden) && model_edit_hidden(run->job, run->part->stack, 0, run->item, &hidden) &&
           put_hidden(run, &hidden, 0) && model_attribution_begin(run->job, run->part->stack, run->item, &hidden) &&
           run_blocks(run, 0, &hidden) && model_attribution_end(run->job, run->part->stack, &hidden) &&
           model_norm(run->job, run->stack, &hidden, output);
}

/* ---- one item ---- */

static bool show_output(struct model_job *job, size_t item, const attn_tensor *output)
{
    if (job->output != NULL)
        memcpy(model_copy_place(&job->output->tensor, item, 0), output->data,
               attn_tensor_count(output) * attn_dtype_bytes(output->dtype));
    if (job->embedding != NULL)
        model_embedding_put(job, item, output);
    return model_predict(job, output, 0, item, &job->predictions);
}

/* The stacks of an item. */
struct item_run {
    struct stack_run stacks[2];
    attn_tensor outputs[2];
};

/* Runs the stacks after that one. */
static bool run_behind(struct item_run *run, size_t stack)
{
    const struct model_job *job = run->stacks[stack].job;
    for (size_t i = stack + 1; i <= job->last_stack; i++) {
        run->stacks[i].encoded = &run->outputs[i - 1];
        if (!run_stack(&run->stacks[i], &run->outputs[i]))
            return false;
    }
    return true;
}

/* The item once more, from a kept residual of the swept stack on. */
static bool run_again(struct item_run *again, size_t layer)
{
    struct model_job *job = again->stacks[0].job;
    const size_t stack = job->parts[job->sweep.edit->part].stack;
    const struct stack_run *run = &again->stacks[stack];
    attn_tensor hidden;
    return model_sweep_restore(job, layer, run->item, &hidden) &&
           model_edit_hidden(job, stack, layer, run->item, &hidden) && run_blocks(run, layer, &hidden) &&
           model_norm(job, run->stack, &hidden, &again->outputs[stack]) && run_behind(again, stack);
}

/* Of model_sweep_calls. */
static bool run_from(void *context, size_t layer, size_t query, void *row)
{
    struct item_run run = *(const struct item_run *)context;
    struct model_job *job = run.stacks[0].job;
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    const bool is_ok = layer == SIZE_MAX || run_again(&run, layer);
    const attn_tensor *output = &run.outputs[job->last_stack];
    if (is_ok) {
        const size_t bytes = output->shape[1] * attn_dtype_bytes(output->dtype);
        memcpy(row, (const char *)output->data + query * bytes, bytes);
    }
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

static bool run_item(struct model_job *job, size_t item)
{
    const struct model_stack *stacks = job->version->model.stacks;
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    struct item_run run = {
        .stacks = {{job, &stacks[0], &job->parts[0], item, NULL}, {job, &stacks[1], &job->parts[1], item, NULL}}};
    const bool is_ok = model_times_begin(job, item) && run_stack(&run.stacks[0], &run.outputs[0]) &&
                       run_behind(&run, 0) && show_output(job, item, &run.outputs[job->last_stack]) &&
                       model_times_put(job, item) &&
                       model_sweep_run(job, item, &(struct model_sweep_calls){run_from, &run, model_measure});
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}

/* ---- the batch ---- */

/* Fills an output with 0, or -1 where numbers are ids or indices. */
static bool fill_output(const attn_tensor *tensor, size_t bytes, struct pace *pace)
{
    const int byte = tensor->dtype == ATTN_I64 ? 0xff : 0;
    for (size_t at = 0; at < bytes; at += PACE_BYTES) {
        const size_t some = bytes - at < PACE_BYTES ? bytes - at : PACE_BYTES;
        if (pace_stops(pace, some))
            return false;
        memset((char *)tensor->data + at, byte, some);
    }
    return true;
}

static bool is_longest(const struct model_job *job, const struct model_part *part)
{
    for (size_t i = 0; i < job->request->inputs.batch; i++)
        if (job->items[i].of[part->stack].count != part->longest_queries ||
            job->items[i].of[part->is_cross ? 0 : part->stack].count != part->longest_keys)
            return false;
    return true;
}

/* Whether every number of the output is written: a step of items that are all of one length. */
static bool is_written_whole(const struct model_job *job, const struct model_output *output)
{
    for (size_t i = 0; i < job->part_count; i++)
        for (int step = 0; step < ATTN_STEP_COUNT; step++)
            if (job->parts[i].steps[step] == output)
                return is_longest(job, &job->parts[i]);
    return false;
}

/* Maps may be large, and clearing them takes as long as a layer. */
bool model_outputs_take(struct model_job *job)
{
    struct pace pace = pace_begin(job->outcome.arena);
    for (size_t i = 0; i < job->answer->output_count; i++) {
        attn_tensor *tensor = &job->answer->outputs[i].tensor;
        const size_t bytes = attn_tensor_count(tensor) * attn_dtype_bytes(tensor->dtype);
        tensor->data = outcome_take(&job->outcome, bytes, 1);
        if (tensor->data == NULL)
            return false;
        if (!is_written_whole(job, &job->answer->outputs[i]) && !fill_output(tensor, bytes, &pace))
            return model_job_fail_cancelled(job);
    }
    return true;
}

/* How many blocks run; of a sweep, at most. */
static uint64_t count_blocks(const struct model_job *job)
{
    double count = 0;
    for (size_t item = 0; item < job->request->inputs.batch; item++)
        for (size_t i = 0; i <= job->last_stack; i++) {
            const struct model_stack *stack = &job->version->model.stacks[i];
            for (size_t b = 0; b < stack->block_count; b++)
                count += 1 + (job->sweep.edit != NULL && job->sweep.items[item]
                                  ? model_sweep_times(job, i, stack->blocks[b].layer)
                                  : 0);
        }
    return count < (double)PROGRESS_MAX ? (uint64_t)count : PROGRESS_MAX;
}

attn_status model_job_run(struct model_job *job)
{
    bool goes_on =
        model_outputs_take(job) && model_classes_begin(job) && model_edits_begin(job) && model_sweep_begin(job);
    if (goes_on)
        progress_set(job->progress, PROGRESS_LAYER, 0, count_blocks(job));
    const bool has_outputs = job->answer->output_count > 0; /* none of a request for new tokens alone */
    for (size_t i = 0; i < job->request->inputs.batch && goes_on && has_outputs; i++)
        goes_on = run_item(job, job->order[i]);
    return job->outcome.status;
}
