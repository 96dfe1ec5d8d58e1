/* stack.c: describes a stack of a model: its embedding, its blocks, its norm. */
#include "codec/checkpoint/stack.h"

#include <stdio.h>
#include <string.h>

#include "codec/checkpoint/module.h"

enum { LAYERS_MAX = 4096 };

/* ---- blocks ---- */

/* Checks that the block can run, as kept layers are checked. */
static bool check_block(struct model_builder *builder, struct model_block *block)
{
    attn_arena *arena = builder->reader.arena;
    struct outcome *outcome = builder->reader.outcome;
    attn_error why = {.message = ""};
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    const attn_status status = kept_layer_check(&block->source, arena, &block->facts, &why);
    attn_arena_release(arena, mark);
    return status == ATTN_OK || outcome_fail(outcome, status, NULL, "%.100s: %.250s", block->path, why.message);
}

/* What a module and its text make of one block. The text of a model's block may have members that no client can send. */
static bool finish_block(struct model_builder *builder, const struct module *module, json_t *request,
                         struct model_block *block)
{
    attn_arena *arena = builder->reader.arena;
    struct outcome *outcome = builder->reader.outcome;
    struct envelope_attachment *attachments = attn_arena_take(arena, module->count, sizeof *attachments);
    char *text = json_dumps(request, JSON_COMPACT);
    const size_t length = text != NULL ? strlen(text) : 0;
    block->source = (struct envelope_source){
        .attachments = attachments, .count = module->count, .length = length, .is_of_model = true};
    block->source.text = text != NULL ? attn_arena_copy_text(arena, text, length) : NULL;
    block->path = attn_arena_copy_text(arena, module->path, strlen(module->path));
    json_tree_give_text(text);
    if (attachments == NULL || block->source.text == NULL || block->path == NULL)
        return outcome_no_memory(outcome);
    for (size_t i = 0; i < module->count; i++)
        attachments[i] = (struct envelope_attachment){module->entries[i].name, module->entries[i].tensor};
    return check_block(builder, block);
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

static bool make_block(struct model_builder *builder, json_t *template, size_t number, struct model_stack *stack)
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
    drop_overridden(own, overlay);
    bool ok = module_add(&module, own, module.path, request);
    ok = ok && module_add(&module, (json_t *)(uintptr_t)overlay, module.layer, request);
    ok = ok && finish_block(builder, &module, request, block);
    block->is_cross = json_is_true(json_object_get(overlay, "cross"));
    block->slot = builder->model->slots++;
    stack->is_causal |= !block->is_cross && json_is_true(json_object_get(json_object_get(request, "masks"), "causal"));
    stack->block_count++;
    json_decref(own);
    json_decref(request);
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
            ok = make_block(builder, module, n * groups / stack->layers, stack);
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

bool model_make_stack(struct model_builder *builder, const char *name, const json_t *template, size_t *width)
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
