/* read.c: the metadata and the table of tensors of a GGUF file. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/outcome.h"
#include "codec/gguf/gguf.h"

enum {
    ITEMS_MAX = 1 << 16, /* of metadata, and tensors */
    NAME_BYTES_MAX = 64, /* of a tensor; the format's own limit */
    ALIGNMENT = 32,      /* of data, if the metadata does not say */
    ALIGNMENT_MAX = 1 << 20,
    VALUE_BYTES_MIN = 8 + 4 + 1,     /* the shortest metadata: an empty key, a type, a byte */
    TENSOR_BYTES_MIN = 8 + 4 + 4 + 8 /* the shortest tensor, without a name and dimensions */
};

/* ---- types of metadata ---- */

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, LIST, U64, I64, F64, VALUE_TYPES };

static const uint8_t VALUE_BYTES[VALUE_TYPES] = {
    [U8] = 1,  [I8] = 1,   [U16] = 2, [I16] = 2, [U32] = 4, [I32] = 4,
    [F32] = 4, [BOOL] = 1, [U64] = 8, [I64] = 8, [F64] = 8 /* 0: the length is in the file */
};

/* ---- bytes ---- */

/* What is left of the file. */
struct rest {
    const char *begin, *at, *end;
    struct outcome outcome;
    bool is_cut;
};

static size_t left(const struct rest *rest)
{
    return (size_t)(rest->end - rest->at);
}

static bool fail_short(struct rest *rest, const char *what)
{
    rest->is_cut = true;
    return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the file ends within %s, at byte %zu", what,
                        (size_t)(rest->end - rest->begin));
}

static bool take_u32(struct rest *rest, const char *what, uint32_t *value)
{
    if (left(rest) < sizeof *value)
        return fail_short(rest, what);
    memcpy(value, rest->at, sizeof *value);
    rest->at += sizeof *value;
    return true;
}

static bool take_u64(struct rest *rest, const char *what, uint64_t *value)
{
    if (left(rest) < sizeof *value)
        return fail_short(rest, what);
    memcpy(value, rest->at, sizeof *value);
    rest->at += sizeof *value;
    return true;
}

static bool take_text(struct rest *rest, const char *what, struct text_span *text)
{
    uint64_t length = 0;
    if (!take_u64(rest, what, &length))
        return false;
    rest->is_cut = length > left(rest);
    if (rest->is_cut)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL,
                            "%s at byte %zu has a length of %llu bytes, but the file has %zu more", what,
                            (size_t)(rest->at - rest->begin) - sizeof length, (unsigned long long)length, left(rest));
    *text = (struct text_span){rest->at, (size_t)length};
    rest->at += length;
    return true;
}

/* A text as a message shows it. */
#define SHOWN(span) (int)((span).length < 80 ? (span).length : 80), (span).at

/* ---- metadata ---- */

static int compare_keys(const void *left, const void *right)
{
    const struct gguf_value *a = left, *b = right;
    const size_t common = a->key.length < b->key.length ? a->key.length : b->key.length;
    const int order = common > 0 ? memcmp(a->key.at, b->key.at, common) : 0;
    return order != 0 ? order : (a->key.length > b->key.length) - (a->key.length < b->key.length);
}

/* Takes count values of that type. */
static bool take_items(struct rest *rest, const struct gguf_value *value, uint32_t type, uint64_t count)
{
    const uint64_t least = type == TEXT ? sizeof(uint64_t) : VALUE_BYTES[type];
    struct text_span text;
    if (count > left(rest) / least)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL,
                            "the metadata %.*s has %llu values, more than the %zu bytes that follow can hold",
                            SHOWN(value->key), (unsigned long long)count, left(rest));
    if (type != TEXT)
        rest->at += count * least;
    for (uint64_t i = 0; type == TEXT && i < count; i++)
        if (!take_text(rest, "a text of the metadata", &text))
            return false;
    return true;
}

static bool take_list(struct rest *rest, struct gguf_value *value)
{
    uint64_t count = 0;
    if (!take_u32(rest, "the metadata", &value->item_type) || !take_u64(rest, "the metadata", &count))
        return false;
    if (value->item_type == LIST || value->item_type >= VALUE_TYPES)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the metadata %.*s is a list of %s",
                            SHOWN(value->key), value->item_type == LIST ? "lists" : "values of an unknown type");
    value->at = rest->at;
    value->count = (size_t)count;
    return take_items(rest, value, value->item_type, count);
}

static bool take_value(struct rest *rest, struct gguf_value *value)
{
    *value = (struct gguf_value){.count = 1};
    if (!take_text(rest, "a key of the metadata", &value->key) || !take_u32(rest, "the metadata", &value->type))
        return false;
    if (value->type >= VALUE_TYPES)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the metadata %.*s has the unknown type %u",
                            SHOWN(value->key), (unsigned)value->type);
    value->at = rest->at;
    if (!(value->type == LIST ? take_list(rest, value) : take_items(rest, value, value->type, 1)))
        return false;
    value->bytes = (size_t)(rest->at - value->at);
    return true;
}

/* Whether count items of at least that many bytes can follow. */
static bool check_count(struct rest *rest, const char *what, uint64_t count, size_t least)
{
    if (count > left(rest) / least)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL,
                            "the file has %llu %s, more than its %zu bytes can hold", (unsigned long long)count, what,
                            (size_t)(rest->end - rest->begin));
    return count <= ITEMS_MAX ||
           outcome_fail(&rest->outcome, ATTN_ERR_TOO_LARGE, NULL, "the file has %llu %s; at most %d are possible",
                        (unsigned long long)count, what, ITEMS_MAX);
}

static bool take_values(struct rest *rest, uint64_t count, struct gguf *file)
{
    if (!check_count(rest, "metadata", count, VALUE_BYTES_MIN))
        return false;
    file->values = outcome_take(&rest->outcome, count + 1, sizeof *file->values);
    if (file->values == NULL)
        return false;
    while (file->value_count < count)
        if (!take_value(rest, &file->values[file->value_count++]))
            return false;
    qsort(file->values, file->value_count, sizeof *file->values, compare_keys);
    for (size_t i = 1; i < file->value_count; i++)
        if (compare_keys(&file->values[i - 1], &file->values[i]) == 0)
            return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the metadata %.*s is there twice",
                                SHOWN(file->values[i].key));
    return true;
}

/* ---- tensors ---- */

static bool fail_type(struct rest *rest, const char *name, uint32_t code)
{
    char known[128];
    const char *other = gguf_other_type(code);
    return outcome_fail(&rest->outcome, ATTN_ERR_VALUE, NULL, "the tensor %s has the type %s (%u); attnd reads %s",
                        name, other != NULL ? other : "unknown", (unsigned)code, gguf_type_names(known, sizeof known));
}

/* Takes the name of a tensor, and copies it. */
static bool take_name(struct rest *rest, const char **name)
{
    struct text_span text = {NULL, 0};
    if (!take_text(rest, "the name of a tensor", &text))
        return false;
    if (text.length == 0 || text.length > NAME_BYTES_MAX || memchr(text.at, '\0', text.length) != NULL)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL,
                            "the name of a tensor has %zu bytes; expected 1 to %d, no NUL among them", text.length,
                            NAME_BYTES_MAX);
    *name = outcome_copy_text(&rest->outcome, text.at, text.length);
    return *name != NULL;
}

/* Takes the dimensions, which the file has in the other order. */
static bool take_shape(struct rest *rest, struct gguf_tensor *tensor)
{
    uint32_t rank = 0;
    if (!take_u32(rest, "the table of tensors", &rank))
        return false;
    if (rank < 1 || rank > GGUF_RANK_MAX)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the tensor %s has %u dimensions; expected 1 to %d",
                            tensor->name, (unsigned)rank, GGUF_RANK_MAX);
    tensor->rank = rank;
    for (size_t i = rank; i-- > 0;) {
        uint64_t length = 0;
        if (!take_u64(rest, "the table of tensors", &length))
            return false;
        tensor->shape[i] = (size_t)length;
        if (length == 0)
            return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the tensor %s has a dimension of 0",
                                tensor->name);
    }
    if (attn_shape_count((int)rank, tensor->shape, &tensor->count) && tensor->count < SIZE_MAX / sizeof(double))
        return true;
    return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the tensor %s has dimensions whose product overflows",
                        tensor->name);
}

/* *offset is that of the data in the part of the file behind the tables. */
static bool take_tensor(struct rest *rest, struct gguf_tensor *tensor, uint64_t *offset)
{
    uint32_t code = 0;
    *tensor = (struct gguf_tensor){.rank = 0};
    if (!take_name(rest, &tensor->name) || !take_shape(rest, tensor) ||
        !take_u32(rest, "the table of tensors", &code) || !take_u64(rest, "the table of tensors", offset))
        return false;
    tensor->type = gguf_type_of(code);
    if (tensor->type == NULL)
        return fail_type(rest, tensor->name, code);
    const size_t row = tensor->shape[tensor->rank - 1], block = tensor->type->block;
    if (row % block != 0)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL,
                            "the tensor %s has rows of %zu numbers; blocks of %s have %zu", tensor->name, row,
                            tensor->type->name, block);
    tensor->bytes = tensor->count / block * tensor->type->block_bytes;
    return true;
}

static int compare_places(const void *left, const void *right)
{
    const struct gguf_tensor *a = left, *b = right;
    return (a->data > b->data) - (a->data < b->data);
}

static int compare_names(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

/* A name that is there twice would hide a tensor. */
static bool check_names(struct rest *rest, const struct gguf *file)
{
    const char **names = outcome_take(&rest->outcome, file->tensor_count + 1, sizeof *names);
    if (names == NULL)
        return false;
    for (size_t i = 0; i < file->tensor_count; i++)
        names[i] = file->tensors[i].name;
    qsort(names, file->tensor_count, sizeof *names, compare_names);
    for (size_t i = 1; i < file->tensor_count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the tensor %s is there twice", names[i]);
    return true;
}

/* Places the tensors in the data, which begins at data. They must lie within the file, one behind the other. */
static bool place_tensors(struct rest *rest, const uint64_t *offsets, size_t alignment, const char *data,
                          struct gguf *file)
{
    const size_t bytes = (size_t)(rest->end - data);
    for (size_t i = 0; i < file->tensor_count; i++) {
        struct gguf_tensor *tensor = &file->tensors[i];
        rest->is_cut = offsets[i] > bytes || tensor->bytes > bytes - offsets[i];
        if (rest->is_cut)
            return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL,
                                "the tensor %s has %zu bytes at offset %llu, but the data has %zu", tensor->name,
                                tensor->bytes, (unsigned long long)offsets[i], bytes);
        if (offsets[i] % alignment != 0)
            return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL,
                                "the tensor %s has the offset %llu, which is no multiple of %zu", tensor->name,
                                (unsigned long long)offsets[i], alignment);
        tensor->data = data + offsets[i];
    }
    if (file->tensor_count > 0)
        qsort(file->tensors, file->tensor_count, sizeof *file->tensors, compare_places);
    for (size_t i = 1; i < file->tensor_count; i++) {
        const struct gguf_tensor *before = &file->tensors[i - 1], *tensor = &file->tensors[i];
        if (tensor->data < before->data + before->bytes)
            return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the data of the tensors %s and %s overlap",
                                before->name, tensor->name);
    }
    return true;
}

static bool find_alignment(struct rest *rest, const struct gguf *file, size_t *alignment)
{
    const struct gguf_value *value = gguf_find(file, "general.alignment");
    uint64_t given = ALIGNMENT;
    const bool is_count = value == NULL || gguf_count(value, &given);
    *alignment = (size_t)given;
    return (is_count && given > 0 && given <= ALIGNMENT_MAX && (given & (given - 1)) == 0) ||
           outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL,
                        "the metadata general.alignment is %llu; expected a power of two up to %d",
                        (unsigned long long)given, ALIGNMENT_MAX);
}

static bool take_tensors(struct rest *rest, uint64_t count, struct gguf *file)
{
    size_t alignment;
    if (!check_count(rest, "tensors", count, TENSOR_BYTES_MIN) || !find_alignment(rest, file, &alignment))
        return false;
    file->tensors = outcome_take(&rest->outcome, count + 1, sizeof *file->tensors);
    uint64_t *offsets = outcome_take(&rest->outcome, count + 1, sizeof *offsets);
    if (file->tensors == NULL || offsets == NULL)
        return false;
    for (; file->tensor_count < count; file->tensor_count++)
        if (!take_tensor(rest, &file->tensors[file->tensor_count], &offsets[file->tensor_count]))
            return false;
    const size_t tables = (size_t)(rest->at - rest->begin), begin = (tables + alignment - 1) / alignment * alignment,
                 bytes = (size_t)(rest->end - rest->begin);
    if (count > 0 && begin > bytes)
        return fail_short(rest, "the tables");
    return check_names(rest, file) &&
           place_tensors(rest, offsets, alignment, rest->begin + (begin < bytes ? begin : bytes), file);
}

/* ---- the file ---- */

static bool take_version(struct rest *rest)
{
    uint32_t version = 0;
    if (left(rest) < 4 || memcmp(rest->at, "GGUF", 4) != 0)
        return outcome_fail(&rest->outcome, ATTN_ERR_SYNTAX, NULL, "the file is not GGUF: it does not begin so");
    rest->at += 4;
    if (!take_u32(rest, "the header", &version))
        return false;
    if ((version & 0xFFFF) == 0 && version != 0)
        return outcome_fail(&rest->outcome, ATTN_ERR_VALUE, NULL,
                            "the file is big-endian GGUF; attnd reads little-endian files");
    return version == 2 || version == 3 ||
           outcome_fail(&rest->outcome, ATTN_ERR_VALUE, NULL, "the file has GGUF's version %u; attnd reads 2 and 3",
                        (unsigned)version);
}

attn_status gguf_read(const void *body, size_t bytes, attn_arena *arena, struct gguf *file, attn_error *err)
{
    const char *text = body;
    struct rest rest = {text, text, text + bytes, {.arena = arena, .err = err}, false};
    uint64_t tensors = 0, values = 0;
    *file = (struct gguf){.values = NULL};
    if (take_version(&rest) && take_u64(&rest, "the header", &tensors) && take_u64(&rest, "the header", &values) &&
        take_values(&rest, values, file))
        (void)take_tensors(&rest, tensors, file); /* the outcome remembers a failure */
    file->is_cut = rest.is_cut;
    return rest.outcome.status;
}

/* ---- asking for metadata ---- */

const struct gguf_value *gguf_find(const struct gguf *file, const char *key)
{
    const struct gguf_value wanted = {.key = text_span_of(key)};
    return file->value_count > 0 ? bsearch(&wanted, file->values, file->value_count, sizeof wanted, compare_keys)
                                 : NULL;
}

/* The value as an integer. False: it is of another kind, or above the largest int64_t. */
static bool read_integer(const struct gguf_value *value, int64_t *integer)
{
    uint64_t bits = 0;
    if (value == NULL || value->type >= VALUE_TYPES || VALUE_BYTES[value->type] == 0)
        return false;
    memcpy(&bits, value->at, VALUE_BYTES[value->type]);
    switch (value->type) {
    case U8:
    case U16:
    case U32:
    case I64:
        *integer = (int64_t)bits;
        return true;
    case I8:
        *integer = (int64_t)(bits ^ 0x80) - 0x80; /* two's complement */
        return true;
    case I16:
        *integer = (int16_t)bits;
        return true;
    case I32:
        *integer = (int32_t)bits;
        return true;
    case U64:
        *integer = (int64_t)bits;
        return bits <= INT64_MAX;
    default:
        return false;
    }
}

bool gguf_count(const struct gguf_value *value, uint64_t *count)
{
    int64_t integer;
    if (!read_integer(value, &integer) || integer < 0)
        return false;
    *count = (uint64_t)integer;
    return true;
}

bool gguf_number(const struct gguf_value *value, double *number)
{
    int64_t integer;
    float narrow;
    if (read_integer(value, &integer))
        *number = (double)integer;
    else if (value != NULL && value->type == F32) {
        memcpy(&narrow, value->at, sizeof narrow);
        *number = (double)narrow;
    } else if (value != NULL && value->type == F64)
        memcpy(number, value->at, sizeof *number);
    else
        return false;
    return true;
}

bool gguf_bool(const struct gguf_value *value, bool *is)
{
    if (value == NULL || value->type != BOOL)
        return false;
    *is = value->at[0] != 0;
    return true;
}

bool gguf_text(const struct gguf_value *value, struct text_span *text)
{
    if (value == NULL || value->type != TEXT)
        return false;
    const char *at = value->at;
    *text = gguf_next_text(value, &at);
    return true;
}

bool gguf_is_texts(const struct gguf_value *value)
{
    return value != NULL && value->type == LIST && value->item_type == TEXT;
}

bool gguf_is_floats(const struct gguf_value *value)
{
    return value != NULL && value->type == LIST && value->item_type == F32;
}

bool gguf_is_integers(const struct gguf_value *value)
{
    return value != NULL && value->type == LIST && (value->item_type == I32 || value->item_type == U32);
}

struct text_span gguf_next_text(const struct gguf_value *value, const char **rest)
{
    uint64_t length = 0;
    const size_t left = (size_t)(value->at + value->bytes - *rest), head = left < sizeof length ? left : sizeof length;
    memcpy(&length, *rest, head);
    const struct text_span text = {*rest + head, length < left - head ? (size_t)length : left - head};
    *rest = text.at + text.length;
    return text;
}

float gguf_float_at(const struct gguf_value *value, size_t index)
{
    float number;
    memcpy(&number, value->at + index * sizeof number, sizeof number);
    return number;
}

int32_t gguf_integer_at(const struct gguf_value *value, size_t index)
{
    int32_t number;
    memcpy(&number, value->at + index * sizeof number, sizeof number);
    return number;
}
