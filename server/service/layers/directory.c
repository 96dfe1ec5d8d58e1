/*
 * directory.c: the directory of kept layers as a whole: what it holds at the start, and what others change in it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "service/layers/keeper_parts.h"

/* ---- the whole directory; changing is held ---- */

static int note_name(void *context, const char *name)
{
    struct layer_keeper *keeper = context;
    const struct layer_identity unseen = {0};
    struct layer_row row;
    layer_store_look(keeper->store, name, &row);
    layer_version_release(row.version);
    if (row.state != LAYER_ABSENT)
        return 0;
    return layer_store_note(keeper->store, name, &unseen, NULL) ? 0 : ENOMEM;
}

/* Names whose file is gone. */
static void forget_removed(struct layer_keeper *keeper)
{
    struct layer_row row = {.name = ""};
    while (layer_store_page(keeper->store, row.name, 1, &row) == 1) {
        struct layer_identity now;
        layer_version_release(row.version);
        if (!row.is_fixed && layer_files_look(keeper->files, row.name, &now) == ENOENT)
            layer_store_remove(keeper->store, row.name);
    }
}

static int scan(struct layer_keeper *keeper)
{
    const int64_t changed_ns = layer_files_changed_ns(keeper->files);
    if (changed_ns != 0 && changed_ns == keeper->scanned_ns)
        return 0;
    const int outcome = layer_files_each(keeper->files, note_name, keeper);
    if (outcome == 0) {
        forget_removed(keeper);
        keeper->scanned_ns = changed_ns;
    }
    return outcome;
}

void layer_keeper_rescan(struct layer_keeper *keeper)
{
    char text[128];
    int outcome = 0;
    if (keeper->files == NULL)
        return;
    pthread_mutex_lock(&keeper->changing);
    outcome = scan(keeper);
    pthread_mutex_unlock(&keeper->changing);
    if (outcome != 0)
        log_say(keeper->log, LOG_WARN, "the directory of layers cannot be listed: %s",
                strerror_r(outcome, text, sizeof text));
}

/* At the start, when nothing has been adopted yet. */
static void read_all(struct layer_keeper *keeper)
{
    struct layer_row row = {.name = ""};
    while (layer_store_page(keeper->store, row.name, 1, &row) == 1) {
        layer_version_release(row.version);
        layer_keeper_read_file(keeper, row.name);
    }
}

/* ---- changes that others make ---- */

static void say_changed(const struct layer_keeper *keeper, const char *name, const char *what)
{
    struct log_line line;
    log_begin(&line, keeper->log, LOG_INFO, what);
    log_text(&line, "layer", name);
    log_end(&line);
}

/* What has been read is read again; what nobody asked for yet can wait for that. Changing is held. */
static void notice(struct layer_keeper *keeper, const char *name)
{
    struct layer_row before, after;
    struct layer_identity now;
    const bool exists = layer_files_look(keeper->files, name, &now) == 0;
    layer_store_look(keeper->store, name, &before);
    if (before.is_fixed) {
        layer_version_release(before.version);
        return;
    }
    if (before.state == LAYER_ABSENT && exists && note_name(keeper, name) == 0)
        say_changed(keeper, name, "file of a layer was added");
    if (before.state != LAYER_ABSENT && !exists) {
        layer_store_remove(keeper->store, name);
        say_changed(keeper, name, "file of a layer was removed");
    }
    if (exists && (keeper->settings.verifies_at_start || before.state == LAYER_READY || before.state == LAYER_BROKEN)) {
        layer_keeper_refresh(keeper, name, &after);
        if (after.version != before.version && before.version != NULL)
            say_changed(keeper, name, "file of a layer was replaced");
        layer_version_release(after.version);
    }
    layer_version_release(before.version);
}

static void notice_all(struct layer_keeper *keeper)
{
    struct layer_row row = {.name = ""};
    keeper->scanned_ns = 0;
    (void)scan(keeper); /* the next listing tells why it could not */
    while (layer_store_page(keeper->store, row.name, 1, &row) == 1) {
        layer_version_release(row.version);
        notice(keeper, row.name);
    }
}

static void take_change(void *context, const char *file)
{
    struct layer_keeper *keeper = context;
    char name[LAYER_NAME_MAX + 1];
    if (file != NULL && !layer_file_names_layer(file, name))
        return;
    pthread_mutex_lock(&keeper->changing);
    if (file != NULL)
        notice(keeper, name);
    else
        notice_all(keeper);
    pthread_mutex_unlock(&keeper->changing);
}

/* Before the first scan, so that nothing falls between the two. */
static void watch_directory(struct layer_keeper *keeper)
{
    char text[128];
    const struct layer_watch_target target = {take_change, keeper};
    const int outcome = layer_watch_start(keeper->settings.directory, &target, &keeper->watch);
    if (outcome != 0)
        log_say(keeper->log, LOG_WARN, "the directory of layers is not watched, only looked at with each request: %s",
                strerror_r(outcome, text, sizeof text));
}

static void say_open(struct layer_keeper *keeper, size_t swept)
{
    struct log_line line;
    size_t count, bytes;
    layer_store_totals(keeper->store, &count, &bytes);
    log_begin(&line, keeper->log, LOG_INFO, "layers");
    log_text(&line, "directory", keeper->settings.directory);
    log_count(&line, "count", count);
    log_count(&line, "temporaries_removed", swept);
    log_end(&line);
}

bool layer_keeper_open_directory(struct layer_keeper *keeper, char *message, size_t size)
{
    char text[128];
    const struct layer_settings *settings = &keeper->settings;
    int outcome = layer_files_open(settings->directory, !settings->is_read_only, &keeper->files);
    const size_t swept = outcome == 0 ? layer_files_sweep(keeper->files) : 0;
    if (outcome == 0) {
        watch_directory(keeper);
        pthread_mutex_lock(&keeper->changing);
        outcome = scan(keeper);
        if (outcome == 0 && settings->verifies_at_start)
            read_all(keeper);
        pthread_mutex_unlock(&keeper->changing);
    }
    if (outcome != 0) {
        snprintf(message, size, "layers: %s: %s", settings->directory, strerror_r(outcome, text, sizeof text));
        return false;
    }
    say_open(keeper, swept);
    return true;
}
