/* envelope_decode.c: decodes the JSON body of a request into an envelope: skim, parse, decode. */
#include "codec/request/envelope.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/json/document.h"
#include "codec/json/tree.h"
#include "codec/request/decoder.h"
#include "codec/tensor/safetensors.h"

void envelope_prepare(void)
{
    json_tree_prepare();
}

static attn_status decode_root(struct decoder *decoder, json_t *tree, struct envelope *envelope)
{
    /*
     * Options come first, because they say the type of the tensors. Tokens come last: they are counted against the
     * inputs.
     */
    static const struct member members[] = {
        {"options", decode_options, 0, MEMBER_ALWAYS},
        {"inputs", decode_inputs, 0, MEMBER_ALWAYS},
        {"weights", decode_weights, offsetof(struct envelope, request.weights), MEMBER_OF_LAYERS},
        {"masks", decode_masks, offsetof(struct envelope, request.masks), MEMBER_ALWAYS},
        {"tokens", decode_tokens, 0, MEMBER_ALWAYS},
    };
    struct node root = {.json = tree};
    if (!json_is_object(tree))
        return node_fail_type(&decoder->reading, &root, "a JSON object");
    node_check_members(&decoder->reading, &root, members, ARRAY_LENGTH(members));
    if (!node_find(tree, "inputs"))
        return node_fail(&decoder->reading, &root, ATTN_ERR_FIELD, "has no \"inputs\"");
    node_decode_members(&decoder->reading, &root, members, ARRAY_LENGTH(members), envelope);
    settle_feed_forward(envelope);
    return decoder->reading.status;
}

/* Attention has no weights. The scopes of members say the rest. */
static const char *lacking_in_attention(const char *path)
{
    return path_is_in(path, "weights") ? "belongs to an attention layer: send it to /v1/multi-head-attention" : NULL;
}

attn_status envelope_decode(const char *text, size_t length, envelope_kind kind, attn_arena *arena,
                            struct envelope *envelope, attn_error *err)
{
    const struct envelope_source request = {.text = text, .length = length};
    return envelope_decode_attached(&request, kind, arena, envelope, err);
}

attn_status envelope_decode_attached(const struct envelope_source *request, envelope_kind kind, attn_arena *arena,
                                     struct envelope *envelope, attn_error *err)
{
    const struct member_table *const sections[] = {&inputs_table, &masks_table, &options_table,
                                                   envelope_is_layer(kind) ? &weights_table : NULL, NULL};
    struct document document;
    struct decoder decoder = decoder_begin(kind, &envelope->request.options.compute, arena, err);
    decoder.reading.sections = sections;
    decoder.reading.lacking = request->lacking          ? request->lacking
                              : envelope_is_layer(kind) ? NULL
                                                        : lacking_in_attention;
    envelope_set_defaults(envelope, kind);
    if (decoder_open(&decoder, request, &document) == ATTN_OK)
        decode_root(&decoder, document.tree, envelope);
    document_close(&document);
    return decoder.reading.status;
}

/* ---- a safetensors file ---- */

static attn_status check_metadata(const struct safetensors *file, attn_error *err)
{
    for (size_t i = 0; i < file->metadata_count; i++) {
        const char *name = file->metadata[i].name;
        if (strcmp(name, "request") != 0 && strcmp(name, "format") != 0)
            return attn_fail(err, ATTN_ERR_FIELD, NULL,
                             "the safetensors __metadata__ has an unknown member \"%.100s\": options, masks and tokens "
                             "go into \"request\", as JSON",
                             name);
    }
    return ATTN_OK;
}

/* Sets the field of the error to the name as a pointer: "inputs.query" becomes "/inputs/query". */
static void name_field(const char *name, attn_error *err)
{
    if (err == NULL)
        return;
    snprintf(err->field, sizeof err->field, "/%s", name);
    for (char *dot = strchr(err->field, '.'); dot != NULL; dot = strchr(dot, '.'))
        *dot = '/';
}

static attn_status attach_tensors(const struct safetensors *file, struct envelope_attachment *attachments,
                                  attn_error *err)
{
    for (size_t i = 0; i < file->tensor_count; i++) {
        const struct safetensors_tensor *tensor = &file->tensors[i];
        attachments[i].path = tensor->name;
        attn_status status = safetensors_view(tensor, &attachments[i].tensor, err);
        if (status != ATTN_OK) {
            name_field(tensor->name, err);
            return status;
        }
    }
    return ATTN_OK;
}

/* The message names the metadata, because line and column count in its text and not in the file. */
static void name_text(attn_error *err)
{
    char message[sizeof err->message];
    snprintf(message, sizeof message, "__metadata__.request: %.300s", err->message);
    memcpy(err->message, message, sizeof message);
}

attn_status envelope_open_safetensors(const char *body, size_t bytes, attn_arena *arena, struct envelope_source *source,
                                      attn_error *err)
{
    struct safetensors file;
    attn_status status = safetensors_read(body, bytes, arena, &file, err);
    if (status == ATTN_OK)
        status = check_metadata(&file, err);
    if (status != ATTN_OK)
        return status;
    struct envelope_attachment *attachments = attn_arena_take(arena, file.tensor_count, sizeof *attachments);
    if (attachments == NULL)
        return attn_fail_no_memory(err);
    status = attach_tensors(&file, attachments, err);
    const struct safetensors_text *request = safetensors_find_text(&file, "request");
    *source = (struct envelope_source){.text = request != NULL ? request->value : "",
                                       .length = request != NULL ? request->length : 0,
                                       .attachments = attachments,
                                       .count = file.tensor_count};
    return status;
}

attn_status envelope_name_text(attn_status status, attn_error *err)
{
    if (status == ATTN_ERR_SYNTAX && err != NULL)
        name_text(err);
    return status;
}

attn_status envelope_decode_safetensors(const char *body, size_t bytes, envelope_kind kind, attn_arena *arena,
                                        struct envelope *envelope, attn_error *err)
{
    struct envelope_source file = {.text = NULL};
    attn_status status = envelope_open_safetensors(body, bytes, arena, &file, err);
    if (status != ATTN_OK)
        return status;
    if (file.length == 0 && file.count == 0)
        return attn_fail(err, ATTN_ERR_FIELD, NULL, "the safetensors file has no tensor; expected inputs.query");
    status = envelope_decode_attached(&file, kind, arena, envelope, err);
    return envelope_name_text(status, err);
}
