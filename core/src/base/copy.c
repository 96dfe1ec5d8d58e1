/* copy.c: copies a tensor row by row. */
#include "base/copy.h"

#include <string.h>

#include "base/number.h"
#include "base/parallel.h"
#include "base/size.h"

enum { ROWS = 64 /* per task */ };

struct copy {
    const attn_tensor *from, *to; /* of one shape */
    size_t rows;
};

/* Where row number row of the last axis begins. */
static char *row_of(const attn_tensor *tensor, size_t row)
{
    ptrdiff_t at = 0;
    for (int axis = tensor->rank - 2; axis >= 0; axis--) {
        at += (ptrdiff_t)(row % tensor->shape[axis]) * tensor->stride[axis];
        row /= tensor->shape[axis];
    }
    return (char *)tensor->data + at * (ptrdiff_t)attn_dtype_bytes(tensor->dtype);
}

static void copy_row(const struct copy *copy, size_t row)
{
    const int last = copy->to->rank - 1;
    const size_t bytes = attn_dtype_bytes(copy->to->dtype), count = copy->to->shape[last];
    const ptrdiff_t from_step = copy->from->stride[last], to_step = copy->to->stride[last];
    const char *from = row_of(copy->from, row);
    char *to = row_of(copy->to, row);
    if (copy->from->dtype != copy->to->dtype) {
        for (size_t i = 0; i < count; i++)
            attn_number_put(to + (ptrdiff_t)i * to_step * (ptrdiff_t)bytes, copy->to->dtype, 0,
                            attn_number_at(from, copy->from->dtype, (ptrdiff_t)i * from_step));
        return;
    }
    if (from_step == 1 && to_step == 1) {
        memcpy(to, from, count * bytes);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(to + (ptrdiff_t)i * to_step * (ptrdiff_t)bytes, from + (ptrdiff_t)i * from_step * (ptrdiff_t)bytes,
               bytes);
}

static void copy_task(void *argument, size_t index, size_t worker)
{
    (void)worker;
    const struct copy *copy = argument;
    const size_t end = attn_min((index + 1) * ROWS, copy->rows);
    for (size_t row = index * ROWS; row < end; row++)
        copy_row(copy, row);
}

void attn_tensor_copy(const attn_tensor *from, const attn_tensor *to, const attn_runtime *runtime)
{
    const size_t width = to->shape[to->rank - 1], count = attn_tensor_count(to);
    struct copy copy = {.from = from, .to = to, .rows = width == 0 ? 0 : count / width};
    attn_spread(runtime, attn_ceil_div(copy.rows, ROWS), copy_task, &copy);
}
