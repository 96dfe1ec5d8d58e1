/*
 * attached.c: tensors that come as bytes beside the JSON text: into the tree by their paths, out of it as
 * tensors of the needed type.
 */
#include <stdint.h>
#include <string.h>

#include "codec/request/decoder.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "binary data in requests is little-endian");

enum { PATH_DEPTH_MAX = 8 }; /* levels of a path; the deepest that means anything has 4 */

/* The object called node->name, made when there is none. */
static attn_status enter_object(struct decoder *decoder, const json_t *parent, struct node *node, const char *path)
{
    node->json = member_get(parent, node->name);
    if (json_is_object(node->json))
        return ATTN_OK;
    if (node->json)
        return node_fail(decoder, node, ATTN_ERR_FIELD, "is no object that the tensor \"%s\" could be in", path);
    node->json = json_object();
    return node->json ? ATTN_OK : node_fail_memory(decoder, node);
}

static attn_status put_marker(struct decoder *decoder, json_t *parent, const struct node *node, size_t number)
{
    if (member_get(parent, node->name))
        return node_fail(decoder, node, ATTN_ERR_FIELD, "is given twice: a binary tensor has the same name");
    json_t *marker = json_pack("[I]", (json_int_t)decoder->skim->lifted_count + (json_int_t)number);
    return json_object_set_new(parent, node->name, marker) == 0 ? ATTN_OK : node_fail_memory(decoder, node);
}

/* Goes down from root along names, a copy of the path that is cut at its dots. */
static attn_status attach(struct decoder *decoder, json_t *tree, char *names, size_t number)
{
    const char *path = decoder->attachments[number].path;
    struct node way[PATH_DEPTH_MAX + 1] = {{.json = tree}};
    for (size_t depth = 1; depth <= PATH_DEPTH_MAX; depth++) {
        char *dot = strchr(names, '.');
        if (dot)
            *dot = '\0';
        json_t *parent = way[depth - 1].json;
        way[depth] = (struct node){.parent = &way[depth - 1], .name = names};
        if (!dot)
            return put_marker(decoder, parent, &way[depth], number);
        bool is_new = !member_get(parent, names);
        attn_status status = enter_object(decoder, parent, &way[depth], path);
        if (status != ATTN_OK)
            return status;
        if (is_new && json_object_set_new(parent, names, way[depth].json) != 0)
            return node_fail_memory(decoder, &way[depth]);
        names = dot + 1;
    }
    return node_fail(decoder, &way[1], ATTN_ERR_FIELD, "has no member as deep as the tensor \"%.80s\"", path);
}

attn_status attach_all(struct decoder *decoder, json_t *tree, size_t count)
{
    const struct node root = {.json = tree};
    attn_status status = ATTN_OK;
    if (count > ENVELOPE_ATTACHMENTS_MAX)
        return node_fail(decoder, &root, ATTN_ERR_TOO_LARGE, "has %zu binary tensors; at most %d are possible", count,
                         ENVELOPE_ATTACHMENTS_MAX);
    if (!json_is_object(tree)) /* which decode_root refuses */
        return ATTN_OK;
    for (size_t i = 0; i < count && status == ATTN_OK; i++) {
        const char *path = decoder->attachments[i].path;
        char *names = attn_arena_copy_text(decoder->arena, path, strlen(path));
        status = names ? attach(decoder, tree, names, i) : node_fail_memory(decoder, &root);
    }
    return status;
}

static attn_status convert(struct decoder *decoder, const struct node *node, const attn_tensor *from, size_t count,
                           attn_tensor *tensor)
{
    tensor->data = attn_arena_take(decoder->arena, count, attn_dtype_bytes(tensor->dtype));
    if (!tensor->data)
        return node_fail_memory(decoder, node);
    if (count == 0)
        return ATTN_OK;
    if (from->dtype == tensor->dtype) {
        memcpy(tensor->data, from->data, count * attn_dtype_bytes(tensor->dtype));
        return ATTN_OK;
    }
    return convert_elements(decoder, node, tensor, from->data, from->dtype, count);
}

attn_status decode_attached(struct decoder *decoder, const struct node *node,
                            const struct envelope_attachment *attachment, attn_dtype dtype, attn_tensor *tensor)
{
    const attn_tensor *from = &attachment->tensor;
    size_t count = attn_tensor_count(from), size = attn_dtype_bytes(dtype);
    attn_status status = check_kind(decoder, node, dtype, from->dtype);
    if (status == ATTN_OK && decoder->shapes_only && strncmp(attachment->path, "weights.", strlen("weights.")) == 0) {
        *tensor = attn_tensor_view(from->data, dtype, from->rank, from->shape);
        return ATTN_OK;
    }
    if (status == ATTN_OK && from->dtype == ATTN_BOOL)
        status = check_flags(decoder, node, from->data, count);
    if (status != ATTN_OK)
        return status;
    *tensor = attn_tensor_view(from->data, dtype, from->rank, from->shape);
    bool is_usable = from->dtype == dtype && count > 0 && (uintptr_t)from->data % size == 0;
    if (!is_usable)
        return convert(decoder, node, from, count, tensor);
    tensor->panels = from->panels;
    return ATTN_OK;
}
