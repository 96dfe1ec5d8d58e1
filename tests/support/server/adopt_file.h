/*
 * adopt_file.h: fixed layers for tests.
 */
#ifndef TESTS_ADOPT_FILE_H
#define TESTS_ADOPT_FILE_H

#include "service/registry/layer/keeper.h"

/* Keeps the file as a layer that nobody may change, as the modules of models are. */
static inline attn_status adopt_file(struct layer_keeper *to, const char *name, const struct chunks *file)
{
    struct file_bytes bytes;
    struct layer_version *version;
    attn_error ignored = {.status = ATTN_OK};
    if (file_bytes_copy(file, &bytes) != 0)
        return ATTN_ERR_NO_MEMORY;
    attn_status status = layer_version_read(name, bytes, NULL, &version, &ignored);
    if (status != ATTN_OK)
        return status;
    version_fix(&version->common);
    if (registry_install(layer_keeper_registry(to), &version->common))
        return ATTN_OK;
    layer_version_release(version);
    return ATTN_ERR_NO_MEMORY;
}

#endif
