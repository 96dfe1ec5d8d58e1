/*
 * infer.c: the Open Inference Protocol (version 2): models, their metadata, and inference.
 */
#include "service/infer.h"

#include <string.h>

#include "codec/oip.h"
#include "service/attend.h"

static const char model_name[] = "attention", model_version[] = "1";

/* ---- about the server ---- */

void infer_write_live(struct chunks *out)
{
    chunks_text(out, "{\"live\":true}");
}

/* Clients that know one of the two words only find it. */
void infer_write_ready(bool is_ready, struct chunks *out)
{
    chunks_format(out, "{\"ready\":%s,\"live\":true}", is_ready ? "true" : "false");
}

void infer_write_server(struct chunks *out)
{
    chunks_text(out, "{\"name\":\"attnd\",\"version\":\"" ATTN_VERSION
                     "\",\"extensions\":[\"binary_tensor_data\",\"model_configuration\",\"model_repository\","
                     "\"parameters\",\"schedule_policy\"]}");
}

void infer_write_models(struct chunks *out)
{
    chunks_format(out, "{\"models\":[\"%s\"]}", model_name);
}

attn_status infer_index(struct call *call)
{
    chunks_format(call->out, "[{\"name\":\"%s\",\"version\":\"%s\",\"state\":\"READY\",\"reason\":\"\"}]", model_name,
                  model_version);
    return call->out->is_ok ? ATTN_OK : attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the answer");
}

/* ---- about a model ---- */

struct port {
    const char *name, *datatype;
    bool is_optional;
};

static const struct port inputs[] = {{"QUERY", "FP32", false},
                                     {"KEY", "FP32", true},
                                     {"VALUE", "FP32", true},
                                     {"ATTEND", "BOOL", true},
                                     {"BIAS", "FP32", true}},
                         outputs[] = {{"OUTPUT", "FP32", false}, {"ATTENTION", "FP32", false}};

bool infer_has_model(struct text_span model, struct text_span version)
{
    return text_equal(model, model_name) && (version.at == NULL || text_equal(version, model_version));
}

/* Shapes are all free: -1. Leading dimensions may be left out, as in our own endpoints. */
static void write_ports(const struct port *ports, size_t count, struct chunks *out)
{
    for (size_t i = 0; i < count; i++)
        chunks_format(out, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[-1,-1,-1,-1]%s}", i > 0 ? "," : "",
                      ports[i].name, ports[i].datatype, ports[i].is_optional ? ",\"optional\":true" : "");
}

void infer_write_metadata(struct text_span model, struct chunks *out)
{
    (void)model;
    chunks_format(out, "{\"name\":\"%s\",\"versions\":[\"%s\"],\"platform\":\"attnd\",\"inputs\":[", model_name,
                  model_version);
    write_ports(inputs, sizeof inputs / sizeof inputs[0], out);
    chunks_text(out, "],\"outputs\":[");
    write_ports(outputs, sizeof outputs / sizeof outputs[0], out);
    chunks_text(out, "]}");
}

void infer_write_model_ready(struct text_span model, struct chunks *out)
{
    (void)model;
    chunks_format(out, "{\"name\":\"%s\",\"ready\":true}", model_name);
}

/* As in Triton's model configuration: datatypes have a prefix, and BOOL is one of them. */
static void write_config_ports(const struct port *ports, size_t count, struct chunks *out)
{
    for (size_t i = 0; i < count; i++)
        chunks_format(out, "%s{\"name\":\"%s\",\"data_type\":\"TYPE_%s\",\"dims\":[-1,-1,-1,-1],\"optional\":%s}",
                      i > 0 ? "," : "", ports[i].name, ports[i].datatype, ports[i].is_optional ? "true" : "false");
}

void infer_write_config(struct text_span model, struct chunks *out)
{
    (void)model;
    chunks_format(out, "{\"name\":\"%s\",\"platform\":\"attnd\",\"backend\":\"attnd\",\"max_batch_size\":0,\"input\":[",
                  model_name);
    write_config_ports(inputs, sizeof inputs / sizeof inputs[0], out);
    chunks_text(out, "],\"output\":[");
    write_config_ports(outputs, sizeof outputs / sizeof outputs[0], out);
    chunks_text(out, "]}");
}

/* ---- inference ---- */

static attn_status check_model(struct call *call)
{
    const struct text_span model = call->names[0], version = call->names[1];
    const struct text_span any = {NULL, 0};
    if (infer_has_model(model, version.length > 0 ? version : any))
        return ATTN_OK;
    call->refusal = CALL_NOT_FOUND;
    return attn_fail(call->err, ATTN_ERR_VALUE, NULL, "there is no model \"%.*s\"%s%.*s here; there is \"%s\"",
                     (int)(model.length < 64 ? model.length : 64), model.at, version.length > 0 ? ", version " : "",
                     (int)(version.length < 32 ? version.length : 32), version.at, model_name);
}

static attn_status write_answer(struct call *call, const struct oip_request *request, const struct attend_work *work)
{
    const double since = attend_now_ms();
    size_t json_bytes;
    oip_write(request, model_name, model_version, &work->plan, &work->result, call->runtime, &json_bytes, call->out);
    if (json_bytes != OIP_ALL_JSON) {
        call->answer_json_bytes = json_bytes;
        call->answer_media = MEDIA_BINARY;
    }
    call->times.write_ms = attend_now_ms() - since;
    return call->out->is_ok ? ATTN_OK
                            : attn_fail(call->err, ATTN_ERR_NO_MEMORY, NULL, "not enough memory for the answer");
}

/* The protocol says what an output is: whole maps, in its own form. */
static attn_status check_shown(const struct envelope *envelope, attn_error *err)
{
    const struct envelope_reduction *reduction = &envelope->reduction;
    const char *option = envelope->view != ENVELOPE_VIEW_NONE   ? "/options/view"
                         : reduction->top_k > 0                 ? "/options/top_k"
                         : reduction->has_pool                  ? "/options/pool"
                         : reduction->dtype != ATTN_DTYPE_COUNT ? "/options/dtype"
                                                                : NULL;
    return option == NULL ? ATTN_OK
                          : attn_fail(err, ATTN_ERR_FIELD, option,
                                      "%s does not go with this protocol, whose outputs are whole maps", option);
}

attn_status infer_run(struct call *call)
{
    struct oip_request request;
    struct attend_work work;
    const double since = attend_now_ms();
    attn_status status = check_model(call);
    if (status == ATTN_OK)
        status = oip_decode(call->body, call->body_bytes, call->has_json_bytes ? call->json_bytes : OIP_ALL_JSON,
                            call->out->arena, &request, call->err);
    if (status != ATTN_OK)
        return attend_explain(call, status);
    work.envelope = request.envelope;
    call->timeout_ms = request.timeout_ms;
    call->out->may_defer = call->out->may_defer && !oip_has_binary_output(&request);
    status = check_shown(&work.envelope, call->err);
    if (status == ATTN_OK)
        status = attend_plan(call, &work);
    if (status == ATTN_OK)
        status = attend_run(call, &work, oip_bytes_bound(&request, &work.plan), since);
    if (status == ATTN_OK)
        status = write_answer(call, &request, &work);
    else if (!call->refusal)
        oip_translate(call->err);
    return attend_explain(call, status);
}
