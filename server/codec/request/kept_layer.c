/* kept_layer.c: reads and writes an attention layer as a file. */
#include "codec/request/kept_layer.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/request/decoder.h"
#include "codec/tensor/safetensors.h"

/* The linear maps of a layer and where their tensors are in a request. owner is the member of weights that has name. */
#define LINEAR(owner, name, member)                                                                                    \
    {owner, #name, "weights." #member ".weight", "weights." #member ".bias", offsetof(attn_weights, member)},
#define OWN(name)     LINEAR(NULL, name, name)
#define NETWORK(name) LINEAR("feed_forward", name, feed_forward.name)
static const struct {
    const char *owner, *name, *weight, *bias; /* the last two are paths */
    size_t at;
} linears[] = {OWN(query) OWN(key) OWN(value) OWN(qkv) OWN(output) OWN(norm) OWN(query_norm) OWN(key_norm) OWN(gate)
                   OWN(relative_key) OWN(relative_query) OWN(query_latent) OWN(key_latent) OWN(key_shared)
                       OWN(query_latent_norm) OWN(key_latent_norm) NETWORK(up) NETWORK(gate) NETWORK(down)
                           NETWORK(norm)};
#undef LINEAR
#undef OWN
#undef NETWORK

static const attn_affine *linear_at(const attn_weights *weights, size_t i)
{
    return (const attn_affine *)(const void *)((const char *)weights + linears[i].at);
}

/* ---- looking at a layer ---- */

/* The number of features per token that a weight takes. 1 when the shape is invalid; the plan then refuses it. */
static size_t input_width(const attn_affine *linear, attn_layout layout)
{
    const attn_tensor *weight = linear->weight;
    if (weight == NULL || weight->rank < 2)
        return 1;
    return weight->shape[weight->rank - (layout == ATTN_LAYOUT_IN_OUT ? 2 : 1)];
}

/* Rewords an error about a table's length: the plan is for one token, which no client sent. */
static attn_status explain_tables(attn_error *err)
{
    static const char *const tables[] = {"/options/rope/positions", "/options/rope/cos", "/options/rope/sin"};
    for (size_t i = 0; err != NULL && i < ARRAY_LENGTH(tables); i++)
        if (text_begins(err->field, tables[i]))
            return attn_fail(err, ATTN_ERR_SHAPE, tables[i],
                             "%s has a row for each token of one request, and a kept layer takes requests of any "
                             "length: send options.rope with the request",
                             tables[i]);
    return ATTN_ERR_SHAPE;
}

/* Makes a plan for one token. It fails for every mistake that does not depend on a request. */
static attn_status plan_one(struct envelope *envelope, attn_plan *plan, struct kept_layer_facts *facts, attn_error *err)
{
    if (envelope->cache.name != NULL)
        return attn_fail(err, ATTN_ERR_FIELD, "/options/cache", "options.cache belongs into requests to a kept layer");
    attn_request *request = &envelope->request;
    const attn_weights *weights = &request->weights;
    const bool is_fused = weights->qkv.weight != NULL, has_latent = weights->key_latent.weight != NULL;
    const attn_affine *of_query = is_fused                               ? &weights->qkv
                                  : weights->query_latent.weight != NULL ? &weights->query_latent
                                                                         : &weights->query;
    const attn_affine *of_key = has_latent ? &weights->key_latent : &weights->key;
    const size_t query[2] = {1, input_width(of_query, weights->layout)};
    const size_t key[2] = {1, is_fused ? query[1] : input_width(of_key, weights->layout)};
    const size_t value[2] = {1, is_fused || has_latent ? key[1] : input_width(&weights->value, weights->layout)};
    const attn_dtype compute = request->options.compute;
    const attn_tensor q = attn_tensor_view(NULL, compute, 2, query), k = attn_tensor_view(NULL, compute, 2, key),
                      v = attn_tensor_view(NULL, compute, 2, value);
    request->inputs = (attn_inputs){.query = &q, .key = key[1] != query[1] ? &k : NULL};
    request->inputs.value = value[1] != key[1] ? &v : NULL;
    facts->takes_key_inputs = request->inputs.key != NULL || request->inputs.value != NULL;
    attn_update_rule *rule = &request->options.mechanism.update_rule, given = *rule;
    *rule = given != ATTN_RULE_NONE ? ATTN_RULE_LINEAR : given; /* without decay and beta, which come with a request */
    attn_status status = envelope_plan(envelope, plan, err);
    *rule = given;
    request->inputs = (attn_inputs){.query = NULL};
    return status == ATTN_ERR_SHAPE ? explain_tables(err) : status;
}

static void count_tensors(const struct envelope_source *base, struct kept_layer_facts *facts)
{
    size_t most = 0;
    facts->dtype = ATTN_F32;
    for (size_t i = 0; i < base->count; i++) {
        const size_t count = attn_tensor_count(&base->attachments[i].tensor);
        facts->parameters += count;
        if (count > most) {
            most = count;
            facts->dtype = base->attachments[i].tensor.dtype;
        }
    }
}

attn_status kept_layer_check(const struct envelope_source *base, attn_arena *arena, struct kept_layer_facts *facts,
                             attn_error *err)
{
    struct envelope envelope;
    attn_plan plan = {.dims.batch = 0};
    *facts = (struct kept_layer_facts){.dtype = ATTN_F32};
    attn_status status =
        envelope_name_text(envelope_decode_base(base, ENVELOPE_LAYER, ATTN_F32, true, arena, &envelope, err), err);
    if (status == ATTN_OK)
        status = plan_one(&envelope, &plan, facts, err);
    if (status != ATTN_OK)
        return status;
    facts->dims = plan.dims;
    facts->compute = plan.compute;
    facts->bf16_products = envelope.request.options.bf16_products;
    facts->layout = envelope.request.weights.layout;
    facts->experts = plan.dims.experts;
    facts->experts_per_token = envelope.request.options.feed_forward.experts.per_token;
    facts->expert_layout = envelope.request.weights.feed_forward.experts.layout;
    count_tensors(base, facts);
    return ATTN_OK;
}

attn_status kept_layer_read(const char *file, size_t bytes, attn_arena *arena, struct envelope_source *base,
                            struct kept_layer_facts *facts, attn_error *err)
{
    attn_status status = envelope_open_safetensors(file, bytes, arena, base, err);
    if (status == ATTN_OK && base->length == 0 && base->count == 0)
        return attn_fail(err, ATTN_ERR_FIELD, "/weights", "the file has no tensor; expected weights.query.weight");
    return status == ATTN_OK ? kept_layer_check(base, arena, facts, err) : status;
}

static attn_status check_width(const char *field, const char *name, const attn_tensor *input, size_t width,
                               attn_error *err)
{
    char expected[24], received[24];
    if (input == NULL || input->rank < 2) /* the plan refuses it */
        return ATTN_OK;
    const size_t own = input->shape[input->rank - 1];
    if (own == width)
        return ATTN_OK;
    snprintf(expected, sizeof expected, "%zu", width);
    snprintf(received, sizeof received, "%zu", own);
    attn_fail(err, ATTN_ERR_SHAPE, field, "%s has %zu features, the kept layer takes %zu", name, own, width);
    return err != NULL ? attn_expect(err, expected, received) : ATTN_ERR_SHAPE;
}

attn_status kept_layer_check_inputs(const struct kept_layer_facts *facts, const attn_inputs *inputs, attn_error *err)
{
    const attn_tensor *key = inputs->key != NULL ? inputs->key : inputs->query;
    const attn_tensor *value = inputs->value != NULL ? inputs->value : key;
    const char *key_name = inputs->key != NULL ? "inputs.key" : "inputs.query, which stands for key too,";
    const char *value_name = inputs->value != NULL ? "inputs.value"
                             : inputs->key != NULL ? "inputs.key, which stands for value too,"
                                                   : "inputs.query, which stands for value too,";
    const struct {
        const char *field, *name;
        const attn_tensor *input;
        size_t width;
    } each[] = {{"/inputs/query", "inputs.query", inputs->query, facts->dims.d_query},
                {"/inputs/key", key_name, key, facts->dims.d_key},
                {"/inputs/value", value_name, value, facts->dims.d_value}};
    attn_status status = ATTN_OK;
    for (size_t i = 0; i < ARRAY_LENGTH(each) && status == ATTN_OK; i++)
        status = check_width(each[i].field, each[i].name, each[i].input, each[i].width, err);
    return status;
}

/* ---- JSON to a file ---- */

static void write_value(const struct decoder *decoder, const struct node *node, struct chunks *out);

static void write_object(const struct decoder *decoder, const struct node *node, struct chunks *out)
{
    const char *name, *separator = "";
    json_t *value;
    chunks_text(out, "{");
    json_object_foreach(node->json, name, value)
    {
        const struct node member = {.parent = node, .name = name, .json = value};
        if (json_is_null(value)) /* not given */
            continue;
        chunks_text(out, separator);
        chunks_json_string(out, name);
        chunks_text(out, ":");
        write_value(decoder, &member, out);
        separator = ",";
    }
    chunks_text(out, "}");
}

static void write_array(const struct decoder *decoder, const struct node *node, struct chunks *out)
{
    chunks_text(out, "[");
    for (size_t i = 0; i < json_array_size(node->json); i++) {
        const struct node element = node_element(node, i);
        chunks_text(out, i > 0 ? "," : "");
        write_value(decoder, &element, out);
    }
    chunks_text(out, "]");
}

static void write_plain(const json_t *value, struct chunks *out)
{
    const size_t length = json_dumpb(value, NULL, 0, JSON_ENCODE_ANY);
    char *text = length > 0 ? chunks_reserve(out, length) : NULL;
    /* json_dumpb returns 0 when memory is short, in either call. */
    if (text != NULL && json_dumpb(value, text, length, JSON_ENCODE_ANY) == length)
        chunks_commit(out, length);
    else
        out->is_ok = false;
}

/* Writes a value as JSON, with every lifted piece back in its place. */
static void write_value(const struct decoder *decoder, const struct node *node, struct chunks *out)
{
    const struct lifted_text *lifted = node_lifted(&decoder->reading, node);
    if (lifted != NULL)
        chunks_bytes(out, lifted->text, lifted->length);
    else if (json_is_object(node->json))
        write_object(decoder, node, out);
    else if (json_is_array(node->json))
        write_array(decoder, node, out);
    else
        write_plain(node->json, out);
}

/* Moves the tensors of the weights out of the tree into entries, and removes members that are empty afterwards. */
static size_t move_tensors(json_t *tree, const attn_weights *weights, struct safetensors_entry *entries)
{
    json_t *all = json_object_get(tree, "weights");
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(linears); i++) {
        const attn_affine *linear = linear_at(weights, i);
        const char *owner = linears[i].owner;
        json_t *object = owner != NULL ? json_object_get(all, owner) : all;
        json_t *member = json_object_get(object, linears[i].name);
        if (linear->weight != NULL)
            entries[count++] = (struct safetensors_entry){linears[i].weight, *linear->weight};
        if (linear->bias != NULL)
            entries[count++] = (struct safetensors_entry){linears[i].bias, *linear->bias};
        (void)json_object_del(member, "weight");
        (void)json_object_del(member, "bias");
        if (member != NULL && json_object_size(member) == 0)
            (void)json_object_del(object, linears[i].name);
        if (owner != NULL && object != NULL && json_object_size(object) == 0)
            (void)json_object_del(all, owner);
    }
    return count;
}

static attn_status write_file(struct decoder *decoder, json_t *tree, const attn_weights *weights, struct chunks *out)
{
    struct safetensors_entry entries[2 * ARRAY_LENGTH(linears)];
    struct chunks text = chunks_begin(decoder->reading.arena);
    const struct node root = {.json = tree};
    const size_t count = move_tensors(tree, weights, entries);
    write_value(decoder, &root, &text);
    const struct safetensors_text request = {"request", chunks_join(&text), text.total_bytes};
    if (text.is_ok && request.value != NULL)
        safetensors_write(entries, count, &request, 1, out);
    if (!text.is_ok || request.value == NULL || !out->is_ok)
        return node_fail_memory(&decoder->reading, &root);
    return ATTN_OK;
}

attn_status kept_layer_write(const char *text, size_t length, attn_arena *arena, struct chunks *out, attn_error *err)
{
    const struct envelope_source base = {.text = text, .length = length};
    struct envelope envelope;
    struct document document;
    struct decoder decoder;
    struct kept_layer_facts facts;
    attn_plan plan;
    envelope_set_defaults(&envelope, ENVELOPE_LAYER);
    kept_base_open(&base, arena, &envelope, &document, &decoder, err);
    kept_base_decode_options(&decoder, document.tree, &envelope);
    if (kept_base_decode_rest(&decoder, document.tree, &envelope) == ATTN_OK &&
        node_note(&decoder.reading, plan_one(&envelope, &plan, &facts, err)) == ATTN_OK)
        write_file(&decoder, document.tree, &envelope.request.weights, out);
    document_close(&document);
    return decoder.reading.status;
}

/* ---- facts about a layer ---- */

void kept_layer_write_facts(const struct kept_layer_facts *facts, struct chunks *out)
{
    const attn_dims *dims = &facts->dims;
    chunks_format(out,
                  "\"d_model\":%zu,\"d_key\":%zu,\"d_value\":%zu,\"d_out\":%zu,\"num_heads\":%zu,\"kv_num_heads\":%zu,"
                  "\"d_k\":%zu,\"d_v\":%zu,\"parameters\":%zu,\"dtype\":\"%s\",\"compute\":\"%s\"",
                  dims->d_query, dims->d_key, dims->d_value, dims->d_out, dims->heads, dims->kv_heads, dims->d_k,
                  dims->d_v, facts->parameters, attn_dtype_name(facts->dtype),
                  envelope_compute_name(facts->compute, facts->bf16_products));
    if (dims->d_ff > 0)
        chunks_format(out, ",\"d_ff\":%zu", dims->d_ff);
}

void kept_layer_write_tensors(const struct envelope_source *base, struct chunks *out)
{
    chunks_text(out, "[");
    for (size_t i = 0; i < base->count; i++) {
        const attn_tensor *tensor = &base->attachments[i].tensor;
        char shape[ATTN_MAX_RANK * 21 + 3];
        chunks_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        chunks_json_string(out, base->attachments[i].path);
        chunks_format(out, ",\"dtype\":\"%s\",\"shape\":%s}", attn_dtype_name(tensor->dtype),
                      attn_shape_text(shape, sizeof shape, tensor->rank, tensor->shape));
    }
    chunks_text(out, "]");
}
