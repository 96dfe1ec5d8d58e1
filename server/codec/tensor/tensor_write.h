/*
 * tensor_write.h: a tensor as JSON text, in the three forms that a request may use too.
 */
#ifndef CODEC_TENSOR_TENSOR_WRITE_H
#define CODEC_TENSOR_TENSOR_WRITE_H

#include "attn/runtime.h"
#include "attn/tensor.h"
#include "codec/bytes/chunks.h"
#include "codec/tensor/form.h"

struct tensor_style {
    tensor_form form;
    int digits;                   /* significant, 1 … 17; 0: the shortest text that reads back exactly */
    bool null_for_minus_infinity; /* masked scores: null instead of "-Infinity"; base64 keeps -infinity */
};

/*
 * Appends the tensor (any strides; float32, float64, int64 or bool) to out:
 *   nested  [[1,0.5],[…]]            flat  {"shape":[2,2],"data":[1,0.5,…]}
 *   base64  {"shape":[2,2],"dtype":"float32","base64":"…"} little-endian
 * NaN and infinities are the strings "NaN", "Infinity", "-Infinity"; bool is true and false. Large tensors are
 * formatted by the threads of runtime, in pieces that are appended in order; the text does not depend on how many. When
 * out may defer, the sender formats them, and the tensor's data must live as long as the arena.
 * Without memory out->is_ok becomes false.
 */
void tensor_write_json(const attn_tensor *tensor, const struct tensor_style *style, const attn_runtime *runtime,
                       struct chunks *out);

/* The longest text, in bytes. */
size_t tensor_write_bound(const attn_tensor *tensor, const struct tensor_style *style);

#endif
