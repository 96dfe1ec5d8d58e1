/* tensor_table.c: finds the tensors of a checkpoint by name, and cuts and copies them. */
#include "codec/checkpoint/reader.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn/model.h"

/* ---- texts ---- */

bool checkpoint_load_json(struct text_span text, const char *what, attn_arena *arena, json_t **tree,
                          struct outcome *outcome)
{
    json_error_t error;
    if (text.length == 0)
        return outcome_fail(outcome, ATTN_ERR_SYNTAX, NULL, "%s is empty", what);
    *tree = json_tree_load(text.at, text.length, arena, &error);
    if (*tree == NULL && json_tree_is_starved())
        return outcome_no_memory(outcome);
    if (json_is_object(*tree))
        return true;
    if (*tree != NULL)
        return outcome_fail(outcome, ATTN_ERR_SYNTAX, NULL, "%s is JSON, but no object", what);
    return outcome_fail(outcome, ATTN_ERR_SYNTAX, NULL, "%s is no JSON: line %d: %s", what, error.line, error.text);
}

/* ---- by name ---- */

static int compare_names(const void *left, const void *right)
{
    const struct safetensors_tensor *a = left, *b = right;
    return strcmp(a->name, b->name);
}

bool tensor_table_open(struct tensor_table *table, struct safetensors_tensor *tensors, size_t count, attn_arena *arena,
                       struct outcome *outcome)
{
    *table = (struct tensor_table){.tensors = tensors, .count = count, .arena = arena};
    if (count > 0)
        qsort(tensors, count, sizeof *tensors, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(tensors[i - 1].name, tensors[i].name) == 0)
            return outcome_fail(outcome, ATTN_ERR_VALUE, NULL, "two files have a tensor %.150s", tensors[i].name);
    table->is_used = attn_arena_take_zeroed(arena, count + 1, sizeof *table->is_used);
    return table->is_used != NULL ? true : outcome_no_memory(outcome);
}

static const struct safetensors_tensor *find(const struct tensor_table *table, const char *name)
{
    const struct safetensors_tensor wanted = {.name = name};
    if (table->count == 0)
        return NULL;
    return bsearch(&wanted, table->tensors, table->count, sizeof wanted, compare_names);
}

bool tensor_table_take(struct tensor_table *table, const char *name, attn_tensor *view, struct outcome *outcome)
{
    const struct safetensors_tensor *tensor = outcome_has_failed(outcome) ? NULL : find(table, name);
    if (tensor == NULL)
        return false;
    table->is_used[tensor - table->tensors] = true;
    if (outcome_note(outcome, safetensors_view(tensor, view, outcome->err)))
        return true;
    *view = (attn_tensor){.data = NULL};
    return false;
}

/* ---- absent biases ---- */

enum { NAME_MAX_BYTES = 512 };

/* Writes the name of a bias, or of a weight with such a bias, with "#" for its first number. False: it has no such end. */
static bool fold(const char *name, const char *ending, char folded[NAME_MAX_BYTES])
{
    const size_t length = strlen(name) - (text_ends(name, ending) ? strlen(ending) : 0);
    size_t at = 0;
    while (at < length && !(isdigit((unsigned char)name[at]) && (at == 0 || name[at - 1] == '.')))
        at++;
    const size_t digits = at < length ? strspn(name + at, "0123456789") : 0;
    snprintf(folded, NAME_MAX_BYTES, "%.*s#%.*s", (int)at, name, (int)(length - at - digits), name + at + digits);
    return text_ends(name, ending) && length < NAME_MAX_BYTES - sizeof ".bias";
}

void tensor_table_find_absent(struct tensor_table *table, const char **names, size_t most, size_t *count,
                              struct outcome *outcome)
{
    json_t *known = json_object();
    char name[NAME_MAX_BYTES];
    *count = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->is_used[i] && fold(table->tensors[i].name, ".bias", name))
            (void)json_object_set_new(known, name, json_true()); /* fails without memory, and the caller then fails */
    for (size_t i = 0; i < table->count && json_object_size(known) > 0 && *count < most; i++) {
        const char *weight = table->tensors[i].name;
        if (!table->is_used[i] || !fold(weight, ".weight", name) || json_object_get(known, name) == NULL)
            continue;
        snprintf(name, sizeof name, "%.*s.bias", (int)(strlen(weight) - strlen(".weight")), weight);
        if (find(table, name) != NULL)
            continue;
        names[*count] = attn_arena_copy_text(table->arena, name, strlen(name));
        if (names[(*count)++] == NULL)
            outcome_no_memory(outcome);
    }
    json_decref(known);
}

/* ---- other forms ---- */

void tensor_cut(attn_tensor *tensor, const char *name, size_t index, size_t count, struct outcome *outcome)
{
    if (tensor->rank == 0 || count == 0 || index >= count || tensor->shape[0] % count != 0) {
        outcome_fail(outcome, ATTN_ERR_SHAPE, NULL, "the first axis of %.120s cannot be cut into %zu parts", name,
                     count);
        return;
    }
    size_t shape[ATTN_MAX_RANK];
    memcpy(shape, tensor->shape, sizeof shape);
    shape[0] /= count;
    const size_t bytes = attn_tensor_count(tensor) / count * attn_dtype_bytes(tensor->dtype);
    *tensor = attn_tensor_view((char *)tensor->data + index * bytes, tensor->dtype, tensor->rank, shape);
}

/* A copy of the tensor in the arena, of that type. NULL: something has failed, now or before. */
static void *copy(struct tensor_table *table, const attn_tensor *tensor, attn_dtype dtype, struct outcome *outcome)
{
    const size_t count = attn_tensor_count(tensor);
    if (outcome_has_failed(outcome))
        return NULL;
    void *data = attn_arena_take(table->arena, count, attn_dtype_bytes(dtype));
    table->copied_bytes += count * attn_dtype_bytes(dtype);
    if (data == NULL)
        outcome_no_memory(outcome);
    else
        outcome_note(outcome, attn_convert(data, dtype, tensor->data, tensor->dtype, count, outcome->err));
    return outcome_has_failed(outcome) ? NULL : data;
}

void tensor_shift(struct tensor_table *table, attn_tensor *tensor, float offset, struct outcome *outcome)
{
    float *data = copy(table, tensor, ATTN_F32, outcome);
    for (size_t i = 0; data != NULL && i < attn_tensor_count(tensor); i++)
        data[i] += offset;
    *tensor = attn_tensor_view(data, ATTN_F32, tensor->rank, tensor->shape);
}

void tensor_scale_rows(struct tensor_table *table, attn_tensor *tensor, const attn_tensor *factors, const char *name,
                       struct outcome *outcome)
{
    if (tensor->rank == 0 || attn_tensor_count(factors) != tensor->shape[0] || tensor->shape[0] == 0) {
        outcome_fail(outcome, ATTN_ERR_SHAPE, NULL, "%.120s has another number of rows than its factors", name);
        return;
    }
    const float *by = copy(table, factors, ATTN_F32, outcome);
    float *data = copy(table, tensor, ATTN_F32, outcome);
    const size_t columns = attn_tensor_count(tensor) / tensor->shape[0];
    for (size_t i = 0; data != NULL && i < attn_tensor_count(tensor); i++)
        data[i] *= by[i / columns];
    *tensor = attn_tensor_view(data, ATTN_F32, tensor->rank, tensor->shape);
}

/* A float32 copy of a vector of that many numbers. *vector without data stays as it is. */
static void copy_vector(struct tensor_table *table, attn_tensor *vector, size_t count, const char *name,
                        struct outcome *outcome)
{
    if (vector->data == NULL)
        return;
    if (vector->rank != 1 || vector->shape[0] != count)
        outcome_fail(outcome, ATTN_ERR_SHAPE, NULL, "the norm of %.120s has not one number for each column", name);
    *vector = attn_tensor_view(copy(table, vector, ATTN_F32, outcome), ATTN_F32, 1, &count);
}

/* Normalises a copy of the table, which is kept. */
static void norm_rows(struct tensor_table *table, const attn_tensor *tensor, attn_tensor gain, attn_tensor shift,
                      double eps, const char *name, struct outcome *outcome)
{
    const attn_runtime serial = attn_runtime_serial(NULL);
    if (tensor->rank != 2)
        outcome_fail(outcome, ATTN_ERR_SHAPE, NULL, "%.120s is no table of rows", name);
    const attn_tensor rows = attn_tensor_view(copy(table, tensor, ATTN_F32, outcome), ATTN_F32, 2, tensor->shape);
    copy_vector(table, &gain, tensor->shape[1], name, outcome);
    copy_vector(table, &shift, tensor->shape[1], name, outcome);
    const attn_token_norm norm = {
        .type = ATTN_NORM_LAYER,
        .eps = eps,
        .weights = {.weight = gain.data != NULL ? &gain : NULL, .bias = shift.data != NULL ? &shift : NULL}};
    if (outcome_has_failed(outcome) ||
        !outcome_note(outcome, attn_norm_tokens(&norm, &rows, &serial, table->arena, &table->normed, outcome->err)))
        return;
    table->copied_bytes += attn_tensor_count(&rows) * sizeof(float);
    table->table = *tensor;
}

void tensor_norm_rows(struct tensor_table *table, attn_tensor *tensor, const attn_tensor *gain,
                      const attn_tensor *shift, double eps, const char *name, struct outcome *outcome)
{
    if (table->table.data == NULL || table->table.data != tensor->data)
        norm_rows(table, tensor, *gain, *shift, eps, name, outcome);
    *tensor = table->normed;
}

void tensor_align(struct tensor_table *table, attn_tensor *tensor, struct outcome *outcome)
{
    if (tensor->data != NULL && (uintptr_t)tensor->data % attn_dtype_bytes(tensor->dtype) != 0)
        *tensor =
            attn_tensor_view(copy(table, tensor, tensor->dtype, outcome), tensor->dtype, tensor->rank, tensor->shape);
}
