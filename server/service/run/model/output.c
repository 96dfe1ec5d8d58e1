/* output.c: outputs of the answer of a model: adds them, and finds the rows that the head writes. */
#include <stdio.h>

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

bool model_head_reads_one(const struct model_job *job)
{
    return job->version->model.head.reads != MODEL_READS_ALL;
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
