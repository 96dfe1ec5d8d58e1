/* endpoints.c: the endpoints of the Open Inference Protocol (version 2). */
#include "service/endpoints.h"

#include <string.h>

#include "base/array.h"
#include "codec/oip/oip.h"
#include "service/infer/model.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/list.h"
#include "service/run/work.h"

/* ---- about the server ---- */

/* Some clients read "ready", others "live", so the answer has both. */
void infer_write_ready(bool is_ready, struct chunks *out)
{
    chunks_format(out, "{\"ready\":%s,\"live\":true}", is_ready ? "true" : "false");
}

void infer_write_server(struct chunks *out)
{
    chunks_text(out, "{\"name\":\"attnd\",\"version\":\"" ATTN_VERSION
                     "\",\"extensions\":[\"binary_tensor_data\",\"model_configuration\",\"model_repository\","
                     "\"parameters\",\"schedule_policy\",\"statistics\"]}");
}

/* ---- all models ---- */

/* Writes the built-in model, then the whole models, then every layer that exists. */
static attn_status write_all(struct call *call, const char *before, const char *after,
                             void (*write)(const struct registry_row *row, struct chunks *out))
{
    static const thing_kind kinds[] = {KIND_MODEL, KIND_LAYER};
    struct registry *registry = layer_keeper_registry(call->in.layers);
    struct registry_row row = {.kind = KIND_MODEL, .name = MODEL_BUILT_IN, .state = REGISTRY_READY};
    registry_built_in(registry, &row.statistics);
    layer_keeper_rescan(call->in.layers);
    chunks_text(call->out, before);
    write(&row, call->out);
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        row.name[0] = '\0';
        while (registry_page(registry, kinds[i], row.name, 1, &row) == 1) {
            chunks_text(call->out, ",");
            write(&row, call->out);
            version_release(row.version);
        }
    }
    chunks_text(call->out, after);
    return call_finish(call);
}

static void write_name(const struct registry_row *row, struct chunks *out)
{
    chunks_format(out, "\"%s\"", row->name);
}

attn_status infer_models(struct call *call)
{
    return write_all(call, "{\"models\":[", "]}", write_name);
}

/* A digest only if it is known already, because a list should not read every file. "" when it is unknown. */
static const char *version_of(const struct registry_row *row, char digest[DIGEST_TEXT])
{
    return row->state == REGISTRY_READY ? model_known_version(row->version, digest) : "";
}

/* A layer that is not read yet counts as ready, because its first request reads it. A model is being read by then. */
static void write_index_entry(const struct registry_row *row, struct chunks *out)
{
    const bool is_unread = row->state == REGISTRY_UNREAD, is_model = row->kind == KIND_MODEL;
    const bool is_ready = row->state == REGISTRY_READY || (is_unread && !is_model);
    char digest[DIGEST_TEXT];
    chunks_format(out, "{\"name\":\"%s\"", row->name);
    const char *version = version_of(row, digest);
    if (version[0] != '\0')
        chunks_format(out, ",\"version\":\"%s\"", version);
    chunks_format(out, ",\"state\":\"%s\",\"reason\":", is_ready ? "READY" : "UNAVAILABLE");
    chunks_json_string(out, row->state == REGISTRY_UNLOADED ? "unloaded"
                            : is_unread && is_model         ? "loading"
                                                            : row->reason);
    chunks_text(out, "}");
}

attn_status infer_index(struct call *call)
{
    attn_status status =
        oip_check_repository(call->in.body, call->in.body_bytes, OIP_INDEX, call->out->arena, call->err);
    return status == ATTN_OK ? write_all(call, "[", "]", write_index_entry) : status;
}

static void write_row_statistics(const struct registry_row *row, struct chunks *out)
{
    char digest[DIGEST_TEXT];
    model_write_statistics(row->name, version_of(row, digest), &row->statistics, out);
}

attn_status infer_all_statistics(struct call *call)
{
    return write_all(call, "{\"model_stats\":[", "]}", write_row_statistics);
}

/* ---- one model ---- */

attn_status infer_metadata(struct call *call)
{
    attn_status status = model_find(call);
    if (status != ATTN_OK)
        return status;
    const char *version = model_version_name(call);
    status = version_confirm(call, version != NULL ? ATTN_OK : ATTN_ERR_CANCELLED);
    if (status != ATTN_OK)
        return status;
    model_write_metadata(call, version);
    return call_finish(call);
}

static attn_status describe(struct call *call, void (*write)(const struct call *call))
{
    const attn_status status = model_find(call);
    if (status != ATTN_OK)
        return status;
    write(call);
    return call_finish(call);
}

static void write_model_ready(const struct call *call)
{
    chunks_format(call->out, "{\"name\":\"%s\",\"ready\":true}", model_name(call));
}

attn_status infer_model_ready(struct call *call)
{
    return describe(call, write_model_ready);
}

attn_status infer_config(struct call *call)
{
    return describe(call, model_write_config);
}

static void write_statistics(const struct call *call)
{
    char digest[DIGEST_TEXT];
    struct registry_row row = {.name = ""};
    struct registry *registry = layer_keeper_registry(call->in.layers);
    if (call->version != NULL)
        registry_look(registry, call->version->of->kind, call->version->name, &row);
    else
        registry_built_in(registry, &row.statistics);
    version_release(row.version);
    chunks_text(call->out, "{\"model_stats\":[");
    model_write_statistics(model_name(call), model_known_version(call->version, digest), &row.statistics, call->out);
    chunks_text(call->out, "]}");
}

attn_status infer_statistics(struct call *call)
{
    return describe(call, write_statistics);
}

/* ---- the repository ---- */

/* The folders of whole models say what is loaded. Loading one that is ready has no effect. */
static attn_status change_whole(struct call *call, oip_repository_kind kind)
{
    if (kind == OIP_UNLOAD)
        return call_refuse(call, CALL_CONFLICT,
                           "a whole model is loaded as long as its folder is there: it cannot be unloaded");
    return models_find(call->in.models, call->in.names[0], call);
}

static attn_status change(struct call *call, oip_repository_kind kind,
                          attn_status (*act)(struct layer_keeper *keeper, struct text_span name, struct call *call))
{
    attn_status status = oip_check_repository(call->in.body, call->in.body_bytes, kind, call->out->arena, call->err);
    const bool is_built_in = text_equal(call->in.names[0], MODEL_BUILT_IN);
    const bool is_whole = model_is_whole(call, call->in.names[0]);
    if (status == ATTN_OK && is_built_in && kind == OIP_UNLOAD)
        return call_refuse(call, CALL_CONFLICT, "\"" MODEL_BUILT_IN "\" is built in and always loaded");
    if (status == ATTN_OK && is_whole)
        status = change_whole(call, kind);
    else if (status == ATTN_OK && !is_built_in)
        status = act(call->in.layers, call->in.names[0], call);
    chunks_text(call->out, "{}");
    return status == ATTN_OK ? call_finish(call) : status;
}

attn_status infer_load(struct call *call)
{
    return change(call, OIP_LOAD, layer_keeper_load);
}

attn_status infer_unload(struct call *call)
{
    return change(call, OIP_UNLOAD, layer_keeper_unload);
}

/* ---- inference ---- */

/* One request while it is answered. */
struct inferring {
    struct work work;
    const struct kept_layer *layer; /* NULL: the built-in model */
    struct oip_request request;
    struct oip_sent sent[ATTN_STEP_COUNT];
    bool is_decoded; /* messages are those of a request of our own from then on */
};

/* Outputs of the protocol are whole maps, in its own form. */
static bool check_shown(const struct envelope *envelope, struct outcome *outcome)
{
    const char *option = envelope->cache.name != NULL ? "/options/cache" : envelope_form_option(envelope);
    return option == NULL || outcome_fail(outcome, ATTN_ERR_FIELD, option,
                                          "%s does not go with this protocol, whose outputs are whole maps", option);
}

static bool decode(struct call *call, void *context, struct outcome *outcome)
{
    struct inferring *inferring = context;
    struct oip_request *request = &inferring->request;
    const struct kept_layer_facts *facts = inferring->layer != NULL ? inferring->layer->facts : NULL;
    const struct oip_raw raw = {facts != NULL ? facts->dims.d_query : 0, facts != NULL ? facts->compute : ATTN_F32};
    if (!outcome_note(outcome, oip_decode(call->in.body, call->in.body_bytes,
                                          call->in.has_json_bytes ? call->in.json_bytes : OIP_ALL_JSON,
                                          facts != NULL ? &inferring->layer->base : NULL, facts != NULL ? &raw : NULL,
                                          outcome->arena, request, outcome->err)) ||
        !outcome_note(outcome, model_accept(call, request)))
        return false;
    inferring->is_decoded = true;
    inferring->work.envelope = request->envelope;
    inferring->work.shown_steps = request->envelope.request.options.want;
    return check_shown(&inferring->work.envelope, outcome) &&
           (facts == NULL ||
            outcome_note(outcome, kept_layer_check_inputs(facts, &request->envelope.request.inputs, outcome->err)));
}

static bool weigh(struct call *call, void *context, struct outcome *outcome, struct weight *weight)
{
    struct inferring *inferring = context;
    (void)outcome;
    oip_send_steps(&inferring->request, inferring->work.shown.step, inferring->sent);
    *weight = work_weigh(call, &inferring->work, oip_bound(&inferring->request, inferring->sent));
    return true;
}

/* Only the answer has the version, so failures wait for no digest. */
static bool render(struct call *call, void *context, struct outcome *outcome)
{
    struct inferring *inferring = context;
    const char *version = model_version_name(call);
    if (version == NULL)
        return outcome_note(outcome, ATTN_ERR_CANCELLED);
    oip_send_steps(&inferring->request, inferring->work.result.step, inferring->sent);
    model_answer(call, &inferring->request, version, inferring->sent);
    return true;
}

/* The layer alone says what kind of request it is. */
static attn_status infer(struct call *call, envelope_kind kind, const struct kept_layer *layer)
{
    static const struct pipeline steps = {decode, work_plan, weigh, work_run, render};
    struct inferring inferring = {.layer = layer};
    attn_status status = pipeline_run(&steps, call, &inferring);
    (void)kind;
    if (status != ATTN_OK && inferring.is_decoded)
        oip_translate(call->err);
    call->batch = inferring.work.plan.dims.batch;
    return limits_explain(call, version_confirm(call, status));
}

attn_status infer_run(struct call *call)
{
    const attn_status status = model_find(call);
    if (status != ATTN_OK)
        return status;
    return model_version_of(call->version) != NULL ? infer_whole_run(call)
                                                   : work_compute(call, ENVELOPE_ATTENTION, infer);
}
