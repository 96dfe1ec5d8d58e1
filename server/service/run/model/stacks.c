/* stacks.c: runs a model on a batch, item by item. */
#include "service/run/model/item.h"

#include <string.h>

static attn_status fail_memory(const struct model_job *job)
{
    return attn_fail(job->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory to run the model");
}

/* ---- one stack for one item ---- */

struct stack_run {
    struct model_job *job;
    const struct model_stack *stack;
    struct model_part *part; /* of the stack's attention to itself; that to the encoder follows it */
    size_t item;
    const attn_tensor *encoded;
};

/* hidden[place] of the item, (count, d). */
static attn_status put_hidden(const struct stack_run *run, const attn_tensor *hidden, size_t place)
{
    struct pace pace = pace_begin(run->job->arena);
    const struct model_copy copy = {.layer = place, .item = run->item, .pace = &pace};
    attn_tensor batched =
        attn_tensor_view(hidden->data, hidden->dtype, 3, (const size_t[]){1, hidden->shape[0], hidden->shape[1]});
    if (run->part->hidden == NULL || model_copy_step(&copy, &batched, &run->part->hidden->tensor))
        return ATTN_OK;
    return model_job_fail_cancelled(run->job);
}

/* Shows the output of a layer. The last one is shown behind the final norm, if transformers does so. */
static attn_status show_layer(const struct stack_run *run, size_t layer, const attn_tensor *hidden)
{
    struct model_job *job = run->job;
    const size_t place = model_part_place(run->part, layer);
    const bool has_lens = job->lens.ids != NULL && run->part->stack == job->last_stack;
    const bool is_last = layer + 1 == run->stack->layers;
    if (place == SIZE_MAX || (run->part->hidden == NULL && !has_lens))
        return ATTN_OK;
    const attn_arena_mark mark = attn_arena_mark_here(job->arena);
    attn_tensor normed;
    attn_status status = model_norm(job, run->stack, hidden, &normed);
    if (status == ATTN_OK)
        status = put_hidden(run, is_last && run->stack->norm_in_hidden ? &normed : hidden, place + 1);
    if (status == ATTN_OK && has_lens)
        status = model_predict(job, &normed, place, run->item, &job->lens, NULL);
    attn_arena_release(job->arena, mark);
    return status;
}

static attn_status take_flow(const struct stack_run *run, size_t n)
{
    struct model_part *part = run->part;
    part->has_flow = false;
    if (part->rollout == NULL)
        return ATTN_OK;
    for (int i = 0; i < 2; i++)
        part->flow[i] = attn_arena_take(run->job->arena, n * n, sizeof(double));
    part->flow_work = attn_arena_take(run->job->arena, n * n, sizeof(double));
    return part->flow[0] != NULL && part->flow[1] != NULL && part->flow_work != NULL ? ATTN_OK : fail_memory(run->job);
}

static attn_status run_blocks(const struct stack_run *run, attn_tensor *hidden)
{
    struct model_job *job = run->job;
    const struct model_stack *stack = run->stack;
    void *next = attn_arena_take(job->arena, attn_tensor_count(hidden), attn_dtype_bytes(hidden->dtype));
    attn_status status = next != NULL ? take_flow(run, hidden->shape[0]) : fail_memory(job);
    for (size_t i = 0; i < stack->block_count && status == ATTN_OK; i++) {
        const struct model_block *block = &stack->blocks[i];
        status =
            model_block_run(job, block, run->part + (block->is_cross ? 1 : 0), run->item, hidden, run->encoded, next);
        void *const before = hidden->data;
        hidden->data = next;
        next = before;
        const bool ends_layer = i + 1 == stack->block_count || stack->blocks[i + 1].layer != block->layer;
        if (status == ATTN_OK && ends_layer)
            status = model_edit_hidden(job, run->part->stack, block->layer + 1, run->item, hidden);
        if (status == ATTN_OK && ends_layer)
            status = show_layer(run, block->layer, hidden);
    }
    return status;
}

/* *output becomes the stack's output behind its final norm. */
static attn_status run_stack(const struct stack_run *run, attn_tensor *output)
{
    attn_tensor hidden;
    attn_status status = model_embed(run->job, run->part->stack, run->item, &hidden);
    if (status == ATTN_OK)
        status = model_edit_hidden(run->job, run->part->stack, 0, run->item, &hidden);
    if (status == ATTN_OK)
        status = put_hidden(run, &hidden, 0);
    if (status == ATTN_OK)
        status = run_blocks(run, &hidden);
    return status == ATTN_OK ? model_norm(run->job, run->stack, &hidden, output) : status;
}

/* ---- one item ---- */

static attn_status show_output(struct model_job *job, size_t item, const attn_tensor *output)
{
    if (job->output != NULL)
        memcpy((char *)job->output->tensor.data +
                   item * (size_t)job->output->tensor.stride[0] * attn_dtype_bytes(output->dtype),
               output->data, attn_tensor_count(output) * attn_dtype_bytes(output->dtype));
    if (job->embedding != NULL)
        model_embedding_put(job, item, output);
    return model_predict(job, output, 0, item, &job->predictions, job->logits);
}

static attn_status run_item(struct model_job *job, size_t item)
{
    const struct model_stack *stacks = job->version->model.stacks;
    const attn_arena_mark mark = attn_arena_mark_here(job->arena);
    attn_tensor encoded, output;
    const struct stack_run first = {job, &stacks[0], &job->parts[0], item, NULL};
    attn_status status = model_times_begin(job, item);
    if (status == ATTN_OK)
        status = run_stack(&first, &encoded);
    if (status == ATTN_OK)
        output = encoded;
    if (status == ATTN_OK && job->last_stack == 1) {
        const struct stack_run second = {job, &stacks[1], &job->parts[1], item, &encoded};
        status = run_stack(&second, &output);
    }
    if (status == ATTN_OK)
        status = show_output(job, item, &output);
    if (status == ATTN_OK)
        status = model_times_put(job, item);
    attn_arena_release(job->arena, mark);
    return status;
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
static attn_status take_outputs(struct model_job *job)
{
    struct pace pace = pace_begin(job->arena);
    for (size_t i = 0; i < job->answer->output_count; i++) {
        attn_tensor *tensor = &job->answer->outputs[i].tensor;
        const size_t bytes = attn_tensor_count(tensor) * attn_dtype_bytes(tensor->dtype);
        tensor->data = attn_arena_take(job->arena, bytes, 1);
        if (tensor->data == NULL)
            return fail_memory(job);
        if (!is_written_whole(job, &job->answer->outputs[i]) && !fill_output(tensor, bytes, &pace))
            return model_job_fail_cancelled(job);
    }
    return ATTN_OK;
}

attn_status model_job_run(struct model_job *job)
{
    attn_status status = take_outputs(job);
    if (status == ATTN_OK)
        status = model_classes_begin(job);
    if (status == ATTN_OK)
        status = model_edits_begin(job);
    for (size_t i = 0; i < job->request->inputs.batch && status == ATTN_OK; i++)
        status = run_item(job, job->order[i]);
    return status;
}
