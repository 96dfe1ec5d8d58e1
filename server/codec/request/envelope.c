/*
 * envelope.c: the JSON body of a request to the core's own request: skim, parse, decode.
 */
#include "codec/request/envelope.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "codec/json/document.h"
#include "codec/json/json_tree.h"
#include "codec/request/decoder.h"

void envelope_prepare(void)
{
    json_tree_prepare();
}

static attn_status decode_root(struct decoder *decoder, json_t *tree, struct envelope *envelope)
{
    /* Options first: they say of which type the tensors are. Tokens last: they are counted against the inputs. */
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
    attn_status status = node_check_members(&decoder->reading, &root, members, ARRAY_LENGTH(members));
    if (status == ATTN_OK && !node_find(tree, "inputs"))
        return node_fail(&decoder->reading, &root, ATTN_ERR_FIELD, "has no \"inputs\"");
    return status == ATTN_OK ? node_decode_members(&decoder->reading, &root, members, ARRAY_LENGTH(members), envelope)
                             : status;
}

struct decoder decoder_begin(envelope_kind kind, const attn_dtype *compute, attn_arena *arena, attn_error *err)
{
    static const char *const elsewhere[] = {
        [MEMBER_OF_LAYERS] = "belongs to an attention layer: send it to /v1/multi-head-attention",
        [MEMBER_OF_GRADIENTS] = "belongs to gradients: send it to the same path with /gradients behind",
    };
    unsigned scopes = 0;
    if (envelope_is_layer(kind))
        scopes |= 1U << MEMBER_OF_LAYERS;
    if (envelope_is_gradients(kind))
        scopes |= 1U << MEMBER_OF_GRADIENTS;
    return (struct decoder){.reading = {.arena = arena, .scopes = scopes, .elsewhere = elsewhere, .err = err},
                            .kind = kind,
                            .compute = compute};
}

void envelope_set_defaults(struct envelope *envelope, envelope_kind kind)
{
    *envelope = (struct envelope){.form = TENSOR_FORM_NESTED, .reduction.dtype = ATTN_DTYPE_COUNT};
    envelope->request.is_layer = envelope_is_layer(kind);
    attn_options *options = &envelope->request.options;
    options->compute = ATTN_F32;
    if (!envelope_is_gradients(kind))
        options->want = (uint32_t)1 << ATTN_STEP_OUTPUT | (uint32_t)1 << ATTN_STEP_ATTENTION;
}

attn_status envelope_decode(const char *text, size_t length, envelope_kind kind, attn_arena *arena,
                            struct envelope *envelope, attn_error *err)
{
    return envelope_decode_attached(text, length, NULL, 0, kind, arena, envelope, err);
}

attn_status envelope_decode_attached(const char *text, size_t length, const struct envelope_attachment *attachments,
                                     size_t count, envelope_kind kind, attn_arena *arena, struct envelope *envelope,
                                     attn_error *err)
{
    if (length == 0 && count > 0) {
        text = "{}";
        length = strlen(text);
    }
    struct document document;
    envelope_set_defaults(envelope, kind);
    attn_status status = document_read(text, length, arena, &document, err);
    if (status != ATTN_OK)
        goto done;
    const struct member_table *const sections[] = {&inputs_table, &masks_table, &options_table,
                                                   envelope_is_layer(kind) ? &weights_table : NULL, NULL};
    struct decoder decoder = decoder_begin(kind, &envelope->request.options.compute, arena, err);
    decoder.reading.skim = &document.skim;
    decoder.reading.sections = sections;
    decoder.attachments = attachments;
    status = decoder_attach(&decoder, document.tree, count);
    if (status == ATTN_OK)
        status = decode_root(&decoder, document.tree, envelope);
done:
    document_close(&document);
    return status;
}
