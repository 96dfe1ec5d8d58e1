/*
 * import.c: `attnd import`: keeps the layers of a checkpoint (codec/checkpoint/find.h) on the disk.
 *
 * Files of the checkpoint are mapped. The file of a layer is in memory only while it is written.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/request/envelope.h"
#include "program/commands.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/files.h"

#define MAPPING_FILE "attnd-mapping.json"

struct importing {
    const struct config *config;
    struct layer_keeper *keeper;
    struct model_files files;
    struct file_bytes mapping; /* of the user; no bytes: the table of architectures is used */
};

/* ---- reading ---- */

static attn_status open_files(struct importing *importing, attn_error *err)
{
    const char *mapping = importing->config->checkpoint_mapping;
    struct file_identity identity;
    char text[128];
    attn_status status = model_files_open(&importing->files, NULL, importing->config->checkpoint, err);
    if (status != ATTN_OK || mapping == NULL)
        return status;
    const int outcome = file_map(AT_FDCWD, mapping, &importing->mapping, &identity);
    return outcome == 0 ? ATTN_OK
                        : attn_fail(err, outcome == ENOMEM ? ATTN_ERR_NO_MEMORY : ATTN_ERR_VALUE, NULL, "%.200s: %s",
                                    mapping, strerror_r(outcome, text, sizeof text));
}

/* ---- checkpoints of an unknown architecture ---- */

/* Writes the mapping, unless the file exists: a user may have begun to complete it. */
static int write_mapping(const char *directory, const char *text)
{
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/" MAPPING_FILE, directory);
    const int fd = length < (int)sizeof path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return length < (int)sizeof path ? errno : ENAMETOOLONG;
    const bool is_written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return close(fd) == 0 && is_written ? 0 : EIO;
}

/* Lists the tensors on standard error, and writes a mapping to complete into the directory. */
static void explain(const struct importing *importing)
{
    const struct model_files *files = &importing->files;
    const char *directory = importing->config->layers_directory;
    struct chunks tensors = chunks_begin(files->arena), mapping = chunks_begin(files->arena);
    char text[128];
    checkpoint_describe(&files->checkpoint, &tensors, &mapping);
    const char *tensors_text = chunks_join(&tensors), *mapping_text = chunks_join(&mapping);
    if (tensors_text == NULL || mapping_text == NULL)
        return;
    fprintf(stderr, "tensors of the checkpoint:\n%s", tensors_text);
    const int outcome = write_mapping(directory, mapping_text);
    if (outcome == 0 || outcome == EEXIST)
        fprintf(stderr, "%s %s/" MAPPING_FILE ": fill it in (docs/decisions.md tells how) and import with --mapping\n",
                outcome == 0 ? "written:" : "there is already", directory);
    else
        fprintf(stderr, "%s/" MAPPING_FILE ": %s; fill this in and import with --mapping:\n%s", directory,
                strerror_r(outcome, text, sizeof text), mapping_text);
}

/* ---- writing ---- */

static attn_status put(const struct importing *importing, const char *name, const struct chunks *file, attn_error *err)
{
    struct call call = {.err = err};
    attn_status status = layer_keeper_put(importing->keeper, text_span_of(name), file, &call);
    if (status != ATTN_OK)
        return status;
    const struct layer_version *version = layer_version_of(call.version);
    printf("%s: %zu features, %zu heads, %s, %zu bytes%s\n", name, version->facts.dims.d_query,
           version->facts.dims.heads, attn_dtype_name(version->facts.dtype), version->bytes.size,
           call.outcome == CALL_CREATED ? "" : ", replaced");
    version_release(call.version);
    return ATTN_OK;
}

static attn_status write_layer(const struct importing *importing, const struct checkpoint_layer *layer, attn_error *err)
{
    char name[LAYER_NAME_MAX + 2];
    const char *prefix = importing->config->checkpoint_prefix != NULL ? importing->config->checkpoint_prefix : "";
    attn_arena *arena = importing->files.arena;
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    struct chunks file = chunks_begin(arena);
    snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", layer->name);
    checkpoint_write_layer(layer, &file);
    attn_status status = file.is_ok ? put(importing, name, &file, err)
                                    : attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the layer");
    attn_arena_release(arena, mark);
    return model_files_name(status, name, err);
}

static attn_status write_layers(struct importing *importing, size_t *count, attn_error *err)
{
    struct checkpoint_layers layers = {NULL, 0};
    bool is_unknown = false;
    *count = 0;
    attn_status status = open_files(importing, err);
    if (status == ATTN_OK) {
        const struct text_span mapping = {importing->mapping.at, importing->mapping.size};
        status = checkpoint_find_layers(&importing->files.checkpoint, mapping, importing->files.arena, &layers,
                                        &is_unknown, err);
    }
    if (is_unknown)
        explain(importing);
    for (; status == ATTN_OK && *count < layers.count; *count += status == ATTN_OK) {
        printf("%zu of %zu: ", *count + 1, layers.count);
        fflush(stdout);
        status = write_layer(importing, &layers.items[*count], err);
    }
    model_files_close(&importing->files);
    file_bytes_release(&importing->mapping);
    return status;
}

static bool import_into(struct importing *importing, const char *into, const struct log *log, char *message,
                        size_t size)
{
    const struct layer_settings settings = {.directory = into, .max_count = SIZE_MAX, .max_bytes = SIZE_MAX};
    attn_error error = {.status = ATTN_OK};
    size_t count;
    importing->keeper = layer_keeper_open(&settings, log, message, size);
    if (importing->keeper == NULL)
        return false;
    const attn_status status = write_layers(importing, &count, &error);
    if (status == ATTN_OK)
        printf("%zu layers written into %s\n", count, into);
    else
        snprintf(message, size, "import: %.503s", error.message);
    layer_keeper_close(importing->keeper);
    return status == ATTN_OK;
}

/* Makes the directory, unless it exists. A new one goes again if nothing was written into it. */
static bool import(struct importing *importing, const struct log *log, char *message, size_t size)
{
    const char *into = importing->config->layers_directory;
    const bool is_new = mkdir(into, 0755) == 0;
    char text[128];
    if (!is_new && errno != EEXIST) {
        snprintf(message, size, "import: %s: %s", into, strerror_r(errno, text, sizeof text));
        return false;
    }
    const bool is_done = import_into(importing, into, log, message, size);
    if (!is_done && is_new)
        (void)rmdir(into); /* which fails when it is not empty */
    return is_done;
}

int command_import(const struct config *config)
{
    char message[512];
    const struct log log = {.fd = STDERR_FILENO, .format = config->log_format, .level = config->log_level};
    struct importing importing = {.config = config};
    envelope_prepare();
    if (import(&importing, &log, message, sizeof message))
        return EXIT_SUCCESS;
    fprintf(stderr, "attnd: %s\n", message);
    return EXIT_FAILURE;
}
