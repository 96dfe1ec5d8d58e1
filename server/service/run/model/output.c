/* output.c: outputs of the answer of a model: adds them, finds the rows that the head writes, and copies into them. */
#include <stdio.h>
#include <string.h>

#include "service/run/model/item.h"

enum { NAME_BYTES = 64 };

bool model_add_output(struct model_job *job, struct model_output **output, attn_dtype dtype, int rank,
                      const size_t *shape, const char *format, ...)
{
    char *name = outcome_take(&job->outcome, NAME_BYTES, 1);
    if (name == NULL)
        return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, NAME_BYTES, format, arguments);
    va_end(arguments);
    *output = model_answer_add(job->answer, name);
    (*output)->tensor = attn_tensor_view(NULL, dtype, rank, shape);
    return true;
}

size_t model_part_place(const struct model_part *part, size_t layer)
{
    for (size_t i = 0; i < part->layer_count; i++)
        if (part->layers[i] == layer)
            return i;
    return SIZE_MAX;
}

bool model_head_reads_one(const struct model_job *job)
{
    return job->version->model.head.reads != MODEL_READS_ALL;
}

/*
 * As transformers: the last token that is no padding, or the first when all are padding, and without ids the last.
 */
static size_t last_word(const struct model_sequence *sequence, int64_t pad_id)
{
    size_t last = sequence->count - 1;
    while (sequence->ids != NULL && pad_id >= 0 && last > 0 && sequence->ids[last] == pad_id)
        last--;
    if (sequence->ids != NULL && pad_id >= 0 && sequence->ids[last] == pad_id)
        last = 0;
    return last;
}

size_t model_head_token(const struct model_job *job, size_t item)
{
    const struct checkpoint_model *model = &job->version->model;
    const struct model_sequence *first = &job->items[item].of[0];
    size_t end = first->ids != NULL ? first->count : 0;
    switch (model->head.reads) {
    case MODEL_READS_ALL:
    case MODEL_READS_FIRST:
    case MODEL_READS_BOTH:
    case MODEL_READS_MEAN:
        return 0;
    case MODEL_READS_LAST:
        return last_word(&job->items[item].of[job->last_stack], model->pad_id);
    case MODEL_READS_END:
        break;
    }
    while (end > 0 && first->ids[end - 1] != model->end_id)
        end--;
    return end > 0 && end <= job->items[item].of[1].count ? end - 1 : SIZE_MAX;
}

size_t model_head_rows(const struct model_job *job, size_t count)
{
    const attn_selection *queries = &job->parts[job->last_stack].shown->queries;
    if (model_head_reads_one(job))
        return 1;
    return attn_selects_all(queries) ? count : queries->count;
}

char *model_head_place(const struct model_output *output, size_t layer, size_t item, size_t row)
{
    const attn_tensor *to = &output->tensor;
    const size_t indices[] = {layer, item, row};
    ptrdiff_t at = 0;
    for (int axis = 0; axis + 1 < to->rank && axis < 3; axis++)
        at += (ptrdiff_t)indices[axis < 2 && to->rank < 4 ? axis + 1 : axis] * to->stride[axis];
    return (char *)to->data + at * (ptrdiff_t)attn_dtype_bytes(to->dtype);
}

char *head_place(const struct head_block *block, const struct model_output *output, size_t i)
{
    return model_head_place(output, block->layer, block->item, block->places[i]);
}

/* ---- copies into the outputs of the batch ---- */

void *model_copy_place(const attn_tensor *to, size_t first, size_t second)
{
    const ptrdiff_t at = (ptrdiff_t)first * to->stride[0] + (ptrdiff_t)second * to->stride[1];
    return (char *)to->data + at * (ptrdiff_t)attn_dtype_bytes(to->dtype);
}

/* Axis n of from is axis n + 1 of to. */
static bool copy_axis(const struct model_copy *copy, const attn_tensor *from, const attn_tensor *to, int axis,
                      const char *source, char *target)
{
    const size_t element = attn_dtype_bytes(from->dtype);
    if (axis == from->rank || axis == ATTN_REQUEST_RANK) { /* the second for compilers that check bounds */
        memcpy(target, source, element);
        return true;
    }
    if (axis == from->rank - 1 && pace_stops(copy->pace, from->shape[axis] * element))
        return false;
    const size_t *places = axis == from->rank - 1   ? copy->key_places
                           : axis == from->rank - 2 ? copy->query_places
                                                    : NULL;
    if (axis == from->rank - 1 && places == NULL && from->stride[axis] == 1) {
        memcpy(target, source, from->shape[axis] * element);
        return true;
    }
    bool goes_on = true;
    for (size_t i = 0; i < from->shape[axis] && goes_on; i++)
        goes_on =
            copy_axis(copy, from, to, axis + 1, source + (ptrdiff_t)i * from->stride[axis] * (ptrdiff_t)element,
                      target + (ptrdiff_t)(places != NULL ? places[i] : i) * to->stride[axis + 1] * (ptrdiff_t)element);
    return goes_on;
}

bool model_copy_step(const struct model_copy *copy, const attn_tensor *from, const attn_tensor *to)
{
    return copy_axis(copy, from, to, 1, from->data, model_copy_place(to, copy->layer, copy->item));
}
