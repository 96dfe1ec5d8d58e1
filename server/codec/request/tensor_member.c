/*
 * tensor_member.c: decodes a tensor in any of its forms in a request: nested arrays, shape with flat data, shape with
 * base64, and bytes beside the JSON text.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/base64.h"
#include "codec/bytes/pace.h"
#include "codec/number/number.h"
#include "codec/request/decoder.h"
#include "codec/tensor/scan.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "binary data in requests is little-endian");

/* The kind of tensor that a member takes. */
struct kind {
    attn_dtype dtype;
    bool may_be_one;  /* a single number has rank 0 */
    bool one_is_list; /* and becomes a list of one number */
    bool keeps_half;  /* elements of 16 bits stay as they are */
    bool null_hides;  /* in JSON, null is -Infinity */
};

/* The type in which elements of type from are passed on. */
static attn_dtype passed_type(const struct kind *kind, attn_dtype from)
{
    return kind->keeps_half && (from == ATTN_F16 || from == ATTN_BF16) ? from : kind->dtype;
}

static bool is_float(attn_dtype dtype)
{
    return dtype == ATTN_F32 || dtype == ATTN_F64 || dtype == ATTN_F16 || dtype == ATTN_BF16;
}

static attn_status scan_lifted(struct reading *reading, const struct node *node, const struct lifted_text *lifted,
                               const struct kind *kind, attn_tensor *tensor)
{
    char pointer[JSON_POINTER_MAX];
    node_pointer(node, pointer);
    size_t at;
    const struct decoder *decoder = decoder_of(reading);
    const struct tensor_rules rules = {.null_hides = kind->null_hides,
                                       .takes_bare = decoder->takes_bare,
                                       .texts_place = is_float(kind->dtype) ? decoder->texts_place : NULL};
    if (node_has_failed(reading))
        return reading->status;
    node_note(reading, tensor_scan(lifted, kind->dtype, &rules, pointer, reading->arena, tensor, &at, reading->err));
    return reading->status == ATTN_ERR_SYNTAX ? node_place(reading, lifted->text + at) : reading->status;
}

static const struct lifted_text *lifted_array(const struct reading *reading, const struct node *node)
{
    return node_is_array(reading, node) ? node_lifted(reading, node) : NULL;
}

static attn_status fail_missing(struct reading *reading, const struct node *node, const char *name)
{
    return node_fail(reading, node, ATTN_ERR_FIELD,
                     "has no \"%s\": a tensor is nested arrays, or an object with shape "
                     "and data, or with shape, dtype and base64",
                     name);
}

/* Decodes the member "shape": rank, dimensions and their product. */
static attn_status decode_shape(struct reading *reading, const struct node *parent, attn_tensor *shaped, size_t *count)
{
    struct node node = node_member(parent, "shape");
    if (!node.json)
        return fail_missing(reading, parent, "shape");
    const struct lifted_text *lifted = lifted_array(reading, &node);
    if (!lifted)
        return node_fail_type(reading, &node, "a list of integers");
    attn_tensor list;
    scan_lifted(reading, &node, lifted, &(struct kind){.dtype = ATTN_I64}, &list);
    if (node_has_failed(reading))
        return reading->status;
    if (list.rank != 1)
        return node_fail_type(reading, &node, "a flat list of integers");
    if (list.shape[0] > ATTN_REQUEST_RANK)
        return node_fail(reading, &node, ATTN_ERR_SHAPE, "has %zu dimensions; a tensor has at most %d", list.shape[0],
                         ATTN_REQUEST_RANK);
    size_t shape[ATTN_MAX_RANK] = {0};
    for (size_t i = 0; i < list.shape[0]; i++) {
        int64_t length = ((const int64_t *)list.data)[i];
        if (length < 0)
            return node_fail(reading, &node, ATTN_ERR_VALUE, "holds the negative dimension %lld", (long long)length);
        shape[i] = (size_t)length;
    }
    *shaped = attn_tensor_view(NULL, *decoder_of(reading)->compute, (int)list.shape[0], shape);
    if (!attn_shape_count(shaped->rank, shape, count))
        return node_fail(reading, &node, ATTN_ERR_TOO_LARGE, "has a product that no memory can hold");
    return ATTN_OK;
}

static attn_status fail_count(struct reading *reading, const struct node *node, const char *unit, size_t expected,
                              size_t received)
{
    char expected_text[24], received_text[24];
    snprintf(expected_text, sizeof expected_text, "%zu", expected);
    snprintf(received_text, sizeof received_text, "%zu", received);
    node_fail(reading, node, ATTN_ERR_SHAPE, "has %zu %s, its shape asks for %zu", received, unit, expected);
    if (reading->err)
        attn_expect(reading->err, expected_text, received_text);
    return ATTN_ERR_SHAPE;
}

static attn_status decode_dtype(struct reading *reading, const struct node *parent, attn_dtype *dtype)
{
    static const char *const names[] = {
#define DTYPE_NAME(code, name, bytes) name,
        ATTN_DTYPE_LIST(DTYPE_NAME)
#undef DTYPE_NAME
    };
    struct node node = node_member(parent, "dtype");
    if (!node.json)
        return fail_missing(reading, parent, "dtype");
    size_t index = 0;
    node_decode_word(reading, &node, names, ARRAY_LENGTH(names), &index);
    *dtype = (attn_dtype)index;
    return reading->status;
}

/* Fails because a value is no tensor. Strings get a sentence that says what to do with them. */
static attn_status fail_form(struct reading *reading, const struct node *node, const struct kind *kind,
                             const char *wanted)
{
    const char *text, *place = NULL;
    size_t length;
    if (!node_first_string(reading, node, &text, &length))
        return node_fail_type(reading, node, wanted);
    const bool is_number = number_word_is_number(text, length);
    if (kind->dtype == ATTN_BOOL)
        place = is_number ? TENSOR_BIAS_PLACE : NULL;
    else if (is_float(kind->dtype) && !is_number)
        place = decoder_of(reading)->texts_place;
    if (!json_is_array(node->json) || node_lifted(reading, node))
        node_fail_type(reading, node, wanted);
    else if (kind->dtype == ATTN_BOOL)
        node_fail(reading, node, ATTN_ERR_FIELD, "holds strings: write true and false without quotes");
    else
        node_fail(reading, node, ATTN_ERR_FIELD, "holds %s",
                  place != NULL ? "texts, and numbers belong here" : "strings: write numbers without quotes");
    if (place != NULL)
        node_explain(reading, place);
    return ATTN_ERR_FIELD;
}

/* Decodes {"shape", "data"}. Other programs write a dtype beside them: it must be one, and has no effect. */
static attn_status decode_flat(struct reading *reading, const struct node *parent, const struct kind *kind,
                               attn_tensor *tensor)
{
    static const struct member members[] = {{.name = "shape"}, {.name = "data"}, {.name = "dtype"}};
    struct node node = node_member(parent, "data");
    node_check_members(reading, parent, members, ARRAY_LENGTH(members));
    attn_tensor shaped = {0}, list = {0};
    attn_dtype named;
    size_t count = 0;
    if (node_find(parent->json, "dtype"))
        decode_dtype(reading, parent, &named);
    decode_shape(reading, parent, &shaped, &count);
    if (node_has_failed(reading))
        return reading->status;
    const struct lifted_text *lifted = lifted_array(reading, &node);
    if (!lifted)
        return fail_form(reading, &node, kind, "a flat list of numbers");
    scan_lifted(reading, &node, lifted, kind, &list);
    if (node_has_failed(reading))
        return reading->status;
    if (list.rank != 1)
        return node_fail(reading, &node, ATTN_ERR_SHAPE, "must be a flat list of numbers beside \"shape\"");
    if (list.shape[0] != count)
        return fail_count(reading, &node, "numbers", count, list.shape[0]);
    *tensor = attn_tensor_view(list.data, kind->dtype, shaped.rank, shaped.shape);
    return ATTN_OK;
}

/* Whether elements of type from may become dtype at all; node is the dtype of a tensor, or a whole attachment. */
static attn_status check_kind(struct reading *reading, const struct node *node, attn_dtype dtype, attn_dtype from)
{
    if (is_float(dtype) || !is_float(from))
        return ATTN_OK;
    const char *wanted = dtype == ATTN_BOOL ? "bool or an integer type" : "an integer type";
    if (json_is_string(node->json))
        node_fail_value(reading, node, wanted);
    else
        node_fail(reading, node, ATTN_ERR_VALUE, "must be of %s, received %s", wanted, attn_dtype_name(from));
    if (dtype == ATTN_BOOL)
        node_explain(reading, TENSOR_BIAS_PLACE);
    return ATTN_ERR_VALUE;
}

/* Checked before memory is taken, because a shape may claim more elements than the text holds. */
static attn_status check_length(struct reading *reading, const struct node *node, size_t bytes)
{
    const char *text;
    size_t length, decoded;
    if (!node_string(reading, node, &text, &length))
        return node_fail_type(reading, node, "a string of base64");
    if (!base64_decoded_length(text, length, &decoded))
        return node_fail(reading, node, ATTN_ERR_VALUE, "is not base64: its length or its padding is wrong");
    return decoded == bytes ? ATTN_OK : fail_count(reading, node, "bytes", bytes, decoded);
}

static attn_status fail_cancelled(struct reading *reading, const struct node *node)
{
    return node_fail(reading, node, ATTN_ERR_CANCELLED, "was not read to its end: cancelled");
}

/* Decodes base64 text of the right length to to. */
static attn_status decode_bytes(struct reading *reading, const struct node *node, void *to)
{
    const char *text = "";
    size_t length = 0, bad = 0;
    struct pace pace = pace_begin(reading->arena);
    if (node_string(reading, node, &text, &length) && base64_decode(to, text, length, &pace, &bad))
        return ATTN_OK;
    if (attn_arena_is_cancelled(reading->arena))
        return fail_cancelled(reading, node);
    return node_fail(reading, node, ATTN_ERR_VALUE, "is not base64: character %zu is wrong", bad);
}

/* Whether bytes that claim to be bool are all 0 or 1. */
static attn_status check_flags(struct reading *reading, const struct node *node, const uint8_t *flags, size_t count)
{
    uint8_t all = 0;
    for (size_t first = 0; first < count; first += PACE_BYTES) {
        if (attn_arena_is_cancelled(reading->arena))
            return fail_cancelled(reading, node);
        for (size_t i = first; i < count && i < first + PACE_BYTES; i++)
            all |= flags[i];
    }
    return all <= 1 ? ATTN_OK : node_fail(reading, node, ATTN_ERR_VALUE, "must hold only the bytes 0 and 1");
}

/*
 * Copies or converts elements into to->data in stretches, with a check of the deadline between two of them. An error
 * counts elements from the first, so the part up to a wrong element is converted once more for the message.
 */
static attn_status convert_elements(struct reading *reading, const struct node *node, const attn_tensor *to,
                                    const void *from, attn_dtype from_dtype, size_t count)
{
    attn_error why = {0};
    const char *holder = to->dtype == ATTN_F32 && from_dtype == ATTN_F64 ? ": compute \"float64\" holds it" : "";
    for (size_t first = 0; first < count && !node_has_failed(reading); first += PACE_BYTES) {
        const size_t some = count - first < PACE_BYTES ? count - first : PACE_BYTES;
        if (attn_arena_is_cancelled(reading->arena))
            return fail_cancelled(reading, node);
        attn_status status =
            attn_convert((char *)to->data + first * attn_dtype_bytes(to->dtype), to->dtype,
                         (const char *)from + first * attn_dtype_bytes(from_dtype), from_dtype, some, &why);
        if (status == ATTN_OK)
            continue;
        status = attn_convert(to->data, to->dtype, from, from_dtype, first + some, &why);
        node_fail(reading, node, status, "cannot become %s: %s%s", attn_dtype_name(to->dtype), why.message, holder);
    }
    return reading->status;
}

/* Decodes elements of another type into scratch memory, converts them, and releases the scratch. */
static attn_status decode_converted(struct reading *reading, const struct node *node, attn_dtype from,
                                    attn_tensor *tensor, size_t count)
{
    attn_arena_mark mark = attn_arena_mark_here(reading->arena);
    void *raw = attn_arena_take(reading->arena, count, attn_dtype_bytes(from));
    if (!raw)
        return node_fail_memory(reading, node);
    decode_bytes(reading, node, raw);
    if (from == ATTN_BOOL && !node_has_failed(reading))
        check_flags(reading, node, raw, count);
    convert_elements(reading, node, tensor, raw, from, count);
    attn_arena_release(reading->arena, mark);
    return reading->status;
}

/* Decodes {"shape", "dtype", "base64"}. */
static attn_status decode_binary(struct reading *reading, const struct node *parent, const struct kind *kind,
                                 attn_tensor *tensor)
{
    static const struct member members[] = {{.name = "shape"}, {.name = "dtype"}, {.name = "base64"}};
    struct node node = node_member(parent, "base64");
    node_check_members(reading, parent, members, ARRAY_LENGTH(members));
    attn_dtype from = kind->dtype;
    size_t count = 0;
    decode_shape(reading, parent, tensor, &count);
    decode_dtype(reading, parent, &from);
    if (node_has_failed(reading))
        return reading->status;
    const attn_dtype dtype = passed_type(kind, from);
    struct node dtype_node = node_member(parent, "dtype");
    check_kind(reading, &dtype_node, dtype, from);
    if (node_has_failed(reading))
        return reading->status;
    if (count > SIZE_MAX / sizeof(double))
        return node_fail(reading, parent, ATTN_ERR_TOO_LARGE, "has more elements than memory can hold");
    check_length(reading, &node, count * attn_dtype_bytes(from));
    if (node_has_failed(reading))
        return reading->status;
    tensor->dtype = dtype;
    tensor->data = attn_arena_take(reading->arena, count, attn_dtype_bytes(dtype));
    if (!tensor->data)
        return node_fail_memory(reading, parent);
    if (from != dtype)
        return decode_converted(reading, &node, from, tensor, count);
    decode_bytes(reading, &node, tensor->data);
    return dtype == ATTN_BOOL && !node_has_failed(reading) ? check_flags(reading, &node, tensor->data, count)
                                                           : reading->status;
}

static attn_status copy_attached(struct reading *reading, const struct node *node, const attn_tensor *from,
                                 size_t count, attn_tensor *tensor)
{
    tensor->data = attn_arena_take(reading->arena, count, attn_dtype_bytes(tensor->dtype));
    if (!tensor->data)
        return node_fail_memory(reading, node);
    return convert_elements(reading, node, tensor, from->data, from->dtype, count);
}

/* Makes a tensor from an attachment: in place when its type and alignment allow. */
static attn_status decode_attached(struct reading *reading, const struct node *node,
                                   const struct envelope_attachment *attachment, const struct kind *kind,
                                   attn_tensor *tensor)
{
    const attn_tensor *from = &attachment->tensor;
    const attn_dtype dtype = passed_type(kind, from->dtype);
    size_t count = attn_tensor_count(from), size = attn_dtype_bytes(dtype);
    *tensor = attn_tensor_view(from->data, dtype, from->rank, from->shape);
    check_kind(reading, node, dtype, from->dtype);
    if (node_has_failed(reading) || (decoder_of(reading)->shapes_only && path_is_in(attachment->path, "weights")))
        return reading->status;
    if (from->dtype == ATTN_BOOL && check_flags(reading, node, from->data, count) != ATTN_OK)
        return reading->status;
    bool is_usable = from->dtype == dtype && count > 0 && (uintptr_t)from->data % size == 0;
    if (!is_usable)
        return copy_attached(reading, node, from, count, tensor);
    tensor->panels = from->panels;
    return ATTN_OK;
}

/* A single number or truth value is read as an array of one element, so that the same rules hold. */
static attn_status decode_one(struct reading *reading, const struct node *node, const struct kind *kind,
                              attn_tensor *tensor)
{
    char text[64] = "[", pointer[JSON_POINTER_MAX];
    size_t length = json_dumpb(node->json, text + 1, sizeof text - 2, JSON_ENCODE_ANY);
    if (length == 0 || length > sizeof text - 2) /* no number has so many characters */
        return node_fail_memory(reading, node);
    text[length + 1] = ']';
    const struct lifted_text array = {text, length + 2, 0};
    node_pointer(node, pointer);
    size_t at;
    attn_status status =
        tensor_scan(&array, kind->dtype, &(struct tensor_rules){0}, pointer, reading->arena, tensor, &at, reading->err);
    if (status == ATTN_ERR_VALUE)
        node_fail_value(reading, node,
                        kind->dtype == ATTN_BOOL  ? "true, false, 0 or 1"
                        : kind->dtype != ATTN_I64 ? "a number in the range of the compute type"
                                                  : "an integer");
    if (status == ATTN_ERR_VALUE && kind->dtype == ATTN_BOOL && json_number_value(node->json) < 0)
        node_explain(reading, TENSOR_BIAS_PLACE);
    if (status == ATTN_OK && !kind->one_is_list)
        *tensor = attn_tensor_view(tensor->data, kind->dtype, 0, NULL);
    return node_note(reading, status);
}

/* The end of the message "must be …". */
static const char *wanted_form(const struct kind *kind)
{
    if (kind->dtype == ATTN_I64)
        return kind->may_be_one ? "an integer, or a list with one integer for each batch item"
                                : "a list with one integer for each batch item";
    if (kind->dtype == ATTN_BOOL)
        return kind->may_be_one ? "true, false, or a tensor (arrays of true and false, or an object with shape)"
                                : "a tensor (arrays of true and false, or an object with shape)";
    return kind->may_be_one ? "a number, or a tensor (arrays of numbers, or an object with shape)"
                            : "a tensor (arrays of numbers, or an object with shape)";
}

static attn_status decode_form(struct reading *reading, const struct node *node, const struct kind *kind,
                               attn_tensor *tensor)
{
    const struct lifted_text *lifted = lifted_array(reading, node);
    size_t attachment;
    if (lifted)
        return scan_lifted(reading, node, lifted, kind, tensor);
    if (node_attached(reading, node, &attachment))
        return decode_attached(reading, node, &decoder_of(reading)->attachments[attachment], kind, tensor);
    node_drop_nulls(node);
    if (node_find(node->json, "data"))
        return decode_flat(reading, node, kind, tensor);
    if (node_find(node->json, "base64"))
        return decode_binary(reading, node, kind, tensor);
    if (json_is_object(node->json))
        return fail_missing(reading, node, node_find(node->json, "dtype") ? "base64" : "data");
    bool is_one = json_is_number(node->json) || (kind->dtype == ATTN_BOOL && json_is_boolean(node->json));
    if (kind->may_be_one && is_one)
        return decode_one(reading, node, kind, tensor);
    return fail_form(reading, node, kind, wanted_form(kind));
}

static attn_status decode_kind(struct reading *reading, const struct node *node, struct kind kind, void *to)
{
    if (node_has_failed(reading))
        return reading->status;
    attn_tensor *tensor = attn_arena_take(reading->arena, 1, sizeof *tensor);
    if (!tensor)
        return node_fail_memory(reading, node);
    decode_form(reading, node, &kind, tensor);
    if (!node_has_failed(reading))
        *(const attn_tensor **)to = tensor;
    return reading->status;
}

attn_status decode_tensor(struct reading *reading, const struct node *node, void *to)
{
    return decode_kind(reading, node, (struct kind){.dtype = *decoder_of(reading)->compute}, to);
}

static attn_status decode_maybe_half(struct reading *reading, const struct node *node, void *to)
{
    const struct decoder *decoder = decoder_of(reading);
    const bool keeps_half = *decoder->compute == ATTN_F32 && !envelope_is_gradients(decoder->kind);
    return decode_kind(reading, node, (struct kind){.dtype = *decoder->compute, .keeps_half = keeps_half}, to);
}

/* In nested arrays, a past of no tokens ends before its last axis: the core takes any number of features for it. */
attn_status decode_past(struct reading *reading, const struct node *node, void *to)
{
    const bool is_nested = lifted_array(reading, node) != NULL;
    if (decode_maybe_half(reading, node, to) != ATTN_OK || !is_nested)
        return reading->status;
    attn_tensor *past = *(attn_tensor **)to;
    const size_t shape[4] = {past->shape[0], past->shape[1], past->rank > 2 ? past->shape[2] : 0, 0};
    if ((past->rank == 2 || past->rank == 3) && past->shape[past->rank - 1] == 0)
        *past = attn_tensor_view(past->data, past->dtype, past->rank + 1, shape);
    return ATTN_OK;
}

attn_status decode_rows(struct reading *reading, const struct node *node, void *to)
{
    return (envelope_is_layer(decoder_of(reading)->kind) ? decode_tensor : decode_maybe_half)(reading, node, to);
}

attn_status decode_scores(struct reading *reading, const struct node *node, void *to)
{
    return decode_kind(reading, node, (struct kind){.dtype = *decoder_of(reading)->compute, .null_hides = true}, to);
}

attn_status decode_bias(struct reading *reading, const struct node *node, void *to)
{
    const struct kind kind = {.dtype = *decoder_of(reading)->compute, .may_be_one = true, .null_hides = true};
    return decode_kind(reading, node, kind, to);
}

attn_status decode_reals(struct reading *reading, const struct node *node, void *to)
{
    return decode_kind(reading, node, (struct kind){.dtype = ATTN_F64}, to);
}

attn_status decode_flags(struct reading *reading, const struct node *node, void *to)
{
    return decode_kind(reading, node, (struct kind){.dtype = ATTN_BOOL}, to);
}

attn_status decode_flags_or_one(struct reading *reading, const struct node *node, void *to)
{
    return decode_kind(reading, node, (struct kind){.dtype = ATTN_BOOL, .may_be_one = true}, to);
}

attn_status decode_weight(struct reading *reading, const struct node *node, void *to)
{
    const struct decoder *decoder = decoder_of(reading);
    struct kind kind = {.dtype = *decoder->compute};
    size_t attachment;
    if (kind.dtype == ATTN_F32 && !envelope_is_gradients(decoder->kind) && node_attached(reading, node, &attachment)) {
        const attn_dtype own = decoder->attachments[attachment].tensor.dtype;
        kind.dtype = own == ATTN_F16 || own == ATTN_BF16 ? own : kind.dtype;
    }
    return decode_kind(reading, node, kind, to);
}

attn_status decode_counts(struct reading *reading, const struct node *node, void *to)
{
    return decode_kind(reading, node, (struct kind){.dtype = ATTN_I64}, to);
}

attn_status decode_lengths(struct reading *reading, const struct node *node, void *to)
{
    return decode_kind(reading, node, (struct kind){.dtype = ATTN_I64, .may_be_one = true, .one_is_list = true}, to);
}

attn_status decode_ids(struct reading *reading, const struct node *node, void *to)
{
    if (!json_is_array(node->json) && !json_is_object(node->json))
        return node_fail_type(reading, node, "a list of integers, or lists of them for each batch item");
    return decode_kind(reading, node, (struct kind){.dtype = ATTN_I64}, to);
}

attn_status decode_counts_or_one(struct reading *reading, const struct node *node, void *to)
{
    return decode_kind(reading, node, (struct kind){.dtype = ATTN_I64, .may_be_one = true}, to);
}
