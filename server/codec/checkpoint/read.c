/* read.c: describes a whole model: its stacks, its head, and facts about it. */
#include "codec/checkpoint/read.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/checkpoint/architecture.h"
#include "codec/checkpoint/module.h"
#include "codec/checkpoint/stack.h"
#include "codec/json/tree.h"

enum { TOKENS_MAX = 1 << 30, ID_MAX = 1 << 30 };

/* ---- stacks ---- */

static bool make_stacks(struct model_builder *builder, const json_t *template, size_t *width)
{
    json_t *stacks = json_object_get(template, "stacks"), *stack;
    const char *name;
    bool ok = true;
    json_object_foreach(stacks, name, stack)
    {
        if (ok && builder->model->stack_count < ARRAY_LENGTH(builder->model->stacks))
            ok = model_make_stack(builder, name, stack, width);
    }
    return ok;
}

/* Finds the prefix of the names: what stands before the first layer's first module. */
static bool find_prefix(struct model_builder *builder)
{
    struct model_reader *reader = &builder->reader;
    const json_t *first = json_array_get(json_object_get(builder->entry, "modules"), 0);
    const char *path = json_string_value(json_object_get(first, "path"));
    char pattern[CHECKPOINT_PATH_MAX], anchor[CHECKPOINT_PATH_MAX / 2];
    size_t start, number;
    if (path != NULL && module_anchor(json_object_get(first, "weights"), anchor, sizeof anchor)) {
        snprintf(pattern, sizeof pattern, "%.240s%s", path, anchor);
        for (size_t i = 0; i < reader->table.count; i++)
            if (architecture_fits(reader->table.tensors[i].name, pattern, &start, &number) &&
                start < sizeof reader->prefix) {
                snprintf(reader->prefix, sizeof reader->prefix, "%.*s", (int)start, reader->table.tensors[i].name);
                return true;
            }
    }
    return outcome_fail(reader->outcome, ATTN_ERR_VALUE, NULL, "no tensor of the checkpoint is called like %.120s",
                        pattern);
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

/* The longest sequence: what the configuration says, and no more than there are positions. */
static bool find_longest(struct model_builder *builder, const json_t *template)
{
    struct checkpoint_model *model = builder->model;
    bool ok = model_count(&builder->reader, template, "longest", TOKENS_MAX, 0, &model->longest);
    for (size_t i = 0; i < model->stack_count; i++) {
        const struct model_embedding *embedding = &model->stacks[i].embedding;
        const size_t rows = embedding->positions.data != NULL ? embedding->positions.shape[0] - embedding->first : 0;
        if (rows > 0 && (model->longest == 0 || rows < model->longest))
            model->longest = rows;
    }
    return ok;
}

static bool find_facts(struct model_builder *builder, const json_t *template)
{
    const struct model_reader *reader = &builder->reader;
    struct checkpoint_model *model = builder->model;
    model->type = copy_text(reader, json_object_get(reader->config, "model_type"));
    model->architecture = copy_text(reader, json_array_get(json_object_get(reader->config, "architectures"), 0));
    model->pad_id = id_of(reader, "pad_token_id");
    model->decoder_start_id = id_of(reader, "decoder_start_token_id");
    model->copied_bytes = reader->table.copied_bytes;
    if (model->type == NULL || model->architecture == NULL)
        return outcome_no_memory(reader->outcome);
    for (size_t i = 0; i < reader->table.count; i++)
        if (reader->table.is_used[i]) {
            const struct safetensors_tensor *tensor = &reader->table.tensors[i];
            model->parameters += tensor->bytes / attn_dtype_bytes(tensor->dtype);
            model->tensors++;
        }
    return find_longest(builder, template);
}

/* A tensor without a place would mean that the model computes something that attnd does not. */
static bool check_left_over(const struct model_builder *builder, const json_t *table)
{
    const struct model_reader *reader = &builder->reader;
    const json_t *const lists[] = {json_object_get(table, "ignored"),
                                   json_object_get(json_object_get(builder->entry, "model"), "ignored")};
    for (size_t i = 0; i < reader->table.count; i++) {
        bool may_be = reader->table.is_used[i];
        size_t start, number;
        for (size_t l = 0; l < ARRAY_LENGTH(lists); l++)
            for (size_t p = 0; p < json_array_size(lists[l]) && !may_be; p++)
                may_be = architecture_fits(reader->table.tensors[i].name,
                                           json_string_value(json_array_get(lists[l], p)), &start, &number);
        if (!may_be)
            return outcome_fail(
                reader->outcome, ATTN_ERR_VALUE, NULL,
                "the tensor %.150s has no place in a model of this kind: attnd would compute something else "
                "than the model does",
                reader->table.tensors[i].name);
    }
    return true;
}

/*
 * Whether the architecture ends in a head of classes or scores. Its decoder may still share a matrix of words with the
 * embedding, whose logits are not the model's answer. The classes of images have a template of their own.
 */
static bool ends_in_classes(const struct checkpoint_model *model)
{
    static const char *const heads[] = {
        "Classification", "Classifier", "QuestionAnswering", "MultipleChoice", "NextSentencePrediction", "Regression",
        "Reward",         "Ranking"};
    bool ends = false;
    for (size_t i = 0; i < ARRAY_LENGTH(heads) && !ends; i++)
        ends = strstr(model->architecture, heads[i]) != NULL;
    return ends && model->stacks[0].embedding.words.data != NULL;
}

/* ---- the model ---- */

static bool build(struct model_builder *builder, const json_t *table)
{
    const json_t *template = json_object_get(builder->entry, "model");
    struct checkpoint_model *model = builder->model;
    size_t width = 0;
    bool ok = find_prefix(builder);
    ok = ok && make_stacks(builder, template, &width);
    ok = ok && model_read_head(&builder->reader, json_object_get(template, "head"), &model->stacks[0].embedding.words,
                               width, &model->head, &model->has_head);
    ok = ok && find_facts(builder, template);
    if (ok) {
        model->has_classes = ends_in_classes(model);
        model->has_head = model->has_head && !model->has_classes;
    }
    return ok && check_left_over(builder, table);
}

static bool fail_type(const json_t *table, const char *type, attn_arena *arena, struct outcome *outcome)
{
    struct chunks types = chunks_begin(arena);
    architecture_write_types(table, "model", &types);
    const char *text = chunks_join(&types);
    return outcome_fail(outcome, ATTN_ERR_VALUE, NULL,
                        "config.json: attnd cannot run models of model_type \"%.64s\"; it has %s", type,
                        text != NULL ? text : "others");
}

/* Makes all choices by the configuration, and builds the model by what is then left of the entry. */
static bool read_by(const struct architecture *architecture, json_t *config, struct model_builder *builder)
{
    struct outcome *outcome = builder->reader.outcome;
    json_t *entry = NULL;
    bool ok = architecture_complete(architecture, config, outcome);
    ok = ok && architecture_check(architecture, config, outcome);
    ok = ok && architecture_resolve(architecture, config, architecture->entry, &entry, outcome);
    builder->entry = entry;
    ok = ok && build(builder, architecture->table);
    json_decref(entry);
    return ok;
}

/* Reads the model of that type by its entry in the table. */
static bool read_type(const struct architecture *architecture, const char *type, json_t *config,
                      struct model_builder *builder)
{
    const char *what = architecture_refused(architecture->table, type);
    if (what != NULL)
        return outcome_fail(builder->reader.outcome, ATTN_ERR_VALUE, NULL,
                            "config.json: model_type is \"%s\", %s, and attnd does not run such models", type, what);
    if (json_object_get(architecture->entry, "model") == NULL)
        return fail_type(architecture->table, type, builder->reader.arena, builder->reader.outcome);
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
    bool ok =
        checkpoint_load_json(checkpoint->config, checkpoint->config_length, "config.json", trees, &config, &outcome);
    ok = ok && tensor_table_open(&builder.reader.table, checkpoint->tensors, checkpoint->tensor_count, arena, &outcome);
    const char *type = json_tree_word(json_object_get(config, "model_type"));
    builder.reader.config = config;
    if (ok) {
        struct architecture architecture = architecture_open(type != NULL ? type : "", trees);
        read_type(&architecture, type != NULL ? type : "", config, &builder);
        architecture_close(&architecture);
    }
    json_decref(config);
    attn_arena_destroy(trees);
    return outcome.status;
}
