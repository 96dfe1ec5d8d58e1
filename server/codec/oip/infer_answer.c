/* infer_answer.c: writes a result as an answer of the Open Inference Protocol. */
#include <assert.h>
#include <string.h>

#include "codec/bytes/bound.h"
#include "codec/oip/parts.h"
#include "codec/tensor/write.h"

enum {
    JSON_ALIGNMENT = 64, /* of the first byte after the JSON part */
    FRAME_BYTES = 1024,  /* bytes of the answer without tensors and id, but with the model's names */
    ESCAPE_BYTES = 6,    /* bytes of one character of the id, at most */
    OUTPUT_BYTES = 256,  /* bytes of one output's name, shape, datatype and parameters */
};

/* The datatype of an output: texts, the compute type, or the type of the mask. */
static const char *datatype_of(const struct oip_sent *sent)
{
    const attn_dtype dtype = sent->tensor.dtype;
    if (sent->texts)
        return "BYTES";
    assert(dtype == ATTN_F32 || dtype == ATTN_F64 || dtype == ATTN_BOOL);
    return dtype == ATTN_F32 ? "FP32" : dtype == ATTN_F64 ? "FP64" : "BOOL";
}

static void write_shape(const attn_tensor *tensor, struct chunks *out)
{
    for (int axis = 0; axis < tensor->rank; axis++)
        chunks_format(out, "%s%zu", axis > 0 ? "," : "", tensor->shape[axis]);
}

/* The bytes of an output in binary form. */
static size_t bytes_of(const struct oip_sent *sent)
{
    const size_t count = attn_tensor_count(&sent->tensor);
    if (!sent->texts)
        return count * attn_dtype_bytes(sent->tensor.dtype);
    size_t bytes = count * sizeof(uint32_t);
    for (size_t i = 0; i < count; i++)
        bytes += sent->texts[i].length;
    return bytes;
}

static void write_texts(const struct oip_sent *sent, struct chunks *out)
{
    const size_t count = attn_tensor_count(&sent->tensor);
    for (size_t i = 0; i < count; i++) {
        chunks_text(out, i > 0 ? "," : "[");
        chunks_json_span(out, sent->texts[i]);
    }
    chunks_text(out, count > 0 ? "]" : "[]");
}

static void append_texts(const struct oip_sent *sent, struct chunks *out)
{
    for (size_t i = 0; i < attn_tensor_count(&sent->tensor); i++) {
        const uint32_t length = (uint32_t)sent->texts[i].length;
        chunks_bytes(out, (const char *)&length, sizeof length);
        chunks_bytes(out, sent->texts[i].at, length);
    }
}

/* A contiguous tensor is one flat list, as most clients expect. Any other is nested, which the protocol allows too. */
static void write_json_data(const attn_tensor *tensor, const attn_runtime *runtime, struct chunks *out)
{
    const size_t count = attn_tensor_count(tensor);
    attn_tensor flat =
        attn_tensor_is_contiguous(tensor) ? attn_tensor_view(tensor->data, tensor->dtype, 1, &count) : *tensor;
    tensor_write_json(&flat, &(struct tensor_style){.form = TENSOR_FORM_NESTED}, runtime, out);
}

static void write_output(const struct oip_output *output, const struct oip_sent *sent, const attn_runtime *runtime,
                         struct chunks *out)
{
    char name[OIP_NAME_MAX];
    chunks_format(out, "{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[",
                  oip_capitals(oip_output_name(output->step), name), datatype_of(sent));
    write_shape(&sent->tensor, out);
    if (output->is_binary) {
        chunks_format(out, "],\"parameters\":{\"binary_data_size\":%zu}}", bytes_of(sent));
        return;
    }
    chunks_text(out, "],\"data\":");
    if (sent->texts)
        write_texts(sent, out);
    else
        write_json_data(&sent->tensor, runtime, out);
    chunks_text(out, "}");
}

bool oip_has_binary_output(const struct oip_request *request)
{
    for (size_t i = 0; i < request->output_count; i++)
        if (request->outputs[i].is_binary)
            return true;
    return false;
}

size_t oip_write(const struct oip_request *request, const char *model, const char *version, const struct oip_sent *sent,
                 const attn_runtime *runtime, struct chunks *out)
{
    chunks_text(out, "{\"model_name\":");
    chunks_json_string(out, model);
    chunks_text(out, ",\"model_version\":");
    chunks_json_string(out, version);
    if (request->id) {
        chunks_text(out, ",\"id\":");
        chunks_json_string(out, request->id);
    }
    chunks_text(out, ",\"outputs\":[");
    for (size_t i = 0; i < request->output_count; i++) {
        chunks_text(out, i > 0 ? "," : "");
        write_output(&request->outputs[i], &sent[i], runtime, out);
    }
    chunks_text(out, "]}");
    if (!oip_has_binary_output(request))
        return OIP_ALL_JSON;
    assert(!out->has_deferred); /* the length of the JSON is sent before the JSON */
    const size_t rest = out->total_bytes % JSON_ALIGNMENT;
    if (rest > 0)
        chunks_format(out, "%*s", (int)(JSON_ALIGNMENT - rest), "");
    const size_t json_bytes = out->total_bytes;
    for (size_t i = 0; i < request->output_count; i++) {
        if (!request->outputs[i].is_binary)
            continue;
        if (sent[i].texts)
            append_texts(&sent[i], out);
        else
            tensor_append(&sent[i].tensor, out);
    }
    return json_bytes;
}

void oip_send_steps(const struct oip_request *request, const attn_tensor *steps, struct oip_sent *sent)
{
    for (size_t i = 0; i < request->output_count; i++)
        sent[i] = (struct oip_sent){.tensor = steps[request->outputs[i].step]};
}

/* Characters of a text may be escaped in JSON. */
static size_t texts_bound(const struct oip_sent *sent)
{
    size_t bound = bound_add(0, attn_tensor_count(&sent->tensor), sizeof(uint32_t));
    for (size_t i = 0; i < attn_tensor_count(&sent->tensor); i++)
        bound = bound_add(bound, sent->texts[i].length, ESCAPE_BYTES);
    return bound;
}

size_t oip_bound(const struct oip_request *request, const struct oip_sent *sent)
{
    size_t bound = FRAME_BYTES + (request->id ? ESCAPE_BYTES * strlen(request->id) : 0);
    for (size_t i = 0; i < request->output_count; i++) {
        const struct tensor_style style = {.form = TENSOR_FORM_NESTED};
        const size_t own = sent[i].texts                   ? texts_bound(&sent[i])
                           : request->outputs[i].is_binary ? bytes_of(&sent[i])
                                                           : tensor_write_bound(&sent[i].tensor, &style);
        bound = bound_add(bound_add(bound, 1, OUTPUT_BYTES), 1, own);
    }
    return bound;
}
