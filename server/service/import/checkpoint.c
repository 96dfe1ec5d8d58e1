/* checkpoint.c: reads the layers of a checkpoint's directory. */
#include "service/import/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "service/registry/model/files.h"

/* The mapped files of a checkpoint, and the mapping of a user. */
struct files {
    struct model_files model;
    struct file_bytes mapping;
};

static attn_status open_files(const struct checkpoint_source *source, struct files *files, attn_error *err)
{
    struct file_identity identity;
    char text[128];
    *files = (struct files){.mapping.at = NULL};
    attn_status status = model_files_open(&files->model, NULL, source->directory, err);
    if (status != ATTN_OK || source->mapping == NULL)
        return status;
    const int outcome = file_map(AT_FDCWD, source->mapping, &files->mapping, &identity);
    return outcome == 0 ? ATTN_OK
                        : attn_fail(err, outcome == ENOMEM ? ATTN_ERR_NO_MEMORY : ATTN_ERR_VALUE, NULL, "%.200s: %s",
                                    source->mapping, strerror_r(outcome, text, sizeof text));
}

static void close_files(struct files *files)
{
    model_files_close(&files->model);
    file_bytes_release(&files->mapping);
}

static void explain(const struct files *files, const struct checkpoint_receiver *receiver)
{
    struct chunks tensors = chunks_begin(files->model.arena), mapping = chunks_begin(files->model.arena);
    checkpoint_describe(&files->model.checkpoint, &tensors, &mapping);
    const char *tensors_text = chunks_join(&tensors), *mapping_text = chunks_join(&mapping);
    if (tensors_text != NULL && mapping_text != NULL)
        receiver->explain(receiver->context, tensors_text, mapping_text);
}

static attn_status give(const struct files *files, const struct checkpoint_source *source,
                        const struct checkpoint_layer *layer, const struct checkpoint_receiver *receiver,
                        attn_error *err)
{
    char name[LAYER_NAME_MAX + 2];
    const char *prefix = source->prefix != NULL ? source->prefix : "";
    const attn_arena_mark mark = attn_arena_mark_here(files->model.arena);
    struct chunks file = chunks_begin(files->model.arena);
    snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", layer->name);
    checkpoint_write_layer(layer, &file);
    attn_status status = file.is_ok ? receiver->take(receiver->context, name, &file, err)
                                    : attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the layer");
    attn_arena_release(files->model.arena, mark);
    return model_files_name(status, name, err);
}

attn_status checkpoint_import(const struct checkpoint_source *source, const struct checkpoint_receiver *receiver,
                              size_t *count, attn_error *err)
{
    struct files files;
    struct checkpoint_layers layers = {NULL, 0};
    bool is_unknown = false;
    *count = 0;
    attn_status status = open_files(source, &files, err);
    if (status == ATTN_OK) {
        const struct checkpoint_text mapping = {files.mapping.at, files.mapping.size};
        status = checkpoint_find_layers(&files.model.checkpoint, mapping, files.model.arena, &layers, &is_unknown, err);
    }
    if (is_unknown)
        explain(&files, receiver);
    for (; status == ATTN_OK && *count < layers.count; ++*count) {
        status = give(&files, source, &layers.items[*count], receiver, err);
        if (status != ATTN_OK)
            break;
    }
    close_files(&files);
    return status;
}
