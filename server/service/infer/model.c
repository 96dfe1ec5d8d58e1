/* model.c: a model of the Open Inference Protocol. */
#include "service/infer/model.h"

#include <inttypes.h>
#include <string.h>

#include "service/registry/layer/conditions.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/list.h"

/* ---- model and version ---- */

static attn_status refuse_version(struct call *call, const char *name)
{
    const struct text_span version = call->in.names[1];
    call->refusal = CALL_NOT_FOUND;
    return attn_fail(call->err, ATTN_ERR_VALUE, NULL, "there is no model \"%s\" of version %.*s here", name,
                     version.length < 64 ? (int)version.length : 64, version.at);
}

/* Replaces *version, the present version, by the version that the path names. */
static attn_status choose_version(struct call *call, struct layer_version **version)
{
    const struct text_span wanted = call->in.names[1];
    char digest[DIGEST_TEXT];
    struct layer_version *older;
    if (wanted.length == 0 || text_equal(wanted, MODEL_PRESENT_VERSION))
        return ATTN_OK;
    if (wanted.length != sizeof digest - 1) /* too short or too long for a digest, so it names no version */
        return refuse_version(call, (*version)->common.name);
    const char *present = layer_digest(*version, call);
    if (present == NULL || text_equal(wanted, present))
        return present != NULL ? ATTN_OK : ATTN_ERR_CANCELLED;
    memcpy(digest, wanted.at, wanted.length);
    digest[wanted.length] = '\0';
    older = registry_older(layer_keeper_registry(call->in.layers), (*version)->common.name, digest);
    if (older == NULL)
        return refuse_version(call, (*version)->common.name);
    layer_version_release(*version);
    *version = older;
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

static attn_status find_whole(struct call *call, struct model *model)
{
    const struct text_span version = call->in.names[1];
    struct model_version *found;
    attn_status status = models_find(call->in.models, call->in.names[0], call, &found);
    if (status == ATTN_OK && version.length > 0 && !text_equal(version, MODEL_PRESENT_VERSION))
        status = refuse_version(call, found->common.name);
    if (status != ATTN_OK) {
        model_version_release(found);
        return status;
    }
    model->whole = found;
    model->name = found->common.name;
    return ATTN_OK;
}

void model_release(struct model *model)
{
    model_version_release(model->whole);
    model->whole = NULL;
}

attn_status model_find(struct call *call, struct model *model)
{
    const struct text_span name = call->in.names[0], version = call->in.names[1];
    *model = (struct model){.name = MODEL_BUILT_IN, .version = MODEL_BUILT_IN_VERSION};
    if (text_equal(name, MODEL_BUILT_IN))
        return version.length == 0 || text_equal(version, MODEL_BUILT_IN_VERSION) ? ATTN_OK
                                                                                  : refuse_version(call, model->name);
    if (model_is_whole(call, name))
        return find_whole(call, model);
    attn_status status = layer_keeper_find(call->in.layers, name, call, &model->layer);
    if (status != ATTN_OK && call->refusal != CALL_CONFLICT) {
        call->refusal = CALL_NOT_FOUND;
        return attn_fail(call->err, ATTN_ERR_VALUE, NULL, "there is no model \"%.*s\" here; /v2/models lists them",
                         name.length < 64 ? (int)name.length : 64, name.at);
    }
    if (status == ATTN_OK)
        status = choose_version(call, &model->layer);
    call->version = model->layer;
    if (status != ATTN_OK)
        return layer_keeper_confirm(call, status);
    model->name = model->layer->common.name;
    model->version = layer_version_known_digest(model->layer, model->digest);
    return ATTN_OK;
}

attn_status model_know_version(struct call *call, struct model *model)
{
    if (model->layer == NULL)
        return ATTN_OK;
    model->version = layer_digest(model->layer, call);
    return model->version != NULL ? ATTN_OK : ATTN_ERR_CANCELLED;
}

/* Whether version repeats that of the path. "1" means the present version, and "" means any. */
static bool repeats_path(const struct call *call, const char *version)
{
    const struct text_span asked = call->in.names[1];
    const bool is_present = asked.length == 0 || text_equal(asked, MODEL_PRESENT_VERSION);
    return version[0] == '\0' || text_equal(asked, version) ||
           (is_present && strcmp(version, MODEL_PRESENT_VERSION) == 0);
}

attn_status model_check_names(struct call *call, struct model *model, const char *name, const char *version)
{
    if (name != NULL && strcmp(name, model->name) != 0)
        return attn_fail(call->err, ATTN_ERR_VALUE, "/model_name", "/model_name is \"%.64s\", the path names \"%s\"",
                         name, model->name);
    if (version == NULL || repeats_path(call, version))
        return ATTN_OK;
    attn_status status = model_know_version(call, model);
    if (status != ATTN_OK || strcmp(version, model->version) == 0)
        return status;
    return attn_fail(call->err, ATTN_ERR_VALUE, "/model_version",
                     "/model_version is \"%.64s\", the path names version %s", version, model->version);
}

/* ---- ports ---- */

enum { PORT_RANK_MAX = 5, INPUTS = 5, OUTPUTS = 3, FREE = 0 };

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

/* Texts need a tokenizer, and ids need embeddings of words. A model of images has neither. */
static struct ports ports_of_whole(const struct model_version *version)
{
    const struct model_stack *stack = &version->model.stacks[0];
    const size_t width = stack->blocks[0].facts.dims.d_query;
    const bool has_texts = version->tokenizer != NULL, has_ids = stack->embedding.words.data != NULL;
    const struct port text = {"TEXT", "BYTES", true, 1, {FREE}}, ids = {"IDS", "INT64", true, 2, {FREE}};
    struct ports ports = {
        .outputs = {{"OUTPUT", "FP32", false, 3, {FREE, FREE, width}}, {"ATTENTION", "FP32", false, 5, {FREE}}}};
    size_t count = 0;
    if (has_texts)
        ports.inputs[count++] = text;
    if (has_ids)
        ports.inputs[count++] = ids;
    if (has_texts)
        ports.outputs[2] = (struct port){"TOKENS", "BYTES", false, 2, {FREE}};
    return ports;
}

static struct ports ports_of(const struct model *model)
{
    if (model->whole != NULL)
        return ports_of_whole(model->whole);
    return model->layer != NULL ? ports_of_layer(&model->layer->facts) : ports_of_built_in();
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

static void write_ports(const struct port *ports, size_t count, struct chunks *out)
{
    for (size_t i = 0; i < count && ports[i].name != NULL; i++) {
        chunks_format(out, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[", i > 0 ? "," : "", ports[i].name,
                      ports[i].datatype);
        write_shape(&ports[i], out);
        chunks_text(out, ports[i].is_optional ? "],\"optional\":true}" : "]}");
    }
}

/* Writes the present version first, even if the path names another one, then the replaced versions. */
static void write_versions(const struct model *model, struct registry *store, struct chunks *out)
{
    char digests[REGISTRY_OLDER_MAX + 1][DIGEST_TEXT];
    const size_t count =
        model->layer != NULL ? registry_digests(store, model->name, digests, REGISTRY_OLDER_MAX + 1) : 0;
    bool is_listed = false;
    for (size_t i = 0; i < count; i++) {
        if (digests[i][0] == '\0')
            continue;
        chunks_format(out, "%s\"%s\"", is_listed ? "," : "", digests[i]);
        is_listed = true;
    }
    if (!is_listed && model->version[0] != '\0')
        chunks_format(out, "\"%s\"", model->version);
}

void model_write_metadata(const struct model *model, struct registry *store, struct chunks *out)
{
    const struct ports ports = ports_of(model);
    chunks_format(out, "{\"name\":\"%s\",\"versions\":[", model->name);
    write_versions(model, store, out);
    chunks_text(out, "],\"platform\":\"attnd\",\"inputs\":[");
    write_ports(ports.inputs, INPUTS, out);
    chunks_text(out, "],\"outputs\":[");
    write_ports(ports.outputs, OUTPUTS, out);
    chunks_text(out, "]}");
}

/* Datatypes in a configuration have the prefix TYPE_. */
static void write_config_ports(const struct port *ports, size_t count, struct chunks *out)
{
    for (size_t i = 0; i < count && ports[i].name != NULL; i++) {
        chunks_format(out, "%s{\"name\":\"%s\",\"data_type\":\"TYPE_%s\",\"dims\":[", i > 0 ? "," : "", ports[i].name,
                      strcmp(ports[i].datatype, "BYTES") == 0 ? "STRING" : ports[i].datatype);
        write_shape(&ports[i], out);
        chunks_format(out, "],\"optional\":%s}", ports[i].is_optional ? "true" : "false");
    }
}

void model_write_config(const struct model *model, struct chunks *out)
{
    const struct ports ports = ports_of(model);
    chunks_format(out, "{\"name\":\"%s\",\"platform\":\"attnd\",\"backend\":\"attnd\",\"max_batch_size\":0,\"input\":[",
                  model->name);
    write_config_ports(ports.inputs, INPUTS, out);
    chunks_text(out, "],\"output\":[");
    write_config_ports(ports.outputs, OUTPUTS, out);
    chunks_text(out, "]}");
}

/* ---- statistics ---- */

static void write_duration(const char *name, uint64_t count, double ms, struct chunks *out)
{
    chunks_format(out, "\"%s\":{\"count\":%" PRIu64 ",\"ns\":%.0f}", name, count, ms * 1e6);
}

void model_write_statistics(const char *name, const char *version, const struct registry_statistics *statistics,
                            struct chunks *out)
{
    const uint64_t successes = statistics->successes;
    chunks_format(out,
                  "{\"name\":\"%s\",\"version\":\"%s\",\"last_inference\":%" PRId64 ",\"inference_count\":%" PRIu64
                  ",\"execution_count\":%" PRIu64 ",\"inference_stats\":{",
                  name, version, statistics->last_ms, statistics->items, successes);
    write_duration("success", successes, statistics->success_ms, out);
    chunks_text(out, ",");
    write_duration("fail", statistics->failures, statistics->failure_ms, out);
    chunks_text(out, ",");
    write_duration("queue", successes, statistics->queue_ms, out);
    chunks_text(out, ",");
    write_duration("compute_input", successes, statistics->parse_ms, out);
    chunks_text(out, ",");
    write_duration("compute_infer", successes, statistics->compute_ms, out);
    chunks_text(out, ",");
    write_duration("compute_output", successes, statistics->write_ms, out);
    chunks_text(out, "},\"batch_stats\":[]}");
}
