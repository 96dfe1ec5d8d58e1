/*
 * checkpoint.c: finds the attention modules of a checkpoint by the names of their tensors. The architecture and the
 * configuration give their options.
 */
#include "codec/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/checkpoint/architecture.h"
#include "codec/json/json_tree.h"

enum { NAME_MAX_BYTES = 512, ENTRIES_MAX = 32 };

/* The state that the functions which make layers share. */
struct finder {
    struct checkpoint *checkpoint;
    const json_t *config;
    attn_arena *arena;
    struct checkpoint_layers *layers;
    attn_error *err;
};

/* One module of one layer, while its parts are collected. */
struct module {
    struct finder *finder;
    char path[NAME_MAX_BYTES];   /* "bert.encoder.layer.0.attention" */
    char prefix[NAME_MAX_BYTES]; /* "bert." */
    size_t number;
    struct safetensors_entry entries[ENTRIES_MAX];
    size_t count;
};

static attn_status fail_memory(attn_error *err)
{
    return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory left to read the checkpoint");
}

static attn_status load(const char *text, size_t length, const char *what, attn_arena *arena, json_t **tree,
                        attn_error *err)
{
    json_error_t error;
    *tree = json_tree_load(text, length, arena, &error);
    if (*tree == NULL && json_tree_is_starved())
        return fail_memory(err);
    if (json_is_object(*tree))
        return ATTN_OK;
    if (*tree != NULL)
        return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "%s is JSON, but no object", what);
    return attn_fail(err, ATTN_ERR_SYNTAX, NULL, "%s is no JSON: line %d: %s", what, error.line, error.text);
}

/* ---- the index of several files ---- */

attn_status checkpoint_read_index(const char *text, size_t length, attn_arena *arena, const char *const **files,
                                  size_t *count, attn_error *err)
{
    json_t *tree = NULL, *seen = json_object(), *file;
    const char *name;
    attn_status status = load(text, length, "the index", arena, &tree, err);
    const json_t *map = json_object_get(tree, "weight_map");
    if (status == ATTN_OK && !json_is_object(map))
        status = attn_fail(err, ATTN_ERR_FIELD, NULL, "the index has no \"weight_map\"");
    const char **names = attn_arena_take(arena, json_object_size(map), sizeof *names);
    *count = 0;
    json_object_foreach((json_t *)(uintptr_t)map, name, file)
    {
        const char *value = json_string_value(file);
        if (status != ATTN_OK || (value != NULL && json_object_get(seen, value)))
            continue;
        if (value == NULL || value[0] == '.' || strchr(value, '/') != NULL)
            status = attn_fail(err, ATTN_ERR_VALUE, NULL, "the index has no file name beside it for \"%.100s\"", name);
        else if (names == NULL || json_object_set_new(seen, value, json_true()) != 0 ||
                 (names[*count] = attn_arena_copy_text(arena, value, strlen(value))) == NULL)
            status = fail_memory(err);
        else
            ++*count;
    }
    *files = names;
    json_decref(seen);
    json_decref(tree);
    return status;
}

/* ---- tensors by name ---- */

static int compare_names(const void *left, const void *right)
{
    const struct safetensors_tensor *a = left, *b = right;
    return strcmp(a->name, b->name);
}

static const struct safetensors_tensor *find_tensor(const struct module *module, const char *name)
{
    const struct checkpoint *checkpoint = module->finder->checkpoint;
    const struct safetensors_tensor wanted = {.name = name};
    return bsearch(&wanted, checkpoint->tensors, checkpoint->tensor_count, sizeof wanted, compare_names);
}

/* Adds the tensor as a member of the layer. */
static attn_status add_tensor(struct module *module, const char *member, const struct safetensors_tensor *tensor)
{
    attn_error *err = module->finder->err;
    if (module->count == ENTRIES_MAX)
        return attn_fail(err, ATTN_ERR_TOO_LARGE, NULL, "%.100s has more than %d tensors", module->path, ENTRIES_MAX);
    struct safetensors_entry *entry = &module->entries[module->count++];
    entry->name = attn_arena_copy_text(module->finder->arena, member, strlen(member));
    return entry->name != NULL ? safetensors_view(tensor, &entry->tensor, err) : fail_memory(err);
}

/* Adds the tensor path + suffix, or else path + other. *found says whether one of them exists. */
static attn_status try_tensor(struct module *module, const char *member, const char *path, const char *suffix,
                              const char *other, bool *found)
{
    char name[NAME_MAX_BYTES];
    const char *const suffixes[] = {suffix, other};
    *found = false;
    for (size_t i = 0; i < 2 && !*found; i++) {
        const int length = snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        const struct safetensors_tensor *tensor = find_tensor(module, name);
        *found = tensor != NULL && length < (int)sizeof name;
        if (*found)
            return add_tensor(module, member, tensor);
    }
    return ATTN_OK;
}

static attn_status fail_absent(const struct module *module, const char *part, const char *path)
{
    return attn_fail(module->finder->err, ATTN_ERR_VALUE, NULL,
                     "there is no tensor %.120s.weight, the \"%s\" of %.100s", path, part, module->path);
}

/*
 * Adds weights.<part>.weight and .bias, whose names begin with the module's path + name. Norms of old files call the
 * two gamma and beta.
 */
static attn_status add_pair(struct module *module, const char *part, const char *name)
{
    char path[NAME_MAX_BYTES], weight[64], bias[64];
    bool has_weight, has_bias;
    snprintf(path, sizeof path, "%.300s.%.200s", module->path, name);
    snprintf(weight, sizeof weight, "weights.%.40s.weight", part);
    snprintf(bias, sizeof bias, "weights.%.40s.bias", part);
    attn_status status = try_tensor(module, weight, path, ".weight", ".gamma", &has_weight);
    if (status == ATTN_OK && !has_weight)
        return fail_absent(module, part, path);
    return status == ATTN_OK ? try_tensor(module, bias, path, ".bias", ".beta", &has_bias) : status;
}

/* The same when the mapping names the tensors: {"weight": "in_proj_weight", "bias": "in_proj_bias"}. */
static attn_status add_named(struct module *module, const char *part, json_t *names)
{
    char path[NAME_MAX_BYTES], member[64];
    const char *kind;
    json_t *name;
    attn_status status = ATTN_OK;
    json_object_foreach(names, kind, name)
    {
        bool found = false;
        if (status != ATTN_OK || json_string_value(name) == NULL)
            continue;
        snprintf(path, sizeof path, "%.300s.%.200s", module->path, json_string_value(name));
        snprintf(member, sizeof member, "weights.%.30s.%.20s", part, kind);
        status = try_tensor(module, member, path, "", "", &found);
        if (status == ATTN_OK && !found)
            status = attn_fail(module->finder->err, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s", path);
    }
    return status;
}

/* Adds the tensors of "weights". Members that are not tensors go to request; "order" goes to qkv. */
static attn_status add_weights(struct module *module, json_t *weights, json_t *request)
{
    json_t *plain = json_object(), *value;
    const char *part;
    attn_status status = ATTN_OK;
    json_object_foreach(weights, part, value)
    {
        const char *text = json_string_value(value);
        if (status != ATTN_OK || (text != NULL && text[0] == '\0'))
            continue;
        if (strcmp(part, "layout") == 0)
            (void)json_object_set(plain, part, value);
        else if (strcmp(part, "order") == 0)
            (void)json_object_set_new(plain, "qkv", json_pack("{s:O}", part, value));
        else
            status = text != NULL ? add_pair(module, part, text) : add_named(module, part, value);
    }
    (void)json_object_set_new(request, "weights", plain);
    return status;
}

/* ---- options and masks ---- */

/*
 * Writes the prefix and the name to path. Each "{n}" in the name becomes the number of the layer. A path that is too
 * long is cut.
 */
static void write_reference(const struct module *module, const char *name, char *path, size_t size)
{
    size_t length = (size_t)snprintf(path, size, "%.300s", module->prefix);
    while (*name != '\0' && length + 1 < size) {
        const bool is_number = strncmp(name, "{n}", 3) == 0;
        const size_t plain = is_number ? 0 : 1 + strcspn(name + 1, "{");
        const int added = is_number ? snprintf(path + length, size - length, "%zu", module->number)
                                    : snprintf(path + length, size - length, "%.*s", (int)plain, name);
        length += (size_t)added;
        name += is_number ? 3 : plain;
    }
}

static attn_status add_reference(struct module *module, const char *member, const char *name)
{
    char path[NAME_MAX_BYTES];
    bool found = false;
    write_reference(module, name, path, sizeof path);
    attn_status status = try_tensor(module, member, path, "", "", &found);
    if (status == ATTN_OK && !found)
        return attn_fail(module->finder->err, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s, the %s of %.100s", path,
                         member, module->path);
    return status;
}

/*
 * Copies the template and replaces each "$" expression by its value. The tensors of "@" references become entries.
 * Recursion is safe, because templates are plain data of little depth.
 */
static attn_status fill(struct module *module, const char *path, json_t *template, json_t **filled)
{
    const struct finder *finder = module->finder;
    const char *text = json_string_value(template), *name;
    attn_status status = ATTN_OK;
    json_t *member;
    *filled = NULL;
    if (text != NULL && text[0] == '@')
        return add_reference(module, path, text + 1);
    if (text != NULL && text[0] == '$') {
        *filled = architecture_value(finder->config, module->number, text + 1);
        return ATTN_OK;
    }
    if (!json_is_object(template)) {
        *filled = json_incref(template);
        return ATTN_OK;
    }
    *filled = json_object();
    json_object_foreach(template, name, member)
    {
        char deeper[NAME_MAX_BYTES];
        json_t *value = NULL;
        const int length = snprintf(deeper, sizeof deeper, "%s.%s", path, name);
        if (status == ATTN_OK && length >= 100)
            status = attn_fail(finder->err, ATTN_ERR_FIELD, NULL, "%.60s: members as deep as this mean nothing", path);
        if (status == ATTN_OK)
            status = fill(module, deeper, member, &value);
        if (value != NULL)
            (void)json_object_set_new(*filled, name, value);
    }
    return status;
}

static attn_status add_section(struct module *module, const char *section, json_t *template, json_t *request)
{
    json_t *filled = NULL;
    if (template == NULL)
        return ATTN_OK;
    attn_status status = fill(module, section, template, &filled);
    if (filled != NULL)
        (void)json_object_set_new(request, section, filled);
    return status;
}

/* ---- layers ---- */

static attn_status keep(const struct module *module, json_t *request)
{
    const struct finder *finder = module->finder;
    struct checkpoint_layer *layer = &finder->layers->items[finder->layers->count];
    char *text = json_dumps(request, JSON_COMPACT);
    *layer = (struct checkpoint_layer){.entry_count = module->count};
    layer->name = attn_arena_copy_text(finder->arena, module->path, strlen(module->path));
    layer->request = text != NULL ? attn_arena_copy_text(finder->arena, text, strlen(text)) : NULL;
    layer->entries = attn_arena_take(finder->arena, module->count, sizeof *layer->entries);
    json_tree_give_text(text);
    if (layer->name == NULL || layer->request == NULL || layer->entries == NULL || json_tree_is_starved())
        return fail_memory(finder->err);
    memcpy(layer->entries, module->entries, module->count * sizeof *layer->entries);
    finder->layers->count++;
    return ATTN_OK;
}

static attn_status make_layer(struct module *module, json_t *template)
{
    json_t *request = json_object();
    attn_status status = add_weights(module, json_object_get(template, "weights"), request);
    if (status == ATTN_OK)
        status = add_section(module, "options", json_object_get(template, "options"), request);
    if (status == ATTN_OK)
        status = add_section(module, "masks", json_object_get(template, "masks"), request);
    if (status == ATTN_OK)
        status = keep(module, request);
    json_decref(request);
    return status;
}

/*
 * Writes to text the ending of a tensor name that every module of this kind has: query or qkv. NULL when neither has a
 * name.
 */
static const char *anchor_of(const json_t *weights, char *text, size_t size)
{
    static const char *const parts[] = {"query", "qkv"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(weights, parts[i]);
        const char *name = json_string_value(value), *whole = json_string_value(json_object_get(value, "weight"));
        if ((name == NULL || name[0] == '\0') && whole == NULL)
            continue;
        snprintf(text, size, whole != NULL ? ".%s" : ".%s.weight", whole != NULL ? whole : name);
        return text;
    }
    return NULL;
}

static attn_status find_modules(struct finder *finder, json_t *template)
{
    char pattern[NAME_MAX_BYTES], anchor[NAME_MAX_BYTES / 2];
    const char *path = json_string_value(json_object_get(template, "path"));
    attn_status status = ATTN_OK;
    if (path == NULL || anchor_of(json_object_get(template, "weights"), anchor, sizeof anchor) == NULL)
        return attn_fail(finder->err, ATTN_ERR_FIELD, NULL,
                         "a module of the mapping has no \"path\", or neither \"query\" nor \"qkv\" among its weights");
    snprintf(pattern, sizeof pattern, "%.240s%s", path, anchor);
    for (size_t i = 0; i < finder->checkpoint->tensor_count && status == ATTN_OK; i++) {
        const char *name = finder->checkpoint->tensors[i].name;
        struct module module = {.finder = finder};
        size_t start;
        if (strlen(name) >= sizeof module.path || !architecture_fits(name, pattern, &start, &module.number))
            continue;
        snprintf(module.path, sizeof module.path, "%.*s", (int)(strlen(name) - strlen(anchor)), name);
        snprintf(module.prefix, sizeof module.prefix, "%.*s", (int)start, name);
        status = make_layer(&module, template);
    }
    return status;
}

static attn_status find_all(struct finder *finder, json_t *modules)
{
    const struct checkpoint *checkpoint = finder->checkpoint;
    attn_status status = ATTN_OK;
    json_t *template;
    size_t i;
    qsort(checkpoint->tensors, checkpoint->tensor_count, sizeof *checkpoint->tensors, compare_names);
    finder->layers->items = attn_arena_take(finder->arena, checkpoint->tensor_count * (json_array_size(modules) + 1),
                                            sizeof *finder->layers->items);
    if (finder->layers->items == NULL)
        return fail_memory(finder->err);
    json_array_foreach(modules, i, template)
    {
        if (status == ATTN_OK)
            status = find_modules(finder, template);
    }
    return status;
}

static attn_status fail_type(const char *type, attn_arena *arena, attn_error *err)
{
    struct chunks types = chunks_begin(arena);
    architecture_write_types(&types);
    const char *text = chunks_join(&types);
    return attn_fail(err, ATTN_ERR_VALUE, NULL, "model_type of config.json is \"%.64s\"; known are %s", type,
                     text != NULL ? text : "others");
}

/* *modules is a new reference. */
static attn_status choose_modules(const json_t *config, json_t *mapping, attn_arena *arena, json_t **modules,
                                  bool *is_unknown, attn_error *err)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    *modules = mapping != NULL ? json_incref(json_object_get(mapping, "modules"))
                               : architecture_modules(type ? type : "", arena);
    if (json_is_array(*modules))
        return ATTN_OK;
    *is_unknown = mapping == NULL;
    return mapping == NULL ? fail_type(type ? type : "", arena, err)
                           : attn_fail(err, ATTN_ERR_FIELD, NULL, "the mapping has no list \"modules\"");
}

attn_status checkpoint_find_layers(struct checkpoint *checkpoint, struct checkpoint_text mapping, attn_arena *arena,
                                   struct checkpoint_layers *layers, bool *is_unknown, attn_error *err)
{
    json_t *config = NULL, *own = NULL, *modules = NULL;
    *layers = (struct checkpoint_layers){NULL, 0};
    *is_unknown = false;
    attn_status status = load(checkpoint->config, checkpoint->config_length, "config.json", arena, &config, err);
    if (status == ATTN_OK && mapping.at != NULL)
        status = load(mapping.at, mapping.length, "the mapping", arena, &own, err);
    if (status == ATTN_OK)
        status = choose_modules(config, own, arena, &modules, is_unknown, err);
    struct finder finder = {checkpoint, config, arena, layers, err};
    if (status == ATTN_OK)
        status = find_all(&finder, modules);
    if (status == ATTN_OK && layers->count == 0) {
        *is_unknown = true;
        status = attn_fail(err, ATTN_ERR_VALUE, NULL, "no tensor of the checkpoint belongs to a module of the mapping");
    }
    json_decref(modules);
    json_decref(own);
    json_decref(config);
    return status;
}

void checkpoint_write_layer(const struct checkpoint_layer *layer, struct chunks *out)
{
    const struct safetensors_text request = {"request", layer->request, strlen(layer->request)};
    safetensors_write(layer->entries, layer->entry_count, &request, 1, out);
}
