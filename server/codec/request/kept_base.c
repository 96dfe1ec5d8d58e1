/* kept_base.c: decodes a kept layer, and a request over it. */
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "codec/request/decoder.h"

/* The sections that a layer may have, and those that a request to a layer may have. */
static const struct member_table *const layer_sections[] = {&weights_table, &masks_table, &options_table, NULL};
static const struct member_table *const request_sections[] = {&inputs_table, &masks_table, &options_table, NULL};

/* ---- the layer ---- */

/* A kept layer may have only masks that fit sequences of any length. */
static attn_status check_masks(struct decoder *decoder, const struct node *masks)
{
    node_check_members(&decoder->reading, masks, masks_table.members, masks_table.count);
    const char *name;
    json_t *value;
    json_object_foreach(masks->json, name, value)
    {
        const struct node node = {.parent = masks, .name = name, .json = value};
        char names[MASK_NAMES_MAX];
        if (!json_is_null(value) && !mask_has_place(name, MASK_IN_LAYERS))
            return node_fail(&decoder->reading, &node, ATTN_ERR_FIELD,
                             "belongs into requests: a kept layer may have %s", mask_names(MASK_IN_LAYERS, names));
    }
    return decoder->reading.status;
}

/* A layer has what holds for requests of any length. */
static const char *lacking_in_layers(const char *path)
{
    const char *member = strchr(path, '.');
    const bool is_of_request = path_is_in(path, "inputs") || path_is_in(path, "tokens") ||
                               path_is_in(path, "options.cache") ||
                               (path_is_in(path, "masks") && member && !mask_has_place(member + 1, MASK_IN_LAYERS));
    return is_of_request ? "belongs into requests to the layer" : NULL;
}

static const char *lacking_in_requests(const char *path)
{
    return path_is_in(path, "weights") ? "the kept layer has" : NULL;
}

static attn_status check_base(struct decoder *decoder, json_t *tree)
{
    static const struct member members[] = {{.name = "options"}, {.name = "weights"}, {.name = "masks"}};
    const struct node root = {.json = tree};
    if (!json_is_object(tree))
        return node_fail_type(&decoder->reading, &root, "a JSON object");
    node_check_members(&decoder->reading, &root, members, ARRAY_LENGTH(members));
    if (!node_find(tree, "weights"))
        return node_fail(&decoder->reading, &root, ATTN_ERR_FIELD, "has no \"weights\"");
    const struct node masks = node_member(&root, "masks");
    return masks.json ? check_masks(decoder, &masks) : decoder->reading.status;
}

attn_status kept_base_open(const struct envelope_source *base, attn_arena *arena, struct envelope *envelope,
                           struct document *document, struct decoder *decoder, attn_error *err)
{
    *decoder = decoder_begin(ENVELOPE_LAYER, &envelope->request.options.compute, arena, err);
    decoder->reading.sections = layer_sections;
    decoder->reading.lacking = lacking_in_layers;
    if (base->is_of_model)
        decoder->reading.scopes |= 1U << MEMBER_OF_MODELS;
    return decoder_open(decoder, base, document) == ATTN_OK ? check_base(decoder, document->tree)
                                                            : decoder->reading.status;
}

static attn_status decode_section(struct decoder *decoder, json_t *tree, const char *name, decode_function *decode,
                                  void *to)
{
    const struct node root = {.json = tree};
    const struct node node = node_member(&root, name);
    return node.json && !node_has_failed(&decoder->reading) ? decode(&decoder->reading, &node, to)
                                                            : decoder->reading.status;
}

attn_status kept_base_decode_options(struct decoder *decoder, json_t *tree, struct envelope *envelope)
{
    return decode_section(decoder, tree, "options", decode_options, envelope);
}

attn_status kept_base_decode_rest(struct decoder *decoder, json_t *tree, struct envelope *envelope)
{
    decode_section(decoder, tree, "weights", decode_weights, &envelope->request.weights);
    settle_feed_forward(envelope);
    return decode_section(decoder, tree, "masks", decode_masks, &envelope->request.masks);
}

attn_status envelope_decode_base(const struct envelope_source *layer, envelope_kind kind, attn_dtype compute,
                                 bool shapes_only, attn_arena *arena, struct envelope *envelope, attn_error *err)
{
    struct document document;
    struct decoder decoder;
    envelope_set_defaults(envelope, ENVELOPE_LAYER);
    envelope->request.options.compute = compute;
    kept_base_open(layer, arena, envelope, &document, &decoder, err);
    decoder.kind = kind; /* gradients read no weights of 16 bits, so they are converted */
    decoder.shapes_only = shapes_only;
    kept_base_decode_options(&decoder, document.tree, envelope);
    kept_base_decode_rest(&decoder, document.tree, envelope);
    document_close(&document);
    return decoder.reading.status;
}

/* ---- a request over it ---- */

/* Removes from the layer every member of the section that the request has itself. */
static void drop_overridden(json_t *base, const json_t *request, const char *section)
{
    json_t *own = json_object_get(base, section), *value;
    const char *name;
    json_object_foreach(json_object_get(request, section), name, value)
    {
        if (!json_is_null(value))
            (void)json_object_del(own, name); /* fails when the layer has no such member */
    }
}

static attn_status check_request(struct decoder *decoder, json_t *tree)
{
    static const struct member members[] = {
        {.name = "options"}, {.name = "inputs"}, {.name = "masks"}, {.name = "tokens"}, {.name = "weights"}};
    const struct node root = {.json = tree};
    if (!json_is_object(tree))
        return node_fail_type(&decoder->reading, &root, "a JSON object");
    const struct node weights = node_member(&root, "weights");
    if (weights.json)
        return node_fail(&decoder->reading, &weights, ATTN_ERR_FIELD, "has no place here: the kept layer has its own");
    node_check_members(&decoder->reading, &root, members, ARRAY_LENGTH(members));
    return node_find(tree, "inputs") ? decoder->reading.status
                                     : node_fail(&decoder->reading, &root, ATTN_ERR_FIELD, "has no \"inputs\"");
}

/* The layout of the weights follows the layer's profile, even when the request has another profile. */
static attn_status decode_layout_of(struct decoder *base, json_t *layer, struct envelope *envelope)
{
    const struct node root = {.json = layer}, options = node_member(&root, "options");
    if (!json_is_object(options.json))
        return ATTN_OK;
    const struct node profile = node_member(&options, "profile");
    return profile.json ? node_note(&base->reading, decode_profile(&base->reading, &profile, envelope)) : ATTN_OK;
}

/* The compute type, if the request gives one: it replaces the layer's, also for tensors in the layer's options. */
static attn_status decode_compute_of(struct decoder *decoder, json_t *request, struct envelope *envelope)
{
    const struct node root = {.json = request}, options = node_member(&root, "options");
    const struct node compute = node_member(&options, "compute");
    return compute.json ? decode_compute(&decoder->reading, &compute, &envelope->request.options) : ATTN_OK;
}

/* Options come first, because decoding the other sections depends on them. The first failure ends both. */
static void decode_both(struct decoder *base, json_t *layer, struct decoder *decoder, json_t *request,
                        struct envelope *envelope)
{
    decode_layout_of(base, layer, envelope);
    drop_overridden(layer, request, "options");
    drop_overridden(layer, request, "masks");
    decode_compute_of(decoder, request, envelope);
    node_note(&base->reading, decoder->reading.status);
    node_note(&decoder->reading, kept_base_decode_options(base, layer, envelope));
    decode_section(decoder, request, "options", decode_options, envelope);
    node_note(&base->reading, decoder->reading.status);
    node_note(&decoder->reading, kept_base_decode_rest(base, layer, envelope));
    decode_section(decoder, request, "inputs", decode_inputs, envelope);
    decode_section(decoder, request, "masks", decode_masks, &envelope->request.masks);
    decode_section(decoder, request, "tokens", decode_tokens, envelope);
}

static attn_status decode_request(struct decoder *base, json_t *layer, const struct envelope_source *request,
                                  envelope_kind kind, struct envelope *envelope)
{
    struct document document;
    struct decoder decoder = decoder_begin(kind, base->compute, base->reading.arena, base->reading.err);
    decoder.reading.sections = request_sections;
    decoder.reading.lacking = request->lacking ? request->lacking : lacking_in_requests;
    if (decoder_open(&decoder, request, &document) == ATTN_OK && check_request(&decoder, document.tree) == ATTN_OK)
        decode_both(base, layer, &decoder, document.tree, envelope);
    document_close(&document);
    return decoder.reading.status;
}

attn_status envelope_decode_over(const struct envelope_source *layer, const struct envelope_source *request,
                                 envelope_kind kind, attn_arena *arena, struct envelope *envelope, attn_error *err)
{
    struct document document;
    struct decoder decoder;
    envelope_set_defaults(envelope, kind);
    if (kept_base_open(layer, arena, envelope, &document, &decoder, err) == ATTN_OK) {
        decoder.kind = kind;
        node_note(&decoder.reading, decode_request(&decoder, document.tree, request, kind, envelope));
    }
    document_close(&document);
    return decoder.reading.status;
}
