/*
 * find.c: finds the attention modules of a checkpoint by the names of their tensors. The architecture and the
 * configuration give their options.
 */
#include "codec/checkpoint/find.h"

#include <stdio.h>
#include <string.h>

#include "codec/checkpoint/language/architecture.h"
#include "codec/checkpoint/reader.h"
#include "codec/json/tree.h"

/* The state that the functions which make layers share. */
struct finder {
    struct tensor_table table;
    const struct architecture *architecture; /* without an entry when there is a mapping */
    const json_t *config;
    attn_arena *arena;
    struct checkpoint_layers *layers;
    struct outcome *outcome;
};

/* ---- the index of several files ---- */

attn_status checkpoint_read_index(struct text_span text, attn_arena *arena, const char *const **files, size_t *count,
                                  attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    json_t *tree = NULL, *seen = json_object(), *file;
    const char *name;
    attn_arena *trees = attn_arena_create_beside(arena);
    bool ok =
        trees != NULL ? checkpoint_load_json(text, "the index", trees, &tree, &outcome) : outcome_no_memory(&outcome);
    const json_t *map = json_object_get(tree, "weight_map");
    if (ok && !json_is_object(map))
        ok = outcome_fail(&outcome, ATTN_ERR_FIELD, NULL, "the index has no \"weight_map\"");
    const char **names = attn_arena_take(arena, json_object_size(map), sizeof *names);
    *count = 0;
    json_object_foreach((json_t *)(uintptr_t)map, name, file)
    {
        const char *value = json_tree_word(file);
        if (!ok || (value != NULL && json_object_get(seen, value)))
            continue;
        if (value == NULL || value[0] == '\0' || value[0] == '.' || strchr(value, '/') != NULL)
            ok = outcome_fail(&outcome, ATTN_ERR_VALUE, NULL, "the index has no file name beside it for \"%.100s\"",
                              name);
        else if (names == NULL || json_object_set_new(seen, value, json_true()) != 0 ||
                 (names[*count] = attn_arena_copy_text(arena, value, strlen(value))) == NULL)
            ok = outcome_no_memory(&outcome);
        else
            ++*count;
    }
    *files = names;
    json_decref(seen);
    json_decref(tree);
    attn_arena_destroy(trees);
    return outcome.status;
}

/* ---- layers ---- */

static bool keep(struct finder *finder, const struct module *module, json_t *request)
{
    struct checkpoint_layer *layer = &finder->layers->items[finder->layers->count];
    char *text = json_dumps(request, JSON_COMPACT);
    *layer = (struct checkpoint_layer){.entry_count = module->count};
    layer->name = attn_arena_copy_text(finder->arena, module->path, strlen(module->path));
    layer->request = text != NULL ? attn_arena_copy_text(finder->arena, text, strlen(text)) : NULL;
    layer->entries = attn_arena_take(finder->arena, module->count, sizeof *layer->entries);
    json_tree_give_text(text);
    if (layer->name == NULL || layer->request == NULL || layer->entries == NULL || json_tree_is_starved())
        return outcome_no_memory(finder->outcome);
    memcpy(layer->entries, module->entries, module->count * sizeof *layer->entries);
    finder->layers->count++;
    return true;
}

/* Makes the choices of a template for layer n. A mapping has none. */
static bool resolve(const struct finder *finder, json_t *template, size_t n, json_t **resolved)
{
    if (finder->architecture->entry != NULL)
        return architecture_resolve(finder->architecture, finder->config, n, template, resolved, finder->outcome);
    *resolved = json_incref(template);
    return true;
}

static bool make_layer(struct finder *finder, struct module *module, json_t *template)
{
    json_t *request = json_object(), *own = NULL;
    bool ok = resolve(finder, template, module->number, &own);
    ok = ok && module_add(module, own, module->path, request);
    ok = ok && keep(finder, module, request);
    json_decref(own);
    json_decref(request);
    return ok;
}

/* The pattern that the names of one tensor of each module fit, and its ending. */
static bool write_pattern(const struct finder *finder, json_t *template, char *pattern, size_t size, char *anchor,
                          size_t anchor_size)
{
    json_t *first = NULL;
    bool ok = resolve(finder, template, 0, &first);
    const char *path = json_string_value(json_object_get(first, "path"));
    if (ok && (path == NULL || !module_anchor(json_object_get(first, "weights"), anchor, anchor_size)))
        ok =
            outcome_fail(finder->outcome, ATTN_ERR_FIELD, NULL,
                         "a module of the mapping has no \"path\", or neither \"query\" nor \"qkv\" among its weights");
    if (ok)
        snprintf(pattern, size, "%.240s%s", path, anchor);
    json_decref(first);
    return ok;
}

static bool find_modules(struct finder *finder, json_t *template)
{
    char pattern[CHECKPOINT_PATH_MAX], anchor[CHECKPOINT_PATH_MAX / 2];
    bool ok = write_pattern(finder, template, pattern, sizeof pattern, anchor, sizeof anchor);
    for (size_t i = 0; i < finder->table.count && ok; i++) {
        const char *name = finder->table.tensors[i].name;
        struct module module = {.table = &finder->table, .config = finder->config, .outcome = finder->outcome};
        size_t start;
        if (strlen(name) >= sizeof module.path || !architecture_fits(name, pattern, &start, &module.number) ||
            !architecture_is_within(finder->architecture, name, start))
            continue;
        snprintf(module.path, sizeof module.path, "%.*s", (int)(strlen(name) - strlen(anchor)), name);
        snprintf(module.prefix, sizeof module.prefix, "%.*s", (int)start, name);
        ok = make_layer(finder, &module, template);
    }
    return ok;
}

static bool find_all(struct finder *finder, const struct checkpoint *checkpoint, json_t *modules)
{
    json_t *template;
    size_t i;
    bool ok = tensor_table_open(&finder->table, checkpoint->tensors, checkpoint->tensor_count, finder->arena,
                                finder->outcome);
    finder->layers->items = attn_arena_take(finder->arena, checkpoint->tensor_count * (json_array_size(modules) + 1),
                                            sizeof *finder->layers->items);
    if (ok && finder->layers->items == NULL)
        return outcome_no_memory(finder->outcome);
    json_array_foreach(modules, i, template)
    {
        ok = ok && find_modules(finder, template);
    }
    return ok;
}

static bool fail_type(const json_t *table, const char *type, attn_arena *arena, struct outcome *outcome)
{
    struct chunks types = chunks_begin(arena);
    architecture_write_types(table, "modules", type, "known are ", &types);
    const char *text = chunks_join(&types);
    return outcome_fail(outcome, ATTN_ERR_VALUE, NULL, "model_type of config.json is \"%.64s\"; %s", type,
                        text != NULL ? text : "others");
}

/* Removes what stands around the modules: a layer is a module alone, whatever the rest of the model asks for. */
static void drop_blocks(json_t *modules)
{
    json_t *module;
    size_t i;
    json_array_foreach(modules, i, module)
    {
        (void)json_object_del(module, "block"); /* fails when the module has none */
    }
}

/* *modules is borrowed, from the mapping or from the entry for the configuration, which is opened. */
static bool choose_modules(json_t *config, json_t *mapping, attn_arena *arena, struct architecture *architecture,
                           json_t **modules, bool *is_unknown, struct outcome *outcome)
{
    const char *type = json_tree_word(json_object_get(config, "model_type"));
    if (mapping != NULL) {
        *modules = json_object_get(mapping, "modules");
        return json_is_array(*modules)
                   ? true
                   : outcome_fail(outcome, ATTN_ERR_FIELD, NULL, "the mapping has no list \"modules\"");
    }
    *is_unknown = true;
    if (!architecture_check_type(config, outcome))
        return false;
    *architecture = architecture_open(config, arena);
    *modules = json_object_get(architecture->entry, "modules");
    *is_unknown = architecture->entry == NULL;
    drop_blocks(*modules);
    return *is_unknown ? fail_type(architecture->table, type, arena, outcome)
                       : architecture_complete(architecture, config, outcome);
}

attn_status checkpoint_find_layers(struct checkpoint *checkpoint, struct text_span mapping, attn_arena *arena,
                                   struct checkpoint_layers *layers, bool *is_unknown, attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    json_t *config = NULL, *own = NULL, *modules = NULL;
    attn_arena *trees = attn_arena_create_beside(arena);
    *layers = (struct checkpoint_layers){NULL, 0};
    *is_unknown = false;
    if (trees == NULL)
        return attn_fail_no_memory(err);
    bool ok = checkpoint_load_json(checkpoint->config, "config.json", trees, &config, &outcome);
    if (ok && mapping.at != NULL)
        ok = checkpoint_load_json(mapping, "the mapping", trees, &own, &outcome);
    struct architecture architecture = {.table = NULL};
    ok = ok && choose_modules(config, own, trees, &architecture, &modules, is_unknown, &outcome);
    struct finder finder = {
        .architecture = &architecture, .config = config, .arena = arena, .layers = layers, .outcome = &outcome};
    if (ok && find_all(&finder, checkpoint, modules) && layers->count == 0) {
        *is_unknown = true;
        outcome_fail(&outcome, ATTN_ERR_VALUE, NULL, "no tensor of the checkpoint belongs to a module of the mapping");
    }
    architecture_close(&architecture);
    json_decref(own);
    json_decref(config);
    attn_arena_destroy(trees);
    return outcome.status;
}

void checkpoint_write_layer(const struct checkpoint_layer *layer, struct chunks *out)
{
    const struct safetensors_text request = {"request", layer->request, strlen(layer->request)};
    safetensors_write(layer->entries, layer->entry_count, &request, 1, out);
}
