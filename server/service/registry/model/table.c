/*
 * table.c: keeps the list of models in step with their folders.
 */
#include "service/registry/model/table.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "service/registry/model/files.h"
#include "service/registry/model/modules.h"

/* ---- the list ---- */

struct model_entry **model_table_place(struct models *models, const char *name, size_t length)
{
    struct model_entry **at = &models->entries;
    while (*at != NULL && strncmp((*at)->row.name, name, length) < 0)
        at = &(*at)->next;
    return at;
}

bool model_table_is(const struct model_entry *entry, const char *name, size_t length)
{
    return entry != NULL && strlen(entry->row.name) == length && memcmp(entry->row.name, name, length) == 0;
}

void model_entry_destroy(struct model_entry *entry)
{
    model_version_release(entry->row.version);
    model_version_release(entry->layers_of);
    free(entry->directory);
    free(entry);
}

bool model_table_add(struct models *models, struct text_span name, const char *directory, size_t length,
                     bool is_of_parent)
{
    struct model_entry *entry = calloc(1, sizeof *entry);
    char *copy = directory != NULL ? strndup(directory, length) : NULL;
    if (entry == NULL || (directory != NULL && copy == NULL)) {
        free(entry);
        free(copy);
        return false;
    }
    entry->row.state = MODEL_LOADING;
    snprintf(entry->row.name, sizeof entry->row.name, "%.*s", (int)name.length, name.at);
    entry->directory = copy;
    entry->is_of_parent = is_of_parent;
    pthread_mutex_lock(&models->lock);
    struct model_entry **place = model_table_place(models, name.at, name.length);
    entry->next = *place;
    *place = entry;
    pthread_mutex_unlock(&models->lock);
    return true;
}

bool model_table_can_be(struct text_span name)
{
    return name_is_valid(name.at, name.length, MODEL_NAME_MAX) && name.at[0] != '.';
}

/* ---- reading ---- */

/* *again: a file is being written to, and its stamp does not say when that ends. */
static attn_status read_files(const struct model_entry *entry, attn_budget *budget, struct model_version **version,
                              bool *again, attn_error *err)
{
    struct model_files files;
    *version = NULL;
    attn_status status = entry->directory != NULL ? model_files_open(&files, budget, entry->directory, err)
                                                  : demo_model_open(&files, budget, err);
    *again = files.is_written_to;
    if (status != ATTN_OK) {
        model_files_close(&files);
        return status;
    }
    status = model_version_create(entry->row.name, &files, version, err);
    if (*version == NULL || !model_version_is_overwritten(*version))
        return status;
    model_version_release(*version);
    *version = NULL;
    *again = true;
    return attn_fail(err, ATTN_ERR_VALUE, NULL, "a file was written to while it was read");
}

/* Reads the model. Of one that does not fit into the memory of models, the message says how much is missing. */
static attn_status read_model(struct model_entry *entry, attn_budget *budget, struct model_version **version,
                              bool *again, attn_error *err)
{
    enum { MB = 1000 * 1000 };
    entry->needed_bytes = 0;
    if (budget == NULL)
        return read_files(entry, NULL, version, again, err);
    const size_t others = attn_budget_bytes(budget), room = attn_budget_room_bytes(budget);
    (void)attn_budget_refused_bytes(budget);
    attn_status status = read_files(entry, budget, version, again, err);
    const size_t refused = attn_budget_refused_bytes(budget);
    attn_budget_trim(budget);
    if (status != ATTN_ERR_NO_MEMORY || refused <= others)
        return status;
    entry->needed_bytes = refused - others;
    return attn_fail(err, status, NULL,
                     "it needs more than %zu MB, has room for %zu MB; a larger --memory gives models more room",
                     entry->needed_bytes / MB, room / MB);
}

static void say_model(const struct models *models, const struct model_entry *entry)
{
    struct log_line line;
    const struct model_version *version = entry->row.version;
    const bool is_well = entry->row.reason[0] == '\0';
    log_begin(&line, models->log, is_well ? LOG_INFO : LOG_ERROR, "model");
    log_text(&line, "name", entry->row.name);
    if (entry->directory != NULL)
        log_text(&line, "directory", entry->directory);
    if (is_well && version != NULL) {
        log_text(&line, "type", version->model.type);
        log_count(&line, "parameters", version->model.parameters);
    }
    if (!is_well)
        log_text(&line, version != NULL ? "broken_but_served" : "broken", entry->row.reason);
    log_end(&line);
    if (version != NULL && version->tokenizer_reason[0] != '\0')
        log_say(models->log, LOG_WARN, "the model %s is served without a tokenizer: %s", entry->row.name,
                version->tokenizer_reason);
}

/* Keeps the layers of the version instead of those of an earlier one. version NULL: of none. */
static void keep_layers(struct models *models, struct model_entry *entry, struct model_version *version)
{
    struct layer_keeper *layers = models->settings.layers;
    if (layers == NULL)
        return;
    const size_t missing = version != NULL ? model_layers_adopt(layers, version) : 0; /* no name is absent meanwhile */
    if (entry->layers_of != NULL)
        model_layers_drop(layers, entry->layers_of);
    model_version_release(entry->layers_of);
    entry->layers_of = version != NULL ? model_version_keep(version) : NULL;
    if (missing > 0)
        log_say(models->log, LOG_WARN, "%zu attention modules of the model %s cannot be layers", missing,
                entry->row.name);
}

/* Puts the version, or the reason why there is none, into the list. Takes over the reference. */
static void install(struct models *models, struct model_entry *entry, struct model_version *version, const char *reason)
{
    struct model_version *old = version;
    const bool is_runnable = version != NULL && version->is_runnable;
    if (version != NULL && (is_runnable || entry->row.version == NULL))
        keep_layers(models, entry, version);
    pthread_mutex_lock(&models->lock);
    if (is_runnable) {
        old = entry->row.version;
        entry->row.version = version;
    }
    entry->row.state = entry->row.version != NULL ? MODEL_READY : MODEL_BROKEN;
    snprintf(entry->row.reason, sizeof entry->row.reason, "%.*s", MODEL_REASON_MAX - 1, reason);
    pthread_mutex_unlock(&models->lock);
    model_version_release(old);
    say_model(models, entry);
}

static bool is_overwritten(const struct model_entry *entry)
{
    return entry->row.version != NULL && model_version_is_overwritten(entry->row.version);
}

/*
 * The numbers of a file that was written to in place changed, so its version cannot be served any longer. Its layers
 * stay until there are others: they know that they are overwritten, and refuse.
 */
static void drop_overwritten(struct models *models, struct model_entry *entry)
{
    struct model_version *old = entry->row.version;
    if (!is_overwritten(entry))
        return;
    pthread_mutex_lock(&models->lock);
    entry->row.version = NULL;
    entry->row.state = MODEL_LOADING;
    pthread_mutex_unlock(&models->lock);
    model_version_release(old);
}

/* Whether a model that did not fit into the memory may fit now. */
static bool may_fit_now(const struct models *models, const struct model_entry *entry)
{
    return entry->needed_bytes > 0 && attn_budget_room_bytes(models->settings.budget) > entry->needed_bytes;
}

/* Reads the model again when its files changed, or when there is room for it now. */
static void look_at(struct models *models, struct model_entry *entry)
{
    attn_error err = {.status = ATTN_OK};
    struct model_version *version;
    const uint64_t stamp = entry->directory != NULL ? model_files_stamp(entry->directory) : 0;
    if (stamp == entry->stamp && entry->row.state != MODEL_LOADING && !is_overwritten(entry) &&
        !may_fit_now(models, entry))
        return;
    drop_overwritten(models, entry);
    bool again;
    const attn_status status = read_model(entry, models->settings.budget, &version, &again, &err);
    entry->stamp = again ? 0 : stamp;
    install(models, entry, version, status == ATTN_OK ? "" : err.message);
}

/* ---- the parent folder ---- */

/* Whether a layer has the name, or the server itself. */
static bool is_taken(const struct models *models, const char *name)
{
    struct layer_row row = {.state = LAYER_ABSENT};
    if (models->settings.layers != NULL)
        layer_store_look(layer_keeper_store(models->settings.layers), name, &row);
    layer_version_release(row.version);
    return row.state != LAYER_ABSENT || strcmp(name, "attention") == 0 || strcmp(name, "stats") == 0;
}

/* Says once how many folders have names that models cannot have. */
static void say_misnamed(struct models *models, size_t count, const char *example)
{
    struct log_line line;
    if (count > models->misnamed) {
        log_begin(&line, models->log, LOG_WARN,
                  "folders are no models because of their names: a name has 1 to 64 letters, digits, dots, underscores "
                  "and hyphens, and is no kept layer's, not attention and not stats");
        log_count(&line, "folders", count);
        log_text(&line, "one_of_them", example);
        log_end(&line);
    }
    models->misnamed = count;
}

int model_table_find(struct models *models)
{
    const char *parent = models->settings.parent;
    DIR *directory = parent != NULL ? opendir(parent) : NULL;
    const struct dirent *found;
    char path[4096], example[sizeof found->d_name] = "";
    size_t misnamed = 0;
    if (parent == NULL)
        return 0;
    if (directory == NULL)
        return errno;
    while ((found = readdir(directory)) != NULL) {
        const struct text_span name = text_span_of(found->d_name);
        const int length = snprintf(path, sizeof path, "%s/%s", parent, found->d_name);
        if (found->d_name[0] == '.' || length >= (int)sizeof path ||
            model_table_is(*model_table_place(models, name.at, name.length), name.at, name.length) ||
            model_files_stamp(path) == 0)
            continue;
        if (!model_table_can_be(name) || (models->is_open && is_taken(models, found->d_name))) {
            misnamed++;
            text_copy(example, sizeof example, found->d_name);
        } else if (!model_table_add(models, name, path, (size_t)length, true))
            log_say(models->log, LOG_ERROR, "no memory for the model %s", found->d_name);
    }
    closedir(directory);
    say_misnamed(models, misnamed, example);
    return 0;
}

static void drop_gone(struct models *models)
{
    for (struct model_entry **at = &models->entries; *at != NULL;) {
        struct model_entry *entry = *at;
        if (!entry->is_of_parent || model_files_stamp(entry->directory) != 0) {
            at = &entry->next;
            continue;
        }
        pthread_mutex_lock(&models->lock);
        *at = entry->next;
        pthread_mutex_unlock(&models->lock);
        log_say(models->log, LOG_INFO, "the folder of the model %s is gone", entry->row.name);
        keep_layers(models, entry, NULL);
        model_entry_destroy(entry);
    }
}

void model_table_look(struct models *models)
{
    (void)model_table_find(models);
    drop_gone(models);
    for (struct model_entry *entry = models->entries; entry != NULL; entry = entry->next)
        look_at(models, entry);
}
