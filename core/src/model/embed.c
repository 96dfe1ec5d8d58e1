/* embed.c: from the tokens of one sequence, or the patches of an image, to the input of the first layer. */
#include <math.h>
#include <string.h>

#include "attn/model.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"
#include "model/dense.h"

enum { TASK_ROWS = 64 };

struct embed_run {
    const attn_embedding *embedding;
    const attn_embedding_input *input;
    size_t d;
    char *sum, *row; /* row: one row of a table for each thread */
};

/* The columns of the tables; of vectors, when there are no tables. */
static size_t table_width(const attn_embedding *embedding, const attn_embedding_input *input)
{
    static const attn_tensor none = {.data = NULL};
    const attn_tensor *positions = embedding->positions_last ? &none : &embedding->positions;
    const attn_tensor *const tables[] = {&embedding->words, positions, &embedding->types};
    for (size_t i = 0; i < 3; i++)
        if (tables[i]->data != NULL)
            return tables[i]->shape[1];
    return input != NULL && input->vectors != NULL ? input->vectors->shape[1] : 0;
}

size_t attn_embedding_width(const attn_embedding *embedding)
{
    const size_t projected = attn_dense_width(&embedding->projection, embedding->layout);
    return projected > 0 ? projected : table_width(embedding, NULL);
}

size_t attn_embedding_bytes(const attn_embedding *embedding, size_t count, size_t threads)
{
    const size_t element = attn_dtype_bytes(embedding->compute), d = table_width(embedding, NULL);
    const size_t rows = attn_round_up(count * d * element, ATTN_ALIGNMENT);
    const size_t projected = count * attn_dense_width(&embedding->projection, embedding->layout) * element;
    const size_t last = embedding->positions_last ? attn_embedding_width(embedding) * element : 0;
    const size_t normed = embedding->norm_last ? projected : 0;
    return 2 * rows + attn_round_up(threads * d * element, ATTN_ALIGNMENT) + attn_round_up(projected, ATTN_ALIGNMENT) +
           attn_round_up(last, ATTN_ALIGNMENT) + attn_round_up(normed, ATTN_ALIGNMENT) +
           (projected > 0 ? attn_dense_bytes(&embedding->projection, embedding->layout, embedding->compute, threads)
                          : 0);
}

/* ---- indices ---- */

static bool check_indices(const char *field, const char *what, const attn_tensor *table, const int64_t *indices,
                          size_t count, struct attn_check *check)
{
    for (size_t i = 0; indices != NULL && i < count; i++)
        if (indices[i] < 0 || (size_t)indices[i] >= table->shape[0])
            return attn_refuse(check, ATTN_ERR_VALUE, field, "~[%zu] is %lld, and the model has %s from 0 to %zu", i,
                               (long long)indices[i], what, table->shape[0] - 1);
    return true;
}

static attn_status check_input(const attn_embedding *embedding, const attn_embedding_input *input, attn_error *err)
{
    const attn_tensor *positions = &embedding->positions, *types = &embedding->types;
    struct attn_check check = {.err = err};
    check_indices("ids", "tokens", &embedding->words, input->ids, input->count, &check);
    if (positions->data != NULL && input->positions == NULL && input->count > positions->shape[0])
        attn_refuse(&check, ATTN_ERR_VALUE, "positions", "the sequence has %zu tokens, and the model has %zu positions",
                    input->count, positions->shape[0]);
    if (positions->data != NULL)
        check_indices("positions", "positions", positions, input->positions, input->count, &check);
    if (types->data != NULL)
        check_indices("types", "token types", types, input->types, input->count, &check);
    return check.status;
}

/* ---- rows ---- */

/* to = factor * row, in the compute type. */
static void read_row(const attn_embedding *embedding, const attn_tensor *table, size_t row, double factor, char *to)
{
    const size_t d = table->shape[1];
    const char *from = (const char *)table->data + row * d * attn_dtype_bytes(table->dtype);
    const attn_status status = attn_convert(to, embedding->compute, from, table->dtype, d, NULL);
    (void)status; /* both compute types hold every float16, bfloat16 and float32 */
    for (size_t f = 0; f < d && factor != 1; f++)
        attn_number_put(to, embedding->compute, f, factor * attn_number_get(to, embedding->compute, f));
}

static void add_row(const attn_embedding *embedding, const attn_tensor *table, size_t row, char *work, char *to)
{
    read_row(embedding, table, row, 1, work);
    for (size_t f = 0; f < table->shape[1]; f++)
        attn_number_add(to, embedding->compute, f, attn_number_get(work, embedding->compute, f));
}

static void add_position(const attn_embedding *embedding, const attn_embedding_input *input, size_t i, char *work,
                         char *to)
{
    add_row(embedding, &embedding->positions, input->positions != NULL ? (size_t)input->positions[i] : i, work, to);
}

static void embed_row(const struct embed_run *run, size_t i, char *work)
{
    const attn_embedding *embedding = run->embedding;
    const attn_embedding_input *input = run->input;
    const size_t bytes = run->d * attn_dtype_bytes(embedding->compute);
    char *to = run->sum + i * bytes;
    if (input->ids != NULL)
        read_row(embedding, &embedding->words, (size_t)input->ids[i], embedding->scale != 0 ? embedding->scale : 1, to);
    else
        memcpy(to, (const char *)input->vectors->data + i * bytes, bytes);
    if (embedding->types.data != NULL)
        add_row(embedding, &embedding->types, input->types != NULL ? (size_t)input->types[i] : 0, work, to);
    if (embedding->positions.data != NULL && !embedding->positions_last)
        add_position(embedding, input, i, work, to);
}

static void embed_task(void *argument, size_t index, size_t worker)
{
    const struct embed_run *run = argument;
    const size_t end = attn_min(run->input->count, (index + 1) * TASK_ROWS);
    char *work = run->row + worker * run->d * attn_dtype_bytes(run->embedding->compute);
    for (size_t i = index * TASK_ROWS; i < end; i++)
        embed_row(run, i, work);
}

/* Adds the positions to rows of their width. */
static attn_status add_positions(const attn_embedding *embedding, const attn_embedding_input *input, attn_arena *arena,
                                 const attn_tensor *rows, attn_error *err)
{
    const size_t width = rows->shape[1], element = attn_dtype_bytes(embedding->compute);
    char *work = attn_arena_take(arena, width, element);
    if (work == NULL)
        return attn_fail_no_memory(err);
    for (size_t i = 0; i < input->count; i++)
        add_position(embedding, input, i, work, (char *)rows->data + i * width * element);
    return ATTN_OK;
}

/* *sum = scale * words + types + positions, as far as these come before the norm. */
static attn_status add_tables(const attn_embedding *embedding, const attn_embedding_input *input,
                              const attn_runtime *runtime, attn_arena *arena, attn_tensor *sum, attn_error *err)
{
    const attn_status status = check_input(embedding, input, err);
    if (status != ATTN_OK)
        return status;
    const size_t d = table_width(embedding, input), element = attn_dtype_bytes(embedding->compute);
    struct embed_run run = {embedding, input, d, attn_arena_take(arena, input->count * d, element),
                            attn_arena_take(arena, runtime->threads * d, element)};
    if (run.sum == NULL || run.row == NULL)
        return attn_fail_no_memory(err);
    attn_spread(runtime, attn_ceil_div(input->count, TASK_ROWS), embed_task, &run);
    *sum = attn_tensor_view(run.sum, embedding->compute, 2, (const size_t[]){input->count, d});
    return ATTN_OK;
}

attn_status attn_embed(const attn_embedding *embedding, const attn_embedding_input *input, const attn_runtime *runtime,
                       attn_arena *arena, attn_tensor *output, attn_error *err)
{
    ATTN_FLOAT_MODE;
    attn_tensor sum;
    attn_status status = add_tables(embedding, input, runtime, arena, &sum, err);
    if (status != ATTN_OK)
        return status;
    attn_tensor rows = sum;
    if (!embedding->norm_last)
        status = attn_token_norm_run(&embedding->norm, &sum, runtime, arena, &rows, err);
    *output = rows;
    if (status == ATTN_OK && embedding->projection.weight != NULL)
        status = attn_dense(&embedding->projection, embedding->layout, &rows, runtime, arena, output, err);
    rows = *output;
    if (status == ATTN_OK && embedding->norm_last)
        status = attn_token_norm_run(&embedding->norm, &rows, runtime, arena, output, err);
    const bool has_last = embedding->positions_last && embedding->positions.data != NULL;
    return status == ATTN_OK && has_last ? add_positions(embedding, input, arena, output, err) : status;
}

attn_status attn_embed_back(const attn_embedding *embedding, const attn_embedding_input *input,
                            const attn_tensor *behind, const attn_runtime *runtime, attn_arena *arena,
                            attn_tensor *before, attn_error *err)
{
    ATTN_FLOAT_MODE;
    const attn_affine *projection = &embedding->projection;
    attn_tensor sum, grad = *behind;
    attn_status status = add_tables(embedding, input, runtime, arena, &sum, err);
    attn_tensor normed = sum; /* what the norm reads */
    if (status == ATTN_OK && embedding->norm_last && projection->weight != NULL)
        status = attn_dense(projection, embedding->layout, &sum, runtime, arena, &normed, err);
    *before = grad;
    if (status == ATTN_OK && embedding->norm_last)
        status = attn_token_norm_back(&embedding->norm, &normed, &grad, runtime, arena, before, err);
    grad = *before;
    if (status == ATTN_OK && projection->weight != NULL)
        status = attn_weight_directions(projection->weight, embedding->layout, 1, &grad, runtime, arena, before, err);
    grad = *before;
    return status == ATTN_OK && !embedding->norm_last
               ? attn_token_norm_back(&embedding->norm, &sum, &grad, runtime, arena, before, err)
               : status;
}

void attn_sinusoidal_positions(size_t count, size_t d, float *to)
{
    const size_t sines = (d + 1) / 2;
    for (size_t p = 0; p < count; p++)
        for (size_t j = 0; j < d; j++) {
            const size_t pair = j < sines ? j : j - sines;
            const double angle = (double)p / pow(10000, 2 * (double)pair / (double)d);
            to[p * d + j] = (float)(j < sines ? sin(angle) : cos(angle));
        }
}

/* ---- patches: an image as a sequence of vectors ---- */

/* The pixels of the patches, one patch a row, in the order (channel, y, x). */
static void unfold(const attn_patches *patches, const attn_tensor *pixels, char *to)
{
    const size_t height = pixels->shape[1], width = pixels->shape[2], side = patches->patch;
    const size_t element = attn_dtype_bytes(patches->compute);
    for (size_t top = 0; top + side <= height; top += side)
        for (size_t left = 0; left + side <= width; left += side)
            for (size_t channel = 0; channel < patches->channels; channel++)
                for (size_t y = top; y < top + side; y++, to += side * element)
                    memcpy(to, (const char *)pixels->data + ((channel * height + y) * width + left) * element,
                           side * element);
}

static attn_status check_pixels(const attn_patches *patches, const attn_tensor *pixels, attn_error *err)
{
    struct attn_check check = {.err = err};
    if (pixels->shape[0] != patches->channels)
        attn_refuse_shape(&check, "pixels", pixels, NULL, "an image has %zu channels, and the model takes %zu",
                          pixels->shape[0], patches->channels);
    else if (pixels->shape[1] < patches->patch || pixels->shape[2] < patches->patch)
        attn_refuse_shape(&check, "pixels", pixels, NULL,
                          "an image of %zu x %zu pixels cannot be cut into patches of %zu x %zu", pixels->shape[1],
                          pixels->shape[2], patches->patch, patches->patch);
    return check.status;
}

attn_status attn_embed_patches(const attn_patches *patches, const attn_tensor *pixels, const attn_runtime *runtime,
                               attn_arena *arena, attn_tensor *vectors, attn_error *err)
{
    ATTN_FLOAT_MODE;
    attn_status status = check_pixels(patches, pixels, err);
    if (status != ATTN_OK)
        return status;
    const size_t side = patches->patch, inner = patches->channels * side * side;
    const size_t count = pixels->shape[1] / side * (pixels->shape[2] / side);
    const size_t element = attn_dtype_bytes(patches->compute),
                 d = attn_dense_width(&patches->kernel, ATTN_LAYOUT_OUT_IN);
    const size_t leading = patches->leading.data != NULL ? patches->leading.shape[0] : 0;
    char *rows = attn_arena_take(arena, count * inner, element);
    char *all = attn_arena_take(arena, (leading + count) * d, element);
    if (rows == NULL || all == NULL)
        return attn_fail_no_memory(err);
    unfold(patches, pixels, rows);
    const attn_tensor unfolded = attn_tensor_view(rows, patches->compute, 2, (const size_t[]){count, inner});
    attn_tensor embedded;
    status = attn_dense(&patches->kernel, ATTN_LAYOUT_OUT_IN, &unfolded, runtime, arena, &embedded, err);
    if (status == ATTN_OK && leading > 0)
        status = attn_convert(all, patches->compute, patches->leading.data, patches->leading.dtype, leading * d, err);
    if (status != ATTN_OK)
        return status;
    memcpy(all + leading * d * element, embedded.data, count * d * element);
    *vectors = attn_tensor_view(all, patches->compute, 2, (const size_t[]){leading + count, d});
    return ATTN_OK;
}
