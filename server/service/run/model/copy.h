/*
 * copy.h: copies what one item gives into the outputs of the batch.
 */
#ifndef SERVICE_RUN_MODEL_COPY_H
#define SERVICE_RUN_MODEL_COPY_H

#include "attn/tensor.h"
#include "codec/bytes/pace.h"

struct model_copy {
    size_t layer, item;
    const size_t *query_places, *key_places; /* of the last two axes; NULL: 0, 1, 2 … */
    struct pace *pace;                       /* asked before each row */
};

/*
 * from is (1, …), of any strides, and goes to the corner of to[layer][item], of the same type; to is contiguous. False:
 * the work was stopped before the end.
 */
bool model_copy_step(const struct model_copy *copy, const attn_tensor *from, const attn_tensor *to);

/* The address of to[first][second]. */
void *model_copy_place(const attn_tensor *to, size_t first, size_t second);

#endif
