/* embedding.c: makes the input of the first layer of an item, and the final norm. */
#include "service/run/model/item.h"

#include <stdio.h>
#include <string.h>

#include "attn/model.h"

/* The share of tokens that were not dropped when ESM was trained: 1 - 0.15 * 0.8. */
#define ESM_KEPT 0.88

bool model_reads_as_it_is(const attn_tensor *tensor, attn_dtype compute)
{
    const bool is_narrow = tensor->dtype == ATTN_F16 || tensor->dtype == ATTN_BF16,
               is_aligned = (uintptr_t)tensor->data % attn_dtype_bytes(tensor->dtype) == 0;
    return is_aligned && (tensor->dtype == compute || (compute == ATTN_F32 && tensor->rank > 1 && is_narrow));
}

/* Converts in stretches, and asks before each whether the request is cancelled. */
static bool convert_numbers(struct model_job *job, const attn_tensor *from, const attn_tensor *to)
{
    const size_t count = attn_tensor_count(from);
    attn_error *err = job->outcome.err;
    for (size_t first = 0; first < count; first += PACE_BYTES) {
        const size_t some = count - first < PACE_BYTES ? count - first : PACE_BYTES;
        if (attn_arena_is_cancelled(job->outcome.arena))
            return model_job_fail_cancelled(job);
        if (attn_convert((char *)to->data + first * attn_dtype_bytes(to->dtype), to->dtype,
                         (const char *)from->data + first * attn_dtype_bytes(from->dtype), from->dtype, some,
                         err) != ATTN_OK) /* from the start again, so that the error names the index in the whole */
            return outcome_note(&job->outcome,
                                attn_convert(to->data, to->dtype, from->data, from->dtype, first + some, err));
    }
    return true;
}

/*
 * *converted refers to the tensor in the compute type, in the arena unless it has that type; NULL when it is absent. A
 * matrix of 16 bits stays as it is for products of float32, which widen it as they read it.
 */
static bool convert(struct model_job *job, const attn_tensor *tensor, const attn_tensor **converted)
{
    const attn_dtype compute = model_job_compute(job);
    *converted = NULL;
    if (tensor->data == NULL)
        return true;
    attn_tensor *own = outcome_take(&job->outcome, 1, sizeof *own);
    const size_t count = attn_tensor_count(tensor);
    if (own == NULL)
        return false;
    *own = *tensor;
    *converted = own;
    if (model_reads_as_it_is(tensor, compute))
        return true;
    void *data = outcome_take(&job->outcome, count, attn_dtype_bytes(compute));
    if (outcome_has_failed(&job->outcome))
        return false;
    *own = attn_tensor_view(data, compute, tensor->rank, tensor->shape);
    return convert_numbers(job, tensor, own);
}

bool model_convert_affine(struct model_job *job, const attn_tensor *weight, const attn_tensor *bias,
                          attn_affine *affine)
{
    return convert(job, weight, &affine->weight) && convert(job, bias, &affine->bias);
}

bool model_convert_norm(struct model_job *job, const struct model_norm *norm, attn_token_norm *converted)
{
    *converted = (attn_token_norm){.type = norm->type, .eps = norm->eps};
    return model_convert_affine(job, &norm->weight, &norm->bias, &converted->weights);
}

double model_product_bytes(const struct model_job *job, double features)
{
    enum { NUMBERS = 5 << 14, WIDENED = 256 }; /* columns of 16 bits that the BLAS reads as float */
    return (double)job->runtime->threads *
           (NUMBERS * (double)attn_dtype_bytes(model_job_compute(job)) + WIDENED * sizeof(float) * features);
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
    const double element = (double)attn_dtype_bytes(model_job_compute(job)), width = (double)model_width(stack);
    const double inside = embedding->projection.data != NULL ? (double)embedding->projection.shape[1] : width;
    const double widest = inside > width ? inside : width, small = 64 * widest + 4 * (double)ATTN_ALIGNMENT * 16;
    double numbers = 6 * (double)count * widest + (double)job->runtime->threads * widest + small, deepest = inside;
    if (embedding->dropped_id >= 0)
        numbers += 6 * (double)count * (double)embedding->words.shape[1];
    if (embedding->projection.data != NULL)
        numbers += (double)attn_tensor_count(&embedding->projection) + 2 * (double)count * width;
    if (embedding->kernel.data != NULL) {
        const double inner = (double)attn_tensor_count(&embedding->kernel) / (double)embedding->kernel.shape[0];
        const bool is_audio = embedding->second_kernel.data != NULL; /* with twice as many frames before it */
        numbers += (double)attn_tensor_count(&embedding->kernel) + (double)count * (is_audio ? 2 * inner : inner);
        numbers += is_audio ? (double)attn_tensor_count(&embedding->second_kernel) + 5 * (double)count * width : 0;
        deepest = is_audio && 3 * width > inner ? 3 * width : inner;
    }
    const bool multiplies = embedding->projection.data != NULL || embedding->kernel.data != NULL;
    const double scratch = multiplies ? model_product_bytes(job, deepest) : 0;
    const double bytes = numbers * element + scratch + (double)job->runtime->threads * 32 * widest;
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
static bool number_positions(struct model_job *job, const struct model_embedding *embedding,
                             const struct model_sequence *sequence, size_t first, const int64_t **positions)
{
    const int64_t pad = job->version->model.pad_id;
    *positions = NULL;
    if (embedding->positions.data == NULL)
        return true;
    int64_t *rows = outcome_take(&job->outcome, sequence->count, sizeof *rows), next = (int64_t)embedding->first;
    if (outcome_has_failed(&job->outcome))
        return false;
    for (size_t i = 0; i < sequence->count; i++) {
        const bool is_padding =
            embedding->counts == MODEL_COUNTS_WORDS && sequence->ids != NULL && sequence->ids[i] == pad;
        rows[i] = is_padding ? (int64_t)embedding->first - 1 : next++;
    }
    *positions = rows + first;
    return true;
}

/* Names the member of the request where the core names the member of its own input. */
static void name_input(const struct model_job *job, const struct model_sequence *sequence)
{
    if (job->outcome.status != ATTN_ERR_VALUE && job->outcome.status != ATTN_ERR_SHAPE)
        return;
    const char *field = sequence->pixels.data != NULL      ? "/inputs/pixels"
                        : sequence->audio.data != NULL     ? "/inputs/audio"
                        : sequence->features.data != NULL  ? "/inputs/features"
                        : sequence->vectors.data != NULL   ? "/inputs/embeddings"
                        : job->request->inputs.ids != NULL ? "/inputs/ids"
                                                           : "/inputs/text";
    snprintf(job->outcome.err->field, sizeof job->outcome.err->field, "%s", field);
}

static bool cut_image(struct model_job *job, const struct model_embedding *embedding, const attn_tensor *pixels,
                      attn_tensor *vectors)
{
    const size_t d = embedding->kernel.shape[0], inner = attn_tensor_count(&embedding->kernel) / d;
    const attn_tensor kernel =
        attn_tensor_view(embedding->kernel.data, embedding->kernel.dtype, 2, (const size_t[]){d, inner});
    attn_patches patches = {.compute = model_job_compute(job),
                            .channels = embedding->kernel.shape[1],
                            .patch = embedding->kernel.shape[2],
                            .leading = embedding->leading};
    return model_convert_affine(job, &kernel, &embedding->kernel_bias, &patches.kernel) &&
           outcome_note(&job->outcome, attn_embed_patches(&patches, pixels, job->runtime, job->outcome.arena, vectors,
                                                          job->outcome.err));
}

/* *features become those of the request, or of its audio, and are shown where they are wanted. */
static bool hear(struct model_job *job, const struct model_embedding *embedding, size_t item, attn_tensor *features)
{
    const struct model_sequence *sequence = &job->items[item].of[0];
    *features = sequence->features;
    if (sequence->audio.data != NULL &&
        !outcome_note(&job->outcome,
                      attn_log_mel(&sequence->audio, embedding->kernel.shape[1], model_audio_frames(embedding),
                                   job->runtime, job->outcome.arena, features, job->outcome.err)))
        return false;
    if (job->features != NULL)
        memcpy(model_copy_place(&job->features->tensor, item, 0), features->data,
               attn_tensor_count(features) * attn_dtype_bytes(features->dtype));
    return true;
}

/* Two convolutions over the frames of audio. */
static bool convolve(struct model_job *job, const struct model_embedding *embedding, const attn_tensor *features,
                     attn_tensor *vectors)
{
    const attn_tensor *const kernels[] = {&embedding->kernel, &embedding->second_kernel}, *const biases[] = {
                                                                                              &embedding->kernel_bias,
                                                                                              &embedding->second_bias};
    bool is_ok = true;
    *vectors = *features; /* (mels, frames), with its axes exchanged */
    vectors->shape[0] = features->shape[1];
    vectors->shape[1] = features->shape[0];
    vectors->stride[0] = features->stride[1];
    vectors->stride[1] = features->stride[0];
    for (size_t i = 0; i < 2 && is_ok; i++) {
        const size_t shape[] = {kernels[i]->shape[0], kernels[i]->shape[1] * kernels[i]->shape[2]};
        const attn_tensor kernel = attn_tensor_view(kernels[i]->data, kernels[i]->dtype, 2, shape);
        const attn_tensor frames = *vectors;
        attn_convolution convolution = {.compute = model_job_compute(job), .stride = i + 1};
        is_ok = model_convert_affine(job, &kernel, biases[i], &convolution.kernel) &&
                outcome_note(&job->outcome, attn_convolve(&convolution, &frames, job->runtime, job->outcome.arena,
                                                          vectors, job->outcome.err));
    }
    return is_ok;
}

/*
 * *vectors become the rows of the words; or as ESM has them: those of the masked tokens are 0, and the others are enlarged
 * for it (struct model_embedding).
 */
static bool read_words(struct model_job *job, const struct model_embedding *embedding,
                       const struct model_sequence *sequence, attn_tensor *vectors)
{
    const bool drops = embedding->dropped_id >= 0;
    const size_t row = embedding->words.shape[1] * attn_dtype_bytes(model_job_compute(job));
    size_t dropped = 0;
    for (size_t i = 0; i < sequence->count; i++)
        dropped += sequence->ids[i] == embedding->dropped_id;
    const double kept = (double)(sequence->count - dropped) / (double)sequence->count;
    const attn_embedding core = {.compute = model_job_compute(job),
                                 .words = embedding->words,
                                 .scale = !drops     ? embedding->scale
                                          : kept > 0 ? ESM_KEPT / kept
                                                     : 1};
    const attn_embedding_input input = {.count = sequence->count, .ids = sequence->ids};
    const bool is_ok = outcome_note(
        &job->outcome, attn_embed(&core, &input, job->runtime, job->outcome.arena, vectors, job->outcome.err));
    for (size_t i = 0; is_ok && drops && i < sequence->count; i++)
        if (sequence->ids[i] == embedding->dropped_id)
            memset((char *)vectors->data + i * row, 0, row);
    return is_ok;
}

/* What attn_embed takes. vectors NULL: the ids stand for them. */
struct embedding_input {
    attn_embedding core;
    attn_embedding_input input;
};

static bool describe(struct model_job *job, const struct model_embedding *embedding,
                     const struct model_sequence *sequence, size_t first, const attn_tensor *vectors,
                     struct embedding_input *made)
{
    *made = (struct embedding_input){
        .core = {.compute = model_job_compute(job),
                 .words = embedding->words,
                 .scale = embedding->scale,
                 .positions = embedding->positions,
                 .types = embedding->types,
                 .positions_last = embedding->positions_last,
                 .norm_last = embedding->norm_last,
                 .layout = ATTN_LAYOUT_OUT_IN},
        .input = {.count = sequence->count - first,
                  .ids = vectors == NULL ? sequence->ids + first : NULL,
                  .types = sequence->types != NULL ? sequence->types + first : NULL,
                  .vectors = vectors},
    };
    return model_convert_norm(job, &embedding->norm, &made->core.norm) &&
           model_convert_affine(job, &embedding->projection, &embedding->projection_bias, &made->core.projection) &&
           number_positions(job, embedding, sequence, first, &made->input.positions);
}

/* The vectors of what is no plain word. */
static bool read_vectors(struct model_job *job, const struct model_embedding *embedding,
                         const struct model_sequence *sequence, size_t item, attn_tensor *vectors)
{
    attn_tensor features;
    *vectors = sequence->vectors;
    if (sequence->pixels.data != NULL)
        return cut_image(job, embedding, &sequence->pixels, vectors);
    if (sequence->audio.data != NULL || sequence->features.data != NULL)
        return hear(job, embedding, item, &features) && convolve(job, embedding, &features, vectors);
    return sequence->ids == NULL || read_words(job, embedding, sequence, vectors);
}

static const struct model_embedding *embedding_of(const struct model_job *job, size_t stack)
{
    return &job->version->model.stacks[stack].embedding;
}

static bool run_embedding(struct model_job *job, size_t stack, size_t item, size_t first, const attn_tensor *vectors,
                          attn_tensor *hidden)
{
    struct embedding_input made;
    return describe(job, embedding_of(job, stack), &job->items[item].of[stack], first, vectors, &made) &&
           outcome_note(&job->outcome, attn_embed(&made.core, &made.input, job->runtime, job->outcome.arena, hidden,
                                                  job->outcome.err));
}

bool model_embed(struct model_job *job, size_t stack, size_t item, size_t first, attn_tensor *hidden)
{
    const struct model_sequence *sequence = &job->items[item].of[stack];
    const bool is_words = sequence->ids != NULL && embedding_of(job, stack)->dropped_id < 0;
    attn_tensor vectors;
    const bool is_ok = (is_words || read_vectors(job, embedding_of(job, stack), sequence, item, &vectors)) &&
                       run_embedding(job, stack, item, first, is_words ? NULL : &vectors, hidden);
    name_input(job, sequence);
    return is_ok;
}

bool model_embed_vectors(struct model_job *job, size_t stack, size_t item, attn_tensor *vectors)
{
    const struct model_sequence *sequence = &job->items[item].of[stack];
    const bool is_ok = read_vectors(job, embedding_of(job, stack), sequence, item, vectors);
    name_input(job, sequence);
    return is_ok;
}

bool model_embed_from(struct model_job *job, size_t stack, size_t item, const attn_tensor *vectors, attn_tensor *hidden)
{
    const bool is_ok = run_embedding(job, stack, item, 0, vectors, hidden);
    name_input(job, &job->items[item].of[stack]);
    return is_ok;
}

bool model_embed_back(struct model_job *job, size_t stack, size_t item, const attn_tensor *vectors,
                      const attn_tensor *behind, attn_tensor *before)
{
    struct embedding_input made;
    return describe(job, embedding_of(job, stack), &job->items[item].of[stack], 0, vectors, &made) &&
           outcome_note(&job->outcome, attn_embed_back(&made.core, &made.input, behind, job->runtime,
                                                       job->outcome.arena, before, job->outcome.err));
}

/* ---- final norm ---- */

bool model_norm(struct model_job *job, const struct model_stack *stack, const attn_tensor *hidden, attn_tensor *normed)
{
    attn_token_norm norm;
    return model_convert_norm(job, &stack->norm, &norm) &&
           outcome_note(&job->outcome,
                        attn_norm_tokens(&norm, hidden, job->runtime, job->outcome.arena, normed, job->outcome.err));
}
