/*
 * safetensors.h: reads and writes files of named tensors.
 *
 *       8 bytes    N, the length of the header, little-endian
 *       N bytes    JSON: {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, …, "__metadata__": {…}}
 *       the rest   the data: little-endian, row-major, every byte belonging to exactly one tensor
 *
 * https://github.com/huggingface/safetensors, section "Format". The reader accepts the same files as the format's own
 * reader, within the limits below. It trusts nothing: lengths, offsets and shapes are checked against each other before
 * any view is made. Data may lie at any address, so a view may be unaligned.
 */
#ifndef CODEC_TENSOR_SAFETENSORS_H
#define CODEC_TENSOR_SAFETENSORS_H

#include "attn/tensor.h"
#include "codec/bytes/chunks.h"

enum {
    SAFETENSORS_HEADER_MAX = 1 << 20, /* bytes */
    SAFETENSORS_ALIGNMENT = 64        /* bytes; data in the files that we write starts at a multiple */
};

struct safetensors_tensor {
    const char *name; /* UTF-8, unique in the file */
    const char *type; /* the type's name in the file: "F32", "F8_E4M3"; static storage */
    attn_dtype dtype; /* ATTN_DTYPE_COUNT: the core does not have this type */
    size_t rank;      /* may exceed ATTN_REQUEST_RANK */
    const size_t *shape;
    const char *data; /* points into the body */
    size_t bytes;
};

/* One string of __metadata__. */
struct safetensors_text {
    const char *name, *value; /* terminated; a value may contain other NULs, too */
    size_t length;            /* length of the value */
};

/* Plain data. The tables and names live in the arena; the data stays in the body. */
struct safetensors {
    struct safetensors_tensor *tensors; /* in the order of their data */
    size_t tensor_count;
    struct safetensors_text *metadata; /* in the order of the file */
    size_t metadata_count;
    bool is_cut; /* of a body that was refused: it ends before what it announces, as a download that was interrupted */
};

/*
 * Reads the header of body[0 .. bytes). body must outlive *file.
 *   ATTN_ERR_SYNTAX    the body is not safetensors; the message says what is wrong, and with which tensor
 *   ATTN_ERR_TOO_LARGE the header is longer than SAFETENSORS_HEADER_MAX
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status safetensors_read(const void *body, size_t bytes, attn_arena *arena,
                                             struct safetensors *file, attn_error *err);

/* Finds a text of the metadata by its name. NULL when the file has none of that name. */
const struct safetensors_text *safetensors_find_text(const struct safetensors *file, const char *name);

/*
 * Makes a view of the tensor in the body. The view may be unaligned, and must not be written to.
 *   ATTN_ERR_VALUE  attnd does not compute with the type
 *   ATTN_ERR_SHAPE  more than ATTN_REQUEST_RANK dimensions
 * The message begins with the tensor's name; field stays empty.
 */
ATTN_MUST_CHECK attn_status safetensors_view(const struct safetensors_tensor *tensor, attn_tensor *view,
                                             attn_error *err);

/* A tensor to write, of any strides. */
struct safetensors_entry {
    const char *name; /* UTF-8 */
    attn_tensor tensor;
};

/*
 * Appends a whole file to out. Spaces pad the header, so that the data starts at a multiple of SAFETENSORS_ALIGNMENT.
 * Tensors with larger elements come first, so that every tensor is aligned to its elements; tensors with elements of
 * the same size keep the given order. Contiguous tensors are not copied: out refers to them, and they must outlive it.
 * Names must differ. Without memory out->is_ok becomes false.
 */
void safetensors_write(const struct safetensors_entry *entries, size_t count, const struct safetensors_text *metadata,
                       size_t metadata_count, struct chunks *out);

/* The longest file in bytes; SIZE_MAX when that exceeds size_t. The data of entries is not read. */
size_t safetensors_write_bound(const struct safetensors_entry *entries, size_t count,
                               const struct safetensors_text *metadata, size_t metadata_count);

#endif
