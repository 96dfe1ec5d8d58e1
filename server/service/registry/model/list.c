/* list.c: opens the models of the settings, keeps them in step with their folders, and finds models for requests. */
#include "service/registry/model/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/files.h"

struct folder {
    char name[MODEL_NAME_MAX + 1];
    char *directory;                 /* NULL: the model is part of the program */
    bool is_of_parent;               /* the folder was found in the parent, and its model goes with it */
    struct model_version *layers_of; /* a reference to the version whose layers are kept */
    uint64_t stamp;                  /* of the files that were read last */
    size_t needed_bytes;             /* the least memory that these files need, if they did not fit; else 0 */
    double read_ms;                  /* that the last reading took */
    struct folder *next;
};

/* Only the thread that reads models uses the folders. What requests see of a model is in the registry. */
struct models {
    struct models_settings settings;
    const struct log *log;
    struct folder *folders; /* in the order of names */
    size_t misnamed;        /* folders of the parent that are no models because of their names */
    bool is_open; /* models are being read: names of new folders were not checked with all others at the start */
    struct watch watch;
};

/* ---- the folders ---- */

static struct folder *find_folder(const struct models *models, struct text_span name)
{
    struct folder *folder = models->folders;
    while (folder != NULL && !text_equal(name, folder->name))
        folder = folder->next;
    return folder;
}

static void destroy_folder(struct folder *folder)
{
    model_version_release(folder->layers_of);
    free(folder->directory);
    free(folder);
}

/* Adds a model that is not read yet; directory NULL: that of the program. False without memory. */
static bool add_folder(struct models *models, struct text_span name, const char *directory, size_t length,
                       bool is_of_parent)
{
    struct folder *folder = calloc(1, sizeof *folder);
    char *copy = directory != NULL ? strndup(directory, length) : NULL;
    if (folder == NULL || (directory != NULL && copy == NULL)) {
        free(folder);
        free(copy);
        return false;
    }
    snprintf(folder->name, sizeof folder->name, "%.*s", (int)name.length, name.at);
    folder->directory = copy;
    folder->is_of_parent = is_of_parent;
    if (!registry_note(models->settings.registry, KIND_MODEL, folder->name, &(struct file_identity){0}, NULL)) {
        destroy_folder(folder);
        return false;
    }
    struct folder **place = &models->folders;
    while (*place != NULL && strcmp((*place)->name, folder->name) < 0)
        place = &(*place)->next;
    folder->next = *place;
    *place = folder;
    return true;
}

static bool can_name_model(struct text_span name)
{
    return text_is_name(name.at, name.length, MODEL_NAME_MAX) && name.at[0] != '.';
}

/* ---- reading ---- */

/* *again: a file is being written to, and its stamp does not say when that ends. */
static attn_status read_files(const struct folder *folder, attn_budget *budget, struct model_version **version,
                              bool *again, attn_error *err)
{
    struct model_files files;
    *version = NULL;
    attn_status status = folder->directory != NULL ? model_files_open(&files, budget, folder->directory, err)
                                                   : own_model_open(&files, budget, folder->name, err);
    *again = files.is_written_to;
    if (status != ATTN_OK) {
        model_files_close(&files);
        return status;
    }
    status = model_version_create(folder->name, &files, version, err);
    if (*version == NULL || !version_is_overwritten(&(*version)->common))
        return status;
    model_version_release(*version);
    *version = NULL;
    *again = true;
    return attn_fail(err, ATTN_ERR_VALUE, NULL, "a file was written to while it was read");
}

/* Reads the model. Of one that does not fit into the memory of models, the message says how much is missing. */
static attn_status read_model(struct folder *folder, attn_budget *budget, struct model_version **version, bool *again,
                              attn_error *err)
{
    enum { MB = 1000 * 1000 };
    folder->needed_bytes = 0;
    if (budget == NULL)
        return read_files(folder, NULL, version, again, err);
    const size_t others = attn_budget_bytes(budget), room = attn_budget_room_bytes(budget);
    (void)attn_budget_refused_bytes(budget);
    attn_status status = read_files(folder, budget, version, again, err);
    const size_t refused = attn_budget_refused_bytes(budget);
    attn_budget_trim(budget);
    if (status != ATTN_ERR_NO_MEMORY || refused <= others)
        return status;
    folder->needed_bytes = refused - others;
    return attn_fail(err, status, NULL,
                     "it needs more than %zu MB, has room for %zu MB; a larger --memory gives models more room",
                     folder->needed_bytes / MB, room / MB);
}

static void say_model(const struct models *models, const struct folder *folder)
{
    struct log_line line;
    struct registry_row row;
    registry_look(models->settings.registry, KIND_MODEL, folder->name, &row);
    const struct model_version *version = row.model;
    const bool is_well = row.reason[0] == '\0';
    log_begin(&line, models->log, is_well ? LOG_INFO : LOG_ERROR, "model");
    log_text(&line, "name", folder->name);
    if (folder->directory != NULL)
        log_text(&line, "directory", folder->directory);
    if (is_well && version != NULL) {
        log_text(&line, "type", version->model.type);
        log_count(&line, "parameters", version->model.parameters);
        log_count(&line, "bytes", version->files.bytes + version->tokenizer_bytes);
        if (version->model.absent_count > 0)
            log_count(&line, "absent", version->model.absent_count);
        log_ms(&line, "read_ms", folder->read_ms);
    }
    if (!is_well)
        log_text(&line, version != NULL ? "broken_but_served" : "broken", row.reason);
    log_end(&line);
    if (version != NULL && version->tokenizer_reason[0] != '\0')
        log_say(models->log, LOG_WARN, "the model %s is served without a tokenizer: %s", folder->name,
                version->tokenizer_reason);
    version_release(row.version);
}

void models_tell_prepared(const struct models *models, struct model_version *version)
{
    struct prepared_sum sum = {0, 0};
    struct log_line line;
    if (atomic_load_explicit(&version->is_told, memory_order_relaxed))
        return;
    for (size_t i = 0; i < version->model.slots; i++)
        prepared_slot_add(&version->slots[i], &sum);
    prepared_slot_add(&version->head_slot, &sum);
    if (sum.bytes == 0 || atomic_exchange(&version->is_told, true))
        return;
    log_begin(&line, models->log, LOG_INFO, "model prepared");
    log_text(&line, "name", version->common.name);
    log_count(&line, "bytes", sum.bytes);
    log_ms(&line, "prepare_ms", sum.ms);
    log_end(&line);
}

/* Keeps the layers of the version instead of those of an earlier one. version NULL: of none. */
static void keep_layers(struct models *models, struct folder *folder, struct model_version *version)
{
    struct registry *registry = models->settings.registry;
    const size_t missing =
        version != NULL ? model_modules_keep(registry, version) : 0; /* no name is absent meanwhile */
    if (folder->layers_of != NULL)
        model_modules_drop(registry, folder->layers_of);
    model_version_release(folder->layers_of);
    folder->layers_of = model_version_of(version_keep((struct version *)version));
    if (missing > 0)
        log_say(models->log, LOG_WARN, "%zu attention modules of the model %s cannot be layers", missing, folder->name);
}

static void note(struct models *models, const struct folder *folder, const char *reason)
{
    if (!registry_note(models->settings.registry, KIND_MODEL, folder->name, &(struct file_identity){0}, reason))
        log_say(models->log, LOG_ERROR, "no memory to note the model %s", folder->name);
}

/*
 * Puts the version, or the reason why there is none, into the registry. Takes over the references. The present version
 * ends here, because unmapping its files may take longer than the registry's lock is held.
 */
static void install(struct models *models, struct folder *folder, struct model_version *version,
                    struct model_version *present, const char *reason)
{
    const bool is_runnable = version != NULL && version->is_runnable;
    if (version != NULL && (is_runnable || present == NULL))
        keep_layers(models, folder, version);
    if (!is_runnable || !registry_install(models->settings.registry, &version->common)) {
        note(models, folder, reason);
        model_version_release(version);
    }
    model_version_release(present);
    say_model(models, folder);
}

/* Whether a model that did not fit into the memory may fit now. */
static bool may_fit_now(const struct models *models, const struct folder *folder)
{
    return folder->needed_bytes > 0 && attn_budget_room_bytes(models->settings.budget) > folder->needed_bytes;
}

/*
 * Reads the model again when its files changed, or when there is room for it now. The numbers of a file that was written
 * to in place changed, so its version cannot be served any longer. Its layers stay until there are others: they know
 * that they are overwritten, and refuse.
 */
static void look_at(struct models *models, struct folder *folder)
{
    struct registry *registry = models->settings.registry;
    attn_error err = {.status = ATTN_OK};
    struct model_version *version;
    struct registry_row row;
    const uint64_t stamp = folder->directory != NULL ? model_files_stamp(folder->directory) : 0;
    registry_look(registry, KIND_MODEL, folder->name, &row);
    const bool is_overwritten = row.version != NULL && version_is_overwritten(row.version);
    if (stamp == folder->stamp && row.state != REGISTRY_UNREAD && !is_overwritten && !may_fit_now(models, folder)) {
        version_release(row.version);
        return;
    }
    if (is_overwritten) {
        registry_forget(registry, KIND_MODEL, folder->name, &row.seen);
        note(models, folder, NULL);
        version_release(row.version);
        row.version = NULL;
    }
    bool again;
    double since_ms = clock_now_ms();
    const bool is_read = read_model(folder, models->settings.budget, &version, &again, &err) == ATTN_OK;
    folder->read_ms = clock_lap_ms(&since_ms);
    folder->stamp = again ? 0 : stamp;
    install(models, folder, version, row.model, is_read ? "" : err.message);
}

/* ---- the parent folder ---- */

/* Why the name means something else under /v2/models; NULL: it does not. */
static const char *other_meaning(const struct models *models, const char *name)
{
    struct registry_row row;
    registry_look(models->settings.registry, KIND_LAYER, name, &row);
    version_release(row.version);
    if (row.state != REGISTRY_ABSENT)
        return "is a kept layer's";
    return strcmp(name, "attention") == 0 || strcmp(name, "stats") == 0 ? "is a name of the server's own" : NULL;
}

/* Says once how many folders have names that models cannot have. */
static void say_misnamed(struct models *models, size_t count, const char *example)
{
    struct log_line line;
    if (count > models->misnamed) {
        log_begin(&line, models->log, LOG_WARN,
                  "folders are no models because of their names: a name has 1 to 64 letters, digits, dots, underscores "
                  "and hyphens, and is no kept layer's, not attention, stats, demo and small");
        log_count(&line, "folders", count);
        log_text(&line, "one_of_them", example);
        log_end(&line);
    }
    models->misnamed = count;
}

/* Adds each subfolder of the parent that has a config.json, and each GGUF file, that is not in the list. Returns an errno. */
static int find_folders(struct models *models)
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
        const int length = snprintf(path, sizeof path, "%s/%s", parent, found->d_name);
        if (found->d_name[0] == '.' || length >= (int)sizeof path)
            continue;
        const struct text_span name = {found->d_name, model_files_name_length(path, found->d_name)};
        char text[sizeof found->d_name];
        snprintf(text, sizeof text, "%.*s", (int)name.length, name.at);
        if (name.length == 0 || find_folder(models, name) != NULL || model_files_stamp(path) == 0)
            continue;
        if (!can_name_model(name) || (models->is_open && (is_own_model(name) || other_meaning(models, text) != NULL))) {
            misnamed++;
            text_copy(example, sizeof example, found->d_name);
        } else if (!add_folder(models, name, path, (size_t)length, true))
            log_say(models->log, LOG_ERROR, "no memory for the model %s", found->d_name);
    }
    closedir(directory);
    say_misnamed(models, misnamed, example);
    return 0;
}

static void drop_gone(struct models *models)
{
    for (struct folder **at = &models->folders; *at != NULL;) {
        struct folder *folder = *at;
        if (!folder->is_of_parent || model_files_stamp(folder->directory) != 0) {
            at = &folder->next;
            continue;
        }
        *at = folder->next;
        log_say(models->log, LOG_INFO, "the folder of the model %s is gone", folder->name);
        registry_remove(models->settings.registry, KIND_MODEL, folder->name);
        keep_layers(models, folder, NULL);
        destroy_folder(folder);
    }
}

/* Adds and removes models of the parent, and reads those whose files changed. */
static void look_at_folders(void *context)
{
    struct models *models = context;
    (void)find_folders(models);
    drop_gone(models);
    for (struct folder *folder = models->folders; folder != NULL && !signals_ask_to_stop(); folder = folder->next)
        look_at(models, folder);
}

/* ---- open and close ---- */

/* Adds the models of one --model. */
static bool add_named(struct models *models, const char *text, char *message, size_t size)
{
    struct text_span rest = text_span_of(text), one;
    while (text_next(&rest, ',', &one)) {
        const char *equals = memchr(one.at, '=', one.length);
        const struct text_span name = {one.at, equals != NULL ? (size_t)(equals - one.at) : 0};
        if (equals == NULL || !can_name_model(name)) {
            snprintf(message, size,
                     "model: \"%.*s\" is not NAME=DIR, with a name of 1 to %d letters, digits, dots, underscores and "
                     "hyphens, no dot first",
                     one.length < 100 ? (int)one.length : 100, one.at, MODEL_NAME_MAX);
            return false;
        }
        if (find_folder(models, name) != NULL) {
            snprintf(message, size, "model: the name %.*s is given twice", (int)name.length, name.at);
            return false;
        }
        if (!add_folder(models, name, equals + 1, (size_t)(one.at + one.length - equals - 1), false)) {
            snprintf(message, size, "no memory for models");
            return false;
        }
    }
    return true;
}

/* Adds a model of the program. No other has its name, served or not: pages of every origin may ask for it. */
static bool add_own(struct models *models, const char *own, bool is_served, char *message, size_t size)
{
    const struct text_span name = text_span_of(own);
    if (find_folder(models, name) != NULL) {
        snprintf(message, size, "models: %s is the name of the program's own model: call the folder otherwise", own);
        return false;
    }
    if (!is_served || add_folder(models, name, NULL, 0, false))
        return true;
    snprintf(message, size, "no memory for models");
    return false;
}

/* Whether no other thing has the name of one of the models. */
static bool are_free(struct models *models, char *message, size_t size)
{
    for (const struct folder *folder = models->folders; folder != NULL; folder = folder->next) {
        const char *meaning = other_meaning(models, folder->name);
        if (meaning == NULL)
            continue;
        snprintf(message, size, "model: the name %s %s; give the model another name", folder->name, meaning);
        return false;
    }
    return true;
}

struct models *models_create(const struct models_settings *settings, const struct log *log, char *message, size_t size)
{
    struct models *models = calloc(1, sizeof *models);
    char text[128];
    if (models == NULL) {
        snprintf(message, size, "no memory for models");
        return NULL;
    }
    models->settings = *settings;
    models->log = log;
    bool is_ok = true;
    for (size_t i = 0; i < settings->named->count && is_ok; i++)
        is_ok = add_named(models, settings->named->items[i], message, size);
    const int outcome = is_ok ? find_folders(models) : 0;
    const char *own;
    for (size_t i = 0; is_ok && (own = own_model_name(i)) != NULL; i++)
        is_ok = add_own(models, own, i == 0 || !settings->has_only_demo, message, size);
    if (outcome != 0)
        snprintf(message, size, "models: %s: %s", settings->parent, strerror_r(outcome, text, sizeof text));
    if (is_ok && outcome == 0 && are_free(models, message, size))
        return models;
    models_destroy(models);
    return NULL;
}

void models_load(struct models *models)
{
    char text[128];
    models->is_open = true;
    look_at_folders(models);
    const int outcome = watch_begin(&models->watch, models->settings.look_ms, look_at_folders, models);
    if (outcome != 0)
        log_say(models->log, LOG_WARN, "changed models are not read again: %s", strerror_r(outcome, text, sizeof text));
}

void models_destroy(struct models *models)
{
    if (models == NULL)
        return;
    watch_end(&models->watch);
    while (models->folders != NULL) {
        struct folder *folder = models->folders;
        models->folders = folder->next;
        registry_remove(models->settings.registry, KIND_MODEL, folder->name);
        destroy_folder(folder);
    }
    free(models);
}

/* ---- requests ---- */

void models_look(struct models *models, struct text_span span, struct registry_row *row)
{
    char name[MODEL_NAME_MAX + 1];
    *row = (struct registry_row){.state = REGISTRY_ABSENT};
    if (span.length >= sizeof name)
        return;
    snprintf(name, sizeof name, "%.*s", (int)span.length, span.at);
    registry_look(models->settings.registry, KIND_MODEL, name, row);
    if (row->version == NULL || !version_is_overwritten(row->version))
        return;
    version_release(row->version); /* the thread that looks at folders drops it, too, and reads the files again */
    row->version = NULL;
    row->state = REGISTRY_UNREAD;
}

attn_status models_find(struct models *models, struct text_span name, struct call *call)
{
    struct registry_row row;
    models_look(models, name, &row);
    call->version = row.version;
    switch (row.state) {
    case REGISTRY_READY:
        return ATTN_OK;
    case REGISTRY_BROKEN:
        return call_refuse(call, CALL_CONFLICT, "the model \"%s\" cannot be used: %s", row.name, row.reason);
    case REGISTRY_UNREAD:
        return version_refuse_overwritten(call, KIND_MODEL, row.name);
    case REGISTRY_UNLOADED: /* models are loaded as long as their folders are there */
    case REGISTRY_ABSENT:
        break;
    }
    return call_refuse(call, CALL_NOT_FOUND, "there is no model \"%.*s\" here; GET /v1/models lists them",
                       name.length < MODEL_NAME_MAX ? (int)name.length : MODEL_NAME_MAX, name.at);
}
