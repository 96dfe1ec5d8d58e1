/* ends.c: the two ends of a model for one item. */
#include "service/run/model/ends.h"

#include <stdio.h>
#include <string.h>

#include "attn/model.h"
#include "codec/bytes/pace.h"
#include "service/run/model/copy.h"

enum { HEAD_ROWS = 64 /* tokens that the head scores at once */ };

static attn_status fail_memory(const struct model_job *job)
{
    return attn_fail(job->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the ends of the model");
}

static attn_dtype compute_of(const struct model_job *job)
{
    return job->request->common.request.options.compute;
}

/* Converts in stretches, and asks before each whether the request is cancelled. */
static attn_status convert_numbers(struct model_job *job, const attn_tensor *from, const attn_tensor *to)
{
    const size_t count = attn_tensor_count(from);
    attn_status status = ATTN_OK;
    for (size_t first = 0; first < count && status == ATTN_OK; first += PACE_BYTES) {
        const size_t some = count - first < PACE_BYTES ? count - first : PACE_BYTES;
        if (attn_arena_is_cancelled(job->arena))
            return model_job_fail_cancelled(job);
        status =
            attn_convert((char *)to->data + first * attn_dtype_bytes(to->dtype), to->dtype,
                         (const char *)from->data + first * attn_dtype_bytes(from->dtype), from->dtype, some, job->err);
        if (status != ATTN_OK) /* from the start again, so that the error names the index in the whole tensor */
            status = attn_convert(to->data, to->dtype, from->data, from->dtype, first + some, job->err);
    }
    return status;
}

/*
 * *converted refers to the tensor in the compute type, in the arena unless it has that type; NULL when it is absent. A
 * weight of 16 bits stays as it is when the kernel has panels of it.
 */
static attn_status convert(struct model_job *job, const attn_tensor *tensor, const attn_tensor **converted)
{
    const attn_dtype compute = compute_of(job);
    *converted = NULL;
    if (tensor->data == NULL)
        return ATTN_OK;
    attn_tensor *own = attn_arena_take(job->arena, 1, sizeof *own);
    const size_t count = attn_tensor_count(tensor);
    if (own == NULL)
        return fail_memory(job);
    *own = *tensor;
    *converted = own;
    const bool is_aligned = (uintptr_t)tensor->data % attn_dtype_bytes(tensor->dtype) == 0;
    if ((tensor->dtype == compute || tensor->panels != NULL) && is_aligned)
        return ATTN_OK;
    void *data = attn_arena_take(job->arena, count, attn_dtype_bytes(compute));
    if (data == NULL)
        return fail_memory(job);
    *own = attn_tensor_view(data, compute, tensor->rank, tensor->shape);
    return convert_numbers(job, tensor, own);
}

static attn_status convert_affine(struct model_job *job, const attn_tensor *weight, const attn_tensor *bias,
                                  attn_affine *affine)
{
    attn_status status = convert(job, weight, &affine->weight);
    return status == ATTN_OK ? convert(job, bias, &affine->bias) : status;
}

static attn_status convert_norm(struct model_job *job, const struct model_norm *norm, attn_token_norm *converted)
{
    *converted = (attn_token_norm){.type = norm->type, .eps = norm->eps};
    return convert_affine(job, &norm->weight, &norm->bias, &converted->weights);
}

/* ---- embeddings ---- */

size_t model_width(const struct model_stack *stack)
{
    const struct model_embedding *embedding = &stack->embedding;
    if (embedding->projection.data != NULL)
        return embedding->projection.shape[0];
    return embedding->kernel.data != NULL ? embedding->kernel.shape[0] : embedding->words.shape[1];
}

double model_embed_bytes(const struct model_job *job, const struct model_stack *stack, size_t count)
{
    const struct model_embedding *embedding = &stack->embedding;
    const double element = (double)attn_dtype_bytes(compute_of(job)), width = (double)model_width(stack);
    const double small = 64 * width + 4 * (double)ATTN_ALIGNMENT * 16;
    double numbers = 6 * (double)count * width + (double)job->runtime->threads * width + small;
    if (embedding->projection.data != NULL)
        numbers += (double)attn_tensor_count(&embedding->projection) + 2 * (double)count * width;
    if (embedding->kernel.data != NULL) {
        const double inner = (double)attn_tensor_count(&embedding->kernel) / (double)embedding->kernel.shape[0];
        numbers += (double)attn_tensor_count(&embedding->kernel) + (double)count * inner;
    }
    return numbers * element + (double)(job->runtime->threads << 20);
}

/* Rows of the table of positions. A token that is padding has the row before the first. */
static attn_status number_positions(struct model_job *job, const struct model_embedding *embedding,
                                    const struct model_sequence *sequence, const int64_t **positions)
{
    const int64_t pad = job->version->model.pad_id;
    *positions = NULL;
    if (embedding->positions.data == NULL)
        return ATTN_OK;
    int64_t *rows = attn_arena_take(job->arena, sequence->count, sizeof *rows), next = (int64_t)embedding->first;
    if (rows == NULL)
        return fail_memory(job);
    for (size_t i = 0; i < sequence->count; i++) {
        const bool is_padding =
            embedding->counts == MODEL_COUNTS_WORDS && sequence->ids != NULL && sequence->ids[i] == pad;
        rows[i] = is_padding ? (int64_t)embedding->first - 1 : next++;
    }
    *positions = rows;
    return ATTN_OK;
}

/* Names the member of the request where the core names the member of its own input. */
static attn_status name_input(struct model_job *job, attn_status status, const struct model_sequence *sequence)
{
    if (status != ATTN_ERR_VALUE && status != ATTN_ERR_SHAPE)
        return status;
    const char *field = sequence->pixels.data != NULL      ? "/inputs/pixels"
                        : sequence->vectors.data != NULL   ? "/inputs/embeddings"
                        : job->request->inputs.ids != NULL ? "/inputs/ids"
                                                           : "/inputs/text";
    snprintf(job->err->field, sizeof job->err->field, "%s", field);
    return status;
}

static attn_status cut_image(struct model_job *job, const struct model_embedding *embedding, const attn_tensor *pixels,
                             attn_tensor *vectors)
{
    const size_t d = embedding->kernel.shape[0], inner = attn_tensor_count(&embedding->kernel) / d;
    const attn_tensor kernel =
        attn_tensor_view(embedding->kernel.data, embedding->kernel.dtype, 2, (const size_t[]){d, inner});
    attn_patches patches = {.compute = compute_of(job),
                            .channels = embedding->kernel.shape[1],
                            .patch = embedding->kernel.shape[2],
                            .leading = embedding->leading};
    attn_status status = convert_affine(job, &kernel, &embedding->kernel_bias, &patches.kernel);
    return status == ATTN_OK ? attn_embed_patches(&patches, pixels, job->runtime, job->arena, vectors, job->err)
                             : status;
}

static attn_status embed(struct model_job *job, const struct model_embedding *embedding,
                         const struct model_sequence *sequence, attn_tensor *hidden)
{
    attn_embedding core = {.compute = compute_of(job),
                           .words = embedding->words,
                           .scale = embedding->scale,
                           .positions = embedding->positions,
                           .types = embedding->types,
                           .positions_last = embedding->positions_last,
                           .layout = ATTN_LAYOUT_OUT_IN};
    attn_embedding_input input = {
        .count = sequence->count, .ids = sequence->ids, .types = sequence->types, .vectors = &sequence->vectors};
    attn_tensor vectors;
    attn_status status = convert_norm(job, &embedding->norm, &core.norm);
    if (status == ATTN_OK)
        status = convert_affine(job, &embedding->projection, &embedding->projection_bias, &core.projection);
    if (status == ATTN_OK && sequence->pixels.data != NULL) {
        status = cut_image(job, embedding, &sequence->pixels, &vectors);
        input.vectors = &vectors;
    }
    if (status == ATTN_OK)
        status = number_positions(job, embedding, sequence, &input.positions);
    return status == ATTN_OK ? attn_embed(&core, &input, job->runtime, job->arena, hidden, job->err) : status;
}

attn_status model_embed(struct model_job *job, const struct model_stack *stack, const struct model_sequence *sequence,
                        attn_tensor *hidden)
{
    return name_input(job, embed(job, &stack->embedding, sequence, hidden), sequence);
}

/* ---- final norm ---- */

attn_status model_norm(struct model_job *job, const struct model_stack *stack, const attn_tensor *hidden,
                       attn_tensor *normed)
{
    attn_token_norm norm;
    attn_status status = convert_norm(job, &stack->norm, &norm);
    return status == ATTN_OK ? attn_norm_tokens(&norm, hidden, job->runtime, job->arena, normed, job->err) : status;
}

/* ---- head ---- */

size_t model_head_rows(const struct model_job *job, size_t count)
{
    const attn_selection *queries = &job->parts[job->last_stack].shown->queries;
    if (job->version->model.head.is_of_first)
        return 1;
    return attn_selects_all(queries) ? count : queries->count;
}

/* The tokens of a sequence that the head can score. */
static size_t head_tokens(const struct model_job *job, size_t count)
{
    return job->version->model.head.is_of_first ? 1 : count;
}

static double head_numbers(const struct model_head *head)
{
    double numbers = 0;
    for (size_t i = 0; i < head->source.count; i++)
        numbers += (double)attn_tensor_count(&head->source.attachments[i].tensor);
    return numbers;
}

double model_head_bytes(const struct model_job *job, size_t count)
{
    const struct model_head *head = &job->version->model.head;
    const size_t tokens = head_tokens(job, count), k = job->request->predictions_k;
    const double rows = (double)(tokens < HEAD_ROWS ? tokens : HEAD_ROWS),
                 element = (double)attn_dtype_bytes(compute_of(job));
    const double width = (double)model_width(&job->version->model.stacks[job->last_stack]);
    const double kept = (double)(k < head->words ? k : head->words) * (sizeof(int64_t) + sizeof(double));
    return element * (rows * ((double)head->words + 6 * width) + head_numbers(head)) + rows * kept +
           (double)(job->runtime->threads << 21);
}

/* The head scores whole blocks of tokens. */
double model_head_flops(const struct model_job *job, size_t count)
{
    const double tokens = (double)head_tokens(job, count), most = (double)model_head_rows(job, count) * HEAD_ROWS;
    return 2 * (tokens < most ? tokens : most) * head_numbers(&job->version->model.head);
}

static const attn_tensor *find_weight(const struct envelope_source *source, const char *path)
{
    static const attn_tensor absent = {.data = NULL};
    for (size_t i = 0; i < source->count; i++)
        if (strcmp(source->attachments[i].path, path) == 0)
            return &source->attachments[i].tensor;
    return &absent;
}

static attn_status make_head(struct model_job *job, const struct envelope_source *source, attn_prediction_head *made)
{
    const struct model_head *head = &job->version->model.head;
    *made = (attn_prediction_head){.compute = compute_of(job),
                                   .dense_layout = ATTN_LAYOUT_OUT_IN,
                                   .output_layout = ATTN_LAYOUT_OUT_IN,
                                   .activation =
                                       attn_activation_from_name(head->activation != NULL ? head->activation : ""),
                                   .norm = {.type = head->norm, .eps = head->norm_eps},
                                   .scale = head->scale,
                                   .softcap = head->softcap};
    attn_status status = convert_affine(job, find_weight(source, "weights.dense.weight"),
                                        find_weight(source, "weights.dense.bias"), &made->dense);
    if (status == ATTN_OK)
        status = convert_affine(job, find_weight(source, "weights.norm.weight"),
                                find_weight(source, "weights.norm.bias"), &made->norm.weights);
    return status == ATTN_OK ? convert_affine(job, find_weight(source, "weights.output.weight"),
                                              find_weight(source, "weights.output.bias"), &made->output)
                             : status;
}

/* The rows of a block of tokens that the request selects, and their rows in the output. */
struct head_rows {
    size_t count, rows[HEAD_ROWS], places[HEAD_ROWS];
};

/* Of the tokens from first on, of which the block has count. */
static void choose_rows(const struct model_job *job, size_t first, size_t count, struct head_rows *chosen)
{
    const attn_selection *queries = &job->parts[job->last_stack].shown->queries;
    const bool is_all = attn_selects_all(queries) || job->version->model.head.is_of_first;
    chosen->count = 0;
    for (size_t i = 0; i < count && is_all; i++) {
        chosen->rows[chosen->count] = i;
        chosen->places[chosen->count++] = first + i;
    }
    for (size_t i = 0; i < queries->count && !is_all; i++) {
        const size_t row = attn_selected(queries, i);
        if (row < first || row - first >= count)
            continue;
        chosen->rows[chosen->count] = row - first;
        chosen->places[chosen->count++] = i;
    }
}

struct words_run {
    const struct model_job *job;
    const attn_tensor *scores;
    const struct head_rows *chosen;
    size_t k;
    int64_t *ids;
    double *probabilities;
};

static void find_words(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct words_run *run = argument;
    const size_t words = run->scores->shape[1], row = run->chosen->rows[index];
    if (pace_is_cancelled(run->job->runtime))
        return;
    attn_top_words((const char *)run->scores->data + row * words * attn_dtype_bytes(run->scores->dtype),
                   run->scores->dtype, words, run->k, run->ids + index * run->k, run->probabilities + index * run->k,
                   run->job->runtime);
}

/* The place of [layer][item][row] in an output of rank 4, [item][row] of rank 3, [item] of rank 2. */
static char *row_of(const struct model_output *output, size_t layer, size_t item, size_t row)
{
    const attn_tensor *to = &output->tensor;
    const size_t indices[] = {layer, item, row};
    ptrdiff_t at = 0;
    for (int axis = 0; axis + 1 < to->rank && axis < 3; axis++)
        at += (ptrdiff_t)indices[axis < 2 && to->rank < 4 ? axis + 1 : axis] * to->stride[axis];
    return (char *)to->data + at * (ptrdiff_t)attn_dtype_bytes(to->dtype);
}

static attn_status put_words(struct model_job *job, const attn_tensor *scores, const struct head_rows *chosen,
                             size_t layer, size_t item, const struct model_words *words)
{
    const size_t rows = chosen->count, k = words->ids->tensor.shape[words->ids->tensor.rank - 1];
    struct words_run run = {job,
                            scores,
                            chosen,
                            k,
                            attn_arena_take(job->arena, rows * k, sizeof(int64_t)),
                            attn_arena_take(job->arena, rows * k, sizeof(double))};
    attn_status status = ATTN_OK;
    if (run.ids == NULL || run.probabilities == NULL)
        return fail_memory(job);
    job->runtime->run(job->runtime->context, rows, find_words, &run);
    if (pace_is_cancelled(job->runtime)) /* words of rows may be missing */
        return model_job_fail_cancelled(job);
    for (size_t i = 0; i < rows && status == ATTN_OK; i++) {
        memcpy(row_of(words->ids, layer, item, chosen->places[i]), run.ids + i * k, k * sizeof *run.ids);
        status = attn_convert(row_of(words->probabilities, layer, item, chosen->places[i]),
                              words->probabilities->tensor.dtype, run.probabilities + i * k, ATTN_F64, k, job->err);
    }
    return status;
}

static attn_status put_logits(struct model_job *job, const attn_tensor *scores, const struct head_rows *chosen,
                              size_t item, const struct model_output *logits)
{
    const size_t bytes = scores->shape[1] * attn_dtype_bytes(scores->dtype);
    struct pace pace = pace_begin(job->arena);
    for (size_t i = 0; i < chosen->count; i++) {
        if (pace_stops(&pace, bytes))
            return model_job_fail_cancelled(job);
        memcpy(row_of(logits, 0, item, chosen->places[i]), (const char *)scores->data + chosen->rows[i] * bytes, bytes);
    }
    return ATTN_OK;
}

/* Scores the tokens from first on, at most HEAD_ROWS of them. */
static attn_status predict_block(struct model_job *job, const attn_prediction_head *head, const attn_tensor *normed,
                                 size_t first, size_t layer, size_t item, const struct model_words *words,
                                 struct model_output *logits)
{
    const size_t left = head_tokens(job, normed->shape[0]) - first, count = left < HEAD_ROWS ? left : HEAD_ROWS;
    const size_t d = normed->shape[1];
    const attn_tensor rows = attn_tensor_view((char *)normed->data + first * d * attn_dtype_bytes(normed->dtype),
                                              normed->dtype, 2, (const size_t[]){count, d});
    const attn_arena_mark mark = attn_arena_mark_here(job->arena);
    struct head_rows chosen;
    attn_tensor scores;
    choose_rows(job, first, count, &chosen);
    if (chosen.count == 0)
        return ATTN_OK;
    attn_status status = attn_predict(head, &rows, job->runtime, job->arena, &scores, job->err);
    if (status == ATTN_OK && logits != NULL)
        status = put_logits(job, &scores, &chosen, item, logits);
    if (status == ATTN_OK && words->ids != NULL)
        status = put_words(job, &scores, &chosen, layer, item, words);
    attn_arena_release(job->arena, mark);
    return status;
}

/*
 * The blocks are those of the sequence, whatever the request selects, because a product rounds a row differently when
 * the other rows differ in number.
 */
static attn_status predict(struct model_job *job, const struct envelope_source *source, const attn_tensor *normed,
                           size_t layer, size_t item, const struct model_words *words, struct model_output *logits)
{
    attn_prediction_head head;
    attn_status status = make_head(job, source, &head);
    const size_t tokens = head_tokens(job, normed->shape[0]);
    for (size_t first = 0; first < tokens && status == ATTN_OK; first += HEAD_ROWS)
        status = predict_block(job, &head, normed, first, layer, item, words, logits);
    return status;
}

attn_status model_predict(struct model_job *job, const attn_tensor *normed, size_t layer, size_t item,
                          const struct model_words *words, struct model_output *logits)
{
    const struct model_head *head = &job->version->model.head;
    if (logits == NULL && words->ids == NULL)
        return ATTN_OK;
    struct envelope_source source = head->source;
    const attn_arena_mark mark = attn_arena_mark_here(job->arena);
    struct prepared_weights *prepared = NULL;
    if (compute_of(job) == ATTN_F32)
        prepared = prepared_weights_take(job->prepared, (struct prepared_slot *)(uintptr_t)&job->version->head_slot,
                                         &head->facts, job->runtime, job->arena, &source);
    attn_status status = predict(job, &source, normed, layer, item, words, logits);
    prepared_weights_release(prepared);
    attn_arena_release(job->arena, mark);
    return status;
}
