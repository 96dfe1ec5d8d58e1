/*
 * tensor_gather.h: elements of a tensor of any strides, copied together.
 */
#ifndef CODEC_TENSOR_GATHER_H
#define CODEC_TENSOR_GATHER_H

#include "attn/tensor.h"

/* Elements [from, from + count) of the row-major order to to, one behind the other. No dimension may be 0. */
void tensor_gather(void *to, const attn_tensor *tensor, size_t from, size_t count);

#endif
