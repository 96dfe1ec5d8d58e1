/* envelope_decode.c: decodes the JSON body of a request into an envelope: skim, parse, decode. */
#include "codec/request/envelope_decode.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "codec/json/document.h"
#include "codec/json/tree.h"
#include "codec/request/decoder.h"

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
