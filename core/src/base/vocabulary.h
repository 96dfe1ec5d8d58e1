/* vocabulary.h: the table of all tensors of a request. */
#ifndef ATTN_BASE_VOCABULARY_H
#define ATTN_BASE_VOCABULARY_H

#include "attn/gradient.h"

struct attn_tensor_row {
    size_t at;              /* offset of the member in attn_request */
    const char *path;       /* "inputs.query" */
    attn_gradient gradient; /* ATTN_GRADIENT_COUNT: it has none */
};

/* The row at index in the order of ATTN_TENSOR_LIST; NULL after the last one. */
const struct attn_tensor_row *attn_tensor_row_at(size_t index);
/* The tensor of that row; NULL: not given. */
const attn_tensor *attn_tensor_of(const attn_request *request, const struct attn_tensor_row *row);
/* The tensor of a gradient; NULL when it was not given, or is not a tensor. */
const attn_tensor *attn_gradient_subject(const attn_request *request, attn_gradient gradient);

#endif
