/* layers.c: keeps the layers of a checkpoint. */
#include "service/import/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/registry/layer/keeper.h"

#define MAPPING_FILE "attnd-mapping.json"

struct writer {
    struct layer_keeper *keeper;
    const char *directory;
};

static attn_status write_layer(void *context, const char *name, const struct chunks *file, attn_error *err)
{
    const struct writer *writer = context;
    struct call call = {.err = err};
    struct layer_version *version;
    bool created;
    attn_status status = layer_keeper_put(writer->keeper, text_span_of(name), file, &call, &version, &created);
    if (status != ATTN_OK)
        return status;
    printf("%s: %zu features, %zu heads, %s, %zu bytes%s\n", name, version->facts.dims.d_query,
           version->facts.dims.heads, attn_dtype_name(version->facts.dtype), version->bytes.size,
           created ? "" : ", replaced");
    layer_version_release(version);
    return ATTN_OK;
}

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

static void explain_mapping(void *context, const char *tensors, const char *mapping)
{
    const struct writer *writer = context;
    char text[128];
    fprintf(stderr, "tensors of the checkpoint:\n%s", tensors);
    const int outcome = write_mapping(writer->directory, mapping);
    if (outcome == 0 || outcome == EEXIST)
        fprintf(stderr, "%s %s/" MAPPING_FILE ": fill it in (docs/decisions.md tells how) and import with --mapping\n",
                outcome == 0 ? "written:" : "there is already", writer->directory);
    else
        fprintf(stderr, "%s/" MAPPING_FILE ": %s; fill this in and import with --mapping:\n%s", writer->directory,
                strerror_r(outcome, text, sizeof text), mapping);
}

/* Makes the directory. An existing one stays as it is. False: message says why there is no such directory. */
static bool make_directory(const char *path, char *message, size_t size)
{
    if (mkdir(path, 0755) == 0 || errno == EEXIST)
        return true;
    char text[128];
    snprintf(message, size, "import: %s: %s", path, strerror_r(errno, text, sizeof text));
    return false;
}

bool checkpoint_layers_write(const struct checkpoint_source *source, const char *into, const struct log *log,
                             char *message, size_t size)
{
    if (!make_directory(into, message, size))
        return false;
    const struct layer_settings settings = {.directory = into, .max_count = SIZE_MAX, .max_bytes = SIZE_MAX};
    attn_error error = {.status = ATTN_OK};
    size_t count;
    struct writer writer = {.keeper = layer_keeper_open(&settings, log, message, size), .directory = into};
    if (writer.keeper == NULL)
        return false;
    const struct checkpoint_receiver receiver = {write_layer, explain_mapping, &writer};
    const attn_status status = checkpoint_import(source, &receiver, &count, &error);
    if (status == ATTN_OK)
        printf("%zu layers written into %s\n", count, into);
    else
        snprintf(message, size, "import: %s", error.message);
    layer_keeper_close(writer.keeper);
    return status == ATTN_OK;
}
