/* embedding.c: makes the input of the first layer of an item, and the final norm. */
#include "service/run/model/item.h"

#include <stdio.h>
#include <string.h>

#include "attn/model.h"

/* The share of tokens that were not dropped when ESM was trained: 1 - 0.15 * 0.8. */
#define ESM_KEPT 0.88

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

attn_status model_convert_affine(struct model_job *job, const attn_tensor *weight, const attn_tensor *bias,
                                 attn_affine *affine)
{
    attn_status status = convert(job, weight, &affine->weight);
    return status == ATTN_OK ? convert(job, bias, &affine->bias) : status;
}

static attn_status convert_norm(struct model_job *job, const struct model_norm *norm, attn_token_norm *converted)
{
    *converted = (attn_token_norm){.type = norm->type, .eps = norm->eps};
    return model_convert_affine(job, &norm->weight, &norm->bias, &converted->weights);
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
    if (embedding->dropped_id >= 0)
        numbers += 6 * (double)count * (double)embedding->words.shape[1];
    if (embedding->projection.data != NULL)
        numbers += (double)attn_tensor_count(&embedding->projection) + 2 * (double)count * width;
    if (embedding->kernel.data != NULL) {
        const double inner = (double)attn_tensor_count(&embedding->kernel) / (double)embedding->kernel.shape[0];
        const bool is_audio = embedding->second_kernel.data != NULL; /* with twice as many frames before it */
        numbers += (double)attn_tensor_count(&embedding->kernel) + (double)count * (is_audio ? 2 * inner : inner);
        numbers += is_audio ? (double)attn_tensor_count(&embedding->second_kernel) + 5 * (double)count * width : 0;
    }
    const double bytes = numbers * element + (double)(job->runtime->threads << 20);
    return job->request->inputs.audio != NULL && embedding->second_kernel.data != NULL
               ? bytes + (double)attn_log_mel_bytes(embedding->kernel.shape[1], 2 * count, job->runtime->threads)
               : bytes;
}

double model_embed_flops(const struct model_job *job, const struct model_stack *stack, size_t count)
{
    enum { TRANSFORM = 402 * 400, BINS = 201 }; /* of attn_log_mel */
    const struct model_embedding *embedding = &stack->embedding;
    if (embedding->kernel.data == NULL)
        return 0;
    const double first = (double)attn_tensor_count(&embedding->kernel);
    if (embedding->second_kernel.data == NULL)
        return 2 * (double)count * first;
    const double heard = job->request->inputs.audio != NULL ? TRANSFORM + BINS * (double)embedding->kernel.shape[1] : 0;
    return 2 * (double)count * (2 * (first + heard) + (double)attn_tensor_count(&embedding->second_kernel));
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
                        : sequence->audio.data != NULL     ? "/inputs/audio"
                        : sequence->features.data != NULL  ? "/inputs/features"
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
    attn_status status = model_convert_affine(job, &kernel, &embedding->kernel_bias, &patches.kernel);
    return status == ATTN_OK ? attn_embed_patches(&patches, pixels, job->runtime, job->arena, vectors, job->err)
                             : status;
}

/* *features become those of the request, or of its audio, and are shown where they are wanted. */
static attn_status hear(struct model_job *job, const struct model_embedding *embedding, size_t item,
                        attn_tensor *features)
{
    const struct model_sequence *sequence = &job->items[item].of[0];
    attn_status status = ATTN_OK;
    *features = sequence->features;
    if (sequence->audio.data != NULL)
        status = attn_log_mel(&sequence->audio, embedding->kernel.shape[1], model_audio_frames(embedding), job->runtime,
                              job->arena, features, job->err);
    if (status == ATTN_OK && job->features != NULL)
        memcpy(model_copy_place(&job->features->tensor, item, 0), features->data,
               attn_tensor_count(features) * attn_dtype_bytes(features->dtype));
    return status;
}

/* Two convolutions over the frames of audio. */
static attn_status convolve(struct model_job *job, const struct model_embedding *embedding, const attn_tensor *features,
                            attn_tensor *vectors)
{
    const attn_tensor *const kernels[] = {&embedding->kernel, &embedding->second_kernel}, *const biases[] = {
                                                                                              &embedding->kernel_bias,
                                                                                              &embedding->second_bias};
    attn_status status = ATTN_OK;
    *vectors = *features; /* (mels, frames), with its axes exchanged */
    vectors->shape[0] = features->shape[1];
    vectors->shape[1] = features->shape[0];
    vectors->stride[0] = features->stride[1];
    vectors->stride[1] = features->stride[0];
    for (size_t i = 0; i < 2 && status == ATTN_OK; i++) {
        const size_t shape[] = {kernels[i]->shape[0], kernels[i]->shape[1] * kernels[i]->shape[2]};
        const attn_tensor kernel = attn_tensor_view(kernels[i]->data, kernels[i]->dtype, 2, shape);
        const attn_tensor frames = *vectors;
        attn_convolution convolution = {.compute = compute_of(job), .stride = i + 1};
        status = model_convert_affine(job, &kernel, biases[i], &convolution.kernel);
        if (status == ATTN_OK)
            status = attn_convolve(&convolution, &frames, job->runtime, job->arena, vectors, job->err);
    }
    return status;
}

/*
 * *vectors become the rows of the words as ESM has them: those of the masked tokens are 0, and the others are enlarged
 * for it (struct model_embedding).
 */
static attn_status drop_words(struct model_job *job, const struct model_embedding *embedding,
                              const struct model_sequence *sequence, attn_tensor *vectors)
{
    const size_t row = embedding->words.shape[1] * attn_dtype_bytes(compute_of(job));
    size_t dropped = 0;
    for (size_t i = 0; i < sequence->count; i++)
        dropped += sequence->ids[i] == embedding->dropped_id;
    const double kept = (double)(sequence->count - dropped) / (double)sequence->count;
    const attn_embedding core = {
        .compute = compute_of(job), .words = embedding->words, .scale = kept > 0 ? ESM_KEPT / kept : 1};
    const attn_embedding_input input = {.count = sequence->count, .ids = sequence->ids};
    const attn_status status = attn_embed(&core, &input, job->runtime, job->arena, vectors, job->err);
    for (size_t i = 0; status == ATTN_OK && i < sequence->count; i++)
        if (sequence->ids[i] == embedding->dropped_id)
            memset((char *)vectors->data + i * row, 0, row);
    return status;
}

static attn_status embed(struct model_job *job, const struct model_embedding *embedding,
                         const struct model_sequence *sequence, size_t item, attn_tensor *hidden)
{
    attn_embedding core = {.compute = compute_of(job),
                           .words = embedding->words,
                           .scale = embedding->scale,
                           .positions = embedding->positions,
                           .types = embedding->types,
                           .positions_last = embedding->positions_last,
                           .norm_last = embedding->norm_last,
                           .layout = ATTN_LAYOUT_OUT_IN};
    attn_embedding_input input = {
        .count = sequence->count, .ids = sequence->ids, .types = sequence->types, .vectors = &sequence->vectors};
    attn_tensor vectors, features;
    attn_status status = convert_norm(job, &embedding->norm, &core.norm);
    if (status == ATTN_OK)
        status = model_convert_affine(job, &embedding->projection, &embedding->projection_bias, &core.projection);
    if (status == ATTN_OK && sequence->pixels.data != NULL) {
        status = cut_image(job, embedding, &sequence->pixels, &vectors);
        input.vectors = &vectors;
    }
    if (status == ATTN_OK && (sequence->audio.data != NULL || sequence->features.data != NULL)) {
        status = hear(job, embedding, item, &features);
        if (status == ATTN_OK)
            status = convolve(job, embedding, &features, &vectors);
        input.vectors = &vectors;
    }
    if (status == ATTN_OK && embedding->dropped_id >= 0 && sequence->ids != NULL) {
        status = drop_words(job, embedding, sequence, &vectors);
        input.vectors = &vectors;
        input.ids = NULL;
    }
    if (status == ATTN_OK)
        status = number_positions(job, embedding, sequence, &input.positions);
    return status == ATTN_OK ? attn_embed(&core, &input, job->runtime, job->arena, hidden, job->err) : status;
}

attn_status model_embed(struct model_job *job, size_t stack, size_t item, attn_tensor *hidden)
{
    const struct model_sequence *sequence = &job->items[item].of[stack];
    const struct model_embedding *embedding = &job->version->model.stacks[stack].embedding;
    return name_input(job, embed(job, embedding, sequence, item, hidden), sequence);
}

/* ---- final norm ---- */

attn_status model_norm(struct model_job *job, const struct model_stack *stack, const attn_tensor *hidden,
                       attn_tensor *normed)
{
    attn_token_norm norm;
    attn_status status = convert_norm(job, &stack->norm, &norm);
    return status == ATTN_OK ? attn_norm_tokens(&norm, hidden, job->runtime, job->arena, normed, job->err) : status;
}
