/* tensor.c: views of numbers, and their element types. */
#include "attn/tensor.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} DTYPES[ATTN_DTYPE_COUNT] = {
#define DTYPE_ENTRY(code, text, size) [code] = {text, size},
    ATTN_DTYPE_LIST(DTYPE_ENTRY)
#undef DTYPE_ENTRY
};

const char *attn_dtype_name(attn_dtype dtype)
{
    return dtype < ATTN_DTYPE_COUNT ? DTYPES[dtype].name : "unknown";
}

size_t attn_dtype_bytes(attn_dtype dtype)
{
    return dtype < ATTN_DTYPE_COUNT ? DTYPES[dtype].bytes : 0;
}

attn_dtype attn_dtype_from_name(const char *name)
{
    int dtype = 0;
    while (dtype < (int)ATTN_DTYPE_COUNT && strcmp(name, DTYPES[dtype].name) != 0)
        dtype++;
    return (attn_dtype)dtype;
}

attn_tensor attn_tensor_view(void *data, attn_dtype dtype, int rank, const size_t *shape)
{
    attn_tensor tensor = {.data = data, .dtype = dtype, .rank = rank};
    /* The product may overflow when a dimension is 0, but then no stride is ever used. */
    size_t stride = 1;
    for (int i = rank; i-- > 0;) {
        tensor.shape[i] = shape[i];
        tensor.stride[i] = (ptrdiff_t)stride;
        stride *= shape[i];
    }
    return tensor;
}

size_t attn_tensor_count(const attn_tensor *tensor)
{
    size_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    return count;
}

bool attn_tensor_is_contiguous(const attn_tensor *tensor)
{
    if (attn_tensor_count(tensor) == 0)
        return true;
    size_t stride = 1;
    for (int i = tensor->rank; i-- > 0;) {
        /* The stride of a dimension of 1 is never used. */
        if (tensor->shape[i] != 1 && tensor->stride[i] != (ptrdiff_t)stride)
            return false;
        stride *= tensor->shape[i];
    }
    return true;
}

const char *attn_shape_text(char *text, size_t size, int rank, const size_t *shape)
{
    char whole[ATTN_MAX_RANK * 24 + 3] = "[";
    size_t used = 1;
    for (int i = 0; i < rank && i < ATTN_MAX_RANK; i++)
        used += (size_t)snprintf(whole + used, sizeof whole - used, "%s%zu", i == 0 ? "" : ",", shape[i]);
    snprintf(text, size, "%s%s]", whole, rank > ATTN_MAX_RANK ? ",..." : "");
    return text;
}

bool attn_shape_count(int rank, const size_t *shape, size_t *count)
{
    bool fits = true;
    size_t product = 1;
    for (int i = 0; i < rank; i++) {
        if (shape[i] == 0) {
            *count = 0;
            return true;
        }
        fits = !__builtin_mul_overflow(product, shape[i], &product) && fits;
    }
    *count = product;
    return fits;
}
