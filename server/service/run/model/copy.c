/* copy.c: copies what one item gives into the outputs of the batch. */
#include "service/run/model/item.h"

#include <string.h>

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
