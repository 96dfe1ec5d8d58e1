/* safetensors_write.c: writes tensors as a safetensors file. */
#include <assert.h>
#include <string.h>

#include "codec/bytes/bound.h"
#include "codec/tensor/gather.h"
#include "codec/tensor/safetensors.h"
#include "codec/tensor/safetensors_types.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the data of the file is little-endian");

enum {
    ELEMENT_BYTES_MAX = 8,
    LENGTH_BYTES = 8,
    INTEGER_BYTES = 21, /* a 64-bit integer and its comma */
    ENTRY_BYTES = 64 + (ATTN_MAX_RANK + 2) * INTEGER_BYTES
};

static const char *type_name(attn_dtype dtype)
{
    size_t i = 0;
    assert(dtype < ATTN_DTYPE_COUNT); /* the table has a row for each type */
    while (SAFETENSORS_TYPES[i].dtype != dtype)
        i++;
    return SAFETENSORS_TYPES[i].name;
}

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
    chunks_format(out, ":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", type_name(tensor->dtype),
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
