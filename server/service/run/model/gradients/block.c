/* block.c: the gradient of one block of one item, and what is shown of its maps. */
#include <string.h>

#include "service/run/model/gradients/gradients.h"

/* ---- the plan ---- */

static struct gradient_outputs *outputs_of(const struct gradient_block *block)
{
    return &block->own->of[block->part - block->own->job->parts];
}

/* Whether a map is shown of the layer. */
static bool shows_maps(const struct gradient_block *block)
{
    const struct gradient_outputs *outputs = outputs_of(block);
    return block->shows && (outputs->attention != NULL || outputs->attention_gradient != NULL) &&
           model_part_place(block->part, block->block->layer) != SIZE_MAX;
}

static void set_request(struct gradient_block *block)
{
    const struct model_job *job = block->own->job;
    const attn_dims *dims = &block->block->facts.dims;
    const attn_dtype compute = model_job_compute(job);
    attn_request *request = &block->envelope.request;
    block->query = attn_tensor_view(NULL, compute, 3, (const size_t[]){1, block->q_len, dims->d_query});
    block->key = attn_tensor_view(NULL, compute, 3, (const size_t[]){1, block->kv_len, dims->d_key});
    block->grad_output = block->query; /* a block keeps the width of the residual */
    request->inputs = (attn_inputs){.query = &block->query, .key = block->block->is_cross ? &block->key : NULL};
    request->watch = job->runtime;
    request->options.want =
        shows_maps(block) && outputs_of(block)->attention_gradient != NULL ? ATTN_STEP_BIT(ATTN_STEP_ATTENTION) : 0;
    block->wanted = (attn_gradient_request){.request = request, .grad_output = &block->grad_output};
    block->wanted.of = UINT64_C(1) << ATTN_GRADIENT_QUERY;
    if (block->block->is_cross)
        block->wanted.of |= UINT64_C(1) << ATTN_GRADIENT_KEY;
    if (shows_maps(block))
        block->wanted.of |= UINT64_C(1) << ATTN_GRADIENT_ATTENTION;
}

/* Says of which model and layer the core's sentence is. */
static bool explain(struct gradient_block *block, attn_status status)
{
    struct outcome *outcome = &block->own->job->outcome;
    char message[sizeof outcome->err->message];
    if (status != ATTN_ERR_FIELD && status != ATTN_ERR_VALUE)
        return outcome_note(outcome, status);
    memcpy(message, outcome->err->message, sizeof message);
    return outcome_fail(outcome, ATTN_ERR_FIELD, NULL, "a model of type %.64s has no gradients in layer %zu: %.300s",
                        block->own->job->version->model.type, block->block->layer, message);
}

static bool decode(struct gradient_block *block, const struct envelope_source *source, bool shapes_only)
{
    struct model_job *job = block->own->job;
    return outcome_note(&job->outcome,
                        envelope_decode_base(source, ENVELOPE_LAYER_GRADIENTS, model_job_compute(job), shapes_only,
                                             job->outcome.arena, &block->envelope, job->outcome.err));
}

static bool make_plan(struct gradient_block *block)
{
    struct model_job *job = block->own->job;
    set_request(block);
    const attn_status status = envelope_gradient_plan(&block->envelope, &block->wanted, &block->plan, job->outcome.err);
    return status == ATTN_OK || explain(block, status);
}

bool gradient_block_plan(struct gradient_block *block, bool shapes_only)
{
    return decode(block, &block->block->source, shapes_only) && make_plan(block);
}

double gradient_block_bytes(const struct gradient_block *block)
{
    const size_t threads = block->own->job->runtime->threads;
    const double back = (double)attn_gradient_plan_bytes(&block->plan, threads),
                 forward = (double)attn_plan_bytes(&block->plan.forward, threads);
    return back > forward ? back : forward;
}

/* ---- maps ---- */

static double number_at(const attn_tensor *map, size_t head, size_t row, size_t column)
{
    const size_t at = (head * map->shape[2] + row) * map->shape[3] + column;
    return map->dtype == ATTN_F32 ? (double)((const float *)map->data)[at] : ((const double *)map->data)[at];
}

/* An element of a selection that a shorter item may lack. */
static bool has_element(const attn_selection *selection, size_t i, size_t length, size_t *element)
{
    *element = attn_selects_all(selection) ? i : attn_selected(selection, i);
    return *element < length;
}

struct maps {
    const struct model_selections *shown;
    const attn_tensor *weights, *gradient; /* (1, heads, queries, keys); weights NULL: not wanted */
    struct pace pace;
};

/* The selected columns of a row. head SIZE_MAX: the mean over all heads of weights times gradients that are positive. */
static void put_row(const struct maps *maps, size_t head, size_t row, size_t columns, attn_dtype dtype, char *to)
{
    const attn_tensor *gradient = maps->gradient;
    const size_t heads = gradient->shape[1];
    for (size_t c = 0; c < columns; c++) {
        size_t column;
        double value = 0;
        if (!has_element(&maps->shown->keys, c, gradient->shape[3], &column))
            continue;
        if (head != SIZE_MAX)
            value = number_at(gradient, head, row, column);
        for (size_t h = 0; head == SIZE_MAX && h < heads; h++) {
            const double product = number_at(maps->weights, h, row, column) * number_at(gradient, h, row, column);
            value += product > 0 ? product / (double)heads : 0;
        }
        model_put_numbers(&value, 1, dtype, to + c * attn_dtype_bytes(dtype));
    }
}

/* Rows of one head of an output; head as in put_row. to is at the first row. */
static bool put_rows(struct maps *maps, size_t head, const attn_tensor *output, char *to)
{
    const size_t columns = output->shape[output->rank - 1], bytes = columns * attn_dtype_bytes(output->dtype);
    for (size_t r = 0; r < output->shape[output->rank - 2]; r++, to += bytes) {
        size_t row;
        if (!has_element(&maps->shown->queries, r, maps->gradient->shape[2], &row))
            continue;
        if (pace_stops(&maps->pace, bytes * (head == SIZE_MAX ? maps->gradient->shape[1] : 1)))
            return false;
        put_row(maps, head, row, columns, output->dtype, to);
    }
    return true;
}

static bool show_maps(const struct gradient_block *block, size_t item, const attn_gradient_result *result)
{
    struct model_job *job = block->own->job;
    const struct gradient_outputs *outputs = outputs_of(block);
    const size_t place = model_part_place(block->part, block->block->layer);
    struct maps maps = {block->part->shown, &result->forward.step[ATTN_STEP_ATTENTION],
                        &result->gradient[ATTN_GRADIENT_ATTENTION], pace_begin(job->outcome.arena)};
    bool goes_on = true;
    for (size_t h = 0; outputs->attention != NULL && h < outputs->attention->tensor.shape[2] && goes_on; h++) {
        const attn_tensor *output = &outputs->attention->tensor;
        const size_t bytes = output->shape[3] * output->shape[4] * attn_dtype_bytes(output->dtype);
        size_t head;
        if (has_element(&maps.shown->heads, h, maps.gradient->shape[1], &head))
            goes_on = put_rows(&maps, head, output, (char *)model_copy_place(output, place, item) + h * bytes);
    }
    if (outputs->attention_gradient != NULL && goes_on)
        goes_on = put_rows(&maps, SIZE_MAX, &outputs->attention_gradient->tensor,
                           model_copy_place(&outputs->attention_gradient->tensor, place, item));
    return goes_on || model_job_fail_cancelled(job);
}

/* ---- the run ---- */

static void add_numbers(const attn_tensor *from, const attn_tensor *to)
{
    for (size_t i = 0; i < attn_tensor_count(from); i++)
        if (from->dtype == ATTN_F32)
            ((float *)to->data)[i] += ((const float *)from->data)[i];
        else
            ((double *)to->data)[i] += ((const double *)from->data)[i];
}

static bool run_plan(struct gradient_pass *pass, struct gradient_block *run, const void *hidden)
{
    struct model_job *job = pass->job;
    const attn_tensor *grad = &pass->grad_hidden[run->part->stack];
    const attn_bindings inputs = {
        .query = hidden, .key = run->block->is_cross ? pass->encoded.data : NULL, .grad_output = grad->data};
    attn_gradient_result result;
    if (!make_plan(run) ||
        !outcome_note(&job->outcome, attn_gradient_run(&run->plan, &inputs, job->runtime, job->outcome.arena, &result,
                                                       job->outcome.err)))
        return false;
    memcpy(grad->data, result.gradient[ATTN_GRADIENT_QUERY].data,
           attn_tensor_count(grad) * attn_dtype_bytes(grad->dtype));
    if (run->block->is_cross)
        add_numbers(&result.gradient[ATTN_GRADIENT_KEY], &pass->grad_encoded);
    return !shows_maps(run) || show_maps(run, pass->item, &result);
}

bool gradient_block_run(struct gradient_pass *pass, const struct model_block *block, struct model_part *part,
                        const void *hidden)
{
    struct model_job *job = pass->job;
    const size_t q_len = job->items[pass->item].of[part->stack].count;
    struct gradient_block run = {.own = pass->own,
                                 .block = block,
                                 .part = part,
                                 .q_len = q_len,
                                 .kv_len = part->is_cross ? job->items[pass->item].of[0].count : q_len,
                                 .shows = pass->shows};
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    struct envelope_source source = block->source;
    struct prepared_weights *prepared = NULL;
    if (model_job_compute(job) == block->facts.compute)
        prepared = prepared_weights_take(job->prepared, &job->version->slots[block->slot], &block->facts, job->runtime,
                                         job->outcome.arena, &source);
    const bool is_ok = decode(&run, &source, false) && run_plan(pass, &run, hidden);
    progress_add(job->progress, PROGRESS_LAYER, 1, 0);
    prepared_weights_release(prepared);
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}
