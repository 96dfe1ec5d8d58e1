/* modules.c: keeps the attention modules of a model as layers. */
#include "service/registry/model/version.h"

#include <stdio.h>
#include <string.h>

#include "service/registry/layer/version.h"

/* The name of the layer. False: a layer cannot have such a name. */
static bool name_of(const struct model_version *version, const struct checkpoint_layer *layer,
                    char name[LAYER_NAME_MAX + 1])
{
    const int length = snprintf(name, LAYER_NAME_MAX + 1, "%s.%s", version->common.name, layer->name);
    return length <= LAYER_NAME_MAX && layer_name_is_valid(name, (size_t)length);
}

static struct layer_version *make(struct model_version *version, const struct checkpoint_layer *layer, const char *name,
                                  attn_arena *scratch)
{
    attn_error ignored = {.status = ATTN_OK};
    struct kept_layer_facts facts;
    struct chunks file = chunks_begin(version->files.arena);
    struct envelope_attachment *attachments = attn_arena_take(scratch, layer->entry_count, sizeof *attachments);
    const struct envelope_source base = {.text = layer->request,
                                         .length = strlen(layer->request),
                                         .attachments = attachments,
                                         .count = layer->entry_count};
    if (attachments == NULL)
        return NULL;
    for (size_t i = 0; i < layer->entry_count; i++)
        attachments[i] = (struct envelope_attachment){layer->entries[i].name, layer->entries[i].tensor};
    if (kept_layer_check(&base, scratch, &facts, &ignored) != ATTN_OK)
        return NULL;
    checkpoint_write_layer(layer, &file);
    struct layer_version *made =
        file.is_ok ? layer_version_create(name, (struct file_bytes){.at = NULL}, NULL, &facts, &base) : NULL;
    if (made == NULL)
        return NULL;
    version_fix(&made->common);
    made->pieces = file.first;
    made->common.owner = version_keep(&version->common);
    return made;
}

/* False: the module cannot be a layer. */
static bool keep(struct registry *registry, struct model_version *version, const struct checkpoint_layer *module,
                 const char *name, attn_arena *scratch)
{
    struct layer_version *layer = make(version, module, name, scratch);
    registry_begin_change(registry);
    const bool is_kept = layer != NULL && registry_install(registry, &layer->common);
    if (is_kept)
        (void)registry_set_loaded(registry, name, true);
    registry_end_change(registry);
    if (!is_kept)
        layer_version_release(layer);
    return is_kept;
}

size_t model_modules_keep(struct registry *registry, struct model_version *version)
{
    size_t missing = 0;
    attn_arena *scratch = attn_arena_create_beside(version->files.arena);
    for (size_t i = 0; scratch != NULL && i < version->layers.count; i++) {
        char name[LAYER_NAME_MAX + 1];
        if (!name_of(version, &version->layers.items[i], name))
            continue;
        missing += !keep(registry, version, &version->layers.items[i], name, scratch);
        attn_arena_reset(scratch);
    }
    attn_arena_destroy(scratch);
    return missing;
}

void model_modules_drop(struct registry *registry, const struct model_version *version)
{
    registry_begin_change(registry);
    for (size_t i = 0; i < version->layers.count; i++) {
        char name[LAYER_NAME_MAX + 1];
        if (name_of(version, &version->layers.items[i], name))
            registry_remove_fixed(registry, name, &version->common);
    }
    registry_end_change(registry);
}
