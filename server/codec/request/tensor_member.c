/*
 * tensor_member.c: a tensor in any of the three forms a request may use: nested arrays, shape with flat data, shape
 * with base64.
 */
#include <stdio.h>
#include <string.h>

#include "codec/bytes/base64.h"
#include "codec/bytes/pace.h"
#include "codec/request/decoder.h"
#include "codec/tensor/tensor_scan.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "binary data in requests is little-endian");

static attn_status scan_lifted(struct decoder *decoder, const struct node *node, const struct tensor_text *lifted,
                               attn_dtype dtype, attn_tensor *tensor)
{
    char pointer[NODE_POINTER_MAX];
    node_pointer(node, pointer);
    size_t at;
    attn_status status = tensor_scan(lifted, dtype, pointer, decoder->arena, tensor, &at, decoder->err);
    return status == ATTN_ERR_SYNTAX ? node_place(decoder, lifted->text + at) : status;
}

static const struct tensor_text *lifted_array(const struct decoder *decoder, const struct node *node)
{
    return node_is_array(decoder, node) ? node_lifted(decoder, node) : NULL;
}

static attn_status fail_missing(struct decoder *decoder, const struct node *node, const char *name)
{
    return node_fail(decoder, node, ATTN_ERR_FIELD,
                     "has no \"%s\": a tensor is nested arrays, or an object with shape "
                     "and data, or with shape, dtype and base64",
                     name);
}

/* The member "shape" as rank, shape and their product. */
static attn_status decode_shape(struct decoder *decoder, const struct node *parent, attn_tensor *shaped, size_t *count)
{
    struct node node = node_member(parent, "shape");
    if (!node.json)
        return fail_missing(decoder, parent, "shape");
    const struct tensor_text *lifted = lifted_array(decoder, &node);
    if (!lifted)
        return node_fail_type(decoder, &node, "a list of integers");
    attn_tensor list;
    attn_status status = scan_lifted(decoder, &node, lifted, ATTN_I64, &list);
    if (status != ATTN_OK)
        return status;
    if (list.rank != 1)
        return node_fail_type(decoder, &node, "a flat list of integers");
    if (list.shape[0] > ATTN_MAX_RANK)
        return node_fail(decoder, &node, ATTN_ERR_SHAPE, "has %zu dimensions; a tensor has at most %d", list.shape[0],
                         ATTN_MAX_RANK);
    size_t shape[ATTN_MAX_RANK] = {0};
    for (size_t i = 0; i < list.shape[0]; i++) {
        int64_t length = ((const int64_t *)list.data)[i];
        if (length < 0)
            return node_fail(decoder, &node, ATTN_ERR_VALUE, "holds the negative dimension %lld", (long long)length);
        shape[i] = (size_t)length;
    }
    *shaped = attn_tensor_view(NULL, *decoder->compute, (int)list.shape[0], shape);
    if (!attn_shape_count(shaped->rank, shape, count))
        return node_fail(decoder, &node, ATTN_ERR_TOO_LARGE, "has a product that no memory can hold");
    return ATTN_OK;
}

static attn_status fail_count(struct decoder *decoder, const struct node *node, const char *unit, size_t expected,
                              size_t received)
{
    char expected_text[24], received_text[24];
    snprintf(expected_text, sizeof expected_text, "%zu", expected);
    snprintf(received_text, sizeof received_text, "%zu", received);
    node_fail(decoder, node, ATTN_ERR_SHAPE, "has %zu %s, its shape asks for %zu", received, unit, expected);
    if (decoder->err)
        attn_expect(decoder->err, expected_text, received_text);
    return ATTN_ERR_SHAPE;
}

/* {"shape", "data"} */
static attn_status decode_flat(struct decoder *decoder, const struct node *parent, attn_dtype dtype,
                               attn_tensor *tensor)
{
    static const struct member members[] = {{.name = "shape"}, {.name = "data"}};
    struct node node = node_member(parent, "data");
    attn_status status = check_members(decoder, parent, members, sizeof members / sizeof members[0]);
    attn_tensor shaped = {0}, list = {0};
    size_t count = 0;
    if (status == ATTN_OK)
        status = decode_shape(decoder, parent, &shaped, &count);
    if (status != ATTN_OK)
        return status;
    const struct tensor_text *lifted = lifted_array(decoder, &node);
    if (!lifted)
        return node_fail_type(decoder, &node, "a flat list of numbers");
    status = scan_lifted(decoder, &node, lifted, dtype, &list);
    if (status != ATTN_OK)
        return status;
    if (list.rank != 1)
        return node_fail(decoder, &node, ATTN_ERR_SHAPE, "must be a flat list of numbers beside \"shape\"");
    if (list.shape[0] != count)
        return fail_count(decoder, &node, "numbers", count, list.shape[0]);
    *tensor = attn_tensor_view(list.data, dtype, shaped.rank, shaped.shape);
    return ATTN_OK;
}

static attn_status decode_dtype(struct decoder *decoder, const struct node *parent, attn_dtype *dtype)
{
    static const char *const names[] = {
#define DTYPE_NAME(code, name, bytes) name,
        ATTN_DTYPE_LIST(DTYPE_NAME)
#undef DTYPE_NAME
    };
    struct node node = node_member(parent, "dtype");
    if (!node.json)
        return fail_missing(decoder, parent, "dtype");
    size_t index;
    attn_status status = decode_word(decoder, &node, names, sizeof names / sizeof names[0], &index);
    if (status == ATTN_OK)
        *dtype = (attn_dtype)index;
    return status;
}

static bool is_float(attn_dtype dtype)
{
    return dtype == ATTN_F32 || dtype == ATTN_F64 || dtype == ATTN_F16 || dtype == ATTN_BF16;
}

attn_status check_kind(struct decoder *decoder, const struct node *node, attn_dtype dtype, attn_dtype from)
{
    if (is_float(dtype) || !is_float(from))
        return ATTN_OK;
    const char *wanted = dtype == ATTN_BOOL ? "bool or an integer type" : "an integer type";
    if (json_is_string(node->json))
        return node_fail_value(decoder, node, wanted);
    return node_fail(decoder, node, ATTN_ERR_VALUE, "must be of %s, received %s", wanted, attn_dtype_name(from));
}

/* Before any memory is taken: a shape may claim more than the text holds. */
static attn_status check_length(struct decoder *decoder, const struct node *node, size_t bytes)
{
    const char *text;
    size_t length, decoded;
    if (!node_string(decoder, node, &text, &length))
        return node_fail_type(decoder, node, "a string of base64");
    if (!base64_decoded_length(text, length, &decoded))
        return node_fail(decoder, node, ATTN_ERR_VALUE, "is not base64: its length or its padding is wrong");
    return decoded == bytes ? ATTN_OK : fail_count(decoder, node, "bytes", bytes, decoded);
}

/* The bytes of base64 text, whose length is checked, into to. */
static attn_status decode_bytes(struct decoder *decoder, const struct node *node, void *to)
{
    const char *text = "";
    size_t length = 0, bad = 0;
    struct pace pace = pace_begin(decoder->arena);
    if (node_string(decoder, node, &text, &length) && base64_decode(to, text, length, &pace, &bad))
        return ATTN_OK;
    if (attn_arena_is_cancelled(decoder->arena))
        return node_fail(decoder, node, ATTN_ERR_CANCELLED, "was not read to its end: cancelled");
    return node_fail(decoder, node, ATTN_ERR_VALUE, "is not base64: character %zu is wrong", bad);
}

attn_status check_flags(struct decoder *decoder, const struct node *node, const uint8_t *flags, size_t count)
{
    uint8_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= flags[i];
    return all <= 1 ? ATTN_OK : node_fail(decoder, node, ATTN_ERR_VALUE, "must hold only the bytes 0 and 1");
}

attn_status convert_elements(struct decoder *decoder, const struct node *node, const attn_tensor *to, const void *from,
                             attn_dtype from_dtype, size_t count)
{
    const size_t stretch = is_float(from_dtype) && is_float(to->dtype) ? PACE_BYTES : count;
    attn_error why = {0};
    attn_status status = ATTN_OK;
    for (size_t first = 0; first < count && status == ATTN_OK; first += stretch) {
        if (attn_arena_is_cancelled(decoder->arena))
            return node_fail(decoder, node, ATTN_ERR_CANCELLED, "was not read to its end: cancelled");
        status = attn_convert((char *)to->data + first * attn_dtype_bytes(to->dtype), to->dtype,
                              (const char *)from + first * attn_dtype_bytes(from_dtype), from_dtype,
                              count - first < stretch ? count - first : stretch, &why);
    }
    return status == ATTN_OK
               ? ATTN_OK
               : node_fail(decoder, node, status, "cannot become %s: %s", attn_dtype_name(to->dtype), why.message);
}

/* Elements of another type than the wanted one: decoded beside, converted, and forgotten. */
static attn_status decode_converted(struct decoder *decoder, const struct node *node, attn_dtype from,
                                    attn_tensor *tensor, size_t count)
{
    attn_arena_mark mark = attn_arena_mark_here(decoder->arena);
    void *raw = attn_arena_take(decoder->arena, count, attn_dtype_bytes(from));
    if (!raw)
        return node_fail_memory(decoder, node);
    attn_status status = decode_bytes(decoder, node, raw);
    if (status == ATTN_OK && from == ATTN_BOOL)
        status = check_flags(decoder, node, raw, count);
    if (status == ATTN_OK)
        status = convert_elements(decoder, node, tensor, raw, from, count);
    attn_arena_release(decoder->arena, mark);
    return status;
}

/* {"shape", "dtype", "base64"} */
static attn_status decode_binary(struct decoder *decoder, const struct node *parent, attn_dtype dtype,
                                 attn_tensor *tensor)
{
    static const struct member members[] = {{.name = "shape"}, {.name = "dtype"}, {.name = "base64"}};
    struct node node = node_member(parent, "base64");
    attn_status status = check_members(decoder, parent, members, sizeof members / sizeof members[0]);
    attn_dtype from = dtype;
    size_t count = 0;
    if (status == ATTN_OK)
        status = decode_shape(decoder, parent, tensor, &count);
    if (status == ATTN_OK)
        status = decode_dtype(decoder, parent, &from);
    if (status != ATTN_OK)
        return status;
    struct node dtype_node = node_member(parent, "dtype");
    status = check_kind(decoder, &dtype_node, dtype, from);
    if (status != ATTN_OK)
        return status;
    if (count > SIZE_MAX / sizeof(double))
        return node_fail(decoder, parent, ATTN_ERR_TOO_LARGE, "has more elements than memory can hold");
    status = check_length(decoder, &node, count * attn_dtype_bytes(from));
    if (status != ATTN_OK)
        return status;
    tensor->dtype = dtype;
    tensor->data = attn_arena_take(decoder->arena, count, attn_dtype_bytes(dtype));
    if (!tensor->data)
        return node_fail_memory(decoder, parent);
    if (from != dtype)
        return decode_converted(decoder, &node, from, tensor, count);
    status = decode_bytes(decoder, &node, tensor->data);
    return status == ATTN_OK && dtype == ATTN_BOOL ? check_flags(decoder, &node, tensor->data, count) : status;
}

/* A number or a truth value alone: read as the text of an array of one, so that the same rules hold. */
static attn_status decode_one(struct decoder *decoder, const struct node *node, attn_dtype dtype, attn_tensor *tensor)
{
    char text[64] = "[", pointer[NODE_POINTER_MAX];
    size_t length = json_dumpb(node->json, text + 1, sizeof text - 2, JSON_ENCODE_ANY);
    if (length == 0 || length > sizeof text - 2) /* no number is that long */
        return node_fail_memory(decoder, node);
    text[length + 1] = ']';
    const struct tensor_text array = {text, length + 2, 0};
    node_pointer(node, pointer);
    size_t at;
    attn_status status = tensor_scan(&array, dtype, pointer, decoder->arena, tensor, &at, decoder->err);
    if (status == ATTN_ERR_VALUE)
        return node_fail_value(decoder, node,
                               dtype == ATTN_BOOL  ? "true, false, 0 or 1"
                               : dtype != ATTN_I64 ? "a number in the range of the compute type"
                                                   : "an integer");
    if (status != ATTN_OK)
        return status;
    *tensor = attn_tensor_view(tensor->data, dtype, 0, NULL);
    return ATTN_OK;
}

/* What a member may be, as the end of "must be …". */
static const char *wanted_form(attn_dtype dtype, bool may_be_one)
{
    if (dtype == ATTN_I64)
        return may_be_one ? "an integer, or a list with one integer for each batch item"
                          : "a list with one integer for each batch item";
    if (dtype == ATTN_BOOL)
        return may_be_one ? "true, false, or a tensor (arrays of true and false, or an object with shape)"
                          : "a tensor (arrays of true and false, or an object with shape)";
    return may_be_one ? "a number, or a tensor (arrays of numbers, or an object with shape)"
                      : "a tensor (arrays of numbers, or an object with shape)";
}

/* Whether the first thing within the arrays is a string. */
static bool holds_strings(const struct node *node)
{
    const json_t *inner = node->json;
    while (json_is_array(inner))
        inner = json_array_get(inner, 0);
    return json_is_array(node->json) && json_is_string(inner);
}

static attn_status decode_form(struct decoder *decoder, const struct node *node, attn_dtype dtype, bool may_be_one,
                               attn_tensor *tensor)
{
    const struct tensor_text *lifted = lifted_array(decoder, node);
    const struct envelope_attachment *attached = node_attached(decoder, node);
    if (lifted)
        return scan_lifted(decoder, node, lifted, dtype, tensor);
    if (attached)
        return decode_attached(decoder, node, attached, dtype, tensor);
    drop_nulls(node);
    if (member_get(node->json, "data"))
        return decode_flat(decoder, node, dtype, tensor);
    if (member_get(node->json, "base64"))
        return decode_binary(decoder, node, dtype, tensor);
    if (json_is_object(node->json))
        return fail_missing(decoder, node, member_get(node->json, "dtype") ? "base64" : "data");
    bool is_one = json_is_number(node->json) || (dtype == ATTN_BOOL && json_is_boolean(node->json));
    if (may_be_one && is_one)
        return decode_one(decoder, node, dtype, tensor);
    if (holds_strings(node))
        return node_fail(decoder, node, ATTN_ERR_FIELD, "holds strings: write %s without quotes",
                         dtype == ATTN_BOOL ? "true and false" : "numbers");
    return node_fail_type(decoder, node, wanted_form(dtype, may_be_one));
}

static attn_status decode_any(struct decoder *decoder, const struct node *node, attn_dtype dtype, bool may_be_one,
                              void *to)
{
    attn_tensor *tensor = attn_arena_take(decoder->arena, 1, sizeof *tensor);
    if (!tensor)
        return node_fail_memory(decoder, node);
    attn_status status = decode_form(decoder, node, dtype, may_be_one, tensor);
    if (status == ATTN_OK)
        *(const attn_tensor **)to = tensor;
    return status;
}

attn_status decode_tensor(struct decoder *decoder, const struct node *node, void *to)
{
    return decode_any(decoder, node, *decoder->compute, false, to);
}

attn_status decode_tensor_or_one(struct decoder *decoder, const struct node *node, void *to)
{
    return decode_any(decoder, node, *decoder->compute, true, to);
}

attn_status decode_reals(struct decoder *decoder, const struct node *node, void *to)
{
    return decode_any(decoder, node, ATTN_F64, false, to);
}

attn_status decode_flags(struct decoder *decoder, const struct node *node, void *to)
{
    return decode_any(decoder, node, ATTN_BOOL, false, to);
}

attn_status decode_flags_or_one(struct decoder *decoder, const struct node *node, void *to)
{
    return decode_any(decoder, node, ATTN_BOOL, true, to);
}

attn_status decode_counts(struct decoder *decoder, const struct node *node, void *to)
{
    return decode_any(decoder, node, ATTN_I64, false, to);
}

attn_status decode_ids(struct decoder *decoder, const struct node *node, void *to)
{
    if (!json_is_array(node->json) && !json_is_object(node->json))
        return node_fail_type(decoder, node, "a list of integers, or lists of them for each batch item");
    return decode_any(decoder, node, ATTN_I64, false, to);
}

attn_status decode_counts_or_one(struct decoder *decoder, const struct node *node, void *to)
{
    return decode_any(decoder, node, ATTN_I64, true, to);
}
