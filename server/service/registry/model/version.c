/* version.c: makes and releases one version of a model, and keeps its attention modules as layers. */
#include "service/registry/model/version.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/outcome.h"
#include "service/registry/layer/version.h"
#include "service/registry/model/folder.h"

static void destroy(struct version *self)
{
    struct model_version *version = (struct model_version *)self;
    for (size_t i = 0; version->slots != NULL && i < version->model.slots; i++)
        prepared_slot_clear(&version->slots[i]);
    prepared_slot_clear(&version->head_slot);
    free(version->slots);
    model_files_close(&version->files);
    free(version);
}

static bool look(struct version *self)
{
    return model_files_are_overwritten(&((struct model_version *)self)->files);
}

static const char *known_name(struct version *self, char text[DIGEST_TEXT])
{
    (void)self;
    text_copy(text, DIGEST_TEXT, "1");
    return text;
}

static void say_unread(struct model_version *version)
{
    const int outcome = version->files.tokenizer_outcome;
    char text[128];
    if (version->files.tokenizer_failure != NULL)
        text_copy(version->tokenizer_reason, sizeof version->tokenizer_reason, version->files.tokenizer_failure);
    else if (outcome != ENOENT)
        snprintf(version->tokenizer_reason, sizeof version->tokenizer_reason, "%s: %s", MODEL_FILES_TOKENIZER,
                 strerror_r(outcome, text, sizeof text));
}

/* Makes the text of a tokenizer.json of the files of a slow tokenizer. */
static attn_status convert_slow(const struct slow_files *files, attn_arena *arena, struct text_span *text,
                                attn_error *err)
{
    for (size_t i = 0; i < SLOW_FILES; i++)
        if (files->files[i].name != NULL &&
            model_folder_check_text(files->files[i].name, files->files[i].text, err) != ATTN_OK)
            return err->status;
    return slow_convert(files, arena, text, err);
}

/* A Marian's targets have pieces of their own. */
static attn_status read_target_tokenizer(struct model_version *version, attn_arena *scratch, attn_error *err)
{
    struct slow_files files;
    struct text_span text = {NULL, 0};
    version->lacks_target = slow_lacks_target(&version->files.slow);
    if (!slow_has_target(&version->files.slow, &files))
        return ATTN_OK;
    const attn_status status = convert_slow(&files, scratch, &text, err);
    return status == ATTN_OK ? tokenizer_load_slow(text, version->files.arena, scratch, &version->target_tokenizer, err)
                             : status;
}

static attn_status read_slow_tokenizer(struct model_version *version, attn_arena *scratch, attn_error *err)
{
    const struct slow_files *files = &version->files.slow;
    struct text_span text = {NULL, 0};
    if (convert_slow(files, scratch, &text, err) != ATTN_OK ||
        model_files_name(tokenizer_load_slow(text, version->files.arena, scratch, &version->tokenizer, err),
                         slow_vocabulary_name(files), err) != ATTN_OK)
        return err->status;
    return read_target_tokenizer(version, scratch, err);
}

static attn_status read_tokenizer(struct model_version *version, attn_arena *scratch, attn_error *err)
{
    const struct model_files *files = &version->files;
    const struct text_span text = files->tokenizer;
    if (text.at == NULL)
        return read_slow_tokenizer(version, scratch, err);
    if (model_folder_check_text(files->tokenizer_name, text, err) != ATTN_OK)
        return err->status;
    return model_files_name(
        tokenizer_load(text.at, text.length, version->files.arena, scratch, &version->tokenizer, err),
        files->tokenizer_name, err);
}

/* The model is served without a tokenizer that cannot be used. One that does not fit into the memory is a failure. */
static attn_status load_tokenizer(struct model_version *version, attn_error *failure)
{
    attn_error err = {.message = "no memory for the tokenizer"};
    if (version->files.tokenizer.at == NULL && slow_vocabulary_name(&version->files.slow) == NULL) {
        say_unread(version);
        return ATTN_OK;
    }
    attn_arena *arena = version->files.arena, *scratch = attn_arena_create_beside(arena);
    const attn_arena_mark mark = attn_arena_mark_here(arena);
    const size_t before = attn_arena_bytes(arena);
    const attn_status status = scratch != NULL ? read_tokenizer(version, scratch, &err) : ATTN_ERR_NO_MEMORY;
    attn_arena_destroy(scratch);
    if (status == ATTN_OK) {
        version->tokenizer_bytes = attn_arena_bytes(arena) - before;
        return ATTN_OK;
    }
    version->tokenizer = version->target_tokenizer = NULL;
    attn_arena_release(arena, mark);
    snprintf(version->tokenizer_reason, sizeof version->tokenizer_reason, "%.*s", REGISTRY_REASON_MAX - 1, err.message);
    return status == ATTN_ERR_NO_MEMORY ? attn_fail(failure, status, NULL, "%s", err.message) : ATTN_OK;
}

/* A pooling that cannot run is no failure: it has a reason, which a request for it gets. */
static attn_status load_pooling(struct model_version *version, attn_error *err)
{
    const struct {
        const char *name;
        struct text_span text;
    } files[] = {{MODEL_FILES_MODULES, version->files.modules}, {MODEL_FILES_POOLING, version->files.pooling}};
    attn_error why = {.status = ATTN_OK};
    for (size_t i = 0; i < ARRAY_LENGTH(files); i++)
        if (files[i].text.at != NULL && model_folder_check_text(files[i].name, files[i].text, &why) != ATTN_OK) {
            text_copy(version->pooling.reason, sizeof version->pooling.reason, why.message);
            return ATTN_OK;
        }
    attn_arena *scratch = attn_arena_create_beside(version->files.arena);
    if (scratch == NULL)
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the pooling of the model");
    const attn_status status =
        checkpoint_read_pooling(version->files.modules, version->files.pooling, scratch, &version->pooling, err);
    attn_arena_destroy(scratch);
    return status;
}

/* Finds the attention modules. A model of a kind without any has no layers. */
static attn_status find_layers(struct model_version *version, attn_error *err)
{
    const struct text_span none = {NULL, 0};
    attn_error why = {.status = ATTN_OK};
    bool is_unknown;
    const attn_status status = checkpoint_find_layers(&version->files.checkpoint, none, version->files.arena,
                                                      &version->layers, &is_unknown, &why);
    if (status != ATTN_OK)
        version->layers = (struct checkpoint_layers){NULL, 0};
    return status == ATTN_ERR_NO_MEMORY ? attn_fail(err, status, NULL, "%s", why.message) : ATTN_OK;
}

static bool make_slots(struct model_version *version, struct outcome *outcome)
{
    version->slots = calloc(version->model.slots + 1, sizeof *version->slots);
    if (version->slots == NULL)
        return outcome_fail(outcome, ATTN_ERR_NO_MEMORY, NULL, "no memory for the model");
    version->head_slot.keeps_halves = version->files.checkpoint.is_widened;
    for (size_t i = 0; i < version->model.slots; i++)
        version->slots[i].keeps_halves = version->files.checkpoint.is_widened;
    return true;
}

attn_status model_version_create(const char *name, struct model_files *files, struct model_version **version,
                                 attn_error *err)
{
    static const struct version_kind kind = {KIND_MODEL, destroy, look, known_name};
    struct model_version *made = calloc(1, sizeof *made);
    *version = NULL;
    if (made == NULL) {
        model_files_close(files);
        return attn_fail(err, ATTN_ERR_NO_MEMORY, NULL, "no memory for the model");
    }
    version_init(&made->common, &kind, name);
    version_fix(&made->common);
    made->files = *files;
    struct outcome outcome = {.arena = made->files.arena, .err = err};
    made->is_runnable =
        outcome_note(&outcome, checkpoint_read_model(&made->files.checkpoint, outcome.arena, &made->model, err));
    if (strcmp(files->tokenizer_name, MODEL_FILES_TOKENIZER) != 0) /* of a GGUF file */
        text_replace(err->message, sizeof err->message, "config.json", "the metadata");
    if (outcome.status != ATTN_ERR_NO_MEMORY && find_layers(made, err) != ATTN_OK)
        outcome.status = ATTN_ERR_NO_MEMORY; /* which counts more than a model that cannot run */
    const bool has_tokenizer = !outcome_has_failed(&outcome) && make_slots(made, &outcome) &&
                               outcome_note(&outcome, load_tokenizer(made, err));
    model_files_rest(&made->files);
    const bool is_whole = has_tokenizer && outcome_note(&outcome, load_pooling(made, err)) &&
                          outcome_note(&outcome, checkpoint_read_generation(made->files.generation, &made->model,
                                                                            outcome.arena, &made->alignment, err));
    if (is_whole || (!made->is_runnable && outcome.status != ATTN_ERR_NO_MEMORY && made->layers.count > 0))
        *version = made;
    else
        destroy(&made->common);
    return outcome.status;
}

/* ---- its attention modules as layers ---- */

/* The name of the layer. False: a layer cannot have such a name. */
static bool name_module(const struct model_version *version, const struct checkpoint_layer *layer,
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
    made->prepared.keeps_halves = version->files.checkpoint.is_widened;
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
        if (!name_module(version, &version->layers.items[i], name))
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
        if (name_module(version, &version->layers.items[i], name))
            registry_remove_fixed(registry, name, &version->common);
    }
    registry_end_change(registry);
}
