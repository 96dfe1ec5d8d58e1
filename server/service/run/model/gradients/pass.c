/* pass.c: runs an item forward block by block, and its gradient back. */
#include <string.h>

#include "service/run/model/gradients/gradients.h"

static const struct model_stack *stack_of(const struct gradient_pass *pass, size_t stack)
{
    return &pass->job->version->model.stacks[stack];
}

static attn_tensor rows_of(const struct gradient_pass *pass, size_t stack, void *data)
{
    return attn_tensor_view(
        data, model_job_compute(pass->job), 2,
        (const size_t[]){pass->job->items[pass->item].of[stack].count, model_width(stack_of(pass, stack))});
}

static size_t bytes_of(const attn_tensor *tensor)
{
    return attn_tensor_count(tensor) * attn_dtype_bytes(tensor->dtype);
}

/* ---- memory ---- */

static bool take_rows(struct gradient_pass *pass, size_t stack, attn_tensor *rows)
{
    *rows = rows_of(pass, stack, NULL);
    rows->data = outcome_take(&pass->job->outcome, attn_tensor_count(rows), attn_dtype_bytes(rows->dtype));
    return rows->data != NULL;
}

static bool take_stack(struct gradient_pass *pass, size_t stack)
{
    struct outcome *outcome = &pass->job->outcome;
    const size_t states = stack_of(pass, stack)->block_count + 1;
    attn_tensor state;
    if (!model_embed_vectors(pass->job, stack, pass->item, &pass->vectors[stack]) ||
        !take_rows(pass, stack, &pass->grad_hidden[stack]))
        return false;
    pass->gradient[stack] = pass->vectors[stack];
    pass->gradient[stack].data =
        outcome_take(outcome, attn_tensor_count(&pass->vectors[stack]), attn_dtype_bytes(pass->vectors[stack].dtype));
    pass->states[stack] = outcome_take(outcome, states, sizeof(char *));
    for (size_t i = 0; i < states && !outcome_has_failed(outcome); i++) {
        take_rows(pass, stack, &state);
        pass->states[stack][i] = state.data;
    }
    return !outcome_has_failed(outcome);
}

bool gradient_pass_begin(struct gradient_pass *pass)
{
    bool is_ok = true;
    for (size_t stack = 0; stack < gradient_stacks(pass->job) && is_ok; stack++)
        is_ok = take_stack(pass, stack);
    return is_ok && (gradient_stacks(pass->job) == 1 ||
                     (take_rows(pass, 0, &pass->encoded) && take_rows(pass, 0, &pass->grad_encoded)));
}

/* ---- forward ---- */

static struct model_part *part_of(const struct gradient_pass *pass, const struct model_block *block, size_t stack)
{
    return &pass->job->parts[stack + (block->is_cross ? 1 : 0)];
}

/* *normed becomes the output behind the final norm. */
static bool run_stack(struct gradient_pass *pass, size_t stack, attn_tensor *normed)
{
    struct model_job *job = pass->job;
    const struct model_stack *own = stack_of(pass, stack);
    char **states = pass->states[stack];
    attn_tensor hidden;
    if (!model_embed_from(job, stack, pass->item, &pass->vectors[stack], &hidden))
        return false;
    memcpy(states[0], hidden.data, bytes_of(&hidden));
    for (size_t i = 0; i < own->block_count; i++) {
        const attn_tensor before = rows_of(pass, stack, states[i]);
        if (!model_block_run(job, &own->blocks[i], part_of(pass, &own->blocks[i], stack), pass->item, &before,
                             &pass->encoded, states[i + 1]))
            return false;
    }
    const attn_tensor last = rows_of(pass, stack, states[own->block_count]);
    return model_norm(job, own, &last, normed);
}

/* ---- back ---- */

/* From the gradient of what the head has read to that of all normed tokens. */
static void spread_row(const struct gradient_pass *pass, const attn_tensor *row, size_t query, const attn_tensor *grad)
{
    const size_t count = grad->shape[0], d = grad->shape[1], bytes = d * attn_dtype_bytes(grad->dtype);
    const model_reads reads = pass->job->version->model.head.reads;
    const bool is_mean = reads == MODEL_READS_MEAN;
    const size_t first = is_mean ? 0 : 1, at = is_mean ? 0 : d; /* the mean is of all tokens, or of all but the first */
    memset(grad->data, 0, bytes_of(grad));
    memcpy((char *)grad->data + query * bytes, row->data, bytes);
    for (size_t f = 0; f < d && model_reads_mean(reads) && count > first; f++) {
        const double share =
            row->dtype == ATTN_F32 ? (double)((const float *)row->data)[at + f] : ((const double *)row->data)[at + f];
        const double each = share / (double)(count - first);
        for (size_t i = first; i < count; i++)
            model_put_numbers(&each, 1, grad->dtype,
                              (char *)grad->data + i * bytes + f * attn_dtype_bytes(grad->dtype));
    }
}

/* The metric of the normed tokens; with grad its gradient by them. */
static bool measure(struct gradient_pass *pass, const attn_prediction_head *head, const attn_tensor *normed,
                    attn_tensor *grad)
{
    struct model_job *job = pass->job;
    struct outcome *outcome = &job->outcome;
    const size_t query = model_metric_query(job, pass->item);
    attn_tensor row, scores, slope, before;
    if (!model_head_row(job, normed, query, &row) ||
        !outcome_note(outcome, attn_predict(head, &row, job->runtime, outcome->arena, &scores, outcome->err)))
        return false;
    pass->metric = model_metric_value(job, &scores);
    if (grad == NULL)
        return true;
    slope = scores;
    slope.data = outcome_take(outcome, attn_tensor_count(&scores), attn_dtype_bytes(scores.dtype));
    if (slope.data == NULL || !take_rows(pass, job->last_stack, grad))
        return false;
    model_metric_slope(job, &scores, &slope);
    if (!outcome_note(outcome, attn_predict_back(head, &row, &scores, &slope, job->runtime, outcome->arena, &before,
                                                 outcome->err)))
        return false;
    spread_row(pass, &before, query, grad);
    return true;
}

static bool go_through_head(struct gradient_pass *pass, const attn_tensor *normed, attn_tensor *grad)
{
    struct prepared_weights *prepared = NULL;
    attn_prediction_head head;
    const bool is_ok = model_head_take(pass->job, &head, &prepared) && measure(pass, &head, normed, grad);
    prepared_weights_release(prepared);
    return is_ok;
}

/* From the gradient by the stack's normed output to that by its vectors. */
static bool go_back(struct gradient_pass *pass, size_t stack, const attn_tensor *behind)
{
    struct model_job *job = pass->job;
    const struct model_stack *own = stack_of(pass, stack);
    const attn_tensor last = rows_of(pass, stack, pass->states[stack][own->block_count]);
    const attn_tensor *grad = &pass->grad_hidden[stack];
    attn_token_norm norm;
    attn_tensor before;
    if (!model_convert_norm(job, &own->norm, &norm) ||
        !outcome_note(&job->outcome, attn_norm_tokens_back(&norm, &last, behind, job->runtime, job->outcome.arena,
                                                           &before, job->outcome.err)))
        return false;
    memcpy(grad->data, before.data, bytes_of(grad));
    for (size_t i = own->block_count; i-- > 0;)
        if (!gradient_block_run(pass, &own->blocks[i], part_of(pass, &own->blocks[i], stack), pass->states[stack][i]))
            return false;
    if (!model_embed_back(job, stack, pass->item, &pass->vectors[stack], grad, &before))
        return false;
    memcpy(pass->gradient[stack].data, before.data, bytes_of(&before));
    return true;
}

static bool run_both(struct gradient_pass *pass, bool goes_back)
{
    const size_t last = pass->job->last_stack;
    attn_tensor normed, grad;
    if (!run_stack(pass, 0, &normed))
        return false;
    if (last == 1) {
        memcpy(pass->encoded.data, normed.data, bytes_of(&normed));
        memset(pass->grad_encoded.data, 0, bytes_of(&pass->grad_encoded));
        if (!run_stack(pass, 1, &normed))
            return false;
    }
    return go_through_head(pass, &normed, goes_back ? &grad : NULL) &&
           (!goes_back || (go_back(pass, last, &grad) && (last == 0 || go_back(pass, 0, &pass->grad_encoded))));
}

bool gradient_pass_run(struct gradient_pass *pass, bool goes_back)
{
    const attn_arena_mark mark = attn_arena_mark_here(pass->job->outcome.arena);
    const bool is_ok = run_both(pass, goes_back) && model_job_goes_on(pass->job);
    attn_arena_release(pass->job->outcome.arena, mark);
    return is_ok;
}
