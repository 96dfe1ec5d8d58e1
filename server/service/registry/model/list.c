/*
 * list.c: opens the models of the settings, looks at their folders in a thread, and finds models for requests.
 */
#include "service/registry/model/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "service/registry/layer/keeper.h"
#include "service/registry/model/files.h"
#include "service/registry/model/table.h"

/* ---- open and close ---- */

static void *look_at_times(void *context)
{
    struct models *models = context;
    pthread_mutex_lock(&models->lock);
    while (!models->is_closing) {
        const struct timespec next = clock_after_ms(models->settings.look_ms);
        if (pthread_cond_timedwait(&models->closing, &models->lock, &next) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&models->lock);
        model_table_look(models);
        pthread_mutex_lock(&models->lock);
    }
    pthread_mutex_unlock(&models->lock);
    return NULL;
}

/* Adds the models of one --model. */
static bool add_named(struct models *models, const char *text, char *message, size_t size)
{
    struct text_span rest = text_span_of(text), one;
    while (text_next(&rest, ',', &one)) {
        const char *equals = memchr(one.at, '=', one.length);
        const struct text_span name = {one.at, equals != NULL ? (size_t)(equals - one.at) : 0};
        if (equals == NULL || !model_table_can_be(name)) {
            snprintf(message, size,
                     "model: \"%.*s\" is not NAME=DIR, with a name of 1 to %d letters, digits, dots, underscores and "
                     "hyphens, no dot first",
                     one.length < 100 ? (int)one.length : 100, one.at, MODEL_NAME_MAX);
            return false;
        }
        if (model_table_is(*model_table_place(models, name.at, name.length), name.at, name.length)) {
            snprintf(message, size, "model: the name %.*s is given twice", (int)name.length, name.at);
            return false;
        }
        if (!model_table_add(models, name, equals + 1, (size_t)(one.at + one.length - equals - 1), false)) {
            snprintf(message, size, "no memory for models");
            return false;
        }
    }
    return true;
}

/* Adds the model of the program. No other has its name, because pages of every origin may ask for it. */
static bool add_demo(struct models *models, char *message, size_t size)
{
    const struct text_span name = text_span_of(DEMO_MODEL_NAME);
    if (model_table_is(*model_table_place(models, name.at, name.length), name.at, name.length)) {
        snprintf(message, size, "models: %s is the name of the program's own model: call the folder otherwise",
                 DEMO_MODEL_NAME);
        return false;
    }
    if (model_table_add(models, name, NULL, 0, false))
        return true;
    snprintf(message, size, "no memory for models");
    return false;
}

struct models *models_create(const struct models_settings *settings, const struct log *log, char *message, size_t size)
{
    struct models *models = calloc(1, sizeof *models);
    pthread_condattr_t monotonic;
    char text[128];
    if (models == NULL) {
        snprintf(message, size, "no memory for models");
        return NULL;
    }
    models->settings = *settings;
    models->log = log;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&models->closing, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&models->lock, NULL);
    bool is_ok = true;
    for (size_t i = 0; i < settings->named->count && is_ok; i++)
        is_ok = add_named(models, settings->named->items[i], message, size);
    const int outcome = is_ok ? model_table_find(models) : 0;
    is_ok = is_ok && add_demo(models, message, size);
    if (outcome != 0)
        snprintf(message, size, "models: %s: %s", settings->parent, strerror_r(outcome, text, sizeof text));
    if (is_ok && outcome == 0)
        return models;
    models_destroy(models);
    return NULL;
}

void models_load(struct models *models)
{
    char text[128];
    models->is_open = true;
    model_table_look(models);
    if (models->settings.look_ms == 0)
        return;
    const int outcome = pthread_create(&models->looker, NULL, look_at_times, models);
    models->has_looker = outcome == 0;
    if (outcome != 0)
        log_say(models->log, LOG_WARN, "changed models are not read again: %s", strerror_r(outcome, text, sizeof text));
}

void models_destroy(struct models *models)
{
    if (models == NULL)
        return;
    pthread_mutex_lock(&models->lock);
    models->is_closing = true;
    pthread_cond_signal(&models->closing);
    pthread_mutex_unlock(&models->lock);
    if (models->has_looker)
        pthread_join(models->looker, NULL);
    while (models->entries != NULL) {
        struct model_entry *entry = models->entries;
        models->entries = entry->next;
        model_entry_destroy(entry);
    }
    pthread_cond_destroy(&models->closing);
    pthread_mutex_destroy(&models->lock);
    free(models);
}

/* ---- looking up ---- */

static void give(const struct model_entry *entry, struct model_row *row)
{
    *row = entry->row;
    if (row->version != NULL)
        row->version = model_version_keep(row->version);
}

size_t models_count(struct models *models)
{
    size_t count = 0;
    pthread_mutex_lock(&models->lock);
    for (const struct model_entry *entry = models->entries; entry != NULL; entry = entry->next)
        count++;
    pthread_mutex_unlock(&models->lock);
    return count;
}

bool models_has(struct models *models, const char *name)
{
    const size_t length = strlen(name);
    pthread_mutex_lock(&models->lock);
    const bool has = model_table_is(*model_table_place(models, name, length), name, length);
    pthread_mutex_unlock(&models->lock);
    return has;
}

void models_look(struct models *models, struct text_span name, struct model_row *row)
{
    *row = (struct model_row){.state = MODEL_ABSENT};
    pthread_mutex_lock(&models->lock);
    const struct model_entry *entry = *model_table_place(models, name.at, name.length);
    if (model_table_is(entry, name.at, name.length))
        give(entry, row);
    pthread_mutex_unlock(&models->lock);
    if (row->version == NULL || !model_version_is_overwritten(row->version))
        return;
    model_version_release(row->version); /* the thread that looks at folders drops it, too, and reads the files again */
    row->version = NULL;
    row->state = MODEL_LOADING;
}

size_t models_list(struct models *models, size_t limit, struct model_row *rows)
{
    size_t count = 0;
    pthread_mutex_lock(&models->lock);
    for (const struct model_entry *entry = models->entries; entry != NULL && count < limit; entry = entry->next)
        give(entry, &rows[count++]);
    pthread_mutex_unlock(&models->lock);
    return count;
}

void models_note(struct models *models, const struct call *call, const char *name, attn_status status, size_t batch)
{
    struct layer_statistics more;
    if (!layer_keeper_measure(call, status, batch, &more))
        return;
    pthread_mutex_lock(&models->lock);
    struct model_entry *entry = *model_table_place(models, name, strlen(name));
    if (model_table_is(entry, name, strlen(name)))
        layer_statistics_add(&entry->row.statistics, &more);
    pthread_mutex_unlock(&models->lock);
}

size_t models_used(struct models *models, size_t limit, struct layer_use *uses)
{
    size_t count = 0;
    pthread_mutex_lock(&models->lock);
    for (const struct model_entry *entry = models->entries; entry != NULL && count < limit; entry = entry->next) {
        if (entry->row.statistics.successes + entry->row.statistics.failures == 0)
            continue;
        text_copy(uses[count].name, sizeof uses[count].name, entry->row.name);
        uses[count++].statistics = entry->row.statistics;
    }
    pthread_mutex_unlock(&models->lock);
    return count;
}

const char *models_each(struct models *models, bool (*found)(void *context, const char *name), void *context)
{
    for (const struct model_entry *entry = models->entries; entry != NULL; entry = entry->next)
        if (!found(context, entry->row.name))
            return entry->row.name;
    return NULL;
}

static attn_status refuse_loading(struct call *call, const char *name)
{
    return call_refuse(call, CALL_CONFLICT, "the model \"%s\" is being read; try again later", name);
}

attn_status models_confirm(struct call *call, struct model_version *version, attn_status status)
{
    return model_version_is_overwritten(version) ? refuse_loading(call, version->name) : status;
}

attn_status models_find(struct models *models, struct text_span name, struct call *call, struct model_version **version)
{
    struct model_row row;
    models_look(models, name, &row);
    *version = row.version;
    switch (row.state) {
    case MODEL_READY:
        return ATTN_OK;
    case MODEL_BROKEN:
        return call_refuse(call, CALL_CONFLICT, "the model \"%s\" cannot be used: %s", row.name, row.reason);
    case MODEL_LOADING:
        return refuse_loading(call, row.name);
    case MODEL_ABSENT:
        break;
    }
    return call_refuse(call, CALL_NOT_FOUND, "there is no model \"%.*s\" here; GET /v1/models lists them",
                       name.length < MODEL_NAME_MAX ? (int)name.length : MODEL_NAME_MAX, name.at);
}
