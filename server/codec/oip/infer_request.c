/* infer_request.c: turns an inference request of the Open Inference Protocol into a request of our own. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "codec/json/document.h"
#include "codec/json/tree.h"
#include "codec/oip/parts.h"
#include "codec/request/decoder.h"
#include "codec/request/envelope.h"

enum { NAME_MAX_BYTES = 64 };

/* ---- outputs ---- */

static attn_step step_of_output(const char *name)
{
    char lower[NAME_MAX_BYTES] = "";
    const size_t length = strlen(name);
    for (size_t i = 0; i < length && i < sizeof lower - 1; i++)
        lower[i] = islower((unsigned char)name[i]) ? '?' : (char)tolower((unsigned char)name[i]);
    return length < sizeof lower ? attn_step_from_name(lower) : ATTN_STEP_COUNT;
}

/* A whole model has fewer outputs here than in its own requests. */
static attn_step output_named(const struct oip_decoder *d, const char *name)
{
    const attn_step step = step_of_output(name);
    if (!d->is_whole || step == ATTN_STEP_OUTPUT || step == ATTN_STEP_ATTENTION)
        return step;
    return ATTN_STEP_COUNT;
}

/* What a whole model has besides steps, in the order of OIP_TOKENS and those that follow it. */
static const struct {
    const char *name, *capitals, *needs;
    unsigned has;
} besides[] = {{"tokens", "TOKENS", "a tokenizer", OIP_HAS_TOKENS},
               {"classes", "CLASSES", "a head of classes", OIP_HAS_CLASSES},
               {"labels", "LABELS", "a head of classes", OIP_HAS_CLASSES},
               {"embedding", "EMBEDDING", "the pooling of sentence-transformers", OIP_HAS_EMBEDDING}};

const char *oip_output_name(attn_step step)
{
    return step < OIP_TOKENS ? attn_step_name(step) : besides[step - OIP_TOKENS].name;
}

static attn_status read_other_output(struct oip_decoder *d, const struct node *name, attn_step *step)
{
    const char *text = json_tree_word(name->json);
    for (size_t i = 0; i < ARRAY_LENGTH(besides); i++) {
        if (strcmp(text, besides[i].capitals) != 0)
            continue;
        *step = (attn_step)(OIP_TOKENS + i);
        return (d->has & besides[i].has) != 0
                   ? ATTN_OK
                   : node_fail(d->reading, name, ATTN_ERR_FIELD, "is %s, which needs %s, and this model has none", text,
                               besides[i].needs);
    }
    return node_fail_value(d->reading, name, "OUTPUT, ATTENTION, TOKENS, CLASSES, LABELS or EMBEDDING");
}

static attn_status read_output_name(struct oip_decoder *d, const struct node *name, attn_step *step)
{
    const char *text = json_tree_word(name->json);
    *step = output_named(d, text);
    if (*step != ATTN_STEP_COUNT)
        return ATTN_OK;
    if (!d->is_whole)
        return node_fail_value(d->reading, name, "OUTPUT, ATTENTION or another step in capitals");
    return read_other_output(d, name, step);
}

static attn_status read_output(struct oip_decoder *d, const struct node *output, struct oip_request *request)
{
    static const struct member members[] = {{.name = "name"}, {.name = "parameters"}};
    if (node_check_members(d->reading, output, members, 2) != ATTN_OK)
        return d->reading->status;
    struct node name = node_member(output, "name"), parameters = node_member(output, "parameters");
    if (!json_is_string(name.json))
        return name.json ? node_fail_type(d->reading, &name, "the name of an output")
                         : node_fail(d->reading, output, ATTN_ERR_FIELD, "has no \"name\"");
    struct oip_output *to = &request->outputs[request->output_count];
    to->is_binary = d->is_binary_output;
    if (read_output_name(d, &name, &to->step) != ATTN_OK)
        return d->reading->status;
    for (size_t i = 0; i < request->output_count; i++)
        if (request->outputs[i].step == to->step)
            return node_fail(d->reading, &name, ATTN_ERR_FIELD, "names an output a second time");
    request->output_count++;
    if (!parameters.json)
        return ATTN_OK;
    const struct node binary = node_member(&parameters, "binary_data");
    if (oip_check_parameters(d, &parameters, "binary_data") == ATTN_OK && binary.json)
        node_decode_bool(d->reading, &binary, &to->is_binary);
    return d->reading->status;
}

static void ask_for_usual_outputs(const struct oip_decoder *d, struct oip_request *request)
{
    request->outputs[0] = (struct oip_output){ATTN_STEP_OUTPUT, d->is_binary_output};
    request->outputs[1] = (struct oip_output){ATTN_STEP_ATTENTION, d->is_binary_output};
    request->output_count = 2;
    for (size_t i = 0; i < ARRAY_LENGTH(besides); i++)
        if ((d->has & besides[i].has) != 0)
            request->outputs[request->output_count++] =
                (struct oip_output){(attn_step)(OIP_TOKENS + i), d->is_binary_output};
}

static attn_status read_outputs(struct oip_decoder *d, const struct node *root, struct oip_request *request)
{
    struct node list = node_member(root, "outputs");
    struct reading *reading = d->reading;
    size_t given = 0;
    if (list.json && !oip_list_length(d, &list, &given))
        return node_fail_type(d->reading, &list, "a list of outputs");
    if (given > ATTN_STEP_COUNT)
        return node_fail(d->reading, &list, ATTN_ERR_FIELD, "has %zu outputs; there are %d", given, ATTN_STEP_COUNT);
    for (size_t i = 0; i < given && !node_has_failed(reading); i++) {
        struct node output = node_element(&list, i);
        read_output(d, &output, request);
    }
    if (given == 0)
        ask_for_usual_outputs(d, request);
    return reading->status;
}

/* ---- parameters ---- */

/*
 * Some clients send plain values only. So a string that holds a JSON object or list stands for that object or list.
 * NULL without memory.
 */
static json_t *plain_or_nested(const struct oip_decoder *d, const struct node *node)
{
    const char *text;
    size_t length;
    json_error_t error;
    if (!node_string(d->reading, node, &text, &length))
        return json_incref(node->json);
    if (length == 0 || (text[0] != '{' && text[0] != '['))
        return json_stringn(text, length);
    json_t *nested = json_tree_load(text, length, d->reading->arena, &error);
    return nested || json_tree_is_starved() ? nested : json_stringn(text, length);
}

/* Whether the value holds a marker of a lifted list. A marker has no meaning in another document. */
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

/* Tells where the protocol has a member of our own requests that is not a parameter. */
static attn_status check_home(struct oip_decoder *d, const struct node *node)
{
    static const struct {
        const struct member_table *table;
        const char *home;
    } others[] = {
        {&inputs_table, "tensors stand in \"inputs\", as QUERY, KEY and VALUE"},
        {&weights_table, "weights belong to a kept layer, which PUT /v1/layers/{name} makes"},
    };
    if (member_table_has(&options_table, node->name))
        return ATTN_OK;
    char tensors[MASK_NAMES_MAX], parameters[MASK_NAMES_MAX];
    if (member_table_has(&masks_table, node->name))
        return node_fail(d->reading, node, ATTN_ERR_FIELD,
                         "is no parameter of this protocol: of the masks, %s are parameters, and %s are inputs",
                         mask_names(MASK_AS_PARAMETER, parameters), mask_names(MASK_AS_TENSOR, tensors));
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++)
        if (member_table_has(others[i].table, node->name))
            return node_fail(d->reading, node, ATTN_ERR_FIELD, "is no parameter of this protocol: %s", others[i].home);
    return ATTN_OK;
}

/* Refuses options whose effect the protocol itself decides. */
static attn_status check_parameter(struct oip_decoder *d, const struct node *node)
{
    static const char *const foreign[] = {"format", "digits", "dtype", "pool", "top_k", "view"};
    const char *text;
    size_t length;
    if (strcmp(node->name, "return") == 0)
        return node_fail(d->reading, node, ATTN_ERR_FIELD, "has no place here: \"outputs\" says what to send");
    for (size_t i = 0; i < ARRAY_LENGTH(foreign); i++)
        if (strcmp(node->name, foreign[i]) == 0)
            return node_fail(d->reading, node, ATTN_ERR_FIELD,
                             "does not go with this protocol, whose outputs are whole tensors in its own form");
    if (!node_string(d->reading, node, &text, &length) && holds_marker(node->json))
        return node_fail(d->reading, node, ATTN_ERR_FIELD,
                         "has a list of numbers: write it all as a string, since parameters are plain values");
    return d->is_whole || mask_has_place(node->name, MASK_AS_PARAMETER) ? ATTN_OK : check_home(d, node);
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

/* Reads a whole number from 0. A number above most is refused. */
static attn_status decode_level(struct oip_decoder *d, const struct node *node, json_int_t most, json_int_t *level)
{
    int64_t given;
    *level = 0;
    if (node_integer_of(node->json, &given) && given >= 0 && given <= most) {
        *level = given;
        return ATTN_OK;
    }
    return node_fail(d->reading, node, ATTN_ERR_VALUE, "must be a whole number from 0 to %lld", (long long)most);
}

static attn_status put_parameter(struct oip_decoder *d, const struct node *node, json_t *to)
{
    if (!json_is_null(node->json) && (oip_check_offered(d, node) != ATTN_OK || check_parameter(d, node) != ATTN_OK))
        return d->reading->status;
    return json_object_set_new(to, node->name, plain_or_nested(d, node)) == 0 ? ATTN_OK
                                                                              : node_fail_memory(d->reading, node);
}

static bool is_of_protocol(const char *name)
{
    return strcmp(name, "priority") == 0 || strcmp(name, "timeout") == 0 || strcmp(name, "binary_data_output") == 0 ||
           oip_is_hint(name);
}

static attn_status read_parameter(struct oip_decoder *d, const struct node *node)
{
    json_int_t level;
    if (strcmp(node->name, "priority") == 0)
        return decode_level(d, node, PRIORITY_LEVELS, &level);
    if (strcmp(node->name, "timeout") == 0)
        return decode_level(d, node, INT64_MAX, &d->timeout_us);
    return oip_is_hint(node->name) ? ATTN_OK : node_decode_bool(d->reading, node, &d->is_binary_output);
}

/* Sorts parameters into {"options": {…}, "masks": {…}}. Parameters about the protocol itself are left out. */
static attn_status sort_parameters(struct oip_decoder *d, const struct node *root, json_t *options, json_t *masks)
{
    struct node parameters = node_member(root, "parameters");
    if (!parameters.json)
        return ATTN_OK;
    if (!json_is_object(parameters.json))
        return node_fail_type(d->reading, &parameters, "an object");
    const char *name;
    json_t *value;
    json_object_foreach(parameters.json, name, value)
    {
        struct node node = {.parent = &parameters, .name = name, .json = value};
        if (!is_of_protocol(name))
            put_parameter(d, &node, !d->is_whole && mask_has_place(name, MASK_AS_PARAMETER) ? masks : options);
        else if (!json_is_null(value))
            read_parameter(d, &node);
        if (node_has_failed(d->reading))
            break;
    }
    return d->reading->status;
}

static attn_status list_outputs(const struct oip_request *request, json_t *options)
{
    json_t *names = json_array();
    size_t count = 0;
    for (size_t i = 0; i < request->output_count; i++) {
        const attn_step step = request->outputs[i].step;
        if (step == OIP_TOKENS || step == OIP_LABELS)
            continue;
        count++;
        if (json_array_append_new(names, json_string(oip_output_name(step))) != 0)
            break;
        if (step != OIP_CLASSES) /* a regression and questions have logits alone */
            continue;
        count++;
        if (json_array_append_new(names, json_string("logits")) != 0)
            break;
    }
    if (count == 0 && json_array_append_new(names, json_string(attn_step_name(ATTN_STEP_OUTPUT))) == 0)
        count++; /* a run gives something besides tokens */
    const bool is_whole = count > 0 && json_array_size(names) == count;
    return json_object_set_new(options, "return", names) == 0 && is_whole ? ATTN_OK : ATTN_ERR_NO_MEMORY;
}

/* Writes the JSON part as a request of our own, in the arena. NULL without memory. */
static char *write_text(struct oip_decoder *d, json_t *options, json_t *masks, size_t *length)
{
    json_t *whole = d->is_whole ? json_pack("{s:O}", "options", options)
                                : json_pack("{s:O, s:O}", "options", options, "masks", masks);
    char *text = NULL;
    *length = whole ? json_dumpb(whole, NULL, 0, 0) : 0;
    if (*length > 0)
        text = attn_arena_take(d->reading->arena, 1, *length);
    const bool is_written = text && json_dumpb(whole, text, *length, 0) == *length;
    json_decref(whole);
    return is_written ? text : NULL;
}

/* ---- the whole request ---- */

/* Errors of the envelope in the words of this protocol: "/options/x" is "/parameters/x", "/inputs/query" is QUERY. */
static void replace_word(attn_error *err, const char *from, const char *to)
{
    text_replace(err->message, sizeof err->message, from, to);
    text_replace(err->field, sizeof err->field, from, to);
}

static void translate_mask(attn_error *err, const struct mask_row *row)
{
    char from[OIP_NAME_MAX], capitals[OIP_NAME_MAX], to[2 * OIP_NAME_MAX];
    const bool is_tensor = row->places & MASK_AS_TENSOR;
    const char *name = is_tensor ? oip_capitals(row->name, capitals) : row->name;
    snprintf(from, sizeof from, "/masks/%s", row->name);
    snprintf(to, sizeof to, "/%s/%s", is_tensor ? "inputs" : "parameters", name);
    replace_word(err, from, to);
    snprintf(to, sizeof to, "%s%s", is_tensor ? "" : "parameters.", name);
    if (row->places & (MASK_AS_TENSOR | MASK_AS_PARAMETER))
        replace_word(err, row->path, to);
}

static bool is_of_inputs(const char *path)
{
    return path_is_in(path, "inputs.query") || path_is_in(path, "inputs.key") || path_is_in(path, "inputs.value");
}

static bool is_of_masks(const char *path)
{
    const char *name = path_is_in(path, "masks") ? strchr(path, '.') : NULL;
    return name != NULL && (mask_has_place(name + 1, MASK_AS_PARAMETER) || mask_has_place(name + 1, MASK_AS_TENSOR));
}

/* Why this protocol has no place for a member of our own requests that a word of other systems means (node.h). */
static const char *lacking_in_protocol(const char *path)
{
    if (path_is_in(path, "weights"))
        return "belongs to a kept layer: PUT /v1/layers/{name} makes one";
    if (is_of_inputs(path) || is_of_masks(path) || path_is_in(path, "options"))
        return NULL;
    return "this protocol has no place for: send the request to /v1";
}

void oip_translate(attn_error *err)
{
    static const char *const words[][2] = {
        {"/options/", "/parameters/"},     {"/inputs/query", "/inputs/QUERY"},
        {"/inputs/key", "/inputs/KEY"},    {"/inputs/value", "/inputs/VALUE"},
        {"/inputs/text", "/inputs/TEXT"},  {"/inputs/ids", "/inputs/IDS"},
        {"inputs.text", "TEXT"},           {"inputs.ids", "IDS"},
        {"inputs.query", "QUERY"},         {"inputs.key", "KEY"},
        {"inputs.value", "VALUE"},         {"options.return", "\"outputs\""},
        {"is options.", "is parameters."}, {"the request has no \"inputs\"", "there is no input QUERY"},
    };
    for (size_t i = 0; err && i < ARRAY_LENGTH(words); i++)
        replace_word(err, words[i][0], words[i][1]);
    for (size_t i = 0; err && mask_row_at(i); i++)
        translate_mask(err, mask_row_at(i));
}

/* Decodes the attachments with options and masks as a request of our own. */
static attn_status decode_envelope(struct oip_decoder *d, const struct node *root, json_t *options, json_t *masks,
                                   struct oip_request *request)
{
    size_t length = 0;
    if (d->query_is_f64 && !node_find(options, "compute") &&
        json_object_set_new(options, "compute", json_string("float64")) != 0)
        return node_fail_memory(d->reading, root);
    char *text = list_outputs(request, options) == ATTN_OK ? write_text(d, options, masks, &length) : NULL;
    if (!text)
        return node_fail_memory(d->reading, root);
    if (d->is_whole) {
        request->whole = d->whole;
        request->whole.options = text;
        request->whole.options_bytes = length;
        return ATTN_OK;
    }
    const struct envelope_source own = {.text = text,
                                        .length = length,
                                        .attachments = d->attachments,
                                        .count = d->count,
                                        .lacking = lacking_in_protocol};
    attn_arena *arena = d->reading->arena;
    attn_error *err = d->reading->err;
    const attn_status status =
        d->layer ? envelope_decode_over(d->layer, &own, ENVELOPE_LAYER, arena, &request->envelope, err)
                 : envelope_decode_attached(&own, ENVELOPE_ATTENTION, arena, &request->envelope, err);
    if (status != ATTN_OK)
        oip_translate(err);
    return status;
}

static attn_status read_sections(struct oip_decoder *d, const struct node *root, json_t *options, json_t *masks,
                                 struct oip_request *request)
{
    struct reading *reading = d->reading;
    sort_parameters(d, root, options, masks);
    read_outputs(d, root, request);
    oip_read_inputs(d, root);
    if (!node_has_failed(reading))
        return decode_envelope(d, root, options, masks, request);
    if (node_find(root->json, "inputs")) /* without it, the message is in the words of this protocol */
        oip_translate(reading->err);
    return reading->status;
}

/* Reads a member of root that is a string. *to stays NULL when root has no such member. */
static attn_status read_string(struct oip_decoder *d, const struct node *root, const char *name, const char **to)
{
    struct node node = node_member(root, name);
    if (!node.json)
        return ATTN_OK;
    const char *text;
    size_t length;
    if (!node_string(d->reading, &node, &text, &length))
        return node_fail_type(d->reading, &node, "a string");
    if (memchr(text, '\0', length))
        return node_fail(d->reading, &node, ATTN_ERR_VALUE, "holds \\u0000");
    *to = attn_arena_copy_text(d->reading->arena, text, length);
    return *to ? d->reading->status : node_fail_memory(d->reading, &node);
}

/* Makes the trees of options and masks, lets read fill them, and releases them. */
static attn_status with_trees(struct oip_decoder *d, const struct node *root, struct oip_request *request,
                              attn_status (*read)(struct oip_decoder *d, const struct node *root, json_t *options,
                                                  json_t *masks, struct oip_request *request))
{
    json_t *options = json_object(), *masks = json_object();
    attn_status status = options && masks ? read(d, root, options, masks, request) : node_fail_memory(d->reading, root);
    json_decref(options);
    json_decref(masks);
    return status;
}

static attn_status decode_tree(struct oip_decoder *d, json_t *tree, struct oip_request *request)
{
    static const struct member members[] = {{.name = "id"},      {.name = "parameters"}, {.name = "inputs"},
                                            {.name = "outputs"}, {.name = "model_name"}, {.name = "model_version"}};
    struct node root = {.json = tree};
    if (!json_is_object(tree))
        return node_fail_type(d->reading, &root, "a JSON object");
    node_check_members(d->reading, &root, members, ARRAY_LENGTH(members));
    read_string(d, &root, "id", &request->id);
    read_string(d, &root, "model_name", &request->model);
    read_string(d, &root, "model_version", &request->version);
    return node_has_failed(d->reading) ? d->reading->status : with_trees(d, &root, request, read_sections);
}

/* Decodes a body without JSON: the numbers of QUERY, token by token. */
static attn_status decode_raw(struct oip_decoder *d, const struct oip_raw *raw, struct oip_request *request)
{
    const struct node root = {.json = NULL};
    if (d->is_whole)
        return attn_fail(d->reading->err, ATTN_ERR_FIELD, NULL,
                         "Inference-Header-Content-Length 0 means that the body is one tensor alone, and a whole model "
                         "reads TEXT or IDS: send the JSON part, too");
    if (raw == NULL)
        return attn_fail(d->reading->err, ATTN_ERR_FIELD, NULL,
                         "Inference-Header-Content-Length 0 means that the body is QUERY alone, whose shape a kept "
                         "layer knows and this model does not: send the JSON part with the shape of QUERY");
    const size_t token_bytes = raw->features * attn_dtype_bytes(raw->dtype), tokens = d->binary_bytes / token_bytes;
    if (tokens == 0 || d->binary_bytes % token_bytes != 0)
        return attn_fail(d->reading->err, ATTN_ERR_SHAPE, NULL,
                         "the body has %zu bytes; QUERY takes %zu features of %s, which are %zu bytes, for each token",
                         d->binary_bytes, raw->features, attn_dtype_name(raw->dtype), token_bytes);
    void *data; /* only read from */
    memcpy(&data, &d->binary, sizeof data);
    d->attachments[d->count++] = (struct envelope_attachment){
        "inputs.query", attn_tensor_view(data, raw->dtype, 2, (const size_t[]){tokens, raw->features})};
    d->is_binary_output = true;
    ask_for_usual_outputs(d, request);
    return with_trees(d, &root, request, decode_envelope);
}

/* d has the model that is asked. */
static attn_status decode_body(struct oip_decoder *d, const char *body, size_t bytes, size_t json_bytes,
                               const struct oip_raw *raw, struct oip_request *request)
{
    static const struct member_table *const sections[] = {NULL};
    struct reading *reading = d->reading = &d->decoder.reading;
    const size_t json = json_bytes == OIP_ALL_JSON ? bytes : json_bytes;
    struct document document = {.tree = NULL};
    *request = (struct oip_request){0};
    if (json > bytes)
        return attn_fail(reading->err, ATTN_ERR_SHAPE, NULL,
                         "Inference-Header-Content-Length is %zu, but the body has %zu bytes", json, bytes);
    d->binary = body + json;
    d->binary_bytes = bytes - json;
    reading->skim = &document.skim;
    reading->sections = sections;
    reading->silent = d->is_whole ? "inputs" : NULL;
    d->decoder.takes_bare = true;
    d->decoder.texts_place = "a whole model takes texts, as TEXT: POST /v2/models/{model}/infer";
    attn_status status = json_bytes == 0 ? decode_raw(d, raw, request)
                                         : document_read(body, json, reading->arena, &document, reading->err);
    if (status == ATTN_OK && json_bytes != 0)
        status = decode_tree(d, document.tree, request);
    request->timeout_ms = (double)d->timeout_us / 1e3;
    document_close(&document);
    reading->skim = NULL;
    return status;
}

attn_status oip_decode(const char *body, size_t bytes, size_t json_bytes, const struct envelope_source *layer,
                       const struct oip_raw *raw, attn_arena *arena, struct oip_request *request, attn_error *err)
{
    struct oip_decoder d = {.decoder = decoder_begin(ENVELOPE_ATTENTION, NULL, arena, err), .layer = layer};
    return decode_body(&d, body, bytes, json_bytes, raw, request);
}

attn_status oip_decode_whole(const char *body, size_t bytes, size_t json_bytes, unsigned has, attn_arena *arena,
                             struct oip_request *request, attn_error *err)
{
    struct oip_decoder d = {
        .decoder = decoder_begin(ENVELOPE_ATTENTION, NULL, arena, err), .is_whole = true, .has = has};
    return decode_body(&d, body, bytes, json_bytes, NULL, request);
}
