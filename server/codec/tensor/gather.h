/* gather.h: copies elements of a tensor of any strides into contiguous memory. */
#ifndef CODEC_TENSOR_GATHER_H
#define CODEC_TENSOR_GATHER_H

#include "attn/tensor.h"
#include "codec/bytes/chunks.h"

/* Copies elements [from, from + count), counted in row-major order, to to. No dimension may be 0. */
void tensor_gather(void *to, const attn_tensor *tensor, size_t from, size_t count);

/*
 * Appends the bytes of all elements to out: little-endian, as in memory. A contiguous tensor is not copied: out refers
 * to it, and the tensor must outlive out. Without memory out->is_ok becomes false.
 */
void tensor_append(const attn_tensor *tensor, struct chunks *out);

#endif
