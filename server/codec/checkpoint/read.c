/* read.c: describes a whole model: its stacks with their blocks, its head, and facts about it. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/checkpoint/description.h"
#include "codec/checkpoint/language/architecture.h"
#include "codec/checkpoint/language/expression.h"
#include "codec/checkpoint/parts.h"
#include "codec/json/tree.h"

enum { TOKENS_MAX = 1 << 30, ID_MAX = 1 << 30, LAYERS_MAX = 4096 };

/* The state of checkpoint_read_model. */
struct model_builder {
    struct model_reader reader;
    const struct architecture *architecture;
    const json_t *entry; /* of the architecture, with the choices of layer 0 */
    const char *type;    /* the model_type of the whole file: that of a part may be another */
    struct checkpoint_model *model;
};

/* ---- blocks ---- */

/* Fails with the name of what is in the files, in the place of the pointer into the block's request, or behind the message. */
static bool fail_block(struct outcome *outcome, attn_status status, const char *path, const char *origin,
                       const attn_error *why)
{
    const size_t pointer = strlen(why->field);
    if (origin[0] == '\0')
        return outcome_fail(outcome, status, NULL, "%.100s: %.250s", path, why->message);
    if (pointer > 0 && strncmp(why->message, why->field, pointer) == 0)
        return outcome_fail(outcome, status, NULL, "%.100s: %.160s%.250s", path, origin, why->message + pointer);
    return outcome_fail(outcome, status, NULL, "%.100s: %.250s (%.160s)", path, why->message, origin);
}

/* Checks that the block can run, as kept layers are checked. */
static bool check_block(struct model_builder *builder, const struct module *module, const json_t *const templates[2],
                        struct model_block *block)
{
    char origin[192] = "";
    attn_arena *arena = builder->reader.arena;
    attn_error why = {.message = ""};
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    const attn_status status = kept_layer_check(&block->source, arena, &block->facts, &why);
    attn_arena_release(arena, mark);
    if (status == ATTN_OK)
        return true;
    (void)origin_find(module, templates, why.field, origin, sizeof origin);
    return fail_block(builder->reader.outcome, status, block->path, origin, &why);
}

/* What a module and its text make of one block. The text of a model's block may have members that no client can send. */
static bool finish_block(struct model_builder *builder, const struct module *module, json_t *request,
                         struct model_block *block)
{
    attn_arena *arena = builder->reader.arena;
    struct envelope_attachment *attachments = attn_arena_take(arena, module->count, sizeof *attachments);
    char *text = json_dumps(request, JSON_COMPACT);
    const size_t length = text != NULL ? strlen(text) : 0;
    block->source = (struct envelope_source){
        .attachments = attachments, .count = module->count, .length = length, .is_of_model = true};
    block->source.text = text != NULL ? attn_arena_copy_text(arena, text, length) : NULL;
    block->path = attn_arena_copy_text(arena, module->path, strlen(module->path));
    json_tree_give_text(text);
    if (attachments == NULL || block->source.text == NULL || block->path == NULL)
        return outcome_no_memory(builder->reader.outcome);
    for (size_t i = 0; i < module->count; i++)
        attachments[i] = (struct envelope_attachment){module->entries[i].name, module->entries[i].tensor};
    return true;
}

/* Whether the block shares its weights with an earlier one, which *block then repeats. */
static bool repeat_block(const struct model_stack *stack, const char *path, struct model_block *block)
{
    for (size_t i = 0; i < stack->block_count; i++)
        if (strcmp(stack->blocks[i].path, path) == 0) {
            const size_t layer = block->layer;
            *block = stack->blocks[i];
            block->layer = layer;
            return true;
        }
    return false;
}

/* Removes from a copy of a module's template the weights that the block names anew. A number names no weight. */
static void drop_overridden(json_t *module, const json_t *block)
{
    json_t *weights = json_copy(json_object_get(module, "weights")), *named;
    const char *name;
    json_object_foreach(json_object_get(block, "weights"), name, named)
    {
        if (!json_is_number(named))
            (void)json_object_del(weights, name); /* fails when the module has no such weight */
    }
    (void)json_object_set_new(module, "weights", weights);
}

static bool build_block(struct model_builder *builder, json_t *template, size_t number, struct model_stack *stack)
{
    const json_t *overlay = json_object_get(template, "block");
    const char *path = json_string_value(json_object_get(template, "path")), *end = strstr(path, "{n}");
    struct model_reader *reader = &builder->reader;
    struct model_block *block = &stack->blocks[stack->block_count];
    struct module module = {
        .table = &reader->table, .config = reader->config, .outcome = reader->outcome, .number = number};
    char layer[CHECKPOINT_PATH_MAX];
    snprintf(module.prefix, sizeof module.prefix, "%s", reader->prefix);
    snprintf(module.path, sizeof module.path, "%s", reader->prefix);
    module_write_path(path, number, module.path, sizeof module.path);
    snprintf(layer, sizeof layer, "%.*s", (int)(end != NULL ? end - path + 3 : 0), path);
    snprintf(module.layer, sizeof module.layer, "%s", reader->prefix);
    module_write_path(layer, number, module.layer, sizeof module.layer);
    if (repeat_block(stack, module.path, block)) {
        stack->block_count++;
        return true;
    }
    json_t *request = json_object(), *own = json_copy(template);
    const json_t *const templates[2] = {overlay, own};
    drop_overridden(own, overlay);
    bool ok = module_add(&module, own, module.path, request);
    ok = ok && module_add(&module, (json_t *)(uintptr_t)overlay, module.layer, request);
    ok = ok && finish_block(builder, &module, request, block) && check_block(builder, &module, templates, block);
    block->is_cross = json_is_true(json_object_get(overlay, "cross"));
    block->slot = builder->model->slots++;
    stack->is_causal |= !block->is_cross && json_is_true(json_object_get(json_object_get(request, "masks"), "causal"));
    stack->block_count++;
    json_decref(own);
    json_decref(request);
    return ok;
}

/* The same by the template at that index of the entry, whose choices may differ from layer to layer. */
static bool make_block(struct model_builder *builder, size_t index, size_t number, struct model_stack *stack)
{
    json_t *all = json_object_get(builder->architecture->entry, "modules"), *template = NULL;
    bool ok = architecture_resolve(builder->architecture, builder->reader.config, number, json_array_get(all, index),
                                   &template, builder->reader.outcome);
    ok = ok && build_block(builder, template, number, stack);
    json_decref(template);
    return ok;
}

/* Whether the module is one of the stack's. A module without the name of a stack belongs to the only one. */
static bool is_of_stack(const json_t *template, const char *stack)
{
    const json_t *block = json_object_get(template, "block");
    const char *name = json_string_value(json_object_get(block, "stack"));
    return block != NULL && (name == NULL || strcmp(name, stack) == 0);
}

static bool make_blocks(struct model_builder *builder, const json_t *template, struct model_stack *stack)
{
    const struct model_reader *reader = &builder->reader;
    json_t *modules = json_object_get(builder->entry, "modules"), *module;
    size_t groups = 0, i;
    bool ok = model_count(reader, template, "layers", LAYERS_MAX, 0, &stack->layers);
    ok = ok && model_count(reader, template, "groups", LAYERS_MAX, stack->layers, &groups);
    if (!ok)
        return false;
    const char *expression = json_string_value(json_object_get(template, "layers"));
    char member[80];
    if (stack->layers == 0 && expression != NULL &&
        expression_member(reader->config, expression + 1, member, sizeof member) == NULL)
        return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL, "config.json has no %s", member);
    if (stack->layers == 0 || groups == 0 || groups > stack->layers)
        return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL, "config.json gives the %s %zu layers in %zu groups",
                            stack->name, stack->layers, groups);
    stack->blocks =
        attn_arena_take_zeroed(reader->arena, stack->layers * json_array_size(modules), sizeof *stack->blocks);
    if (stack->blocks == NULL)
        return outcome_no_memory(reader->outcome);
    for (size_t n = 0; n < stack->layers; n++)
        json_array_foreach(modules, i, module)
        {
            if (!ok || !is_of_stack(module, stack->name))
                continue;
            stack->blocks[stack->block_count].layer = n;
            ok = make_block(builder, i, n * groups / stack->layers, stack);
        }
    return ok;
}

/* Every block must take and give tokens of the same width. */
static bool check_widths(const struct model_builder *builder, const struct model_stack *stack, size_t width)
{
    for (size_t i = 0; i < stack->block_count; i++) {
        const attn_dims *dims = &stack->blocks[i].facts.dims;
        if (dims->d_query != width || dims->d_out != width)
            return outcome_fail(builder->reader.outcome, ATTN_ERR_SHAPE, NULL,
                                "%.120s takes tokens of %zu features and gives %zu; those of the model have %zu",
                                stack->blocks[i].path, dims->d_query, dims->d_out, width);
    }
    return true;
}

/* ---- stacks ---- */

/* Adds the stack of that name to the model by its template. *width becomes that of its tokens. */
static bool make_stack(struct model_builder *builder, const char *name, const json_t *template, size_t *width)
{
    struct model_stack *stack = &builder->model->stacks[builder->model->stack_count++];
    struct model_reader *reader = &builder->reader;
    *stack = (struct model_stack){.name = attn_arena_copy_text(reader->arena, name, strlen(name))};
    if (stack->name == NULL)
        return outcome_no_memory(reader->outcome);
    bool ok = model_read_embedding(reader, json_object_get(template, "embedding"), &stack->embedding, width);
    ok = ok && make_blocks(builder, template, stack);
    ok = ok && check_widths(builder, stack, *width);
    ok = ok && model_read_norm(reader, json_object_get(template, "norm"), &stack->norm);
    stack->norm_in_hidden = !json_is_false(json_object_get(template, "norm_in_hidden"));
    return ok && model_check_norm(reader, &stack->norm, *width);
}

static bool make_stacks(struct model_builder *builder, const json_t *template, size_t *width)
{
    json_t *stacks = json_object_get(template, "stacks"), *stack;
    const char *name;
    bool ok = true;
    json_object_foreach(stacks, name, stack)
    {
        if (ok && builder->model->stack_count < ARRAY_LENGTH(builder->model->stacks))
            ok = make_stack(builder, name, stack, width);
    }
    return ok;
}

/* Finds the prefix of the names: what stands before the first layer's first module. */
static bool find_prefix(struct model_builder *builder)
{
    struct model_reader *reader = &builder->reader;
    const json_t *first = json_array_get(json_object_get(builder->entry, "modules"), 0);
    const char *path = json_string_value(json_object_get(first, "path"));
    char pattern[CHECKPOINT_PATH_MAX] = "", anchor[CHECKPOINT_PATH_MAX / 2];
    size_t start, number;
    if (path != NULL && module_anchor(json_object_get(first, "weights"), anchor, sizeof anchor)) {
        snprintf(pattern, sizeof pattern, "%.240s%s", path, anchor);
        for (size_t i = 0; i < reader->table.count; i++)
            if (architecture_fits(reader->table.tensors[i].name, pattern, &start, &number) &&
                architecture_is_within(builder->architecture, reader->table.tensors[i].name, start) &&
                start < sizeof reader->prefix) {
                snprintf(reader->prefix, sizeof reader->prefix, "%.*s", (int)start, reader->table.tensors[i].name);
                return true;
            }
    }
    char example[CHECKPOINT_PATH_MAX] = "";
    module_write_path(pattern, 0, example, sizeof example);
    return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL,
                        "no tensor of the checkpoint has a name that ends in %.120s", example);
}

/* ---- facts ---- */

static int64_t id_of(const struct model_reader *reader, const char *name)
{
    const json_t *value = json_object_get(reader->config, name);
    if (json_is_array(value)) /* eos_token_id of some models */
        value = json_array_get(value, 0);
    const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
    return id >= 0 && id <= ID_MAX ? (int64_t)id : -1;
}

static const char *copy_text(const struct model_reader *reader, const json_t *text)
{
    const char *value = json_string_value(text) != NULL ? json_string_value(text) : "";
    return attn_arena_copy_text(reader->arena, value, strlen(value));
}

/* The longest sequence of words: what the configuration says, and no more than there are positions. */
static bool find_longest(struct model_builder *builder, const json_t *template)
{
    struct checkpoint_model *model = builder->model;
    bool ok = model_count(&builder->reader, template, "longest", TOKENS_MAX, 0, &model->longest);
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_embedding *embedding = &model->stacks[i].embedding;
        const bool has_rows = embedding->positions.data != NULL && embedding->second_kernel.data == NULL;
        const size_t rows = has_rows ? embedding->positions.shape[0] - embedding->first : 0;
        if (rows > 0 && (model->longest == 0 || rows < model->longest))
            model->longest = rows;
    }
    return ok;
}

/* Bytes are two numbers of 4 bits; their scales are none. */
static size_t numbers_in(const struct safetensors_tensor *tensor)
{
    const bool is_packed = tensor->dtype == ATTN_U8 && strstr(tensor->name, "_blocks") != NULL;
    const bool is_scale = tensor->dtype == ATTN_U8 && strstr(tensor->name, "_scales") != NULL;
    const size_t count = tensor->bytes / attn_dtype_bytes(tensor->dtype);
    return is_packed ? 2 * count : is_scale ? 0 : count;
}

static bool find_facts(struct model_builder *builder, const json_t *template)
{
    const struct model_reader *reader = &builder->reader;
    struct checkpoint_model *model = builder->model;
    model->type = attn_arena_copy_text(reader->arena, builder->type, strlen(builder->type));
    model->architecture = copy_text(reader, json_array_get(json_object_get(reader->config, "architectures"), 0));
    model->pad_id = id_of(reader, "pad_token_id");
    model->end_id = id_of(reader, "eos_token_id");
    checkpoint_add_ends(json_object_get(reader->config, "eos_token_id"), model);
    model->decoder_start_id = id_of(reader, "decoder_start_token_id");
    model->starts_with_last = json_is_true(json_object_get(template, "starts_with_last"));
    model->copied_bytes = reader->table.copied_bytes;
    if (model->type == NULL || model->architecture == NULL)
        return outcome_no_memory(reader->outcome);
    for (size_t i = 0; i < reader->table.count; i++)
        if (reader->table.is_used[i]) {
            const struct safetensors_tensor *tensor = &reader->table.tensors[i];
            model->parameters += numbers_in(tensor);
            model->tensors++;
        }
    return find_longest(builder, template);
}

static bool fits_any(const json_t *patterns, const char *name)
{
    const json_t *pattern;
    size_t i, start, number;
    json_array_foreach((json_t *)(uintptr_t)patterns, i, pattern)
    {
        if (architecture_fits(name, json_string_value(pattern), &start, &number))
            return true;
    }
    return false;
}

/*
 * The end of the tensors from first on whose names begin with the same part, such as "v_head.". Names are sorted, so
 * these tensors are neighbours. *are_used: the model uses one of them.
 */
static size_t end_of_group(const struct tensor_table *table, size_t first, bool *are_used)
{
    const char *name = table->tensors[first].name;
    const size_t length = strcspn(name, ".") + 1; /* with the dot */
    size_t end = first;
    *are_used = false;
    do
        *are_used |= table->is_used[end++];
    while (end < table->count && strncmp(table->tensors[end].name, name, length) == 0);
    return end;
}

/* Notes a tensor of a head that is not run. All names live as long as the checkpoint. */
static void add_ignored(struct checkpoint_model *model, const char *name)
{
    if (model->ignored_count < MODEL_IGNORED_MAX)
        model->ignored[model->ignored_count++] = name;
}

/*
 * A tensor without a place would mean that the model computes something that attnd does not. A head behind the last layer
 * changes nothing before it: it is one of the known heads, or nothing that is used has the first part of its name.
 */
static bool check_left_over(struct model_builder *builder, const json_t *table)
{
    const struct tensor_table *tensors = &builder->reader.table;
    const json_t *const heads = json_object_get(table, "heads"), *const ignored = json_object_get(table, "ignored"),
                        *const own = json_object_get(json_object_get(builder->entry, "model"), "ignored"),
                        *const rest = json_object_get(builder->architecture->nested, "ignored");
    bool are_used = false;
    builder->model->ignored =
        attn_arena_take(builder->reader.arena, MODEL_IGNORED_MAX, sizeof *builder->model->ignored);
    if (builder->model->ignored == NULL)
        return outcome_no_memory(builder->reader.outcome);
    for (size_t i = 0, end = 0; i < tensors->count; i++) {
        const char *name = tensors->tensors[i].name;
        if (i == end)
            end = end_of_group(tensors, i, &are_used);
        if (tensors->is_used[i] || fits_any(ignored, name) || fits_any(own, name) || fits_any(rest, name))
            continue;
        if (are_used && !fits_any(heads, name))
            return outcome_fail(
                builder->reader.outcome, ATTN_ERR_VALUE, NULL,
                "the tensor %.150s has no place in a model of this kind: attnd would compute something else "
                "than the model does",
                name);
        add_ignored(builder->model, name);
    }
    return true;
}

static bool find_absent(struct model_builder *builder)
{
    struct checkpoint_model *model = builder->model;
    model->absent = attn_arena_take(builder->reader.arena, MODEL_IGNORED_MAX, sizeof *model->absent);
    if (model->absent == NULL)
        return outcome_no_memory(builder->reader.outcome);
    tensor_table_find_absent(&builder->reader.table, model->absent, MODEL_IGNORED_MAX, &model->absent_count,
                             builder->reader.outcome);
    return !outcome_has_failed(builder->reader.outcome);
}

/* ---- the head ---- */

/* The template for the ending of the architecture's name. NULL: there is none. */
static const json_t *find_ending(const json_t *templates, const char *architecture)
{
    const char *ending;
    json_t *template;
    json_object_foreach((json_t *)(uintptr_t)templates, ending, template)
    {
        if (text_ends(architecture, ending))
            return template;
    }
    return NULL;
}

/* Whether the architecture is named like those that end in a head of classes or scores, and not of words. */
static bool ends_in_classes(const char *architecture)
{
    static const char *const heads[] = {
        "Classification", "Classifier", "QuestionAnswering", "MultipleChoice", "NextSentencePrediction", "Regression",
        "Reward",         "Ranking"};
    bool ends = false;
    for (size_t i = 0; i < ARRAY_LENGTH(heads) && !ends; i++)
        ends = strstr(architecture, heads[i]) != NULL;
    return ends;
}

/*
 * The architecture decides first: a model that ends in classes may still share a matrix of words with its embedding,
 * which transformers then does not run. Images have no words, so their file decides.
 */
static bool make_head(struct model_builder *builder, const json_t *table, const json_t *template, size_t width)
{
    struct checkpoint_model *model = builder->model;
    struct model_reader *reader = &builder->reader;
    const attn_tensor *words = &model->stacks[model->stack_count - 1].embedding.words;
    const char *architecture = words->data != NULL
                                   ? json_tree_word(json_array_get(json_object_get(reader->config, "architectures"), 0))
                                   : "ForImageClassification";
    const json_t *head = NULL;
    if (architecture != NULL)
        head = find_ending(json_object_get(template, "classes"), architecture);
    if (architecture != NULL && head == NULL)
        head = find_ending(json_object_get(table, "classes"), architecture);
    const bool is_of_classes = head != NULL;
    const char *named = json_tree_word(json_array_get(json_object_get(reader->config, "architectures"), 0));
    model->has_unknown_classes = named != NULL && ends_in_classes(named);
    if (!is_of_classes && !model->has_unknown_classes)
        head = json_object_get(template, "head");
    if (model_reads_of(head) == MODEL_READS_BOTH)
        width *= 2;
    bool ok = model_read_head(reader, head, words, width, &model->head, &model->has_head);
    model->has_unknown_classes &= !model->has_head;
    return ok && (!is_of_classes || !model->has_head || model_read_classes(reader, head, &model->head));
}

/* ---- the model ---- */

static bool build(struct model_builder *builder, const json_t *table)
{
    const json_t *template = json_object_get(builder->entry, "model");
    size_t width = 0;
    bool ok = find_prefix(builder);
    ok = ok && make_stacks(builder, template, &width);
    ok = ok && make_head(builder, table, template, width);
    ok = ok && find_facts(builder, template);
    return ok && check_left_over(builder, table) && find_absent(builder);
}

static bool fail_type(const json_t *table, const char *type, const struct model_builder *builder)
{
    struct chunks types = chunks_begin(builder->reader.arena);
    architecture_write_types(table, "model", type, "it has ", &types);
    const char *text = chunks_join(&types);
    assert(builder->type != NULL);
    const bool is_nested = strcmp(type, builder->type) != 0;
    return outcome_fail(builder->reader.outcome, ATTN_ERR_VALUE, NULL,
                        "config.json: attnd cannot run models of model_type \"%.64s\"%s%.64s; %s", type,
                        is_nested ? ", which is within a " : "", is_nested ? builder->type : "",
                        text != NULL ? text : "others");
}

/* Makes all choices by the configuration, and builds the model by what is then left of the entry. */
static bool read_by(const struct architecture *architecture, json_t *config, struct model_builder *builder)
{
    struct outcome *outcome = builder->reader.outcome;
    json_t *entry = NULL;
    bool ok = architecture_complete(architecture, config, outcome);
    ok = ok && architecture_check(architecture, config, outcome);
    ok = ok && architecture_resolve(architecture, config, 0, architecture->entry, &entry, outcome);
    builder->architecture = architecture;
    builder->entry = entry;
    ok = ok && build(builder, architecture->table);
    json_decref(entry);
    return ok && (!json_tree_is_starved() || outcome_no_memory(outcome));
}

static bool fail_refused(const char *type, const char *what, const json_t *runs, struct outcome *outcome)
{
    char known[160] = "";
    json_t *name;
    size_t i, length = 0;
    json_array_foreach((json_t *)(uintptr_t)runs, i, name)
    {
        if (length < sizeof known)
            length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i > 0 ? ", " : "",
                                       json_string_value(name));
    }
    return outcome_fail(outcome, ATTN_ERR_VALUE, NULL,
                        "config.json: model_type is \"%s\", %s that attnd cannot run; it runs %s", type, what, known);
}

/* Reads the model of that type by its entry in the table. */
static bool read_type(const struct architecture *architecture, const char *type, json_t *config,
                      struct model_builder *builder)
{
    const json_t *runs;
    const char *what = architecture_refused(architecture->table, type, &runs);
    if (what != NULL)
        return fail_refused(type, what, runs, builder->reader.outcome);
    if (json_object_get(architecture->entry, "model") == NULL)
        return fail_type(architecture->table, type, builder);
    return read_by(architecture, config, builder);
}

attn_status checkpoint_read_model(struct checkpoint *checkpoint, attn_arena *arena, struct checkpoint_model *model,
                                  attn_error *err)
{
    struct outcome outcome = {.arena = arena, .err = err};
    struct model_builder builder = {.model = model, .reader = {.arena = arena, .outcome = &outcome}};
    attn_arena *trees = attn_arena_create_beside(arena);
    json_t *config = NULL;
    *model = (struct checkpoint_model){.stack_count = 0};
    if (trees == NULL)
        return attn_fail_no_memory(err);
    bool ok = checkpoint_load_json(checkpoint->config, "config.json", trees, &config, &outcome);
    ok = ok && tensor_table_open(&builder.reader.table, checkpoint->tensors, checkpoint->tensor_count, arena, &outcome);
    ok = ok && architecture_check_type(config, &outcome);
    const char *type = json_tree_word(json_object_get(config, "model_type"));
    builder.type = attn_arena_copy_text(trees, type != NULL ? type : "", type != NULL ? strlen(type) : 0);
    ok = ok && (builder.type != NULL || outcome_no_memory(&outcome));
    builder.reader.config = config;
    if (ok) {
        struct architecture architecture = architecture_open(config, trees);
        const char *part = json_tree_word(json_object_get(config, "model_type"));
        read_type(&architecture, part != NULL ? part : "", config, &builder);
        architecture_close(&architecture);
    }
    json_decref(config);
    attn_arena_destroy(trees);
    return outcome.status;
}
