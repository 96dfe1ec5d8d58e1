/* output.c: adds an output to the answer of a model. */
#include <stdio.h>

#include "service/run/model/item.h"

enum { NAME_BYTES = 64 };

attn_status model_add_output(struct model_job *job, const char *prefix, const char *name, attn_dtype dtype, int rank,
                             const size_t *shape, struct model_output **output)
{
    char *whole = attn_arena_take(job->arena, NAME_BYTES, 1);
    if (whole == NULL)
        return attn_fail(job->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the outputs of the model");
    snprintf(whole, NAME_BYTES, "%s%s", prefix, name);
    *output = model_answer_add(job->answer, whole);
    (*output)->tensor = attn_tensor_view(NULL, dtype, rank, shape);
    return ATTN_OK;
}
