/* model.c: finds and describes a model of the Open Inference Protocol. */
#include "service/infer/model.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/list.h"

/* ---- model and version ---- */

const char *model_name(const struct call *call)
{
    return call->version != NULL ? call->version->name : MODEL_BUILT_IN;
}

const char *model_known_version(struct version *version, char text[DIGEST_TEXT])
{
    return version != NULL ? version->of->known_name(version, text) : MODEL_PRESENT_VERSION;
}

const char *model_version_name(struct call *call)
{
    struct layer_version *layer = layer_version_of(call->version);
    return layer != NULL ? layer_digest(layer, call) : MODEL_PRESENT_VERSION;
}

static attn_status refuse_version(struct call *call)
{
    const struct text_span version = call->in.names[1];
    return call_refuse(call, CALL_NOT_FOUND, "there is no model \"%s\" of version %.*s here", model_name(call),
                       version.length < 64 ? (int)version.length : 64, version.at);
}

/* Whether the path names no version, or the present one. */
static bool is_present(struct text_span version)
{
    return version.length == 0 || text_equal(version, MODEL_PRESENT_VERSION);
}

/* Replaces the present version of a layer by the version that the path names. */
static attn_status choose_version(struct call *call)
{
    const struct text_span wanted = call->in.names[1];
    char digest[DIGEST_TEXT];
    if (is_present(wanted))
        return ATTN_OK;
    if (wanted.length != sizeof digest - 1) /* too short or too long for a digest, so it names no version */
        return refuse_version(call);
    const char *present = model_version_name(call);
    if (present == NULL || text_equal(wanted, present))
        return present != NULL ? ATTN_OK : ATTN_ERR_CANCELLED;
    memcpy(digest, wanted.at, wanted.length);
    digest[wanted.length] = '\0';
    struct version *older = registry_older(layer_keeper_registry(call->in.layers), call->version->name, digest);
    if (older == NULL)
        return refuse_version(call);
    version_release(call->version);
    call->version = older;
    return ATTN_OK;
}

bool model_is_whole(const struct call *call, struct text_span name)
{
    struct registry_row row = {.state = REGISTRY_ABSENT};
    if (call->in.models != NULL)
        models_look(call->in.models, name, &row);
    version_release(row.version);
    return row.state != REGISTRY_ABSENT;
}

static attn_status find_layer(struct call *call)
{
    const struct text_span name = call->in.names[0];
    attn_status status = layer_keeper_find(call->in.layers, name, call);
    if (status != ATTN_OK && call->refusal != CALL_CONFLICT)
        return call_refuse(call, CALL_NOT_FOUND, "there is no model \"%.*s\" here; /v2/models lists them",
                           name.length < 64 ? (int)name.length : 64, name.at);
    if (status == ATTN_OK)
        status = choose_version(call);
    return status == ATTN_OK ? ATTN_OK : version_confirm(call, status);
}

attn_status model_find(struct call *call)
{
    const struct text_span name = call->in.names[0];
    attn_status status = ATTN_OK;
    if (!text_equal(name, MODEL_BUILT_IN) && !model_is_whole(call, name))
        return find_layer(call);
    if (!text_equal(name, MODEL_BUILT_IN))
        status = models_find(call->in.models, name, call);
    return status == ATTN_OK && !is_present(call->in.names[1]) ? refuse_version(call) : status;
}

/* Whether version repeats that of the path. "1" means the present version, and "" means any. */
static bool repeats_path(const struct call *call, const char *version)
{
    const struct text_span asked = call->in.names[1];
    return version[0] == '\0' || text_equal(asked, version) ||
           (is_present(asked) && strcmp(version, MODEL_PRESENT_VERSION) == 0);
}

static attn_status check_names(struct call *call, const struct oip_request *request)
{
    const char *name = request->model, *version = request->version;
    if (name != NULL && strcmp(name, model_name(call)) != 0)
        return attn_fail(call->err, ATTN_ERR_VALUE, "/model_name", "/model_name is \"%.64s\", the path names \"%s\"",
                         name, model_name(call));
    if (version == NULL || repeats_path(call, version))
        return ATTN_OK;
    const char *present = model_version_name(call);
    if (present == NULL || strcmp(version, present) == 0)
        return present != NULL ? ATTN_OK : ATTN_ERR_CANCELLED;
    return attn_fail(call->err, ATTN_ERR_VALUE, "/model_version",
                     "/model_version is \"%.64s\", the path names version %s", version, present);
}

attn_status model_accept(struct call *call, const struct oip_request *request)
{
    const attn_status status = check_names(call, request);
    if (status != ATTN_OK)
        return status;
    if (call->in.progress != NULL && oip_has_binary_output(request))
        return attn_fail(call->err, ATTN_ERR_FIELD, "/outputs",
                         "the answer is a stream of events (text/event-stream), which have JSON: leave binary_data and "
                         "binary_data_output out, and send the JSON part");
    call->timeout_ms = request->timeout_ms;
    call->out->may_defer = call->out->may_defer && !oip_has_binary_output(request);
    return ATTN_OK;
}

void model_answer(struct call *call, const struct oip_request *request, const char *version,
                  const struct oip_sent *sent)
{
    const size_t json_bytes = oip_write(request, model_name(call), version, sent, call->in.runtime, call->out);
    if (json_bytes != OIP_ALL_JSON)
        call->answer_json_bytes = json_bytes;
}

/* ---- ports ---- */

enum { PORT_RANK_MAX = 5, INPUTS = 5, OUTPUTS = 6, FREE = 0 };

struct port {
    const char *name, *datatype;
    bool is_optional;
    size_t rank, shape[PORT_RANK_MAX]; /* FREE: a dimension of any length */
};

/* A port without a name ends a list that is not full. */
struct ports {
    struct port inputs[INPUTS], outputs[OUTPUTS];
};

static struct ports ports_of_built_in(void)
{
    return (struct ports){
        .inputs = {{"QUERY", "FP32", false, 4, {FREE}},
                   {"KEY", "FP32", true, 4, {FREE}},
                   {"VALUE", "FP32", true, 4, {FREE}},
                   {"ATTEND", "BOOL", true, 4, {FREE}},
                   {"BIAS", "FP32", true, 4, {FREE}}},
        .outputs = {{"OUTPUT", "FP32", false, 4, {FREE}}, {"ATTENTION", "FP32", false, 4, {FREE}}},
    };
}

static struct ports ports_of_layer(const struct kept_layer_facts *facts)
{
    const attn_dims *dims = &facts->dims;
    const char *type = facts->compute == ATTN_F64 ? "FP64" : "FP32";
    const bool is_optional = !facts->takes_key_inputs;
    return (struct ports){
        .inputs = {{"QUERY", type, false, 3, {FREE, FREE, dims->d_query}},
                   {"KEY", type, is_optional, 3, {FREE, FREE, dims->d_key}},
                   {"VALUE", type, is_optional || dims->d_value == dims->d_key, 3, {FREE, FREE, dims->d_value}},
                   {"ATTEND", "BOOL", true, 4, {FREE}},
                   {"BIAS", type, true, 4, {FREE}}},
        .outputs = {{"OUTPUT", type, false, 3, {FREE, FREE, dims->d_out}},
                    {"ATTENTION", type, false, 4, {FREE, dims->heads, FREE, FREE}}},
    };
}

static struct port port_of_classes(const struct model_head *head)
{
    if (head->reads == MODEL_READS_ALL)
        return (struct port){"CLASSES", "FP32", false, 3, {FREE, FREE, head->words}};
    return (struct port){"CLASSES", "FP32", false, 2, {FREE, head->words}};
}

/* Texts need a tokenizer, and ids need embeddings of words. A model of images or audio has neither. */
static struct ports ports_of_whole(const struct model_version *version)
{
    const struct model_stack *stack = &version->model.stacks[0];
    const size_t width = stack->blocks[0].facts.dims.d_query;
    const bool has_ids = stack->embedding.words.data != NULL, has_texts = version->tokenizer != NULL && has_ids;
    const struct port text = {"TEXT", "BYTES", true, 1, {FREE}}, ids = {"IDS", "INT64", true, 2, {FREE}};
    struct ports ports = {
        .outputs = {{"OUTPUT", "FP32", false, 3, {FREE, FREE, width}}, {"ATTENTION", "FP32", false, 5, {FREE}}}};
    size_t count = 0;
    if (has_texts)
        ports.inputs[count++] = text;
    if (has_ids)
        ports.inputs[count++] = ids;
    size_t outputs = 2;
    if (has_texts)
        ports.outputs[outputs++] = (struct port){"TOKENS", "BYTES", false, 2, {FREE}};
    if (version->model.has_head && version->model.head.is_of_classes) {
        ports.outputs[outputs++] = port_of_classes(&version->model.head);
        ports.outputs[outputs++] = (struct port){"LABELS", "BYTES", false, 1, {version->model.head.words}};
    }
    if (version->pooling.is_there)
        ports.outputs[outputs++] = (struct port){"EMBEDDING", "FP32", false, 2, {FREE, width}};
    return ports;
}

static struct ports ports_of(struct version *version)
{
    const struct model_version *whole = model_version_of(version);
    const struct layer_version *layer = layer_version_of(version);
    if (whole != NULL)
        return ports_of_whole(whole);
    return layer != NULL ? ports_of_layer(&layer->facts) : ports_of_built_in();
}

static void write_shape(const struct port *port, struct chunks *out)
{
    for (size_t axis = 0; axis < port->rank; axis++) {
        chunks_text(out, axis > 0 ? "," : "");
        if (port->shape[axis] == FREE)
            chunks_text(out, "-1");
        else
            chunks_format(out, "%zu", port->shape[axis]);
    }
}

/* A configuration has other names for the same, and its datatypes have the prefix TYPE_. */
static void write_ports(const struct port *ports, size_t count, bool is_config, struct chunks *out)
{
    for (size_t i = 0; i < count && ports[i].name != NULL; i++) {
        const bool is_string = is_config && strcmp(ports[i].datatype, "BYTES") == 0;
        chunks_format(out,
                      is_config ? "%s{\"name\":\"%s\",\"data_type\":\"TYPE_%s\",\"dims\":["
                                : "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[",
                      i > 0 ? "," : "", ports[i].name, is_string ? "STRING" : ports[i].datatype);
        write_shape(&ports[i], out);
        chunks_text(out, ports[i].is_optional ? "],\"optional\":true}" : is_config ? "],\"optional\":false}" : "]}");
    }
}

/* Writes the present version first, even if the path names another one, then the replaced versions. */
static void write_versions(const struct call *call, const char *version)
{
    char digests[REGISTRY_OLDER_MAX + 1][DIGEST_TEXT];
    struct registry *registry = layer_keeper_registry(call->in.layers);
    const size_t count = layer_version_of(call->version) != NULL
                             ? registry_digests(registry, call->version->name, digests, REGISTRY_OLDER_MAX + 1)
                             : 0;
    bool is_listed = false;
    for (size_t i = 0; i < count; i++) {
        if (digests[i][0] == '\0')
            continue;
        chunks_format(call->out, "%s\"%s\"", is_listed ? "," : "", digests[i]);
        is_listed = true;
    }
    if (!is_listed)
        chunks_format(call->out, "\"%s\"", version);
}

void model_write_metadata(const struct call *call, const char *version)
{
    const struct ports ports = ports_of(call->version);
    chunks_format(call->out, "{\"name\":\"%s\",\"versions\":[", model_name(call));
    write_versions(call, version);
    chunks_text(call->out, "],\"platform\":\"attnd\",\"inputs\":[");
    write_ports(ports.inputs, INPUTS, false, call->out);
    chunks_text(call->out, "],\"outputs\":[");
    write_ports(ports.outputs, OUTPUTS, false, call->out);
    chunks_text(call->out, "]}");
}

void model_write_config(const struct call *call)
{
    const struct ports ports = ports_of(call->version);
    chunks_format(call->out,
                  "{\"name\":\"%s\",\"platform\":\"attnd\",\"backend\":\"attnd\",\"max_batch_size\":0,\"input\":[",
                  model_name(call));
    write_ports(ports.inputs, INPUTS, true, call->out);
    chunks_text(call->out, "],\"output\":[");
    write_ports(ports.outputs, OUTPUTS, true, call->out);
    chunks_text(call->out, "]}");
}

/* ---- statistics ---- */

void model_write_statistics(const char *name, const char *version, const struct registry_statistics *statistics,
                            struct chunks *out)
{
    const uint64_t successes = statistics->successes;
    const struct {
        const char *name;
        uint64_t count;
        double ms;
    } durations[] = {
        {"success", successes, statistics->success_ms},       {"fail", statistics->failures, statistics->failure_ms},
        {"queue", successes, statistics->queue_ms},           {"compute_input", successes, statistics->parse_ms},
        {"compute_infer", successes, statistics->compute_ms}, {"compute_output", successes, statistics->write_ms}};
    chunks_format(out,
                  "{\"name\":\"%s\",\"version\":\"%s\",\"last_inference\":%" PRId64 ",\"inference_count\":%" PRIu64
                  ",\"execution_count\":%" PRIu64 ",\"inference_stats\":{",
                  name, version, statistics->last_ms, statistics->items, successes);
    for (size_t i = 0; i < ARRAY_LENGTH(durations); i++)
        chunks_format(out, "%s\"%s\":{\"count\":%" PRIu64 ",\"ns\":%.0f}", i > 0 ? "," : "", durations[i].name,
                      durations[i].count, durations[i].ms * 1e6);
    chunks_text(out, "},\"batch_stats\":[]}");
}
