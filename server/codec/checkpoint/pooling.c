/* pooling.c: reads the modules that sentence-transformers runs behind a model. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "codec/bytes/outcome.h"
#include "codec/checkpoint/description.h"
#include "codec/json/tree.h"

static const char MODULES[] = "modules.json", CONFIG[] = "1_Pooling/config.json", FOLDER[] = "1_Pooling";

static attn_status load(struct text_span text, const char *name, attn_arena *arena, json_t **tree,
                        struct model_pooling *pooling, attn_error *err)
{
    json_error_t error;
    *tree = text.length > 0 ? json_tree_load(text.at, text.length, arena, &error) : NULL;
    if (*tree == NULL && text.length > 0 && json_tree_is_starved())
        return attn_fail_no_memory(err);
    if (*tree == NULL)
        snprintf(pooling->reason, sizeof pooling->reason, "%s is no JSON", name);
    return ATTN_OK;
}

/* "Pooling" of "sentence_transformers.models.Pooling". */
static const char *class_of(const json_t *module)
{
    const char *type = json_tree_word(json_object_get(module, "type"));
    const char *dot = type != NULL ? strrchr(type, '.') : NULL;
    return dot != NULL ? dot + 1 : type != NULL ? type : "";
}

/* One module behind the other: a model, its pooling, and nothing or a normalisation. */
static void read_modules(const json_t *modules, struct model_pooling *pooling)
{
    static const char *const known[] = {"Transformer", "Pooling", "Normalize"};
    const size_t count = json_array_size(modules);
    for (size_t i = 0; i < count; i++) {
        const json_t *module = json_array_get(modules, i);
        const char *name = class_of(module), *path = json_tree_word(json_object_get(module, "path"));
        if (i >= ARRAY_LENGTH(known) || strcmp(name, known[i]) != 0) {
            snprintf(
                pooling->reason, sizeof pooling->reason,
                "%s has the module %.80s at place %zu; attnd runs Transformer, Pooling and Normalize, in this order",
                MODULES, name, i);
            return;
        }
        if (i == 1 && (path == NULL || strcmp(path, FOLDER) != 0)) {
            snprintf(pooling->reason, sizeof pooling->reason, "%s has the pooling at %.80s; expected %s", MODULES,
                     path != NULL ? path : "no path", FOLDER);
            return;
        }
    }
    if (count < 2)
        snprintf(pooling->reason, sizeof pooling->reason, "%s is no list of a Transformer and a Pooling", MODULES);
    pooling->normalizes = count == ARRAY_LENGTH(known);
}

/* Older files have a member for each mode, newer ones the name of one. */
static void read_mode(const json_t *config, struct model_pooling *pooling)
{
    static const struct {
        const char *member, *name;
        attn_pooling pool;
    } modes[] = {{"pooling_mode_cls_token", "cls", ATTN_POOL_FIRST},
                 {"pooling_mode_mean_tokens", "mean", ATTN_POOL_MEAN},
                 {"pooling_mode_max_tokens", "max", ATTN_POOL_MAX},
                 {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", ATTN_POOL_MEAN_SQRT},
                 {"pooling_mode_weightedmean_tokens", "weightedmean", ATTN_POOL_WEIGHTED},
                 {"pooling_mode_lasttoken", "lasttoken", ATTN_POOL_LAST}};
    const char *named = json_tree_word(json_object_get(config, "pooling_mode"));
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(modes); i++) {
        if (!json_is_true(json_object_get(config, modes[i].member)) &&
            (named == NULL || strcmp(named, modes[i].name) != 0))
            continue;
        pooling->pool = modes[i].pool;
        count++;
    }
    if (count != 1)
        snprintf(pooling->reason, sizeof pooling->reason,
                 "%s asks for %zu modes of pooling; attnd runs one of %s, %s, "
                 "%s, %s, %s, %s",
                 CONFIG, count, modes[0].name, modes[1].name, modes[2].name, modes[3].name, modes[4].name,
                 modes[5].name);
}

attn_status checkpoint_read_pooling(struct text_span modules, struct text_span config, attn_arena *arena,
                                    struct model_pooling *pooling, attn_error *err)
{
    json_t *tree = NULL;
    attn_status status = ATTN_OK;
    *pooling = (struct model_pooling){.is_there = false};
    if (modules.at != NULL)
        status = load(modules, MODULES, arena, &tree, pooling, err);
    if (tree != NULL)
        read_modules(tree, pooling);
    json_decref(tree);
    if (status != ATTN_OK || pooling->reason[0] != '\0' || config.at == NULL) {
        if (status == ATTN_OK && config.at == NULL && modules.at != NULL && pooling->reason[0] == '\0')
            snprintf(pooling->reason, sizeof pooling->reason, "there is no %s", CONFIG);
        return status;
    }
    status = load(config, CONFIG, arena, &tree, pooling, err);
    if (tree != NULL)
        read_mode(tree, pooling);
    pooling->is_there = tree != NULL && pooling->reason[0] == '\0';
    json_decref(tree);
    return status;
}
