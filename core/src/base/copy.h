/*
 * copy.h: copies a tensor into memory with other strides.
 */
#ifndef ATTN_BASE_COPY_H
#define ATTN_BASE_COPY_H

#include "attn/runtime.h"
#include "attn/tensor.h"

/*
 * to[...] = from[...] for two tensors of one shape that do not overlap; the rank is at least 1. from has the type of to,
 * or 16 bits, which float32 or float64 hold exactly.
 */
void attn_tensor_copy(const attn_tensor *from, const attn_tensor *to, const attn_runtime *runtime);

#endif
