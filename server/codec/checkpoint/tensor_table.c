/*
 * tensor_table.c: finds the tensors of a checkpoint by name, and cuts and copies them.
 */
#include "codec/checkpoint/tensor_table.h"

#include <stdlib.h>
#include <string.h>

/* ---- texts ---- */

attn_status checkpoint_load_json(const char *text, size_t length, const char *what, attn_arena *arena, json_t **tree,
                                 attn_error *err)
{
    json_error_t error;
    if (length == 0)
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "%s is empty", what);
    *tree = json_tree_load(text, length, arena, &error);
    if (*tree == NULL && json_tree_is_starved())
        return attn_fail_no_memory(err);
    if (json_is_object(*tree))
        return ATTN_OK;
    if (*tree != NULL)
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "%s is JSON, but no object", what);
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "%s is no JSON: line %d: %s", what, error.line, error.text);
}

/* ---- by name ---- */

static int compare_names(const void *left, const void *right)
{
    const struct safetensors_tensor *a = left, *b = right;
    return strcmp(a->name, b->name);
}

attn_status tensor_table_open(struct tensor_table *table, struct safetensors_tensor *tensors, size_t count,
                              attn_arena *arena, attn_error *err)
{
    *table = (struct tensor_table){.tensors = tensors, .count = count, .arena = arena};
    if (count > 0)
        qsort(tensors, count, sizeof *tensors, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(tensors[i - 1].name, tensors[i].name) == 0)
            return attn_fail(err, ATTN_ERR_VALUE, NULL, "two files have a tensor %.150s", tensors[i].name);
    table->is_used = attn_arena_take_zeroed(arena, count + 1, sizeof *table->is_used);
    return table->is_used != NULL ? ATTN_OK : attn_fail_no_memory(err);
}

static const struct safetensors_tensor *find(const struct tensor_table *table, const char *name)
{
    const struct safetensors_tensor wanted = {.name = name};
    if (table->count == 0)
        return NULL;
    return bsearch(&wanted, table->tensors, table->count, sizeof wanted, compare_names);
}

bool tensor_table_has(const struct tensor_table *table, const char *name)
{
    return find(table, name) != NULL;
}

attn_status tensor_table_take(struct tensor_table *table, const char *name, attn_tensor *view, bool *found,
                              attn_error *err)
{
    const struct safetensors_tensor *tensor = find(table, name);
    *found = tensor != NULL;
    if (tensor == NULL)
        return ATTN_OK;
    table->is_used[tensor - table->tensors] = true;
    return safetensors_view(tensor, view, err);
}

/* ---- other forms ---- */

attn_status tensor_cut(attn_tensor *tensor, const char *name, size_t index, size_t count, attn_error *err)
{
    if (tensor->rank == 0 || count == 0 || index >= count || tensor->shape[0] % count != 0)
        return attn_fail(err, ATTN_ERR_SHAPE, NULL, "the first axis of %.120s cannot be cut into %zu parts", name,
                         count);
    size_t shape[ATTN_MAX_RANK];
    memcpy(shape, tensor->shape, sizeof shape);
    shape[0] /= count;
    const size_t bytes = attn_tensor_count(tensor) / count * attn_dtype_bytes(tensor->dtype);
    *tensor = attn_tensor_view((char *)tensor->data + index * bytes, tensor->dtype, tensor->rank, shape);
    return ATTN_OK;
}

/* A copy of the tensor in the arena, of that type. NULL: err says why. */
static void *copy(struct tensor_table *table, const attn_tensor *tensor, attn_dtype dtype, attn_status *status,
                  attn_error *err)
{
    const size_t count = attn_tensor_count(tensor);
    void *data = attn_arena_take(table->arena, count, attn_dtype_bytes(dtype));
    *status =
        data != NULL ? attn_convert(data, dtype, tensor->data, tensor->dtype, count, err) : attn_fail_no_memory(err);
    table->copied_bytes += count * attn_dtype_bytes(dtype);
    return *status == ATTN_OK ? data : NULL;
}

attn_status tensor_shift(struct tensor_table *table, attn_tensor *tensor, float offset, attn_error *err)
{
    attn_status status;
    float *data = copy(table, tensor, ATTN_F32, &status, err);
    for (size_t i = 0; data != NULL && i < attn_tensor_count(tensor); i++)
        data[i] += offset;
    *tensor = attn_tensor_view(data, ATTN_F32, tensor->rank, tensor->shape);
    return status;
}

attn_status tensor_scale_rows(struct tensor_table *table, attn_tensor *tensor, const attn_tensor *factors,
                              const char *name, attn_error *err)
{
    attn_status status;
    if (tensor->rank == 0 || attn_tensor_count(factors) != tensor->shape[0] || tensor->shape[0] == 0)
        return attn_fail(err, ATTN_ERR_SHAPE, NULL, "%.120s has another number of rows than its factors", name);
    const float *by = copy(table, factors, ATTN_F32, &status, err);
    float *data = status == ATTN_OK ? copy(table, tensor, ATTN_F32, &status, err) : NULL;
    const size_t columns = attn_tensor_count(tensor) / tensor->shape[0];
    for (size_t i = 0; data != NULL && i < attn_tensor_count(tensor); i++)
        data[i] *= by[i / columns];
    *tensor = attn_tensor_view(data, ATTN_F32, tensor->rank, tensor->shape);
    return status;
}

attn_status tensor_align(struct tensor_table *table, attn_tensor *tensor, attn_error *err)
{
    attn_status status = ATTN_OK;
    if (tensor->data == NULL || (uintptr_t)tensor->data % attn_dtype_bytes(tensor->dtype) == 0)
        return ATTN_OK;
    void *data = copy(table, tensor, tensor->dtype, &status, err);
    *tensor = attn_tensor_view(data, tensor->dtype, tensor->rank, tensor->shape);
    return status;
}
