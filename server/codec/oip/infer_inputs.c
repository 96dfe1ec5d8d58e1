/*
 * infer_inputs.c: turns the tensors of a request in the Open Inference Protocol, in JSON or in binary form, into
 * attachments of our own.
 */
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "codec/oip/parts.h"
#include "codec/request/decoder.h"

/* ---- datatypes ---- */

struct datatype {
    const char *name;
    size_t bytes;     /* of one element in binary form */
    attn_dtype dtype; /* the type in which it is passed on; integer types that the core lacks become int64 */
    bool is_widened;
    int64_t low; /* the least integer that JSON text may give */
    uint64_t high;
};

static const struct datatype datatypes[] = {
    {"FP32", 4, ATTN_F32, false, 0, 0},
    {"FP64", 8, ATTN_F64, false, 0, 0},
    {"FP16", 2, ATTN_F16, false, 0, 0},
    {"BF16", 2, ATTN_BF16, false, 0, 0},
    {"BOOL", 1, ATTN_BOOL, false, 0, 0},
    {"INT8", 1, ATTN_I64, true, INT8_MIN, INT8_MAX},
    {"INT16", 2, ATTN_I64, true, INT16_MIN, INT16_MAX},
    {"INT32", 4, ATTN_I32, false, INT32_MIN, INT32_MAX},
    {"INT64", 8, ATTN_I64, false, INT64_MIN, INT64_MAX},
    {"UINT8", 1, ATTN_U8, false, 0, UINT8_MAX},
    {"UINT16", 2, ATTN_I64, true, 0, UINT16_MAX},
    {"UINT32", 4, ATTN_I64, true, 0, UINT32_MAX},
    {"UINT64", 8, ATTN_I64, true, 0, UINT64_MAX},
};

enum { DATATYPES = ARRAY_LENGTH(datatypes) };

static const struct datatype of_texts = {"BYTES", 0, ATTN_U8, false, 0, 0};
static const struct datatype of_ids[] = {{"INT64", 8, ATTN_I64, false, INT64_MIN, INT64_MAX},
                                         {"INT32", 4, ATTN_I64, true, INT32_MIN, INT32_MAX}};

/* The inputs of whole models. */
static const char text_path[] = "inputs.text", ids_path[] = "inputs.ids";

static bool is_integer(const struct datatype *type)
{
    return type->high > 0;
}

/* Widens one element of an integer type that the core lacks. False when int64 cannot hold it. */
static bool widen(const struct datatype *type, const char *from, int64_t *to)
{
    uint64_t bits = 0;
    memcpy(&bits, from, type->bytes); /* the wire and this machine are both little-endian */
    const unsigned unused = 64 - 8 * (unsigned)type->bytes;
    *to = type->low < 0 ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
    return type->low < 0 || bits <= INT64_MAX;
}

/* ---- inputs ---- */

const char *oip_capitals(const char *name, char to[OIP_NAME_MAX])
{
    size_t length = 0;
    for (; name[length] != '\0' && length + 1 < OIP_NAME_MAX; length++)
        to[length] = (char)toupper((unsigned char)name[length]);
    to[length] = '\0';
    return to;
}

/* Lists the inputs by name, and the place of each in a request of our own. Returns how many there are. */
static size_t list_inputs(const struct oip_decoder *d, char names[OIP_INPUTS_MAX][OIP_NAME_MAX],
                          const char *paths[OIP_INPUTS_MAX])
{
    static const char *const of_layers[] = {"inputs.query", "inputs.key", "inputs.value"};
    static const char *const of_whole[] = {text_path, ids_path};
    const char *const *own = d->is_whole ? of_whole : of_layers;
    const size_t own_count = d->is_whole ? ARRAY_LENGTH(of_whole) : ARRAY_LENGTH(of_layers);
    size_t count = 0;
    for (; count < own_count; count++) {
        paths[count] = own[count];
        oip_capitals(strchr(own[count], '.') + 1, names[count]);
    }
    for (size_t i = 0; !d->is_whole && mask_row_at(i) && count < OIP_INPUTS_MAX; i++) {
        if (!(mask_row_at(i)->places & MASK_AS_TENSOR))
            continue;
        paths[count] = mask_row_at(i)->path;
        oip_capitals(mask_row_at(i)->name, names[count++]);
    }
    return count;
}

/* The member of that name, one of words. */
static attn_status read_word(struct oip_decoder *d, const struct node *input, const char *name,
                             const char *const *words, size_t count, size_t *index)
{
    const struct node node = node_member(input, name);
    return node.json ? node_decode_word(d->reading, &node, words, count, index)
                     : node_fail(d->reading, input, ATTN_ERR_FIELD, "has no \"%s\"", name);
}

static attn_status read_name(struct oip_decoder *d, const struct node *input, struct envelope_attachment *to)
{
    char names[OIP_INPUTS_MAX][OIP_NAME_MAX];
    const char *words[OIP_INPUTS_MAX], *paths[OIP_INPUTS_MAX];
    const size_t count = list_inputs(d, names, paths);
    const struct node node = node_member(input, "name");
    size_t index = 0;
    for (size_t i = 0; i < count; i++)
        words[i] = names[i];
    if (read_word(d, input, "name", words, count, &index) != ATTN_OK)
        return d->reading->status;
    assert(index < count);
    to->path = paths[index];
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->attachments[i].path, to->path) == 0)
            return node_fail(d->reading, &node, ATTN_ERR_FIELD, "names %s a second time", words[index]);
    return ATTN_OK;
}

static attn_status read_datatype(struct oip_decoder *d, const struct node *input, const char *path,
                                 const struct datatype **type)
{
    const struct datatype *known = strcmp(path, text_path) == 0  ? &of_texts
                                   : strcmp(path, ids_path) == 0 ? of_ids
                                                                 : datatypes;
    const size_t count = known == datatypes ? DATATYPES : known == of_ids ? ARRAY_LENGTH(of_ids) : 1;
    const char *words[DATATYPES];
    size_t index = 0;
    for (size_t i = 0; i < count; i++)
        words[i] = known[i].name;
    const attn_status status = read_word(d, input, "datatype", words, count, &index);
    *type = &known[index];
    return status;
}

static attn_status read_shape(struct oip_decoder *d, const struct node *input, attn_tensor *tensor, size_t *count)
{
    struct node node = node_member(input, "shape");
    const attn_tensor *list = NULL;
    if (!node.json)
        return node_fail(d->reading, input, ATTN_ERR_FIELD, "has no \"shape\"");
    if (!json_is_array(node.json))
        return node_fail_type(d->reading, &node, "a flat list of dimensions");
    attn_status status = decode_counts(d->reading, &node, &list);
    if (status != ATTN_OK)
        return status;
    if (list->rank != 1 || list->shape[0] > ATTN_REQUEST_RANK)
        return node_fail(d->reading, &node, ATTN_ERR_SHAPE, "must be a flat list of at most %d dimensions",
                         ATTN_REQUEST_RANK);
    size_t shape[ATTN_MAX_RANK] = {0};
    for (size_t i = 0; i < list->shape[0]; i++) {
        const int64_t length = ((const int64_t *)list->data)[i];
        if (length < 0)
            return node_fail(d->reading, &node, ATTN_ERR_VALUE, "holds the negative dimension %lld", (long long)length);
        shape[i] = (size_t)length;
    }
    *tensor = attn_tensor_view(NULL, ATTN_F32, (int)list->shape[0], shape);
    if (!attn_shape_count(tensor->rank, shape, count) || *count > SIZE_MAX / sizeof(double))
        return node_fail(d->reading, &node, ATTN_ERR_TOO_LARGE, "has a product that no memory can hold");
    return ATTN_OK;
}

static attn_status check_range(struct oip_decoder *d, const struct node *node, const struct datatype *type,
                               const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] < type->low || (numbers[i] > 0 && (uint64_t)numbers[i] > type->high))
            return node_fail(d->reading, node, ATTN_ERR_VALUE, "holds %lld, which %s cannot", (long long)numbers[i],
                             type->name);
    return ATTN_OK;
}

/* Numbers in JSON are not rounded to half precision, but they must lie within its range. */
static attn_status check_half_range(struct oip_decoder *d, const struct node *node, const float *numbers, size_t count)
{
    const float rounds_to_infinity = 65520;
    for (size_t i = 0; i < count; i++)
        if (isfinite(numbers[i]) && fabsf(numbers[i]) >= rounds_to_infinity)
            return node_fail(d->reading, node, ATTN_ERR_VALUE, "holds %.9g, which FP16 cannot", (double)numbers[i]);
    return ATTN_OK;
}

static bool has_same_shape(const attn_tensor *a, const attn_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

/* Reads "data": flat, or nested in the shape that "shape" gives. may_hide: null is -Infinity. */
static attn_status read_data(struct oip_decoder *d, const struct node *input, const struct datatype *type,
                             bool may_hide, attn_tensor *tensor, size_t count)
{
    struct node node = node_member(input, "data");
    const attn_tensor *data = NULL;
    attn_dtype compute = type->dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    if (!node.json)
        return node_fail(d->reading, input, ATTN_ERR_FIELD,
                         "has neither \"data\" nor the parameter \"binary_data_size\"");
    d->decoder.compute = &compute;
    attn_status status = (type->dtype == ATTN_BOOL ? decode_flags
                          : is_integer(type)       ? decode_counts
                          : may_hide               ? decode_scores
                                                   : decode_tensor)(d->reading, &node, &data);
    if (status != ATTN_OK)
        return status;
    const size_t received = attn_tensor_count(data);
    if (received != count || (data->rank != 1 && !has_same_shape(data, tensor)))
        return node_fail(d->reading, &node, ATTN_ERR_SHAPE,
                         "has %zu numbers in %d dimensions; \"shape\" asks for %zu, flat or nested alike", received,
                         data->rank, count);
    if (is_integer(type))
        status = check_range(d, &node, type, data->data, count);
    else if (type->dtype == ATTN_F16)
        status = check_half_range(d, &node, data->data, count);
    *tensor = attn_tensor_view(data->data, data->dtype, tensor->rank, tensor->shape);
    return status;
}

static attn_status widen_all(struct oip_decoder *d, const struct node *input, const struct datatype *type,
                             const char *from, attn_tensor *tensor, size_t count)
{
    int64_t *to = attn_arena_take(d->reading->arena, count, sizeof *to);
    if (!to)
        return node_fail_memory(d->reading, input);
    for (size_t i = 0; i < count; i++)
        if (!widen(type, from + i * type->bytes, &to[i]))
            return node_fail(d->reading, input, ATTN_ERR_VALUE, "element %zu is beyond what int64 holds", i);
    *tensor = attn_tensor_view(to, ATTN_I64, tensor->rank, tensor->shape);
    return ATTN_OK;
}

/* Takes the next bytes after the JSON. */
static attn_status read_binary(struct oip_decoder *d, const struct node *input, const struct datatype *type,
                               int64_t bytes, attn_tensor *tensor, size_t count)
{
    if (node_member(input, "data").json)
        return node_fail(d->reading, input, ATTN_ERR_FIELD, "has both \"data\" and \"binary_data_size\"");
    if ((uint64_t)bytes != count * type->bytes)
        return node_fail(d->reading, input, ATTN_ERR_SHAPE, "says binary_data_size %lld; its shape takes %zu bytes",
                         (long long)bytes, count * type->bytes);
    if ((uint64_t)bytes > d->binary_bytes)
        return node_fail(d->reading, input, ATTN_ERR_SHAPE,
                         "says binary_data_size %lld, but %zu bytes are left behind the JSON", (long long)bytes,
                         d->binary_bytes);
    const char *from = d->binary;
    d->binary += bytes;
    d->binary_bytes -= (size_t)bytes;
    if (type->is_widened)
        return widen_all(d, input, type, from, tensor, count);
    /* Nobody writes through the view. */
    void *data;
    memcpy(&data, &from, sizeof data);
    *tensor = attn_tensor_view(data, type->dtype, tensor->rank, tensor->shape);
    return ATTN_OK;
}

/* Reads the size of the binary data. -1 when the input has none. */
static attn_status read_binary_size(struct oip_decoder *d, const struct node *input, int64_t *bytes)
{
    struct node parameters = node_member(input, "parameters");
    *bytes = -1;
    if (!parameters.json)
        return ATTN_OK;
    attn_status status = oip_check_parameters(d, &parameters, "binary_data_size");
    struct node node = node_member(&parameters, "binary_data_size");
    if (status != ATTN_OK || !node.json)
        return status;
    return node_decode_integer(d->reading, &node, 0, INT64_MAX, bytes);
}

/* ---- texts and ids of whole models ---- */

static void keep_text(struct oip_decoder *d, const struct node *node, const char *at, size_t length,
                      struct text_span *text)
{
    *text = (struct text_span){attn_arena_copy_text(d->reading->arena, at, length), length};
    if (text->at == NULL)
        node_fail_memory(d->reading, node);
}

/* Reads the strings of a list, which may be nested once. */
static attn_status read_strings(struct oip_decoder *d, const struct node *list, struct text_span *texts, size_t room,
                                size_t *count)
{
    struct reading *reading = d->reading;
    for (size_t i = 0; i < json_array_size(list->json) && !node_has_failed(reading); i++) {
        const struct node element = node_element(list, i);
        const struct node inner = node_element(&element, 0);
        const char *text;
        size_t length;
        if (!node_string(d->reading, &element, &text, &length) &&
            !(json_array_size(element.json) == 1 && node_string(d->reading, &inner, &text, &length)))
            return node_fail_type(d->reading, &element, "a string");
        if (*count < room)
            keep_text(d, &element, text, length, &texts[*count]);
        (*count)++;
    }
    return reading->status;
}

static attn_status read_texts(struct oip_decoder *d, const struct node *input, struct text_span *texts, size_t count)
{
    struct node node = node_member(input, "data"), list;
    size_t received = 0;
    if (!node.json)
        return node_fail(d->reading, input, ATTN_ERR_FIELD,
                         "has neither \"data\" nor the parameter \"binary_data_size\"");
    node_decode_list(d->reading, &node, "a list of strings", &list);
    read_strings(d, &list, texts, count, &received);
    json_decref(list.json);
    if (received != count)
        node_fail(d->reading, &node, ATTN_ERR_SHAPE, "has %zu strings; \"shape\" asks for %zu", received, count);
    return d->reading->status;
}

/* Each text is its length in 4 bytes, and its bytes. */
static attn_status read_binary_texts(struct oip_decoder *d, const struct node *input, const attn_tensor *bytes,
                                     struct text_span *texts, size_t count)
{
    const char *at = bytes->data, *end = at + bytes->shape[0];
    struct reading *reading = d->reading;
    size_t received = 0;
    for (; received < count && !node_has_failed(reading); received++) {
        uint32_t length;
        if ((size_t)(end - at) < sizeof length)
            break;
        memcpy(&length, at, sizeof length);
        at += sizeof length;
        if ((size_t)(end - at) < length)
            break;
        keep_text(d, input, at, length, &texts[received]);
        at += length;
    }
    if (received < count || at != end)
        node_fail(reading, input, ATTN_ERR_SHAPE,
                  "does not hold %zu texts of BYTES, each with its length in 4 bytes before it", count);
    return reading->status;
}

static attn_status read_whole_texts(struct oip_decoder *d, const struct node *input, attn_tensor *tensor, size_t count,
                                    int64_t bytes)
{
    if (tensor->rank != 1 && !(tensor->rank == 2 && tensor->shape[1] == 1))
        return node_fail(d->reading, input, ATTN_ERR_SHAPE, "must have the shape [batch] or [batch,1]");
    struct text_span *texts = attn_arena_take(d->reading->arena, count, sizeof *texts);
    if (!texts)
        return node_fail_memory(d->reading, input);
    d->whole.batch = count;
    d->whole.texts = texts;
    if (bytes < 0)
        return read_texts(d, input, texts, count);
    const size_t length = (size_t)bytes;
    attn_tensor raw = attn_tensor_view(NULL, ATTN_U8, 1, &length);
    attn_status status =
        read_binary(d, input, &(struct datatype){"BYTES", 1, ATTN_U8, false, 0, UINT8_MAX}, bytes, &raw, length);
    return status == ATTN_OK ? read_binary_texts(d, input, &raw, texts, count) : status;
}

/* The ids are copied, because those of the body may lie at any address. */
static attn_status keep_ids(struct oip_decoder *d, const struct node *input, const attn_tensor *tensor, size_t count)
{
    int64_t *ids = attn_arena_take(d->reading->arena, count, sizeof *ids);
    if (tensor->rank != 1 && tensor->rank != 2)
        return node_fail(d->reading, input, ATTN_ERR_SHAPE, "must have the shape [len] or [batch,len]");
    if (!ids)
        return node_fail_memory(d->reading, input);
    memcpy(ids, tensor->data, count * sizeof *ids);
    d->whole.batch = tensor->rank == 1 ? 1 : tensor->shape[0];
    d->whole.length = tensor->shape[tensor->rank - 1];
    d->whole.ids = ids;
    return ATTN_OK;
}

static attn_status read_input(struct oip_decoder *d, const struct node *input)
{
    static const struct member members[] = {
        {.name = "name"}, {.name = "datatype"}, {.name = "shape"}, {.name = "parameters"}, {.name = "data"}};
    struct envelope_attachment *to = &d->attachments[d->count];
    const struct datatype *type = NULL;
    size_t count = 0;
    int64_t bytes = -1;
    struct reading *reading = d->reading;
    if (node_check_members(reading, input, members, ARRAY_LENGTH(members)) != ATTN_OK ||
        read_name(d, input, to) != ATTN_OK || read_datatype(d, input, to->path, &type) != ATTN_OK ||
        read_shape(d, input, &to->tensor, &count) != ATTN_OK || read_binary_size(d, input, &bytes) != ATTN_OK)
        return reading->status;
    assert(type != NULL);
    d->count++;
    if (strcmp(to->path, "inputs.query") == 0)
        d->query_is_f64 = type->dtype == ATTN_F64;
    if (type == &of_texts)
        return read_whole_texts(d, input, &to->tensor, count, bytes);
    const attn_status status = bytes < 0
                                   ? read_data(d, input, type, strcmp(to->path, "masks.bias") == 0, &to->tensor, count)
                                   : read_binary(d, input, type, bytes, &to->tensor, count);
    return status == ATTN_OK && strcmp(to->path, ids_path) == 0 ? keep_ids(d, input, &to->tensor, count) : status;
}

bool oip_is_hint(const char *name)
{
    return strcmp(name, "content_type") == 0 || strcmp(name, "headers") == 0;
}

attn_status oip_check_offered(struct oip_decoder *d, const struct node *parameter)
{
    static const char *const absent[][2] = {
        {"shared_memory_region shared_memory_byte_size shared_memory_offset",
         "shared memory is not offered: send the bytes"},
        {"sequence_id sequence_start sequence_end", "sequences are not offered: each request holds all that it needs"},
        {"classification", "classification is not offered: ask for the whole output"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(absent); i++)
        if (foreign_has(absent[i][0], parameter->name))
            return node_fail(d->reading, parameter, ATTN_ERR_FIELD, "cannot be given; %s", absent[i][1]);
    return ATTN_OK;
}

attn_status oip_check_parameters(struct oip_decoder *d, const struct node *parameters, const char *known)
{
    const char *name;
    json_t *value;
    json_object_foreach(parameters->json, name, value)
    {
        const struct node parameter = {.parent = parameters, .name = name, .json = value};
        if (!json_is_null(value) && oip_check_offered(d, &parameter) != ATTN_OK)
            return d->reading->status;
    }
    const struct member members[] = {{.name = known}, {.name = "content_type"}, {.name = "headers"}};
    return node_check_members(d->reading, parameters, members, ARRAY_LENGTH(members));
}

bool oip_list_length(const struct oip_decoder *d, const struct node *list, size_t *length)
{
    const struct lifted_text *lifted = node_lifted(d->reading, list);
    const char *inside = lifted ? lifted->text + 1 : NULL;
    while (inside && isspace((unsigned char)*inside))
        inside++;
    *length = lifted ? 0 : json_array_size(list->json);
    return node_is_array(d->reading, list) && (inside == NULL || *inside == ']');
}

attn_status oip_read_inputs(struct oip_decoder *d, const struct node *root)
{
    struct node list = node_member(root, "inputs");
    size_t given;
    if (!list.json)
        return node_fail(d->reading, root, ATTN_ERR_FIELD, "has no \"inputs\"");
    if (!oip_list_length(d, &list, &given))
        return node_fail_type(d->reading, &list, "a list of tensors");
    char names[OIP_INPUTS_MAX][OIP_NAME_MAX];
    const char *paths[OIP_INPUTS_MAX];
    const size_t known = list_inputs(d, names, paths);
    if (given > known)
        return node_fail(d->reading, &list, ATTN_ERR_FIELD, "has %zu tensors; this model has %zu inputs", given, known);
    struct reading *reading = d->reading;
    for (size_t i = 0; i < given && !node_has_failed(reading); i++) {
        struct node input = node_element(&list, i);
        read_input(d, &input);
    }
    if (d->is_whole && (d->count != 1 || d->whole.batch == 0))
        return node_fail(d->reading, &list, ATTN_ERR_FIELD, "must hold one tensor with elements, TEXT or IDS");
    if (d->binary_bytes > 0)
        return node_fail(d->reading, &list, ATTN_ERR_SHAPE, "leave %zu bytes behind the JSON to no tensor",
                         d->binary_bytes);
    return reading->status;
}
