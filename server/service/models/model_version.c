/*
 * model_version.c: makes and releases one version of a model.
 */
#include "service/models/model_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void destroy(struct model_version *version)
{
    for (size_t i = 0; version->slots != NULL && i < version->model.slots; i++)
        prepared_slot_clear(&version->slots[i]);
    prepared_slot_clear(&version->head_slot);
    free(version->slots);
    model_files_close(&version->files);
    free(version);
}

attn_status model_version_create(const char *name, struct model_files *files, struct model_version **version,
                                 attn_error *err)
{
    struct model_version *made = calloc(1, sizeof *made);
    struct timespec now;
    *version = NULL;
    if (made == NULL) {
        model_files_close(files);
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the model");
    }
    atomic_init(&made->references, 1);
    snprintf(made->name, sizeof made->name, "%s", name);
    made->files = *files;
    attn_status status = checkpoint_read_model(&made->files.checkpoint, made->files.arena, &made->model, err);
    if (status == ATTN_OK) {
        made->slots = calloc(made->model.slots + 1, sizeof *made->slots);
        if (made->slots == NULL)
            status = attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the model");
    }
    clock_gettime(CLOCK_REALTIME, &now);
    made->loaded_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (status == ATTN_OK)
        *version = made;
    else
        destroy(made);
    return status;
}

struct model_version *model_version_keep(struct model_version *version)
{
    atomic_fetch_add(&version->references, 1);
    return version;
}

void model_version_release(struct model_version *version)
{
    if (version != NULL && atomic_fetch_sub(&version->references, 1) == 1)
        destroy(version);
}
