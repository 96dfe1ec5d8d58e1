/* parts.c: what templates of an architecture name: values and tensors, and of these norms, embeddings and a head. */
#include "codec/checkpoint/parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/checkpoint/language/expression.h"

enum { NAME_MAX_BYTES = 512, POSITIONS_MAX = 1 << 20, WIDTH_MAX = 1 << 16, ID_MAX = 1 << 30 };

/* ---- values ---- */

/* The number that the template has under that name, or the value of its expression. */
static double number_of(const struct model_reader *reader, const json_t *template, const char *name, double otherwise)
{
    json_t *value = expression_fill(reader->config, 0, json_object_get(template, name));
    const double number = json_is_number(value) ? json_number_value(value) : otherwise;
    json_decref(value);
    return number;
}

bool model_count(const struct model_reader *reader, const json_t *template, const char *name, size_t max,
                 size_t otherwise, size_t *count)
{
    const double number = number_of(reader, template, name, (double)otherwise);
    *count = number >= 0 && number <= (double)max ? (size_t)number : 0;
    if (number >= 0 && number <= (double)max && floor(number) == number)
        return true;
    const char *text = json_string_value(json_object_get(template, name));
    char member[80];
    (void)expression_member(reader->config, text != NULL ? text + 1 : name, member, sizeof member);
    return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL,
                        "config.json: %s is %g; expected a whole number from 0 to %zu", member, number, max);
}

static bool is_true(const struct model_reader *reader, const json_t *template, const char *name)
{
    json_t *value = expression_fill(reader->config, 0, json_object_get(template, name));
    const bool is = json_is_true(value);
    json_decref(value);
    return is;
}

/* ---- tensors ---- */

/* Takes the tensor of that name behind the prefix, or behind a shorter one. False: there is none. */
static bool try_name(struct model_reader *reader, const char *name, const char *suffix, attn_tensor *tensor)
{
    for (size_t length = strlen(reader->prefix);;) {
        char path[NAME_MAX_BYTES];
        if (snprintf(path, sizeof path, "%.*s%s%s", (int)length, reader->prefix, name, suffix) < (int)sizeof path &&
            tensor_table_take(&reader->table, path, tensor, reader->outcome))
            return true;
        if (length == 0)
            return false;
        do
            length--;
        while (length > 0 && reader->prefix[length - 1] != '.');
    }
}

/*
 * Takes the first tensor that the file has of the names: a text, or a list. suffix and other (or NULL) are tried behind
 * each. A name stands behind the prefix, or behind a shorter one. *tensor without data: the file has none of them, or
 * something has failed.
 */
static void take(struct model_reader *reader, json_t *names, const char *suffix, const char *other, attn_tensor *tensor)
{
    bool found = false;
    const size_t count = json_is_array(names) ? json_array_size(names) : 1;
    *tensor = (attn_tensor){.data = NULL};
    for (size_t i = 0; i < count && !found; i++) {
        const char *name = json_string_value(json_is_array(names) ? json_array_get(names, i) : names);
        if (name != NULL && name[0] != '\0')
            found = try_name(reader, name, suffix, tensor) || (other != NULL && try_name(reader, name, other, tensor));
    }
    tensor_align(&reader->table, tensor, reader->outcome);
}

static bool fail_absent(const struct model_reader *reader, json_t *names, const char *suffix)
{
    const char *name = json_string_value(json_is_array(names) ? json_array_get(names, 0) : names);
    return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.60s%.150s%s", reader->prefix,
                        name != NULL ? name : "", suffix);
}

static bool fail_shape(const struct model_reader *reader, json_t *names, const attn_tensor *tensor)
{
    char shape[ATTN_MAX_RANK * 21 + 3];
    const char *name = json_string_value(json_is_array(names) ? json_array_get(names, 0) : names);
    return outcome_fail(reader->outcome, ATTN_ERR_SHAPE, NULL, "the tensor %.120s of shape %s does not fit the model",
                        name != NULL ? name : "", attn_shape_text(shape, sizeof shape, tensor->rank, tensor->shape));
}

/* Takes a table of rows, which must exist. Leading axes of length 1 are dropped. columns 0: of any width. */
static bool take_table(struct model_reader *reader, json_t *names, size_t columns, attn_tensor *table)
{
    take(reader, names, "", NULL, table);
    if (table->data == NULL)
        return fail_absent(reader, names, "");
    size_t shape[2] = {1, 1};
    bool fits = table->rank >= 2 && table->dtype <= ATTN_BF16;
    for (int axis = 0; fits && axis < table->rank - 2; axis++)
        fits = table->shape[axis] == 1;
    if (fits)
        memcpy(shape, table->shape + table->rank - 2, sizeof shape);
    if (!fits || shape[0] == 0 || shape[1] == 0 || (columns != 0 && shape[1] != columns))
        return fail_shape(reader, names, table);
    *table = attn_tensor_view(table->data, table->dtype, 2, shape);
    return true;
}

/* Takes name.weight and name.bias, or name.gamma and name.beta. *weight without data: the file has none. */
static void take_pair(struct model_reader *reader, json_t *names, attn_tensor *weight, attn_tensor *bias)
{
    take(reader, names, ".weight", ".gamma", weight);
    if (weight->data != NULL)
        take(reader, names, ".bias", ".beta", bias);
}

/* ---- norms ---- */

/* Whether the tensor is absent or a vector of floats. */
static bool is_vector(const attn_tensor *tensor)
{
    return tensor->data == NULL || (tensor->rank == 1 && tensor->dtype <= ATTN_BF16);
}

bool model_read_norm(struct model_reader *reader, const json_t *template, struct model_norm *norm)
{
    *norm = (struct model_norm){.type = ATTN_NORM_NONE};
    if (!json_is_object(template))
        return true;
    const char *type = json_string_value(json_object_get(template, "type"));
    json_t *names = json_object_get(template, "weights");
    const float offset = (float)number_of(reader, template, "gain_offset", 0);
    norm->type = type != NULL && strcmp(type, "rms") == 0 ? ATTN_NORM_RMS : ATTN_NORM_LAYER;
    norm->eps = number_of(reader, template, "eps", 1e-5);
    if (names != NULL)
        take_pair(reader, names, &norm->weight, &norm->bias);
    if (names != NULL && norm->weight.data == NULL)
        return fail_absent(reader, names, ".weight");
    if (!(is_vector(&norm->weight) && is_vector(&norm->bias)))
        return fail_shape(reader, names, is_vector(&norm->weight) ? &norm->bias : &norm->weight);
    if (offset != 0)
        tensor_shift(&reader->table, &norm->weight, offset, reader->outcome);
    return !outcome_has_failed(reader->outcome);
}

bool model_check_norm(const struct model_reader *reader, const struct model_norm *norm, size_t width)
{
    if ((norm->weight.data == NULL || norm->weight.shape[0] == width) &&
        (norm->bias.data == NULL || norm->bias.shape[0] == width))
        return true;
    return outcome_fail(reader->outcome, ATTN_ERR_SHAPE, NULL,
                        "a norm of the model has %zu features, its tokens have %zu", norm->weight.shape[0], width);
}

/* ---- embeddings ---- */

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
    if (is_true(reader, template, "behind")) /* the row of padding, as fairseq has it */
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
    embedding->first += is_true(reader, template, "behind"); /* "first" is then the row of padding */
    if (!(table != NULL ? take_table(reader, table, width, &embedding->positions)
                        : make_positions(reader, template, width, embedding->first, &embedding->positions)))
        return false;
    return embedding->positions.shape[0] > embedding->first || fail_shape(reader, table, &embedding->positions);
}

/*
 * Makes a table of rows of that width in the arena. Rows from skipped on, skip_count of them, stay 0; the others are
 * those of the table that it replaces. *rows NULL: there is no memory.
 */
static float *widen_table(struct model_reader *reader, const attn_tensor *table, size_t skipped, size_t skip_count)
{
    const size_t width = table->shape[1], element = attn_dtype_bytes(table->dtype);
    const size_t first = skipped < table->shape[0] ? skipped : table->shape[0];
    const char *from = table->data;
    float *rows = attn_arena_take_zeroed(reader->arena, (table->shape[0] + skip_count) * width, sizeof *rows);
    if (rows == NULL ||
        !outcome_note(reader->outcome,
                      attn_convert(rows, ATTN_F32, from, table->dtype, first * width, reader->outcome->err)) ||
        !outcome_note(reader->outcome,
                      attn_convert(rows + (first + skip_count) * width, ATTN_F32, from + first * width * element,
                                   table->dtype, (table->shape[0] - first) * width, reader->outcome->err)))
        return NULL;
    reader->table.copied_bytes += (table->shape[0] + skip_count) * width * sizeof *rows;
    return rows;
}

/* Takes a table of rows, or a vector, which is one row. */
static bool take_rows(struct model_reader *reader, json_t *name, size_t width, attn_tensor *rows)
{
    take(reader, name, "", NULL, rows);
    if (rows->data == NULL || rows->rank != 1)
        return take_table(reader, name, width, rows);
    if (rows->shape[0] != width || rows->dtype > ATTN_BF16)
        return fail_shape(reader, name, rows);
    *rows = attn_tensor_view(rows->data, rows->dtype, 2, (size_t[]){1, width});
    return true;
}

/*
 * Copies the rows of the leading tokens, and behind them those of the registers, one below the other. to NULL: they are
 * only counted.
 */
static bool copy_leading(struct model_reader *reader, const json_t *template, size_t width, float *to, size_t *count)
{
    json_t *names = json_object_get(template, "leading"), *registers = json_object_get(template, "registers");
    const size_t tables = json_array_size(names) + (registers != NULL);
    *count = 0;
    for (size_t i = 0; i < tables; i++) {
        attn_tensor rows;
        if (!take_rows(reader, i < json_array_size(names) ? json_array_get(names, i) : registers, width, &rows))
            return false;
        if (to != NULL &&
            !outcome_note(reader->outcome, attn_convert(to + *count * width, ATTN_F32, rows.data, rows.dtype,
                                                        rows.shape[0] * width, reader->outcome->err)))
            return false;
        *count += rows.shape[0];
    }
    return true;
}

/* Puts the class token and those like it into one table. */
static bool read_leading(struct model_reader *reader, const json_t *template, size_t width, attn_tensor *leading)
{
    size_t count;
    if (!copy_leading(reader, template, width, NULL, &count) || count == 0)
        return !outcome_has_failed(reader->outcome);
    float *data = attn_arena_take(reader->arena, count * width, sizeof *data);
    if (data == NULL)
        return outcome_no_memory(reader->outcome);
    reader->table.copied_bytes += count * width * sizeof *data;
    *leading = attn_tensor_view(data, ATTN_F32, 2, (size_t[]){count, width});
    return copy_leading(reader, template, width, data, &count);
}

/* The number of rows among the leading ones that are registers. */
static bool count_registers(struct model_reader *reader, const json_t *template, size_t width, size_t *count)
{
    json_t *name = json_object_get(template, "registers");
    attn_tensor rows;
    *count = 0;
    if (name == NULL)
        return true;
    if (!take_rows(reader, name, width, &rows))
        return false;
    *count = rows.shape[0];
    return true;
}

static bool read_patches(struct model_reader *reader, const json_t *template, struct model_embedding *embedding)
{
    json_t *names = json_object_get(template, "kernel");
    const attn_tensor *kernel = &embedding->kernel;
    take_pair(reader, names, &embedding->kernel, &embedding->kernel_bias);
    if (kernel->data == NULL)
        return fail_absent(reader, names, ".weight");
    if (!model_count(reader, template, "image", WIDTH_MAX, 0, &embedding->image))
        return false;
    const bool fits = kernel->rank == 4 && kernel->dtype <= ATTN_BF16 && kernel->shape[0] > 0 && kernel->shape[1] > 0 &&
                      kernel->shape[2] > 0 && kernel->shape[2] == kernel->shape[3] && embedding->image > 0 &&
                      embedding->image >= kernel->shape[2] && is_vector(&embedding->kernel_bias);
    if (!fits)
        return fail_shape(reader, names, kernel);
    return read_leading(reader, template, kernel->shape[0], &embedding->leading);
}

/* Whether tensors are a convolution of three frames, from so many channels to d. */
static bool is_convolution(const attn_tensor *kernel, const attn_tensor *bias, size_t d, size_t channels)
{
    return kernel->data != NULL && kernel->rank == 3 && kernel->dtype <= ATTN_BF16 && kernel->shape[0] == d && d > 0 &&
           kernel->shape[1] == channels && channels > 0 && kernel->shape[2] == 3 && is_vector(bias) &&
           (bias->data == NULL || bias->shape[0] == d);
}

/* Two convolutions, of frames with so many mels. */
static bool read_audio(struct model_reader *reader, const json_t *template, struct model_embedding *embedding)
{
    json_t *names = json_object_get(template, "kernels"), *first = json_array_get(names, 0),
           *second = json_array_get(names, 1);
    const attn_tensor *kernel = &embedding->kernel;
    size_t mels;
    if (!model_count(reader, template, "mels", WIDTH_MAX, 0, &mels))
        return false;
    take_pair(reader, first, &embedding->kernel, &embedding->kernel_bias);
    take_pair(reader, second, &embedding->second_kernel, &embedding->second_bias);
    if (kernel->data == NULL || embedding->second_kernel.data == NULL)
        return fail_absent(reader, kernel->data == NULL ? first : second, ".weight");
    if (!is_convolution(kernel, &embedding->kernel_bias, kernel->shape[0], mels))
        return fail_shape(reader, first, kernel);
    return is_convolution(&embedding->second_kernel, &embedding->second_bias, kernel->shape[0], kernel->shape[0]) ||
           fail_shape(reader, second, &embedding->second_kernel);
}

/*
 * An image has a position for each patch and for each leading token, but not for the registers among these: their rows
 * become 0.
 */
static bool check_image(struct model_reader *reader, const json_t *template, json_t *names,
                        struct model_embedding *embedding)
{
    const size_t side = embedding->image / embedding->kernel.shape[2];
    const size_t leading = embedding->leading.data != NULL ? embedding->leading.shape[0] : 0;
    attn_tensor *positions = &embedding->positions;
    size_t registers;
    if (positions->data == NULL)
        return true;
    if (!count_registers(reader, template, positions->shape[1], &registers))
        return false;
    if (positions->shape[0] != side * side + leading - registers)
        return fail_shape(reader, names, positions);
    if (registers == 0)
        return true;
    float *rows = widen_table(reader, positions, leading - registers, registers);
    *positions = attn_tensor_view(rows, ATTN_F32, 2, (size_t[]){positions->shape[0] + registers, positions->shape[1]});
    return rows != NULL || outcome_no_memory(reader->outcome);
}

static bool read_projection(struct model_reader *reader, json_t *names, size_t *width,
                            struct model_embedding *embedding)
{
    attn_tensor *weight = &embedding->projection;
    if (names != NULL)
        take_pair(reader, names, weight, &embedding->projection_bias);
    if (weight->data == NULL) /* as when both widths are the same */
        return !outcome_has_failed(reader->outcome);
    if (weight->rank != 2 || weight->shape[1] != *width || !is_vector(&embedding->projection_bias))
        return fail_shape(reader, names, weight);
    *width = weight->shape[0];
    return true;
}

bool model_read_embedding(struct model_reader *reader, const json_t *template, struct model_embedding *embedding,
                          size_t *width)
{
    json_t *types = json_object_get(template, "types"), *words = json_object_get(template, "words");
    const json_t *patches = json_object_get(template, "patches"), *audio = json_object_get(template, "audio"),
                 *positions = json_object_get(template, "positions"), *norm = json_object_get(template, "norm");
    *embedding = (struct model_embedding){.scale = number_of(reader, template, "scale", 1),
                                          .positions_last = json_is_true(json_object_get(positions, "last")),
                                          .norm_last = json_is_true(json_object_get(norm, "last"))};
    const double dropped = number_of(reader, template, "dropped", -1);
    embedding->dropped_id = dropped >= 0 && dropped <= ID_MAX ? (int64_t)dropped : -1;
    if (!(patches != NULL ? read_patches(reader, patches, embedding)
          : audio != NULL ? read_audio(reader, audio, embedding)
                          : take_table(reader, words, 0, &embedding->words)))
        return false;
    *width = embedding->kernel.data != NULL ? embedding->kernel.shape[0] : embedding->words.shape[1];
    return (embedding->positions_last || read_positions(reader, positions, *width, embedding)) &&
           (patches == NULL || check_image(reader, patches, json_object_get(positions, "table"), embedding)) &&
           (types == NULL || take_table(reader, types, *width, &embedding->types)) &&
           model_read_norm(reader, norm, &embedding->norm) &&
           (embedding->norm_last || model_check_norm(reader, &embedding->norm, *width)) &&
           read_projection(reader, json_object_get(template, "projection"), width, embedding) &&
           (!embedding->norm_last || model_check_norm(reader, &embedding->norm, *width)) &&
           (!embedding->positions_last || read_positions(reader, positions, *width, embedding));
}

/* ---- the head ---- */

static void add(struct model_reader *reader, struct envelope_attachment *attachments, size_t *count, const char *path,
                const attn_tensor *tensor)
{
    if (tensor->data == NULL)
        return;
    attachments[(*count)++] = (struct envelope_attachment){path, *tensor};
    tensor_align(&reader->table, &attachments[*count - 1].tensor, reader->outcome);
}

/* The matrix to the words: the embedding's when both are tied, else its own. Without data: there is no head. */
static void take_output(struct model_reader *reader, const json_t *template, const attn_tensor *words,
                        attn_tensor *output)
{
    if (is_true(reader, template, "tied"))
        *output = *words;
    else
        take(reader, json_object_get(template, "output"), "", NULL, output);
}

/* Whether the names say that there may be no such part. */
static bool may_lack(const json_t *names)
{
    const char *last = json_string_value(json_array_get(names, json_array_size(names) - 1));
    return last != NULL && last[0] == '\0';
}

struct tensors {
    attn_tensor dense, dense_bias, output, output_bias;
    struct model_norm norm;
};

static bool take_head(struct model_reader *reader, const json_t *template, const attn_tensor *words,
                      struct tensors *head)
{
    json_t *dense = json_object_get(template, "dense"), *bias = json_object_get(template, "bias");
    *head = (struct tensors){.norm.type = ATTN_NORM_NONE};
    if (dense != NULL)
        take_pair(reader, dense, &head->dense, &head->dense_bias);
    if (dense != NULL && head->dense.data == NULL && !may_lack(dense))
        return !outcome_has_failed(reader->outcome);
    take_output(reader, template, words, &head->output);
    if (bias != NULL)
        take(reader, bias, "", NULL, &head->output_bias);
    return head->output.data != NULL ? model_read_norm(reader, json_object_get(template, "norm"), &head->norm)
                                     : !outcome_has_failed(reader->outcome);
}

/* Whether the tensors lead from tokens of that width to words. */
static bool fits(const struct tensors *tensors, size_t width)
{
    const attn_tensor *dense = &tensors->dense, *output = &tensors->output;
    if (dense->data != NULL) {
        if (dense->rank != 2 || dense->dtype > ATTN_BF16 || dense->shape[1] != width ||
            !is_vector(&tensors->dense_bias) ||
            (tensors->dense_bias.data != NULL && tensors->dense_bias.shape[0] != dense->shape[0]))
            return false;
        width = dense->shape[0];
    }
    return output->rank == 2 && output->dtype <= ATTN_BF16 && output->shape[0] > 0 && output->shape[1] == width &&
           (tensors->norm.weight.data == NULL || tensors->norm.weight.shape[0] == width) &&
           (tensors->norm.bias.data == NULL || tensors->norm.bias.shape[0] == width) &&
           (tensors->output_bias.data == NULL ||
            (tensors->output_bias.dtype <= ATTN_BF16 && attn_tensor_count(&tensors->output_bias) == output->shape[0]));
}

/* Notes which tensor a head that is not there lacks. */
static bool note_lack(struct model_reader *reader, const json_t *template, const struct tensors *tensors,
                      struct model_head *head)
{
    const json_t *dense = json_object_get(template, "dense");
    const bool is_dense = dense != NULL && tensors->dense.data == NULL && !may_lack(dense);
    const json_t *names = is_dense ? dense : json_object_get(template, "output");
    const char *name = json_string_value(json_is_array(names) ? json_array_get(names, 0) : names);
    char text[NAME_MAX_BYTES];
    if (name == NULL || outcome_has_failed(reader->outcome))
        return !outcome_has_failed(reader->outcome);
    snprintf(text, sizeof text, " (the files lack the tensor %s%s)", name, is_dense ? ".weight" : "");
    head->lacks = attn_arena_copy_text(reader->arena, text, strlen(text));
    return head->lacks != NULL || outcome_no_memory(reader->outcome);
}

bool model_read_head(struct model_reader *reader, const json_t *template, const attn_tensor *words, size_t width,
                     struct model_head *head, bool *has_head)
{
    enum { PARTS = 6 };
    struct tensors tensors = {.output.data = NULL};
    struct envelope_attachment *parts = attn_arena_take_zeroed(reader->arena, PARTS, sizeof *parts);
    const json_t *of_dense = json_object_get(template, "activation");
    const char *activation = json_is_string(of_dense) ? json_string_value(of_dense) : "";
    size_t count = 0;
    *has_head = false;
    head->lacks = "";
    if (template == NULL)
        return true;
    if (parts == NULL)
        return outcome_no_memory(reader->outcome);
    if (!take_head(reader, template, words, &tensors) || tensors.output.data == NULL)
        return note_lack(reader, template, &tensors, head);
    const attn_tensor *output = &tensors.output;
    if (!fits(&tensors, width))
        return fail_shape(reader, json_object_get(template, "output"), output);
    if (tensors.output_bias.data != NULL) /* BART has (1, words) */
        tensors.output_bias = attn_tensor_view(tensors.output_bias.data, tensors.output_bias.dtype, 1,
                                               (size_t[]){attn_tensor_count(&tensors.output_bias)});
    const struct envelope_attachment all[PARTS] = {
        {"weights.dense.weight", tensors.dense},      {"weights.dense.bias", tensors.dense_bias},
        {"weights.norm.weight", tensors.norm.weight}, {"weights.norm.bias", tensors.norm.bias},
        {"weights.output.weight", *output},           {"weights.output.bias", tensors.output_bias}};
    for (size_t i = 0; i < PARTS; i++)
        add(reader, parts, &count, all[i].path, &all[i].tensor);
    *head = (struct model_head){
        .source = {.text = "", .attachments = parts, .count = count},
        .facts = {.layout = ATTN_LAYOUT_OUT_IN, .compute = ATTN_F32, .dtype = output->dtype},
        .numbers = {.dense_layout = ATTN_LAYOUT_OUT_IN,
                    .output_layout = ATTN_LAYOUT_OUT_IN,
                    .activation = attn_activation_from_name(activation),
                    .dense_is_tanh = strcmp(activation, "tanh") == 0,
                    .norm = {.type = tensors.norm.type, .eps = tensors.norm.eps},
                    .scale = number_of(reader, template, "scale", 1),
                    .softcap = number_of(reader, template, "softcap", 0)},
        .words = output->shape[0],
        .lacks = "",
    };
    *has_head = true;
    return !outcome_has_failed(reader->outcome);
}

/* ---- a head of classes ---- */

/* Where the configuration names no problem, transformers takes one class for a yes or no. */
static model_problem read_problem(const struct model_reader *reader, size_t classes)
{
    const char *type = json_tree_word(json_object_get(reader->config, "problem_type"));
    if (type != NULL && strcmp(type, "regression") == 0)
        return MODEL_PROBLEM_REGRESSION;
    const bool is_each = type != NULL && strcmp(type, "multi_label_classification") == 0;
    return is_each || classes == 1 ? MODEL_PROBLEM_EACH : MODEL_PROBLEM_ONE_OF;
}

/* The labels that id2label has: {"0": "negative", …}. Those of a head for questions are the names of its logits. */
static bool read_labels(struct model_reader *reader, struct model_head *head)
{
    const char **labels = attn_arena_take_zeroed(reader->arena, head->words, sizeof *labels);
    const char *key;
    json_t *label;
    head->labels = labels;
    if (labels == NULL)
        return outcome_no_memory(reader->outcome);
    for (size_t i = 0; head->is_of_spans && i < head->words; i++)
        labels[i] = i == 0 ? "start" : "end";
    if (head->is_of_spans)
        return true;
    json_object_foreach(json_object_get(reader->config, "id2label"), key, label)
    {
        char *end;
        const unsigned long long id = strtoull(key, &end, 10);
        if (json_is_string(label) && strlen(json_string_value(label)) != json_string_length(label))
            return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL,
                                "config.json: the label %.20s of id2label has U+0000, which is not supported", key);
        if (json_tree_word(label) == NULL || key[0] < '0' || key[0] > '9' || *end != '\0' || id >= head->words)
            continue;
        labels[id] = attn_arena_copy_text(reader->arena, json_string_value(label), json_string_length(label));
        if (labels[id] == NULL)
            return outcome_no_memory(reader->outcome);
    }
    return true;
}

model_reads model_reads_of(const json_t *template)
{
    static const char *const names[] = {[MODEL_READS_FIRST] = "first",
                                        [MODEL_READS_LAST] = "last",
                                        [MODEL_READS_END] = "end",
                                        [MODEL_READS_BOTH] = "first_and_mean",
                                        [MODEL_READS_MEAN] = "mean"};
    const char *reads = json_string_value(json_object_get(template, "reads"));
    for (size_t i = MODEL_READS_FIRST; reads != NULL && i < ARRAY_LENGTH(names); i++)
        if (strcmp(reads, names[i]) == 0)
            return (model_reads)i;
    return MODEL_READS_ALL;
}

bool model_read_classes(struct model_reader *reader, const json_t *template, struct model_head *head)
{
    head->reads = model_reads_of(template);
    head->is_of_classes = true;
    head->is_of_spans = json_is_true(json_object_get(template, "spans")) && head->words == 2;
    head->problem = head->reads == MODEL_READS_ALL ? MODEL_PROBLEM_ONE_OF : read_problem(reader, head->words);
    return read_labels(reader, head);
}
