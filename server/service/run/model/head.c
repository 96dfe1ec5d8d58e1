/* head.c: scores the words or classes of each query, and finds the highest. */
#include "service/run/model/item.h"

#include <string.h>

#include "attn/model.h"

static const attn_tensor *find_weight(const struct envelope_source *source, const char *path)
{
    static const attn_tensor absent = {.data = NULL};
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->attachments[i].path, path) == 0)
            return &source->attachments[i].tensor;
    return &absent;
}

double model_head_bytes(const struct model_job *job, size_t count, double times)
{
    const struct model_head *head = &job->version->model.head;
    const size_t tokens = model_head_reads_one(job) ? 1 : count, k = job->request->predictions_k;
    const double rows = (double)(tokens < HEAD_ROWS ? tokens : HEAD_ROWS),
                 element = (double)attn_dtype_bytes(model_job_compute(job));
    const double width = (double)model_width(&job->version->model.stacks[job->last_stack]);
    const double kept = (double)(k < head->words ? k : head->words) * (sizeof(int64_t) + sizeof(double));
    const double products = find_weight(&head->source, "weights.dense.weight")->data != NULL ? 2 : 1;
    const double scored = rows * (element * ((double)head->words + 6 * width) + kept);
    return model_converted_bytes(job, &head->source, ENVELOPE_LAYER) + model_words_bytes(job) +
           times * (scored + products * model_product_bytes(job, 2 * width));
}

/* The head scores whole blocks of tokens. */
double model_head_flops(const struct model_job *job, size_t count)
{
    const struct envelope_source *source = &job->version->model.head.source;
    const double tokens = (double)(model_head_reads_one(job) ? 1 : count),
                 most = (double)model_head_rows(job, count) * HEAD_ROWS;
    double numbers = 0;
    for (size_t i = 0; i < source->count; i++)
        numbers += (double)attn_tensor_count(&source->attachments[i].tensor);
    return (tokens < most ? tokens : most) * (2 * numbers + model_words_flops(job));
}

bool model_head_take(struct model_job *job, attn_prediction_head *made, struct prepared_weights **prepared)
{
    const struct model_head *head = &job->version->model.head;
    struct envelope_source own = head->source;
    const struct envelope_source *source = &own;
    *made = head->numbers;
    made->compute = model_job_compute(job);
    if (made->compute == ATTN_F32)
        *prepared = prepared_weights_take(job->prepared, (struct prepared_slot *)(uintptr_t)&job->version->head_slot,
                                          &head->facts, job->runtime, job->outcome.arena, &own);
    return model_convert_affine(job, find_weight(source, "weights.dense.weight"),
                                find_weight(source, "weights.dense.bias"), &made->dense) &&
           model_convert_affine(job, find_weight(source, "weights.norm.weight"),
                                find_weight(source, "weights.norm.bias"), &made->norm.weights) &&
           model_convert_affine(job, find_weight(source, "weights.output.weight"),
                                find_weight(source, "weights.output.bias"), &made->output);
}

/* Of the tokens of the block, of which there are count. */
static void choose_rows(struct head_block *block, size_t count)
{
    const struct model_job *job = block->job;
    const attn_selection *queries = &job->parts[job->last_stack].shown->queries;
    const bool reads_one = model_head_reads_one(job), is_all = attn_selects_all(queries) || reads_one;
    block->count = 0;
    for (size_t i = 0; i < (is_all ? count : queries->count); i++) {
        const size_t row = is_all ? i : attn_selected(queries, i) - block->first; /* wraps around below first */
        if (row >= count)
            continue;
        block->rows[block->count] = row;
        block->places[block->count++] = reads_one ? 0 : is_all ? block->first + i : i;
    }
}

struct words_run {
    const struct head_block *block;
    size_t k;
    int64_t *ids;
    double *probabilities;
};

static void find_words(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct words_run *run = argument;
    const attn_tensor *scores = run->block->scores;
    const attn_runtime *runtime = run->block->job->runtime;
    if (!pace_is_cancelled(runtime))
        attn_top_words(head_row(run->block, run->block->rows[index]), scores->dtype, scores->shape[1], run->k,
                       run->ids + index * run->k, run->probabilities + index * run->k, runtime);
}

static bool put_words(const struct head_block *block)
{
    struct outcome *outcome = &block->job->outcome;
    const struct model_output *ids = block->words->ids, *probabilities = block->words->probabilities;
    const size_t k = ids->tensor.shape[ids->tensor.rank - 1];
    struct words_run run = {block, k, outcome_take(outcome, block->count * k, sizeof(int64_t)),
                            outcome_take(outcome, block->count * k, sizeof(double))};
    if (outcome_has_failed(outcome))
        return false;
    block->job->runtime->run(block->job->runtime->context, block->count, find_words, &run);
    bool goes_on = model_job_goes_on(block->job); /* otherwise words of rows may be missing */
    for (size_t i = 0; i < block->count && goes_on; i++) {
        memcpy(head_place(block, ids, i), run.ids + i * k, k * sizeof *run.ids);
        goes_on = outcome_note(outcome, attn_convert(head_place(block, probabilities, i), probabilities->tensor.dtype,
                                                     run.probabilities + i * k, ATTN_F64, k, outcome->err));
    }
    return goes_on;
}

static bool put_logits(const struct head_block *block, const struct model_output *logits)
{
    const size_t bytes = block->scores->shape[1] * attn_dtype_bytes(block->scores->dtype);
    struct pace pace = pace_begin(block->job->outcome.arena);
    for (size_t i = 0; i < block->count; i++) {
        if (pace_stops(&pace, bytes))
            return model_job_fail_cancelled(block->job);
        memcpy(head_place(block, logits, i), head_row(block, block->rows[i]), bytes);
    }
    return true;
}

/* Starts and ends of answers, and all of them for the best answer, whatever the request selects. */
static bool put_spans(const struct head_block *block)
{
    const attn_tensor *scores = block->scores;
    const size_t bytes = attn_dtype_bytes(scores->dtype);
    const struct model_classes *classes = &block->job->classes;
    struct outcome *outcome = &block->job->outcome;
    double *all = classes->spans + 2 * (block->item * classes->longest + block->first);
    for (size_t i = 0; i < block->count; i++) {
        const char *row = head_row(block, block->rows[i]);
        memcpy(model_head_place(classes->starts, 0, block->item, 0) + block->places[i] * bytes, row, bytes);
        memcpy(model_head_place(classes->ends, 0, block->item, 0) + block->places[i] * bytes, row + bytes, bytes);
    }
    return outcome_note(
        outcome, attn_convert(all, ATTN_F64, scores->data, scores->dtype, attn_tensor_count(scores), outcome->err));
}

static bool put_classes(const struct head_block *block)
{
    struct model_job *job = block->job;
    const struct model_classes *classes = &job->classes;
    const attn_tensor *scores = block->scores;
    const attn_class_rule rule =
        job->version->model.head.problem == MODEL_PROBLEM_EACH ? ATTN_CLASSES_SIGMOID : ATTN_CLASSES_SOFTMAX;
    bool goes_on = put_logits(block, classes->logits);
    for (size_t i = 0; i < block->count && classes->probabilities != NULL && goes_on; i++) {
        attn_class_probabilities(rule, scores->dtype, 1, scores->shape[1], head_row(block, block->rows[i]),
                                 head_place(block, classes->probabilities, i), job->runtime);
        goes_on = model_job_goes_on(job);
    }
    return goes_on;
}

/* Scores the tokens from block->first on, at most HEAD_ROWS of them. */
static bool predict_block(struct head_block *block, const attn_prediction_head *head, const attn_tensor *normed)
{
    struct model_job *job = block->job;
    struct outcome *outcome = &job->outcome;
    const struct model_words *words = block->words;
    const bool reads_one = model_head_reads_one(job), has_output = words == &job->predictions;
    const size_t left = normed->shape[0] - block->first, most = reads_one ? 1 : HEAD_ROWS;
    const size_t shape[] = {left < most ? left : most, normed->shape[1]};
    const attn_tensor rows = attn_tensor_view(
        (char *)normed->data + block->first * shape[1] * attn_dtype_bytes(normed->dtype), normed->dtype, 2, shape);
    const attn_arena_mark mark = attn_arena_mark_here(outcome->arena);
    attn_tensor scores;
    choose_rows(block, shape[0]);
    if (block->count == 0 && job->classes.spans == NULL && !(has_output && job->given.perplexity != NULL))
        return true;
    block->scores = &scores;
    const bool is_ok =
        outcome_note(outcome, attn_predict(head, &rows, job->runtime, outcome->arena, &scores, outcome->err)) &&
        (!has_output || job->logits == NULL || put_logits(block, job->logits)) &&
        (words->ids == NULL || put_words(block)) && (words->ranks == NULL || model_words_put(block)) &&
        (!has_output || job->attribution.bias == NULL || model_attribution_put(block, head, &rows)) &&
        (!has_output || job->classes.logits == NULL || put_classes(block)) &&
        (!has_output || job->classes.spans == NULL || put_spans(block));
    block->scores = NULL;
    attn_arena_release(outcome->arena, mark);
    return is_ok;
}

/* *pooled becomes one row: the mean of all tokens, or the first token, and behind it the mean of the others. */
static bool pool(struct model_job *job, const attn_tensor *normed, attn_tensor *pooled)
{
    const bool is_mean = job->version->model.head.reads == MODEL_READS_MEAN;
    const size_t d = normed->shape[1], bytes = d * attn_dtype_bytes(normed->dtype), others = normed->shape[0] - 1;
    char *row = outcome_take_zeroed(&job->outcome, 2, bytes);
    const attn_tensor rest = attn_tensor_view((char *)normed->data + bytes, normed->dtype, 2, (size_t[]){others, d});
    if (row == NULL)
        return false;
    attn_pool_tokens(is_mean ? ATTN_POOL_MEAN : ATTN_POOL_FIRST, normed, row);
    if (others > 0 && !is_mean)
        attn_pool_tokens(ATTN_POOL_MEAN, &rest, row + bytes);
    *pooled = attn_tensor_view(row, normed->dtype, 2, (size_t[]){1, is_mean ? d : 2 * d});
    return true;
}

/*
 * The blocks are those of the sequence, whatever the request selects, because a product rounds a row differently when
 * the other rows differ in number.
 */
static bool predict(struct head_block *block, const attn_prediction_head *head, const attn_tensor *normed)
{
    struct model_job *job = block->job;
    attn_tensor pooled;
    const bool pools = model_reads_mean(job->version->model.head.reads);
    bool goes_on = !pools || pool(job, normed, &pooled);
    if (goes_on && model_head_reads_one(job)) {
        block->first = model_head_token(job, block->item);
        return predict_block(block, head, pools ? &pooled : normed);
    }
    for (; block->first < normed->shape[0] && goes_on; block->first += HEAD_ROWS)
        goes_on = predict_block(block, head, normed);
    return goes_on;
}

bool model_head_row(struct model_job *job, const attn_tensor *normed, size_t query, attn_tensor *row)
{
    const size_t d = normed->shape[1];
    *row = attn_tensor_view((char *)normed->data + query * d * attn_dtype_bytes(normed->dtype), normed->dtype, 2,
                            (const size_t[]){1, d});
    return !model_reads_mean(job->version->model.head.reads) || pool(job, normed, row);
}

bool model_measure(struct model_job *job, const attn_tensor *rows, double *metrics)
{
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    struct prepared_weights *prepared = NULL;
    attn_prediction_head head;
    attn_tensor scores;
    const bool is_ok = model_head_take(job, &head, &prepared) &&
                       outcome_note(&job->outcome, attn_predict(&head, rows, job->runtime, job->outcome.arena, &scores,
                                                                job->outcome.err));
    for (size_t row = 0; is_ok && row < scores.shape[0]; row++) {
        const attn_tensor of_row =
            attn_tensor_view((char *)scores.data + row * scores.shape[1] * attn_dtype_bytes(scores.dtype), scores.dtype,
                             2, (const size_t[]){1, scores.shape[1]});
        metrics[row] = model_metric_value(job, &of_row);
    }
    prepared_weights_release(prepared);
    attn_arena_release(job->outcome.arena, mark);
    return is_ok && model_job_goes_on(job);
}

bool model_predict(struct model_job *job, const attn_tensor *normed, size_t layer, size_t item,
                   const struct model_words *words)
{
    attn_prediction_head head;
    const bool has_scores = job->logits != NULL || job->classes.logits != NULL || job->classes.spans != NULL ||
                            job->attribution.bias != NULL;
    if (words->ids == NULL && words->ranks == NULL && (words != &job->predictions || !has_scores))
        return true;
    const attn_arena_mark mark = attn_arena_mark_here(job->outcome.arena);
    struct prepared_weights *prepared = NULL;
    struct head_block block = {.job = job, .words = words, .layer = layer, .item = item};
    const bool is_ok = model_head_take(job, &head, &prepared) && predict(&block, &head, normed);
    prepared_weights_release(prepared);
    attn_arena_release(job->outcome.arena, mark);
    return is_ok;
}
