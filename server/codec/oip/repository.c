/* repository.c: checks requests about the model repository. */
#include <string.h>

#include "codec/json/document.h"
#include "codec/oip/oip.h"
#include "codec/request/decoder.h"

/* Triton's clients can send a configuration and files that would replace the layer. Both are refused. */
static attn_status check_load(struct reading *reading, const struct node *parameters)
{
    const char *name;
    json_t *value;
    if (!json_is_object(parameters->json))
        return node_fail_type(reading, parameters, "an object");
    json_object_foreach(parameters->json, name, value)
    {
        const struct node node = {.parent = parameters, .name = name, .json = value};
        if (!json_is_null(value))
            return node_fail(reading, &node, ATTN_ERR_FIELD,
                             "has no place here: load takes no parameters, since a layer is loaded as it was kept; "
                             "PUT /v1/layers/{name} changes it");
    }
    return ATTN_OK;
}

/* No layer depends on another, so unload_dependents is accepted and has no effect. */
static attn_status check_change(struct reading *reading, const struct node *root, oip_repository_kind kind)
{
    static const struct member members[] = {{.name = "parameters"}},
                               known[] = {{.name = "unload_dependents", .decode = node_decode_bool}};
    bool ignored;
    node_check_members(reading, root, members, 1);
    const struct node parameters = node_member(root, "parameters");
    if (node_has_failed(reading) || !parameters.json)
        return reading->status;
    return kind == OIP_LOAD ? check_load(reading, &parameters)
                            : node_decode_members(reading, &parameters, known, 1, &ignored);
}

attn_status oip_check_repository(const char *body, size_t bytes, oip_repository_kind kind, attn_arena *arena,
                                 attn_error *err)
{
    static const struct member_table *const sections[] = {NULL};
    static const struct member of_index[] = {{.name = "ready", .decode = node_decode_bool}};
    struct document document;
    bool ignored;
    if (bytes == 0)
        return ATTN_OK;
    attn_status status = document_read(body, bytes, arena, &document, err);
    struct reading reading = {.arena = arena, .skim = &document.skim, .sections = sections, .err = err};
    const struct node root = {.json = document.tree};
    if (status == ATTN_OK)
        status = kind == OIP_INDEX ? node_decode_members(&reading, &root, of_index, 1, &ignored)
                                   : check_change(&reading, &root, kind);
    document_close(&document);
    return status;
}
