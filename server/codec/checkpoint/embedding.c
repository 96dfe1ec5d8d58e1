/* embedding.c: reads the embedding of a stack by its template. */
#include "codec/checkpoint/parts.h"

#include <math.h>
#include <string.h>

enum { POSITIONS_MAX = 1 << 20, WIDTH_MAX = 1 << 16 };

/* ---- positions ---- */

/*
 * Positions that the file need not have. "halves": all sines, then all cosines, as Marian has them. "halves_less_one":
 * the same, with frequencies between 1 and 1/10000, both included, as fairseq has them.
 */
static bool make_positions(struct model_reader *reader, const json_t *template, size_t width, size_t first,
                           attn_tensor *positions)
{
    const char *kind = json_string_value(json_object_get(template, "sinusoidal"));
    const size_t sines = (width + 1) / 2;
    size_t rows;
    if (!model_count(reader, template, "rows", POSITIONS_MAX, 0, &rows))
        return false;
    rows += first;
    const bool is_less_one = strcmp(kind != NULL ? kind : "", "halves_less_one") == 0;
    float *data = attn_arena_take_zeroed(reader->arena, rows * width, sizeof *data);
    if (data == NULL || width < 4)
        return data == NULL
                   ? outcome_no_memory(reader->outcome)
                   : outcome_fail(reader->outcome, ATTN_ERR_SHAPE, NULL, "tokens have %zu features, too few", width);
    const double step = is_less_one ? log(10000.0) / ((double)(width / 2) - 1) : 2 * log(10000.0) / (double)width;
    for (size_t p = 0; p < rows; p++)
        for (size_t j = 0; j < width / 2; j++) {
            const double angle = (double)p * exp(-step * (double)j);
            data[p * width + j] = (float)sin(angle);
            data[p * width + sines + j] = (float)cos(angle);
        }
    if (model_is_true(reader, template, "behind")) /* the row of padding, as fairseq has it */
        memset(data + (first - 1) * width, 0, width * sizeof *data);
    reader->table.copied_bytes += rows * width * sizeof *data;
    *positions = attn_tensor_view(data, ATTN_F32, 2, (size_t[]){rows, width});
    return true;
}

static bool read_positions(struct model_reader *reader, const json_t *template, size_t width,
                           struct model_embedding *embedding)
{
    json_t *table = json_object_get(template, "table");
    const char *counts = json_string_value(json_object_get(template, "counts"));
    if (template == NULL)
        return true;
    embedding->counts = counts != NULL && strcmp(counts, "words") == 0 ? MODEL_COUNTS_WORDS : MODEL_COUNTS_TOKENS;
    if (!model_count(reader, template, "first", POSITIONS_MAX, 0, &embedding->first))
        return false;
    embedding->first += model_is_true(reader, template, "behind"); /* "first" is then the row of padding */
    if (!(table != NULL ? model_take_table(reader, table, width, &embedding->positions)
                        : make_positions(reader, template, width, embedding->first, &embedding->positions)))
        return false;
    return embedding->positions.shape[0] > embedding->first || model_fail_shape(reader, table, &embedding->positions);
}

/* An image has a position for each patch and for each leading token. */
static bool check_image(struct model_reader *reader, json_t *names, const struct model_embedding *embedding)
{
    const size_t side = embedding->image / embedding->kernel.shape[2];
    if (embedding->positions.data == NULL || embedding->positions.shape[0] == side * side + embedding->leading.shape[0])
        return true;
    return model_fail_shape(reader, names, &embedding->positions);
}

/* Puts the class token and those like it into one table. */
static bool read_leading(struct model_reader *reader, json_t *names, size_t width, attn_tensor *leading)
{
    const size_t count = json_array_size(names);
    float *data = attn_arena_take(reader->arena, count * width + 1, sizeof *data);
    if (data == NULL)
        return outcome_no_memory(reader->outcome);
    for (size_t i = 0; i < count; i++) {
        attn_tensor row;
        json_t *name = json_array_get(names, i);
        if (!model_take_table(reader, name, width, &row) ||
            (row.shape[0] != 1 && !model_fail_shape(reader, name, &row)) ||
            !outcome_note(reader->outcome,
                          attn_convert(data + i * width, ATTN_F32, row.data, row.dtype, width, reader->outcome->err)))
            return false;
    }
    reader->table.copied_bytes += count * width * sizeof *data;
    *leading = attn_tensor_view(data, ATTN_F32, 2, (size_t[]){count, width});
    return true;
}

static bool read_patches(struct model_reader *reader, const json_t *template, struct model_embedding *embedding)
{
    json_t *names = json_object_get(template, "kernel");
    const attn_tensor *kernel = &embedding->kernel;
    if (!model_take_pair(reader, names, &embedding->kernel, &embedding->kernel_bias))
        return false;
    if (kernel->data == NULL)
        return model_fail_absent(reader, names, ".weight");
    if (!model_count(reader, template, "image", WIDTH_MAX, 0, &embedding->image))
        return false;
    const bool fits = kernel->rank == 4 && kernel->dtype <= ATTN_BF16 && kernel->shape[0] > 0 && kernel->shape[1] > 0 &&
                      kernel->shape[2] > 0 && kernel->shape[2] == kernel->shape[3] && embedding->image > 0 &&
                      embedding->image % kernel->shape[2] == 0 && model_is_vector(&embedding->kernel_bias);
    if (!fits)
        return model_fail_shape(reader, names, kernel);
    return read_leading(reader, json_object_get(template, "leading"), kernel->shape[0], &embedding->leading);
}

static bool read_projection(struct model_reader *reader, json_t *names, size_t *width,
                            struct model_embedding *embedding)
{
    attn_tensor *weight = &embedding->projection;
    if (names != NULL && !model_take_pair(reader, names, weight, &embedding->projection_bias))
        return false;
    if (weight->data == NULL) /* as when both widths are the same */
        return true;
    if (weight->rank != 2 || weight->shape[1] != *width || !model_is_vector(&embedding->projection_bias))
        return model_fail_shape(reader, names, weight);
    *width = weight->shape[0];
    return true;
}

bool model_read_embedding(struct model_reader *reader, const json_t *template, struct model_embedding *embedding,
                          size_t *width)
{
    json_t *types = json_object_get(template, "types"), *words = json_object_get(template, "words");
    const json_t *patches = json_object_get(template, "patches"), *positions = json_object_get(template, "positions");
    *embedding = (struct model_embedding){.scale = model_number(reader, template, "scale", 1),
                                          .positions_last = json_is_true(json_object_get(positions, "last"))};
    if (!(patches != NULL ? read_patches(reader, patches, embedding)
                          : model_take_table(reader, words, 0, &embedding->words)))
        return false;
    *width = patches != NULL ? embedding->kernel.shape[0] : embedding->words.shape[1];
    return (embedding->positions_last || read_positions(reader, positions, *width, embedding)) &&
           (patches == NULL || check_image(reader, json_object_get(positions, "table"), embedding)) &&
           (types == NULL || model_take_table(reader, types, *width, &embedding->types)) &&
           model_read_norm(reader, json_object_get(template, "norm"), &embedding->norm) &&
           model_check_norm(reader, &embedding->norm, *width) &&
           read_projection(reader, json_object_get(template, "projection"), width, embedding) &&
           (!embedding->positions_last || read_positions(reader, positions, *width, embedding));
}
