/* safetensors.c: reads the header of a safetensors file into a table of views, and writes tensors as such a file. */
#include "codec/tensor/safetensors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/bound.h"
#include "codec/json/tree.h"
#include "codec/tensor/write.h"

enum { LENGTH_BYTES = 8 };

static const char METADATA[] = "__metadata__";

/* The element types of the format, those of the core first. */
static const struct type {
    const char *name;
    size_t bits;
    attn_dtype dtype; /* ATTN_DTYPE_COUNT: the core does not have this type */
} TYPES[] = {
    [ATTN_F32] = {"F32", 32, ATTN_F32},    [ATTN_F64] = {"F64", 64, ATTN_F64},   [ATTN_F16] = {"F16", 16, ATTN_F16},
    [ATTN_BF16] = {"BF16", 16, ATTN_BF16}, [ATTN_I64] = {"I64", 64, ATTN_I64},   [ATTN_I32] = {"I32", 32, ATTN_I32},
    [ATTN_U8] = {"U8", 8, ATTN_U8},        [ATTN_BOOL] = {"BOOL", 8, ATTN_BOOL}, {"I8", 8, ATTN_DTYPE_COUNT},
    {"I16", 16, ATTN_DTYPE_COUNT},         {"U16", 16, ATTN_DTYPE_COUNT},        {"U32", 32, ATTN_DTYPE_COUNT},
    {"U64", 64, ATTN_DTYPE_COUNT},         {"C64", 64, ATTN_DTYPE_COUNT},        {"F8_E4M3", 8, ATTN_DTYPE_COUNT},
    {"F8_E5M2", 8, ATTN_DTYPE_COUNT},      {"F8_E8M0", 8, ATTN_DTYPE_COUNT},     {"F6_E2M3", 6, ATTN_DTYPE_COUNT},
    {"F6_E3M2", 6, ATTN_DTYPE_COUNT},      {"F4", 4, ATTN_DTYPE_COUNT},
};
static_assert((int)ATTN_BOOL + 1 == (int)ATTN_DTYPE_COUNT,
              "the types that the core does not have come behind all of its own");

/* ---- reading ---- */

/* The state of the header's reader. */
struct reader {
    attn_arena *arena;
    const char *data; /* the data begins here, after the header */
    size_t data_bytes;
    struct safetensors *file;
    attn_error *err;
};

static attn_status fail_tensor(attn_error *err, const char *name, const char *what)
{
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "not safetensors: tensor \"%.100s\" %s", name, what);
}

static const struct type *find_type(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(TYPES); i++) {
        if (strcmp(TYPES[i].name, name) == 0)
            return &TYPES[i];
    }
    return NULL;
}

/* Reads an integer of at least 0. */
static bool read_size(const json_t *json, size_t *size)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0)
        return false;
    *size = (size_t)json_integer_value(json);
    return true;
}

static attn_status read_shape(const struct reader *reader, const json_t *json, struct safetensors_tensor *tensor)
{
    if (!json_is_array(json))
        return fail_tensor(reader->err, tensor->name, "has no list as its shape");
    tensor->rank = json_array_size(json);
    size_t *shape = attn_arena_take(reader->arena, tensor->rank, sizeof *shape);
    if (shape == NULL)
        return attn_fail_no_memory(reader->err);
    for (size_t i = 0; i < tensor->rank; i++) {
        if (!read_size(json_array_get(json, i), &shape[i]))
            return fail_tensor(reader->err, tensor->name, "has a shape that is no list of integers of at least 0");
    }
    tensor->shape = shape;
    return ATTN_OK;
}

/*
 * Counts the bytes of a tensor of that shape. False when the bits make no whole number of bytes, or when size_t is too
 * small.
 */
static bool count_bytes(const struct safetensors_tensor *tensor, size_t element_bits, size_t *bytes)
{
    size_t bits = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        if (__builtin_mul_overflow(bits, tensor->shape[i], &bits))
            return false;
    }
    bool fits = !__builtin_mul_overflow(bits, element_bits, &bits);
    *bytes = bits / 8;
    return fits && bits % 8 == 0;
}

static attn_status read_offsets(const struct reader *reader, const json_t *json, size_t element_bits,
                                struct safetensors_tensor *tensor)
{
    size_t from, to, bytes;
    if (json_array_size(json) != 2 || !read_size(json_array_get(json, 0), &from) ||
        !read_size(json_array_get(json, 1), &to))
        return fail_tensor(reader->err, tensor->name, "has data_offsets that are no list [from, to] of integers");
    reader->file->is_cut = from <= to && to > reader->data_bytes;
    if (from > to || to > reader->data_bytes)
        return attn_fail(reader->err, ATTN_ERR_SYNTAX, NULL,
                         "not safetensors: tensor \"%.100s\" has the data_offsets [%zu,%zu]; the data has %zu bytes",
                         tensor->name, from, to, reader->data_bytes);
    if (!count_bytes(tensor, element_bits, &bytes))
        return fail_tensor(reader->err, tensor->name, "has a shape whose bytes cannot be counted");
    if (bytes != to - from)
        return attn_fail(reader->err, ATTN_ERR_SYNTAX, NULL,
                         "not safetensors: tensor \"%.100s\" has %zu bytes of data, its dtype and shape ask for %zu",
                         tensor->name, to - from, bytes);
    tensor->data = reader->data + from;
    tensor->bytes = bytes;
    return ATTN_OK;
}

static attn_status read_tensor(const struct reader *reader, const char *name, const json_t *json,
                               struct safetensors_tensor *tensor)
{
    *tensor = (struct safetensors_tensor){.name = attn_arena_copy_text(reader->arena, name, strlen(name))};
    if (tensor->name == NULL)
        return attn_fail_no_memory(reader->err);
    const char *type_name = json_tree_word(json_object_get(json, "dtype"));
    if (type_name == NULL)
        return fail_tensor(reader->err, name, "is no object with dtype, shape and data_offsets");
    const struct type *type = find_type(type_name);
    if (type == NULL)
        return attn_fail(reader->err, ATTN_ERR_SYNTAX, NULL,
                         "not safetensors: tensor \"%.100s\" has the unknown dtype \"%.40s\"", name, type_name);
    tensor->type = type->name;
    tensor->dtype = type->dtype;
    attn_status status = read_shape(reader, json_object_get(json, "shape"), tensor);
    if (status != ATTN_OK)
        return status;
    return read_offsets(reader, json_object_get(json, "data_offsets"), type->bits, tensor);
}

static attn_status read_metadata(const struct reader *reader, json_t *json)
{
    struct safetensors *file = reader->file;
    const char *name;
    json_t *value;
    if (json_is_null(json))
        return ATTN_OK;
    if (!json_is_object(json))
        return attn_fail(reader->err, ATTN_ERR_SYNTAX, NULL, "not safetensors: %s is no object of strings", METADATA);
    file->metadata = attn_arena_take(reader->arena, json_object_size(json), sizeof *file->metadata);
    if (file->metadata == NULL)
        return attn_fail_no_memory(reader->err);
    json_object_foreach(json, name, value)
    {
        struct safetensors_text *text = &file->metadata[file->metadata_count++];
        if (!json_is_string(value))
            return attn_fail(reader->err, ATTN_ERR_SYNTAX, NULL,
                             "not safetensors: \"%.100s\" in %s is no string; write numbers and objects as text", name,
                             METADATA);
        text->length = json_string_length(value);
        text->name = attn_arena_copy_text(reader->arena, name, strlen(name));
        text->value = attn_arena_copy_text(reader->arena, json_string_value(value), text->length);
        if (text->name == NULL || text->value == NULL)
            return attn_fail_no_memory(reader->err);
    }
    return ATTN_OK;
}

static int compare_places(const void *left, const void *right)
{
    const struct safetensors_tensor *a = left, *b = right;
    if (a->data != b->data)
        return a->data < b->data ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Sorts the tensors, and checks that they cover the data without holes and overlaps. */
static attn_status check_cover(const struct reader *reader)
{
    struct safetensors *file = reader->file;
    const char *end = reader->data;
    if (file->tensor_count > 0)
        qsort(file->tensors, file->tensor_count, sizeof *file->tensors, compare_places);
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        if (tensor->data != end)
            return fail_tensor(reader->err, tensor->name,
                               tensor->data < end ? "overlaps another one" : "has unused bytes before it");
        end += tensor->bytes;
    }
    size_t used = (size_t)(end - reader->data);
    if (used != reader->data_bytes)
        return attn_fail(reader->err, ATTN_ERR_SYNTAX, NULL,
                         "not safetensors: the last tensor ends at byte %zu of the data, which has %zu", used,
                         reader->data_bytes);
    return ATTN_OK;
}

static attn_status read_header(const struct reader *reader, json_t *tree)
{
    struct safetensors *file = reader->file;
    const char *name;
    json_t *value;
    attn_status status = ATTN_OK;
    if (!json_is_object(tree))
        return attn_fail(reader->err, ATTN_ERR_SYNTAX, NULL, "not safetensors: the header is no JSON object");
    file->tensors = attn_arena_take(reader->arena, json_object_size(tree), sizeof *file->tensors);
    if (file->tensors == NULL)
        return attn_fail_no_memory(reader->err);
    json_object_foreach(tree, name, value)
    {
        if (strcmp(name, METADATA) == 0)
            status = read_metadata(reader, value);
        else
            status = read_tensor(reader, name, value, &file->tensors[file->tensor_count++]);
        if (status != ATTN_OK)
            return status;
    }
    return check_cover(reader);
}

/* Reads the length of the header, and checks it against the length of the body. */
static attn_status read_length(const unsigned char *body, size_t bytes, size_t *length, bool *is_cut, attn_error *err)
{
    *is_cut = bytes < LENGTH_BYTES;
    if (bytes < LENGTH_BYTES)
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL,
                         "not safetensors: it has %zu bytes, and begins with the length of its header in 8", bytes);
    uint64_t claimed = 0;
    for (int i = LENGTH_BYTES; i-- > 0;)
        claimed = claimed << 8 | body[i];
    *is_cut = claimed > bytes - LENGTH_BYTES && claimed <= SAFETENSORS_HEADER_MAX;
    if (claimed > bytes - LENGTH_BYTES)
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL,
                         "not safetensors: it claims a header of %llu bytes, and has %zu behind that number",
                         (unsigned long long)claimed, bytes - LENGTH_BYTES);
    if (claimed > SAFETENSORS_HEADER_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, NULL, "the safetensors header has %llu bytes, the limit is %d",
                         (unsigned long long)claimed, SAFETENSORS_HEADER_MAX);
    *length = (size_t)claimed;
    return ATTN_OK;
}

static attn_status fail_json(const json_error_t *error, attn_error *err)
{
    if (json_tree_is_starved())
        return attn_fail_no_memory(err);
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "not safetensors: the header is not JSON: %s", error->text);
}

attn_status safetensors_read(const void *body, size_t bytes, attn_arena *arena, struct safetensors *file,
                             attn_error *err)
{
    json_error_t error;
    size_t length = 0;
    *file = (struct safetensors){0};
    attn_status status = read_length(body, bytes, &length, &file->is_cut, err);
    if (status != ATTN_OK)
        return status;
    const char *data = (const char *)body + LENGTH_BYTES + length;
    /* The header is copied, because another program may change a mapped file meanwhile. */
    char *header = attn_arena_take(arena, 1, length);
    if (header == NULL)
        return attn_fail_no_memory(err);
    memcpy(header, (const char *)body + LENGTH_BYTES, length);
    if (length > 0 && memchr(header, '\0', length) != NULL) /* jansson would not notice a NUL after a number */
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "not safetensors: the header holds a NUL byte");
    json_t *tree = json_tree_load(header, length, arena, &error);
    if (tree == NULL)
        return fail_json(&error, err);
    const struct reader reader = {arena, data, bytes - LENGTH_BYTES - length, file, err};
    status = read_header(&reader, tree);
    json_decref(tree);
    return status;
}

const struct safetensors_text *safetensors_find_text(const struct safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->metadata_count; i++) {
        if (strcmp(file->metadata[i].name, name) == 0)
            return &file->metadata[i];
    }
    return NULL;
}

attn_status safetensors_view(const struct safetensors_tensor *tensor, attn_tensor *view, attn_error *err)
{
    if (tensor->dtype == ATTN_DTYPE_COUNT)
        return attn_fail(
            err, ATTN_ERR_VALUE, NULL,
            "tensor \"%.100s\" has dtype %s, which is not computed with; use F64, F32, F16, BF16, I64, I32, "
            "U8 or BOOL",
            tensor->name, tensor->type);
    if (tensor->rank > ATTN_REQUEST_RANK)
        return attn_fail(err, ATTN_ERR_SHAPE, NULL, "tensor \"%.100s\" has %zu dimensions; at most %d are possible",
                         tensor->name, tensor->rank, ATTN_REQUEST_RANK);
    /* Nobody writes through this view. Its data is not const, because the same type serves results. */
    void *data = (void *)(uintptr_t)tensor->data;
    *view = attn_tensor_view(data, tensor->dtype, (int)tensor->rank, tensor->shape);
    return ATTN_OK;
}

/* ---- writing ---- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the data of the file is little-endian");

enum {
    ELEMENT_BYTES_MAX = 8,
    INTEGER_BYTES = 21, /* a 64-bit integer and its comma */
    ENTRY_BYTES = 64 + (ATTN_MAX_RANK + 2) * INTEGER_BYTES
};

static size_t tensor_bytes(const attn_tensor *tensor)
{
    return attn_tensor_count(tensor) * attn_dtype_bytes(tensor->dtype);
}

/*
 * The offset of the entry's data. Before it come entries with larger elements, and earlier entries with elements of the
 * same size.
 */
static size_t data_offset(const struct safetensors_entry *entries, size_t count, size_t entry)
{
    size_t own = attn_dtype_bytes(entries[entry].tensor.dtype), offset = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = attn_dtype_bytes(entries[i].tensor.dtype);
        if (size > own || (size == own && i < entry))
            offset += tensor_bytes(&entries[i].tensor);
    }
    return offset;
}

static void write_entry(const struct safetensors_entry *entry, size_t offset, struct chunks *out)
{
    char shape[ATTN_MAX_RANK * INTEGER_BYTES + 3];
    const attn_tensor *tensor = &entry->tensor;
    chunks_json_string(out, entry->name);
    chunks_format(out, ":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", TYPES[tensor->dtype].name,
                  attn_shape_text(shape, sizeof shape, tensor->rank, tensor->shape), offset,
                  offset + tensor_bytes(tensor));
}

static void write_metadata(const struct safetensors_text *metadata, size_t count, struct chunks *out)
{
    chunks_text(out, "\"__metadata__\":{");
    for (size_t i = 0; i < count; i++) {
        chunks_text(out, i > 0 ? "," : "");
        chunks_json_string(out, metadata[i].name);
        chunks_text(out, ":");
        chunks_json_string(out, metadata[i].value);
    }
    chunks_text(out, "}");
}

static void write_header(const struct safetensors_entry *entries, size_t count, const struct safetensors_text *metadata,
                         size_t metadata_count, struct chunks *out)
{
    chunks_text(out, "{");
    if (metadata_count > 0)
        write_metadata(metadata, metadata_count, out);
    for (size_t i = 0; i < count; i++) {
        chunks_text(out, i > 0 || metadata_count > 0 ? "," : "");
        write_entry(&entries[i], data_offset(entries, count, i), out);
    }
    chunks_text(out, "}");
    size_t rest = (LENGTH_BYTES + out->total_bytes) % SAFETENSORS_ALIGNMENT;
    if (rest > 0)
        chunks_format(out, "%*s", (int)(SAFETENSORS_ALIGNMENT - rest), "");
}

void safetensors_write(const struct safetensors_entry *entries, size_t count, const struct safetensors_text *metadata,
                       size_t metadata_count, struct chunks *out)
{
    struct chunks header = chunks_begin(out->arena);
    write_header(entries, count, metadata, metadata_count, &header);
    char length[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (char)(header.total_bytes >> 8 * i & 0xFF);
    chunks_bytes(out, length, sizeof length);
    chunks_append(out, &header);
    for (size_t size = ELEMENT_BYTES_MAX; size > 0; size /= 2) {
        for (size_t i = 0; i < count; i++) {
            if (attn_dtype_bytes(entries[i].tensor.dtype) == size)
                tensor_append(&entries[i].tensor, out);
        }
    }
}

/* An escaped character takes up to 6 bytes. */
static size_t add_string(size_t bound, const char *text)
{
    return bound_add(bound, 6, strlen(text));
}

size_t safetensors_write_bound(const struct safetensors_entry *entries, size_t count,
                               const struct safetensors_text *metadata, size_t metadata_count)
{
    size_t bound = LENGTH_BYTES + SAFETENSORS_ALIGNMENT + sizeof "{\"__metadata__\":{},}";
    for (size_t i = 0; i < metadata_count; i++) {
        bound = bound_add(bound, 1, sizeof "\"\":\"\",");
        bound = add_string(add_string(bound, metadata[i].name), metadata[i].value);
    }
    for (size_t i = 0; i < count; i++) {
        bound = add_string(bound_add(bound, 1, ENTRY_BYTES), entries[i].name);
        bound = bound_add(bound, attn_tensor_count(&entries[i].tensor), attn_dtype_bytes(entries[i].tensor.dtype));
    }
    return bound;
}
