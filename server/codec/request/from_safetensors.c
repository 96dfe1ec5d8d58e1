/* from_safetensors.c: decodes a request that is a safetensors file. */
#include <stdio.h>
#include <string.h>

#include "codec/request/decoder.h"
#include "codec/request/envelope_decode.h"
#include "codec/tensor/safetensors.h"

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
