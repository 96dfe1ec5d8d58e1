/*
 * tensor.h: a view of numbers in memory: their address, type and shape.
 *
 * A tensor owns nothing. Strides count elements, so a head of a (batch, len, heads * d) array, a transposed matrix and
 * a broadcast mask (stride 0) are views of the same bytes.
 */
#ifndef ATTN_TENSOR_H
#define ATTN_TENSOR_H

#include <stdint.h>

#include "attn/status.h"

ATTN_BEGIN_C

enum {
    ATTN_MAX_RANK = 5,    /* maps of a whole model: (layers, batch, heads, q_len, kv_len) */
    ATTN_REQUEST_RANK = 4 /* of the tensors of a request and of its steps */
};

/* Element types: code, name in requests and answers, bytes of one element. */
#define ATTN_DTYPE_LIST(X)                                                                                             \
    X(ATTN_F32, "float32", 4)                                                                                          \
    X(ATTN_F64, "float64", 8)                                                                                          \
    X(ATTN_F16, "float16", 2)                                                                                          \
    X(ATTN_BF16, "bfloat16", 2)                                                                                        \
    X(ATTN_I64, "int64", 8)                                                                                            \
    X(ATTN_I32, "int32", 4)                                                                                            \
    X(ATTN_U8, "uint8", 1)                                                                                             \
    X(ATTN_BOOL, "bool", 1)

typedef enum {
#define ATTN_DTYPE_ENUM(code, name, bytes) code,
    ATTN_DTYPE_LIST(ATTN_DTYPE_ENUM)
#undef ATTN_DTYPE_ENUM
        ATTN_DTYPE_COUNT
} attn_dtype;

struct attn_panels;

typedef struct {
    void *data; /* element (0, 0, …); may be anything when a dimension is 0 */
    attn_dtype dtype;
    int rank;                         /* 0 is a single number */
    size_t shape[ATTN_MAX_RANK];      /* the first rank entries count */
    ptrdiff_t stride[ATTN_MAX_RANK];  /* in elements */
    const struct attn_panels *panels; /* of a weight: its packed copy (panels.h); NULL: none */
} attn_tensor;

/* "unknown", and 0 bytes, for a value that is no type. */
const char *attn_dtype_name(attn_dtype dtype);
size_t attn_dtype_bytes(attn_dtype dtype);
/* ATTN_DTYPE_COUNT when no type has that name. */
attn_dtype attn_dtype_from_name(const char *name);

/* A row-major view of data; shape has rank entries, rank <= ATTN_MAX_RANK. */
attn_tensor attn_tensor_view(void *data, attn_dtype dtype, int rank, const size_t *shape);
/* The number of elements. The product must fit a size_t. */
size_t attn_tensor_count(const attn_tensor *tensor);
/* Whether elements lie row-major without gaps, so that data can be read as one flat run. */
bool attn_tensor_is_contiguous(const attn_tensor *tensor);
/* Writes "[2,3]" into text (always terminated); returns text. A rank above ATTN_MAX_RANK is cut off: "[1,2,3,4,...]".
 */
const char *attn_shape_text(char *text, size_t size, int rank, const size_t *shape);
/* count = product of shape[0 .. rank); false when it does not fit a size_t. */
ATTN_MUST_CHECK bool attn_shape_count(int rank, const size_t *shape, size_t *count);

/*
 * to[i] = from[i], converted, for count elements; the arrays must not overlap. Rounding is to nearest even; infinity
 * and NaN stay what they are; a float becomes bool by != 0. Three conversions are refused, so that nothing is lost
 * silently: float to integer (ATTN_ERR_FIELD); a finite float that would become infinite, and an integer that the
 * target cannot hold exactly (ATTN_ERR_VALUE, which names the first such element). So is a dtype that does not exist
 * (ATTN_ERR_FIELD). The FTZ and DAZ modes of the calling thread change nothing. After a failure the content of to is
 * undefined.
 */
ATTN_MUST_CHECK attn_status attn_convert(void *to, attn_dtype to_dtype, const void *from, attn_dtype from_dtype,
                                         size_t count, attn_error *err);

ATTN_END_C

#endif
