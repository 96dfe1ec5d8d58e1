/* module.c: collects the tensors of a module by its template, and fills in the values of the configuration. */
#include "codec/checkpoint/reader.h"

#include <stdio.h>
#include <string.h>

#include "codec/checkpoint/language/expression.h"

/* ---- tensors ---- */

/* Makes room for one more entry. */
static bool grow(struct module *module)
{
    const size_t room = module->room > 0 ? 2 * module->room : 32;
    if (module->count < module->room)
        return true;
    struct safetensors_entry *entries = attn_arena_take(module->table->arena, room, sizeof *entries);
    if (entries == NULL)
        return outcome_no_memory(module->outcome);
    if (module->count > 0)
        memcpy(entries, module->entries, module->count * sizeof *entries);
    module->entries = entries;
    module->room = room;
    return true;
}

/* Adds the tensor as a member of the layer. */
static bool add_entry(struct module *module, const char *member, const attn_tensor *tensor)
{
    const size_t most = module->has_experts ? EXPERT_TENSORS_MAX : MODULE_TENSORS_MAX;
    if (module->count == most)
        return outcome_fail(module->outcome, ATTN_ERR_TOO_LARGE, NULL, "%.100s has more than %zu tensors", module->path,
                            most);
    if (!grow(module))
        return false;
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
    return text_ends(part, "norm");
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

/* ---- experts ---- */

/* The tensors that are called like name, whose "{e}" counts the experts from 0. */
static bool add_numbered(struct module *module, const char *role, const char *base, const char *name)
{
    const char *at = strstr(name, "{e}");
    bool ok = at != NULL, found = ok;
    for (size_t e = 0; ok && found; e++) {
        char part[64], own[CHECKPOINT_PATH_MAX];
        snprintf(part, sizeof part, "feed_forward.experts.each.%zu.%.8s", e, role);
        snprintf(own, sizeof own, "%.*s%zu%s", (int)(at - name), name, e, at + strlen("{e}"));
        ok = try_pair(module, part, base, own, &found);
    }
    return ok;
}

/* Makes a view of the elements of one index along the first axis. */
static attn_tensor element_of(const attn_tensor *tensor, size_t index)
{
    const size_t bytes = attn_tensor_count(tensor) / tensor->shape[0] * attn_dtype_bytes(tensor->dtype);
    return attn_tensor_view((char *)tensor->data + index * bytes, tensor->dtype, tensor->rank - 1, tensor->shape + 1);
}

/* A tensor of all experts, the first axis of which counts them. */
struct stacked {
    const char *kind, *suffix; /* "weight", and what is added to the name of the template */
    attn_tensor all;
    bool found;
};

static bool take_stacked(struct module *module, const char *base, const char *name, struct stacked *stacked)
{
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof path, "%.300s.%.150s%s", base, name, stacked->suffix);
    const bool ok = tensor_table_take(module->table, path, &stacked->all, &stacked->found, module->outcome);
    if (ok && stacked->found && stacked->all.rank < 2)
        return outcome_fail(module->outcome, ATTN_ERR_SHAPE, NULL, "%.150s has no axis of experts", path);
    return ok;
}

/* The tensors of each expert, or one part of the rows of each of them; those of one expert stand side by side. */
static bool add_stacked(struct module *module, const char *role, const struct stacked *stacked, size_t count,
                        const json_t *cut)
{
    const size_t experts = stacked->all.shape[0];
    bool ok = stacked[count - 1].all.shape[0] == experts ||
              outcome_fail(module->outcome, ATTN_ERR_SHAPE, NULL, "%.100s: %.20s has %zu experts, and its %.20s %zu",
                           module->path, role, experts, stacked[count - 1].kind, stacked[count - 1].all.shape[0]);
    for (size_t n = 0; ok && n < count * experts; n++) {
        const struct stacked *one = &stacked[n % count];
        char member[96];
        snprintf(member, sizeof member, "weights.feed_forward.experts.each.%zu.%.8s.%.8s", n / count, role, one->kind);
        attn_tensor tensor = element_of(&one->all, n / count);
        if (cut != NULL)
            ok = tensor_cut(&tensor, member, (size_t)json_integer_value(json_array_get(cut, 0)),
                            (size_t)json_integer_value(json_array_get(cut, 1)), module->outcome);
        ok = ok && add_entry(module, member, &tensor);
    }
    return ok;
}

/*
 * Tensors of all experts: {"weight": NAME, "bias": NAME, "part": [i, n]}. Instead of NAME, a file may have NAME_blocks and
 * NAME_scales (mxfp4.h), whose layout is always out_in.
 */
static bool add_fused(struct module *module, const char *role, const char *base, json_t *names, json_t *own)
{
    const char *weight = json_string_value(json_object_get(names, "weight"));
    const char *bias = json_string_value(json_object_get(names, "bias"));
    const json_t *cut = json_object_get(names, "part");
    struct stacked whole = {.kind = "weight", .suffix = ""}, shift = {.kind = "bias", .suffix = ""};
    struct stacked packed[] = {{.kind = "blocks", .suffix = "_blocks"}, {.kind = "scales", .suffix = "_scales"}};
    bool ok = weight != NULL && take_stacked(module, base, weight, &whole);
    for (size_t i = 0; i < 2 && ok && !whole.found; i++)
        ok = take_stacked(module, base, weight, &packed[i]);
    if (ok && bias != NULL)
        ok = take_stacked(module, base, bias, &shift);
    if (!ok)
        return false;
    if (!whole.found && !(packed[0].found && packed[1].found))
        return outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s.%.100s%s", base, weight,
                            packed[0].found   ? packed[1].suffix
                            : packed[1].found ? packed[0].suffix
                                              : "");
    if (!whole.found)
        (void)json_object_set_new(own, "layout", json_string("out_in"));
    const size_t experts = (whole.found ? &whole : &packed[0])->all.shape[0];
    if (shift.found && shift.all.shape[0] != experts)
        return outcome_fail(module->outcome, ATTN_ERR_SHAPE, NULL,
                            "%.150s.%.100s: there are %zu experts, and biases of %zu", base, weight, experts,
                            shift.all.shape[0]);
    ok = whole.found ? add_stacked(module, role, &whole, 1, cut) : add_stacked(module, role, packed, 2, cut);
    return ok && (!shift.found || add_stacked(module, role, &shift, 1, cut));
}

/* The tensor that was added last under that name. NULL: there is none. */
static const attn_tensor *find_entry(const struct module *module, const char *member)
{
    for (size_t i = module->count; i > 0; i--)
        if (strcmp(module->entries[i - 1].name, member) == 0)
            return &module->entries[i - 1].tensor;
    return NULL;
}

/* Whether config.json counts as many experts as the router scores. It need not count them. */
static bool check_count(const struct module *module, const json_t *template)
{
    const char *expression = json_string_value(json_object_get(template, "count"));
    const attn_tensor *router = find_entry(module, "weights.feed_forward.experts.router.weight");
    json_t *count = expression != NULL ? expression_value(module->config, module->number, expression + 1) : NULL;
    const double wanted = json_number_value(count);
    const bool fits = !json_is_number(count) || router->rank == 0 || wanted == (double)router->shape[0];
    json_decref(count);
    return fits ||
           outcome_fail(module->outcome, ATTN_ERR_SHAPE, NULL,
                        "config.json: %.40s is %.17g, and %.150s.%.60s has %zu experts", expression + 1, wanted,
                        module->layer, json_string_value(json_object_get(template, "router")), router->shape[0]);
}

/*
 * Adds the router, the gate of the network that all tokens share, and the weights of each expert. A layer without a router
 * has no experts.
 */
static bool add_experts(struct module *module, json_t *template, const char *base, json_t *plain)
{
    const char *router = json_string_value(json_object_get(template, "router"));
    const char *gate = json_string_value(json_object_get(template, "shared_gate")), *role;
    json_t *layout = json_object_get(template, "layout"), *own = json_object(), *names;
    bool ok = router != NULL && try_pair(module, "feed_forward.experts.router", base, router, &module->has_experts);
    if (ok && module->has_experts)
        ok = check_count(module, template);
    if (ok && module->has_experts && gate != NULL && find_entry(module, "weights.feed_forward.up.weight") != NULL)
        ok = add_pair(module, "feed_forward.experts.shared_gate", base, gate);
    (void)json_object_set_new(own, "layout", layout != NULL ? json_incref(layout) : json_string("out_in"));
    json_object_foreach(json_object_get(template, "each"), role, names)
    {
        if (!ok || !module->has_experts)
            continue;
        ok = json_is_string(names) ? add_numbered(module, role, base, json_string_value(names))
                                   : add_fused(module, role, base, names, own);
    }
    if (module->has_experts)
        (void)json_object_set_new(plain, "feed_forward", json_pack("{s:O}", "experts", own));
    json_decref(own);
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
        else if (strcmp(name, "experts") == 0 && outer[0] != '\0')
            ok = add_experts(module, value, base, plain);
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
        const bool is_number = text_begins(pattern, "{n}");
        const size_t plain = is_number ? 0 : 1 + strcspn(pattern + 1, "{");
        const int added = is_number ? snprintf(path + length, size - length, "%zu", number)
                                    : snprintf(path + length, size - length, "%.*s", (int)plain, pattern);
        length += (size_t)added;
        pattern += is_number ? 3 : plain;
    }
}

static double number_of(const struct module *module, const json_t *template, double otherwise)
{
    json_t *value = expression_fill(module->config, module->number, template);
    const double number = json_is_number(value) ? json_number_value(value) : otherwise;
    json_decref(value);
    return number;
}

/* Normalises the table of that name, if the template says so. */
static bool norm_table(struct module *module, const char *name, attn_tensor *tensor)
{
    const json_t *norm = json_object_get(module->normed, name);
    const char *weights = json_string_value(json_object_get(norm, "weights"));
    char path[CHECKPOINT_PATH_MAX];
    attn_tensor gain = {.data = NULL}, shift = {.data = NULL};
    bool has_gain, has_shift;
    if (weights == NULL)
        return true;
    snprintf(path, sizeof path, "%.300s%.200s", module->prefix, weights);
    bool ok = try_tensor(module, path, ".weight", ".gamma", &gain, &has_gain);
    if (ok && !has_gain)
        ok = outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s.weight, the norm of %.100s",
                          path, name);
    ok = ok && try_tensor(module, path, ".bias", ".beta", &shift, &has_shift);
    return ok && tensor_norm_rows(module->table, tensor, &gain, &shift,
                                  number_of(module, json_object_get(norm, "eps"), 1e-5), name, module->outcome);
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
    return ok && norm_table(module, name, &tensor) && add_entry(module, member, &tensor);
}

/* A list with each "$" expression replaced by its value; null stands for a value that is not there. */
static json_t *fill_list(const struct module *module, json_t *template)
{
    json_t *filled = json_array(), *member;
    size_t i;
    json_array_foreach(template, i, member)
    {
        json_t *value = expression_fill(module->config, module->number, member);
        (void)json_array_append_new(filled, value != NULL ? value : json_null());
    }
    return filled;
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
    if (!json_is_object(template)) {
        *filled = json_is_array(template) ? fill_list(module, template)
                                          : expression_fill(module->config, module->number, template);
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
    if (json_object_get(template, "normed") != NULL)
        module->normed = json_object_get(template, "normed");
    if (offset != NULL)
        module->gain_offset = (float)json_number_value(offset);
    const bool ok = add_parts(module, weights, "", base, section_of(request, "weights")) &&
                    add_section(module, "options", json_object_get(template, "options"), request) &&
                    add_section(module, "masks", json_object_get(template, "masks"), request);
    if (!module->has_experts) /* fails when the layers have none by their template either */
        (void)json_object_del(json_object_get(json_object_get(request, "options"), "feed_forward"), "experts");
    return ok;
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
