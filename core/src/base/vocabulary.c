/* vocabulary.c: the table of all tensors of a request, and the names of their gradients. */
#include "base/vocabulary.h"

#include <stddef.h>
#include <string.h>

#define DIFFERS(code, member, name) {offsetof(attn_request, member), #member, code},
#define CONSTANT(member)            {offsetof(attn_request, member), #member, ATTN_GRADIENT_COUNT},
#define OTHER(code, name)
static const struct attn_tensor_row rows[] = {ATTN_TENSOR_LIST(DIFFERS, CONSTANT, OTHER)};
#undef DIFFERS
#undef CONSTANT
#undef OTHER

#define DIFFERS(code, member, name) name,
#define CONSTANT(member)
#define OTHER(code, name) name,
static const char *const gradients[] = {ATTN_TENSOR_LIST(DIFFERS, CONSTANT, OTHER)};
#undef DIFFERS
#undef CONSTANT
#undef OTHER

const struct attn_tensor_row *attn_tensor_row_at(size_t index)
{
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

const attn_tensor *attn_tensor_of(const attn_request *request, const struct attn_tensor_row *row)
{
    const attn_tensor *tensor;
    memcpy(&tensor, (const char *)request + row->at, sizeof tensor);
    return tensor;
}

const char *attn_gradient_name(attn_gradient gradient)
{
    return gradients[gradient];
}

attn_gradient attn_gradient_from_name(const char *name)
{
    int gradient = 0;
    while (gradient < ATTN_GRADIENT_COUNT && strcmp(gradients[gradient], name) != 0)
        gradient++;
    return (attn_gradient)gradient;
}
