/* module.c: collects the tensors of a module by its template, and fills in the values of the configuration. */
#include "codec/checkpoint/module.h"

#include <stdio.h>
#include <string.h>

#include "codec/checkpoint/expression.h"

/* ---- tensors ---- */

/* Adds the tensor as a member of the layer. */
static bool add_entry(struct module *module, const char *member, const attn_tensor *tensor)
{
    if (module->count == MODULE_TENSORS_MAX)
        return outcome_fail(module->outcome, ATTN_ERR_TOO_LARGE, NULL, "%.100s has more than %d tensors", module->path,
                            MODULE_TENSORS_MAX);
    struct safetensors_entry *entry = &module->entries[module->count++];
    entry->name = attn_arena_copy_text(module->table->arena, member, strlen(member));
    entry->tensor = *tensor;
    return entry->name != NULL ? true : outcome_no_memory(module->outcome);
}

/* Takes the tensor path + suffix, or else path + other. *found says whether one of them exists. */
static bool try_tensor(struct module *module, const char *path, const char *suffix, const char *other,
                       attn_tensor *tensor, bool *found)
{
    char name[CHECKPOINT_PATH_MAX];
    const char *const suffixes[] = {suffix, other};
    bool ok = true;
    *found = false;
    for (size_t i = 0; i < 2 && !*found && ok; i++)
        if (snprintf(name, sizeof name, "%s%s", path, suffixes[i]) < (int)sizeof name)
            ok = tensor_table_take(module->table, name, tensor, found, module->outcome);
    return ok;
}

/* Whether the part is a norm, whose weight is a gain: "norm", "query_norm", "feed_forward.branch_norm". */
static bool is_norm(const char *part)
{
    const size_t length = strlen(part), end = strlen("norm");
    return length >= end && strcmp(part + length - end, "norm") == 0;
}

/*
 * Adds weights.<part>.weight and .bias, whose names begin with base and name. Norms of old files call the two gamma and
 * beta. *found: there is a weight.
 */
static bool try_pair(struct module *module, const char *part, const char *base, const char *name, bool *found)
{
    char path[CHECKPOINT_PATH_MAX], weight[64], bias[64];
    bool has_bias;
    attn_tensor tensor;
    snprintf(path, sizeof path, "%.300s.%.200s", base, name);
    snprintf(weight, sizeof weight, "weights.%.40s.weight", part);
    snprintf(bias, sizeof bias, "weights.%.40s.bias", part);
    bool ok = try_tensor(module, path, ".weight", ".gamma", &tensor, found);
    if (ok && *found && module->gain_offset != 0 && is_norm(part))
        ok = tensor_shift(module->table, &tensor, module->gain_offset, module->outcome);
    if (!ok || !*found)
        return ok;
    ok = add_entry(module, weight, &tensor);
    ok = ok && try_tensor(module, path, ".bias", ".beta", &tensor, &has_bias);
    return ok && (!has_bias || add_entry(module, bias, &tensor));
}

static bool add_pair(struct module *module, const char *part, const char *base, const char *name)
{
    bool found;
    bool ok = try_pair(module, part, base, name, &found);
    if (!ok || found)
        return ok;
    return outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL,
                        "there is no tensor %.60s.%.60s.weight, the \"%s\" of %.100s", base, name, part, module->path);
}

/* The first of the names that the file has. An empty name at the end: the part may be absent. */
static bool add_first(struct module *module, const char *part, const char *base, json_t *names)
{
    bool ok = true;
    bool found = false;
    json_t *name;
    size_t i;
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        const bool is_last = i + 1 == json_array_size(names);
        if (!ok || found || text == NULL || text[0] == '\0')
            continue;
        ok = is_last ? add_pair(module, part, base, text) : try_pair(module, part, base, text, &found);
    }
    return ok;
}

/* Cuts the tensor, and multiplies its rows, as the names of a part say. */
static bool change(struct module *module, json_t *names, const char *base, const char *path, attn_tensor *tensor)
{
    const json_t *cut = json_object_get(names, "part");
    const char *factors = json_string_value(json_object_get(names, "factors"));
    char name[CHECKPOINT_PATH_MAX];
    attn_tensor by;
    bool found;
    if (cut != NULL)
        return tensor_cut(tensor, path, (size_t)json_integer_value(json_array_get(cut, 0)),
                          (size_t)json_integer_value(json_array_get(cut, 1)), module->outcome);
    if (factors == NULL)
        return true;
    snprintf(name, sizeof name, "%.300s.%.200s", base, factors);
    bool ok = tensor_table_take(module->table, name, &by, &found, module->outcome);
    if (ok && !found)
        ok = outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s", name);
    return ok && tensor_scale_rows(module->table, tensor, &by, path, module->outcome);
}

/* The same when the template names the tensors: {"weight": "in_proj_weight", "bias": "in_proj_bias"}. */
static bool add_named(struct module *module, const char *part, const char *base, json_t *names)
{
    static const char *const kinds[] = {"weight", "bias"};
    char path[CHECKPOINT_PATH_MAX], member[64];
    bool ok = true;
    for (size_t i = 0; i < 2 && ok; i++) {
        const char *name = json_string_value(json_object_get(names, kinds[i]));
        const bool may_lack = i > 0 && json_object_size(names) > 2; /* parts of fused tensors may have no bias */
        attn_tensor tensor;
        bool found = false;
        if (name == NULL)
            continue;
        snprintf(path, sizeof path, "%.300s.%.200s", base, name);
        snprintf(member, sizeof member, "weights.%.30s.%.20s", part, kinds[i]);
        ok = tensor_table_take(module->table, path, &tensor, &found, module->outcome);
        if (ok && !found && !may_lack)
            ok = outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s", path);
        if (ok && found)
            ok = change(module, names, base, path, &tensor);
        if (ok && found)
            ok = add_entry(module, member, &tensor);
    }
    return ok;
}

/* Adds the tensors of the weights. outer names the object that they are in: "", or "feed_forward.". */
static bool add_parts(struct module *module, json_t *weights, const char *outer, const char *base, json_t *plain)
{
    json_t *value;
    const char *name;
    bool ok = true;
    json_object_foreach(weights, name, value)
    {
        const char *text = json_string_value(value);
        char part[CHECKPOINT_PATH_MAX];
        if (!ok || (text != NULL && text[0] == '\0') || json_is_number(value))
            continue;
        snprintf(part, sizeof part, "%s%.100s", outer, name);
        if (strcmp(name, "layout") == 0)
            (void)json_object_set(plain, name, value);
        else if (strcmp(name, "order") == 0)
            (void)json_object_set_new(plain, "qkv", json_pack("{s:O}", name, value));
        else if (text != NULL)
            ok = add_pair(module, part, base, text);
        else if (json_is_array(value))
            ok = add_first(module, part, base, value);
        else if (strcmp(name, "feed_forward") == 0 && outer[0] == '\0')
            ok = add_parts(module, value, "feed_forward.", base, plain);
        else
            ok = add_named(module, part, base, value);
    }
    return ok;
}

/* ---- options and masks ---- */

void module_write_path(const char *pattern, size_t number, char *path, size_t size)
{
    size_t length = strlen(path);
    while (*pattern != '\0' && length + 1 < size) {
        const bool is_number = strncmp(pattern, "{n}", 3) == 0;
        const size_t plain = is_number ? 0 : 1 + strcspn(pattern + 1, "{");
        const int added = is_number ? snprintf(path + length, size - length, "%zu", number)
                                    : snprintf(path + length, size - length, "%.*s", (int)plain, pattern);
        length += (size_t)added;
        pattern += is_number ? 3 : plain;
    }
}

static bool add_reference(struct module *module, const char *member, const char *name)
{
    char path[CHECKPOINT_PATH_MAX];
    bool found = false;
    attn_tensor tensor;
    snprintf(path, sizeof path, "%.300s", module->prefix);
    module_write_path(name, module->number, path, sizeof path);
    bool ok = tensor_table_take(module->table, path, &tensor, &found, module->outcome);
    if (ok && !found)
        return outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s, the %s of %.100s", path,
                            member, module->path);
    return ok && add_entry(module, member, &tensor);
}

/*
 * Copies the template and replaces each "$" expression by its value. The tensors of "@" references become entries.
 * Recursion is safe, because templates are plain data of little depth.
 */
static bool fill(struct module *module, const char *path, json_t *template, json_t **filled)
{
    const char *text = json_string_value(template), *name;
    bool ok = true;
    json_t *member;
    *filled = NULL;
    if (text != NULL && text[0] == '@')
        return add_reference(module, path, text + 1);
    if (text != NULL && text[0] == '$') {
        *filled = expression_value(module->config, module->number, text + 1);
        return true;
    }
    if (!json_is_object(template)) {
        *filled = json_incref(template);
        return true;
    }
    *filled = json_object();
    json_object_foreach(template, name, member)
    {
        char deeper[CHECKPOINT_PATH_MAX];
        json_t *value = NULL;
        const int length = snprintf(deeper, sizeof deeper, "%s.%s", path, name);
        if (ok && length >= 100)
            ok = outcome_fail(module->outcome, ATTN_ERR_FIELD, NULL, "%.60s: members as deep as this mean nothing",
                              path);
        ok = ok && fill(module, deeper, member, &value);
        if (value != NULL)
            (void)json_object_set_new(*filled, name, value);
    }
    return ok;
}

/* The object of that name in request, which is made when there is none. */
static json_t *section_of(json_t *request, const char *name)
{
    if (json_object_get(request, name) == NULL)
        (void)json_object_set_new(request, name, json_object());
    return json_object_get(request, name);
}

static bool add_section(struct module *module, const char *section, json_t *template, json_t *request)
{
    json_t *filled = NULL;
    if (template == NULL)
        return true;
    bool ok = fill(module, section, template, &filled);
    if (json_is_object(filled))
        (void)json_object_update(section_of(request, section), filled);
    else if (filled != NULL)
        (void)json_object_set(request, section, filled);
    json_decref(filled);
    return ok;
}

bool module_add(struct module *module, json_t *template, const char *base, json_t *request)
{
    json_t *weights = json_object_get(template, "weights");
    const json_t *offset = json_object_get(weights, "gain_offset");
    if (offset != NULL)
        module->gain_offset = (float)json_number_value(offset);
    return add_parts(module, weights, "", base, section_of(request, "weights")) &&
           add_section(module, "options", json_object_get(template, "options"), request) &&
           add_section(module, "masks", json_object_get(template, "masks"), request);
}

/* ---- looking for modules ---- */

bool module_anchor(const json_t *weights, char *text, size_t size)
{
    static const char *const parts[] = {"query", "qkv"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_object_get(weights, parts[i]);
        const char *name = json_string_value(value), *whole = json_string_value(json_object_get(value, "weight"));
        if ((name == NULL || name[0] == '\0') && whole == NULL)
            continue;
        snprintf(text, size, whole != NULL ? ".%s" : ".%s.weight", whole != NULL ? whole : name);
        return true;
    }
    return false;
}
