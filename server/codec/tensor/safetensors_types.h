/* safetensors_types.h: the element types of the format. Private to safetensors*.c. */
#ifndef CODEC_TENSOR_SAFETENSORS_TYPES_H
#define CODEC_TENSOR_SAFETENSORS_TYPES_H

#include "attn/tensor.h"
#include "base/array.h"

struct safetensors_type {
    const char *name;
    size_t bits;
    attn_dtype dtype; /* ATTN_DTYPE_COUNT: the core does not have this type */
};

static const struct safetensors_type SAFETENSORS_TYPES[] = {
    {"F32", 32, ATTN_F32},
    {"F64", 64, ATTN_F64},
    {"F16", 16, ATTN_F16},
    {"BF16", 16, ATTN_BF16},
    {"I64", 64, ATTN_I64},
    {"I32", 32, ATTN_I32},
    {"U8", 8, ATTN_U8},
    {"BOOL", 8, ATTN_BOOL},
    {"I8", 8, ATTN_DTYPE_COUNT},
    {"I16", 16, ATTN_DTYPE_COUNT},
    {"U16", 16, ATTN_DTYPE_COUNT},
    {"U32", 32, ATTN_DTYPE_COUNT},
    {"U64", 64, ATTN_DTYPE_COUNT},
    {"C64", 64, ATTN_DTYPE_COUNT},
    {"F8_E4M3", 8, ATTN_DTYPE_COUNT},
    {"F8_E5M2", 8, ATTN_DTYPE_COUNT},
    {"F8_E8M0", 8, ATTN_DTYPE_COUNT},
    {"F6_E2M3", 6, ATTN_DTYPE_COUNT},
    {"F6_E3M2", 6, ATTN_DTYPE_COUNT},
    {"F4", 4, ATTN_DTYPE_COUNT},
};
enum { SAFETENSORS_TYPE_COUNT = ARRAY_LENGTH(SAFETENSORS_TYPES) };

#endif
