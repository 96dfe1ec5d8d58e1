/* plan.c: lays out the gradients of a metric, and weighs their run. */
#include "service/run/model/gradients/gradients.h"

#include <string.h>

static const struct checkpoint_model *model_of(const struct model_gradients *own)
{
    return &own->job->version->model;
}

static bool wants_maps(const struct model_job *job)
{
    return job->request->common.request.options.want >> ATTN_STEP_ATTENTION & 1;
}

/* ---- the request beside the model ---- */

static bool check(struct model_gradients *own)
{
    struct model_job *job = own->job;
    if (job->request->common.request.options.bf16_products)
        return outcome_fail(&job->outcome, ATTN_ERR_FIELD, "/options/compute",
                            "options.compute is bfloat16, and gradients are computed in float32 or float64");
    if (!model_of(own)->has_head || gradient_stacks(job) != model_of(own)->stack_count)
        return model_fail_headless(job, "/options/metric", "metric");
    return model_metric_plan(job) && gradients_integrated_check(own);
}

/* ---- outputs ---- */

static size_t count_selected(const attn_selection *selection, size_t all)
{
    return attn_selects_all(selection) ? all : selection->count;
}

/* (layers, batch, heads, queries, keys), or without heads */
static void add_maps(struct model_gradients *own, size_t index)
{
    struct model_job *job = own->job;
    const struct model_part *part = &job->parts[index];
    const struct model_selections *shown = part->shown;
    const size_t heads = model_of(own)->stacks[part->stack].blocks[0].facts.dims.heads;
    const size_t shape[] = {part->layer_count, job->request->inputs.batch, count_selected(&shown->heads, heads),
                            count_selected(&shown->queries, part->longest_queries),
                            count_selected(&shown->keys, part->longest_keys)};
    const size_t of_mean[] = {shape[0], shape[1], shape[3], shape[4]};
    if (wants_maps(job))
        model_add_output(job, &own->of[index].attention, model_job_compute(job), 5, shape, "%sattention", part->prefix);
    if (model_job_wants(job, MODEL_ATTENTION_GRADIENT))
        model_add_output(job, &own->of[index].attention_gradient, model_job_compute(job), 4, of_mean,
                         "%sattention_gradient", part->prefix);
}

/* The features of a vector of the stack's words, patches or frames. */
static size_t vector_width(const struct model_embedding *embedding, size_t width)
{
    return embedding->projection.data != NULL ? embedding->projection.shape[1] : width;
}

static void add_vectors(struct model_gradients *own, size_t index)
{
    struct model_job *job = own->job;
    const struct model_part *part = &job->parts[index];
    const struct model_stack *stack = &model_of(own)->stacks[part->stack];
    const size_t shape[] = {job->request->inputs.batch, part->longest_queries,
                            vector_width(&stack->embedding, model_width(stack))};
    if (model_job_wants(job, MODEL_EMBEDDING))
        model_add_output(job, &own->of[index].embedding, model_job_compute(job), 3, shape, "%sembedding", part->prefix);
    if (model_job_wants(job, MODEL_INTEGRATED))
        model_add_output(job, &own->of[index].integrated, model_job_compute(job), 3, shape, "%sintegrated",
                         part->prefix);
}

static bool add_outputs(struct model_gradients *own)
{
    struct model_job *job = own->job;
    const size_t *batch = &job->request->inputs.batch;
    struct model_block_run longest;
    for (size_t i = 0; i < job->part_count; i++) {
        if (!model_part_plan(job, &job->parts[i], &longest))
            return false;
        add_maps(own, i);
        if (!job->parts[i].is_cross)
            add_vectors(own, i);
    }
    model_add_output(job, &own->metric, model_job_compute(job), 1, batch, "metric");
    if (model_job_wants(job, MODEL_INTEGRATED))
        model_add_output(job, &own->error, model_job_compute(job), 1, batch, "integrated_error");
    return !outcome_has_failed(&job->outcome);
}

/* ---- weight ---- */

/* The operations of one block for all items, and the most bytes that it takes for one of them. */
static bool weigh_block(struct model_gradients *own, const struct model_block *block, struct model_part *part,
                        double *most)
{
    struct model_job *job = own->job;
    const double passes = 1 + gradients_integrated_passes(own);
    struct gradient_block run = {.own = own, .block = block, .part = part, .shows = true};
    for (size_t i = 0; i < job->request->inputs.batch; i++) {
        const size_t q_len = job->items[i].of[part->stack].count;
        const size_t kv_len = part->is_cross ? job->items[i].of[0].count : q_len;
        if (q_len != run.q_len || kv_len != run.kv_len) {
            const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
            run.q_len = q_len;
            run.kv_len = kv_len;
            const bool is_planned = model_job_goes_on(job) && gradient_block_plan(&run, true);
            attn_arena_release(job->outcome.arena, mark);
            if (!is_planned)
                return false;
            const double bytes =
                gradient_block_bytes(&run) + model_converted_bytes(job, &block->source, ENVELOPE_LAYER_GRADIENTS);
            *most = bytes > *most ? bytes : *most;
        }
        job->time_flops += passes * (run.plan.forward.time_flops + run.plan.time_flops);
    }
    return true;
}

static bool weigh_stack(struct model_gradients *own, size_t index)
{
    struct model_job *job = own->job;
    const struct model_stack *stack = &model_of(own)->stacks[index];
    const size_t count = job->parts[index].longest_queries;
    const double rows = (double)count * (double)attn_dtype_bytes(model_job_compute(job));
    const double hidden = rows * (double)model_width(stack),
                 vectors = rows * (double)vector_width(&stack->embedding, model_width(stack));
    double most = 0;
    for (size_t i = 0; i < stack->block_count; i++)
        if (!weigh_block(own, &stack->blocks[i], &job->parts[index + (stack->blocks[i].is_cross ? 1 : 0)], &most))
            return false;
    job->time_flops += 2 * (double)job->request->inputs.batch * model_embed_flops(job, stack, count);
    /* a state of each block and the gradient of the residual; vectors and their gradient; norm and head, forward and back */
    job->run_bytes += ((double)stack->block_count + 10) * (hidden + 2 * ATTN_ALIGNMENT) +
                      2 * (vectors + 2 * ATTN_ALIGNMENT) + most + 3 * model_embed_bytes(job, stack, count) + (1 << 20);
    return true;
}

static void weigh(struct model_gradients *own)
{
    struct model_job *job = own->job;
    const double passes = 1 + gradients_integrated_passes(own);
    for (size_t i = 0; i < gradient_stacks(job); i++)
        if (!weigh_stack(own, i))
            return;
    job->run_bytes += model_head_bytes(job, 1, 3) + gradients_integrated_bytes(own);
    job->time_flops += 2 * passes * (double)job->request->inputs.batch * model_head_flops(job, 1);
    model_outputs_weigh(job);
}

bool model_gradients_plan(struct model_gradients *own)
{
    if (model_parts_make(own->job) && check(own) && add_outputs(own))
        weigh(own);
    return !outcome_has_failed(&own->job->outcome);
}
