/*
 * checkpoint_import.c: reads the layers of a checkpoint's directory.
 */
#include "service/import/checkpoint_import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codec/checkpoint/checkpoint.h"
#include "service/layers/files.h"

enum { SHARDS_MAX = 4096, ARENA_BYTES_MAX = 1 << 30 };

static const char ONE_FILE[] = "model.safetensors", INDEX[] = "model.safetensors.index.json";

/* The mapped files of a checkpoint. */
struct files {
    int directory;
    struct layer_bytes config, mapping, index;
    struct layer_bytes *shards;
    size_t count;
    attn_arena *arena;
    struct checkpoint checkpoint;
};

static attn_status fail_file(attn_error *err, const char *name, int error)
{
    char text[128];
    return attn_fail(err, error == ENOMEM ? ATTN_ERR_NO_MEMORY : ATTN_ERR_VALUE, NULL, "%.200s: %s", name,
                     strerror_r(error, text, sizeof text));
}

static attn_status map(int directory, const char *name, struct layer_bytes *bytes, attn_error *err)
{
    struct layer_identity identity;
    const int outcome = layer_bytes_map(directory, name, bytes, &identity);
    return outcome == 0 ? ATTN_OK : fail_file(err, name, outcome);
}

/* Lists the files that hold tensors. */
static attn_status name_shards(struct files *files, const char *const **names, size_t *count, attn_error *err)
{
    static const char *const one[] = {ONE_FILE};
    struct layer_identity identity;
    if (layer_bytes_map(files->directory, INDEX, &files->index, &identity) == 0)
        return checkpoint_read_index(files->index.at, files->index.size, files->arena, names, count, err);
    *names = one;
    *count = 1;
    return ATTN_OK;
}

/* Puts the name of the file before the message. */
static attn_status name_file(attn_status status, const char *name, attn_error *err)
{
    char message[sizeof err->message];
    if (status == ATTN_OK)
        return ATTN_OK;
    snprintf(message, sizeof message, "%.100s: %.240s", name, err->message);
    return attn_fail(err, status, NULL, "%s", message);
}

static attn_status add_tensors(struct files *files, const struct safetensors *file, attn_error *err)
{
    struct checkpoint *checkpoint = &files->checkpoint;
    struct safetensors_tensor *all =
        attn_arena_take(files->arena, checkpoint->tensor_count + file->tensor_count, sizeof *all);
    if (all == NULL)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the names of the tensors");
    if (checkpoint->tensor_count > 0)
        memcpy(all, checkpoint->tensors, checkpoint->tensor_count * sizeof *all);
    if (file->tensor_count > 0)
        memcpy(all + checkpoint->tensor_count, file->tensors, file->tensor_count * sizeof *all);
    checkpoint->tensors = all;
    checkpoint->tensor_count += file->tensor_count;
    return ATTN_OK;
}

static attn_status open_shards(struct files *files, attn_error *err)
{
    const char *const *names = NULL;
    size_t count = 0;
    attn_status status = name_shards(files, &names, &count, err);
    if (status == ATTN_OK && count > SHARDS_MAX)
        status = attn_fail(err, ATTN_ERR_TOO_LARGE, NULL, "the index names %zu files; at most %d are possible", count,
                           SHARDS_MAX);
    if (status != ATTN_OK)
        return name_file(status, INDEX, err);
    files->shards = attn_arena_take_zeroed(files->arena, count, sizeof *files->shards);
    if (files->shards == NULL)
        return fail_file(err, INDEX, ENOMEM);
    for (size_t i = 0; i < count && status == ATTN_OK; i++) {
        struct safetensors shard;
        status = map(files->directory, names[i], &files->shards[i], err);
        if (status != ATTN_OK)
            return status;
        files->count++;
        status = safetensors_read(files->shards[i].at, files->shards[i].size, files->arena, &shard, err);
        if (status == ATTN_OK)
            status = add_tensors(files, &shard, err);
        status = name_file(status, names[i], err);
    }
    return status;
}

static attn_status open_files(const struct checkpoint_source *source, struct files *files, attn_error *err)
{
    *files = (struct files){.directory = open(source->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (files->directory < 0)
        return fail_file(err, source->directory, errno);
    files->arena = attn_arena_create(ARENA_BYTES_MAX);
    if (files->arena == NULL)
        return fail_file(err, source->directory, ENOMEM);
    attn_status status = map(files->directory, "config.json", &files->config, err);
    if (status == ATTN_OK && source->mapping != NULL)
        status = map(AT_FDCWD, source->mapping, &files->mapping, err);
    files->checkpoint.config = files->config.at;
    files->checkpoint.config_length = files->config.size;
    return status == ATTN_OK ? open_shards(files, err) : status;
}

static void close_files(struct files *files)
{
    for (size_t i = 0; i < files->count; i++)
        layer_bytes_release(&files->shards[i]);
    layer_bytes_release(&files->config);
    layer_bytes_release(&files->mapping);
    layer_bytes_release(&files->index);
    attn_arena_destroy(files->arena);
    if (files->directory >= 0)
        close(files->directory);
}

static void explain(const struct files *files, const struct checkpoint_receiver *receiver)
{
    struct chunks tensors = chunks_begin(files->arena), mapping = chunks_begin(files->arena);
    checkpoint_describe(&files->checkpoint, &tensors, &mapping);
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
    const attn_arena_mark mark = attn_arena_mark_here(files->arena);
    struct chunks file = chunks_begin(files->arena);
    snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", layer->name);
    checkpoint_write_layer(layer, &file);
    attn_status status = file.is_ok ? receiver->take(receiver->context, name, &file, err)
                                    : attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the layer");
    attn_arena_release(files->arena, mark);
    return name_file(status, name, err);
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
        status = checkpoint_find_layers(&files.checkpoint, mapping, files.arena, &layers, &is_unknown, err);
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
