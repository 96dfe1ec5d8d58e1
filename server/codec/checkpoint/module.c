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
static void add_entry(struct module *module, const char *member, const attn_tensor *tensor)
{
    const size_t most = module->has_experts ? EXPERT_TENSORS_MAX : MODULE_TENSORS_MAX;
    if (module->count == most)
        outcome_fail(module->outcome, ATTN_ERR_TOO_LARGE, NULL, "%.100s has more than %zu tensors", module->path, most);
    if (outcome_has_failed(module->outcome) || !grow(module))
        return;
    struct safetensors_entry *entry = &module->entries[module->count++];
    entry->name = attn_arena_copy_text(module->table->arena, member, strlen(member));
    entry->tensor = *tensor;
    if (entry->name == NULL)
        outcome_no_memory(module->outcome);
}

/* Takes the tensor path + suffix, or else path + other. False: there is neither. */
static bool try_tensor(struct module *module, const char *path, const char *suffix, const char *other,
                       attn_tensor *tensor)
{
    char name[CHECKPOINT_PATH_MAX];
    const char *const suffixes[] = {suffix, other};
    for (size_t i = 0; i < 2; i++)
        if (snprintf(name, sizeof name, "%s%s", path, suffixes[i]) < (int)sizeof name &&
            tensor_table_take(module->table, name, tensor, module->outcome))
            return true;
    return false;
}

/* Whether the part is a norm, whose weight is a gain: "norm", "query_norm", "feed_forward.branch_norm". */
static bool is_norm(const char *part)
{
    return text_ends(part, "norm");
}

/*
 * Adds weights.<part>.weight and .bias, whose names begin with base and name. Norms of old files call the two gamma and
 * beta. False: there is no weight.
 */
static bool try_pair(struct module *module, const char *part, const char *base, const char *name)
{
    char path[CHECKPOINT_PATH_MAX], weight[64], bias[64];
    attn_tensor tensor;
    snprintf(path, sizeof path, "%.300s.%.200s", base, name);
    snprintf(weight, sizeof weight, "weights.%.40s.weight", part);
    snprintf(bias, sizeof bias, "weights.%.40s.bias", part);
    if (!try_tensor(module, path, ".weight", ".gamma", &tensor))
        return false;
    if (module->gain_offset != 0 && is_norm(part))
        tensor_shift(module->table, &tensor, module->gain_offset, module->outcome);
    add_entry(module, weight, &tensor);
    if (try_tensor(module, path, ".bias", ".beta", &tensor))
        add_entry(module, bias, &tensor);
    return true;
}

static void add_pair(struct module *module, const char *part, const char *base, const char *name)
{
    if (!try_pair(module, part, base, name))
        outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL,
                     "there is no tensor %.60s.%.60s.weight, the \"%s\" of %.100s", base, name, part, module->path);
}

/* The first of the names that the file has. An empty name at the end: the part may be absent. */
static void add_first(struct module *module, const char *part, const char *base, json_t *names)
{
    bool found = false;
    json_t *name;
    size_t i;
    json_array_foreach(names, i, name)
    {
        const char *text = json_string_value(name);
        if (found || text == NULL || text[0] == '\0')
            continue;
        if (i + 1 == json_array_size(names))
            add_pair(module, part, base, text);
        else
            found = try_pair(module, part, base, text);
    }
}

static void fail_absent(struct module *module, const char *path)
{
    outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s", path);
}

/* One of equal parts along the first axis, if there is a list of its index and their number. */
static void cut_part(struct module *module, const json_t *part, const char *name, attn_tensor *tensor)
{
    if (part != NULL)
        tensor_cut(tensor, name, (size_t)json_integer_value(json_array_get(part, 0)),
                   (size_t)json_integer_value(json_array_get(part, 1)), module->outcome);
}

/* Cuts the tensor, or multiplies its rows, as the names of a part say. */
static void change(struct module *module, json_t *names, const char *base, const char *path, attn_tensor *tensor)
{
    const json_t *part = json_object_get(names, "part");
    const char *factors = json_string_value(json_object_get(names, "factors"));
    char name[CHECKPOINT_PATH_MAX];
    attn_tensor by;
    cut_part(module, part, path, tensor);
    if (part != NULL || factors == NULL)
        return;
    snprintf(name, sizeof name, "%.300s.%.200s", base, factors);
    if (tensor_table_take(module->table, name, &by, module->outcome))
        tensor_scale_rows(module->table, tensor, &by, path, module->outcome);
    else
        fail_absent(module, name);
}

/* The same when the template names the tensors: {"weight": "in_proj_weight", "bias": "in_proj_bias"}. */
static void add_named(struct module *module, const char *part, const char *base, json_t *names)
{
    static const char *const kinds[] = {"weight", "bias"};
    char path[CHECKPOINT_PATH_MAX], member[64];
    for (size_t i = 0; i < 2; i++) {
        const char *name = json_string_value(json_object_get(names, kinds[i]));
        const bool may_lack = i > 0 && json_object_size(names) > 2; /* parts of fused tensors may have no bias */
        attn_tensor tensor;
        if (name == NULL)
            continue;
        snprintf(path, sizeof path, "%.300s.%.200s", base, name);
        snprintf(member, sizeof member, "weights.%.30s.%.20s", part, kinds[i]);
        if (tensor_table_take(module->table, path, &tensor, module->outcome)) {
            change(module, names, base, path, &tensor);
            add_entry(module, member, &tensor);
        } else if (!may_lack) {
            fail_absent(module, path);
        }
    }
}

/* ---- experts ---- */

/* The tensors that are called like name, whose "{e}" counts the experts from 0. */
static void add_numbered(struct module *module, const char *role, const char *base, const char *name)
{
    const char *at = strstr(name, "{e}");
    bool found = at != NULL;
    for (size_t e = 0; found; e++) {
        char part[64], own[CHECKPOINT_PATH_MAX];
        snprintf(part, sizeof part, "feed_forward.experts.each.%zu.%.8s", e, role);
        snprintf(own, sizeof own, "%.*s%zu%s", (int)(at - name), name, e, at + strlen("{e}"));
        found = try_pair(module, part, base, own);
    }
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

static void take_stacked(struct module *module, const char *base, const char *name, struct stacked *stacked)
{
    char path[CHECKPOINT_PATH_MAX];
    snprintf(path, sizeof path, "%.300s.%.150s%s", base, name, stacked->suffix);
    stacked->found = tensor_table_take(module->table, path, &stacked->all, module->outcome);
    if (stacked->found && stacked->all.rank < 2)
        outcome_fail(module->outcome, ATTN_ERR_SHAPE, NULL, "%.150s has no axis of experts", path);
}

/* The tensors of each expert, or one part of the rows of each of them; those of one expert stand side by side. */
static void add_stacked(struct module *module, const char *role, const struct stacked *stacked, size_t count,
                        const json_t *part)
{
    const size_t experts = stacked->all.shape[0];
    if (stacked[count - 1].all.shape[0] != experts)
        outcome_fail(module->outcome, ATTN_ERR_SHAPE, NULL, "%.100s: %.20s has %zu experts, and its %.20s %zu",
                     module->path, role, experts, stacked[count - 1].kind, stacked[count - 1].all.shape[0]);
    for (size_t n = 0; n < count * experts && !outcome_has_failed(module->outcome); n++) {
        const struct stacked *one = &stacked[n % count];
        char member[96];
        snprintf(member, sizeof member, "weights.feed_forward.experts.each.%zu.%.8s.%.8s", n / count, role, one->kind);
        attn_tensor tensor = element_of(&one->all, n / count);
        cut_part(module, part, member, &tensor);
        add_entry(module, member, &tensor);
    }
}

/*
 * Tensors of all experts: {"weight": NAME, "bias": NAME, "part": [i, n]}. Instead of NAME, a file may have NAME_blocks and
 * NAME_scales (mxfp4.h), whose layout is always out_in.
 */
static void add_fused(struct module *module, const char *role, const char *base, json_t *names, json_t *own)
{
    const char *weight = json_string_value(json_object_get(names, "weight"));
    const char *bias = json_string_value(json_object_get(names, "bias"));
    const json_t *part = json_object_get(names, "part");
    struct stacked whole = {.kind = "weight", .suffix = ""}, shift = {.kind = "bias", .suffix = ""};
    struct stacked packed[] = {{.kind = "blocks", .suffix = "_blocks"}, {.kind = "scales", .suffix = "_scales"}};
    if (weight == NULL)
        return;
    take_stacked(module, base, weight, &whole);
    for (size_t i = 0; i < 2 && !whole.found; i++)
        take_stacked(module, base, weight, &packed[i]);
    if (bias != NULL)
        take_stacked(module, base, bias, &shift);
    if (!whole.found && !(packed[0].found && packed[1].found)) {
        outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s.%.100s%s", base, weight,
                     packed[0].found   ? packed[1].suffix
                     : packed[1].found ? packed[0].suffix
                                       : "");
        return;
    }
    if (!whole.found)
        (void)json_object_set_new(own, "layout", json_string("out_in"));
    const size_t experts = (whole.found ? &whole : &packed[0])->all.shape[0];
    if (shift.found && shift.all.shape[0] != experts)
        outcome_fail(module->outcome, ATTN_ERR_SHAPE, NULL, "%.150s.%.100s: there are %zu experts, and biases of %zu",
                     base, weight, experts, shift.all.shape[0]);
    add_stacked(module, role, whole.found ? &whole : packed, whole.found ? 1 : 2, part);
    if (shift.found)
        add_stacked(module, role, &shift, 1, part);
}

/* The tensor that was added last under that name. NULL: there is none. */
static const attn_tensor *find_entry(const struct module *module, const char *member)
{
    for (size_t i = module->count; i > 0; i--)
        if (strcmp(module->entries[i - 1].name, member) == 0)
            return &module->entries[i - 1].tensor;
    return NULL;
}

/* Checks that config.json counts as many experts as the router scores. It need not count them. */
static void check_count(const struct module *module, const json_t *template)
{
    const char *expression = json_string_value(json_object_get(template, "count"));
    const attn_tensor *router = find_entry(module, "weights.feed_forward.experts.router.weight");
    json_t *count = expression != NULL ? expression_value(module->config, module->number, expression + 1) : NULL;
    const double wanted = json_number_value(count);
    if (json_is_number(count) && router != NULL && router->rank > 0 && wanted != (double)router->shape[0])
        outcome_fail(module->outcome, ATTN_ERR_SHAPE, NULL,
                     "config.json: %.40s is %.17g, and %.150s.%.60s has %zu experts", expression + 1, wanted,
                     module->layer, json_string_value(json_object_get(template, "router")), router->shape[0]);
    json_decref(count);
}

/*
 * Adds the router, the gate of the network that all tokens share, and the weights of each expert. A layer without a router
 * has no experts.
 */
static void add_experts(struct module *module, json_t *template, const char *base, json_t *plain)
{
    const char *router = json_string_value(json_object_get(template, "router"));
    const char *gate = json_string_value(json_object_get(template, "shared_gate")), *role;
    json_t *layout = json_object_get(template, "layout"), *own = json_object(), *names;
    module->has_experts = router != NULL && try_pair(module, "feed_forward.experts.router", base, router);
    if (module->has_experts)
        check_count(module, template);
    if (module->has_experts && gate != NULL && find_entry(module, "weights.feed_forward.up.weight") != NULL)
        add_pair(module, "feed_forward.experts.shared_gate", base, gate);
    (void)json_object_set_new(own, "layout", layout != NULL ? json_incref(layout) : json_string("out_in"));
    json_object_foreach(json_object_get(template, "each"), role, names)
    {
        if (module->has_experts && json_is_string(names))
            add_numbered(module, role, base, json_string_value(names));
        else if (module->has_experts)
            add_fused(module, role, base, names, own);
    }
    if (module->has_experts)
        (void)json_object_set_new(plain, "feed_forward", json_pack("{s:O}", "experts", own));
    json_decref(own);
}

/* Adds the tensors of the weights. outer names the object that they are in: "", or "feed_forward.". */
static void add_parts(struct module *module, json_t *weights, const char *outer, const char *base, json_t *plain)
{
    json_t *value;
    const char *name;
    json_object_foreach(weights, name, value)
    {
        const char *text = json_string_value(value);
        char part[CHECKPOINT_PATH_MAX];
        if ((text != NULL && text[0] == '\0') || json_is_number(value))
            continue;
        snprintf(part, sizeof part, "%s%.100s", outer, name);
        if (strcmp(name, "layout") == 0)
            (void)json_object_set(plain, name, value);
        else if (strcmp(name, "order") == 0)
            (void)json_object_set_new(plain, "qkv", json_pack("{s:O}", name, value));
        else if (text != NULL)
            add_pair(module, part, base, text);
        else if (strcmp(name, "experts") == 0 && outer[0] != '\0')
            add_experts(module, value, base, plain);
        else if (json_is_array(value))
            add_first(module, part, base, value);
        else if (strcmp(name, "feed_forward") == 0 && outer[0] == '\0')
            add_parts(module, value, "feed_forward.", base, plain);
        else
            add_named(module, part, base, value);
    }
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
static void norm_table(struct module *module, const char *name, attn_tensor *tensor)
{
    const json_t *norm = json_object_get(module->normed, name);
    const char *weights = json_string_value(json_object_get(norm, "weights"));
    char path[CHECKPOINT_PATH_MAX];
    attn_tensor gain = {.data = NULL}, shift = {.data = NULL};
    if (weights == NULL)
        return;
    snprintf(path, sizeof path, "%.300s%.200s", module->prefix, weights);
    if (!try_tensor(module, path, ".weight", ".gamma", &gain))
        outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s.weight, the norm of %.100s",
                     path, name);
    (void)try_tensor(module, path, ".bias", ".beta", &shift);
    tensor_norm_rows(module->table, tensor, &gain, &shift, number_of(module, json_object_get(norm, "eps"), 1e-5), name,
                     module->outcome);
}

static void add_reference(struct module *module, const char *member, const char *name)
{
    char path[CHECKPOINT_PATH_MAX];
    attn_tensor tensor;
    snprintf(path, sizeof path, "%.300s", module->prefix);
    module_write_path(name, module->number, path, sizeof path);
    if (!tensor_table_take(module->table, path, &tensor, module->outcome)) {
        outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "there is no tensor %.150s, the %s of %.100s", path, member,
                     module->path);
        return;
    }
    norm_table(module, name, &tensor);
    add_entry(module, member, &tensor);
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

/* How many heads there are follows from no tensor, so a configuration must say it. */
static void fail_heads(struct module *module, const json_t *template)
{
    char name[80];
    const char *expression = json_string_value(template);
    (void)expression_member(module->config, expression != NULL ? expression + 1 : "num_heads", name, sizeof name);
    outcome_fail(module->outcome, ATTN_ERR_VALUE, NULL, "config.json has no %s, the number of heads of a layer", name);
}

/*
 * Copies the template and replaces each "$" expression by its value. The tensors of "@" references become entries. NULL:
 * nothing is left. Recursion is safe, because templates are plain data of little depth.
 */
static json_t *fill(struct module *module, const char *path, json_t *template)
{
    const char *text = json_string_value(template), *name;
    json_t *member;
    if (text != NULL && text[0] == '@') {
        add_reference(module, path, text + 1);
        return NULL;
    }
    if (!json_is_object(template))
        return json_is_array(template) ? fill_list(module, template)
                                       : expression_fill(module->config, module->number, template);
    json_t *filled = json_object();
    json_object_foreach(template, name, member)
    {
        char deeper[CHECKPOINT_PATH_MAX];
        if (snprintf(deeper, sizeof deeper, "%s.%s", path, name) >= 100)
            outcome_fail(module->outcome, ATTN_ERR_FIELD, NULL, "%.60s: members as deep as this mean nothing", path);
        json_t *value = outcome_has_failed(module->outcome) ? NULL : fill(module, deeper, member);
        if (value != NULL)
            (void)json_object_set_new(filled, name, value);
        else if (strcmp(name, "num_heads") == 0 && !json_tree_is_starved())
            fail_heads(module, member);
    }
    return filled;
}

/* The object of that name in request, which is made when there is none. */
static json_t *section_of(json_t *request, const char *name)
{
    if (json_object_get(request, name) == NULL)
        (void)json_object_set_new(request, name, json_object());
    return json_object_get(request, name);
}

static void add_section(struct module *module, const char *section, json_t *template, json_t *request)
{
    json_t *filled = fill(module, section, json_object_get(template, section));
    if (json_is_object(filled))
        (void)json_object_update(section_of(request, section), filled);
    else if (filled != NULL)
        (void)json_object_set(request, section, filled);
    json_decref(filled);
}

bool module_add(struct module *module, json_t *template, const char *base, json_t *request)
{
    json_t *weights = json_object_get(template, "weights");
    const json_t *offset = json_object_get(weights, "gain_offset");
    if (json_object_get(template, "normed") != NULL)
        module->normed = json_object_get(template, "normed");
    if (offset != NULL)
        module->gain_offset = (float)json_number_value(offset);
    add_parts(module, weights, "", base, section_of(request, "weights"));
    add_section(module, "options", template, request);
    add_section(module, "masks", template, request);
    if (!module->has_experts) /* fails when the layers have none by their template either */
        (void)json_object_del(json_object_get(json_object_get(request, "options"), "feed_forward"), "experts");
    return !outcome_has_failed(module->outcome);
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
