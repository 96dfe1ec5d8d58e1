/* directory.c: the table of layers, kept in step with the files of a directory. */
#include "service/registry/layer/directory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- one file; the caller changes names ---- */

/* name NULL: the line is about the directory, else about that layer. reason NULL: there is none. */
static void say(const struct layer_directory *directory, log_level level, const char *what, const char *name,
                const char *reason)
{
    struct log_line line;
    log_begin(&line, directory->log, level, what);
    log_text(&line, name != NULL ? "layer" : "directory", name != NULL ? name : directory->path);
    if (reason != NULL)
        log_text(&line, "reason", reason);
    log_end(&line);
}

/* Logs a change by another program. attnd's own changes are in the store before the directory is scanned. */
static void say_changed(const struct layer_directory *directory, const char *name, const char *what)
{
    if (directory->is_open)
        say(directory, LOG_INFO, what, name, NULL);
}

static void note_broken(struct layer_directory *directory, const char *name, const struct file_identity *seen,
                        const char *reason)
{
    struct registry_row known;
    registry_look(directory->store, KIND_LAYER, name, &known);
    layer_version_release(known.layer);
    if (strcmp(known.reason, reason) == 0 && file_identity_equal(&known.seen, seen))
        return;
    say(directory, LOG_WARN, "file is no layer that could run", name, reason);
    if (!registry_note(directory->store, KIND_LAYER, name, seen, reason))
        log_say(directory->log, LOG_ERROR, "no memory to note the layer %s", name);
}

#define CHECKPOINT                                                                                                         \
    "; a config.json stands beside it, so the folder is the checkpoint of a model: serve it by --model NAME=DIR, or make " \
    "layers of it by attnd import"

/*
 * Reads the file as it is now. When the file is broken, the present version stays, unless it was mapped from that file.
 */
static void read_file(struct layer_directory *directory, const char *name)
{
    struct file_bytes bytes;
    struct file_identity seen = {0};
    struct layer_version *version = NULL;
    attn_error error = {.status = ATTN_OK};
    const int outcome = layer_files_map(directory->files, name, &bytes, &seen);
    if (outcome == ENOENT) {
        registry_remove(directory->store, KIND_LAYER, name);
        return;
    }
    if (outcome != 0)
        (void)layer_files_look(directory->files, name, &seen);
    registry_forget(directory->store, KIND_LAYER, name, &seen);
    if (outcome != 0) {
        char text[128];
        if (outcome == ETXTBSY)
            seen = (struct file_identity){0}; /* the file is read again, whatever its identity */
        note_broken(directory, name, &seen, file_reason(outcome, text, sizeof text));
        return;
    }
    if (layer_version_read(name, bytes, &seen, &version, &error) != ATTN_OK) {
        char reason[REGISTRY_REASON_MAX];
        const bool is_checkpoint = layer_files_has_config(directory->files);
        snprintf(reason, sizeof reason, "%.*s%s", REGISTRY_REASON_MAX - (int)sizeof CHECKPOINT, error.message,
                 is_checkpoint ? CHECKPOINT : "");
        note_broken(directory, name, &seen, reason);
        return;
    }
    version->files = directory->files;
    if (!registry_install(directory->store, &version->common))
        layer_version_release(version);
}

bool layer_directory_is_current(struct layer_directory *directory, const char *name, struct registry_row *row)
{
    struct file_identity now = {0};
    registry_look(directory->store, KIND_LAYER, name, row);
    if (directory->files == NULL || row->state == REGISTRY_UNLOADED || row->is_fixed)
        return true;
    if (row->layer != NULL && atomic_load(&row->layer->common.is_overwritten))
        return false;
    const bool exists = layer_files_look(directory->files, name, &now) == 0;
    if (row->state == REGISTRY_ABSENT)
        return !exists;
    return exists && row->state != REGISTRY_UNREAD && file_identity_equal(&row->seen, &now);
}

void layer_directory_refresh(struct layer_directory *directory, const char *name, struct registry_row *row)
{
    if (layer_directory_is_current(directory, name, row))
        return;
    const bool was_absent = row->state == REGISTRY_ABSENT;
    const uint64_t number = row->layer != NULL ? row->layer->number : 0;
    layer_version_release(row->layer);
    read_file(directory, name);
    registry_look(directory->store, KIND_LAYER, name, row);
    if (was_absent && row->state != REGISTRY_ABSENT)
        say_changed(directory, name, "file of a layer was added");
    else if (!was_absent && row->state == REGISTRY_ABSENT)
        say_changed(directory, name, "file of a layer was removed");
    else if (number != 0 && (row->layer == NULL || row->layer->number != number))
        say_changed(directory, name, "file of a layer was replaced");
}

void layer_directory_look(struct layer_directory *directory, const char *name, struct registry_row *row)
{
    if (layer_directory_is_current(directory, name, row))
        return;
    layer_version_release(row->layer);
    registry_begin_change(directory->store);
    layer_directory_refresh(directory, name, row);
    registry_end_change(directory->store);
}

/* ---- all files; the caller changes names ---- */

static int note_name(void *context, const char *name)
{
    struct layer_directory *directory = context;
    const struct file_identity unseen = {0};
    struct registry_row row;
    registry_look(directory->store, KIND_LAYER, name, &row);
    layer_version_release(row.layer);
    struct file_identity now;
    /* A folder, a pipe or a link to nothing may have the name of a layer. To a look, it is not there. */
    if (row.state != REGISTRY_ABSENT || layer_files_look(directory->files, name, &now) == ENOENT)
        return 0;
    if (!registry_note(directory->store, KIND_LAYER, name, &unseen, NULL))
        return ENOMEM;
    say_changed(directory, name, "file of a layer was added");
    return 0;
}

/*
 * Checks a file that was read before. A file that no request asked for yet is read at the first request. While the
 * system refuses to look at a file, what is known of the file stays, and the next request to the layer logs why.
 */
static void look_again(struct layer_directory *directory, const struct registry_row *row)
{
    struct file_identity now;
    struct registry_row after;
    if (row->is_fixed)
        return;
    const int outcome = layer_files_look(directory->files, row->name, &now);
    if (outcome == ENOENT) {
        registry_remove(directory->store, KIND_LAYER, row->name);
        say_changed(directory, row->name, "file of a layer was removed");
    } else if (outcome == 0 && (directory->reads_all || row->state != REGISTRY_UNREAD)) {
        layer_directory_refresh(directory, row->name, &after);
        layer_version_release(after.layer);
    }
}

static int scan_files(struct layer_directory *directory)
{
    struct registry_row row = {.name = ""};
    const int outcome = layer_files_each(directory->files, note_name, directory);
    while ((outcome == 0 || outcome == ENOENT) && registry_page(directory->store, KIND_LAYER, row.name, 1, &row) == 1) {
        layer_version_release(row.layer);
        look_again(directory, &row);
    }
    return outcome;
}

/* Finds the layers of another directory as at the start: its files are not logged one by one. */
static int find_again(struct layer_directory *directory)
{
    (void)layer_files_sweep(directory->files);
    directory->is_open = false;
    const int outcome = scan_files(directory);
    directory->is_open = true;
    say(directory, LOG_INFO, "the directory of layers is found again", NULL, NULL);
    return outcome;
}

int layer_directory_follow(struct layer_directory *directory)
{
    static const char gone[] = "the directory of layers is gone";
    char text[128];
    bool is_another;
    const bool was_gone = directory->is_gone;
    const int outcome = layer_files_follow(directory->files, directory->path, &is_another);
    directory->is_gone = outcome != 0;
    if (!was_gone && outcome != 0)
        say(directory, LOG_WARN, gone, NULL, strerror_r(outcome, text, sizeof text));
    else if (!was_gone && is_another)
        say(directory, LOG_WARN, gone, NULL, "another directory has its path");
    if (is_another || (was_gone && outcome == 0))
        return find_again(directory);
    return outcome;
}

/* The caller does not change names. */
static int scan(struct layer_directory *directory)
{
    registry_begin_change(directory->store);
    const int outcome = layer_directory_follow(directory);
    const int scanned = scan_files(directory);
    registry_end_change(directory->store);
    return outcome != 0 ? 0 : scanned; /* a directory that is gone was logged once */
}

void layer_directory_rescan(struct layer_directory *directory)
{
    char text[128];
    const int outcome = directory->files != NULL ? scan(directory) : 0;
    if (outcome != 0)
        log_say(directory->log, LOG_WARN, "the directory of layers cannot be listed: %s",
                strerror_r(outcome, text, sizeof text));
}

/* ---- open and close ---- */

static void say_open(struct layer_directory *directory, size_t swept)
{
    struct log_line line;
    size_t count, bytes;
    registry_totals(directory->store, KIND_LAYER, &count, &bytes);
    log_begin(&line, directory->log, LOG_INFO, "layers");
    log_text(&line, "directory", directory->path);
    log_count(&line, "count", count);
    log_count(&line, "temporaries_removed", swept);
    log_end(&line);
}

/* When a scan fails, the next request that lists layers logs the reason. */
static void look_at_all(void *context)
{
    (void)scan(context);
}

static void begin_looking(struct layer_directory *directory)
{
    char text[128];
    const int outcome = watch_begin(&directory->watch, directory->look_ms, look_at_all, directory);
    if (outcome != 0)
        log_say(directory->log, LOG_WARN, "the directory of layers is looked at with each request only: %s",
                strerror_r(outcome, text, sizeof text));
}

int layer_directory_open(struct layer_directory *directory, const char *path, bool is_read_only)
{
    if (path == NULL)
        return 0;
    int outcome = layer_files_open(path, !is_read_only, &directory->files);
    if (outcome != 0)
        return outcome;
    directory->path = path;
    const size_t swept = layer_files_sweep(directory->files);
    registry_begin_change(directory->store);
    outcome = scan_files(directory);
    registry_end_change(directory->store);
    directory->is_open = outcome == 0;
    if (outcome == 0) {
        say_open(directory, swept);
        begin_looking(directory);
    }
    return outcome;
}

void layer_directory_close(struct layer_directory *directory)
{
    watch_end(&directory->watch);
    layer_files_close(directory->files);
}
