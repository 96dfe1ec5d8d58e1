/* gather.c: copies elements of a tensor of any strides into contiguous memory. */
#include "codec/tensor/gather.h"

#include <string.h>

enum { COPY_ELEMENTS = 1 << 16 /* copied at a time from a tensor that is not contiguous */ };

void tensor_gather(void *to, const attn_tensor *tensor, size_t from, size_t count)
{
    size_t size = attn_dtype_bytes(tensor->dtype);
    size_t columns = tensor->rank == 0 ? 1 : tensor->shape[tensor->rank - 1];
    ptrdiff_t step = tensor->rank == 0 ? 1 : tensor->stride[tensor->rank - 1];
    char *out = to;
    while (count > 0) {
        size_t column = from % columns, row = from / columns;
        size_t run = columns - column < count ? columns - column : count;
        ptrdiff_t offset = (ptrdiff_t)column * step;
        for (int d = tensor->rank - 1; d-- > 0; row /= tensor->shape[d])
            offset += (ptrdiff_t)(row % tensor->shape[d]) * tensor->stride[d];
        const char *at = (const char *)tensor->data + offset * (ptrdiff_t)size;
        if (step == 1)
            memcpy(out, at, run * size);
        for (size_t i = 0; step != 1 && i < run; i++)
            memcpy(out + i * size, at + (ptrdiff_t)i * step * (ptrdiff_t)size, size);
        out += run * size;
        from += run;
        count -= run;
    }
}

void tensor_append(const attn_tensor *tensor, struct chunks *out)
{
    size_t count = attn_tensor_count(tensor), size = attn_dtype_bytes(tensor->dtype);
    if (attn_tensor_is_contiguous(tensor)) {
        chunks_borrow(out, tensor->data, count * size);
        return;
    }
    for (size_t from = 0; from < count; from += COPY_ELEMENTS) {
        size_t run = count - from < COPY_ELEMENTS ? count - from : COPY_ELEMENTS;
        char *to = chunks_reserve(out, run * size);
        if (to == NULL)
            return;
        tensor_gather(to, tensor, from, run);
        chunks_commit(out, run * size);
    }
}
