/*
 * oip_decode.c: a request for inference in the Open Inference Protocol to our own.
 */
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "codec/document.h"
#include "codec/envelope_parts.h"
#include "codec/json_tree.h"
#include "codec/oip.h"

enum { INPUTS_MAX = 16, NAME_MAX_BYTES = 64 };

/* ---- datatypes ---- */

struct datatype {
    const char *name;
    size_t bytes;     /* of an element in binary form */
    attn_dtype dtype; /* in which it is handed on; integers that the core does not know are widened to int64 */
    bool is_widened;
    int64_t low; /* of the integers that JSON text may give */
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

enum { DATATYPES = sizeof datatypes / sizeof datatypes[0] };

static bool is_integer(const struct datatype *type)
{
    return type->high > 0;
}

/* One element of an integer type that the core does not know; false when int64 cannot hold it. */
static bool widen(const struct datatype *type, const char *from, int64_t *to)
{
    uint64_t bits = 0;
    memcpy(&bits, from, type->bytes); /* little-endian, as this machine is */
    const unsigned unused = 64 - 8 * (unsigned)type->bytes;
    *to = type->low < 0 ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
    return type->low < 0 || bits <= INT64_MAX;
}

/* ---- inputs ---- */

struct oip_decoder {
    struct decoder decoder;
    const struct envelope_base *layer; /* NULL: attention on what comes */
    const char *binary;                /* what is behind the JSON, and has not been given to an input yet */
    size_t binary_bytes;
    struct envelope_attachment attachments[INPUTS_MAX];
    size_t count;
    bool query_is_f64;
    bool is_binary_output; /* parameter binary_data_output */
    json_int_t timeout_us; /* parameter timeout; 0: none */
};

static const struct {
    const char *name, *path;
} known_inputs[] = {{"QUERY", "inputs.query"},
                    {"KEY", "inputs.key"},
                    {"VALUE", "inputs.value"},
                    {"ATTEND", "masks.attend"},
                    {"BIAS", "masks.bias"}};

enum { KNOWN_INPUTS = sizeof known_inputs / sizeof known_inputs[0] };

static attn_status read_name(struct oip_decoder *d, const struct node *input, struct envelope_attachment *to)
{
    const char *words[KNOWN_INPUTS];
    for (size_t i = 0; i < KNOWN_INPUTS; i++)
        words[i] = known_inputs[i].name;
    struct node node = node_member(input, "name");
    size_t index;
    if (!node.json)
        return node_fail(&d->decoder, input, ATTN_ERR_FIELD, "has no \"name\"");
    attn_status status = decode_word(&d->decoder, &node, words, KNOWN_INPUTS, &index);
    if (status != ATTN_OK)
        return status;
    to->path = known_inputs[index].path;
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->attachments[i].path, to->path) == 0)
            return node_fail(&d->decoder, &node, ATTN_ERR_FIELD, "names %s a second time", words[index]);
    return ATTN_OK;
}

static attn_status read_datatype(struct oip_decoder *d, const struct node *input, const struct datatype **type)
{
    const char *words[DATATYPES];
    for (size_t i = 0; i < DATATYPES; i++)
        words[i] = datatypes[i].name;
    struct node node = node_member(input, "datatype");
    size_t index;
    if (!node.json)
        return node_fail(&d->decoder, input, ATTN_ERR_FIELD, "has no \"datatype\"");
    attn_status status = decode_word(&d->decoder, &node, words, DATATYPES, &index);
    *type = status == ATTN_OK ? &datatypes[index] : NULL;
    return status;
}

static attn_status read_shape(struct oip_decoder *d, const struct node *input, attn_tensor *tensor, size_t *count)
{
    struct node node = node_member(input, "shape");
    const attn_tensor *list = NULL;
    if (!node.json)
        return node_fail(&d->decoder, input, ATTN_ERR_FIELD, "has no \"shape\"");
    if (!json_is_array(node.json))
        return node_fail_type(&d->decoder, &node, "a flat list of dimensions");
    attn_status status = decode_counts(&d->decoder, &node, &list);
    if (status != ATTN_OK)
        return status;
    if (list->rank != 1 || list->shape[0] > ATTN_MAX_RANK)
        return node_fail(&d->decoder, &node, ATTN_ERR_SHAPE, "must be a flat list of at most %d dimensions",
                         ATTN_MAX_RANK);
    size_t shape[ATTN_MAX_RANK] = {0};
    for (size_t i = 0; i < list->shape[0]; i++) {
        const int64_t length = ((const int64_t *)list->data)[i];
        if (length < 0)
            return node_fail(&d->decoder, &node, ATTN_ERR_VALUE, "holds the negative dimension %lld",
                             (long long)length);
        shape[i] = (size_t)length;
    }
    *tensor = attn_tensor_view(NULL, ATTN_F32, (int)list->shape[0], shape);
    if (!attn_shape_count(tensor->rank, shape, count) || *count > SIZE_MAX / sizeof(double))
        return node_fail(&d->decoder, &node, ATTN_ERR_TOO_LARGE, "has a product that no memory can hold");
    return ATTN_OK;
}

static attn_status check_range(struct oip_decoder *d, const struct node *node, const struct datatype *type,
                               const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] < type->low || (numbers[i] > 0 && (uint64_t)numbers[i] > type->high))
            return node_fail(&d->decoder, node, ATTN_ERR_VALUE, "holds %lld, which %s cannot", (long long)numbers[i],
                             type->name);
    return ATTN_OK;
}

/* Numbers of JSON stay what they are, without half precision's rounding; its range holds. */
static attn_status check_half_range(struct oip_decoder *d, const struct node *node, const float *numbers, size_t count)
{
    const float rounds_to_infinity = 65520;
    for (size_t i = 0; i < count; i++)
        if (isfinite(numbers[i]) && fabsf(numbers[i]) >= rounds_to_infinity)
            return node_fail(&d->decoder, node, ATTN_ERR_VALUE, "holds %.9g, which FP16 cannot", (double)numbers[i]);
    return ATTN_OK;
}

static bool has_same_shape(const attn_tensor *a, const attn_tensor *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

/* "data": flat, or nested in the shape that is told. */
static attn_status read_data(struct oip_decoder *d, const struct node *input, const struct datatype *type,
                             attn_tensor *tensor, size_t count)
{
    struct node node = node_member(input, "data");
    const attn_tensor *data = NULL;
    attn_dtype compute = type->dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
    if (!node.json)
        return node_fail(&d->decoder, input, ATTN_ERR_FIELD,
                         "has neither \"data\" nor the parameter \"binary_data_size\"");
    d->decoder.compute = &compute;
    attn_status status = (type->dtype == ATTN_BOOL ? decode_flags
                          : is_integer(type)       ? decode_counts
                                                   : decode_tensor)(&d->decoder, &node, &data);
    if (status != ATTN_OK)
        return status;
    const size_t received = attn_tensor_count(data);
    if (received != count || (data->rank != 1 && !has_same_shape(data, tensor)))
        return node_fail(&d->decoder, &node, ATTN_ERR_SHAPE,
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
    int64_t *to = attn_arena_take(d->decoder.arena, count, sizeof *to);
    if (!to)
        return node_fail_memory(&d->decoder, input);
    for (size_t i = 0; i < count; i++)
        if (!widen(type, from + i * type->bytes, &to[i]))
            return node_fail(&d->decoder, input, ATTN_ERR_VALUE, "element %zu is beyond what int64 holds", i);
    *tensor = attn_tensor_view(to, ATTN_I64, tensor->rank, tensor->shape);
    return ATTN_OK;
}

/* The next bytes behind the JSON. */
static attn_status read_binary(struct oip_decoder *d, const struct node *input, const struct datatype *type,
                               int64_t bytes, attn_tensor *tensor, size_t count)
{
    if (node_member(input, "data").json)
        return node_fail(&d->decoder, input, ATTN_ERR_FIELD, "has both \"data\" and \"binary_data_size\"");
    if ((uint64_t)bytes != count * type->bytes)
        return node_fail(&d->decoder, input, ATTN_ERR_SHAPE, "says binary_data_size %lld; its shape takes %zu bytes",
                         (long long)bytes, count * type->bytes);
    if ((uint64_t)bytes > d->binary_bytes)
        return node_fail(&d->decoder, input, ATTN_ERR_SHAPE,
                         "says binary_data_size %lld, but %zu bytes are left behind the JSON", (long long)bytes,
                         d->binary_bytes);
    const char *from = d->binary;
    d->binary += bytes;
    d->binary_bytes -= (size_t)bytes;
    if (type->is_widened)
        return widen_all(d, input, type, from, tensor, count);
    /* The view is for reading alone. */
    void *data;
    memcpy(&data, &from, sizeof data);
    *tensor = attn_tensor_view(data, type->dtype, tensor->rank, tensor->shape);
    return ATTN_OK;
}

/* -1 when the input has none. */
static attn_status read_binary_size(struct oip_decoder *d, const struct node *input, int64_t *bytes)
{
    static const struct member members[] = {{.name = "binary_data_size"}};
    struct node parameters = node_member(input, "parameters");
    *bytes = -1;
    if (!parameters.json)
        return ATTN_OK;
    attn_status status = check_members(&d->decoder, &parameters, members, 1);
    struct node node = node_member(&parameters, "binary_data_size");
    if (status != ATTN_OK || !node.json)
        return status;
    return decode_integer(&d->decoder, &node, 0, INT64_MAX, bytes);
}

static attn_status read_input(struct oip_decoder *d, const struct node *input)
{
    static const struct member members[] = {
        {.name = "name"}, {.name = "datatype"}, {.name = "shape"}, {.name = "parameters"}, {.name = "data"}};
    struct envelope_attachment *to = &d->attachments[d->count];
    const struct datatype *type = NULL;
    size_t count = 0;
    int64_t bytes = -1;
    attn_status status = check_members(&d->decoder, input, members, sizeof members / sizeof members[0]);
    if (status == ATTN_OK)
        status = read_name(d, input, to);
    if (status == ATTN_OK)
        status = read_datatype(d, input, &type);
    if (status == ATTN_OK)
        status = read_shape(d, input, &to->tensor, &count);
    if (status == ATTN_OK)
        status = read_binary_size(d, input, &bytes);
    if (status != ATTN_OK)
        return status;
    d->count++;
    if (strcmp(to->path, "inputs.query") == 0)
        d->query_is_f64 = type->dtype == ATTN_F64;
    return bytes < 0 ? read_data(d, input, type, &to->tensor, count)
                     : read_binary(d, input, type, bytes, &to->tensor, count);
}

/* How many objects the list has; false when it is none. An empty one was lifted, as lists of numbers are. */
static bool list_length(const struct oip_decoder *d, const struct node *list, size_t *length)
{
    const struct tensor_text *lifted = node_lifted(&d->decoder, list);
    const char *inside = lifted ? lifted->text + 1 : NULL;
    while (inside && isspace((unsigned char)*inside))
        inside++;
    *length = lifted ? 0 : json_array_size(list->json);
    return node_is_array(&d->decoder, list) && (inside == NULL || *inside == ']');
}

static attn_status read_inputs(struct oip_decoder *d, const struct node *root)
{
    struct node list = node_member(root, "inputs");
    size_t given;
    if (!list.json)
        return node_fail(&d->decoder, root, ATTN_ERR_FIELD, "has no \"inputs\"");
    if (!list_length(d, &list, &given))
        return node_fail_type(&d->decoder, &list, "a list of tensors");
    if (given > KNOWN_INPUTS)
        return node_fail(&d->decoder, &list, ATTN_ERR_FIELD, "has %zu tensors; this model has %d inputs", given,
                         KNOWN_INPUTS);
    attn_status status = ATTN_OK;
    for (size_t i = 0; i < given && status == ATTN_OK; i++) {
        struct node input = node_element(&list, i);
        status = read_input(d, &input);
    }
    if (status == ATTN_OK && d->binary_bytes > 0)
        return node_fail(&d->decoder, &list, ATTN_ERR_SHAPE, "leave %zu bytes behind the JSON to no tensor",
                         d->binary_bytes);
    return status;
}

/* ---- outputs ---- */

static attn_step step_of_output(const char *name)
{
    char lower[NAME_MAX_BYTES] = "";
    const size_t length = strlen(name);
    for (size_t i = 0; i < length && i < sizeof lower - 1; i++)
        lower[i] = islower((unsigned char)name[i]) ? '?' : (char)tolower((unsigned char)name[i]);
    return length < sizeof lower ? attn_step_from_name(lower) : ATTN_STEP_COUNT;
}

static attn_status read_output(struct oip_decoder *d, const struct node *output, struct oip_request *request)
{
    static const struct member members[] = {{.name = "name"}, {.name = "parameters"}};
    static const struct member parameter_members[] = {{.name = "binary_data"}};
    attn_status status = check_members(&d->decoder, output, members, 2);
    if (status != ATTN_OK)
        return status;
    struct node name = node_member(output, "name"), parameters = node_member(output, "parameters");
    if (!json_is_string(name.json))
        return name.json ? node_fail_type(&d->decoder, &name, "the name of an output")
                         : node_fail(&d->decoder, output, ATTN_ERR_FIELD, "has no \"name\"");
    struct oip_output *to = &request->outputs[request->output_count];
    const bool is_whole = strlen(json_string_value(name.json)) == json_string_length(name.json);
    to->step = is_whole ? step_of_output(json_string_value(name.json)) : ATTN_STEP_COUNT;
    to->is_binary = d->is_binary_output;
    if (to->step == ATTN_STEP_COUNT)
        return node_fail_value(&d->decoder, &name, "OUTPUT, ATTENTION or another step in capitals");
    for (size_t i = 0; i < request->output_count; i++)
        if (request->outputs[i].step == to->step)
            return node_fail(&d->decoder, &name, ATTN_ERR_FIELD, "names an output a second time");
    request->output_count++;
    if (!parameters.json)
        return ATTN_OK;
    status = check_members(&d->decoder, &parameters, parameter_members, 1);
    struct node binary = node_member(&parameters, "binary_data");
    return status == ATTN_OK && binary.json ? decode_bool(&d->decoder, &binary, &to->is_binary) : status;
}

static attn_status read_outputs(struct oip_decoder *d, const struct node *root, struct oip_request *request)
{
    struct node list = node_member(root, "outputs");
    attn_status status = ATTN_OK;
    size_t given = 0;
    if (list.json && !list_length(d, &list, &given))
        return node_fail_type(&d->decoder, &list, "a list of outputs");
    if (given > ATTN_STEP_COUNT)
        return node_fail(&d->decoder, &list, ATTN_ERR_FIELD, "has %zu outputs; there are %d", given, ATTN_STEP_COUNT);
    for (size_t i = 0; i < given && status == ATTN_OK; i++) {
        struct node output = node_element(&list, i);
        status = read_output(d, &output, request);
    }
    if (given == 0) {
        request->outputs[0] = (struct oip_output){ATTN_STEP_OUTPUT, d->is_binary_output};
        request->outputs[1] = (struct oip_output){ATTN_STEP_ATTENTION, d->is_binary_output};
        request->output_count = 2;
    }
    return status;
}

/* ---- parameters ---- */

/* Some clients can send plain values only: a string that holds an object or a list stands for it. NULL: no memory. */
static json_t *plain_or_nested(const struct oip_decoder *d, const struct node *node)
{
    const char *text;
    size_t length;
    json_error_t error;
    if (!node_string(&d->decoder, node, &text, &length))
        return json_incref(node->json);
    if (length == 0 || (text[0] != '{' && text[0] != '['))
        return json_stringn(text, length);
    json_t *nested = json_tree_load(text, length, &error);
    return nested || json_tree_is_starved() ? nested : json_stringn(text, length);
}

/* Whether a list of numbers was lifted out of a value, and left its marker: its place means nothing elsewhere. */
static bool holds_marker(const json_t *value)
{
    const char *name;
    json_t *inner;
    size_t i;
    if (json_is_array(value) && json_array_size(value) == 1 && json_is_integer(json_array_get(value, 0)))
        return true;
    json_array_foreach(value, i, inner)
    {
        if (holds_marker(inner))
            return true;
    }
    json_object_foreach((json_t *)(uintptr_t)value, name, inner)
    {
        if (holds_marker(inner))
            return true;
    }
    return false;
}

/* What the protocol decides itself, and would be passed over. */
static attn_status check_parameter(struct oip_decoder *d, const struct node *node)
{
    static const char *const foreign[] = {"format", "digits", "dtype", "pool", "top_k", "view"};
    const char *text;
    size_t length;
    if (strcmp(node->name, "return") == 0)
        return node_fail(&d->decoder, node, ATTN_ERR_FIELD, "has no place here: \"outputs\" says what to send");
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (strcmp(node->name, foreign[i]) == 0)
            return node_fail(&d->decoder, node, ATTN_ERR_FIELD,
                             "does not go with this protocol, whose outputs are whole tensors in its own form");
    if (!node_string(&d->decoder, node, &text, &length) && holds_marker(node->json))
        return node_fail(&d->decoder, node, ATTN_ERR_FIELD,
                         "has a list of numbers: write it all as a string, since parameters are plain values");
    return ATTN_OK;
}

static bool is_mask(const char *name)
{
    return strcmp(name, "causal") == 0 || strcmp(name, "sliding_window") == 0 || strcmp(name, "window") == 0;
}

enum { PRIORITY_LEVELS = 3, HINT_BYTES = 4096 };

static oip_priority priority_of(long long level)
{
    return level == 1 ? OIP_PRIORITY_HIGH : level == PRIORITY_LEVELS ? OIP_PRIORITY_LOW : OIP_PRIORITY_USUAL;
}

oip_priority oip_priority_hint(const char *body, size_t bytes)
{
    static const char name[] = "\"priority\"";
    const char *end = body + (bytes < HINT_BYTES ? bytes : HINT_BYTES);
    const char *at = memmem(body, (size_t)(end - body), name, sizeof name - 1);
    if (at == NULL)
        return OIP_PRIORITY_USUAL;
    for (at += sizeof name - 1; at < end && strchr(" \t\r\n:", *at) != NULL && *at != '\0'; at++)
        continue;
    const bool is_one_digit = at + 1 < end && *at >= '0' && *at <= '9' && !(at[1] >= '0' && at[1] <= '9');
    return is_one_digit ? priority_of(*at - '0') : OIP_PRIORITY_USUAL;
}

/* Whole numbers from 0; above most, refused. */
static attn_status decode_level(struct oip_decoder *d, const struct node *node, json_int_t most, json_int_t *level)
{
    *level = json_integer_value(node->json);
    if (json_is_integer(node->json) && *level >= 0 && *level <= most)
        return ATTN_OK;
    return node_fail(&d->decoder, node, ATTN_ERR_VALUE, "must be a whole number from 0 to %lld", (long long)most);
}

static attn_status put_parameter(struct oip_decoder *d, const struct node *node, json_t *to)
{
    attn_status status = check_parameter(d, node);
    if (status != ATTN_OK)
        return status;
    return json_object_set_new(to, node->name, plain_or_nested(d, node)) == 0 ? ATTN_OK
                                                                              : node_fail_memory(&d->decoder, node);
}

/* Parameters as {"options": {…}, "masks": {…}}, without those that are about the protocol. */
static attn_status sort_parameters(struct oip_decoder *d, const struct node *root, json_t *options, json_t *masks)
{
    struct node parameters = node_member(root, "parameters");
    if (!parameters.json)
        return ATTN_OK;
    if (!json_is_object(parameters.json))
        return node_fail_type(&d->decoder, &parameters, "an object");
    const char *name;
    json_t *value;
    json_object_foreach(parameters.json, name, value)
    {
        struct node node = {.parent = &parameters, .name = name, .json = value};
        attn_status status = ATTN_OK;
        json_int_t level = 0;
        if (strcmp(name, "priority") == 0)
            status = decode_level(d, &node, PRIORITY_LEVELS, &level);
        else if (strcmp(name, "timeout") == 0)
            status = decode_level(d, &node, INT64_MAX, &d->timeout_us);
        else if (strcmp(name, "binary_data_output") == 0)
            status = decode_bool(&d->decoder, &node, &d->is_binary_output);
        else
            status = put_parameter(d, &node, is_mask(name) ? masks : options);
        if (status != ATTN_OK)
            return status;
    }
    return ATTN_OK;
}

static attn_status list_outputs(const struct oip_request *request, json_t *options)
{
    json_t *names = json_array();
    for (size_t i = 0; i < request->output_count; i++)
        if (json_array_append_new(names, json_string(attn_step_name(request->outputs[i].step))) != 0)
            break;
    const bool is_whole = json_array_size(names) == request->output_count;
    return json_object_set_new(options, "return", names) == 0 && is_whole ? ATTN_OK : ATTN_ERR_NO_MEMORY;
}

/* The JSON part of the request as ours, in the arena; NULL without memory. */
static char *write_text(struct oip_decoder *d, json_t *options, json_t *masks, size_t *length)
{
    json_t *whole = json_pack("{s:O, s:O}", "options", options, "masks", masks);
    char *text = NULL;
    *length = whole ? json_dumpb(whole, NULL, 0, 0) : 0;
    if (*length > 0)
        text = attn_arena_take(d->decoder.arena, 1, *length);
    const bool is_written = text && json_dumpb(whole, text, *length, 0) == *length;
    json_decref(whole);
    return is_written ? text : NULL;
}

/* ---- the whole ---- */

/* Errors of the envelope in the words of this protocol: "/options/x" is "/parameters/x", "/inputs/query" is QUERY. */
static void replace(char *text, size_t size, const char *from, const char *to)
{
    char *at = strstr(text, from);
    const size_t before = strlen(from), after = strlen(to);
    if (!at || strlen(text) + after >= size + before)
        return;
    memmove(at + after, at + before, strlen(at + before) + 1);
    memcpy(at, to, after);
}

void oip_translate(attn_error *err)
{
    static const char *const words[][2] = {
        {"/options/", "/parameters/"},
        {"/masks/causal", "/parameters/causal"},
        {"/masks/attend", "/inputs/ATTEND"},
        {"/masks/bias", "/inputs/BIAS"},
        {"/masks/", "/parameters/"},
        {"/inputs/query", "/inputs/QUERY"},
        {"/inputs/key", "/inputs/KEY"},
        {"/inputs/value", "/inputs/VALUE"},
        {"inputs.query", "QUERY"},
        {"inputs.key", "KEY"},
        {"inputs.value", "VALUE"},
        {"options.return", "\"outputs\""},
        {"the request has no \"inputs\"", "there is no input QUERY"},
    };
    for (size_t i = 0; err && i < sizeof words / sizeof words[0]; i++) {
        replace(err->message, sizeof err->message, words[i][0], words[i][1]);
        replace(err->field, sizeof err->field, words[i][0], words[i][1]);
    }
}

static attn_status decode_envelope(struct oip_decoder *d, const struct node *root, json_t *options, json_t *masks,
                                   struct oip_request *request)
{
    size_t length = 0;
    attn_status status = sort_parameters(d, root, options, masks);
    if (status == ATTN_OK)
        status = read_outputs(d, root, request);
    if (status == ATTN_OK)
        status = read_inputs(d, root);
    if (status != ATTN_OK)
        return status;
    if (d->query_is_f64 && !json_object_get(options, "compute") &&
        json_object_set_new(options, "compute", json_string("float64")) != 0)
        return node_fail_memory(&d->decoder, root);
    char *text = list_outputs(request, options) == ATTN_OK ? write_text(d, options, masks, &length) : NULL;
    if (!text)
        return node_fail_memory(&d->decoder, root);
    if (d->layer)
        status = envelope_decode_over(d->layer, text, length, d->attachments, d->count, d->decoder.arena,
                                      &request->envelope, d->decoder.err);
    else
        status = envelope_decode_attached(text, length, d->attachments, d->count, ENVELOPE_ATTENTION, d->decoder.arena,
                                          &request->envelope, d->decoder.err);
    if (status != ATTN_OK)
        oip_translate(d->decoder.err);
    return status;
}

static attn_status read_id(struct oip_decoder *d, const struct node *root, struct oip_request *request)
{
    struct node id = node_member(root, "id");
    if (!id.json)
        return ATTN_OK;
    const char *text;
    size_t length;
    if (!node_string(&d->decoder, &id, &text, &length))
        return node_fail_type(&d->decoder, &id, "a string");
    if (memchr(text, '\0', length))
        return node_fail(&d->decoder, &id, ATTN_ERR_VALUE, "holds \\u0000");
    request->id = attn_arena_copy_text(d->decoder.arena, text, length);
    return request->id ? ATTN_OK : node_fail_memory(&d->decoder, &id);
}

static attn_status decode_tree(struct oip_decoder *d, json_t *tree, struct oip_request *request)
{
    static const struct member members[] = {
        {.name = "id"}, {.name = "parameters"}, {.name = "inputs"}, {.name = "outputs"}};
    struct node root = {.json = tree};
    if (!json_is_object(tree))
        return node_fail_type(&d->decoder, &root, "a JSON object");
    attn_status status = check_members(&d->decoder, &root, members, sizeof members / sizeof members[0]);
    if (status == ATTN_OK)
        status = read_id(d, &root, request);
    if (status != ATTN_OK)
        return status;
    json_t *options = json_object(), *masks = json_object();
    status =
        options && masks ? decode_envelope(d, &root, options, masks, request) : node_fail_memory(&d->decoder, &root);
    json_decref(options);
    json_decref(masks);
    return status;
}

attn_status oip_decode(const char *body, size_t bytes, size_t json_bytes, const struct envelope_base *layer,
                       attn_arena *arena, struct oip_request *request, attn_error *err)
{
    static const struct member_table *const sections[] = {NULL};
    const size_t json = json_bytes == OIP_ALL_JSON ? bytes : json_bytes;
    struct document document;
    *request = (struct oip_request){0};
    if (json > bytes)
        return attn_fail(err, ATTN_ERR_SHAPE, NULL,
                         "Inference-Header-Content-Length is %zu, but the body has %zu bytes", json, bytes);
    if (json == 0 && json_bytes == 0)
        return attn_fail(err, ATTN_ERR_FIELD, NULL,
                         "Inference-Header-Content-Length 0 stands for one input of a known shape, and this model has "
                         "none: send the JSON part with the shape of QUERY");
    attn_status status = document_read(body, json, arena, &document, err);
    struct oip_decoder d = {.decoder = {.arena = arena, .skim = &document.skim, .sections = sections, .err = err},
                            .layer = layer,
                            .binary = body + json,
                            .binary_bytes = bytes - json};
    if (status == ATTN_OK)
        status = decode_tree(&d, document.tree, request);
    request->timeout_ms = (double)d.timeout_us / 1e3;
    document_close(&document);
    return status;
}
