/*
 * gguf.h: reads a GGUF file: metadata by key, tensors by name, and numbers of quantised tensors.
 *
 *       4 bytes    "GGUF"
 *       4 bytes    the version, 2 or 3
 *       8 + 8      the numbers of tensors and of metadata
 *       metadata   each a key, a type and a value
 *       tensors    each a name, dimensions (the first varies fastest), a type and an offset
 *       the rest   from the next multiple of general.alignment on: the data
 *
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; the numbers are little-endian, texts have their length in
 * front of them. The reader trusts nothing: it checks each length, count and offset against the file before it makes a
 * view. Types that attnd does not have are refused by name.
 */
#ifndef CODEC_GGUF_GGUF_H
#define CODEC_GGUF_GGUF_H

#include "attn/arena.h"
#include "attn/runtime.h"
#include "attn/tensor.h"
#include "base/mapping.h"
#include "base/text.h"
#include "codec/checkpoint/find.h"
#include "codec/json/tree.h"

enum { GGUF_RANK_MAX = 4 };

/* How the numbers of a tensor are stored: blocks of that many numbers in that many bytes. */
struct gguf_type {
    const char *name; /* "Q4_K" */
    uint32_t code;    /* in the file */
    uint16_t block, block_bytes;
    attn_dtype dtype; /* of plain numbers; ATTN_DTYPE_COUNT: blocks are quantised */
    /* Writes the numbers of one block as float32. NULL: the numbers are plain. */
    void (*widen)(const unsigned char *block, float *to);
};

struct gguf_tensor {
    const char *name; /* UTF-8, unique in the file */
    const struct gguf_type *type;
    size_t rank;
    size_t shape[GGUF_RANK_MAX]; /* row-major: the last varies fastest; a row has whole blocks */
    const char *data;            /* points into the body, at any address */
    size_t count, bytes;
};

/* A value of the metadata. Only read.c knows the codes of types. */
struct gguf_value {
    struct text_span key;
    uint32_t type, item_type; /* item_type: of a list */
    size_t count;             /* items of a list; else 1 */
    const char *at;           /* in the body: the value, or the first item */
    size_t bytes;
};

/* Plain data. The tables and the names of tensors live in the arena, all else in the body. */
struct gguf {
    struct gguf_value *values; /* sorted by key */
    size_t value_count;
    struct gguf_tensor *tensors; /* in the order of their data */
    size_t tensor_count;
    bool is_cut; /* of a body that was refused: it ends before what it announces, as a download that was interrupted */
};

/*
 * Reads body[0 .. bytes), which must outlive *file. Safe from several threads.
 *   ATTN_ERR_SYNTAX     the body is not GGUF, or is damaged; the message names the place
 *   ATTN_ERR_VALUE      a version or a type that attnd does not have
 *   ATTN_ERR_TOO_LARGE  more metadata or tensors than this code takes
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status gguf_read(const void *body, size_t bytes, attn_arena *arena, struct gguf *file,
                                      attn_error *err);

/* ---- metadata ---- */

/* NULL: the file has no such key. */
const struct gguf_value *gguf_find(const struct gguf *file, const char *key);
/* Each returns false when the value is of another kind, or NULL. A count is an integer that is not negative. */
bool gguf_count(const struct gguf_value *value, uint64_t *count);
bool gguf_number(const struct gguf_value *value, double *number);
bool gguf_bool(const struct gguf_value *value, bool *is);
bool gguf_text(const struct gguf_value *value, struct text_span *text);
/* A list of texts, of float32 or of integers of 32 bits. */
bool gguf_is_texts(const struct gguf_value *value);
bool gguf_is_floats(const struct gguf_value *value);
bool gguf_is_integers(const struct gguf_value *value);
/*
 * Removes the first text from *rest, which begins at value->at. gguf_read has checked all lengths; when a program has
 * written to the file since, the text ends with the value.
 */
struct text_span gguf_next_text(const struct gguf_value *value, const char **rest);
/* The item of that index of a list of numbers of 4 bytes. */
float gguf_float_at(const struct gguf_value *value, size_t index);
int32_t gguf_integer_at(const struct gguf_value *value, size_t index);

/* ---- numbers: widen.c ---- */

/* NULL: there is no such type here. */
const struct gguf_type *gguf_type_of(uint32_t code);
/* The name that the format has for a type which attnd does not read; NULL: it has none. */
const char *gguf_other_type(uint32_t code);
/* "F32, F16, …" */
const char *gguf_type_names(char *text, size_t size);

/*
 * Writes the numbers of a quantised tensor to to, row-major, as float32 or rounded to float16. The work is spread over
 * runtime. Products and differences are rounded to float32 in the order of the format, so the numbers are those of its own
 * reader.
 *   ATTN_ERR_VALUE  a number does not fit float16
 */
ATTN_MUST_CHECK attn_status gguf_widen(const struct gguf_tensor *tensor, attn_dtype dtype, const attn_runtime *runtime,
                                       void *to, attn_error *err);

/*
 * ---- model.c ----
 *
 * A model in a GGUF file, in the terms of a folder of transformers: its configuration, its tensors under their
 * names there, and its tokenizer.json. So the rest of the server reads one kind of model.
 *
 * kinds.json has the names: of the kinds of models, of the members of their configurations, of tensors, and of the ways
 * in which tokenizers split texts.
 */

/* The most quantised numbers of a file that are widened to float32. Those of larger files become float16. */
enum { GGUF_WIDE_MAX = 1 << 28 };

/*
 * Fills in the checkpoint, which lives in arena. Plain tensors are views of the file, and quantised ones are widened
 * into arena. runtime does the work. mapping has the file, and gives back the pages of each tensor that is widened;
 * NULL: the file is in other memory.
 *   ATTN_ERR_VALUE      attnd does not have the kind; metadata is missing or is not what it should be; a number does not
 *                       fit float16
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status gguf_describe(const struct gguf *file, const struct mapping *mapping,
                                          const attn_runtime *runtime, attn_arena *arena, struct checkpoint *checkpoint,
                                          attn_error *err);

/*
 * Writes the tokenizer.json of the file in arena. scratch lends memory. text->at NULL: the file has no tokenizer.
 *   ATTN_ERR_VALUE      the metadata of the tokenizer is not what it should be, or attnd does not have it
 *   ATTN_ERR_NO_MEMORY
 */
ATTN_MUST_CHECK attn_status gguf_tokenizer(const struct gguf *file, attn_arena *arena, attn_arena *scratch,
                                           struct text_span *text, attn_error *err);

/* kinds.json as a tree in arena; release it by json_decref. NULL: no memory. */
json_t *gguf_kinds(attn_arena *arena);

#endif
