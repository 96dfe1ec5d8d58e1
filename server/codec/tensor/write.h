/* write.h: writes a tensor as JSON text, in the same three forms that a request may use. */
#ifndef CODEC_TENSOR_WRITE_H
#define CODEC_TENSOR_WRITE_H

#include "attn/runtime.h"
#include "attn/tensor.h"
#include "codec/bytes/chunks.h"

/* The three forms of a tensor in JSON, for requests and answers alike. */
typedef enum { TENSOR_FORM_NESTED, TENSOR_FORM_FLAT, TENSOR_FORM_BASE64 } tensor_form;

struct tensor_style {
    tensor_form form;
    int digits;                   /* significant digits, 1 … 17; 0: the shortest text that reads back exactly */
    bool null_for_minus_infinity; /* for masked scores: null instead of "-Infinity"; base64 keeps -infinity */
};

/*
 * Appends the tensor (any strides; float32, float64, int64 or bool) to out:
 *   nested  [[1,0.5],[…]]            flat  {"shape":[2,2],"data":[1,0.5,…]}
 *   base64  {"shape":[2,2],"dtype":"float32","base64":"…"} little-endian
 * NaN and infinities become the strings "NaN", "Infinity", "-Infinity"; bool becomes true and false. The threads of
 * runtime format a large tensor in pieces, which are appended in order. The text does not depend on the number of
 * threads. When out may defer, the sender formats the tensor later, and the tensor's data must live as long as the
 * arena. Without memory out->is_ok becomes false.
 */
void tensor_write_json(const attn_tensor *tensor, const struct tensor_style *style, const attn_runtime *runtime,
                       struct chunks *out);

/* The longest text, in bytes. */
size_t tensor_write_bound(const attn_tensor *tensor, const struct tensor_style *style);

/* Copies elements [from, from + count), counted in row-major order, to to. No dimension may be 0. */
void tensor_gather(void *to, const attn_tensor *tensor, size_t from, size_t count);

/*
 * Appends the bytes of all elements to out: little-endian, as in memory. A contiguous tensor is not copied: out refers
 * to it, and the tensor must outlive out. Without memory out->is_ok becomes false.
 */
void tensor_append(const attn_tensor *tensor, struct chunks *out);

#endif
