/*
 * store.c: the table of layers in memory, by name.
 */
#include "service/registry/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct layer_entry {
    char name[LAYER_NAME_MAX + 1];
    struct layer_version *current;                /* NULL: no file could be read yet */
    struct layer_version *older[LAYER_OLDER_MAX]; /* newest first */
    size_t older_count;
    struct layer_identity seen;
    char reason[LAYER_REASON_MAX];
    bool is_unloaded;
    struct layer_statistics statistics;
};

struct layer_store {
    size_t max_count, max_bytes, max_older;
    pthread_mutex_t lock;         /* guards what follows */
    struct layer_entry **entries; /* in the order of their names */
    size_t count, capacity;
    size_t fixed;              /* of the entries, those that belong to models: they leave the room of others as it is */
    size_t bytes, older_bytes; /* of present versions; of replaced versions; by layer_version_bytes */
    size_t file_bytes;         /* of present versions, without the copies of their headers */
    struct layer_statistics built_in;
};

/* ---- the table; the lock is held ---- */

struct layer_store *layer_store_create(size_t max_count, size_t max_bytes, size_t older)
{
    struct layer_store *store = calloc(1, sizeof *store);
    if (store == NULL)
        return NULL;
    store->max_count = max_count;
    store->max_bytes = max_bytes;
    store->max_older = older < LAYER_OLDER_MAX ? older : LAYER_OLDER_MAX;
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

/* The index of the name, or the index at which it would be inserted. */
static size_t place_of(const struct layer_store *store, const char *name, bool *is_there)
{
    size_t low = 0, high = store->count;
    *is_there = false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(store->entries[middle]->name, name);
        *is_there = *is_there || order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct layer_entry *find(const struct layer_store *store, const char *name)
{
    bool is_there;
    const size_t place = place_of(store, name, &is_there);
    return is_there ? store->entries[place] : NULL;
}

static bool has_space(struct layer_store *store)
{
    enum { FIRST = 64 };
    if (store->count < store->capacity)
        return true;
    const size_t capacity = store->capacity == 0 ? FIRST : 2 * store->capacity;
    struct layer_entry **entries = realloc(store->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    store->entries = entries;
    store->capacity = capacity;
    return true;
}

/* Returns NULL without memory. */
static struct layer_entry *find_or_add(struct layer_store *store, const char *name)
{
    bool is_there;
    const size_t place = place_of(store, name, &is_there);
    if (is_there)
        return store->entries[place];
    struct layer_entry *entry = has_space(store) ? calloc(1, sizeof *entry) : NULL;
    if (entry == NULL)
        return NULL;
    snprintf(entry->name, sizeof entry->name, "%s", name);
    memmove(&store->entries[place + 1], &store->entries[place], (store->count - place) * sizeof(struct layer_entry *));
    store->entries[place] = entry;
    store->count++;
    return entry;
}

static void drop_oldest(struct layer_store *store, struct layer_entry *entry)
{
    struct layer_version *oldest = entry->older[--entry->older_count];
    store->older_bytes -= layer_version_bytes(oldest);
    layer_version_release(oldest);
}

/* Drops replaced versions until the present ones fit. */
static void drop_until_fits(struct layer_store *store)
{
    for (size_t i = 0; i < store->count && store->bytes + store->older_bytes > store->max_bytes; i++)
        while (store->entries[i]->older_count > 0 && store->bytes + store->older_bytes > store->max_bytes)
            drop_oldest(store, store->entries[i]);
}

static void push_older(struct layer_store *store, struct layer_entry *entry, struct layer_version *version)
{
    while (entry->older_count > 0 && entry->older_count >= store->max_older)
        drop_oldest(store, entry);
    if (store->max_older == 0) {
        layer_version_release(version);
        return;
    }
    memmove(&entry->older[1], &entry->older[0], entry->older_count * sizeof entry->older[0]);
    entry->older[0] = version;
    entry->older_count++;
    store->older_bytes += layer_version_bytes(version);
}

static void count_in(struct layer_store *store, const struct layer_version *version)
{
    store->bytes += layer_version_bytes(version);
    store->file_bytes += version->bytes.size;
    store->fixed += version->is_fixed;
}

static void count_out(struct layer_store *store, const struct layer_version *version)
{
    store->bytes -= layer_version_bytes(version);
    store->file_bytes -= version->bytes.size;
    store->fixed -= version->is_fixed;
}

static void free_entry(struct layer_store *store, struct layer_entry *entry)
{
    while (entry->older_count > 0)
        drop_oldest(store, entry);
    if (entry->current != NULL)
        count_out(store, entry->current);
    layer_version_release(entry->current);
    free(entry);
}

static void fill_row(const struct layer_entry *entry, struct layer_row *row)
{
    memset(row, 0, sizeof *row);
    memcpy(row->name, entry->name, sizeof row->name);
    memcpy(row->reason, entry->reason, sizeof row->reason);
    row->seen = entry->seen;
    row->statistics = entry->statistics;
    row->is_fixed = entry->current != NULL && entry->current->is_fixed;
    row->state = entry->is_unloaded         ? LAYER_UNLOADED
                 : entry->current != NULL   ? LAYER_READY
                 : entry->reason[0] != '\0' ? LAYER_BROKEN
                                            : LAYER_UNREAD;
    if (row->state == LAYER_READY)
        row->version = layer_version_keep(entry->current);
}

/* ---- the table ---- */

void layer_store_destroy(struct layer_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; i < store->count; i++)
        free_entry(store, store->entries[i]);
    free(store->entries);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

void layer_store_look(struct layer_store *store, const char *name, struct layer_row *row)
{
    pthread_mutex_lock(&store->lock);
    const struct layer_entry *entry = find(store, name);
    if (entry != NULL)
        fill_row(entry, row);
    pthread_mutex_unlock(&store->lock);
    if (entry == NULL) {
        memset(row, 0, sizeof *row);
        snprintf(row->name, sizeof row->name, "%s", name);
    }
}

struct layer_version *layer_store_older(struct layer_store *store, const char *name, const char *wanted)
{
    struct layer_version *found = NULL;
    char text[DIGEST_TEXT];
    pthread_mutex_lock(&store->lock);
    const struct layer_entry *entry = find(store, name);
    for (size_t i = 0; entry != NULL && !entry->is_unloaded && i < entry->older_count && found == NULL; i++) {
        (void)layer_version_known_digest(entry->older[i], text);
        if (strcmp(text, wanted) == 0)
            found = layer_version_keep(entry->older[i]);
    }
    pthread_mutex_unlock(&store->lock);
    return found;
}

size_t layer_store_digests(struct layer_store *store, const char *name, char digests[][DIGEST_TEXT], size_t max)
{
    size_t count = 0;
    pthread_mutex_lock(&store->lock);
    const struct layer_entry *entry = find(store, name);
    if (entry != NULL && entry->current != NULL && count < max)
        (void)layer_version_known_digest(entry->current, digests[count++]);
    for (size_t i = 0; entry != NULL && i < entry->older_count && count < max; i++)
        (void)layer_version_known_digest(entry->older[i], digests[count++]);
    pthread_mutex_unlock(&store->lock);
    return count;
}

size_t layer_store_page(struct layer_store *store, const char *after, size_t limit, struct layer_row *rows)
{
    bool is_there;
    size_t count = 0;
    pthread_mutex_lock(&store->lock);
    size_t place = place_of(store, after, &is_there);
    for (place += is_there; place < store->count && count < limit; place++)
        fill_row(store->entries[place], &rows[count++]);
    pthread_mutex_unlock(&store->lock);
    return count;
}

void layer_store_totals(struct layer_store *store, size_t *count, size_t *bytes)
{
    pthread_mutex_lock(&store->lock);
    *count = store->count;
    *bytes = store->file_bytes;
    pthread_mutex_unlock(&store->lock);
}

bool layer_store_has_room(struct layer_store *store, const char *name, size_t bytes)
{
    pthread_mutex_lock(&store->lock);
    const struct layer_entry *entry = find(store, name);
    const size_t own = entry != NULL && entry->current != NULL ? layer_version_bytes(entry->current) : 0;
    const size_t others = store->bytes - own;
    const bool has_room = (entry != NULL || store->count - store->fixed < store->max_count) &&
                          others <= store->max_bytes && bytes <= store->max_bytes - others;
    pthread_mutex_unlock(&store->lock);
    return has_room;
}

bool layer_store_install(struct layer_store *store, struct layer_version *version)
{
    pthread_mutex_lock(&store->lock);
    struct layer_entry *entry = find_or_add(store, version->name);
    if (entry != NULL) {
        if (entry->current != NULL) {
            count_out(store, entry->current);
            if (entry->current->is_fixed) /* the folder of its model has no older files */
                layer_version_release(entry->current);
            else
                push_older(store, entry, entry->current);
        }
        entry->current = version;
        entry->seen = version->identity;
        entry->reason[0] = '\0';
        count_in(store, version);
        drop_until_fits(store);
    }
    pthread_mutex_unlock(&store->lock);
    return entry != NULL;
}

bool layer_store_note(struct layer_store *store, const char *name, const struct layer_identity *seen,
                      const char *reason)
{
    pthread_mutex_lock(&store->lock);
    struct layer_entry *entry = find_or_add(store, name);
    if (entry != NULL) {
        entry->seen = *seen;
        snprintf(entry->reason, sizeof entry->reason, "%s", reason != NULL ? reason : "");
    }
    pthread_mutex_unlock(&store->lock);
    return entry != NULL;
}

/* A request that computes with the version learns it, too, whatever file has the name by then. */
static bool is_spoiled(struct layer_version *version, const struct layer_identity *file)
{
    if (layer_identity_is_rewritten(&version->identity, file))
        atomic_store(&version->is_overwritten, true);
    return atomic_load(&version->is_overwritten);
}

void layer_store_forget(struct layer_store *store, const char *name, const struct layer_identity *file)
{
    pthread_mutex_lock(&store->lock);
    struct layer_entry *entry = find(store, name);
    size_t left = 0;
    for (size_t i = 0; entry != NULL && i < entry->older_count; i++) {
        struct layer_version *version = entry->older[i];
        if (!is_spoiled(version, file)) {
            entry->older[left++] = version;
            continue;
        }
        store->older_bytes -= layer_version_bytes(version);
        layer_version_release(version);
    }
    if (entry != NULL)
        entry->older_count = left;
    if (entry != NULL && entry->current != NULL && is_spoiled(entry->current, file)) {
        count_out(store, entry->current);
        layer_version_release(entry->current);
        entry->current = NULL;
    }
    pthread_mutex_unlock(&store->lock);
}

/* The lock is held. */
static void remove_at(struct layer_store *store, size_t place)
{
    free_entry(store, store->entries[place]);
    store->count--;
    memmove(&store->entries[place], &store->entries[place + 1], (store->count - place) * sizeof(struct layer_entry *));
}

void layer_store_remove(struct layer_store *store, const char *name)
{
    bool is_there;
    pthread_mutex_lock(&store->lock);
    const size_t place = place_of(store, name, &is_there);
    if (is_there)
        remove_at(store, place);
    pthread_mutex_unlock(&store->lock);
}

void layer_store_remove_fixed(struct layer_store *store, const char *name, const void *owner)
{
    bool is_there;
    pthread_mutex_lock(&store->lock);
    const size_t place = place_of(store, name, &is_there);
    const struct layer_version *current = is_there ? store->entries[place]->current : NULL;
    if (current != NULL && current->is_fixed && current->owner == owner)
        remove_at(store, place);
    pthread_mutex_unlock(&store->lock);
}

bool layer_store_set_loaded(struct layer_store *store, const char *name, bool is_loaded)
{
    pthread_mutex_lock(&store->lock);
    struct layer_entry *entry = find(store, name);
    if (entry != NULL)
        entry->is_unloaded = !is_loaded;
    pthread_mutex_unlock(&store->lock);
    return entry != NULL;
}

void layer_statistics_add(struct layer_statistics *to, const struct layer_statistics *more)
{
    to->successes += more->successes;
    to->failures += more->failures;
    to->items += more->items;
    to->success_ms += more->success_ms;
    to->failure_ms += more->failure_ms;
    to->queue_ms += more->queue_ms;
    to->parse_ms += more->parse_ms;
    to->compute_ms += more->compute_ms;
    to->write_ms += more->write_ms;
    to->last_ms = more->last_ms;
}

void layer_store_count(struct layer_store *store, const char *name, const struct layer_statistics *more)
{
    pthread_mutex_lock(&store->lock);
    struct layer_entry *entry = name != NULL ? find(store, name) : NULL;
    if (entry != NULL)
        layer_statistics_add(&entry->statistics, more);
    else if (name == NULL)
        layer_statistics_add(&store->built_in, more);
    pthread_mutex_unlock(&store->lock);
}

size_t layer_store_used(struct layer_store *store, size_t limit, struct layer_use *uses)
{
    size_t count = 0;
    pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < store->count && count < limit; i++) {
        const struct layer_entry *entry = store->entries[i];
        if (entry->statistics.successes + entry->statistics.failures == 0)
            continue;
        memcpy(uses[count].name, entry->name, sizeof entry->name);
        uses[count++].statistics = entry->statistics;
    }
    pthread_mutex_unlock(&store->lock);
    return count;
}

void layer_store_built_in(struct layer_store *store, struct layer_statistics *statistics)
{
    pthread_mutex_lock(&store->lock);
    *statistics = store->built_in;
    pthread_mutex_unlock(&store->lock);
}
